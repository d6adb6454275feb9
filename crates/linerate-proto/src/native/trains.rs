//! Trains of probe datagrams: what a client asks for, the datagrams, and what either end saw of
//! them (spec/udp-trains.md). Left out: sockets, clocks, which trains a diagnosis wants.
//!
//! ```text
//!  0          2          4              8        10        16
//! | round (2) | train (2) | index (4)   | tag (2) | zero (6) | zeros up to the size ...
//! ```

use std::time::Duration;

use linerate_core::record::{Direction, TestError};
use linerate_core::units::print_span;
use serde::{Deserialize, Serialize};

/// Length of the header of a datagram, and the shortest datagram.
pub const TRAIN_HEADER_BYTES: usize = 16;
/// Largest payload of a datagram (65,535 less the headers of IPv4 and UDP; RFC 768, RFC 791).
const DATAGRAM_BYTES_MAX: u64 = 65_507;
/// Trains of a round, packets of a train and of a round, rounds of a session.
const TRAINS_MAX: u64 = 64;
const TRAIN_PACKETS_MAX: u64 = 20_000;
/// The same of all trains of a round.
pub const ROUND_PACKETS_MAX: u32 = 65_536;
/// Rounds of a session.
pub const ROUNDS_MAX: u16 = 32;
const SECOND_NS: u64 = 1_000_000_000;

/// Rounds of trains over one socket at either end, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainsRequest {
    /// All rounds together are planned to take no longer.
    pub planned_ns: u64,
    /// The client shows a token.
    #[serde(default, skip_serializing_if = "super::message::is_false")]
    pub login: bool,
}

impl TrainsRequest {
    /// Holds every field against the bounds of the protocol; a server's own limits come on top.
    /// # Errors
    /// The first field out of bounds.
    pub fn check(&self) -> Result<(), TestError> {
        span("time of all rounds", self.planned_ns, 120, "0 … 120 s")
    }

    /// How long the session is planned to take.
    pub const fn planned_span(&self) -> Duration {
        Duration::from_nanos(self.planned_ns)
    }
}

/// Trains of both directions, each at its time; both ends begin at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainRound {
    /// Counted from 0.
    pub round: u16,
    /// An end waits so long for what is still on the way.
    pub quiet_ns: u64,
    /// In the order in which their reports come.
    pub trains: Vec<TrainPlan>,
}

/// One train as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainPlan {
    /// Which way it goes.
    pub direction: Direction,
    /// Payload of each datagram.
    pub size_bytes: u32,
    /// Datagrams.
    pub count: u32,
    /// From one to the next; 0 is back to back.
    pub gap_ns: u64,
    /// When the first leaves, after the round begins.
    pub at_ns: u64,
}

impl TrainPlan {
    /// When the last one leaves, after the round begins.
    pub const fn end_ns(&self) -> u64 {
        self.at_ns + self.gap_ns * self.count.saturating_sub(1) as u64
    }
}

impl TrainRound {
    /// Holds every field against the bounds of the protocol.
    /// # Errors
    /// The first field out of bounds.
    pub fn check(&self) -> Result<(), TestError> {
        let within = |field, value: u64, least: u64, most: u64, bounds| {
            let outside = !(least..=most).contains(&value);
            let error = TestError { field, value: value.to_string(), bounds };
            if outside { Err(error) } else { Ok(()) }
        };
        within("round", self.round.into(), 0, (ROUNDS_MAX - 1).into(), "0 … 31")?;
        within("trains", self.trains.len() as u64, 1, TRAINS_MAX, "1 … 64")?;
        span("wait after a round", self.quiet_ns, 3, "0 … 3 s")?;
        for train in &self.trains {
            let size = train.size_bytes.into();
            within("payload", size, 16, DATAGRAM_BYTES_MAX, "16 … 65507 bytes")?;
            within("packets", train.count.into(), 1, TRAIN_PACKETS_MAX, "1 … 20000")?;
            span("gap", train.gap_ns, 1, "0 … 1 s")?;
            span("begin of a train", train.at_ns, 30, "0 … 30 s")?;
            span("end of a train", train.end_ns(), 30, "0 … 30 s")?;
        }
        let all = self.trains.iter().map(|train| u64::from(train.count)).sum();
        within("packets of a round", all, 1, ROUND_PACKETS_MAX.into(), "1 … 65536")
    }

    /// When the last packet of a direction leaves, after the round begins.
    pub fn end(&self, direction: Direction) -> Duration {
        let trains = self.trains.iter().filter(|train| train.direction == direction);
        Duration::from_nanos(trains.map(TrainPlan::end_ns).max().unwrap_or(0))
    }
}

fn span(field: &'static str, ns: u64, most_s: u64, bounds: &'static str) -> Result<(), TestError> {
    if ns <= most_s * SECOND_NS {
        return Ok(());
    }
    Err(TestError { field, value: print_span(Duration::from_nanos(ns)), bounds })
}

/// What an end saw of one train: when its packets left, where it sent it, or when they came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainReport {
    /// Of which round.
    pub round: u16,
    /// Its place among the trains of that.
    pub train: u16,
    /// The first stamp, in ns of this end's civil time.
    pub first_ns: u64,
    /// For each packet the time since the one before it that has a stamp, 0 for the first such;
    /// null for those that never came. A sender ends the list where it could send no more.
    pub after_ns: Vec<Option<i64>>,
    /// A receiver: datagrams for which its socket had no room; null where the kernel tells none.
    #[serde(default)]
    pub socket_drops: Option<u64>,
    /// A sender: the largest IP packet that a router or this host named (ICMP "too big").
    #[serde(default)]
    pub icmp_mtu_bytes: Option<u32>,
}

impl TrainReport {
    /// The report of these stamps.
    pub fn of((round, train): (u16, u16), stamps: &[Option<u64>]) -> Self {
        let first_ns = stamps.iter().flatten().next().copied().unwrap_or(0);
        let mut last = first_ns;
        let after = |stamp: &Option<u64>| {
            let stamp = (*stamp)?;
            // Packets may overtake each other.
            let after = stamp.wrapping_sub(last).cast_signed();
            last = stamp;
            Some(after)
        };
        let after_ns = stamps.iter().map(after).collect();
        Self { round, train, first_ns, after_ns, ..Self::default() }
    }

    /// Its stamps, in ns of that end's civil time.
    pub fn stamps(&self) -> Vec<Option<u64>> {
        let mut last = self.first_ns;
        let stamp = |after: &Option<i64>| {
            last = last.wrapping_add_signed((*after)?);
            Some(last)
        };
        self.after_ns.iter().map(stamp).collect()
    }
}

/// What every datagram of a train begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainHeader {
    /// Of which round.
    pub round: u16,
    /// Its train's place among those of the round.
    pub train: u16,
    /// Its own place in the train, from 0.
    pub index: u32,
    /// The session's, so that strays are known.
    pub tag: u16,
}

impl TrainHeader {
    /// The bytes of the header.
    pub fn to_bytes(self) -> [u8; TRAIN_HEADER_BYTES] {
        let mut bytes = [0; TRAIN_HEADER_BYTES];
        bytes[..2].copy_from_slice(&self.round.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.train.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.index.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.tag.to_be_bytes());
        bytes
    }

    /// Reads the header of a datagram; `None` when it is none of a train.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let header: &[u8; TRAIN_HEADER_BYTES] = datagram.first_chunk()?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let index = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let clean = header[10..].iter().all(|&byte| byte == 0);
        clean.then_some(Self { round: word(0), train: word(2), index, tag: word(8) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: TrainPlan = TrainPlan {
        direction: Direction::Up,
        size_bytes: 1472,
        count: 64,
        gap_ns: 0,
        at_ns: 20_000_000,
    };

    fn round(trains: Vec<TrainPlan>) -> TrainRound {
        TrainRound { round: 0, quiet_ns: 200_000_000, trains }
    }

    #[test]
    fn a_header_is_read_as_it_is_written_and_nothing_else_is_one() {
        let header = TrainHeader { round: 0x0102, train: 0x0304, index: 0x0506_0708, tag: 0x090a };
        let bytes = header.to_bytes();
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0, 0, 0, 0]);
        assert_eq!(TrainHeader::parse(&bytes), Some(header));
        (0..bytes.len()).for_each(|len| assert_eq!(TrainHeader::parse(&bytes[..len]), None));
        let mut other = bytes;
        other[12] = 1;
        assert_eq!(TrainHeader::parse(&other), None);
    }

    #[test]
    fn a_report_keeps_every_stamp_and_every_gap() {
        let stamps = [None, Some(1_000), Some(1_120), None, Some(1_110), Some(1_400)];
        let report = TrainReport::of((1, 2), &stamps);
        assert_eq!(report.first_ns, 1_000);
        assert_eq!(report.after_ns, [None, Some(0), Some(120), None, Some(-10), Some(290)]);
        assert_eq!(report.stamps(), stamps);
        assert_eq!(TrainReport::of((0, 0), &[None, None]).stamps(), [None, None]);
        let json = linerate_core::tree::to_json(&report).expect("it is data");
        assert!(json.contains(r#""after_ns":[null,0,120,null,-10,290]"#), "{json}");
    }

    #[test]
    fn a_round_costs_a_server_a_bounded_amount() {
        assert_eq!(round(vec![PLAN]).check(), Ok(()));
        let refused = |round: TrainRound| round.check().map_err(|error| error.field);
        assert_eq!(refused(round(vec![])), Err("trains"));
        assert_eq!(refused(round(vec![PLAN; 65])), Err("trains"));
        let with = |change: fn(&mut TrainPlan)| {
            let mut plan = PLAN;
            change(&mut plan);
            refused(round(vec![plan]))
        };
        assert_eq!(with(|plan| plan.size_bytes = 15), Err("payload"));
        assert_eq!(with(|plan| plan.size_bytes = 65_508), Err("payload"));
        assert_eq!(with(|plan| plan.count = 20_001), Err("packets"));
        assert_eq!(with(|plan| plan.count = 0), Err("packets"));
        assert_eq!(with(|plan| plan.gap_ns = 2 * SECOND_NS), Err("gap"));
        // 64 packets, one a second, end after 63 s.
        assert_eq!(with(|plan| plan.gap_ns = SECOND_NS), Err("end of a train"));
        let many = TrainPlan { count: 20_000, ..PLAN };
        assert_eq!(refused(round(vec![many; 3])), Ok(()));
        assert_eq!(refused(round(vec![many; 4])), Err("packets of a round"));
        assert_eq!(refused(TrainRound { round: 32, ..round(vec![PLAN]) }), Err("round"));
        let long = TrainRound { quiet_ns: 4 * SECOND_NS, ..round(vec![PLAN]) };
        assert_eq!(refused(long), Err("wait after a round"));
        assert!(TrainsRequest { planned_ns: 121 * SECOND_NS, login: false }.check().is_err());
    }

    #[test]
    fn a_round_ends_with_its_last_packet() {
        let later = TrainPlan { gap_ns: 1_000_000, at_ns: 100_000_000, ..PLAN };
        let round = round(vec![PLAN, later]);
        // 100 ms and 63 gaps of 1 ms.
        assert_eq!(round.end(Direction::Up), Duration::from_millis(163));
        assert_eq!(round.end(Direction::Down), Duration::ZERO);
    }
}
