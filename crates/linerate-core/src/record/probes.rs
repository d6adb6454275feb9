//! Probes that go beside a throughput test: how late a packet is while the line is full.
//!
//! They are packets of their own, so that what they see is what another application's packets see;
//! the round trips that TCP saw of its own segments are in the flows.

use serde::{Deserialize, Serialize};

use super::PingTransport;

/// Directions of the load while probes were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbePhase {
    /// There was no load.
    Idle,
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
    /// Both ways at once.
    Both,
}

/// One phase of a test. Its probes are those sent within it; those sent outside all phases, as
/// while the load begins or ends, count nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeSpan {
    /// Directions of the load.
    pub phase: ProbePhase,
    /// Begin of the span since the start of the load; negative before that.
    pub from_ns: i64,
    /// End of the span, exclusive.
    pub to_ns: i64,
}

/// The probes beside a test, in order of sending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probes {
    /// Transport of the probes.
    pub transport: PingTransport,
    /// Target of the probes: an address, with its port for UDP.
    pub target: String,
    /// Payload of each, the ICMP or UDP header not counted.
    pub payload_bytes: u32,
    /// Differentiated services code point that was set.
    pub dscp: Option<u8>,
    /// ECN field that was set, where it was: 0 is not ECT, 1 ECT(1), 2 ECT(0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<u8>,
    /// The reason why no probe was answered, in one line; null when one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<String>,
    /// Spans of the phases, in order.
    pub phases: Vec<ProbeSpan>,
    /// Time at which each was sent, since the start of the load; negative before that.
    pub sent_ns: Vec<i64>,
    /// The round trip of each, by this host's clock from just before sending to just after
    /// receiving; null for a lost one.
    pub rtt_ns: Vec<Option<u64>>,
    /// The time of each in the queueing discipline of this host's interface, between the kernel's
    /// stamps before and behind it. Empty where the kernel gave none, as are those below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_queue_ns: Vec<Option<u64>>,
    /// Time from leaving this host to the arrival of the answer, by the kernel's stamps, less the
    /// time at the other end where that is reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path_ns: Vec<Option<u64>>,
    /// The way there alone. It holds the difference of both hosts' clocks: only its changes mean
    /// something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub there_ns: Vec<Option<i64>>,
    /// Time from arrival to answer at the other end, by its own clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peer_ns: Vec<Option<u64>>,
    /// The way back alone, with the same reserve as the way there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub back_ns: Vec<Option<i64>>,
    /// The ECN field of each as it came to the other end, where `ecn` was set and the other end
    /// reports it; 3 is congestion experienced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ecn_there: Vec<Option<u8>>,
    /// ECN of the answer to each probe as it arrived here; the answer left with the one of `ecn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ecn_back: Vec<Option<u8>>,
}

impl Probes {
    /// Probes of which none is sent yet.
    pub const fn new(transport: PingTransport, target: String, payload_bytes: u32) -> Self {
        Self {
            transport,
            target,
            payload_bytes,
            dscp: None,
            ecn: None,
            silent: None,
            phases: Vec::new(),
            sent_ns: Vec::new(),
            rtt_ns: Vec::new(),
            own_queue_ns: Vec::new(),
            path_ns: Vec::new(),
            there_ns: Vec::new(),
            peer_ns: Vec::new(),
            back_ns: Vec::new(),
            ecn_there: Vec::new(),
            ecn_back: Vec::new(),
        }
    }

    /// The round trips of the probes sent before the load, or of those sent beside it; null for a
    /// lost one.
    pub fn round_trips(&self, idle: bool) -> impl Iterator<Item = Option<u64>> {
        let places = self.sent_in(move |phase| (phase == ProbePhase::Idle) == idle);
        places.map(|place| self.rtt_ns[place])
    }

    /// The share of the probes beside the load that arrived with congestion experienced, of those
    /// of which it is known; of `ecn_there` or `ecn_back`.
    pub fn ce_share(&self, seen: &[Option<u8>]) -> Option<f64> {
        let places = self.sent_in(|phase| phase != ProbePhase::Idle);
        let known: Vec<u8> =
            places.filter_map(|place| seen.get(place).copied().flatten()).collect();
        let marked = known.iter().filter(|field| **field == 3).count();
        (!known.is_empty()).then(|| marked as f64 / known.len() as f64)
    }

    /// The places of the probes that were sent in phases which `of` picks.
    pub fn sent_in(&self, of: impl Fn(ProbePhase) -> bool) -> impl Iterator<Item = usize> {
        let spans = self.phases.iter().filter(move |span| of(span.phase));
        let spans: Vec<ProbeSpan> = spans.copied().collect();
        let within =
            move |at: i64| spans.iter().any(|span| (span.from_ns..span.to_ns).contains(&at));
        self.sent_ns.iter().enumerate().filter(move |(_, at)| within(**at)).map(|(place, _)| place)
    }
}
