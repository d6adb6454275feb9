//! MAC addresses of 48 bits (IEEE 802, EUI-48).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A MAC address of 48 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The broadcast address.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// True for a group address: the lowest bit of the first byte (IEEE 802 §8.2).
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// True for a locally administered address: the second lowest bit of the first byte.
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 == 2
    }

    /// The address plus `offset` in its low 32 bits, which wrap.
    #[must_use]
    pub const fn plus_offset(self, offset: u32) -> Self {
        let [a, b, low @ ..] = self.0;
        let [c, d, e, f] = u32::from_be_bytes(low).wrapping_add(offset).to_be_bytes();
        Self([a, b, c, d, e, f])
    }

    /// Low 32 bits of the address.
    pub const fn low_u32(self) -> u32 {
        let [_, _, low @ ..] = self.0;
        u32::from_be_bytes(low)
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(out, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// Error for a text that is no MAC address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{}\" is no hardware address; six bytes such as 02:00:00:00:00:01 are one",
    .0.escape_default()
)]
pub struct MacError(String);

impl FromStr for Mac {
    type Err = MacError;

    fn from_str(text: &str) -> Result<Self, MacError> {
        let error = || MacError(text.chars().take(40).collect());
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut parts = text.split(separator);
        let mut bytes = [0; 6];
        for byte in &mut bytes {
            let part = parts.next().ok_or_else(error)?;
            if !(1..=2).contains(&part.len()) || part.starts_with('+') {
                return Err(error());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| error())?;
        }
        if parts.next().is_some() { Err(error()) } else { Ok(Self(bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_they_are_written() {
        for text in ["02:00:5e:10:00:ff", "02-00-5E-10-00-FF", "2:0:5e:10:0:ff"] {
            let mac: Mac = text.parse().expect("an address");
            assert_eq!(mac.to_string(), "02:00:5e:10:00:ff");
            assert!(mac.is_local() && !mac.is_group());
        }
        for text in
            ["", "02:00:5e:10:00", "02:00:5e:10:00:ff:00", "02:00:5e:10:00:100", "+2:0:0:0:0:0"]
        {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
        assert!(Mac::BROADCAST.is_group());
    }

    #[test]
    fn counting_stays_in_the_low_32_bits() {
        let mac = Mac([2, 3, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(mac.plus_offset(1), Mac([2, 3, 0, 0, 0, 0]));
        assert_eq!(mac.low_u32(), u32::MAX);
    }
}
