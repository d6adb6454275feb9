//! What an end of the path is: the things that change a number and that a reader asks for later.

use serde::{Deserialize, Serialize};

use super::HostDeltas;

/// One end of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasurementEnd {
    /// `local` or `remote`.
    pub role: String,
    /// The IP address that was used.
    #[serde(default)]
    pub address: Option<String>,
    /// Kernel name and release.
    pub kernel: Option<String>,
    /// Model of the CPU.
    pub cpu_model: Option<String>,
    /// CPUs that this process may use.
    pub cpus: Option<u32>,
    /// Version of linerate at that end.
    pub version: Option<String>,
    /// Clock behind the monotonic time.
    pub clocksource: Option<String>,
    /// Step of the monotonic clock, as measured; figures are shown no finer.
    #[serde(default)]
    pub clock_tick_ns: Option<f64>,
    /// Delays that the host itself adds; null where none were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Default congestion control of the host.
    pub congestion_control_default: Option<String>,
    /// net.ipv4.tcp_rmem: minimum, default, maximum.
    pub tcp_rmem_bytes: Option<[u64; 3]>,
    /// net.ipv4.tcp_wmem: minimum, default, maximum.
    pub tcp_wmem_bytes: Option<[u64; 3]>,
    /// net.core.rmem_max.
    pub rmem_max_bytes: Option<u64>,
    /// net.core.wmem_max.
    pub wmem_max_bytes: Option<u64>,
    /// Settings of the host's TCP.
    #[serde(default)]
    pub tcp: Option<TcpSettings>,
    /// The interface that the route to the peer leaves by.
    pub interface: Option<RecordedInterface>,
    /// Time that a hypervisor took from this end's CPUs during the measurement, over the time that
    /// they wanted to run; null where nothing reports or the measurement was too short.
    #[serde(default)]
    pub stolen_ratio: Option<f64>,
    /// Growth of this host's counters during a throughput test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deltas: Option<HostDeltas>,
}

/// Delays that the measuring host itself adds, found just before or after the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// Cost of one reading of the clock.
    pub reading_ns: f64,
    /// Lateness of a sleep of 100 µs with the prober's timer slack, median.
    pub oversleep_ns: Option<u64>,
    /// Stop-and-wait ICMP echo on loopback, median; null where this host may not be pinged.
    pub floor_ns: Option<f64>,
    /// Sample standard deviation of that time.
    pub floor_stddev_ns: Option<f64>,
    /// Largest difference that the two halves of those echoes may show by chance (A/A, 95 %).
    pub floor_difference_ns: Option<f64>,
}

/// Settings of TCP as the host's network namespace has them (net.ipv4.tcp_*), and the initial
/// windows of the route to the peer. Null where this kernel has no such setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TcpSettings {
    /// tcp_sack.
    pub sack: Option<u64>,
    /// tcp_window_scaling.
    pub window_scaling: Option<u64>,
    /// tcp_timestamps: 0 off, 1 with a random offset, 2 without.
    pub timestamps: Option<u64>,
    /// tcp_ecn: 0 off, 1 requests and accepts, 2 accepts; more with accurate ECN.
    pub ecn: Option<u64>,
    /// tcp_slow_start_after_idle.
    pub slow_start_after_idle: Option<u64>,
    /// tcp_no_metrics_save.
    pub no_metrics_save: Option<u64>,
    /// tcp_early_retrans: 0 without tail loss probes.
    pub early_retransmit: Option<u64>,
    /// tcp_recovery: a bit mask; bit 0 is RACK.
    pub recovery: Option<u64>,
    /// tcp_mtu_probing.
    pub mtu_probing: Option<u64>,
    /// Segments that a new connection to the peer may send at once (initcwnd of the route); null is
    /// the kernel's default, 10 since Linux 2.6.39 (RFC 6928).
    pub initial_window: Option<u32>,
    /// Segments that a new connection offers to take at once (initrwnd); null is the kernel's own.
    pub initial_receive_window: Option<u32>,
}

/// A network interface, as far as the kernel reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedInterface {
    /// Name of the interface in its namespace.
    pub name: String,
    /// `veth`, `loopback`, `bridge`, a driver's name.
    pub kind: Option<String>,
    /// Largest IP packet of the interface.
    pub mtu_bytes: Option<u32>,
    /// Negotiated speed; of the link under it, where the interface is a VLAN.
    pub speed_bps: Option<u64>,
    /// Rate of a shaping queueing discipline on it, as that discipline counts (frames without FCS
    /// for tbf).
    pub shaper_bps: Option<u64>,
    /// VLAN tags that its frames have on the wire: 1 for an 802.1Q interface, 2 for one on top of
    /// another. Null in records that do not have it.
    #[serde(default)]
    pub vlan_tags: Option<u8>,
    /// The interface under a VLAN, whose speed and shaper are reported.
    #[serde(default)]
    pub lower: Option<String>,
}
