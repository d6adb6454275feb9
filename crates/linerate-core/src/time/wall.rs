//! Wall time: a label on a record, never part of a difference.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point in civil time, in nanoseconds since 1970-01-01 UTC. Serialised as RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(jiff::Timestamp);

impl WallTime {
    /// The point `ns` nanoseconds after 1970-01-01 UTC; years beyond 9999 are held at the last.
    pub fn from_unix_nanos(ns: u128) -> Self {
        let ns = i128::try_from(ns).unwrap_or(i128::MAX);
        Self(jiff::Timestamp::from_nanosecond(ns).unwrap_or(jiff::Timestamp::MAX))
    }

    /// Milliseconds since 1970-01-01 UTC, as the UUIDv7 of a record needs them.
    pub fn unix_millis(self) -> u64 {
        u64::try_from(self.0.as_millisecond()).unwrap_or(0)
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl Serialize for WallTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for WallTime {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for WallTime {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WallTime".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}
