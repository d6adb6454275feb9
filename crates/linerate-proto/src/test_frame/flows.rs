//! What differs from flow to flow: which fields, how many values each, in which order they go.
//!
//! The fields go like the digits of a counter, the first one fastest. There is no seed: the order
//! of shuffled flows is fixed ([`FrameTemplate::flow_of`]), so that two runs offer the same.
//!
//! [`FrameTemplate::flow_of`]: linerate_core::device::FrameTemplate::flow_of

use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_core::device::{FrameTemplate, Varying};

use super::error::{Result, TestFrameError};
use super::spec::{AddressRule, PORTS_RFC4814, PORTS_RFC4814_LAST};
use super::{Content, Ends, IpFlow, TestFrame};

/// Most flows of a template.
pub const FLOWS_MAX: u32 = 1_000_000;

/// The flows of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flows {
    /// How many, 1 to [`FLOWS_MAX`].
    pub count: u32,
    /// Which fields differ; at most [`FrameTemplate::VARYING_MAX`], each once, enough values
    /// together for `count`. The first one moves on with each flow.
    pub vary: Vec<Vary>,
    /// In an order that looks random (RFC 4814) instead of one after another.
    pub shuffled: bool,
}

/// A field and how many values it goes through, from that of the test frame upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vary {
    /// Which field.
    pub field: Field,
    /// Values, 1 or more.
    pub count: u32,
}

/// A field that can differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Low 32 bits of the hardware address that it comes from.
    SourceMac,
    /// Low 32 bits of the hardware address that it goes to.
    DestinationMac,
    /// Low 32 bits of the IP address that it comes from.
    SourceAddress,
    /// Low 32 bits of the IP address that it goes to.
    DestinationAddress,
    /// Port that it comes from.
    SourcePort,
    /// Port that it goes to.
    DestinationPort,
}

impl Field {
    /// The field in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SourceMac => "source hardware addresses",
            Self::DestinationMac => "destination hardware addresses",
            Self::SourceAddress => "source addresses",
            Self::DestinationAddress => "destination addresses",
            Self::SourcePort => "source ports",
            Self::DestinationPort => "destination ports",
        }
    }
}

impl Flows {
    /// One flow: every frame has the same addresses and ports.
    pub const fn one() -> Self {
        Self { count: 1, vary: Vec::new(), shuffled: false }
    }

    /// `count` flows over `fields`, evenly: each goes through the smallest number of values whose
    /// power covers `count`. One field alone goes through `count` values.
    pub fn spread(count: u32, fields: &[Field], shuffled: bool) -> Self {
        let power = u32::try_from(fields.len()).unwrap_or(u32::MAX);
        let covers = |values: u32| {
            u64::from(values).checked_pow(power).is_none_or(|flows| flows >= u64::from(count))
        };
        let values = (1..=count).find(|values| covers(*values)).unwrap_or(1);
        let vary = fields.iter().map(|field| Vary { field: *field, count: values }).collect();
        Self { count, vary, shuffled }
    }

    /// Ports of the ranges of RFC 4814 §4.5 for these flows: the first ones where they differ.
    pub fn ports(&self, ports: Ends<u16>) -> Ends<u16> {
        let varies = |field| self.vary.iter().any(|it| it.field == field);
        Ends {
            source: if varies(Field::SourcePort) { PORTS_RFC4814.source } else { ports.source },
            destination: if varies(Field::DestinationPort) {
                PORTS_RFC4814.destination
            } else {
                ports.destination
            },
        }
    }

    /// That there are as many flows as values, and not too many of either.
    pub(super) fn check(&self) -> Result<()> {
        if !(1..=FLOWS_MAX).contains(&self.count) {
            return Err(TestFrameError::FlowCount(self.count));
        }
        if self.vary.len() > FrameTemplate::VARYING_MAX {
            return Err(TestFrameError::FieldCount(self.vary.len()));
        }
        for (index, vary) in self.vary.iter().enumerate() {
            let twice = self.vary[..index].iter().any(|it| it.field == vary.field);
            if twice || vary.count == 0 {
                return Err(TestFrameError::FieldTwice(vary.field.name()));
            }
        }
        let product = self.vary.iter().fold(1_u64, |all, it| all.saturating_mul(it.count.into()));
        if product < u64::from(self.count) {
            return Err(TestFrameError::FewValues { flows: self.count, values: product });
        }
        Ok(())
    }
}

/// Where headers start.
pub(super) struct Places {
    /// Behind type or length.
    pub(super) network: usize,
    /// UDP or TCP, with the protocol number.
    pub(super) transport: Option<usize>,
}

/// The varying fields of a template.
pub(super) fn varying(frame: &TestFrame, places: &Places) -> Result<Vec<Varying>> {
    frame.flows.check()?;
    let mut divisor = 1_u32;
    let mut all = Vec::new();
    for vary in &frame.flows.vary {
        // More values than flows never come up.
        let count = vary.count.min(frame.flows.count);
        all.push(Varying { divisor, count, ..field(frame, places, vary.field, count)? });
        divisor = divisor.saturating_mul(count);
    }
    Ok(all)
}

/// Where a field is and what it starts with; refuses values beyond its range.
fn field(frame: &TestFrame, places: &Places, field: Field, count: u32) -> Result<Varying> {
    let absent = || TestFrameError::NoField {
        field: field.name(),
        protocol: frame.content.protocol().name(),
    };
    let (at, width, base, last, sums) = match field {
        Field::DestinationMac => (2, 4, frame.destination.low(), u32::MAX, (false, false)),
        Field::SourceMac => (8, 4, frame.source.low(), u32::MAX, (false, false)),
        Field::SourceAddress | Field::DestinationAddress => {
            let is_source = field == Field::SourceAddress;
            address(frame, places, is_source).ok_or_else(absent)?
        }
        Field::SourcePort | Field::DestinationPort => {
            let (ports, at) = ports(&frame.content).zip(places.transport).ok_or_else(absent)?;
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

fn ports(content: &Content) -> Option<Ends<u16>> {
    match content {
        Content::Ipv4(flow) => Some(flow.ports),
        Content::Ipv6(flow) => Some(flow.ports),
        _ => None,
    }
}

/// First of the range, base, last of the range; of the source and of the destination.
fn port_ranges(ports: Ends<u16>) -> [(u32, u32, u32); 2] {
    let range = |first: u16, base: u16, last: u16| (first.into(), base.into(), last.into());
    let (first, last) = (PORTS_RFC4814, PORTS_RFC4814_LAST);
    [
        range(first.source, ports.source, last.source),
        range(first.destination, ports.destination, last.destination),
    ]
}

type Place = (usize, u8, u32, u32, (bool, bool));

/// Place, width, base, last value and sums of an address's low 32 bits.
fn address(frame: &TestFrame, places: &Places, is_source: bool) -> Option<Place> {
    let any = frame.addresses == AddressRule::Any;
    match &frame.content {
        Content::Ipv4(IpFlow { ends, .. }) => {
            let base = if is_source { ends.source } else { ends.destination }.to_bits();
            let last = if any { u32::MAX } else { IPV4_LAST.to_bits() };
            let at = places.network + if is_source { 12 } else { 16 };
            Some((at, 4, base, last, (true, true)))
        }
        Content::Ipv6(IpFlow { ends, .. }) => {
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

/// Whether it is of 198.18.0.0/15 (RFC 2544 appendix C.2.2).
pub(super) const fn is_test_v4(address: Ipv4Addr) -> bool {
    matches!(address.octets(), [198, 18 | 19, _, _])
}

/// Whether it is of 2001:2::/48 (RFC 5180 §8, as its erratum 1752 corrects it).
pub(super) const fn is_test_v6(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [0x2001, 2, 0, ..])
}
