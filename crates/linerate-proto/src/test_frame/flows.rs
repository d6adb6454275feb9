//! Differences between flows: the varying fields, their numbers of values, and their order.
//!
//! The fields change like the digits of a counter, the first one fastest. There is no seed: the
//! order of shuffled flows is fixed ([`FrameTemplate::flow_of`]), so that two runs send the same.
//!
//! [`FrameTemplate::flow_of`]: linerate_core::device::FrameTemplate::flow_of

use linerate_core::device::FrameTemplate;

use super::ends::{Ends, PORTS_RFC4814};
use super::error::{Result, TestFrameError};

/// Most flows of a template.
pub const FLOWS_MAX: u32 = 1_000_000;

/// Flows of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flows {
    /// Number of flows, 1 to [`FLOWS_MAX`].
    pub count: u32,
    /// Varying fields: at most [`FrameTemplate::VARYING_MAX`], each once, whose values together
    /// give at least `count` combinations. The first one changes with each flow.
    pub vary: Vec<Vary>,
    /// Pseudo-random order of the flows (RFC 4814) instead of ascending.
    pub shuffled: bool,
}

/// A varying field and its number of values, from the test frame's value upwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vary {
    /// The field that varies.
    pub field: Field,
    /// Number of values, 1 or more.
    pub count: u32,
}

/// A field that can differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Low 32 bits of the source MAC address.
    SourceMac,
    /// Low 32 bits of the destination MAC address.
    DestinationMac,
    /// Low 32 bits of the source IP address.
    SourceAddress,
    /// Low 32 bits of the destination IP address.
    DestinationAddress,
    /// Source port of UDP or TCP.
    SourcePort,
    /// Destination port of UDP or TCP.
    DestinationPort,
}

impl Field {
    /// Name of the field, in the plural.
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
    pub const fn single_flow() -> Self {
        Self { count: 1, vary: Vec::new(), shuffled: false }
    }

    /// `count` flows over `fields`: each field has the smallest number of values with enough
    /// combinations for `count`. A single field has `count` values.
    pub fn spread(count: u32, fields: &[Field], shuffled: bool) -> Self {
        let power = u32::try_from(fields.len()).unwrap_or(u32::MAX);
        let covers = |values: u32| {
            u64::from(values).checked_pow(power).is_none_or(|flows| flows >= u64::from(count))
        };
        let values = (1..=count).find(|values| covers(*values)).unwrap_or(1);
        let vary = fields.iter().map(|field| Vary { field: *field, count: values }).collect();
        Self { count, vary, shuffled }
    }

    /// Ports for these flows: where a port varies, the first one of its range in RFC 4814 §4.5.
    pub fn first_ports(&self, ports: Ends<u16>) -> Ends<u16> {
        let varies = |field| self.vary.iter().any(|vary| vary.field == field);
        Ends {
            source: if varies(Field::SourcePort) { PORTS_RFC4814.source } else { ports.source },
            destination: if varies(Field::DestinationPort) {
                PORTS_RFC4814.destination
            } else {
                ports.destination
            },
        }
    }

    /// Checks that the values give enough combinations, and that all counts are within their
    /// limits.
    pub(super) fn check_limits(&self) -> Result<()> {
        if !(1..=FLOWS_MAX).contains(&self.count) {
            return Err(TestFrameError::FlowCount(self.count));
        }
        if self.vary.len() > FrameTemplate::VARYING_MAX {
            return Err(TestFrameError::FieldCount(self.vary.len()));
        }
        for (index, vary) in self.vary.iter().enumerate() {
            let twice = self.vary[..index].iter().any(|earlier| earlier.field == vary.field);
            if twice || vary.count == 0 {
                return Err(TestFrameError::FieldTwice(vary.field.name()));
            }
        }
        let counts = self.vary.iter().map(|vary| u64::from(vary.count));
        let product = counts.fold(1_u64, u64::saturating_mul);
        if product < u64::from(self.count) {
            return Err(TestFrameError::FewValues { flows: self.count, values: product });
        }
        Ok(())
    }
}
