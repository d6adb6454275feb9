//! iperf 2 from either side (spec/iperf2.md).

pub(crate) mod client;
mod server;
mod udp_client;
mod udp_server;

pub use client::{Return, run_with_return};
pub use server::serve;
pub(crate) use udp_client::measure_udp;
pub use udp_server::{UdpEar, UdpLog};
