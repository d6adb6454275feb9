//! Marks at the start of a probe's payload, when it has room for them (24 octets, network order).
//!
//! ```text
//!  0  run cookie, random for each run and size: answers to others' probes do not match
//!  8  sequence number, 64 bits: never wraps, so no false duplicate at 65536
//! 16  T1, the sender's monotonic clock in ns: a label for captures, not used on return
//! ```

/// Octets of the marks.
pub const MARKS_BYTES: usize = 24;

/// The marks of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Random number of the run.
    pub cookie: u64,
    /// Sequence number of the probe.
    pub sequence: u64,
    /// T1: the sender's monotonic clock just before sending, in ns.
    pub t1_ns: u64,
}

impl Marks {
    /// Reads the marks at the start of a payload, or `None` when it is too short for them.
    #[inline]
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (octets, _) = payload.split_first_chunk::<MARKS_BYTES>()?;
        let (fields, _) = octets.as_chunks::<8>();
        Some(Self {
            cookie: u64::from_be_bytes(fields[0]),
            sequence: u64::from_be_bytes(fields[1]),
            t1_ns: u64::from_be_bytes(fields[2]),
        })
    }

    /// The 24 octets on the wire.
    #[inline]
    pub fn octets(self) -> [u8; MARKS_BYTES] {
        let mut octets = [0; MARKS_BYTES];
        octets[..8].copy_from_slice(&self.cookie.to_be_bytes());
        octets[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        octets[16..].copy_from_slice(&self.t1_ns.to_be_bytes());
        octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_three_big_endian_words() {
        let marks = Marks { cookie: 0x0102_0304_0506_0708, sequence: 65536, t1_ns: 1 };
        let octets = marks.octets();
        assert_eq!(octets[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(octets[8..16], [0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(Marks::read(&octets), Some(marks));
        for len in 0..MARKS_BYTES {
            assert_eq!(Marks::read(&octets[..len]), None, "length {len}");
        }
    }
}
