//! The two words of an answer beside its figure: the part that limited a result, and how far the
//! result is to be trusted.
//!
//! Left out: how they are decided; the figures that show them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The part that a result is the measure of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitedBy {
    /// The host that ran the test, or both ends on it.
    ThisHost,
    /// The host at the other end.
    OtherEnd,
    /// A link of the path: it was full.
    Link,
    /// The path, by losses or by its queue, while none of its links is known to be full.
    Path,
    /// The device under test.
    Device,
    /// A window or a buffer of TCP.
    Window,
    /// The rate that was asked for.
    Pace,
    /// The length of the test.
    Time,
    /// No evidence names a limit.
    #[default]
    NotKnown,
    /// Nothing limits the measurement: it is of no rate.
    Nothing,
}

impl LimitedBy {
    /// True when a host is the limit: the headline names it before the number.
    pub const fn is_host(self) -> bool {
        matches!(self, Self::ThisHost | Self::OtherEnd)
    }

    /// Importance of the limit to a reader, the highest for a limit at a host.
    pub const fn weight(self) -> u8 {
        match self {
            Self::ThisHost | Self::OtherEnd => 2,
            Self::NotKnown | Self::Nothing => 0,
            _ => 1,
        }
    }

    /// The key in JSON and CSV.
    pub const fn json_key(self) -> &'static str {
        match self {
            Self::ThisHost => "this_host",
            Self::OtherEnd => "other_end",
            Self::Link => "link",
            Self::Path => "path",
            Self::Device => "device",
            Self::Window => "window",
            Self::Pace => "pace",
            Self::Time => "time",
            Self::NotKnown => "not_known",
            Self::Nothing => "nothing",
        }
    }
}

/// Trustworthiness of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quality {
    /// No caveat is against it.
    Good,
    /// Something had a part in it that is not the path's or the device's.
    Doubtful,
    /// The result is wrong, or there is none.
    Bad,
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "good",
            Self::Doubtful => "doubtful",
            Self::Bad => "bad",
        })
    }
}
