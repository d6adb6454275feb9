//! A flow test: one runner for the machines of every protocol (`linerate_proto::dialect`), what
//! both ends know of its streams, and the record that comes of it.
//!
//! The runner has its network and clock given: live a socket and data threads; in tests both ends
//! run in simulated time.

pub(crate) mod account;
pub mod admission;
mod arrived;
pub(crate) mod budget;
mod caveats;
pub(crate) mod ceiling;
pub(crate) mod contradiction;
pub(crate) mod endpoint;
pub(crate) mod fold;
pub mod moved;
mod net;
pub(crate) mod peer;
pub(crate) mod probes;
pub(crate) mod record;
pub mod registry;
mod round_trips;
mod rows;
mod samples;
mod served;
mod session;
pub(crate) mod start_up;
pub(crate) mod summary;
pub mod tcp;
#[cfg(test)]
mod tests;
pub(crate) mod trains;
pub mod udp;

pub(crate) use net::{Net, Socket};
pub use samples::Sample;
pub(crate) use session::{Flows, FlowsAnswer, TestSession, Words, run};
