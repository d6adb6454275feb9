//! Wire formats and protocol machines of linerate, without I/O.
//!
//! Bytes become values and values bytes; machines take input and give output and never touch a
//! socket or a clock. Whatever a peer sends ends as a value or an error, never as a panic.
#![forbid(unsafe_code)]

pub mod capture;
pub mod chrony;
pub mod datagrams;
pub mod dialect;
pub mod digest;
pub mod echo;
pub mod frame;
pub mod http;
pub mod icmp_error;
pub mod iperf2;
pub mod iperf3;
pub mod meet;
pub mod native;
pub mod nuttcp;
pub mod ptp4l;
pub mod stamp;
pub mod test_frame;
pub mod ttcp;
