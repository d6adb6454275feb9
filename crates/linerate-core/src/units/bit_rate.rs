//! Bits per second.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rate in bits per second; 1 Mbit/s is 1,000,000 bit/s.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct BitRate(u64);

impl BitRate {
    /// A rate of `bps` bits per second.
    pub const fn from_bits_per_sec(bps: u64) -> Self {
        Self(bps)
    }

    /// The rate in bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }
}
