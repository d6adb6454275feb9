//! What the counters of a host grew by while a test ran.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The counters of one end of a throughput test. They are of the whole host or of its network
/// namespace: other programs count, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostDeltas {
    /// Time between the two readings.
    pub span_ns: u64,
    /// Interface of the route to the peer, whose counters are here.
    pub interface: Option<String>,
    /// Growth by source and the kernel's own name: `TcpExt.TCPTimeouts` (/proc/net/netstat),
    /// `Udp.RcvbufErrors` (snmp), `Udp6RcvbufErrors` (snmp6), `softnet.dropped`,
    /// `interface.rx_crc_errors`, `qdisc.drops` (at the root of that interface),
    /// `cgroup.nr_throttled` (cpu.stat), `pressure.cpu.some_us` (PSI), `cpu.busy_ticks`
    /// (10 ms each). 0 did not grow; a counter that is not here this kernel does not have.
    pub counters: BTreeMap<String, u64>,
    /// Metrics of the peer that the kernel kept from before the test, with which it starts new
    /// connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<CachedMetrics>,
}

/// Metrics of earlier connections to a host that a kernel keeps (`ip tcp_metrics`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CachedMetrics {
    /// Smoothed round-trip time.
    pub rtt_us: Option<u32>,
    /// Mean deviation of that time.
    pub rttvar_us: Option<u32>,
    /// Slow-start threshold, in segments: a new connection leaves slow start there.
    pub ssthresh: Option<u32>,
    /// Congestion window, in segments.
    pub cwnd: Option<u32>,
    /// Reordering that is tolerated, in segments.
    pub reordering: Option<u32>,
}
