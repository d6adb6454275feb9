//! The two halves of a bank: rules are tuned on one and scored on the other.

use serde::{Deserialize, Serialize};

/// Part of the bank to which a scenario belongs: rules are tuned on one and scored on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Half {
    /// The half for tuning rules.
    Development,
    /// The half for scoring them.
    Other,
}

impl Half {
    /// The half of a scenario by its identity and parameters: chance, and always the same.
    pub(super) fn from_identity(text: &str) -> Self {
        // The lowest bit of FNV-1a is the parity of the bytes' lowest bits; a higher one mixes.
        if hash(text) >> 40 & 1 == 0 { Self::Development } else { Self::Other }
    }
}

impl std::str::FromStr for Half {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "development" => Ok(Self::Development),
            "other" => Ok(Self::Other),
            _ => Err("one of development, other".to_owned()),
        }
    }
}

/// FNV-1a of Fowler, Noll and Vo with 64 bits: the same on every machine and in every version.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // From the vectors that its authors publish: "a" and "foobar".
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
