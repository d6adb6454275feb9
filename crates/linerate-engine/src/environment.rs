//! What this host is, for the record; and what a hypervisor took from it meanwhile.

use std::net::IpAddr;
use std::time::Duration;

use linerate_core::record::{Caveat, CaveatCode, MeasurementEnd, RecordedInterface, TcpSettings};
use linerate_sys::host::{self, ProcessorTime};
use linerate_sys::netlink;
use linerate_sys::thread::{self, RunQueueWaits};

/// Below this many ticks of 10 ms the share of stolen time is coarser than its threshold.
const WANTED_TICKS_MIN: u64 = 50;
/// Above this share of the time that processors wanted to run, stolen time weighs in the result.
const STOLEN_RATIO: f64 = 0.02;

/// The local end; with a peer also the interface that its route leaves by.
pub fn local_end(peer: Option<IpAddr>) -> MeasurementEnd {
    MeasurementEnd {
        role: "local".to_owned(),
        address: None,
        clock_tick_ns: None,
        calibration: None,
        kernel: Some(host::kernel()),
        cpu_model: host::cpu_model(),
        cpus: host::usable_cpus(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        clocksource: host::read_line(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        congestion_control_default: host::read_line("/proc/sys/net/ipv4/tcp_congestion_control"),
        tcp_rmem_bytes: host::read_triple("/proc/sys/net/ipv4/tcp_rmem"),
        tcp_wmem_bytes: host::read_triple("/proc/sys/net/ipv4/tcp_wmem"),
        rmem_max_bytes: host::read_number("/proc/sys/net/core/rmem_max"),
        wmem_max_bytes: host::read_number("/proc/sys/net/core/wmem_max"),
        tcp: Some(tcp_settings(peer)),
        interface: peer.and_then(interface_to),
        stolen_ratio: None,
        deltas: None,
    }
}

fn tcp_settings(peer: Option<IpAddr>) -> TcpSettings {
    let read = |name: &str| host::read_number(&format!("/proc/sys/net/ipv4/tcp_{name}"));
    let windows = peer.and_then(|peer| netlink::initial_windows(peer.to_canonical()).ok());
    let windows = windows.unwrap_or_default();
    TcpSettings {
        sack: read("sack"),
        window_scaling: read("window_scaling"),
        timestamps: read("timestamps"),
        ecn: read("ecn"),
        slow_start_after_idle: read("slow_start_after_idle"),
        no_metrics_save: read("no_metrics_save"),
        early_retransmit: read("early_retrans"),
        recovery: read("recovery"),
        mtu_probing: read("mtu_probing"),
        initial_window: windows.send,
        initial_receive_window: windows.receive,
    }
}

fn interface_to(peer: IpAddr) -> Option<RecordedInterface> {
    let route = netlink::route_to(peer.to_canonical()).ok()?;
    Some(RecordedInterface {
        name: route.ifname,
        kind: route.kind,
        mtu_bytes: Some(route.mtu_bytes),
        speed_bps: route.speed_bps,
        shaper_bps: route.tbf_rate_bps,
        vlan_tags: Some(route.vlan_tags),
        lower: route.lower,
    })
}

/// Measures how much processor time the host of a virtual machine takes from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StolenTime {
    begin: Option<ProcessorTime>,
}

impl StolenTime {
    /// Starts the measurement of stolen time.
    pub(crate) fn start_measuring() -> Self {
        Self { begin: host::processor_time() }
    }

    /// Stolen over wanted time since the start; `None` where the kernel tells nothing, or too
    /// little ran to tell.
    pub(crate) fn stolen_ratio(self) -> Option<f64> {
        stolen_ratio_between(self.begin?, host::processor_time()?)
    }
}

fn stolen_ratio_between(begin: ProcessorTime, end: ProcessorTime) -> Option<f64> {
    let busy = end.busy_ticks.saturating_sub(begin.busy_ticks);
    let stolen = end.stolen_ticks.saturating_sub(begin.stolen_ticks);
    let wanted = busy + stolen;
    (wanted >= WANTED_TICKS_MIN).then(|| stolen as f64 / wanted as f64)
}

/// The caveat of an end whose processors were taken away for too long.
pub(crate) fn stolen_time(end: &MeasurementEnd) -> Option<Caveat> {
    let ratio = end.stolen_ratio.filter(|ratio| *ratio > STOLEN_RATIO)?;
    Some(Caveat::new(
        CaveatCode::StolenTime,
        format!(
            "the {} end is a virtual machine whose hypervisor took {:.1} % of its CPU time (steal)",
            end.role,
            ratio * 100.0
        ),
        "rates are too low and delays have long tails: repeat, or use a physical host",
    ))
}

/// From this on a measuring thread's mean wait for a core, each time that it had something to do,
/// is the host's: threads that sleep between probes wait for some microseconds on a host at rest,
/// and waited for 470 to 680 µs with 16 others on two cores (Linux 6.18).
const TURN_WAIT_MEAN: Duration = Duration::from_micros(200);
/// Fewer turns make no mean.
const TURNS_MIN: u64 = 10;

/// Measures how long the calling thread waits for a core each time that it has something to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreWaits {
    begin: Option<RunQueueWaits>,
}

impl CoreWaits {
    /// Starts the measurement of waiting times.
    pub(crate) fn start_measuring() -> Self {
        Self { begin: thread::current_run_queue_waits() }
    }

    /// The caveat of a thread that waited for too long since the start.
    pub(crate) fn caveat(self) -> Option<Caveat> {
        core_waits(self.begin?, thread::current_run_queue_waits()?)
    }
}

fn core_waits(begin: RunQueueWaits, end: RunQueueWaits) -> Option<Caveat> {
    let turns = end.turns.saturating_sub(begin.turns);
    if turns < TURNS_MIN {
        return None;
    }
    let mean = Duration::from_nanos(end.total_ns.saturating_sub(begin.total_ns) / turns);
    (mean >= TURN_WAIT_MEAN).then(|| {
        let ms = mean.as_secs_f64() * 1e3;
        Caveat::new(
            CaveatCode::RunQueueWait,
            format!(
                "this host was busy: the measuring thread waited {ms:.1} ms for a core, on average"
            ),
            "stop the other work on this host, or give the measurement a core of its own",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor_ticks(busy_ticks: u64, stolen_ticks: u64) -> ProcessorTime {
        ProcessorTime { busy_ticks, stolen_ticks, ..ProcessorTime::default() }
    }

    #[test]
    fn stolen_time_is_held_against_the_time_that_was_wanted() {
        // 3 of 97 + 3 ticks; idle time is no part of it.
        assert_eq!(
            stolen_ratio_between(processor_ticks(1000, 10), processor_ticks(1097, 13)),
            Some(0.03)
        );
        assert_eq!(
            stolen_ratio_between(processor_ticks(1000, 10), processor_ticks(1100, 10)),
            Some(0.0)
        );
    }

    #[test]
    fn too_little_work_tells_nothing_of_stolen_time() {
        // One of 49 ticks would be 2 % by the rounding of a tick alone.
        assert_eq!(stolen_ratio_between(processor_ticks(0, 0), processor_ticks(48, 1)), None);
        assert_eq!(stolen_ratio_between(processor_ticks(0, 0), processor_ticks(49, 1)), Some(0.02));
        assert_eq!(
            stolen_ratio_between(processor_ticks(9, 9), processor_ticks(0, 0)),
            None,
            "a counter that went back"
        );
    }

    #[test]
    fn a_busy_host_is_one_whose_threads_wait_a_fifth_of_a_millisecond() {
        let waits = |total_us: u64, turns| RunQueueWaits { total_ns: total_us * 1000, turns };
        let since = |total_us: u64, turns: u64| {
            core_waits(waits(500, 30), waits(500 + total_us, 30 + turns))
        };
        // As on a host at rest, and with 16 others on two cores.
        assert_eq!(since(800, 40), None);
        let caveat = since(27_296, 40).expect("0.68 ms each time");
        assert_eq!(caveat.code, CaveatCode::RunQueueWait);
        assert!(caveat.detail.contains("waited 0.7 ms for a core"), "{caveat}");
        assert_eq!(since(9 * 3000, 9), None, "too few to tell");
    }

    #[test]
    fn the_caveat_begins_above_two_percent() {
        let end = |stolen_ratio| MeasurementEnd {
            role: "remote".to_owned(),
            stolen_ratio,
            ..MeasurementEnd::default()
        };
        assert_eq!(stolen_time(&end(None)), None);
        assert_eq!(stolen_time(&end(Some(0.02))), None);
        let caveat = stolen_time(&end(Some(0.054))).expect("more than a fiftieth");
        assert_eq!(caveat.code, CaveatCode::StolenTime);
        assert!(caveat.detail.contains("remote end") && caveat.detail.contains("5.4 %"));
    }
}
