//! What an emulator did: the ground truth of a path, and how well it kept its own schedule.

use std::time::Duration;

use linerate_core::path::{Backlog, PathLossCause};
use linerate_core::record::{Failure, PathStops};
use linerate_core::stats::LogHistogram;

use super::stops::Stops;

/// Above this share of its time in stops the emulator was not the path that was asked for. A flow
/// that its window bounds sends nothing while its acknowledgements are held up, so a share of s
/// costs it s of its goodput; one that keeps a queue before a link loses less. Half of a percent
/// is well below what repetitions of one test differ by.
pub const STOPPED_SHARE_MAX: f64 = 0.005;
/// A single stop as long as this is too long however long the run: Linux sends again after 200 ms
/// without an acknowledgement (TCP_RTO_MIN in include/net/tcp.h) and starts over slowly.
pub const STOP_MAX: Duration = Duration::from_millis(200);

/// Above this share of its time at work a thread has no time left: the rate is its own.
const BUSY_MAX: f64 = 0.95;

/// The counters of one direction. Packets are IP packets, segments of super-packets each for
/// itself; bytes are those of IP packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Packets that came from the host.
    pub taken_packets: u64,
    /// Bytes of those packets.
    pub taken_bytes: u64,
    /// Reads: a super-packet counts once.
    pub reads: u64,
    /// Packets handed to the other host; copies that the path made count.
    pub delivered_packets: u64,
    /// Bytes of those packets.
    pub delivered_bytes: u64,
    /// Writes: a run of segments counts once.
    pub writes: u64,
    /// Packets that the path made of others, which it sent as well.
    pub copied_packets: u64,
    /// Packets that the path lost, by cause. Cross traffic is not among them.
    pub lost: Vec<(PathLossCause, u64)>,
    /// Packets that the path damaged and delivered.
    pub corrupted_packets: u64,
    /// Packets that the path marked (Congestion Experienced).
    pub marked_packets: u64,
    /// Messages to senders whose packets were longer than the path's MTU.
    pub icmp_messages: u64,
    /// Packets that the other host did not take: its link was down.
    pub refused_packets: u64,
    /// Packets dropped because the path held more than was planned for. Not part of the model.
    pub no_room_packets: u64,
    /// Copies whose bytes were no longer there. Not part of the model.
    pub orphaned_packets: u64,
    /// Packets handed over later than due by more than the quantum and
    /// [`LATE`](super::stops::LATE), with the time that they waited to be read.
    pub late_packets: u64,
    /// The largest lateness of a packet, in ns.
    pub lateness_max_ns: u64,
    /// Packets and bytes that wait in each element, in the order of the path.
    pub backlog: Vec<Backlog>,
    /// Packets and bytes that wait in queues: all of `backlog` but those that travel.
    pub queued: Backlog,
}

impl DirectionCounters {
    /// Packets lost to one cause.
    pub fn lost_to(&self, cause: PathLossCause) -> u64 {
        self.lost.iter().find(|(one, _)| *one == cause).map_or(0, |(_, count)| *count)
    }

    /// Packets lost to all causes.
    pub fn lost_packets(&self) -> u64 {
        self.lost.iter().map(|(_, count)| count).sum()
    }

    pub(super) fn count_lost(&mut self, cause: PathLossCause) {
        match self.lost.iter_mut().find(|(one, _)| *one == cause) {
            Some((_, count)) => *count += 1,
            None => self.lost.push((cause, 1)),
        }
    }
}

/// Both directions: from the first end to the second, and back.
pub type Counters = [DirectionCounters; 2];

/// The report of an emulator that has ended.
#[derive(Debug)]
pub struct EmulatorReport {
    /// From the first end to the second, and back.
    pub directions: [DirectionReport; 2],
    /// Times in which it stood still.
    pub stops: Stops,
    /// Time that its thread was at work, and neither slept nor looked out for what is due.
    pub busy: Duration,
    /// How long it ran.
    pub ran: Duration,
    /// Processor time of its thread; absent where the kernel does not tell.
    pub cpu: Option<Duration>,
    /// Time that its thread was ready to run and waited for a processor.
    pub run_queue_wait: Option<Duration>,
    /// True where its thread had real-time priority.
    pub real_time: bool,
    /// True where its memory was locked.
    pub locked: bool,
    /// Memory that it was allowed to take, at most.
    pub memory_bytes: u64,
    /// Why it ended, when nobody asked it to.
    pub failure: Option<Failure>,
}

/// One direction, with the times of its packets.
#[derive(Debug)]
pub struct DirectionReport {
    /// The counters of the direction.
    pub counters: DirectionCounters,
    /// Time at which each packet was handed to the other host, less the time at which it was due,
    /// and the time that it waited to be read.
    pub lateness_ns: LogHistogram,
    /// Packets due within this of each other left together.
    pub quantum: Duration,
    /// Packets that the host dropped before the emulator read them, because it read too slowly;
    /// absent when the device is gone.
    pub unread_packets: Option<u64>,
}

impl EmulatorReport {
    /// Reasons for which its traffic was not the traffic of the path that was asked for, one line
    /// each. Empty: the path was what it was asked to be.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self.failure.iter().map(ToString::to_string).collect();
        faults.extend(fell_behind(&self.stops.within(self.ran)));
        for (name, direction) in ["forward", "backward"].iter().zip(&self.directions) {
            faults.extend(direction.faults().map(|fault| format!("{name}: {fault}")));
        }
        faults
    }
}

impl DirectionReport {
    /// Packets dropped that the plan would have carried, a line for each reason. One is enough to
    /// make a sender halve its rate.
    pub fn faults(&self) -> impl Iterator<Item = String> + use<> {
        let counters = &self.counters;
        let counted = [
            (counters.no_room_packets, "packets were dropped: the path held more than planned"),
            (counters.orphaned_packets, "copies of packets were lost: their bytes were gone"),
            (counters.refused_packets, "packets were not taken by the host: its link was down"),
            (
                self.unread_packets.unwrap_or(0),
                "packets were dropped by the host: the emulator did not read them in time",
            ),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        counted.map(|(count, what)| format!("{count} {what}"))
    }
}

/// Why stops make a run invalid; none when they are few and short. The link's clock goes on in a
/// stop and what was due leaves after it, so the rate itself is never off by more than the share.
pub(super) fn fell_behind(stops: &PathStops) -> Option<String> {
    let ms = |ns: u64| ns as f64 / 1e6;
    if u128::from(stops.longest_ns) >= STOP_MAX.as_nanos() {
        let (longest, most) = (ms(stops.longest_ns), STOP_MAX.as_millis());
        return Some(format!(
            "the emulator stalled for {longest:.0} ms at once; senders take {most} ms for a loss"
        ));
    }
    (stops.share > STOPPED_SHARE_MAX).then(|| {
        format!(
            "the emulator stalled for {:.1} ms, {:.2} % of the time (limit {} %), {} times, at \
             most {:.1} ms",
            ms(stops.total_ns),
            stops.share * 100.0,
            STOPPED_SHARE_MAX * 100.0,
            stops.count,
            ms(stops.longest_ns),
        )
    })
}

/// Why a path that was at work for a share of its time was not the planned one; none where its
/// plan has no rate and it is as fast as the machine.
pub(super) fn too_slow(busy_ratio: f64, has_rate: bool) -> Option<String> {
    (has_rate && busy_ratio > BUSY_MAX).then(|| {
        let percent = busy_ratio * 100.0;
        format!(
            "the emulator was at work {percent:.0} % of the time: this host cannot hold the rate"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulator_without_time_left_does_not_hold_a_rate_that_was_asked_for() {
        assert_eq!(too_slow(0.99, false), None);
        assert_eq!(too_slow(0.95, true), None);
        let line = "the emulator was at work 98 % of the time: this host cannot hold the rate";
        assert_eq!(too_slow(0.98, true).as_deref(), Some(line));
    }

    fn path_stops(count: u64, total_ms: u64, longest_ms: u64, span_ms: u64) -> PathStops {
        PathStops {
            count,
            total_ns: total_ms * 1_000_000,
            longest_ns: longest_ms * 1_000_000,
            share: total_ms as f64 / span_ms as f64,
            conversed_ns: span_ms * 1_000_000,
        }
    }

    #[test]
    fn half_a_percent_of_time_is_too_much_and_a_short_stop_is_not() {
        assert_eq!(fell_behind(&path_stops(0, 0, 0, 10_000)), None);
        // One stop of 12 ms, and 50 ms of them, of 10 s.
        assert_eq!(fell_behind(&path_stops(1, 12, 12, 10_000)), None);
        assert_eq!(fell_behind(&path_stops(5, 50, 20, 10_000)), None);
        let line = fell_behind(&path_stops(5, 51, 20, 10_000)).expect("0.51 %");
        let begin = "the emulator stalled for 51.0 ms, 0.51 % of the time (limit 0.5 %)";
        assert!(line.starts_with(begin), "{line}");
        // A transfer of 100 ms is spoilt by what a minute hardly sees.
        assert!(fell_behind(&path_stops(1, 12, 12, 100)).is_some());
    }

    #[test]
    fn a_stop_that_makes_senders_time_out_is_too_long_for_any_run() {
        assert_eq!(fell_behind(&path_stops(1, 199, 199, 60_000)), None);
        let line = fell_behind(&path_stops(1, 200, 200, 60_000)).expect("as long as the timer");
        assert!(line.contains("200 ms at once"), "{line}");
    }

    #[test]
    fn a_single_packet_dropped_outside_of_the_plan_is_a_fault_and_a_late_one_is_none() {
        let report = |counters, unread| DirectionReport {
            counters,
            lateness_ns: LogHistogram::default(),
            quantum: Duration::ZERO,
            unread_packets: Some(unread),
        };
        let late = DirectionCounters { late_packets: 1, ..DirectionCounters::default() };
        assert_eq!(report(late, 0).faults().count(), 0);
        assert_eq!(report(DirectionCounters::default(), 1).faults().count(), 1);
        let full = DirectionCounters { no_room_packets: 1, ..DirectionCounters::default() };
        assert_eq!(report(full, 0).faults().count(), 1);
    }
}
