//! Streaming parser of capture files: pcap and pcapng in both byte orders, packet by packet, from
//! bytes that the caller reads.
//!
//! Left out: files (the caller reads them), writing, compressed captures, name resolution,
//! statistics and secrets blocks (skipped), the variants of pcap that patched kernels and vendors
//! wrote (refused by name). Bytes, sources and deviations: `spec/captures.md`.
//!
//! Cost, as a sketch: a packet of pcapng is found with a length check at each end and seven words
//! read, and its headers with about thirty more; with the copies of the results that is about 200
//! instructions for [`CaptureParser::parse_record`] and [`CapturedPacket::decode`] together
//! (callgrind counts 228 in a loop over a mix of lengths), 30 to 60 ns. Its bytes are not copied
//! here, so the reader's own copy out of the page cache, about 8 GB/s, is the larger part for
//! packets of 1,500 bytes (190 ns). A program that calls its library once and stdio twice for each
//! packet copies the bytes twice. Packets are built in one place each: written field by field and
//! moved on, they took three times as long, since a wide load waits for the narrow stores before
//! it.

pub mod decode;
mod error;
mod interface;
mod link_type;
mod order;
mod parser;
mod pcap;
mod pcapng;
mod step;
mod stream;

pub use decode::{Decoded, IpPacket, LengthFrom, NoIp, OnWire, Ports, Vlans};
pub use error::{CaptureError, CaptureProblem};
pub use interface::CaptureInterface;
pub use link_type::LinkType;
pub use parser::{CaptureParser, Format};
pub use step::CaptureStep;
pub use stream::{Next, Stream};

/// Bytes of the longest record or block that is read; libpcap has the same limit. A longer one is
/// refused, so that a forged length costs no memory.
pub const BLOCK_MAX_BYTES: usize = 16 << 20;

/// Most interfaces of a section. Each takes about 100 bytes until the end of the section.
pub const INTERFACES_MAX: usize = 65_536;

/// One packet of a capture, borrowed from the caller's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// Number of the packet in the capture, from 1.
    pub number: u64,
    /// Offset of its record or block, in bytes from the start of the capture.
    pub offset: u64,
    /// Time of capture in ns since 1970-01-01T00:00:00Z, rounded down. `None` when the capture has
    /// no time (Simple Packet Block).
    pub at_ns: Option<u64>,
    /// The captured bytes, from the start of the link layer's header.
    pub data: &'a [u8],
    /// Length of the packet before the capture cut it, as the capture states it.
    pub original_len: u32,
    /// Section of the capture, from 0; only pcapng has more than one.
    pub section: u32,
    /// Interface within the section, from 0.
    pub interface: u32,
    /// Type of the header at the start of `data`.
    pub link_type: LinkType,
    /// Bytes of frame check sequence at the end of the packet; `None` when the capture does not
    /// state it, which in practice means 0.
    pub fcs_bytes: Option<u8>,
    /// Direction at the capturing host, where the capture states it.
    pub direction: Option<CaptureDirection>,
}

impl CapturedPacket<'_> {
    /// Number of captured bytes.
    pub const fn captured_len(&self) -> usize {
        self.data.len()
    }

    /// Decodes the headers: lengths, addresses, ports.
    #[inline]
    pub fn decode(&self) -> Decoded {
        decode::decode(self)
    }
}

/// Direction of a packet at the capturing host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureDirection {
    /// Towards the host.
    Incoming,
    /// From the host.
    Outgoing,
}
