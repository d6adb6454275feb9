//! The block format, pcapng (draft-ietf-opsawg-pcapng, §3 and §4).
//!
//! ```text
//! block      0 type  4 length  8 body, padded to 4  length − 4 the length again
//! section    0 byte order mark  4 major (2)  6 minor (2)  8 section length (8)  16 options
//! interface  0 link type (2)  2 reserved (2)  4 snaplen  8 options
//! enhanced   0 interface  4 time (8, high word first)  12 captured  16 original  20 data, options
//! simple     0 original  4 data
//! obsolete   0 interface (2)  2 drops (2)  4 time  12 captured  16 original  20 data, options
//! option     0 code (2)  2 length (2)  4 value, padded to 4
//! ```
//!
//! The section's length is not needed, since every block is parsed. All other blocks are skipped,
//! also those between sections.

use super::error::{BLOCK_MAX, CaptureError, CaptureProblem};
use super::interface::{CaptureInterface, Clock};
use super::link_type::LinkType;
use super::order::Order;
use super::step::{CaptureStep, Position};
use super::{CaptureDirection, CapturedPacket, INTERFACES_MAX};

/// Type of the section header block, the same in both byte orders.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Bytes of the shortest block: type, length and the repeated length.
const FRAME_BYTES: usize = 12;
/// Bytes of type and length before every body.
const HEAD_BYTES: usize = 8;
/// Bytes of the fixed fields of a packet block with a time.
const PACKET_BYTES: usize = 20;

/// Most characters of an interface's name that are kept; Linux allows 15, Windows writes about 50.
const NAME_CHARS: usize = 64;

/// A section: its byte order and its interfaces.
#[derive(Debug)]
pub(super) struct Section {
    order: Order,
    /// Number of the section, from 0; `None` before the first.
    number: Option<u32>,
    interfaces: Vec<CaptureInterface>,
}

/// Body of a block, without type and lengths.
struct Body<'a> {
    bytes: &'a [u8],
    /// Offset of the block in the capture.
    offset: u64,
}

impl Body<'_> {
    const fn error_at_offset(&self, problem: CaptureProblem) -> CaptureError {
        CaptureError::new(self.offset, problem)
    }

    /// The first `N` bytes, or an error that names the block.
    #[inline]
    fn fields<const N: usize>(&self, what: &'static str) -> Result<&[u8; N], CaptureError> {
        self.bytes.first_chunk().ok_or_else(|| {
            let least = (N + FRAME_BYTES) as u32;
            let found = (self.bytes.len() + FRAME_BYTES) as u32;
            self.error_at_offset(CaptureProblem::TooShort { what, least, found })
        })
    }
}

impl Section {
    /// State before the first section header.
    pub(super) const fn before_the_first() -> Self {
        Self { order: Order::Little, number: None, interfaces: Vec::new() }
    }

    pub(super) fn interfaces(&self) -> &[CaptureInterface] {
        &self.interfaces
    }

    #[inline]
    pub(super) fn parse_block<'a>(
        &mut self,
        input: &'a [u8],
        place: &mut Position,
    ) -> Result<CaptureStep<'a>, CaptureError> {
        let offset = place.offset;
        let Some(head) = input.first_chunk::<FRAME_BYTES>() else {
            return Ok(CaptureStep::Needs { bytes: FRAME_BYTES });
        };
        let kind = self.order.read_u32(head, 0);
        let order = if kind == SECTION { byte_order(head, offset)? } else { self.order };
        let length = check_length(order.read_u32(head, 4), offset)?;
        let used = length as usize;
        let Some(block) = input.get(..used) else { return Ok(CaptureStep::Needs { bytes: used }) };
        let (block, tail) = block.split_last_chunk::<4>().expect("a block has 12 bytes or more");
        if order.read_u32(tail, 0) != length {
            let problem = CaptureProblem::Trailer { head: length, tail: order.read_u32(tail, 0) };
            return Err(CaptureError::new(offset + block.len() as u64, problem));
        }
        let body = Body { bytes: &block[HEAD_BYTES..], offset };
        let mut packet = match kind {
            ENHANCED_PACKET => self.packet(&body, false)?,
            SIMPLE_PACKET => self.simple_packet(&body)?,
            OBSOLETE_PACKET => self.packet(&body, true)?,
            _ => {
                match kind {
                    SECTION => self.begin_section(order, &body)?,
                    INTERFACE => self.describe(&body)?,
                    _ => {}
                }
                return Ok(place.advance_bytes(used));
            }
        };
        packet.number = place.count_packet(used);
        Ok(CaptureStep::Packet { packet, used })
    }

    fn begin_section(&mut self, order: Order, body: &Body<'_>) -> Result<(), CaptureError> {
        let fields = body.fields::<16>("a section header block")?;
        let (major, minor) = (order.read_u16(fields, 4), order.read_u16(fields, 6));
        if major != 1 {
            let expected = "pcapng version 1";
            return Err(CaptureError::new(
                body.offset + HEAD_BYTES as u64 + 4,
                CaptureProblem::Version { expected, major, minor },
            ));
        }
        self.order = order;
        self.number = Some(self.number.map_or(0, |number| number.saturating_add(1)));
        self.interfaces.clear();
        Ok(())
    }

    fn describe(&mut self, body: &Body<'_>) -> Result<(), CaptureError> {
        let fields = body.fields::<8>("an interface description block")?;
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(body.error_at_offset(CaptureProblem::Interfaces));
        }
        let snaplen = self.order.read_u32(fields, 4);
        let mut interface = CaptureInterface {
            link_type: LinkType(self.order.read_u16(fields, 0)),
            snaplen: (snaplen != 0).then_some(snaplen),
            name: None,
            speed_bps: None,
            fcs_bytes: None,
            clock: Clock::DEFAULT,
        };
        let order = self.order;
        let (mut resolution, mut offset_s) = (6, 0);
        each_option(order, body, fields.len(), |code, value| match (code, value) {
            (2, name) => interface.name = Some(short_name(name)),
            (8, value) => interface.speed_bps = value.try_into().ok().map(|v| order.read_u64(v)),
            (9, [value, ..]) => resolution = *value,
            (13, [bytes, ..]) => interface.fcs_bytes = Some(*bytes),
            (14, value) => {
                let value = value.try_into().map(|v| order.read_u64(v).cast_signed());
                offset_s = value.unwrap_or(offset_s);
            }
            _ => {}
        })?;
        interface.clock = Clock::new(resolution, offset_s);
        self.interfaces.push(interface);
        Ok(())
    }

    /// An enhanced packet block, or the obsolete one, whose first word is two halves.
    #[inline]
    fn packet<'a>(
        &self,
        body: &Body<'a>,
        obsolete: bool,
    ) -> Result<CapturedPacket<'a>, CaptureError> {
        let order = self.order;
        let Some((fields, rest)) = body.bytes.split_first_chunk::<PACKET_BYTES>() else {
            body.fields::<PACKET_BYTES>("a packet block")?;
            unreachable!("fields are there or an error")
        };
        let index =
            if obsolete { u32::from(order.read_u16(fields, 0)) } else { order.read_u32(fields, 0) };
        let interface = self.interface(index, body)?;
        let units =
            u64::from(order.read_u32(fields, 4)) << 32 | u64::from(order.read_u32(fields, 8));
        let captured = order.read_u32(fields, 12);
        let data = captured_data(rest, captured, body)?;
        let mut packet = CapturedPacket {
            number: 0,
            offset: body.offset,
            at_ns: Some(
                interface
                    .clock
                    .at_ns(units)
                    .ok_or_else(|| body.error_at_offset(CaptureProblem::Time { units }))?,
            ),
            data,
            original_len: order.read_u32(fields, 16),
            section: self.number.unwrap_or(0),
            interface: index,
            link_type: interface.link_type,
            fcs_bytes: interface.fcs_bytes,
            direction: None,
        };
        let options_at = PACKET_BYTES + (captured as usize).next_multiple_of(4);
        if options_at < body.bytes.len() {
            each_option(order, body, options_at, |code, value| {
                if let (2, Ok(flags)) = (code, <&[u8; 4]>::try_from(value)) {
                    read_flags(order.read_u32(flags, 0), &mut packet);
                }
            })?;
        }
        Ok(packet)
    }

    /// A simple packet block: of interface 0, without a time, cut by that interface's snaplen.
    fn simple_packet<'a>(&self, body: &Body<'a>) -> Result<CapturedPacket<'a>, CaptureError> {
        let fields = body.fields::<4>("a simple packet block")?;
        let interface = self.interface(0, body)?;
        let original_len = self.order.read_u32(fields, 0);
        let captured = interface.snaplen.map_or(original_len, |most| original_len.min(most));
        Ok(CapturedPacket {
            number: 0,
            offset: body.offset,
            at_ns: None,
            data: captured_data(&body.bytes[fields.len()..], captured, body)?,
            original_len,
            section: self.number.unwrap_or(0),
            interface: 0,
            link_type: interface.link_type,
            fcs_bytes: interface.fcs_bytes,
            direction: None,
        })
    }

    #[inline]
    fn interface(&self, index: u32, body: &Body<'_>) -> Result<&CaptureInterface, CaptureError> {
        self.interfaces.get(index as usize).ok_or_else(|| {
            let known = self.interfaces.len() as u32;
            body.error_at_offset(CaptureProblem::Interface { known, found: index })
        })
    }
}

fn byte_order(head: &[u8; FRAME_BYTES], offset: u64) -> Result<Order, CaptureError> {
    for order in [Order::Little, Order::Big] {
        if order.read_u32(head, HEAD_BYTES) == BYTE_ORDER {
            return Ok(order);
        }
    }
    let found = *head.last_chunk().expect("12 bytes end with 4");
    Err(CaptureError::new(offset + HEAD_BYTES as u64, CaptureProblem::ByteOrder(found)))
}

#[inline]
fn check_length(length: u32, offset: u64) -> Result<u32, CaptureError> {
    let what = "a block";
    let problem = if length < FRAME_BYTES as u32 {
        CaptureProblem::TooShort { what, least: FRAME_BYTES as u32, found: length }
    } else if length > BLOCK_MAX {
        CaptureProblem::TooLong { what, most: BLOCK_MAX, found: length }
    } else if !length.is_multiple_of(4) {
        CaptureProblem::Unaligned(length)
    } else {
        return Ok(length);
    };
    Err(CaptureError::new(offset + 4, problem))
}

/// The first `captured` bytes of `room`; an error where it is shorter.
#[inline]
fn captured_data<'a>(
    room: &'a [u8],
    captured: u32,
    body: &Body<'_>,
) -> Result<&'a [u8], CaptureError> {
    room.get(..captured as usize).ok_or_else(|| {
        let (what, most) = ("the data of a packet block", room.len() as u32);
        body.error_at_offset(CaptureProblem::TooLong { what, most, found: captured })
    })
}

/// Reads `epb_flags` (§4.3.1): bits 0 and 1 are the direction, bits 5 to 8 the length of the FCS.
fn read_flags(flags: u32, packet: &mut CapturedPacket<'_>) {
    packet.direction = match flags & 3 {
        1 => Some(CaptureDirection::Incoming),
        2 => Some(CaptureDirection::Outgoing),
        _ => None,
    };
    let fcs_bytes = (flags >> 5 & 0xf) as u8;
    if fcs_bytes != 0 {
        packet.fcs_bytes = Some(fcs_bytes);
    }
}

/// Calls `each` with code and value of each option of `body` from byte `at` on.
fn each_option(
    order: Order,
    body: &Body<'_>,
    at: usize,
    mut each: impl FnMut(u16, &[u8]),
) -> Result<(), CaptureError> {
    let mut rest = body.bytes.get(at..).unwrap_or(&[]);
    while let Some((head, values)) = rest.split_first_chunk::<4>() {
        let (code, len) = (order.read_u16(head, 0), order.read_u16(head, 2));
        if code == 0 {
            break;
        }
        let Some(value) = values.get(..usize::from(len)) else {
            let room = values.len() as u32;
            return Err(
                body.error_at_offset(CaptureProblem::OptionLength { room, found: u32::from(len) })
            );
        };
        each(code, value);
        rest = values.get(usize::from(len).next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(())
}

fn short_name(bytes: &[u8]) -> Box<str> {
    let text = String::from_utf8_lossy(bytes);
    // Control characters could change a terminal that prints an error or a report.
    text.chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect()
}
