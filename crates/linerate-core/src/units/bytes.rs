//! Sizes in bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A size or count of bytes.
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
pub struct Bytes(u64);

impl Bytes {
    /// A size of `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The number of bytes.
    pub const fn count(self) -> u64 {
        self.0
    }
}
