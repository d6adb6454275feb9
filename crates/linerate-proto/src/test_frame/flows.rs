//! What differs from flow to flow: which fields, how many values each, in which order they go.
//!
//! The fields go like the digits of a counter, the first one fastest. There is no seed: the order
//! of shuffled flows is fixed ([`FrameTemplate::flow_of`]), so that two runs offer the same.
//!
//! [`FrameTemplate::flow_of`]: linerate_core::device::FrameTemplate::flow_of

use linerate_core::device::FrameTemplate;

use super::ends::{Ends, PORTS_RFC4814};
use super::error::{Result, TestFrameError};

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
