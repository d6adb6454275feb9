//! What a trace sends through, live or simulated: probes go out, answers come back.

use std::net::IpAddr;

use linerate_core::record::{ArrivedMarks, Failure, MplsLabel};

/// One probe of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TraceProbe {
    /// Number of the probe, by which its answer is known.
    pub(super) number: u16,
    /// Flow of the probe: source and destination port.
    pub(super) flow: u16,
    /// Time to live of the probe.
    pub(super) ttl: u8,
    /// Octets of the IP packet; 0 for the smallest.
    pub(super) bytes: u32,
    /// DSCP and ECN bits (the traffic class).
    pub(super) tos: u8,
    /// An ICMP echo request, whatever the flows are.
    pub(super) echo: bool,
}

/// The answer to a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TraceAnswer {
    pub(super) number: u16,
    /// The address of the host that answered.
    pub(super) from: IpAddr,
    pub(super) said: Said,
    pub(super) rtt_ns: u64,
    /// Header fields as they arrived, where the answer quotes them.
    pub(super) arrived: Option<ArrivedMarks>,
    pub(super) labels: Vec<MplsLabel>,
}

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// A router: its time to live ended.
    Exceeded,
    /// The end of the path.
    Reached,
    /// A router: longer than this, the MTU of its next link, where it tells one.
    TooBig(u32),
    /// A router does not pass it on, with the code of its message.
    Refused(u8),
}

/// The network that carries the probes out.
pub(super) trait Network {
    /// Monotonic time in ns.
    fn now_ns(&self) -> u64;
    /// Sends a probe; false where it is longer than this host's own link takes.
    /// # Errors
    /// When nothing can be sent at all.
    fn send_probe(&mut self, probe: &TraceProbe) -> Result<bool, Failure>;
    /// Takes answers that came, and waits for the first one no longer than `until_ns`.
    fn answers(&mut self, until_ns: u64) -> Vec<TraceAnswer>;
    /// The port that a flow leaves from, where it has one.
    fn source_port(&mut self, flow: u16) -> Option<u16>;
    /// True where the user wants no more.
    fn stopped(&self) -> bool;
    /// True where answers tell how headers arrived.
    fn reads_quotes(&self) -> bool;
    /// True where echo requests can be sent beside other probes.
    fn has_echo(&self) -> bool;
    /// Largest IP packet that this host's own link takes.
    fn link_mtu(&self) -> u32;
}
