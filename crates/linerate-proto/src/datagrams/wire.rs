//! The three formats: the client's request for a round (ask), the datagrams in both directions,
//! and the client's report.
//!
//! | datagram | bytes | | ask | bytes | | report | bytes |
//! |---|---|---|---|---|---|---|---|
//! | round | 0 | | round | 0 | | sent | 0–3 |
//! | zero | 1–3 | | zero | 1 | | arrivals | 4–7 |
//! | number | 4–7 | | size | 2–3 | | each: number | 0–3 |
//! | sent, µs | 8–15 | | count | 4–7 | | each: came, µs | 4–11 |
//! | zeros | 16– | | interval, µs | 8–11 | | | |

use thiserror::Error;

/// Bytes of the shortest datagram.
pub const DATAGRAM_BYTES_MIN: usize = 16;
/// Bytes of the longest datagram: with its headers it fits the smallest path of QUIC, 1200 bytes
/// (RFC 9000 §14).
const DATAGRAM_BYTES_MAX: u16 = 1000;
/// Most datagrams of a round in each direction.
const COUNT_MAX: u32 = 3000;
/// Time between two datagrams, in microseconds: 5 ms to 1 s.
const INTERVAL_US: std::ops::RangeInclusive<u32> = 5_000..=1_000_000;
/// Limit of times, in microseconds: integers up to it are exact in a browser's number (ECMA-262
/// §6.1.6.1).
const TIME_US_MAX: u64 = 1 << 53;
/// Bytes of a report before its arrivals, and of each arrival.
const REPORT_HEAD_BYTES: usize = 8;
const ARRIVAL_BYTES: usize = 12;
/// Most arrivals in a report: every datagram of the longest round, each duplicated once.
const ARRIVALS_MAX: u32 = 2 * COUNT_MAX;
/// Bytes of the longest report.
pub const REPORT_BYTES_MAX: usize = REPORT_HEAD_BYTES + ARRIVALS_MAX as usize * ARRIVAL_BYTES;

/// A datagram of a round, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Number of the round in the session.
    pub round: u8,
    /// Sequence number in the round, from 0, in the order of sending.
    pub number: u32,
    /// Time of sending, in microseconds of the sender's clock, whose zero is arbitrary.
    pub sent_us: u64,
}

impl Datagram {
    /// The datagram padded to `bytes` octets, or to [`DATAGRAM_BYTES_MIN`] if that is more.
    pub fn padded_bytes(&self, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes.max(DATAGRAM_BYTES_MIN)];
        out[0] = self.round;
        out[4..8].copy_from_slice(&self.number.to_be_bytes());
        out[8..16].copy_from_slice(&self.sent_us.to_be_bytes());
        out
    }

    /// Parses a received datagram; `None` if it is too short or its time out of range.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (number, sent_us) = (u32_at(bytes, 4)?, u64_at(bytes, 8)?);
        (sent_us < TIME_US_MAX).then(|| Self { round: bytes[0], number, sent_us })
    }
}

/// A client's request for a round, with the same datagrams in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramRoundRequest {
    /// Number of the round, as its datagrams carry it.
    pub round: u8,
    /// Payload of each datagram, in bytes.
    pub bytes: u16,
    /// Datagrams in each direction.
    pub count: u32,
    /// Time between two datagrams, in microseconds.
    pub interval_us: u32,
}

/// Reason for which an ask is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AskError {
    /// Size of the datagrams out of range.
    #[error("{0} bytes a datagram; it has {DATAGRAM_BYTES_MIN} to {DATAGRAM_BYTES_MAX}")]
    Size(u16),
    /// Number of datagrams out of range.
    #[error("{0} datagrams; a round has 1 to {COUNT_MAX}")]
    Count(u32),
    /// Interval between datagrams out of range.
    #[error("{0} µs between two datagrams; 5,000 to 1,000,000 may be")]
    Interval(u32),
}

impl DatagramRoundRequest {
    /// Length on the wire, in bytes.
    pub const BYTES: usize = 12;

    /// The bytes of the ask.
    pub fn wire_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[0] = self.round;
        out[2..4].copy_from_slice(&self.bytes.to_be_bytes());
        out[4..8].copy_from_slice(&self.count.to_be_bytes());
        out[8..12].copy_from_slice(&self.interval_us.to_be_bytes());
        out
    }

    /// Parses an ask.
    /// # Errors
    /// When a value is outside the limits of a round.
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

/// Arrival of a datagram at the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramArrival {
    /// Sequence number of the datagram.
    pub number: u32,
    /// Time of arrival, in microseconds of the client's clock.
    pub came_us: u64,
}

/// The client's report at the end of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Datagrams that the client sent.
    pub sent: u32,
    /// Datagrams that the client received, in the order of arrival, with duplicates.
    pub seen: Vec<DatagramArrival>,
}

/// Reason for which a report is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReportError {
    /// The client claims to have sent more datagrams than the round has.
    #[error("{sent} datagrams sent of {asked} that were asked for")]
    Sent {
        /// Datagrams sent according to the report.
        sent: u32,
        /// Datagrams of the round in each direction.
        asked: u32,
    },
    /// The length does not match the number of arrivals.
    #[error("{0} bytes are no report: 8, and 12 for each arrival")]
    Length(usize),
    /// A time of arrival above 2^53 µs.
    #[error("a time of arrival of {0} µs")]
    Time(u64),
}

impl Report {
    /// The bytes of the report.
    pub fn wire_bytes(&self) -> Vec<u8> {
        let arrivals = u32::try_from(self.seen.len()).unwrap_or(u32::MAX);
        let mut out = [self.sent.to_be_bytes(), arrivals.to_be_bytes()].concat();
        for seen in &self.seen {
            out.extend(seen.number.to_be_bytes());
            out.extend(seen.came_us.to_be_bytes());
        }
        out
    }

    /// Parses the whole report of a round of `asked` datagrams in each direction.
    /// # Errors
    /// When its length is wrong or its values do not fit that round.
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
                .then_some(DatagramArrival { number, came_us })
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
        assert_eq!(datagram.padded_bytes(18), octets);
        assert_eq!(Datagram::parse(&octets), Some(datagram));
        for length in 0..16 {
            assert_eq!(Datagram::parse(&octets[..length]), None, "{length}");
        }
        assert_eq!(Datagram::parse(&[0xff; 16]), None);
    }

    #[test]
    fn an_ask_stays_within_the_limits() {
        let ask = DatagramRoundRequest { round: 1, bytes: 100, count: 500, interval_us: 10_000 };
        let octets = [1, 0, 0, 100, 0, 0, 1, 0xf4, 0, 0, 0x27, 0x10];
        assert_eq!(ask.wire_bytes(), octets);
        assert_eq!(DatagramRoundRequest::parse(&octets), Ok(ask));
        let wrong = |change: fn(&mut DatagramRoundRequest)| {
            let mut ask = ask;
            change(&mut ask);
            DatagramRoundRequest::parse(&ask.wire_bytes()).expect_err("beyond a limit")
        };
        assert_eq!(wrong(|ask| ask.bytes = 15), AskError::Size(15));
        assert_eq!(wrong(|ask| ask.bytes = 1001), AskError::Size(1001));
        assert_eq!(wrong(|ask| ask.count = 0), AskError::Count(0));
        assert_eq!(wrong(|ask| ask.count = 3001), AskError::Count(3001));
        assert_eq!(wrong(|ask| ask.interval_us = 4_999), AskError::Interval(4_999));
        assert_eq!(wrong(|ask| ask.interval_us = 1_000_001), AskError::Interval(1_000_001));
    }

    #[test]
    fn a_report_has_the_length_of_its_arrivals() {
        let seen = [(0, 5), (2, 7), (2, 0x1_0000_0000)];
        let seen = seen.map(|(number, came_us)| DatagramArrival { number, came_us }).to_vec();
        let report = Report { sent: 3, seen };
        let octets = report.wire_bytes();
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
        let seen = vec![DatagramArrival { number: 1, came_us: 9 }; 4];
        let octets = Report { sent: 4, seen }.wire_bytes();
        for bit in 0..octets.len() * 8 {
            let mut flipped = octets.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let read = Report::parse(&flipped, 4);
            assert_ne!(read, Report::parse(&octets, 4), "bit {bit}");
        }
    }
}
