//! A study as data: topologies, tests, parameters, repetitions, and the figures published before.
//!
//! Nothing here measures or reads a file; the grid is run by the engine and kept by the store.

mod background;
mod bench_test;
mod bench_words;
mod check;
mod check_bench;
mod check_simulate;
mod check_tcp;
mod estimate;
mod plan;
mod published;
mod question;
mod simulate_test;
mod tcp_test;
mod test;
mod toml_text;
mod udp_test;

pub use background::Background;
pub use bench_test::BenchTest;
pub use bench_words::{GoalTable, GoalWord, Measure, NamedGoal, OrderedCells, OrderedContract};
pub use estimate::{Estimator, expected_ns};
pub use plan::{CellKey, CellPlan, PublishedAs, StudyPlan, Topology};
pub use published::{
    Cards, Comparison, ErrorColumn, Milestone, MilestoneSet, NotAFigure, PacketsPerSecond, Printed,
    PublishedError, PublishedFigures, PublishedItem, PublishedPing, PublishedRouter, PublishedRows,
    PublishedTable, PublishedTcp, Relation, Streams, TableAbout, Theory,
};
pub use question::{
    Answer, CHANCE_RUNS_MIN, Condition, Evaluated, Figure, FigureKind, FigureStat, Figures,
    Measured, Missing, Part, Place, Quantity, Question, Template, Unit, ValueName, Verdict,
};
pub use simulate_test::SimulateTest;
pub use tcp_test::TcpTest;
pub use test::{Parameter, Test, TestKind, Value};
pub use toml_text::PlanError;
pub use udp_test::{OfferedRate, UdpTest};
