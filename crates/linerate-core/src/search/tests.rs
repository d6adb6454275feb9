//! The adjustment against RFC 9097 appendix A traced by hand, the meter and the join by hand, and
//! whole searches over emulated paths in virtual time against closed forms.

use super::*;
use crate::path::{Ecn, Outlet, Packet, Pipeline};
use crate::record::{
    BucketPlan, CapacitySearch, Direction, PathPlan, SearchPlan, SearchSpan, SearchStep,
    SearchTrial,
};
use crate::time::MonoTime;
use crate::units::BitRate;
use SearchStep::{Back, Down, Fast, Hold, Up};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

#[test]
fn rows_have_the_rates_of_table_1() {
    let table = [
        (0, 500_000),
        (1, 1_000_000),
        (2, 2_000_000),
        (999, 999_000_000),
        (1000, 1_000_000_000),
        (1001, 1_100_000_000),
        (1090, 10_000_000_000),
        (1091, 11_000_000_000),
        (1180, 100_000_000_000),
        (u16::MAX, 100_000_000_000),
    ];
    for (row, bps) in table {
        assert_eq!(rate_of_row(row).bits_per_sec(), bps, "row {row}");
    }
    for (limit, row) in [(1, 0), (500_000, 0), (999_999, 0), (50_500_000, 50), (u64::MAX, 1180)] {
        assert_eq!(last_row_within(BitRate::from_bits_per_sec(limit)), row, "{limit} bit/s");
    }
}

/// Feeds statuses of errors and delay in ms; each leads to a step and a row.
fn check(plan: SearchPlan, trace: &[(u64, Option<u64>, SearchStep, u16)]) {
    let mut search = Adjustment::new(plan);
    for (at, &(sequence_errors, delay_ms, step, row)) in trace.iter().enumerate() {
        let delay_ns = delay_ms.map(|ms| ms * MS);
        let taken = search.apply_status(Feedback { sequence_errors, delay_ns });
        assert_eq!((taken, search.table_row()), (step, row), "status {at}");
    }
}

/// The code of RFC 9097 appendix A by hand: Rx = 0, seqErrThresh = 10, lowThresh = 30,
/// upperThresh = 90, slowAdjThresh = 3, highSpeedDelta = 10.
#[test]
fn the_code_of_rfc_9097_appendix_a_is_followed_line_by_line() {
    let trace = [
        (0, Some(0), Fast, 10),
        (0, Some(0), Fast, 20),
        // seqErr <= seqErrThresh: ten are none.
        (10, Some(29), Fast, 30),
        (0, Some(0), Fast, 40),
        // Neither delay < lowThresh nor delay > upperThresh.
        (0, Some(30), Hold, 40),
        (10, Some(90), Hold, 40),
        // slowAdjCount 1, then set to 0 by the fast step.
        (11, Some(0), Down, 39),
        (0, Some(0), Fast, 49),
        // slowAdjCount 1 and 2; a hold does not set it to 0; 3 is slowAdjThresh: Rx -= 30.
        (11, Some(0), Down, 48),
        (0, Some(91), Down, 47),
        (0, Some(50), Hold, 47),
        (300, Some(95), Back, 17),
        // slowAdjCount < slowAdjThresh no more: Rx++.
        (0, Some(0), Up, 18),
        (0, Some(29), Up, 19),
        // slowAdjCount 4, which is not slowAdjThresh: Rx--.
        (11, Some(0), Down, 18),
        (0, Some(91), Down, 17),
        (0, Some(0), Up, 18),
    ];
    check(SearchPlan::default(), &trace);
}

#[test]
fn congestion_near_the_bottom_goes_back_to_the_lowest_rate_and_no_further() {
    // Rx > highSpeedDelta * 3 does not hold for 27: Rx = 0; then Rx > 0 does not.
    let trace = [
        (0, Some(0), Fast, 10),
        (0, Some(0), Fast, 20),
        (0, Some(0), Fast, 30),
        (11, Some(0), Down, 29),
        (11, Some(0), Down, 28),
        (11, Some(0), Back, 0),
        (11, Some(0), Down, 0),
        (0, Some(0), Up, 1),
    ];
    check(SearchPlan::default(), &trace);
}

#[test]
fn a_status_without_arrivals_holds_unless_numbers_are_missing() {
    let trace =
        [(0, Some(0), Fast, 10), (0, None, Hold, 10), (11, None, Down, 9), (5, None, Hold, 9)];
    check(SearchPlan::default(), &trace);
}

#[test]
fn above_one_gbit_every_step_is_one_row() {
    let mut search = Adjustment::new(SearchPlan::default());
    let good = Feedback { sequence_errors: 0, delay_ns: Some(0) };
    let bad = Feedback { sequence_errors: 11, delay_ns: Some(0) };
    (0..100).for_each(|_| assert_eq!(search.apply_status(good), Fast));
    assert_eq!(search.row_rate(), BitRate::from_bits_per_sec(1_000_000_000));
    (0..5).for_each(|_| assert_eq!(search.apply_status(good), Up));
    assert_eq!(search.table_row(), 1005);
    // Rx < hSpeedThresh does not hold at the third: Rx--, and congestion is confirmed all the same.
    (0..3).for_each(|_| assert_eq!(search.apply_status(bad), Down));
    assert_eq!((search.table_row(), search.is_congested()), (1002, true));
    (0..3).for_each(|_| assert_eq!(search.apply_status(bad), Down));
    assert_eq!(search.apply_status(good), Up, "slowly ever after");
    // A fast step ends at 1 Gbit/s: 980 - 1 + 10 + 10 and the rest.
    let mut search = Adjustment::new(SearchPlan::default());
    (0..98).for_each(|_| assert_eq!(search.apply_status(good), Fast));
    search.apply_status(bad);
    let rows: Vec<u16> =
        (0..4).map(|_| (search.apply_status(good), search.table_row()).1).collect();
    assert_eq!(rows, [989, 999, 1000, 1001]);
}

#[test]
fn a_limit_and_the_end_of_the_table_are_not_passed() {
    let limit = |bps| SearchPlan {
        rate_max: Some(BitRate::from_bits_per_sec(bps)),
        ..SearchPlan::default()
    };
    check(limit(25_900_000), &[(0, Some(0), Fast, 10), (0, Some(0), Fast, 20)]);
    let good = Feedback { sequence_errors: 0, delay_ns: Some(0) };
    for (plan, row) in [(limit(25_900_000), 25), (limit(1), 0), (SearchPlan::default(), ROW_MAX)] {
        let mut search = Adjustment::new(plan);
        (0..2000).for_each(|_| _ = search.apply_status(good));
        assert_eq!((search.table_row(), search.is_at_most()), (row, true));
    }
}

#[test]
fn other_parameters_are_heeded() {
    let plan = SearchPlan {
        delay_low_ns: 5 * MS,
        delay_high_ns: 10 * MS,
        sequence_errors_max: 0,
        congested_after: 2,
        fast_rows: 4,
        ..SearchPlan::default()
    };
    let trace = [
        (0, Some(4), Fast, 4),
        (0, Some(4), Fast, 8),
        (0, Some(4), Fast, 12),
        (0, Some(4), Fast, 16),
        (0, Some(5), Hold, 16),
        (1, Some(0), Down, 15),
        (0, Some(11), Back, 3),
    ];
    check(plan, &trace);
}

#[test]
fn arrivals_belong_to_the_sub_interval_of_their_own_time_and_counts_close() {
    let mut meter = SubIntervalMeter::new(SECOND);
    let tally = |received, next| StreamCounts { received, next, ..StreamCounts::default() };
    // The clocks differ by 7 s; transit times are 2, 5 and 3 ms above that.
    let arrive = |meter: &mut SubIntervalMeter, stamp_ms: u64, transit_ms: u64| {
        let arrival = StampedArrival {
            stamp_ns: stamp_ms * MS,
            at_ns: 7 * SECOND + (stamp_ms + transit_ms) * MS,
        };
        meter.start_at_arrival(arrival.at_ns);
        meter.record_arrival(arrival);
        arrival.at_ns
    };
    let first = arrive(&mut meter, 10, 2);
    assert!(!meter.is_beyond(first + SECOND - 1));
    assert!(meter.is_beyond(first + SECOND));
    arrive(&mut meter, 500, 5);
    let (delay, newest) = meter.status().expect("two arrivals");
    assert_eq!(delay, DelayRange { min_ns: 0, mean_ns: 1_500_000, max_ns: 3 * MS });
    assert_eq!(newest.stamp_ns, 500 * MS);
    assert_eq!(meter.status(), None, "nothing since");
    // Numbers up to 100, of which 90 came; of the ten missing, 4 come in the next second.
    let span = meter.close_sub_interval(tally(90, 100));
    let expected = SearchSpan {
        index: 0,
        length_ns: SECOND,
        received: 90,
        lost: 10,
        delay_min_ns: Some(0),
        delay_mean_ns: Some(1_500_000),
        delay_max_ns: Some(3 * MS),
        ..SearchSpan::default()
    };
    assert_eq!(span, expected);
    arrive(&mut meter, 1500, 3);
    let span = meter.close_sub_interval(StreamCounts {
        received: 194,
        next: 200,
        reordered: 4,
        duplicates: 3,
    });
    assert_eq!((span.index, span.received, span.lost), (1, 104, -4));
    assert_eq!((span.reordered, span.duplicates, span.delay_min_ns), (4, 3, Some(MS)));
    // An empty one has no delay.
    let span = meter.close_sub_interval(StreamCounts {
        received: 194,
        next: 200,
        reordered: 4,
        duplicates: 3,
    });
    assert_eq!((span.index, span.received, span.delay_max_ns), (2, 0, None));
}

#[test]
fn a_sub_interval_is_whole_when_sending_lasted_to_its_end() {
    let mut meter = SubIntervalMeter::new(SECOND);
    assert!(!meter.is_whole(10 * SECOND), "nothing arrived");
    meter.start_at_arrival(5);
    for (sent_ms, whole) in [(890, false), (900, true), (1000, true), (10_000, true)] {
        assert_eq!(meter.is_whole(sent_ms * MS), whole, "{sent_ms} ms");
    }
    meter.close_sub_interval(StreamCounts::default());
    assert!(!meter.is_whole(1899 * MS) && meter.is_whole(1995 * MS));
}

#[test]
fn sub_intervals_are_joined_with_the_rates_that_were_offered_in_them() {
    let trial = |t_ms: u64, row: u16, rtt_ms: u64| SearchTrial {
        t_ns: t_ms * MS,
        missed: 0,
        sequence_errors: 0,
        delay_ns: Some(0),
        rtt_ns: Some(rtt_ms * MS),
        sent: 0,
        step: Fast,
        confirmed: false,
        row,
        offered_bps: rate_of_row(row).bits_per_sec(),
    };
    let span = |index, received, lost| SearchSpan {
        index,
        length_ns: SECOND,
        received,
        lost,
        ..SearchSpan::default()
    };
    let mut search = SubIntervals::default();
    search.extend(&[span(0, 100, 0)], &[trial(500, 10, 20), trial(1500, 20, 40)]);
    search.extend(&[span(1, 900, 100), span(2, 900, 0)], &[]);
    let found = search.capacity_search(Direction::Up, 1500);
    let rows: Vec<_> =
        found.sub_intervals.iter().map(|row| (row.offered_bps, row.ip_bps)).collect();
    // Half a second of 0.5 and half of 10 Mbit/s; half of 10 and half of 20; 20. 100 packets of
    // 1500 bytes a second are 1.2 Mbit/s, 900 are 10.8.
    let expected = [(Some(5.25e6), 1.2e6), (Some(15e6), 10.8e6), (Some(20e6), 10.8e6)];
    assert_eq!(rows, expected);
    assert_eq!(found.sub_intervals[1].loss_ratio, Some(0.1));
    assert_eq!(
        (found.sub_intervals[0].rtt_min_ns, found.sub_intervals[2].rtt_min_ns),
        (Some(20 * MS), None)
    );
    assert_eq!(found.best, Some(1), "the first of equals");
    assert_eq!(SubIntervals::default().capacity_search(Direction::Up, 1500).best, None);
    let told = joined(span(0, 100, 0), &[], 1500);
    assert_eq!((told.offered_bps, told.rtt_max_ns), (None, None), "no word of the sender");
    let loss = |received, lost| joined(span(0, received, lost), &[], 1500).loss_ratio;
    assert_eq!((loss(0, 0), loss(1, 0), loss(0, 1)), (None, Some(0.0), Some(1.0)));
}

const PACKET_BYTES: u32 = 1500;

/// A search over a path in virtual time: datagrams in packets of 1500 bytes, statuses that come
/// back 10 ms after they were sent.
struct Run {
    now_ns: u64,
    path: Pipeline,
    out: Outlet,
    search: Adjustment,
    meter: SubIntervalMeter,
    tally: StreamCounts,
    told: StreamCounts,
    sent: u64,
    /// When the next datagram is due, in ps.
    due_ps: u64,
    back: Option<Status>,
    rtt_min_ns: Option<u64>,
    found: SubIntervals,
    stamps: Vec<u64>,
}

/// When it comes back, and what it says.
type Status = (u64, StreamCounts, Option<(DelayRange, StampedArrival)>);

const BACK_NS: u64 = 10 * MS;

fn search_over(path: PathPlan, plan: SearchPlan, seconds: u64) -> CapacitySearch {
    let [path, _] = path.build_pipelines(MonoTime::from_nanos(0)).expect("a path");
    let feedback_ns = plan.feedback_ns;
    let mut run = Run {
        now_ns: 0,
        path,
        out: Outlet::default(),
        search: Adjustment::new(plan),
        meter: SubIntervalMeter::new(SECOND),
        tally: StreamCounts::default(),
        told: StreamCounts::default(),
        sent: 0,
        due_ps: 0,
        back: None,
        rtt_min_ns: None,
        found: SubIntervals::default(),
        stamps: Vec::new(),
    };
    let mut status_ns = feedback_ns;
    while run.now_ns < seconds * SECOND {
        let back_ns = run.back.as_ref().map_or(u64::MAX, |(at, ..)| *at);
        run.now_ns = (run.due_ps / 1000).min(status_ns).min(back_ns);
        if run.now_ns == back_ns {
            run.steer();
        } else if run.now_ns == status_ns {
            run.receive();
            run.back = Some((run.now_ns + BACK_NS, run.tally, run.meter.status()));
            status_ns += feedback_ns;
        } else {
            run.send();
        }
    }
    run.receive();
    if run.meter.is_whole(run.now_ns) {
        let span = run.meter.close_sub_interval(run.tally);
        run.found.extend(&[span], &[]);
    }
    run.found.capacity_search(Direction::Up, PACKET_BYTES)
}

impl Run {
    fn send(&mut self) {
        let packet = Packet {
            number: 0,
            ip_bytes: PACKET_BYTES,
            flow: 0,
            hosts: [0; 2],
            ecn: Ecn::NotCapable,
            dont_fragment: true,
            corrupted: false,
            tag: self.sent,
        };
        self.stamps.push(self.now_ns);
        self.path.receive(MonoTime::from_nanos(self.now_ns), packet, &mut self.out);
        self.sent += 1;
        let bits = u64::from(PACKET_BYTES) * 8;
        let kbit_per_sec = self.search.row_rate().bits_per_sec() / 1000;
        self.due_ps += bits * 1_000_000 / kbit_per_sec * 1000;
    }

    fn receive(&mut self) {
        self.path.release(MonoTime::from_nanos(self.now_ns), &mut self.out);
        for departure in self.out.departures.drain(..) {
            let (at_ns, number) = (departure.at.as_nanos(), departure.packet.tag);
            self.meter.start_at_arrival(at_ns);
            while self.meter.is_beyond(at_ns) {
                let span = self.meter.close_sub_interval(self.tally);
                self.found.extend(&[span], &[]);
            }
            self.tally.received += 1;
            self.tally.next = number + 1;
            let stamp_ns = self.stamps[usize::try_from(number).expect("as many as were sent")];
            self.meter.record_arrival(StampedArrival { stamp_ns, at_ns });
        }
    }

    fn steer(&mut self) {
        let Some((_, tally, newest)) = self.back.take() else { return };
        let lost = |tally: &StreamCounts| tally.next - tally.received;
        // There and back.
        let rtt = newest.map(|(_, newest)| newest.at_ns - newest.stamp_ns + BACK_NS);
        self.rtt_min_ns = self.rtt_min_ns.into_iter().chain(rtt).min();
        let delay_ns = rtt.zip(self.rtt_min_ns).map(|(rtt, least)| rtt - least);
        let sequence_errors = lost(&tally) - lost(&self.told);
        self.told = tally;
        let before = self.search.row_rate().bits_per_sec();
        let step = self.search.apply_status(Feedback { sequence_errors, delay_ns });
        let after = self.search.row_rate().bits_per_sec();
        // What is left of the present gap shrinks or grows with the rate.
        let left_ns = (self.due_ps / 1000).saturating_sub(self.now_ns);
        self.due_ps = (self.now_ns + left_ns * before / after) * 1000;
        let trial = SearchTrial {
            t_ns: self.now_ns,
            missed: 0,
            sequence_errors,
            delay_ns,
            rtt_ns: rtt,
            sent: self.sent,
            step,
            confirmed: self.search.is_congested(),
            row: self.search.table_row(),
            offered_bps: after,
        };
        self.found.extend(&[], &[trial]);
    }
}

fn link(mbit: u64, buffer: &str) -> PathPlan {
    PathPlan {
        rate: Some(format!("{mbit} Mbit/s")),
        delay: Some("10 ms".to_owned()),
        buffer: Some(buffer.to_owned()),
        ..PathPlan::default()
    }
}

/// Ethernet takes 18 bytes of frame and 20 of preamble and gap beside a packet: 1500 of 1538.
fn ip_bps(mbit: u64) -> f64 {
    mbit as f64 * 1e6 * 1500.0 / 1538.0
}

/// The best sub-interval against the rate of IP packets that the path carries.
fn check_found(found: &CapacitySearch, expected_bps: f64, tolerance: f64) {
    let best = found.best_interval().expect("something arrived").ip_bps;
    let error = best / expected_bps - 1.0;
    // A packet more than the rate allows may end in a sub-interval.
    assert!((-tolerance..=1e-3).contains(&error), "{best} beside {expected_bps}: {error}");
}

#[test]
fn the_rate_of_a_link_with_a_short_queue_is_found_by_its_losses() {
    // Rows are 1 Mbit/s apart, so that a slow link is passed back and forth by a good part of it.
    for (mbit, tolerance) in [(5, 0.15), (20, 0.01), (50, 0.005), (200, 0.005)] {
        let found = search_over(link(mbit, "50 packets"), SearchPlan::default(), 10);
        check_found(&found, ip_bps(mbit), tolerance);
        assert_eq!(found.sub_intervals.len(), 10);
        assert!(found.confirmed_ns.is_some());
    }
}

#[test]
fn the_delay_of_a_deep_queue_stops_the_rate_before_anything_is_lost() {
    let found = search_over(link(50, "2 s"), SearchPlan::default(), 10);
    check_found(&found, ip_bps(50), 0.005);
    assert!(found.sub_intervals.iter().all(|row| row.span.lost == 0), "two seconds hold it all");
    let worst = found.trials.iter().filter_map(|trial| trial.delay_ns).max();
    assert!(worst > Some(90 * MS), "{worst:?}");
}

#[test]
fn the_rate_of_a_policer_is_found_and_nothing_is_delayed() {
    let policer = BucketPlan { rate: "50 Mbit/s".to_owned(), burst: "100 kB".to_owned() };
    let path =
        PathPlan { policer: Some(policer), delay: Some("10 ms".to_owned()), ..PathPlan::default() };
    let found = search_over(path, SearchPlan::default(), 10);
    // A sub-interval may begin with a full bucket: 100 kB are 0.8 Mbit.
    let best = found.best_interval().expect("something arrived").ip_bps;
    assert!((49.5e6..=50.9e6).contains(&best), "{best}");
    assert!(found.trials.iter().all(|trial| trial.delay_ns < Some(MS)));
}

#[test]
fn a_loss_of_one_percent_hides_behind_ten_errors_up_to_240_mbit() {
    let lossy = |mbit| PathPlan { loss: Some("1%".to_owned()), ..link(mbit, "50 packets") };
    // A status at 50 Mbit/s speaks of 208 packets and 2 losses: below the threshold.
    let found = search_over(lossy(50), SearchPlan::default(), 10);
    check_found(&found, ip_bps(50), 0.015);
    // Ten losses in a status are expected at 10 / 0.01 packets in 50 ms: 240 Mbit/s. A link of
    // 1 Gbit/s looks like that, give or take the spread of a count of ten.
    let found = search_over(lossy(1000), SearchPlan::default(), 10);
    let best = found.best_interval().expect("something arrived").ip_bps;
    assert!((180e6..=300e6).contains(&best), "{best}");
    // With a higher threshold it does not.
    let plan = SearchPlan { sequence_errors_max: 100, ..SearchPlan::default() };
    check_found(&search_over(lossy(1000), plan, 10), ip_bps(1000), 0.03);
}
