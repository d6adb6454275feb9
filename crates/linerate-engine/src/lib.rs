//! Measuring engines: each joins a plan to the kernel and returns a record.
//!
//! Control is a machine, data is a loop: plain threads move bytes; nothing here prints.

mod address;
pub mod compare;
pub mod conform;
pub mod context;
pub mod device;
pub mod environment;
pub mod examine;
pub mod failure;
pub mod flow;
pub mod foreign;
mod host_counters;
pub mod http_load;
pub mod lab;
mod netns;
pub mod path;
pub mod rtt;
pub mod served;
pub mod simulate;
mod socket_address;
pub mod study;
pub mod throughput;
pub mod trace;
