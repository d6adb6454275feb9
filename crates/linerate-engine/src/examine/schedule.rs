//! How an examination spends its time, from the round trip alone: probes that fit into a second for
//! each size, TCP tests that begin to count when slow start is over, and what a test costs in all.

use std::time::Duration;

use linerate_core::record::{Finish, PingMode, PingPlan, TcpPlan, TcpTest};

use crate::flow::probes::IDLE_INTERVAL_NS;
use crate::flow::start_up::start_up_ns;

const MS: u64 = 1_000_000;

/// Time that the probes of one size are spread over.
const SIZE_NS: u64 = 400 * MS;
/// Probes that overlap leave no closer than this: 1488 bytes in 5 ms are 2.4 Mbit/s.
const INTERVAL_NS_MIN: u64 = 5 * MS;
/// Fewest probes of a size, however slow the path.
const PROBES_MIN: u64 = 10;
/// A probe counts as lost after four round trips, but never before this.
const TIMEOUT_NS_MIN: u64 = 500 * MS;

/// Windows of the kernel's own choice grow up to this: the default of net.ipv4.tcp_rmem's maximum.
const AUTOTUNED_BYTES: u64 = 6 << 20;
/// The least time that the start of TCP takes: the queue of a near bottleneck fills and empties
/// once.
const START_UP_NS_MIN: u64 = 100 * MS;
/// Measured time of a TCP test: this, or so many round trips where they take longer.
const MEASURED_NS: u64 = 1_000 * MS;
const MEASURED_ROUND_TRIPS: u64 = 5;
/// The shortest time that counts where there is no more.
const MEASURED_NS_MIN: u64 = 200 * MS;
const MEASURED_ROUND_TRIPS_MIN: u64 = 3;
/// The longest time of a test that has what is left.
const MEASURED_NS_MAX: u64 = 10_000 * MS;
/// Samples of that: as many fit into a chart.
const SAMPLES: u64 = 200;
const SAMPLE_NS_MIN: u64 = 20 * MS;
/// Round trips of a test beside its streams: two connections with their hellos, request, start,
/// what is on the way at the end, result; and up to two more of a queue that a start has filled
/// (8.8 in all were measured over 300 ms).
const ROUND_TRIPS: u64 = 9;
/// The time that both hosts need beside the round trips.
const HOSTS_NS: u64 = 60 * MS;

/// The round trip where nothing tells it.
const RTT_NS_UNKNOWN: u64 = 100 * MS;

/// A first look at a path: the shortest round trips of a small and a large probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FirstRtts {
    pub(super) small_ns: u64,
    pub(super) large_ns: u64,
}

impl Default for FirstRtts {
    fn default() -> Self {
        Self { small_ns: RTT_NS_UNKNOWN, large_ns: RTT_NS_UNKNOWN }
    }
}

impl FirstRtts {
    /// Probes of each size for 0.4 s, at most `count`: stop and wait where that gives more
    /// of them, else one in each interval, overlapping. An interval is twice the time that the
    /// bytes of the large probe take on the links there and back, so no probe queues behind
    /// another.
    pub(super) fn probes(self, plan: PingPlan, count: u64) -> PingPlan {
        let serialization_ns = self.large_ns.saturating_sub(self.small_ns);
        let interval_ns = (2 * serialization_ns).clamp(INTERVAL_NS_MIN, SIZE_NS / PROBES_MIN);
        let waiting = SIZE_NS / self.large_ns.max(1);
        let overlapping = SIZE_NS / interval_ns;
        let (mode, fit) = match waiting >= overlapping {
            true => (PingMode::Flood, waiting),
            false => (PingMode::Paced, overlapping),
        };
        let timeout_ns = (4 * self.large_ns).max(TIMEOUT_NS_MIN);
        PingPlan {
            mode,
            interval_ns,
            count: Some(count.min(fit.max(PROBES_MIN))),
            timeout_ns,
            // Probes that are lost cost those that stop and wait their time-out.
            deadline_ns: Some(SIZE_NS + SIZE_NS / 2 + timeout_ns),
            ..plan
        }
    }

    /// Time at the start of a test that does not count, and time that does.
    pub(super) fn omitted_and_measured_ns(self, window_bytes: Option<u64>) -> (u64, u64) {
        let omit_ns = start_up_ns(self.small_ns, window_bytes.unwrap_or(AUTOTUNED_BYTES));
        let measured_ns = MEASURED_NS.max(MEASURED_ROUND_TRIPS * self.small_ns);
        (omit_ns.max(START_UP_NS_MIN), measured_ns)
    }

    /// The time that the probes of so many sizes take.
    pub(super) fn ping_cost(self, sizes: usize) -> Duration {
        Duration::from_nanos(SIZE_NS + self.large_ns) * sizes as u32
    }

    /// A test of one direction that takes no longer than `room` in all, where that leaves anything
    /// to measure: slow start and what counts give way alike, the latter down to three round trips.
    pub(super) fn shortened(self, plan: TcpPlan, room: Duration) -> TcpPlan {
        let Finish::TimeNs(measured_ns) = plan.test.finish else { return plan };
        let whole = plan.test.omit_ns + measured_ns;
        let beside = self
            .timed_test_duration(&plan, measured_ns)
            .saturating_sub(Duration::from_nanos(whole));
        let left = saturating_nanos(room.saturating_sub(beside));
        if left >= whole {
            return plan;
        }
        let counts = (measured_ns as f64 * left as f64 / whole as f64) as u64;
        let measured_ns = counts.max(self.measured_min());
        match left.checked_sub(measured_ns) {
            None => plan,
            Some(omit_ns) => of_spans(plan, omit_ns, measured_ns),
        }
    }

    /// The least room of a test like this one.
    pub(super) fn shortest(self, plan: &TcpPlan) -> Duration {
        let Finish::TimeNs(measured_ns) = plan.test.finish else { return Duration::ZERO };
        let least = self.measured_min().min(measured_ns);
        self.timed_test_duration(plan, least)
            .saturating_sub(Duration::from_nanos(plan.test.omit_ns))
    }

    fn measured_min(self) -> u64 {
        MEASURED_NS_MIN.max(MEASURED_ROUND_TRIPS_MIN * self.small_ns)
    }

    /// The same test for as long as `room` lasts, sampled often; none where that is not twice as
    /// long as it is.
    pub(super) fn lengthened(self, plan: &TcpPlan, room: Duration) -> Option<TcpPlan> {
        let Finish::TimeNs(measured_ns) = plan.test.finish else { return None };
        let beside = self.timed_test_duration(plan, 0);
        let left = saturating_nanos(room.saturating_sub(beside)).min(MEASURED_NS_MAX);
        let mut plan = of_spans(plan.clone(), plan.test.omit_ns, left);
        plan.test.interval_ns = (left / SAMPLES).max(SAMPLE_NS_MIN);
        (left >= 2 * measured_ns).then_some(plan)
    }

    /// The time that a test by time takes in all, its probes at rest included.
    pub(super) fn timed_test_duration(self, plan: &TcpPlan, measured_ns: u64) -> Duration {
        let idle = plan.server.probes.as_ref().map_or(0, |plan| u64::from(plan.idle_count));
        let beside = ROUND_TRIPS * self.small_ns + HOSTS_NS + idle * IDLE_INTERVAL_NS;
        Duration::from_nanos(plan.test.omit_ns + measured_ns + beside)
    }
}

fn saturating_nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn of_spans(plan: TcpPlan, omit_ns: u64, measured_ns: u64) -> TcpPlan {
    let finish = Finish::TimeNs(measured_ns);
    TcpPlan { test: TcpTest { omit_ns, finish, ..plan.test }, ..plan }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_gives_way_to_its_room_and_takes_what_is_left() {
        // 300 ms: 3.3 s of slow start, 1.5 s that count, 9 round trips and 60 ms beside.
        let (far, ms) = (rtts_from_ms(300, 300), Duration::from_millis);
        let plan = of_spans(TcpPlan::default(), 3_300 * MS, 1_500 * MS);
        assert_eq!(far.timed_test_duration(&plan, 1_500 * MS), ms(7_560));
        let spans = |plan: &TcpPlan| (plan.test.omit_ns, plan.test.finish);
        assert_eq!(spans(&far.shortened(plan.clone(), ms(7_600))), spans(&plan));
        // 5.96 s are 3.2 s beside those 2.76 s: two thirds of 4.8.
        let short = far.shortened(plan.clone(), ms(5_960));
        assert_eq!(spans(&short), (2_200 * MS, Finish::TimeNs(1_000 * MS)));
        // Three round trips that count are the least.
        let short = far.shortened(plan.clone(), ms(4_760));
        assert_eq!(spans(&short), (1_100 * MS, Finish::TimeNs(900 * MS)));
        assert_eq!(far.shortest(&plan), ms(2_760 + 900));
        assert_eq!(spans(&far.shortened(plan.clone(), ms(3_650))), spans(&plan));
        let long = far.lengthened(&plan, ms(11_060)).expect("5 s count");
        assert_eq!(spans(&long), (3_300 * MS, Finish::TimeNs(5_000 * MS)));
        assert_eq!(long.test.interval_ns, 25 * MS);
        assert_eq!(far.lengthened(&plan, ms(9_000)), None);
    }

    fn rtts_from_ms(small_ms: u64, large_ms: u64) -> FirstRtts {
        FirstRtts { small_ns: small_ms * MS, large_ns: large_ms * MS }
    }

    #[test]
    fn probes_stop_and_wait_on_a_near_path_and_overlap_on_a_far_one() {
        let probes = |first: FirstRtts| {
            let plan = first.probes(PingPlan::default(), 1000);
            (plan.mode, plan.count, plan.interval_ns / MS)
        };
        // 0.4 s / 100 us are 4,000: the count is the limit.
        let near = FirstRtts { small_ns: 50_000, large_ns: 100_000 };
        assert_eq!(probes(near).0, PingMode::Flood);
        assert_eq!(probes(near).1, Some(1000));
        // 0.4 s / 4 ms are 100, more than 80 at 5 ms.
        assert_eq!(probes(rtts_from_ms(4, 4)), (PingMode::Flood, Some(100), 5));
        assert_eq!(probes(rtts_from_ms(40, 40)), (PingMode::Paced, Some(80), 5));
        assert_eq!(probes(rtts_from_ms(300, 300)), (PingMode::Paced, Some(80), 5));
        // 1404 more bytes that take 15 ms there and back: 30 ms apart nothing queues.
        assert_eq!(probes(rtts_from_ms(100, 115)), (PingMode::Paced, Some(13), 30));
        // At 64 kbit/s they take 0.35 s: ten probes all the same, stopping.
        assert_eq!(probes(rtts_from_ms(30, 380)), (PingMode::Paced, Some(10), 40));
    }

    #[test]
    fn every_size_has_an_end_whatever_is_lost() {
        let plan = rtts_from_ms(300, 300).probes(PingPlan::default(), 1000);
        // 0.6 s and a time-out of four round trips.
        assert_eq!(plan.deadline_ns, Some(1_800 * MS));
    }

    #[test]
    fn a_test_counts_when_slow_start_is_over() {
        // 6 MiB are 434 initial windows: 9 doublings, and 2 round trips.
        assert_eq!(rtts_from_ms(40, 40).omitted_and_measured_ns(None), (440 * MS, 1_000 * MS));
        assert_eq!(rtts_from_ms(300, 300).omitted_and_measured_ns(None), (3_300 * MS, 1_500 * MS));
        // 64 KiB are 4.5 initial windows: 3 doublings, and 2.
        assert_eq!(
            rtts_from_ms(300, 300).omitted_and_measured_ns(Some(65_536)),
            (1_500 * MS, 1_500 * MS)
        );
        assert_eq!(rtts_from_ms(0, 0).omitted_and_measured_ns(None), (100 * MS, 1_000 * MS));
    }
}
