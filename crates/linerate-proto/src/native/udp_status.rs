//! The datagram by which the receiver of a search tells what became of the data
//! (spec/udp-throughput.md), without sockets and clocks.
//!
//! ```text
//!  0        8     10          16           24          32         40           48          56
//! | STATUS | tag | time (ns) | of statuses | received | next no. | duplicates | reordered |
//!  56       64       72        80         88         96
//! | stamp  | held   | delay min | mean      | max      |
//! ```
//!
//! All numbers are big-endian. Counts run from the start of the test, so that a status that is lost
//! takes nothing along. Without an arrival since the status before, the last five fields are ones.

use linerate_core::search::{Arrival, DelayRange, Tally};

use super::udp::{DATAGRAM_HEADER_BYTES, DatagramHeader};

/// The number of a datagram that is a status.
pub const STATUS: u64 = u64::MAX - 1;

/// Length of a status.
pub const STATUS_BYTES: usize = 96;

const ABSENT: u64 = u64::MAX;
const FIELDS: usize = (STATUS_BYTES - DATAGRAM_HEADER_BYTES) / 8;

/// What a receiver tells its sender, every 50 ms or as the search says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpStatus {
    /// The stream's tag.
    pub tag: u16,
    /// Time since the receiver's start.
    pub t_ns: u64,
    /// Statuses so far, this one among them.
    pub number: u64,
    /// Datagrams so far.
    pub tally: Tally,
    /// The newest arrival since the status before, and the delays since then.
    pub newest: Option<Newest>,
}

/// What arrived since the status before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// The time that the newest datagram carried.
    pub stamp_ns: u64,
    /// From its arrival until this status left.
    pub held_ns: u64,
    /// Delays above the smallest of the test.
    pub delay: DelayRange,
}

impl Newest {
    /// An arrival and its delays, as of `now_ns` by the clock of the arrival.
    pub const fn of(arrival: Arrival, delay: DelayRange, now_ns: u64) -> Self {
        let held_ns = now_ns.saturating_sub(arrival.at_ns);
        Self { stamp_ns: arrival.stamp_ns, held_ns, delay }
    }
}

impl UdpStatus {
    /// The bytes of the datagram.
    pub fn to_bytes(self) -> [u8; STATUS_BYTES] {
        let Self { tag, t_ns, number, tally, newest } = self;
        let told = newest.map_or([ABSENT; 5], |newest| {
            let DelayRange { min_ns, mean_ns, max_ns } = newest.delay;
            [newest.stamp_ns, newest.held_ns, min_ns, mean_ns, max_ns]
        });
        let counts = [number, tally.received, tally.next, tally.duplicates, tally.reordered];
        let mut bytes = [0; STATUS_BYTES];
        let header = DatagramHeader { number: STATUS, tag, stamp_ns: t_ns };
        bytes[..DATAGRAM_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        let rooms = bytes[DATAGRAM_HEADER_BYTES..].chunks_exact_mut(8);
        for (room, value) in rooms.zip(counts.into_iter().chain(told)) {
            room.copy_from_slice(&value.to_be_bytes());
        }
        bytes
    }

    /// Reads a datagram; `None` when it is no status, or says what cannot be.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let bytes: &[u8; STATUS_BYTES] = datagram.try_into().ok()?;
        let header = DatagramHeader::parse(bytes).filter(|header| header.number == STATUS)?;
        let mut fields = [0; FIELDS];
        let rooms = bytes[DATAGRAM_HEADER_BYTES..].chunks_exact(8);
        for (field, room) in fields.iter_mut().zip(rooms) {
            *field = u64::from_be_bytes(*room.first_chunk()?);
        }
        let [number, received, next, duplicates, reordered, told @ ..] = fields;
        let newest = match told {
            [ABSENT, ABSENT, ABSENT, ABSENT, ABSENT] => None,
            [stamp_ns, held_ns, min_ns, mean_ns, max_ns] => {
                let ordered = min_ns <= mean_ns && mean_ns <= max_ns;
                let delay = DelayRange { min_ns, mean_ns, max_ns };
                Some(Newest { stamp_ns, held_ns, delay }).filter(|_| ordered).map(Some)?
            }
        };
        let tally = Tally { received, next, reordered, duplicates };
        let possible = number > 0 && received <= next;
        let (tag, t_ns) = (header.tag, header.stamp_ns);
        possible.then_some(Self { tag, t_ns, number, tally, newest })
    }
}
