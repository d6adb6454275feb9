//! Judges by a source's first datagrams whether it runs a test of iperf 2 or ttcp over UDP.
//!
//! Neither has a handshake, so anything that comes to the port might be a test, and its source is
//! easily forged. A test is what goes on as one: three datagrams of one source, in iperf 2 with
//! numbers that grow and times that do, in ttcp a mark and then buffers of one length.

use super::datagram::client_header;
use super::{Layout, Mode, Stamp, word};
use crate::ttcp;

/// Datagrams that make a test.
const IN_ORDER: u32 = 3;
/// Shortest datagram of iperf 2.
const IPERF_BYTES_MIN: usize = 12;
/// Highest first number: a server that was started again hears tests in their middle, and four
/// random bytes are below it once in 4096 times.
const FIRST_MAX: u64 = 1 << 20;
/// Numbers that one datagram may be ahead of another, the rest being lost.
const AHEAD_MAX: u64 = 1 << 16;
/// Shortest buffer of ttcp, whose default is 8192.
const BUFFER_BYTES_MIN: usize = 16;

/// Who may be a client, by what came from it.
#[derive(Clone, Copy, Debug)]
pub struct UdpOpening {
    kind: Kind,
    /// Datagrams that went on as those of a test do.
    in_order: u32,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Iperf {
        layout: Layout,
        highest: u64,
        sent_us: u64,
    },
    /// With the length of its buffers, once one came.
    Ttcp(Option<usize>),
}

impl UdpOpening {
    /// Of a source, by its first datagram; none where no test begins so.
    pub fn of(datagram: &[u8]) -> Option<Self> {
        let is_mark = datagram.len() == ttcp::MARK_BYTES;
        // The mark may be lost.
        let is_pattern = datagram.starts_with(&ttcp::pattern(ttcp::MARK_BYTES));
        let kind = if is_mark {
            Kind::Ttcp(None)
        } else if is_pattern {
            Kind::Ttcp(Some(datagram.len()).filter(|length| *length >= BUFFER_BYTES_MIN))
        } else {
            let layout = Layout::of(datagram);
            let stamp = stamp(datagram, layout)?;
            let (highest, sent_us) = (stamp.number.unsigned_abs(), stamp.sent_us);
            // A header says more than a time does; clocks are no longer in the year 1970.
            let dated = sent_us >= 1_000_000 || client_header(datagram, layout).is_some();
            (dated && highest <= FIRST_MAX).then_some(Kind::Iperf { layout, highest, sent_us })?
        };
        Some(Self { kind, in_order: 1 })
    }

    /// Takes the next datagram; whether the source runs a test.
    pub fn take(&mut self, datagram: &[u8]) -> bool {
        let length = datagram.len();
        let goes_on = match &mut self.kind {
            Kind::Ttcp(Some(usual)) => length == *usual,
            Kind::Ttcp(usual) => {
                *usual = Some(length).filter(|length| *length >= BUFFER_BYTES_MIN);
                usual.is_some()
            }
            Kind::Iperf { layout, highest, sent_us } => {
                stamp(datagram, *layout).is_some_and(|it| {
                    let number = it.number.unsigned_abs();
                    // An end is said again until it is answered.
                    let next = number > *highest || (it.number < 0 && number == *highest);
                    let goes_on = next && number - *highest <= AHEAD_MAX && it.sent_us >= *sent_us;
                    if goes_on {
                        (*highest, *sent_us) = (number, it.sent_us);
                    }
                    goes_on
                })
            }
        };
        self.in_order += u32::from(goes_on);
        self.in_order >= IN_ORDER
    }

    /// Whether one datagram is a whole request: the server alone sends then, and nothing follows.
    pub fn asks_to_receive(datagram: &[u8]) -> bool {
        let header = client_header(datagram, Layout::of(datagram));
        header.is_some_and(|header| header.mode == Mode::Reverse)
    }
}

/// Number and time of a datagram that may be one of iperf 2.
fn stamp(datagram: &[u8], layout: Layout) -> Option<Stamp> {
    let in_second = word(datagram, 8)? < 1_000_000;
    let long = datagram.len() >= IPERF_BYTES_MIN;
    Stamp::parse(datagram, layout).filter(|_| in_second && long)
}

#[cfg(test)]
mod tests {
    use super::super::{Amount, ClientHeader, UdpSender};
    use super::*;

    /// Datagrams until a source runs a test; none where these do not.
    fn taken(datagrams: &[Vec<u8>]) -> Option<usize> {
        let mut opening = None;
        for (count, datagram) in (1..).zip(datagrams) {
            let Some(opening) = &mut opening else {
                opening = UdpOpening::of(datagram);
                continue;
            };
            if opening.take(datagram) {
                return Some(count);
            }
        }
        None
    }

    /// 2.0.5: number, seconds, microseconds.
    fn old(number: i32, (seconds, micros): (u32, u32)) -> Vec<u8> {
        let words = [number.cast_unsigned(), seconds, micros];
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn three_datagrams_that_go_on_are_a_test_of_any_version() {
        let time = |ms: u32| (1_700_000_000, ms * 1000);
        let olds: Vec<_> = (0..3).map(|number| old(number, time(number.cast_unsigned()))).collect();
        assert_eq!(taken(&olds), Some(3));
        // One of data, and its end again and again; losses; a test that began before the server.
        for numbers in [[0, -1, -1], [1, -2, -2], [1, 40, 41], [900_000, 900_001, 900_003]] {
            let datagrams = numbers.map(|number| old(number, time(1)));
            assert_eq!(taken(&datagrams), Some(3), "{numbers:?}");
        }
        let reordered = [2, 1, 4, 3, 5].map(|number| old(number, time(1)));
        assert_eq!(taken(&reordered), Some(5));
        for mode in [Mode::Forward, Mode::FullDuplex, Mode::Dual] {
            let mut sender = UdpSender::new(ClientHeader::new(mode, Amount::Bytes(1)));
            let datagrams = [1, 2, 3].map(|us| {
                let mut datagram = sender.buffer(1470);
                sender.stamp(&mut datagram, 1_700_000_000_000_000 + us);
                datagram
            });
            assert_eq!(taken(&datagrams), Some(3), "{mode:?}");
        }
        let buffer = ttcp::pattern(1024);
        assert_eq!(taken(&[buffer[..4].to_vec(), buffer.clone(), buffer.clone()]), Some(3));
        assert_eq!(taken(&[buffer.clone(), buffer.clone(), buffer]), Some(3), "a lost mark");
    }

    #[test]
    fn garbage_is_no_test_however_often_it_comes() {
        let zeros = (1..64).map(|length| vec![0; length]);
        let letters = (1..64).map(|length| vec![b'A'; length]);
        for datagram in zeros.chain(letters).chain([old(1, (1_700_000_000, 1))]) {
            assert_eq!(taken(&vec![datagram.clone(); 1000]), None, "{datagram:?}");
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
            assert_eq!(taken(&(0..100).map(noise).collect::<Vec<Vec<u8>>>()), None);
        }
        // Numbers that go on while the time does not, and far apart.
        assert_eq!(taken(&[3, 2, 1].map(|second| old(4 - second as i32, (second, 0)))), None);
        assert_eq!(taken(&[1, 200_000, 900_000].map(|number| old(number, (9, 0)))), None);
    }
}
