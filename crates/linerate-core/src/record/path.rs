//! The emulated paths that a measurement went over: what was asked of them and what they really
//! did, counted by the emulator itself while the measurement was under way.
//!
//! Left out: what the packets were. Times are those of the measurement's own host.

use serde::{Deserialize, Serialize};

use super::{Direction, Failure, Tool};
use crate::record::PathPlan;
use crate::time::WallTime;

/// The most points of a queue series; beyond it two intervals become one.
pub const QUEUE_POINTS_MAX: usize = 4096;

/// The schema that [`PathRun`] is written in.
pub const PATH_SCHEMA: &str = "linerate.path/1";

/// A path that `linerate path run` held, from its start to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathRun {
    /// Always [`PATH_SCHEMA`] when written by this version.
    pub schema: String,
    /// The program that ran the path.
    pub tool: Tool,
    /// Civil time at the start, by the local clock.
    pub started_at: WallTime,
    /// Devices at the ends: `path0`, `/run/netns/b:path1`.
    pub ends: Vec<String>,
    /// The path with its counters.
    pub path: EmulatedPath,
    /// True when its thread had real-time priority.
    pub real_time: bool,
    /// True when its memory was locked.
    pub locked: bool,
    /// CPU time of its thread; null where the kernel does not report it.
    pub cpu_ns: Option<u64>,
    /// Time that its thread was ready to run and waited for a CPU.
    pub run_queue_wait_ns: Option<u64>,
    /// The failure that ended it before it was stopped.
    pub failure: Option<Failure>,
}

/// One emulated path, over the span of one measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EmulatedPath {
    /// Place of the path: `r1 eth1 - r2 eth0`.
    pub name: String,
    /// Facility that carried the packets: `tun` for IP packets, `tap` for Ethernet frames, `netem`
    /// for the kernel's, which says less: no reasons of losses, no schedule.
    pub datapath: String,
    /// The plan of the path.
    pub plan: PathPlan,
    /// Seed of its random decisions.
    pub seed: u64,
    /// Largest IP packet of its devices.
    pub mtu_bytes: u32,
    /// Memory that it may take at most.
    pub memory_bytes: u64,
    /// Time that was watched.
    pub span_ns: u64,
    /// Times in which the emulator stood still.
    #[serde(default)]
    pub stops: PathStops,
    /// Share of the time that the emulator's thread was at work; null for netem.
    #[serde(default)]
    pub busy_ratio: Option<f64>,
    /// Time that the emulator's thread was ready to run and waited for a CPU of this kernel; null
    /// where the kernel does not tell.
    #[serde(default)]
    pub run_queue_wait_ns: Option<u64>,
    /// Share of the time that CPUs wanted to run in which the host of a virtual machine took them
    /// away; null where the kernel does not tell, or too little ran to tell.
    #[serde(default)]
    pub stolen_ratio: Option<f64>,
    /// True when the emulator was not the path of the plan, because it stood still for too long or
    /// dropped packets that the plan would have carried: measurements over it are invalid.
    pub late: bool,
    /// The reasons for `late`, one line each; empty when the emulator kept to its plan.
    pub faults: Vec<String>,
    /// Results of the directions: forward, then backward.
    pub directions: Vec<PathDirection>,
}

/// Times in which an emulator did nothing, though packets were due or waited to be read: its
/// senders had nothing to answer to meanwhile, which no later haste makes good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathStops {
    /// Number of stops, each longer than 1 ms.
    pub count: u64,
    /// Length of all stops together.
    pub total_ns: u64,
    /// Length of the longest stop.
    pub longest_ns: u64,
    /// Share of the stops in `conversed_ns`: the most of a rate that they can have cost.
    pub share: f64,
    /// Time that was watched in which packets of programs came, each at most 1 s after another;
    /// all that was watched when none came. Absent where nothing was watched, and in older
    /// records, whose `share` is of all that was watched.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conversed_ns: u64,
}

/// Packets, losses and lateness of one direction of a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathDirection {
    /// True for the plan's backward direction.
    pub backward: bool,
    /// The measurement's direction whose data it carries; null where there is no measurement.
    pub direction: Option<Direction>,
    /// IP packets received from the host; segments of super-packets each for itself.
    pub taken_packets: u64,
    /// Bytes of those packets.
    pub taken_bytes: u64,
    /// IP packets handed to the other host, copies that the path made among them.
    pub delivered_packets: u64,
    /// Bytes of those packets.
    pub delivered_bytes: u64,
    /// Packets that the path lost, by cause; cross traffic is not among them.
    pub lost: Vec<PathLoss>,
    /// Packets of which the path made one more.
    pub copied_packets: u64,
    /// Packets that the path damaged and delivered.
    pub corrupted_packets: u64,
    /// Packets that the path marked (Congestion Experienced).
    pub marked_packets: u64,
    /// ICMP messages to senders whose packets were longer than the path's MTU.
    #[serde(default)]
    pub icmp_messages: u64,
    /// Packets dropped outside of the plan: no room, not read in time, not taken by the host.
    pub unplanned_packets: u64,
    /// Packets forwarded later than due by more than `late_threshold_ns`; time that they waited to
    /// be read counts.
    pub late_packets: u64,
    /// Lateness above which a packet counts as late.
    pub late_threshold_ns: u64,
    /// Median lateness of forwarded packets, the time that they waited to be read included; null
    /// when there were none.
    pub lateness_p50_ns: Option<u64>,
    /// 99th percentile of the same.
    pub lateness_p99_ns: Option<u64>,
    /// Largest of the same.
    pub lateness_max_ns: Option<u64>,
    /// Bytes and packets that waited in the path's queues.
    pub queue: QueueSeries,
}

/// Packets lost to one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathLoss {
    /// `queue_full`, `queue_early`, `policed`, `random`, `damaged`, `too_long`, `outage`, or
    /// `untold` by netem.
    pub cause: String,
    /// Number of packets lost.
    pub packets: u64,
}

/// The largest backlog of each interval, from the begin of the measurement. It is looked at many
/// times an interval, not at each packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueSeries {
    /// Length of an interval.
    pub interval_ns: u64,
    /// Most packets that waited in each interval.
    pub packets: Vec<u64>,
    /// Bytes of IP packets that waited.
    pub bytes: Vec<u64>,
}

/// True for a count of 0, which older records do not have.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
pub(super) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl EmulatedPath {
    /// The direction that carries a measurement's data one way.
    pub fn carrying(&self, direction: Direction) -> Option<&PathDirection> {
        self.directions.iter().find(|one| one.direction == Some(direction))
    }

    /// Late packets and stops of the emulator, in a line; none when it kept to its schedule. Says
    /// nothing of whether that was too much.
    pub fn timing_slips(&self) -> Option<String> {
        let late: u64 = self.directions.iter().map(|one| one.late_packets).sum();
        let most = self.directions.iter().filter_map(|one| one.lateness_max_ns).max();
        let mut parts = Vec::new();
        if late > 0 {
            let packets = if late == 1 { "packet" } else { "packets" };
            parts.push(format!(
                "{late} {packets} late by up to {:.1} ms",
                nanos_to_ms(most.unwrap_or(0))
            ));
        }
        let PathStops { count, total_ns, longest_ns, share, .. } = self.stops;
        if count > 0 {
            let stood =
                format!("stalled for {:.1} ms ({:.2} %)", nanos_to_ms(total_ns), share * 100.0);
            parts.push(match count {
                1 => format!("{stood} at once"),
                _ => {
                    format!("{stood} in {count} stops of at most {:.1} ms", nanos_to_ms(longest_ns))
                }
            });
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

const fn nanos_to_ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

impl PathDirection {
    /// Packets lost to all causes of the plan.
    pub fn lost_packets(&self) -> u64 {
        self.lost.iter().map(|loss| loss.packets).sum()
    }
}

impl QueueSeries {
    /// A series whose intervals have this length at first.
    pub const fn new(interval_ns: u64) -> Self {
        Self { interval_ns, packets: Vec::new(), bytes: Vec::new() }
    }

    /// Adds a backlog at a time since the begin. Intervals without a sample repeat the last one.
    pub fn add_backlog(&mut self, at_ns: u64, packets: u64, bytes: u64) {
        while at_ns / self.interval_ns.max(1) >= QUEUE_POINTS_MAX as u64 {
            self.halve_resolution();
        }
        let place = at_ns / self.interval_ns.max(1);
        let place = usize::try_from(place).unwrap_or(QUEUE_POINTS_MAX);
        for (series, value) in [(&mut self.packets, packets), (&mut self.bytes, bytes)] {
            let last = series.last().copied().unwrap_or(0);
            if series.len() <= place {
                series.resize(place, last);
                series.push(value);
            }
            series[place] = series[place].max(value);
        }
    }

    fn halve_resolution(&mut self) {
        self.interval_ns = self.interval_ns.max(1) * 2;
        for series in [&mut self.packets, &mut self.bytes] {
            let pairs = series.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0));
            *series = pairs.collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_one_line_and_a_path_on_time_has_none() {
        assert_eq!(EmulatedPath::default().timing_slips(), None);
        let mut path = EmulatedPath::default();
        let late = |late_packets, most| PathDirection {
            late_packets,
            lateness_max_ns: Some(most),
            ..PathDirection::default()
        };
        path.directions = vec![late(1, 2_000_000), late(0, 12_340_000)];
        let stops = PathStops {
            count: 1,
            total_ns: 12_000_000,
            longest_ns: 12_000_000,
            share: 0.0012,
            ..PathStops::default()
        };
        path.stops = stops;
        let line = "1 packet late by up to 12.3 ms, stalled for 12.0 ms (0.12 %) at once";
        assert_eq!(path.timing_slips().as_deref(), Some(line));
        path.directions.clear();
        path.stops = PathStops { count: 3, longest_ns: 7_000_000, ..stops };
        let line = "stalled for 12.0 ms (0.12 %) in 3 stops of at most 7.0 ms";
        assert_eq!(path.timing_slips().as_deref(), Some(line));
    }

    #[test]
    fn a_queue_series_keeps_the_largest_of_each_interval() {
        let mut queue = QueueSeries::new(10);
        for (at, packets) in [(0, 3), (9, 5), (9, 1), (10, 2), (35, 7)] {
            queue.add_backlog(at, packets, packets * 100);
        }
        // Nobody looked between 20 and 30: as it was.
        assert_eq!(queue.packets, [5, 2, 2, 7]);
        assert_eq!(queue.bytes, [500, 200, 200, 700]);
    }

    #[test]
    fn a_queue_series_never_grows_beyond_its_most_points_and_keeps_its_peaks() {
        let mut queue = QueueSeries::new(1);
        for at in 0..100_000 {
            queue.add_backlog(at, u64::from(at == 50_001), 0);
        }
        // 2^5 x 4096 = 131,072 is the first that holds 100,000: 3125 intervals of 32.
        assert_eq!((queue.interval_ns, queue.packets.len()), (32, 3125));
        assert_eq!(queue.packets.iter().position(|&one| one == 1), Some(50_001 / 32));
    }
}
