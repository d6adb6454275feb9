//! Linux facilities under linerate: sockets, timestamps, namespaces, netlink, clocks.
//!
//! All `unsafe` code and all reading of clocks is here; each facility has a safe, typed interface.
//! One file per kernel facility, with the manual page and the kernel version in its head.
#![allow(unsafe_code)]

pub mod bpf;
mod error;
mod frames;
pub mod netlink;
mod process;
mod sockets;
mod time;
pub mod xdp;

pub use error::{Error, Result, words_of};
pub use frames::{
    ethtool, frame_counter, frame_sender, frame_tally, frame_writer, handover_stamps,
    interface_facts, napi, packet_capture, raw_port, stamp_abilities, tun, xdp_echo, xdp_socket,
};
pub(crate) use frames::{frame_loop, xdp_rings};
pub use process::{
    arena, cgroup, child, host, netns, open_files, password, permission, realtime, sched, service,
    stop, sysctl, terminal, thread, userns,
};
pub use sockets::{
    answer_socket, datagram_batch, datagram_socket, echo_socket, fd_passing, icmp, local_datagram,
    page_cache, poll, splice, tcp, timestamps, trace_socket, zero_copy,
};
pub(crate) use sockets::{control, socket_option};
pub use time::{clock, clock_facts, local_time, ptp_clock, timer};
