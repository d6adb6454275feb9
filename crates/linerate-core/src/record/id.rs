//! Names of records: UUIDv7, so that they sort by start.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The identifier of a record or of a study run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordId(Uuid);

impl RecordId {
    /// An identifier from the wall clock and ten random bytes.
    /// # Source
    /// RFC 9562 §5.7 (UUIDv7: 48 bits of Unix milliseconds, then random bits).
    pub fn from_parts(unix_millis: u64, random: [u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(unix_millis, &random).into_uuid())
    }

    /// The wall clock's part of it, in milliseconds since 1970-01-01 UTC.
    pub fn unix_millis(self) -> u64 {
        // The first 48 of 128 bits.
        u64::try_from(self.0.as_u128() >> 80).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RecordId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::from_str(text).map(Self)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for RecordId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RecordId".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "uuid" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_carries_its_time_and_version_as_rfc_9562_lays_them_out() {
        // RFC 9562 appendix A.6: 2022-02-22T19:22:22.000Z is 0x017F22E279B0 milliseconds.
        let id = RecordId::from_parts(0x017F_22E2_79B0, [0; 10]);
        assert_eq!(id.unix_millis(), 0x017F_22E2_79B0);
        let id = id.to_string();
        assert!(id.starts_with("017f22e2-79b0-7"), "{id}");
    }
}
