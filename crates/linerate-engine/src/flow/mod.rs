//! Flow tests: one runner for the machines of every protocol (`linerate_proto::dialect`), over a
//! network and a clock that are given to it. Live it has a socket and data threads; in tests both
//! ends run in simulated time.

mod net;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use net::Socket;
pub(crate) use session::{Answer, Flows, Session, run};
