//! PPP in HDLC-like framing: what the frame takes and what stuffing adds.
//!
//! Left out: negotiated compression of the address, control and protocol fields, and idle flags
//! beyond the one that two frames share. Rules: RFC 1661 §2, RFC 1662 §3 to §5, RFC 2615.

/// One flag, shared by the frames beside it, bytes (RFC 1662 §3.1).
pub const FLAG_BYTES: u32 = 1;
/// Address and control fields, FF 03, bytes (RFC 1662 §3.1).
pub const ADDRESS_CONTROL_BYTES: u32 = 2;
/// Protocol field, bytes (RFC 1661 §2).
pub const PROTOCOL_BYTES: u32 = 2;
/// Frame check sequence of SONET lines, bytes (RFC 2615: 32 bits).
pub const FCS32_BYTES: u32 = 4;
/// Frame check sequence of other lines, bytes (RFC 1662 §3.1: 16 bits unless agreed).
pub const FCS16_BYTES: u32 = 2;
/// Share of random bytes that need an escape byte: 7D and 7E of 256 (RFC 1662 §4.2).
pub const OCTET_STUFFING_SHARE: f64 = 2.0 / 256.0;
/// Random bits between two stuffed ones: a run of five ones is met every 2^6 − 2 bits
/// (RFC 1662 §5.2).
pub const BITS_PER_STUFFED_BIT: f64 = 62.0;

/// Method with which PPP delimits its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stuffing {
    /// Bytes are escaped; the check sequence has 32 bits: SONET/SDH.
    Octets,
    /// Bits are inserted; the check sequence has 16 bits: DS1, E1, E3, DS3.
    Bits,
}

impl Stuffing {
    /// Flag, address, control, protocol and check sequence: 9 bytes on SONET, 7 elsewhere.
    pub const fn frame_bytes(self) -> u32 {
        FLAG_BYTES + ADDRESS_CONTROL_BYTES + PROTOCOL_BYTES + self.fcs_bytes()
    }

    /// Bytes of the frame check sequence.
    pub const fn fcs_bytes(self) -> u32 {
        match self {
            Self::Octets => FCS32_BYTES,
            Self::Bits => FCS16_BYTES,
        }
    }

    /// Bytes that stuffing adds to a packet and its check sequence, on average over random
    /// content; an estimate, for content is rarely random.
    ///
    /// Octets: (n + 4) × 2/256; 1500 bytes get 11.75. Bits: (n + 2)/62; 1500 bytes get 24.2. A
    /// packet made of flags doubles, one made of ones grows by a fifth.
    /// # Source
    /// RFC 1662 §4.2 and §5.2.
    pub fn expected_bytes(self, packet_bytes: u32) -> f64 {
        let stuffed = f64::from(packet_bytes) + f64::from(self.fcs_bytes());
        match self {
            Self::Octets => stuffed * OCTET_STUFFING_SHARE,
            Self::Bits => stuffed / BITS_PER_STUFFED_BIT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_nine_bytes_on_sonet_and_seven_elsewhere() {
        assert_eq!(Stuffing::Octets.frame_bytes(), 9); // 7E, FF 03, 00 21, FCS-32
        assert_eq!(Stuffing::Bits.frame_bytes(), 7);
    }

    #[test]
    fn stuffing_adds_two_in_256_bytes_or_one_in_62_bits() {
        assert!((Stuffing::Octets.expected_bytes(1500) - 11.75).abs() < 1e-12); // 1504/128
        assert!((Stuffing::Bits.expected_bytes(1500) - 1502.0 / 62.0).abs() < 1e-12);
    }

    /// Inserts a zero after five ones and returns the number inserted.
    fn stuffed_bits(bits: impl Iterator<Item = bool>) -> u32 {
        let (mut ones, mut stuffed) = (0, 0);
        for bit in bits {
            ones = if bit { ones + 1 } else { 0 };
            if ones == 5 {
                (ones, stuffed) = (0, stuffed + 1);
            }
        }
        stuffed
    }

    #[test]
    fn random_bits_need_one_stuffed_bit_in_62() {
        // A 64-bit linear congruential generator's top bit (Knuth's MMIX constants).
        let mut state = 1_u64;
        let bits = (0..6_200_000).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 63 == 1
        });
        let stuffed = f64::from(stuffed_bits(bits));
        assert!((stuffed / 100_000.0 - 1.0).abs() < 0.02, "{stuffed}");
    }
}
