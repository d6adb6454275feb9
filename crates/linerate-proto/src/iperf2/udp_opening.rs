//! Detects a test of iperf 2 or ttcp over UDP by the first datagrams of a source.
//!
//! Neither has a handshake, so any datagram to the port might start a test, and its source is
//! easily forged. Three consistent datagrams of one source count as a test: in iperf 2 with
//! increasing numbers and times, in ttcp a mark and then buffers of one length.

use super::datagram::client_header;
use super::{Iperf2DatagramLayout, Mode, Stamp, read_be_u32};
use crate::ttcp;

/// Number of consistent datagrams that count as a test.
const IN_ORDER: u32 = 3;
/// Bytes of the shortest datagram of iperf 2.
const IPERF_BYTES_MIN: usize = 12;
/// Highest first number: a restarted server receives the middle of a running test, and four random
/// bytes are below it in one case of 4096.
const FIRST_MAX: u64 = 1 << 20;
/// Largest gap between the numbers of two datagrams, the others being lost.
const AHEAD_MAX: u64 = 1 << 16;
/// Bytes of ttcp's shortest buffer (its default is 8192).
const BUFFER_BYTES_MIN: usize = 16;

/// A source that may be a client, with its datagrams so far.
#[derive(Clone, Copy, Debug)]
pub struct UdpOpening {
    kind: Kind,
    /// Count of consistent datagrams.
    in_order: u32,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Iperf {
        layout: Iperf2DatagramLayout,
        highest: u64,
        sent_us: u64,
    },
    /// ttcp, with the length of its buffers once one has arrived.
    Ttcp(Option<usize>),
}

impl UdpOpening {
    /// A source by its first datagram; `None` where no test starts with such a datagram.
    pub fn from_first_datagram(datagram: &[u8]) -> Option<Self> {
        let is_mark = datagram.len() == ttcp::MARK_BYTES;
        // A mark can be lost, so data may come first.
        let is_pattern = datagram.starts_with(&ttcp::pattern(ttcp::MARK_BYTES));
        let kind = if is_mark {
            Kind::Ttcp(None)
        } else if is_pattern {
            Kind::Ttcp(Some(datagram.len()).filter(|length| *length >= BUFFER_BYTES_MIN))
        } else {
            let layout = Iperf2DatagramLayout::from_first_datagram(datagram);
            let stamp = plausible_stamp(datagram, layout)?;
            let (highest, sent_us) = (stamp.number.unsigned_abs(), stamp.sent_us);
            // A valid header is better evidence than a time; a time in the year 1970 is no clock's.
            let dated = sent_us >= 1_000_000 || client_header(datagram, layout).is_some();
            (dated && highest <= FIRST_MAX).then_some(Kind::Iperf { layout, highest, sent_us })?
        };
        Some(Self { kind, in_order: 1 })
    }

    /// Adds the next datagram; true once the source counts as a test.
    pub fn add_datagram(&mut self, datagram: &[u8]) -> bool {
        let length = datagram.len();
        let goes_on = match &mut self.kind {
            Kind::Ttcp(Some(usual)) => length == *usual,
            Kind::Ttcp(usual) => {
                *usual = Some(length).filter(|length| *length >= BUFFER_BYTES_MIN);
                usual.is_some()
            }
            Kind::Iperf { layout, highest, sent_us } => {
                plausible_stamp(datagram, *layout).is_some_and(|stamp| {
                    let number = stamp.number.unsigned_abs();
                    // An end is repeated until it is answered.
                    let next = number > *highest || (stamp.number < 0 && number == *highest);
                    let goes_on =
                        next && number - *highest <= AHEAD_MAX && stamp.sent_us >= *sent_us;
                    if goes_on {
                        (*highest, *sent_us) = (number, stamp.sent_us);
                    }
                    goes_on
                })
            }
        };
        self.in_order += u32::from(goes_on);
        self.in_order >= IN_ORDER
    }

    /// True for a datagram that requests a reverse test (`-R`), after which the client sends no
    /// more.
    pub fn asks_to_receive(datagram: &[u8]) -> bool {
        let header = client_header(datagram, Iperf2DatagramLayout::from_first_datagram(datagram));
        header.is_some_and(|header| header.mode == Mode::Reverse)
    }
}

/// Number and time of a datagram, where they are plausible for iperf 2.
fn plausible_stamp(datagram: &[u8], layout: Iperf2DatagramLayout) -> Option<Stamp> {
    let in_second = read_be_u32(datagram, 8)? < 1_000_000;
    let long = datagram.len() >= IPERF_BYTES_MIN;
    Stamp::parse(datagram, layout).filter(|_| in_second && long)
}

#[cfg(test)]
mod tests {
    use super::super::{ClientHeader, Iperf2Amount, UdpSender};
    use super::*;

    /// Datagrams until a source runs a test; none where these do not.
    fn datagrams_until_test(datagrams: &[Vec<u8>]) -> Option<usize> {
        let mut opening = None;
        for (count, datagram) in (1..).zip(datagrams) {
            let Some(opening) = &mut opening else {
                opening = UdpOpening::from_first_datagram(datagram);
                continue;
            };
            if opening.add_datagram(datagram) {
                return Some(count);
            }
        }
        None
    }

    /// The head of a datagram of iperf 2.0.5: number, seconds, microseconds.
    fn old_head(number: i32, seconds: u32, micros: u32) -> Vec<u8> {
        let words = [number.cast_unsigned(), seconds, micros];
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn three_datagrams_that_go_on_are_a_test_of_any_version() {
        let at_ms = |number: i32, ms: u32| old_head(number, 1_700_000_000, ms * 1000);
        let olds: Vec<_> = (0..3).map(|number| at_ms(number, number.cast_unsigned())).collect();
        assert_eq!(datagrams_until_test(&olds), Some(3));
        // One of data, and its end again and again; losses; a test that began before the server.
        for numbers in [[0, -1, -1], [1, -2, -2], [1, 40, 41], [900_000, 900_001, 900_003]] {
            let datagrams = numbers.map(|number| at_ms(number, 1));
            assert_eq!(datagrams_until_test(&datagrams), Some(3), "{numbers:?}");
        }
        let reordered = [2, 1, 4, 3, 5].map(|number| at_ms(number, 1));
        assert_eq!(datagrams_until_test(&reordered), Some(5));
        for mode in [Mode::Forward, Mode::FullDuplex, Mode::Dual] {
            let mut sender = UdpSender::new(ClientHeader::new(mode, Iperf2Amount::Bytes(1)));
            let datagrams = [1, 2, 3].map(|us| {
                let mut datagram = sender.buffer(1470);
                sender.stamp_datagram(&mut datagram, 1_700_000_000_000_000 + us);
                datagram
            });
            assert_eq!(datagrams_until_test(&datagrams), Some(3), "{mode:?}");
        }
        let buffer = ttcp::pattern(1024);
        assert_eq!(
            datagrams_until_test(&[buffer[..4].to_vec(), buffer.clone(), buffer.clone()]),
            Some(3)
        );
        assert_eq!(
            datagrams_until_test(&[buffer.clone(), buffer.clone(), buffer]),
            Some(3),
            "a lost mark"
        );
    }

    #[test]
    fn garbage_is_no_test_however_often_it_comes() {
        let zeros = (1..64).map(|length| vec![0; length]);
        let letters = (1..64).map(|length| vec![b'A'; length]);
        for datagram in zeros.chain(letters).chain([old_head(1, 1_700_000_000, 1)]) {
            assert_eq!(datagrams_until_test(&vec![datagram.clone(); 1000]), None, "{datagram:?}");
        }
        // SplitMix64 (Steele et al. 2014) from one seed.
        let mut state = 7_u64;
        let mut random = move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        for _ in 0..1000 {
            let length = random() as usize % 64;
            let noise = |_| (0..length).map(|_| random() as u8).collect();
            assert_eq!(datagrams_until_test(&(0..100).map(noise).collect::<Vec<Vec<u8>>>()), None);
        }
        // Numbers that go on while the time does not, and far apart.
        assert_eq!(
            datagrams_until_test(&[3, 2, 1].map(|second| old_head(4 - second as i32, second, 0))),
            None
        );
        assert_eq!(
            datagrams_until_test(&[1, 200_000, 900_000].map(|number| old_head(number, 9, 0))),
            None
        );
    }
}
