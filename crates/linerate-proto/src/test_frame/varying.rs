//! The fields of a template that differ from flow to flow: their offsets and ranges.

use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_core::device::Varying;

use super::ends::{Ends, PORTS_RFC4814, PORTS_RFC4814_LAST};
use super::error::{Result, TestFrameError};
use super::flows::Field;
use super::spec::{AddressRule, IpFlow, TestFrame, TestFrameContent};

/// Offsets of the headers in a frame.
pub(super) struct Places {
    /// Network header, after the type or length field.
    pub(super) network: usize,
    /// UDP or TCP header, if there is one.
    pub(super) transport: Option<usize>,
}

/// Varying fields of a template.
pub(super) fn varying_fields(frame: &TestFrame, places: &Places) -> Result<Vec<Varying>> {
    frame.flows.check_limits()?;
    let mut divisor = 1_u32;
    let mut all = Vec::new();
    for vary in &frame.flows.vary {
        // Values beyond the number of flows are never used.
        let count = vary.count.min(frame.flows.count);
        all.push(Varying { divisor, count, ..varying_field(frame, places, vary.field, count)? });
        divisor = divisor.saturating_mul(count);
    }
    Ok(all)
}

/// Offset, first value and range of a field; an error for values beyond its range.
fn varying_field(frame: &TestFrame, places: &Places, field: Field, count: u32) -> Result<Varying> {
    let absent = || TestFrameError::NoField {
        field: field.name(),
        protocol: frame.content.protocol().name(),
    };
    let (at, width, base, last, sums) = match field {
        Field::DestinationMac => (2, 4, frame.destination.low_u32(), u32::MAX, (false, false)),
        Field::SourceMac => (8, 4, frame.source.low_u32(), u32::MAX, (false, false)),
        Field::SourceAddress | Field::DestinationAddress => {
            let is_source = field == Field::SourceAddress;
            address(frame, places, is_source).ok_or_else(absent)?
        }
        Field::SourcePort | Field::DestinationPort => {
            let (ports, at) =
                content_ports(&frame.content).zip(places.transport).ok_or_else(absent)?;
            let [(first, base, last), other] = port_ranges(ports);
            let (at, (first, base, last)) = match field {
                Field::SourcePort => (at, (first, base, last)),
                _ => (at + 2, other),
            };
            if base < first {
                return Err(TestFrameError::Ports { field: field.name(), first: base, last: base });
            }
            (at, 2, base, last, (false, true))
        }
    };
    let top = u64::from(base) + u64::from(count) - 1;
    if top > u64::from(last) {
        return Err(match field {
            Field::SourcePort | Field::DestinationPort => TestFrameError::Ports {
                field: field.name(),
                first: base,
                last: u32::try_from(top).unwrap_or(u32::MAX),
            },
            _ => TestFrameError::Range { field: field.name(), count },
        });
    }
    let (in_header_sum, in_transport_sum) = sums;
    // Fields are in the headers, which are far below 65,536 bytes.
    let at = at as u16;
    Ok(Varying { at, width, base, divisor: 1, count, in_header_sum, in_transport_sum })
}

fn content_ports(content: &TestFrameContent) -> Option<Ends<u16>> {
    match content {
        TestFrameContent::Ipv4(flow) => Some(flow.ports),
        TestFrameContent::Ipv6(flow) => Some(flow.ports),
        _ => None,
    }
}

/// First port of the range, base, and last port of the range, of the source and the destination.
fn port_ranges(ports: Ends<u16>) -> [(u32, u32, u32); 2] {
    let range = |first: u16, base: u16, last: u16| (first.into(), base.into(), last.into());
    let (first, last) = (PORTS_RFC4814, PORTS_RFC4814_LAST);
    [
        range(first.source, ports.source, last.source),
        range(first.destination, ports.destination, last.destination),
    ]
}

type FieldRange = (usize, u8, u32, u32, (bool, bool));

/// Offset, width, base, last value and checksums of an address's low 32 bits.
fn address(frame: &TestFrame, places: &Places, is_source: bool) -> Option<FieldRange> {
    let any = frame.addresses == AddressRule::Any;
    match &frame.content {
        TestFrameContent::Ipv4(IpFlow { ends, .. }) => {
            let base = if is_source { ends.source } else { ends.destination }.to_bits();
            let last = if any { u32::MAX } else { IPV4_LAST.to_bits() };
            let at = places.network + if is_source { 12 } else { 16 };
            Some((at, 4, base, last, (true, true)))
        }
        TestFrameContent::Ipv6(IpFlow { ends, .. }) => {
            let address = if is_source { ends.source } else { ends.destination };
            let [.., a, b, c, d] = address.octets();
            let at = places.network + if is_source { 8 + 12 } else { 24 + 12 };
            Some((at, 4, u32::from_be_bytes([a, b, c, d]), u32::MAX, (false, true)))
        }
        _ => None,
    }
}

/// The last address of 198.18.0.0/15.
const IPV4_LAST: Ipv4Addr = Ipv4Addr::new(198, 19, 255, 255);

/// True for an address of 198.18.0.0/15 (RFC 2544 appendix C.2.2).
pub(super) const fn is_test_v4(address: Ipv4Addr) -> bool {
    matches!(address.octets(), [198, 18 | 19, _, _])
}

/// True for an address of 2001:2::/48 (RFC 5180 §8, corrected by its erratum 1752).
pub(super) const fn is_test_v6(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [0x2001, 2, 0, ..])
}
