//! Status datagram of the receiver in a rate search, with its counters and delays
//! (spec/udp-throughput.md); without sockets and clocks.
//!
//! ```text
//!  0        8     10          16           24          32         40           48          56
//! | STATUS | tag | time (ns) | of statuses | received | next no. | duplicates | reordered |
//!  56       64       72        80         88         96
//! | stamp  | held   | delay min | mean      | max      |
//! ```
//!
//! All numbers are big-endian. Counters run from the start of the test, so that a lost status loses
//! no count. Without an arrival since the previous status, all bits of the last five fields are 1.

use linerate_core::search::{DelayRange, StampedArrival, StreamCounts};

use super::udp::{DATAGRAM_HEADER_BYTES, NativeDatagramHeader};

/// Number that marks a datagram as a status.
pub const STATUS: u64 = u64::MAX - 1;

/// Bytes of a status.
pub const STATUS_BYTES: usize = 96;

const ABSENT: u64 = u64::MAX;
const FIELDS: usize = (STATUS_BYTES - DATAGRAM_HEADER_BYTES) / 8;

/// A receiver's report to its sender, every 50 ms or at the interval of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpStatus {
    /// Tag of the stream.
    pub tag: u16,
    /// Time since the receiver's start.
    pub t_ns: u64,
    /// Number of this status, from 1.
    pub number: u64,
    /// Counters of the datagrams so far.
    pub tally: StreamCounts,
    /// Newest arrival since the previous status, and the delays since then.
    pub newest: Option<Newest>,
}

/// Newest arrival since the previous status, and the delays since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// Timestamp of the newest datagram.
    pub stamp_ns: u64,
    /// Time from its arrival to the sending of the status.
    pub held_ns: u64,
    /// One-way delays above the smallest of the test.
    pub delay: DelayRange,
}

impl Newest {
    /// Newest arrival for a status sent at `now_ns` of the clock of the arrival.
    pub const fn from_arrival(arrival: StampedArrival, delay: DelayRange, now_ns: u64) -> Self {
        let held_ns = now_ns.saturating_sub(arrival.at_ns);
        Self { stamp_ns: arrival.stamp_ns, held_ns, delay }
    }
}

impl UdpStatus {
    /// The bytes of the datagram.
    pub fn to_bytes(self) -> [u8; STATUS_BYTES] {
        let Self { tag, t_ns, number, tally, newest } = self;
        let newest_fields = newest.map_or([ABSENT; 5], |newest| {
            let DelayRange { min_ns, mean_ns, max_ns } = newest.delay;
            [newest.stamp_ns, newest.held_ns, min_ns, mean_ns, max_ns]
        });
        let counts = [number, tally.received, tally.next, tally.duplicates, tally.reordered];
        let mut bytes = [0; STATUS_BYTES];
        let header = NativeDatagramHeader { number: STATUS, tag, stamp_ns: t_ns };
        bytes[..DATAGRAM_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        let rooms = bytes[DATAGRAM_HEADER_BYTES..].chunks_exact_mut(8);
        for (room, value) in rooms.zip(counts.into_iter().chain(newest_fields)) {
            room.copy_from_slice(&value.to_be_bytes());
        }
        bytes
    }

    /// Parses a datagram; `None` when it is no status, or its values contradict each other.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let bytes: &[u8; STATUS_BYTES] = datagram.try_into().ok()?;
        let header = NativeDatagramHeader::parse(bytes).filter(|header| header.number == STATUS)?;
        let mut fields = [0; FIELDS];
        let rooms = bytes[DATAGRAM_HEADER_BYTES..].chunks_exact(8);
        for (field, room) in fields.iter_mut().zip(rooms) {
            *field = u64::from_be_bytes(*room.first_chunk()?);
        }
        let [number, received, next, duplicates, reordered, newest_fields @ ..] = fields;
        let newest = match newest_fields {
            [ABSENT, ABSENT, ABSENT, ABSENT, ABSENT] => None,
            [stamp_ns, held_ns, min_ns, mean_ns, max_ns] => {
                let ordered = min_ns <= mean_ns && mean_ns <= max_ns;
                let delay = DelayRange { min_ns, mean_ns, max_ns };
                Some(Newest { stamp_ns, held_ns, delay }).filter(|_| ordered).map(Some)?
            }
        };
        let tally = StreamCounts { received, next, reordered, duplicates };
        let possible = number > 0 && received <= next;
        let (tag, t_ns) = (header.tag, header.stamp_ns);
        possible.then_some(Self { tag, t_ns, number, tally, newest })
    }
}
