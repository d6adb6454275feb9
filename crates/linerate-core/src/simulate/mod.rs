//! TCP over an emulated path in virtual time: what this machine cannot run live, the same on every
//! machine by seed.
//!
//! Over the same [`Pipeline`](crate::path::Pipeline)s as the live path, packet for packet.
//! Sequence numbers count full segments. Left out: connection set-up and tear-down, Nagle's rule,
//! path MTU discovery, PRR and RACK-TLP (RFC 6937, RFC 8985): recovery is that of RFC 6582 or RFC
//! 6675, and a retransmission that is lost again waits for the timer.

mod congestion;
mod direction;
mod flow;
mod hystart;
mod network;
mod receiver;
mod scoreboard;
mod sender;
mod summary;
#[cfg(test)]
mod tests;
mod timers;

pub use congestion::CongestionControl;
pub use flow::{FlowPlan, FlowResult, Point, Recovery, TcpModel};
pub use network::{Simulation, SimulationResult};
pub use summary::{FlowSummary, RunSummary, SimulationReport, Speed, TcpSummary, ceiling_bps};
