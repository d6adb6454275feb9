//! Trains of probe datagrams: the client's requests, the datagrams, and the timestamps of either
//! end (spec/udp-trains.md). Left out: sockets, clocks, the choice of trains for a diagnosis.
//!
//! ```text
//!  0          2          4              8        10        16
//! | round (2) | train (2) | index (4)   | tag (2) | zero (6) | zeros up to the size ...
//! ```

use std::time::Duration;

use linerate_core::record::{Direction, TestError};
use linerate_core::units::print_span;
use serde::{Deserialize, Serialize};

/// Bytes of the header, and of the shortest datagram.
pub const TRAIN_HEADER_BYTES: usize = 16;
/// Largest payload of a datagram (65,535 less the headers of IPv4 and UDP; RFC 768, RFC 791).
const DATAGRAM_BYTES_MAX: u64 = 65_507;
/// Most trains of a round.
const TRAINS_MAX: u64 = 64;
/// Most packets of a train.
const TRAIN_PACKETS_MAX: u64 = 20_000;
/// Most packets of all trains of a round.
pub const ROUND_PACKETS_MAX: u32 = 65_536;
/// Most rounds of a session.
pub const ROUNDS_MAX: u16 = 32;
const SECOND_NS: u64 = 1_000_000_000;

/// Request for a session: consecutive rounds of trains over one socket at either end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainsRequest {
    /// Longest planned time of all rounds, in nanoseconds.
    pub planned_ns: u64,
    /// True if the client will log in with a token.
    #[serde(default, skip_serializing_if = "super::message::is_false")]
    pub login: bool,
}

impl TrainsRequest {
    /// Checks every field against the bounds of the protocol; a server may have lower limits.
    /// # Errors
    /// The first field out of bounds.
    pub fn check_bounds(&self) -> Result<(), TestError> {
        check_span("time of all rounds", self.planned_ns, 120, "0 … 120 s")
    }

    /// Planned time of the session.
    pub const fn planned_span(&self) -> Duration {
        Duration::from_nanos(self.planned_ns)
    }
}

/// Trains of both directions with their times; both ends start at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainRound {
    /// Number of the round, from 0.
    pub round: u16,
    /// Time that an end waits for packets in flight, in nanoseconds.
    pub quiet_ns: u64,
    /// Trains in the order of their reports.
    pub trains: Vec<TrainPlan>,
}

/// Parameters of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainPlan {
    /// Direction of the packets.
    pub direction: Direction,
    /// Payload of each packet in bytes.
    pub size_bytes: u32,
    /// Number of packets.
    pub count: u32,
    /// Time between two packets; 0 is back to back.
    pub gap_ns: u64,
    /// Time of the first packet, from the start of the round.
    pub at_ns: u64,
}

impl TrainPlan {
    /// Time of the last packet, from the start of the round.
    pub const fn end_ns(&self) -> u64 {
        self.at_ns + self.gap_ns * self.count.saturating_sub(1) as u64
    }
}

impl TrainRound {
    /// Checks every field against the bounds of the protocol.
    /// # Errors
    /// The first field out of bounds.
    pub fn check_bounds(&self) -> Result<(), TestError> {
        let within = |field, value: u64, least: u64, most: u64, bounds| {
            let outside = !(least..=most).contains(&value);
            let error = TestError { field, value: value.to_string(), bounds };
            if outside { Err(error) } else { Ok(()) }
        };
        within("round", self.round.into(), 0, (ROUNDS_MAX - 1).into(), "0 … 31")?;
        within("trains", self.trains.len() as u64, 1, TRAINS_MAX, "1 … 64")?;
        check_span("wait after a round", self.quiet_ns, 3, "0 … 3 s")?;
        for train in &self.trains {
            let size = train.size_bytes.into();
            within("payload", size, 16, DATAGRAM_BYTES_MAX, "16 … 65507 bytes")?;
            within("packets", train.count.into(), 1, TRAIN_PACKETS_MAX, "1 … 20000")?;
            check_span("gap", train.gap_ns, 1, "0 … 1 s")?;
            check_span("begin of a train", train.at_ns, 30, "0 … 30 s")?;
            check_span("end of a train", train.end_ns(), 30, "0 … 30 s")?;
        }
        let all = self.trains.iter().map(|train| u64::from(train.count)).sum();
        within("packets of a round", all, 1, ROUND_PACKETS_MAX.into(), "1 … 65536")
    }

    /// Time of the last packet of a direction, from the start of the round.
    pub fn last_packet_time(&self, direction: Direction) -> Duration {
        let trains = self.trains.iter().filter(|train| train.direction == direction);
        Duration::from_nanos(trains.map(TrainPlan::end_ns).max().unwrap_or(0))
    }
}

fn check_span(
    field: &'static str,
    ns: u64,
    most_s: u64,
    bounds: &'static str,
) -> Result<(), TestError> {
    if ns <= most_s * SECOND_NS {
        return Ok(());
    }
    Err(TestError { field, value: print_span(Duration::from_nanos(ns)), bounds })
}

/// Timestamps of a train's packets: departures at the sender, arrivals at the receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainReport {
    /// Number of the round.
    pub round: u16,
    /// Index of the train in the round.
    pub train: u16,
    /// The first timestamp, in ns of this end's CLOCK_REALTIME.
    pub first_ns: u64,
    /// For each packet, the time since the previous packet with a timestamp; 0 for the first of
    /// them, null for packets that did not arrive. A sender's list ends where sending failed.
    pub after_ns: Vec<Option<i64>>,
    /// Receiver: packets dropped because the socket buffer was full; null where the kernel does not
    /// count them.
    #[serde(default)]
    pub socket_drops: Option<u64>,
    /// Sender: largest IP packet by an ICMP "packet too big" of a router or of this host.
    #[serde(default)]
    pub icmp_mtu_bytes: Option<u32>,
}

impl TrainReport {
    /// Report on a train with these timestamps, `None` for packets that did not arrive.
    pub fn from_stamps(round: u16, train: u16, stamps: &[Option<u64>]) -> Self {
        let first_ns = stamps.iter().flatten().next().copied().unwrap_or(0);
        let mut last = first_ns;
        let after = |stamp: &Option<u64>| {
            let stamp = (*stamp)?;
            // Reordered packets give negative differences.
            let after = stamp.wrapping_sub(last).cast_signed();
            last = stamp;
            Some(after)
        };
        let after_ns = stamps.iter().map(after).collect();
        Self { round, train, first_ns, after_ns, ..Self::default() }
    }

    /// The timestamps, in ns of that end's CLOCK_REALTIME.
    pub fn stamps(&self) -> Vec<Option<u64>> {
        let mut last = self.first_ns;
        let stamp = |after: &Option<i64>| {
            last = last.wrapping_add_signed((*after)?);
            Some(last)
        };
        self.after_ns.iter().map(stamp).collect()
    }
}

/// Header of a train's datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainHeader {
    /// Number of the round.
    pub round: u16,
    /// Index of the train in the round.
    pub train: u16,
    /// Index of the packet in the train, from 0.
    pub index: u32,
    /// Tag of the session, by which packets of other sessions are detected.
    pub tag: u16,
}

impl TrainHeader {
    /// Header bytes on the wire.
    pub fn to_bytes(self) -> [u8; TRAIN_HEADER_BYTES] {
        let mut bytes = [0; TRAIN_HEADER_BYTES];
        bytes[..2].copy_from_slice(&self.round.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.train.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.index.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.tag.to_be_bytes());
        bytes
    }

    /// Parses the header of a datagram; `None` when it is no packet of a train.
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

    fn train_round(trains: Vec<TrainPlan>) -> TrainRound {
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
        let report = TrainReport::from_stamps(1, 2, &stamps);
        assert_eq!(report.first_ns, 1_000);
        assert_eq!(report.after_ns, [None, Some(0), Some(120), None, Some(-10), Some(290)]);
        assert_eq!(report.stamps(), stamps);
        assert_eq!(TrainReport::from_stamps(0, 0, &[None, None]).stamps(), [None, None]);
        let json = linerate_core::tree::to_json(&report).expect("it is data");
        assert!(json.contains(r#""after_ns":[null,0,120,null,-10,290]"#), "{json}");
    }

    #[test]
    fn a_round_costs_a_server_a_bounded_amount() {
        assert_eq!(train_round(vec![PLAN]).check_bounds(), Ok(()));
        let refused = |round: TrainRound| round.check_bounds().map_err(|error| error.field);
        assert_eq!(refused(train_round(vec![])), Err("trains"));
        assert_eq!(refused(train_round(vec![PLAN; 65])), Err("trains"));
        let with = |change: fn(&mut TrainPlan)| {
            let mut plan = PLAN;
            change(&mut plan);
            refused(train_round(vec![plan]))
        };
        assert_eq!(with(|plan| plan.size_bytes = 15), Err("payload"));
        assert_eq!(with(|plan| plan.size_bytes = 65_508), Err("payload"));
        assert_eq!(with(|plan| plan.count = 20_001), Err("packets"));
        assert_eq!(with(|plan| plan.count = 0), Err("packets"));
        assert_eq!(with(|plan| plan.gap_ns = 2 * SECOND_NS), Err("gap"));
        // 64 packets, one a second, end after 63 s.
        assert_eq!(with(|plan| plan.gap_ns = SECOND_NS), Err("end of a train"));
        let many = TrainPlan { count: 20_000, ..PLAN };
        assert_eq!(refused(train_round(vec![many; 3])), Ok(()));
        assert_eq!(refused(train_round(vec![many; 4])), Err("packets of a round"));
        assert_eq!(refused(TrainRound { round: 32, ..train_round(vec![PLAN]) }), Err("round"));
        let long = TrainRound { quiet_ns: 4 * SECOND_NS, ..train_round(vec![PLAN]) };
        assert_eq!(refused(long), Err("wait after a round"));
        assert!(
            TrainsRequest { planned_ns: 121 * SECOND_NS, login: false }.check_bounds().is_err()
        );
    }

    #[test]
    fn a_round_ends_with_its_last_packet() {
        let later = TrainPlan { gap_ns: 1_000_000, at_ns: 100_000_000, ..PLAN };
        let round = train_round(vec![PLAN, later]);
        // 100 ms and 63 gaps of 1 ms.
        assert_eq!(round.last_packet_time(Direction::Up), Duration::from_millis(163));
        assert_eq!(round.last_packet_time(Direction::Down), Duration::ZERO);
    }
}
