//! Tests with iperf3, as its client and as its server (spec/iperf3.md).
//!
//! Steps and time-outs are those of the machines in `linerate_proto::iperf3`, which `flow` runs;
//! here is what they want done. Left out: SCTP, files as payload, flow labels, multipath TCP.

mod client;
mod datagrams;
mod ending;
pub(crate) mod fail;
mod key_file;
#[cfg(feature = "rsa")]
mod keys;
#[cfg(not(feature = "rsa"))]
#[path = "no_keys.rs"]
mod keys;
mod login;
#[cfg(all(test, feature = "rsa"))]
#[allow(dead_code, reason = "its refusals alone are tested")]
mod no_keys;
mod plan;
mod registry;
mod report;
mod server;
mod shared;
mod tcp_server;
mod tcp_streams;
mod udp_client;
mod udp_port;
mod udp_server;
mod udp_streams;

pub(crate) use client::measure;
pub use client::{Extras, run};
pub use key_file::Padding;
pub use login::{Guard, Login, SKEW_DEFAULT_S};
pub use registry::{Iperf3Connection, Registry, read_cookie};
pub use server::{LogLine, serve_test};
pub use shared::{Iperf3Context, Observer};
pub(crate) use udp_client::measure_udp;
pub use udp_client::run_udp;
pub use udp_port::Iperf3UdpPort;
