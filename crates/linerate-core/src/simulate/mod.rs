//! TCP over an emulated path in virtual time: what this machine cannot run live, the same on every
//! machine by seed.
//!
//! Over the same [`Pipeline`](crate::path::Pipeline)s as the live path, packet for packet.
//! Sequence numbers count full segments. Left out: connection set-up and tear-down, Nagle's rule,
//! path MTU discovery. Recovery is that of RFC 5681, RFC 6582 or RFC 6675, where a retransmission
//! that is lost again waits for the timer, or that of Linux: RACK-TLP (RFC 8985) and PRR (RFC
//! 6937).

mod acked;
mod bbr;
mod burst;
mod choice;
mod congestion;
mod delivery;
mod direction;
mod flow;
mod hystart;
#[cfg(test)]
mod live_tests;
mod loss_state;
mod network;
mod points;
mod rack;
mod receiver;
mod repair;
mod scenario;
mod scoreboard;
mod send_buffer;
mod sender;
mod summary;
mod tcp_model;
#[cfg(test)]
mod tests;
mod timers;

pub use choice::{HEADER_BYTES, INITIAL_WINDOW_MAX, MTU_BYTES_MAX, SegmentError, Stack, TcpChoice};
pub use direction::DirectionResult;
pub use flow::{FlowPlan, FlowResult};
pub use network::{Simulation, SimulationResult};
pub use points::{PointsPlan, SequencePoint};
pub use scenario::{FLOWS_WITH_POINTS, SAMPLES, ScenarioError, mtu_bytes};
pub use summary::{FlowSummary, RunSummary, SimulationReport, Speed, TcpSummary, ceiling_bps};
pub use tcp_model::{CongestionControl, TcpModel};
