//! Test frames of a device benchmark: templates of every protocol, mixes of lengths (IMIX), and the
//! ARP, discovery and routing messages that keep a device's tables filled.
//!
//! Layouts and deviations: `spec/test-frames.md`. Left out: fragments, extension headers, options.

mod appletalk;
mod arp;
mod build;
mod decnet;
mod ends;
mod error;
mod ether;
mod fill;
mod flows;
mod foreign;
mod imix;
mod ipx;
mod learning;
mod mac;
mod ndp;
mod neighbours;
mod spec;
mod varying;

pub use appletalk::{
    ALL_NODES as APPLETALK_ALL_NODES, AppleTalkAddress, probe_frame as aarp_probe,
};
pub use decnet::{ALL_ROUTERS as DECNET_ALL_ROUTERS, DecNetAddress, endnode_hello};
pub use ends::{Ends, PORTS_RFC2544, PORTS_RFC4814, PORTS_RFC4814_LAST};
pub use error::TestFrameError;
pub use ether::{Tag, Tags};
pub use fill::fill_frame;
pub use flows::{FLOWS_MAX, Field, Flows, Vary};
pub use foreign::ForeignKind;
pub use imix::{MIX_FRAMES_MAX, Mix, MixError, PATTERN_MAX};
pub use ipx::{IpxAddress, IpxFraming, IpxRouter};
pub use mac::{Mac, MacError};
pub use neighbours::{
    ANNOUNCEMENTS_MAX, Neighbours, Stations, VirtualHostRange, address_request, announced_mac,
};
pub use spec::{
    AddressRule, IPV4_RFC2544, IPV6_RFC5180, IpFlow, TestFrame, TestFrameContent,
    TestFrameProtocol, TestFrameTransport,
};
