//! What an end tells of its streams: counts while they run, and a report of each when it is over.

use serde::{Deserialize, Serialize};

use super::{Direction, FlowEnd, HostDeltas, SynOptions};

/// One stream at one end after the test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    /// Direction of its data.
    pub direction: Direction,
    /// Stream number within its direction.
    pub flow: u16,
    /// Counters of this end.
    pub end: FlowEnd,
    /// The SYN that opened the stream, as it reached the server.
    pub syn: Option<SynOptions>,
    /// Address of the client at the server.
    pub client_addr: String,
    /// The reason why the stream ended early.
    pub failure: Option<String>,
    /// Processor time that a hypervisor took from this end during the test, over the time that
    /// its processors wanted to run; the same for all streams of an end.
    #[serde(default)]
    pub stolen_ratio: Option<f64>,
    /// Growth of the counters of this end's host; with the first stream of an end alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deltas: Option<HostDeltas>,
}

impl EndReport {
    /// The other end's report of the same stream, where that end reports nothing but `end`.
    #[must_use]
    pub fn of_other_end(&self, end: FlowEnd) -> Self {
        Self {
            client_addr: self.client_addr.clone(),
            ..Self::from_flow_end(self.direction, self.flow, end)
        }
    }

    /// The report of a stream that ended well, where nothing is known beside this end's counters.
    pub const fn from_flow_end(direction: Direction, flow: u16, end: FlowEnd) -> Self {
        let client_addr = String::new();
        let (syn, failure, stolen_ratio, deltas) = (None, None, None, None);
        Self { direction, flow, end, syn, client_addr, failure, stolen_ratio, deltas }
    }
}

/// Datagrams of one stream at one end at one moment, counted from the start of the test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramCounts {
    /// Datagrams sent, or different ones that arrived.
    pub datagrams: u64,
    /// The highest number sent or received, and 1.
    pub next: u64,
    /// Arrivals of a datagram that had arrived before.
    pub duplicates: u64,
    /// Arrivals below a number that had arrived before.
    pub reordered: u64,
    /// Datagrams that this host's own socket had no room for.
    pub lost_here: u64,
    /// Smoothed jitter by RFC 3550.
    pub jitter_ns: Option<u64>,
}

/// Totals of a sender, reported once it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramsSent {
    /// Direction of its data.
    pub direction: Direction,
    /// Stream number within its direction.
    pub flow: u16,
    /// Number of datagrams sent.
    pub datagrams: u64,
    /// Datagrams sent after the omitted span.
    pub measured: u64,
    /// Time that the sending of those took.
    pub span_ns: u64,
}
