//! The pcap format: a file header, then records (draft-ietf-opsawg-pcap, pcap-savefile(5)).
//!
//! ```text
//! file    0 magic  4 major (2)  6 minor (2)  8 zone  12 accuracy  16 snaplen  20 link type
//! record  0 seconds  4 fraction  8 captured length  12 original length  16 data
//! ```
//!
//! Zone and accuracy are always 0 and are ignored. The link type's word also has the length of the
//! frame check sequence: with bit 26 set, bits 28 to 31 count it in units of two bytes.

use super::CapturedPacket;
use super::error::{BLOCK_MAX, CaptureError, CaptureProblem};
use super::interface::{CaptureInterface, Clock};
use super::link_type::LinkType;
use super::order::Order;
use super::step::{CaptureStep, Position};

/// Bytes of the file header.
pub(super) const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;

/// Bytes of the longest packet that libpcap accepts for the link types supported here: a file whose
/// snaplen is smaller, or 0, may still have packets up to this.
const PACKET_MAX_BYTES: u32 = 262_144;

/// First bytes of compressed captures and of unsupported formats, with their errors.
const UNSUPPORTED: &[(&[u8], CaptureProblem)] = &[
    (&[0x1f, 0x8b], CaptureProblem::Compressed("gzip")),
    (&[0x28, 0xb5, 0x2f, 0xfd], CaptureProblem::Compressed("zstd")),
    (&[0xfd, 0x37, 0x7a, 0x58], CaptureProblem::Compressed("xz")),
    (b"BZh", CaptureProblem::Compressed("bzip2")),
    (&[0x04, 0x22, 0x4d, 0x18], CaptureProblem::Compressed("lz4")),
    (b"snoo", CaptureProblem::Dialect("a snoop capture")),
    (&[0xa1, 0xb2, 0xcd, 0x34], CaptureProblem::Dialect(MODIFIED)),
    (&[0x34, 0xcd, 0xb2, 0xa1], CaptureProblem::Dialect(MODIFIED)),
    (&[0xa1, 0xb2, 0x34, 0xcd], CaptureProblem::Dialect("pcap as modified by Mesquita's patch")),
    (&[0xcd, 0x34, 0xb2, 0xa1], CaptureProblem::Dialect("pcap as modified by Mesquita's patch")),
    (&[0xa1, 0x2b, 0x3c, 0x4d], CaptureProblem::Dialect("pcap as written by Navtel")),
    (&[0x4d, 0x3c, 0x2b, 0xa1], CaptureProblem::Dialect("pcap as written by Navtel")),
    (&[0x1c, 0x00, 0x01, 0xac], CaptureProblem::Dialect("pcap as written by Ixia")),
    (&[0xac, 0x01, 0x00, 0x1c], CaptureProblem::Dialect("pcap as written by Ixia")),
    (&[0x1c, 0x00, 0x01, 0xab], CaptureProblem::Dialect("pcap as written by Ixia")),
    (&[0xab, 0x01, 0x00, 0x1c], CaptureProblem::Dialect("pcap as written by Ixia")),
];
/// Name of a variant with record headers of 24 bytes, or of other lengths under the same magic, so
/// that it cannot be parsed reliably.
const MODIFIED: &str = "pcap as modified by Kuznetzov's patch";

/// Byte order and time unit by the magic number.
struct Magic {
    order: Order,
    ns_per_unit: u64,
}

/// Checks that the first bytes are those of a pcap file.
pub(super) fn check_magic(magic: &[u8; 4]) -> Result<(), CaptureError> {
    read_magic(magic).map(|_| ())
}

fn read_magic(magic: &[u8; 4]) -> Result<Magic, CaptureError> {
    for order in [Order::Little, Order::Big] {
        match order.read_u32(magic, 0) {
            MAGIC_MICROSECONDS => return Ok(Magic { order, ns_per_unit: 1000 }),
            MAGIC_NANOSECONDS => return Ok(Magic { order, ns_per_unit: 1 }),
            _ => {}
        }
    }
    let unsupported = UNSUPPORTED.iter().find(|(start, _)| magic.starts_with(start));
    let problem = unsupported.map_or(CaptureProblem::NotACapture(*magic), |(_, problem)| *problem);
    Err(CaptureError::new(0, problem))
}

/// Order of a record's two lengths (libpcap, sf-pcap.c): tcpdump up to 3.4 wrote the original
/// length first, under version 2.3 sometimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    OriginalFirst,
    SmallerIsCaptured,
}

/// Parsed file header of a pcap file.
#[derive(Debug)]
pub(super) struct PcapHeader {
    order: Order,
    ns_per_unit: u64,
    lengths: Lengths,
    packet_max: u32,
    interface: CaptureInterface,
}

impl PcapHeader {
    pub(super) fn read(head: &[u8; FILE_HEADER_BYTES]) -> Result<Self, CaptureError> {
        let magic = read_magic(head.first_chunk().expect("24 bytes begin with 4"))?;
        let order = magic.order;
        let (major, minor) = (order.read_u16(head, 4), order.read_u16(head, 6));
        let lengths = match (major, minor) {
            (2, 4) => Lengths::CapturedFirst,
            (2, 3) => Lengths::SmallerIsCaptured,
            (2, 0..=2) => Lengths::OriginalFirst,
            _ => {
                let expected = "pcap version 2.4 or older 2.x";
                return Err(CaptureError::new(
                    4,
                    CaptureProblem::Version { expected, major, minor },
                ));
            }
        };
        let (snaplen, link) = (order.read_u32(head, 16), order.read_u32(head, 20));
        let has_fcs = link & (1 << 26) != 0;
        let interface = CaptureInterface {
            link_type: LinkType((link & 0xffff) as u16),
            snaplen: (snaplen != 0).then_some(snaplen),
            name: None,
            speed_bps: None,
            fcs_bytes: has_fcs.then_some((link >> 28) as u8 * 2),
            clock: Clock::new(if magic.ns_per_unit == 1 { 9 } else { 6 }, 0),
        };
        let packet_max = snaplen.clamp(PACKET_MAX_BYTES, BLOCK_MAX - RECORD_HEADER_BYTES as u32);
        Ok(Self { order, ns_per_unit: magic.ns_per_unit, lengths, packet_max, interface })
    }

    pub(super) const fn interface(&self) -> &CaptureInterface {
        &self.interface
    }

    #[inline]
    pub(super) fn record<'a>(
        &self,
        input: &'a [u8],
        place: &mut Position,
    ) -> Result<CaptureStep<'a>, CaptureError> {
        let Some((head, rest)) = input.split_first_chunk::<RECORD_HEADER_BYTES>() else {
            return Ok(CaptureStep::Needs { bytes: RECORD_HEADER_BYTES });
        };
        let order = self.order;
        let (first, second) = (order.read_u32(head, 8), order.read_u32(head, 12));
        let (captured, original_len) = match self.lengths {
            Lengths::CapturedFirst => (first, second),
            Lengths::OriginalFirst => (second, first),
            Lengths::SmallerIsCaptured => (first.min(second), first.max(second)),
        };
        if captured > self.packet_max {
            let (what, most) = ("the data of a packet record", self.packet_max);
            let problem = CaptureProblem::TooLong { what, most, found: captured };
            return Err(CaptureError::new(place.offset, problem));
        }
        let used = RECORD_HEADER_BYTES + captured as usize;
        let Some(data) = rest.get(..captured as usize) else {
            return Ok(CaptureStep::Needs { bytes: used });
        };
        let seconds = u64::from(order.read_u32(head, 0));
        let fraction = u64::from(order.read_u32(head, 4));
        // At most 2^32 × 10^9 + 2^32 × 10^3, which 63 bits hold.
        let at_ns = seconds * 1_000_000_000 + fraction * self.ns_per_unit;
        let offset = place.offset;
        let packet = CapturedPacket {
            number: place.count_packet(used),
            offset,
            at_ns: Some(at_ns),
            data,
            original_len,
            section: 0,
            interface: 0,
            link_type: self.interface.link_type,
            fcs_bytes: self.interface.fcs_bytes,
            direction: None,
        };
        Ok(CaptureStep::Packet { packet, used })
    }
}
