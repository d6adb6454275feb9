//! The counters of this host that explain a throughput test, before and after it.
//!
//! Left out: counters of single queues and of offload engines (ethtool -S), whose names each driver
//! chooses, and the host's other links.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_core::record::{CachedMetrics, HostDeltas};
use linerate_core::time::MonoTime;
use linerate_sys::clock::monotonic;
use linerate_sys::{host, netlink};

/// Counters of /proc/net/netstat and snmp that say what held a transfer back, by their meaning: the
/// receiver, its memory, loss and its repair, time-outs, needless repair, slow start, MTU, marks.
const NETWORK: [&str; 57] = [
    "TcpExt.TCPToZeroWindowAdv",
    "TcpExt.TCPFromZeroWindowAdv",
    "TcpExt.TCPWantZeroWindowAdv",
    "TcpExt.TCPZeroWindowDrop",
    "TcpExt.TCPRcvQDrop",
    "TcpExt.TCPBacklogDrop",
    "TcpExt.PruneCalled",
    "TcpExt.RcvPruned",
    "TcpExt.OfoPruned",
    "TcpExt.TCPRcvCollapsed",
    "TcpExt.TCPOFOQueue",
    "TcpExt.TCPOFODrop",
    "TcpExt.TCPMemoryPressures",
    "TcpExt.TCPMemoryPressuresChrono",
    "TcpExt.TCPWqueueTooBig",
    "TcpExt.TCPFastRetrans",
    "TcpExt.TCPSlowStartRetrans",
    "TcpExt.TCPLostRetransmit",
    "TcpExt.TCPRetransFail",
    "TcpExt.TCPSynRetrans",
    "TcpExt.TCPTimeouts",
    "TcpExt.TCPSpuriousRTOs",
    "TcpExt.TCPSpuriousRtxHostQueues",
    "TcpExt.TCPLossProbes",
    "TcpExt.TCPLossProbeRecovery",
    "TcpExt.TCPSACKReorder",
    "TcpExt.TCPTSReorder",
    "TcpExt.TCPDSACKRecv",
    "TcpExt.TCPDSACKUndo",
    "TcpExt.TCPFullUndo",
    "TcpExt.TCPPartialUndo",
    "TcpExt.TCPLossUndo",
    "TcpExt.TCPHystartTrainDetect",
    "TcpExt.TCPHystartTrainCwnd",
    "TcpExt.TCPHystartDelayDetect",
    "TcpExt.TCPHystartDelayCwnd",
    "TcpExt.TCPMTUPFail",
    "TcpExt.TCPMTUPSuccess",
    "TcpExt.TCPAckCompressed",
    "TcpExt.DelayedACKLost",
    "TcpExt.TCPDelivered",
    "TcpExt.TCPDeliveredCE",
    "TcpExt.ListenDrops",
    "IpExt.InCEPkts",
    "IpExt.InCsumErrors",
    "Tcp.RetransSegs",
    "Tcp.InErrs",
    "Tcp.InCsumErrors",
    "Tcp.OutRsts",
    "Ip.InDiscards",
    "Ip.OutDiscards",
    "Ip.FragCreates",
    "Ip.ReasmFails",
    "Udp.InErrors",
    "Udp.RcvbufErrors",
    "Udp.SndbufErrors",
    "Udp.InCsumErrors",
];

/// The same of /proc/net/snmp6.
const NETWORK_6: [&str; 7] = [
    "Udp6InErrors",
    "Udp6RcvbufErrors",
    "Udp6SndbufErrors",
    "Ip6InTooBigErrors",
    "Ip6FragCreates",
    "Ip6ReasmFails",
    "Icmp6InPktTooBigs",
];

/// The counters at the start of a test.
#[derive(Debug)]
pub(crate) struct HostCounters {
    at: MonoTime,
    peer: Option<IpAddr>,
    before: Reading,
    cached: Option<CachedMetrics>,
}

#[derive(Debug, Default)]
struct Reading {
    interface: Option<String>,
    counters: BTreeMap<String, u64>,
}

impl HostCounters {
    /// Counts from here; with a peer also on the link that leads to it.
    pub(crate) fn start_counting(peer: Option<IpAddr>) -> Self {
        let peer = peer.map(|peer| peer.to_canonical());
        let cached = peer.and_then(|peer| netlink::cached_metrics(peer).ok().flatten());
        Self { at: monotonic(), peer, before: Reading::read_counters(peer), cached }
    }

    /// The growth of the counters since they were read.
    pub(crate) fn deltas(self) -> HostDeltas {
        let now = Reading::read_counters(self.peer);
        let span_ns = monotonic().nanos_since(self.at);
        let same = now.interface == self.before.interface;
        HostDeltas {
            span_ns,
            interface: now.interface.filter(|_| same),
            counters: growth(&self.before.counters, &now.counters),
            cached: self.cached,
        }
    }
}

/// A counter that went back began anew, and tells nothing.
fn growth(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let grown = now
        .iter()
        .filter_map(|(name, now)| Some((name.clone(), now.checked_sub(*before.get(name)?)?)));
    grown.collect()
}

impl Reading {
    fn read_counters(peer: Option<IpAddr>) -> Self {
        let mut reading = Self::default();
        let files = ["netstat", "snmp"].into_iter().flat_map(host::net_counters);
        reading.add("", files.filter(|(name, _)| NETWORK.contains(&name.as_str())));
        let six = host::line_counters("/proc/thread-self/net/snmp6").into_iter();
        reading.add("", six.filter(|(name, _)| NETWORK_6.contains(&name.as_str())));
        reading.add("cgroup.", host::cpu_stat().into_iter().filter(|(name, _)| throttles(name)));
        for resource in ["cpu", "memory", "io"] {
            let times = host::pressure(resource).into_iter();
            let times = times.map(|(kind, us)| (format!("{resource}.{kind}_us"), us));
            reading.add("pressure.", times);
        }
        reading.processors();
        if let Some(counters) = peer.and_then(|peer| netlink::counters_to(peer).ok()) {
            reading.add_link_counters(counters);
        }
        reading
    }

    fn add(&mut self, source: &str, counters: impl IntoIterator<Item = (impl AsRef<str>, u64)>) {
        let named =
            counters.into_iter().map(|(name, it)| (format!("{source}{}", name.as_ref()), it));
        self.counters.extend(named);
    }

    fn processors(&mut self) {
        let softnet = host::softnet();
        if !softnet.is_empty() {
            let sum = |pick: fn(&host::Softnet) -> u64| softnet.iter().map(pick).sum();
            self.add(
                "softnet.",
                [
                    ("processed", sum(|softnet| softnet.processed)),
                    ("dropped", sum(|softnet| softnet.dropped)),
                    ("squeezed", sum(|softnet| softnet.squeezed)),
                ],
            );
        }
        if let Some(time) = host::processor_time() {
            self.add(
                "cpu.",
                [
                    ("busy_ticks", time.busy_ticks),
                    ("softirq_ticks", time.softirq_ticks),
                    ("stolen_ticks", time.stolen_ticks),
                ],
            );
        }
    }

    fn add_link_counters(&mut self, counters: netlink::RouteCounters) {
        let netlink::RouteCounters { ifname, link, errors, carrier_changes, root } = counters;
        self.interface = Some(ifname);
        self.add(
            "interface.",
            [
                ("rx_packets", link.rx_packets),
                ("tx_packets", link.tx_packets),
                ("rx_bytes", link.rx_bytes),
                ("tx_bytes", link.tx_bytes),
                ("rx_dropped", link.rx_dropped),
                ("tx_dropped", link.tx_dropped),
                ("rx_errors", link.rx_errors),
                ("tx_errors", link.tx_errors),
            ],
        );
        self.add("interface.", errors);
        self.add("interface.", carrier_changes.map(|count| ("carrier_changes", count.into())));
        let counted = root.map(|root| {
            [
                ("packets", root.packets),
                ("bytes", root.bytes),
                ("drops", root.drops.into()),
                ("overlimits", root.overlimits.into()),
                ("requeues", root.requeues.into()),
            ]
        });
        self.add("qdisc.", counted.into_iter().flatten());
    }
}

/// Version 2 counts µs, version 1 ns (`throttled_time`).
fn throttles(name: &str) -> bool {
    matches!(name, "nr_periods" | "nr_throttled" | "throttled_usec" | "throttled_time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_of_what_is_in_both_readings_and_did_not_begin_anew() {
        let of = |pairs: &[(&str, u64)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let before = of(&[("a", 3), ("b", 5), ("c", 9), ("gone", 1)]);
        let now = of(&[("a", 10), ("b", 5), ("c", 2), ("new", 4)]);
        assert_eq!(growth(&before, &now), of(&[("a", 7), ("b", 0)]));
    }

    #[test]
    fn this_host_has_counters_of_every_source() {
        let deltas = HostCounters::start_counting(Some(IpAddr::from([127, 0, 0, 1]))).deltas();
        assert_eq!(deltas.interface.as_deref(), Some("lo"));
        for name in
            ["TcpExt.TCPTimeouts", "Udp.RcvbufErrors", "softnet.dropped", "interface.rx_crc_errors"]
        {
            assert!(deltas.counters.contains_key(name), "{name} is not in {deltas:?}");
        }
    }
}
