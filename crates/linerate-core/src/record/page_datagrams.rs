//! What became of the numbered datagrams between the page in a browser and the server, beside a
//! test whose load is TCP (`spec/datagrams.md`).

use serde::{Deserialize, Serialize};

use super::{Direction, ProbePhase};

/// One way of a round of datagrams: at rest, or beside the load of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageDatagrams {
    /// Directions of the load meanwhile.
    pub phase: ProbePhase,
    /// Direction of these datagrams.
    pub direction: Direction,
    /// Number of datagrams that were sent.
    pub sent: u64,
    /// Datagrams that had not arrived a second after the last was sent (RFC 7680 §4.1).
    pub lost: u64,
    /// Arrivals of datagrams that had arrived before (RFC 5560).
    pub duplicates: u64,
    /// Arrivals behind one that left later (RFC 4737 §3).
    pub reordered: u64,
    /// Interarrival jitter (RFC 3550 §6.4.1); null below two arrivals.
    pub jitter_ns: Option<u64>,
}
