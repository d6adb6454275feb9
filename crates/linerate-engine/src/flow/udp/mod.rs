//! UDP throughput: the client's and the server's side of a test.
//!
//! The control connection is that of TCP tests. Each stream has a socket of its own at both ends,
//! opened by three datagrams that prove the way back, and a thread that does nothing but move
//! datagrams. Every datagram is numbered and carries the time at which it was sent: the receiver's
//! count over its own span is the result, and sent = received + lost holds at both ends.

pub(crate) mod client;
mod credit;
mod egress;
pub(crate) mod endpoint;
mod evenness;
pub(crate) mod keep_alive;
pub(crate) mod layout;
pub(crate) mod opening;
mod patience;
mod queue_limit;
pub(super) mod receiver;
mod schedule;
mod search;
pub(crate) mod search_account;
mod search_receiver;
mod search_sender;
mod sender;
mod serve;
mod socket;

pub(crate) use serve::{NativeUdpServer, test_terms};
