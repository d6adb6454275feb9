//! UDP data of nuttcp: marks of four characters around datagrams that state the bytes sent so far.
//!
//! ```text
//! BOD0 | 250 ms | BOD1 | data ... | EOD0 | pause | EOD1 EOD2 EOD3 EOD4
//! data:  8 seconds (4) | 12 microseconds (4) | 24 bytes sent, including this datagram (8)
//! ```
//!
//! The count is in the byte order of the sender. The time is in network byte order, present from
//! 7.0.1 on where one-way delay is requested. Datagrams below 32 bytes have neither. The loss is
//! the difference of the bytes announced and received.

use crate::ttcp::TimedMarks;

/// Bytes of the shortest datagram with room for the fields.
const STAMPED_BYTES: usize = 32;

/// A mark before or after the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpMark {
    /// First mark before the data; the transmitter's clock has not started.
    Ready,
    /// Second mark before the data, at which the clock starts.
    Begin,
    /// Mark after the data; 0 for the first of five.
    End(u8),
}

impl UdpMark {
    /// The four characters on the wire.
    pub const fn to_bytes(self) -> [u8; 4] {
        match self {
            Self::Ready => *b"BOD0",
            Self::Begin => *b"BOD1",
            Self::End(count) => [b'E', b'O', b'D', b'0' + if count < 5 { count } else { 4 }],
        }
    }

    /// Parses a datagram; `None` when it is no mark.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        match datagram {
            b"BOD0" => Some(Self::Ready),
            b"BOD1" => Some(Self::Begin),
            [b'E', b'O', b'D', count @ b'0'..=b'4'] => Some(Self::End(count - b'0')),
            _ => None,
        }
    }
}

/// Marks before the data, with their times in milliseconds.
pub const BEGIN_MARKS: TimedMarks =
    &[(0, UdpMark::Ready.to_bytes()), (250, UdpMark::Begin.to_bytes())];

/// Marks after the data. Late data counts until the second mark; a receiver needs at least one of
/// the others.
pub const END_MARKS: TimedMarks = &[
    (0, UdpMark::End(0).to_bytes()),
    (250, UdpMark::End(1).to_bytes()),
    (350, UdpMark::End(2).to_bytes()),
    (450, UdpMark::End(3).to_bytes()),
    (550, UdpMark::End(4).to_bytes()),
];

/// Writes time and count into a datagram, if it has room for them.
pub fn stamp_datagram(datagram: &mut [u8], sent_us: u64, sent_bytes: u64) {
    if datagram.len() < STAMPED_BYTES {
        return;
    }
    let (seconds, micros) = ((sent_us / 1_000_000) as u32, (sent_us % 1_000_000) as u32);
    datagram[8..12].copy_from_slice(&seconds.to_be_bytes());
    datagram[12..16].copy_from_slice(&micros.to_be_bytes());
    datagram[24..32].copy_from_slice(&sent_bytes.to_ne_bytes());
}

/// Count of bytes sent in a datagram of `length` bytes that starts with `bytes`; `None` where it
/// has no room for the count.
pub fn announced(bytes: &[u8], length: usize, swapped: bool) -> Option<u64> {
    let field = bytes.get(24..)?.first_chunk::<8>().filter(|_| length >= STAMPED_BYTES)?;
    let total = u64::from_ne_bytes(*field);
    Some(if swapped { total.swap_bytes() } else { total })
}

/// Time of sending in a datagram, by the transmitter's wall clock in microseconds; `None` where it
/// is too short.
pub fn sent_us(bytes: &[u8]) -> Option<u64> {
    let field = |at: usize| bytes.get(at..)?.first_chunk::<4>().copied().map(u32::from_be_bytes);
    Some(u64::from(field(8)?) * 1_000_000 + u64::from(field(12)?.min(999_999)))
}

/// True if the transmitter of this first datagram has the other byte order: its count is then
/// larger than any datagram.
pub fn is_swapped(bytes: &[u8], length: usize) -> bool {
    announced(bytes, length, false).is_some_and(|total| total > u64::from(u32::MAX))
}

/// Counters of the datagrams of one transmitter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NuttcpUdpReceiver {
    /// Bytes of data received.
    pub bytes: u64,
    /// Datagrams of data received.
    pub datagrams: u64,
    /// Bytes that the transmitter announced; `None` where its datagrams have no count.
    pub announced: Option<u64>,
    /// The transmitter has the other byte order.
    swapped: bool,
}

impl NuttcpUdpReceiver {
    /// Counts a datagram of `length` bytes that starts with `bytes`; a mark is returned and not
    /// counted.
    pub fn count_datagram(&mut self, bytes: &[u8], length: usize) -> Option<UdpMark> {
        if length == 4
            && let Some(mark) = UdpMark::parse(bytes)
        {
            return Some(mark);
        }
        self.bytes += length as u64;
        self.datagrams += 1;
        if self.announced.is_none() {
            self.swapped = is_swapped(bytes, length);
        }
        self.announced = self.announced.max(announced(bytes, length, self.swapped));
        None
    }

    /// Lost datagrams of `length` bytes: announced and not received, where the count is known.
    pub fn lost_datagrams(&self, length: u32) -> Option<u64> {
        let missing = self.announced?.saturating_sub(self.bytes);
        Some(missing.checked_div(length.into()).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_have_their_four_characters() {
        for (mark, text) in [
            (UdpMark::Ready, b"BOD0"),
            (UdpMark::Begin, b"BOD1"),
            (UdpMark::End(0), b"EOD0"),
            (UdpMark::End(4), b"EOD4"),
        ] {
            assert_eq!(&mark.to_bytes(), text);
            assert_eq!(UdpMark::parse(text), Some(mark));
        }
        for other in [&b"EOD5"[..], b"BOD2", b"EOD", b"EOD00", b""] {
            assert_eq!(UdpMark::parse(other), None);
        }
    }

    fn run(swap: bool, kept: &[u64]) -> NuttcpUdpReceiver {
        let mut receiver = NuttcpUdpReceiver::default();
        for number in 1..=10_u64 {
            let mut datagram = vec![0; 1024];
            let total = number * 1024;
            stamp_datagram(&mut datagram, 0, if swap { total.swap_bytes() } else { total });
            if kept.contains(&number) {
                assert_eq!(receiver.count_datagram(&datagram, 1024), None);
            }
        }
        receiver
    }

    #[test]
    fn what_was_announced_and_did_not_come_is_lost_in_either_byte_order() {
        for swap in [false, true] {
            let receiver = run(swap, &[1, 2, 4, 5, 8, 10]);
            // Ten were announced, six came.
            assert_eq!(receiver.lost_datagrams(1024), Some(4), "{swap}");
            assert_eq!((receiver.bytes, receiver.datagrams), (6144, 6));
            assert_eq!(run(swap, &(1..=10).collect::<Vec<_>>()).lost_datagrams(1024), Some(0));
        }
    }

    #[test]
    fn the_time_stands_in_the_order_of_the_network() {
        let mut datagram = [0; 32];
        stamp_datagram(&mut datagram, 7_000_009, 32);
        assert_eq!(datagram[8..16], [0, 0, 0, 7, 0, 0, 0, 9]);
        assert_eq!((sent_us(&datagram), sent_us(&datagram[..15])), (Some(7_000_009), None));
    }

    #[test]
    fn short_datagrams_announce_nothing_and_hostile_ones_never_panic() {
        let mut receiver = NuttcpUdpReceiver::default();
        receiver.count_datagram(&[1; 16], 16);
        assert_eq!((receiver.lost_datagrams(16), receiver.bytes), (None, 16));
        receiver.count_datagram(&[0xff; 64], 64);
        receiver.count_datagram(&[0; 3], 4);
        let _ = receiver.lost_datagrams(0);
    }
}
