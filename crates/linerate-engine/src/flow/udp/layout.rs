//! How the datagrams of a stream begin, and what the ends do beside exchanging them: that of this
//! program's own protocol, or another's.

use linerate_core::time::MonoTime;
use linerate_proto::native::{ALIVE, DATAGRAM_HEADER_BYTES, NativeDatagramHeader, OpeningDatagram};

/// The header fields of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatagramHead {
    /// Counted from 0 in each stream.
    pub(crate) number: u64,
    /// When it was sent, by the clock that the layout has.
    pub(crate) stamp_ns: u64,
}

/// A datagram that was parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParsedDatagram {
    /// A datagram of data.
    Data(DatagramHead),
    /// Data, and the last of its sender.
    Last(DatagramHead),
    /// A sign that the other end is there.
    Alive,
    /// Left from the opening; it counts nowhere.
    Opening,
    /// Not of this stream.
    Stray,
}

/// When a datagram leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    /// Counted from 0 in each stream.
    pub(crate) number: u64,
    /// Time since the sender's start.
    pub(crate) since_start_ns: u64,
    /// The sender's monotonic clock.
    pub(crate) at: MonoTime,
}

/// A layout of datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramLayout {
    /// Writes the head of a datagram of the stream with this tag.
    pub(crate) write: fn(&mut [u8], Leaving, u16),
    /// Reads a datagram of the stream with this tag.
    pub(crate) read: fn(&[u8], u16) -> ParsedDatagram,
    /// Numbers are modulo 2 to this power.
    pub(crate) number_bits: u32,
    /// Stamps count from the sender's start. Those of other clocks count from the first arrival.
    pub(crate) stamps_from_start: bool,
    /// This program's own: both ends send signs of life, and heads are read in place, since that
    /// path moves tens of millions a second.
    pub(crate) own: bool,
}

impl DatagramLayout {
    /// The layout of this program (spec/udp-throughput.md).
    pub(crate) const OWN: Self = Self {
        write: write_own,
        read: read_own,
        number_bits: 64,
        stamps_from_start: true,
        own: true,
    };

    /// Writes the head of a datagram.
    #[inline]
    pub(crate) fn write(&self, datagram: &mut [u8], leaving: Leaving, tag: u16) {
        match self.own {
            true => write_own(datagram, leaving, tag),
            false => (self.write)(datagram, leaving, tag),
        }
    }

    /// Parses a received datagram of the stream with a tag.
    #[inline]
    pub(crate) fn read(&self, datagram: &[u8], tag: u16) -> ParsedDatagram {
        if self.own { read_own(datagram, tag) } else { (self.read)(datagram, tag) }
    }

    /// How many of these datagrams follow one with this head: each with the next number and the
    /// same tag and time, as those that left in one call have. 0 in other layouts.
    #[inline]
    pub(crate) fn followers<'a>(
        &self,
        datagrams: impl Iterator<Item = &'a [u8]>,
        head: DatagramHead,
        tag: u16,
    ) -> u64 {
        if !self.own {
            return 0;
        }
        let next =
            |number| NativeDatagramHeader { number, tag, stamp_ns: head.stamp_ns }.to_bytes();
        let follows = |datagram: &[u8], number: u64| {
            datagram.first_chunk::<DATAGRAM_HEADER_BYTES>() == Some(&next(number))
        };
        // The number of a sign of life is never reached.
        let numbered = datagrams.zip(head.number.saturating_add(1)..ALIVE);
        numbered.take_while(|(datagram, number)| follows(datagram, *number)).count() as u64
    }

    /// The number that a narrow one stands for: the nearest to the one that is expected.
    pub(crate) const fn unwrapped(&self, number: u64, expected: u64) -> u64 {
        if self.number_bits >= 64 {
            return number;
        }
        let period = 1 << self.number_bits;
        let ahead = number.wrapping_sub(expected) % period;
        match ahead < period / 2 || expected < period - ahead {
            true => expected.wrapping_add(ahead),
            false => expected - (period - ahead),
        }
    }
}

#[inline]
fn write_own(datagram: &mut [u8], leaving: Leaving, tag: u16) {
    let header =
        NativeDatagramHeader { number: leaving.number, tag, stamp_ns: leaving.since_start_ns };
    datagram[..DATAGRAM_HEADER_BYTES].copy_from_slice(&header.to_bytes());
}

#[inline]
fn read_own(datagram: &[u8], tag: u16) -> ParsedDatagram {
    match NativeDatagramHeader::parse(datagram).filter(|header| header.tag == tag) {
        Some(header) if header.number == ALIVE => ParsedDatagram::Alive,
        Some(header) => {
            ParsedDatagram::Data(DatagramHead { number: header.number, stamp_ns: header.stamp_ns })
        }
        // The opening's last datagrams may be there twice.
        None if OpeningDatagram::parse(datagram).is_some() => ParsedDatagram::Opening,
        None => ParsedDatagram::Stray,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_numbers_go_on_after_they_wrap() {
        let narrow = DatagramLayout { number_bits: 32, ..DatagramLayout::OWN };
        let top = (1_u64 << 32) - 1;
        assert_eq!(narrow.unwrapped(0, 0), 0);
        assert_eq!(narrow.unwrapped(5, 3), 5);
        assert_eq!(narrow.unwrapped(3, 5), 3, "late");
        assert_eq!(narrow.unwrapped(0, top + 1), top + 1, "the first after the wrap");
        assert_eq!(narrow.unwrapped(top, top + 3), top, "late, from before the wrap");
        assert_eq!(narrow.unwrapped(1, 2 * (top + 1)), 2 * (top + 1) + 1);
        assert_eq!(DatagramLayout::OWN.unwrapped(7, top * 3), 7);
    }
}
