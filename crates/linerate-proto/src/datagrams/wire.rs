//! The three formats: a round is asked for, its datagrams go both ways, the client reports.
//!
//! | datagram | bytes | | ask | bytes | | report | bytes |
//! |---|---|---|---|---|---|---|---|
//! | round | 0 | | round | 0 | | sent | 0–3 |
//! | zero | 1–3 | | zero | 1 | | arrivals | 4–7 |
//! | number | 4–7 | | size | 2–3 | | each: number | 0–3 |
//! | sent, µs | 8–15 | | count | 4–7 | | each: came, µs | 4–11 |
//! | zeros | 16– | | interval, µs | 8–11 | | | |

use thiserror::Error;

/// What a datagram has at the least.
pub const DATAGRAM_BYTES_MIN: usize = 16;
/// The longest datagram: it fits the smallest path of QUIC, 1200 bytes (RFC 9000 §14), with what is
/// around it.
const DATAGRAM_BYTES_MAX: u16 = 1000;
/// Datagrams of one round each way.
const COUNT_MAX: u32 = 3000;
/// Time between two, in microseconds: 5 ms to 1 s.
const INTERVAL_US: std::ops::RangeInclusive<u32> = 5_000..=1_000_000;
/// Times are below this: what a browser's number holds exactly (ECMA-262 §6.1.6.1).
const TIME_US_MAX: u64 = 1 << 53;
/// Bytes of a report before its arrivals, and of each of these.
const REPORT_HEAD_BYTES: usize = 8;
const ARRIVAL_BYTES: usize = 12;
/// Arrivals of a report: every datagram of the longest round, each twice.
const ARRIVALS_MAX: u32 = 2 * COUNT_MAX;
/// The longest report.
pub const REPORT_BYTES_MAX: usize = REPORT_HEAD_BYTES + ARRIVALS_MAX as usize * ARRIVAL_BYTES;

/// One datagram, either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Which round of the session it is of.
    pub round: u8,
    /// Its number in the round, from 0, in the order of sending.
    pub number: u32,
    /// When it left, in microseconds by the sender's clock, from any zero.
    pub sent_us: u64,
}

impl Datagram {
    /// The datagram in `bytes` octets, or in the fewest there are.
    pub fn emit(&self, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes.max(DATAGRAM_BYTES_MIN)];
        out[0] = self.round;
        out[4..8].copy_from_slice(&self.number.to_be_bytes());
        out[8..16].copy_from_slice(&self.sent_us.to_be_bytes());
        out
    }

    /// Reads what came; `None` where it is none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (number, sent_us) = (u32_at(bytes, 4)?, u64_at(bytes, 8)?);
        (sent_us < TIME_US_MAX).then(|| Self { round: bytes[0], number, sent_us })
    }
}

/// A round that a client asks for, the same each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its name in the session's datagrams.
    pub round: u8,
    /// Payload of each datagram.
    pub bytes: u16,
    /// Datagrams each way.
    pub count: u32,
    /// Time between two, in microseconds.
    pub interval_us: u32,
}

/// What is wrong with an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AskError {
    /// Another size of datagrams than there may be.
    #[error("{0} bytes a datagram; it has {DATAGRAM_BYTES_MIN} to {DATAGRAM_BYTES_MAX}")]
    Size(u16),
    /// Another number of them.
    #[error("{0} datagrams; a round has 1 to {COUNT_MAX}")]
    Count(u32),
    /// Too near to each other, or too far.
    #[error("{0} µs between two datagrams; 5,000 to 1,000,000 may be")]
    Interval(u32),
}

impl Ask {
    /// Length on the wire.
    pub const BYTES: usize = 12;

    /// The ask as it is sent.
    pub fn emit(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[0] = self.round;
        out[2..4].copy_from_slice(&self.bytes.to_be_bytes());
        out[4..8].copy_from_slice(&self.count.to_be_bytes());
        out[8..12].copy_from_slice(&self.interval_us.to_be_bytes());
        out
    }

    /// Reads an ask.
    /// # Errors
    /// When it asks for more than a round may have.
    pub fn parse(octets: &[u8; Self::BYTES]) -> Result<Self, AskError> {
        let [round, _, b0, b1, c0, c1, c2, c3, i0, i1, i2, i3] = *octets;
        let (bytes, count) = (u16::from_be_bytes([b0, b1]), u32::from_be_bytes([c0, c1, c2, c3]));
        let interval_us = u32::from_be_bytes([i0, i1, i2, i3]);
        if usize::from(bytes) < DATAGRAM_BYTES_MIN || bytes > DATAGRAM_BYTES_MAX {
            return Err(AskError::Size(bytes));
        }
        if !(1..=COUNT_MAX).contains(&count) {
            return Err(AskError::Count(count));
        }
        if !INTERVAL_US.contains(&interval_us) {
            return Err(AskError::Interval(interval_us));
        }
        Ok(Self { round, bytes, count, interval_us })
    }
}

/// A datagram as the client saw it come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its number.
    pub number: u32,
    /// When it came, in microseconds by the client's clock.
    pub came_us: u64,
}

/// What the client says at the end of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Datagrams that it sent.
    pub sent: u32,
    /// Those that came to it, in the order of arrival, one that came twice twice.
    pub seen: Vec<Seen>,
}

/// What is wrong with a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReportError {
    /// It says to have sent more than was asked for.
    #[error("{sent} datagrams sent of {asked} that were asked for")]
    Sent {
        /// What it says.
        sent: u32,
        /// What the round has.
        asked: u32,
    },
    /// Its length is not that of its arrivals.
    #[error("{0} bytes are no report: 8, and 12 for each arrival")]
    Length(usize),
    /// A time beyond what a browser counts.
    #[error("a time of arrival of {0} µs")]
    Time(u64),
}

impl Report {
    /// The report as it is sent.
    pub fn emit(&self) -> Vec<u8> {
        let arrivals = u32::try_from(self.seen.len()).unwrap_or(u32::MAX);
        let mut out = [self.sent.to_be_bytes(), arrivals.to_be_bytes()].concat();
        for seen in &self.seen {
            out.extend(seen.number.to_be_bytes());
            out.extend(seen.came_us.to_be_bytes());
        }
        out
    }

    /// Reads the whole report of a round of `asked` datagrams.
    /// # Errors
    /// When it is not one, or of another round.
    pub fn parse(bytes: &[u8], asked: u32) -> Result<Self, ReportError> {
        let length = || ReportError::Length(bytes.len());
        let (sent, arrivals) = u32_at(bytes, 0).zip(u32_at(bytes, 4)).ok_or_else(length)?;
        let rows = &bytes[REPORT_HEAD_BYTES..];
        let (rows, rest) = rows.as_chunks::<ARRIVAL_BYTES>();
        if !rest.is_empty() || rows.len() as u64 != u64::from(arrivals) || arrivals > ARRIVALS_MAX {
            return Err(length());
        }
        if sent > asked {
            return Err(ReportError::Sent { sent, asked });
        }
        let seen = rows.iter().map(|row| {
            let [n0, n1, n2, n3, time @ ..] = *row;
            let (number, came_us) =
                (u32::from_be_bytes([n0, n1, n2, n3]), u64::from_be_bytes(time));
            (came_us < TIME_US_MAX)
                .then_some(Seen { number, came_us })
                .ok_or(ReportError::Time(came_us))
        });
        Ok(Self { sent, seen: seen.collect::<Result<_, _>>()? })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand from `spec/datagrams.md`.
    #[test]
    fn a_datagram_is_what_the_page_says() {
        let datagram = Datagram { round: 2, number: 0x0102, sent_us: 0x0304_0506 };
        let octets = [2, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 5, 6, 0, 0];
        assert_eq!(datagram.emit(18), octets);
        assert_eq!(Datagram::parse(&octets), Some(datagram));
        for length in 0..16 {
            assert_eq!(Datagram::parse(&octets[..length]), None, "{length}");
        }
        assert_eq!(Datagram::parse(&[0xff; 16]), None);
    }

    #[test]
    fn an_ask_stays_within_the_limits() {
        let ask = Ask { round: 1, bytes: 100, count: 500, interval_us: 10_000 };
        let octets = [1, 0, 0, 100, 0, 0, 1, 0xf4, 0, 0, 0x27, 0x10];
        assert_eq!(ask.emit(), octets);
        assert_eq!(Ask::parse(&octets), Ok(ask));
        let wrong = |change: fn(&mut Ask)| {
            let mut ask = ask;
            change(&mut ask);
            Ask::parse(&ask.emit()).expect_err("beyond a limit")
        };
        assert_eq!(wrong(|it| it.bytes = 15), AskError::Size(15));
        assert_eq!(wrong(|it| it.bytes = 1001), AskError::Size(1001));
        assert_eq!(wrong(|it| it.count = 0), AskError::Count(0));
        assert_eq!(wrong(|it| it.count = 3001), AskError::Count(3001));
        assert_eq!(wrong(|it| it.interval_us = 4_999), AskError::Interval(4_999));
        assert_eq!(wrong(|it| it.interval_us = 1_000_001), AskError::Interval(1_000_001));
    }

    #[test]
    fn a_report_has_the_length_of_its_arrivals() {
        let seen = [(0, 5), (2, 7), (2, 0x1_0000_0000)];
        let seen = seen.map(|(number, came_us)| Seen { number, came_us }).to_vec();
        let report = Report { sent: 3, seen };
        let octets = report.emit();
        assert_eq!(octets[..12], [0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0]);
        assert_eq!(octets[32..], [0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(Report::parse(&octets, 3), Ok(report));
        assert_eq!(Report::parse(&octets, 2), Err(ReportError::Sent { sent: 3, asked: 2 }));
        for length in 0..octets.len() {
            let cut = Report::parse(&octets[..length], 3);
            assert_eq!(cut, Err(ReportError::Length(length)));
        }
        let long = [&octets[..], &[0; 12]].concat();
        assert_eq!(Report::parse(&long, 3), Err(ReportError::Length(56)));
    }

    /// Whatever comes is a value or an error.
    #[test]
    fn flipped_bits_never_panic() {
        let seen = vec![Seen { number: 1, came_us: 9 }; 4];
        let octets = Report { sent: 4, seen }.emit();
        for bit in 0..octets.len() * 8 {
            let mut flipped = octets.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let read = Report::parse(&flipped, 4);
            assert_ne!(read, Report::parse(&octets, 4), "bit {bit}");
        }
    }
}
