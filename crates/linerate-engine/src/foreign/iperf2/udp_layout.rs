//! Datagrams of iperf 2.0.10 and newer as the loops of `datagram` write and read them, and what the
//! header of a client asks of a server that sends.

use std::cell::Cell;
use std::time::Duration;

use linerate_core::record::{Failure, Fault, Finish, TcpDirections, UdpTest};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::iperf2::{ClientHeader, Iperf2Amount, Iperf2DatagramLayout as Wire, Stamp};
use linerate_sys::clock::realtime_offset_ns;

use crate::flow::udp::layout::{DatagramHead, DatagramLayout, Leaving, ParsedDatagram};

/// Datagrams where nobody says how long they are: the default of iperf 2, whose servers write
/// beyond their own buffer when a header asks for more (2.1.8).
pub(crate) const DATAGRAM_BYTES: u32 = 1470;

/// Clients ask for as much where they have no pace: 2.1.8 has no word for that.
pub(super) const UNPACED_BPS: u64 = 100_000_000_000;

/// A datagram that waited longer to be read had a wall clock that was set meanwhile.
const READ_LATE_MAX: Duration = Duration::from_secs(10);

/// The pace of a client that names none: 1 Mbit/s of 2^20 (iperf 2).
const PACE_BPS: u64 = 1 << 20;

/// Numbers from 1, times of the sender's wall clock; a negative number is the last.
pub(super) const LAYOUT: DatagramLayout =
    DatagramLayout { write, read, number_bits: 64, stamps_from_start: false, own: false };

/// The same of a stream whose first datagram was sent already.
pub(super) const LAYOUT_FROM_SECOND: DatagramLayout =
    DatagramLayout { write: write_from_second, ..LAYOUT };

fn write(datagram: &mut [u8], leaving: Leaving, _tag: u16) {
    let number = i64::try_from(leaving.number + 1).unwrap_or(i64::MAX);
    Stamp { number, sent_us: batch_us(leaving.at) }.write(datagram);
}

fn write_from_second(datagram: &mut [u8], leaving: Leaving, tag: u16) {
    write(datagram, Leaving { number: leaving.number.saturating_add(1), ..leaving }, tag);
}

fn read(datagram: &[u8], _tag: u16) -> ParsedDatagram {
    let Some(Stamp { number, sent_us }) = Stamp::parse(datagram, Wire::Wide) else {
        return ParsedDatagram::Stray;
    };
    let Some(before) = number.unsigned_abs().checked_sub(1) else { return ParsedDatagram::Stray };
    let head = DatagramHead { number: before, stamp_ns: sent_us.saturating_mul(1000) };
    if number > 0 { ParsedDatagram::Data(head) } else { ParsedDatagram::Last(head) }
}

/// The wall clock at a time of the monotonic one.
pub(super) fn wall_us(at: MonoTime) -> u64 {
    let ns = at.as_nanos().cast_signed().saturating_add(realtime_offset_ns());
    ns.cast_unsigned() / 1000
}

/// When a datagram arrived, by the monotonic clock: the kernel's time by the wall clock, which is
/// `offset_ns` ahead, where that is plausible; else `now`, when it is read. A busy host reads late.
pub(super) fn arrived_at(arrived_ns: Option<u64>, offset_ns: i64, now: MonoTime) -> MonoTime {
    let at = |ns: u64| u64::try_from(ns.cast_signed().saturating_sub(offset_ns)).ok();
    let kernel = arrived_ns.and_then(at).map(MonoTime::from_nanos);
    kernel.filter(|at| *at <= now && now.duration_since(*at) <= READ_LATE_MAX).unwrap_or(now)
}

/// The same, once for the datagrams of a batch, which leave at one time.
fn batch_us(at: MonoTime) -> u64 {
    thread_local! {
        static LAST: Cell<(MonoTime, u64)> = const { Cell::new((MonoTime::from_nanos(0), 0)) };
    }
    let (last, us) = LAST.get();
    if last == at && us > 0 {
        return us;
    }
    let us = wall_us(at);
    LAST.set((at, us));
    us
}

/// The test that a server is to send for a client's header.
pub(super) fn sending(header: &ClientHeader) -> Result<UdpTest, Failure> {
    let finish = match header.amount {
        Iperf2Amount::Bytes(bytes) => Finish::Bytes(bytes.into()),
        Iperf2Amount::Centiseconds(count) => Finish::TimeNs(u64::from(count) * 10_000_000),
    };
    let rate_bps = match (header.version, header.rate_bps) {
        // 2.0.5 has its rate in the place of the window.
        (None, _) => u64::from(header.window),
        (Some(_), rate_bps) => rate_bps,
    };
    let pace_bps = match rate_bps {
        0 => Some(PACE_BPS),
        UNPACED_BPS.. => None,
        _ => Some(rate_bps),
    };
    let size_bytes = if header.buffer_bytes == 0 { DATAGRAM_BYTES } else { header.buffer_bytes };
    let request = UdpTest {
        directions: TcpDirections::Down,
        streams: 1,
        finish,
        omit_ns: 0,
        interval_ns: 1_000_000_000,
        size_bytes,
        pace: pace_bps.map(BitRate::from_bits_per_sec),
        window_bytes: None,
        dscp: Some(header.service_type >> 2).filter(|dscp| *dscp > 0),
        joined: true,
        search: None,
        taken_singly: false,
    };
    request.check().map_err(|error| {
        Failure::new(Fault::PeerMisbehaved, "header of", "an iperf 2 client", error)
    })?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use linerate_proto::iperf2::Mode;
    use linerate_sys::clock::monotonic;

    use super::*;

    #[test]
    fn a_datagram_has_its_number_from_1_and_what_stands_behind_is_left_alone() {
        let mut datagram = vec![b'x'; 200];
        write(&mut datagram, Leaving { number: 4, since_start_ns: 0, at: monotonic() }, 0);
        assert_eq!(Stamp::parse(&datagram, Wire::Wide).map(|stamp| stamp.number), Some(5));
        assert_eq!(datagram[16..], vec![b'x'; 184]);
        assert!(matches!(read(&datagram, 0), ParsedDatagram::Data(DatagramHead { number: 4, .. })));
    }

    #[test]
    fn a_datagram_that_is_read_late_came_when_the_kernel_says() {
        let s = |seconds: u64| MonoTime::from_nanos(seconds * 1_000_000_000);
        // The wall clock is 1000 s ahead, and it is 50 s.
        let at = |wall_s: u64| arrived_at(Some(wall_s * 1_000_000_000), 1_000_000_000_000, s(50));
        assert_eq!((at(1050), at(1049), at(1040)), (s(50), s(49), s(40)));
        // One that was set since then tells nothing, as a kernel without stamps.
        assert_eq!((at(1051), at(1039), at(3)), (s(50), s(50), s(50)));
        assert_eq!(arrived_at(None, 0, s(50)), s(50));
    }

    #[test]
    fn a_negative_number_is_the_last_and_0_is_none() {
        let of = |number| {
            let mut datagram = [0; 16];
            Stamp { number, sent_us: 7 }.write(&mut datagram);
            read(&datagram, 0)
        };
        assert_eq!(of(-47), ParsedDatagram::Last(DatagramHead { number: 46, stamp_ns: 7000 }));
        assert_eq!(of(47), ParsedDatagram::Data(DatagramHead { number: 46, stamp_ns: 7000 }));
        assert_eq!(of(0), ParsedDatagram::Stray);
        assert_eq!(read(&[0; 15], 0), ParsedDatagram::Stray);
    }

    #[test]
    fn a_server_sends_what_the_header_asks_at_its_pace() {
        let header = ClientHeader::new(Mode::Reverse, Iperf2Amount::Centiseconds(50));
        let asked = sending(&header).expect("sound");
        assert_eq!(
            (asked.size_bytes, asked.pace),
            (1470, Some(BitRate::from_bits_per_sec(1_048_576)))
        );
        assert_eq!(asked.finish, Finish::TimeNs(500_000_000));
        let fast = ClientHeader { rate_bps: UNPACED_BPS, buffer_bytes: 64, ..header };
        let asked = sending(&fast).expect("sound");
        assert_eq!((asked.size_bytes, asked.pace), (64, None));
        // 2.0.5 has its rate where newer ones have the window.
        let old = ClientHeader { version: None, window: 2_000_000, ..header };
        assert_eq!(sending(&old).expect("sound").pace, Some(BitRate::from_bits_per_sec(2_000_000)));
        assert!(sending(&ClientHeader { buffer_bytes: 70_000, ..header }).is_err());
    }
}
