//! Sockets of TCP, UDP and ICMP: options, timestamps, batches, data without copying, waiting.

pub mod answer_socket;
pub(crate) mod connect_first;
pub(crate) mod control;
pub mod datagram_batch;
pub mod datagram_socket;
pub mod echo_socket;
pub mod fd_passing;
pub mod icmp;
pub mod local_datagram;
pub mod page_cache;
pub mod poll;
pub(crate) mod socket_option;
pub mod splice;
pub mod tcp;
pub mod timestamps;
pub mod trace_socket;
pub mod zero_copy;
