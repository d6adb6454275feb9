//! Frames of an interface: sending, receiving, counting and capturing; state of the interface.

pub mod ethtool;
pub mod frame_counter;
pub(crate) mod frame_loop;
pub mod frame_sender;
pub mod frame_tally;
pub mod frame_writer;
pub mod handover_stamps;
pub mod interface_facts;
pub mod napi;
pub mod packet_capture;
pub mod raw_port;
pub mod stamp_abilities;
pub mod tun;
pub mod xdp_echo;
pub(crate) mod xdp_rings;
pub mod xdp_socket;
