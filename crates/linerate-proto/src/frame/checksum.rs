//! The Internet checksum: one's complement sum of 16-bit words (RFC 1071).
//!
//! Sums add up, so the constant part of a probe is summed once and only the changing words are
//! added for each probe (RFC 1071 §2, "parallel summation").

/// A one's complement sum that is not folded yet, of at most 2^32 words of 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The sum over `bytes`, which start at an even offset of the packet. An odd last byte counts
    /// as the high half of a word, so only the last piece of a packet may have odd length.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        // 2^16 is 1 modulo 2^16 − 1, so words of 32 bits give the same sum in half the steps.
        let (words, rest) = bytes.as_chunks::<4>();
        let mut sum: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        sum += u64::from(u32::from_be_bytes(last));
        Self(sum)
    }

    /// The sum over a 64-bit value in network order.
    #[inline]
    pub const fn of_u64(value: u64) -> Self {
        Self((value >> 32) + (value & 0xFFFF_FFFF))
    }

    /// The sum over a 16-bit value in network order.
    #[inline]
    pub const fn of_u16(value: u16) -> Self {
        Self(value as u64)
    }

    /// The sum over this piece and `other`.
    #[inline]
    #[must_use]
    pub const fn add_sum(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// The sum folded to 16 bits by adding the carries (RFC 1071 §1).
    #[inline]
    pub const fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        sum as u16
    }

    /// Value of the checksum field: the complement of the folded sum.
    #[inline]
    pub const fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// True when the checksum in a packet matches its bytes.
pub fn verifies(bytes: &[u8]) -> bool {
    Sum::from_bytes(bytes).folded() == 0xFFFF
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071 §3: the numerical example.
    const EXAMPLE: [u8; 8] = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];

    #[test]
    fn the_example_of_rfc_1071_sums_to_ddf2() {
        assert_eq!(Sum::from_bytes(&EXAMPLE).folded(), 0xddf2);
        assert_eq!(Sum::from_bytes(&EXAMPLE).checksum(), 0x220d);
    }

    #[test]
    fn pieces_add_up_to_the_whole() {
        for cut in [0, 2, 4, 6, 8] {
            let sum = Sum::from_bytes(&EXAMPLE[..cut]).add_sum(Sum::from_bytes(&EXAMPLE[cut..]));
            assert_eq!(sum.folded(), 0xddf2, "cut at {cut}");
        }
        assert_eq!(Sum::of_u64(u64::from_be_bytes(EXAMPLE)).folded(), 0xddf2);
        assert_eq!(Sum::of_u16(0x0001).add_sum(Sum::from_bytes(&EXAMPLE[2..])).folded(), 0xddf2);
    }

    #[test]
    fn every_length_gives_the_same_as_the_definition_by_words() {
        let bytes: Vec<u8> = (0..=255u8).map(|i| i.wrapping_mul(37) ^ 0x5a).collect();
        for len in 0..bytes.len() {
            let by_words = bytes[..len].chunks(2).fold(0u32, |sum, word| {
                let word = [word[0], *word.get(1).unwrap_or(&0)];
                let sum = sum + u32::from(u16::from_be_bytes(word));
                (sum & 0xFFFF) + (sum >> 16)
            });
            assert_eq!(
                u32::from(Sum::from_bytes(&bytes[..len]).folded()),
                by_words,
                "length {len}"
            );
        }
    }

    #[test]
    fn a_flipped_bit_is_seen() {
        let mut packet = [0x08, 0, 0, 0, 0x12, 0x34, 0, 1];
        let checksum = Sum::from_bytes(&packet).checksum();
        packet[2..4].copy_from_slice(&checksum.to_be_bytes());
        assert!(verifies(&packet));
        for bit in 0..packet.len() * 8 {
            let mut bad = packet;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!verifies(&bad), "bit {bit}");
        }
    }
}
