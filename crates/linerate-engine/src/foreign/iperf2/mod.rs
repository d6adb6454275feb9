//! iperf 2 from either side (spec/iperf2.md).

pub(crate) mod client;
mod server;

pub use server::serve;
