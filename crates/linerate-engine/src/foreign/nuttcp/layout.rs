//! Datagrams of nuttcp in the loops of this program. A datagram has no number: it says how many
//! bytes were sent with it, and all have one length.
//!
//! The times in it are not read here: a transmitter writes them for one-way delays alone.

use linerate_core::time::MonoTime;
use linerate_proto::nuttcp::{announced, stamp_datagram};
use linerate_sys::clock::realtime_offset_ns;

use crate::flow::udp::layout::{DatagramHead, DatagramLayout, Leaving, ParsedDatagram};

/// Shortest datagram that says how much was sent.
pub(super) const NUMBERED_BYTES_MIN: u32 = 32;

/// The datagrams of a transmitter of this host's byte order.
pub(super) const NATIVE: DatagramLayout = DatagramLayout {
    write,
    read: |datagram, _| read(datagram, false),
    number_bits: 64,
    // There is none: all are alike.
    stamps_from_start: true,
    own: false,
};

/// The datagrams of a transmitter of the other byte order.
pub(super) const SWAPPED: DatagramLayout =
    DatagramLayout { read: |datagram, _| read(datagram, true), ..NATIVE };

fn write(datagram: &mut [u8], leaving: Leaving, _tag: u16) {
    let sent = (leaving.number + 1).saturating_mul(datagram.len() as u64);
    stamp_datagram(datagram, wall_us(leaving.at), sent);
}

/// The wall clock at a time of the monotonic one.
pub(super) fn wall_us(at: MonoTime) -> u64 {
    let ns = at.as_nanos().cast_signed().saturating_add(realtime_offset_ns());
    ns.cast_unsigned() / 1000
}

fn read(datagram: &[u8], swapped: bool) -> ParsedDatagram {
    let length = datagram.len() as u64;
    match announced(datagram, datagram.len(), swapped) {
        Some(total) if total >= length && total % length == 0 => {
            ParsedDatagram::Data(DatagramHead { number: total / length - 1, stamp_ns: 0 })
        }
        // A mark: begin and end are seen by those who wait for them.
        None if length == 4 => ParsedDatagram::Opening,
        _ => ParsedDatagram::Stray,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_sent_are_a_number() {
        let mut datagram = vec![b'x'; 1000];
        let leaving = Leaving { number: 9, since_start_ns: 0, at: MonoTime::from_nanos(5) };
        (NATIVE.write)(&mut datagram, leaving, 0);
        // The tenth: 10,000 bytes with it.
        assert_eq!(datagram[24..32], 10_000_u64.to_ne_bytes());
        assert_eq!(datagram[32..], vec![b'x'; 968]);
        let tenth = ParsedDatagram::Data(DatagramHead { number: 9, stamp_ns: 0 });
        assert_eq!((NATIVE.read)(&datagram, 0), tenth);
        datagram[24..32].reverse();
        assert_eq!((SWAPPED.read)(&datagram, 0), tenth);
        assert_eq!((NATIVE.read)(&datagram, 0), ParsedDatagram::Stray);
        assert_eq!((NATIVE.read)(b"EOD0", 0), ParsedDatagram::Opening);
        assert_eq!((NATIVE.read)(&[0; 1000], 0), ParsedDatagram::Stray);
        assert_eq!((NATIVE.read)(&[], 0), ParsedDatagram::Stray);
    }
}
