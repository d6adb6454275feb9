//! Tests with iperf3, as its client and as its server (spec/iperf3.md).
//!
//! The machine of the control connection is `linerate_proto::iperf3`; data moves in the loops of
//! `throughput`. Left out: SCTP, files as payload, flow labels, multipath TCP.

mod client;
mod control;
mod datagrams;
mod door;
mod ending;
mod fail;
mod gather;
mod key_file;
#[cfg(feature = "rsa")]
mod keys;
#[cfg(not(feature = "rsa"))]
#[path = "no_keys.rs"]
mod keys;
mod login;
mod plan;
mod registry;
mod report;
pub(crate) mod sent_rows;
mod session;
mod silence;
mod udp_client;
mod udp_session;

pub(crate) use client::measure;
pub use client::{Extras, run};
pub use door::Door;
pub use key_file::Padding;
pub use login::{Guard, Login, SKEW_DEFAULT_S};
pub use registry::{Arrival, Registry, read_cookie};
pub use session::{House, Observer, Silent, serve};
pub(crate) use udp_client::measure_udp;
pub use udp_client::run_udp;
