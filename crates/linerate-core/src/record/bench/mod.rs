//! Benchmarks of devices: what is asked of one frame length on one device, and what was found.
//!
//! Sources: RFC 1242 (terms), RFC 2544 and RFC 9004 (tests), RFC 2889 (switches), RFC 6201 (reset),
//! RFC 8219 (latency). Frame lengths count from the destination address to the FCS.

mod plan;
mod result;
mod verdict;

pub use plan::{
    BenchContract, BenchFrames, BenchGoal, BenchPlan, BenchPort, BenchProtocol, BenchTest,
    BenchTimes, BenchWay, CellContract, CounterKind, GeneratorKind, LatencyKind,
};
pub use result::{
    BackToBack, BenchLatency, BenchResult, BenchTrial, BurstRun, Caching, ContractFound, GoalFound,
    InvalidTrialReason, LoadPoint, OverloadRecovery, PortFacts, RateFound, Reset, Scattered, Soak,
    Tester, TrialPort, WorstSecond,
};
pub use verdict::{
    ComparedParameter, Congestion, Holds, LatencyRepeats, Overload, OverloadKind, PortCounts,
    Repeated,
};
