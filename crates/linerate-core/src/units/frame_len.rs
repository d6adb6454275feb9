//! Lengths of Ethernet frames, FCS included: the "frame size" of RFC 2544 and RFC 5180.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::Bytes;
use super::decimal::split_unit;
use super::error::{ParseUnitError, QuantityInfo, UnitErrorReason};

/// Length of an Ethernet frame from destination address to FCS, tags included; preamble and gap
/// are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameLen(u32);

/// A length that no frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameLenError {
    /// Ethernet pads shorter frames.
    #[error(
        "a frame of {} is shorter than 64, to which Ethernet pads (FCS included)",
        .0.as_plain_bytes()
    )]
    TooShort(Bytes),
    /// No common interface takes longer frames.
    #[error(
        "a frame of {} is longer than 9242 bytes (an MTU of 9216 with two tags)",
        .0.as_plain_bytes()
    )]
    TooLong(Bytes),
}

impl FrameLen {
    /// The shortest frame: 64 bytes (IEEE 802.3 minFrameSize).
    pub const MIN: Self = Self(64);

    /// The longest frame that is accepted: an MTU of 9216 bytes, header 14, two VLAN tags of 4,
    /// FCS 4.
    pub const MAX: Self = Self(9242);

    /// A frame of `bytes` bytes, FCS included.
    /// # Errors
    /// Below [`FrameLen::MIN`] or above [`FrameLen::MAX`].
    pub fn from_bytes(bytes: u32) -> Result<Self, FrameLenError> {
        Self::checked(u64::from(bytes))
    }

    fn checked(bytes: u64) -> Result<Self, FrameLenError> {
        match u32::try_from(bytes) {
            Ok(len) if len < Self::MIN.0 => Err(FrameLenError::TooShort(Bytes::new(bytes))),
            Ok(len) if len <= Self::MAX.0 => Ok(Self(len)),
            _ => Err(FrameLenError::TooLong(Bytes::new(bytes))),
        }
    }

    /// The length in bytes, FCS included.
    pub const fn bytes(self) -> u32 {
        self.0
    }
}

const FRAME_LEN: QuantityInfo = QuantityInfo {
    name: "a frame length",
    accepted: "bytes with the FCS, 64 to 9242, for example 1518",
};

impl FromStr for FrameLen {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|reason| FRAME_LEN.refuse(text, reason))
    }
}

fn parse(text: &str) -> Result<FrameLen, UnitErrorReason> {
    let (number, unit) = split_unit(text)?;
    if !matches!(unit, "" | "B" | "byte" | "bytes") {
        return Err(UnitErrorReason::unknown_unit(unit));
    }
    FrameLen::checked(number.multiply_rounded(1)?)
        .map_err(|error| UnitErrorReason::Other(error.to_string()))
}

impl fmt::Display for FrameLen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes::new(u64::from(self.0)).as_plain_bytes().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_sizes_of_rfc_2544_and_rfc_5180_are_accepted() {
        for bytes in [64, 128, 256, 512, 1024, 1280, 1518, 1522, 2048, 4096, 8192, 9216, 9242] {
            let len = FrameLen::from_bytes(bytes).expect("within the limits");
            assert_eq!(len.bytes(), bytes);
            assert_eq!(len.to_string().parse(), Ok(len));
        }
    }

    #[test]
    fn lengths_that_no_frame_has_are_refused_in_one_line() {
        assert_eq!(
            FrameLen::from_bytes(63).expect_err("too short").to_string(),
            "a frame of 63 bytes is shorter than 64, to which Ethernet pads (FCS included)"
        );
        assert_eq!(
            "10000".parse::<FrameLen>().expect_err("too long").to_string(),
            "\"10000\" is not a frame length: a frame of 10000 bytes is longer than 9242 bytes \
             (an MTU of 9216 with two tags); write bytes with the FCS, 64 to 9242, for example 1518"
        );
        for text in ["", "0", "63", "9243", "64K", "18446744073709551615", "x"] {
            assert!(text.parse::<FrameLen>().is_err(), "{text}");
        }
    }
}
