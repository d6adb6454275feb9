//! Linux facilities under linerate: sockets, timestamps, namespaces, netlink, clocks.
//!
//! All `unsafe` and all reading of clocks is here; each facility has a safe, typed face. One file
//! per kernel facility, the manual page and the kernel version in its head.
#![allow(unsafe_code)]

pub mod answer_socket;
pub mod arena;
pub mod bpf;
pub mod child;
pub mod clock;
pub mod clock_facts;
mod control;
pub mod datagram_batch;
pub mod datagram_socket;
pub mod echo_socket;
mod error;
pub mod ethtool;
pub mod fd_passing;
pub mod frame_counter;
mod frame_loop;
pub mod frame_sender;
pub mod frame_tally;
pub mod frame_writer;
pub mod host;
pub mod icmp;
pub mod interface_facts;
pub mod local_time;
pub mod napi;
pub mod netlink;
pub mod netns;
pub mod open_files;
pub mod packet_capture;
pub mod page_cache;
pub mod password;
pub mod poll;
pub mod raw_port;
pub mod realtime;
pub mod sched;
mod socket_option;
pub mod splice;
pub mod stop;
pub mod sysctl;
pub mod tcp;
pub mod terminal;
pub mod thread;
pub mod timer;
pub mod timestamps;
pub mod tun;
pub mod userns;
pub mod xdp;
pub mod xdp_socket;
pub mod zero_copy;

pub use error::{Error, Result};
