//! Test frames of a device benchmark: templates of every protocol, mixes of lengths, the answers
//! that keep a device's tables filled, and a check of frames that others made.
//!
//! Layouts and deviations: `spec/test-frames.md`. Left out: fragments, extension headers, options.

mod appletalk;
mod build;
mod check;
mod decnet;
mod error;
mod ether;
mod fill;
mod flows;
mod imix;
mod ipx;
mod mac;
mod spec;

pub use appletalk::AppleTalkAddress;
pub use check::{CheckError, Checked, Network, check};
pub use decnet::DecNetAddress;
pub use error::TestFrameError;
pub use ether::{Tag, Tags};
pub use fill::fill;
pub use flows::{FLOWS_MAX, Field, Flows, Vary};
pub use imix::{MIX_FRAMES_MAX, Mix, MixError};
pub use ipx::{IpxAddress, IpxRouter};
pub use mac::{Mac, MacError};
pub use spec::{
    AddressRule, Content, Ends, IPV4_RFC2544, IPV6_RFC5180, IpFlow, IpxFraming, PORTS_RFC2544,
    PORTS_RFC4814, PORTS_RFC4814_LAST, Protocol, TestFrame, Transport,
};
