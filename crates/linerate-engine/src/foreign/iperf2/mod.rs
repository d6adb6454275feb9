//! iperf 2 from either side (spec/iperf2.md).

pub(crate) mod client;
mod server;

pub use client::{Return, run_with_return};
pub use server::serve;
