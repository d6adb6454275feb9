//! The loop over a simulated path: what is planted comes out, by closed form.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use linerate_core::record::Fault;
use linerate_core::time::{Clock, SimClock};

use super::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A path that answers probe `n` as `fate(n)` says: one delay in ns for each copy.
struct SimPath<F> {
    clock: Rc<SimClock>,
    fate: F,
    /// Arrival time and probe, in order of arrival.
    under_way: BTreeSet<(u64, u64)>,
    /// Sends that find the queue full.
    full: u64,
    /// The sender is held up for so many ns before this probe.
    stall: Option<(u64, u64)>,
}

impl<F: FnMut(u64) -> Vec<u64>> SimPath<F> {
    fn new(fate: F) -> Self {
        let clock = Rc::new(SimClock::starting_at(MonoTime::from_nanos(MS)));
        Self { clock, fate, under_way: BTreeSet::new(), full: 0, stall: None }
    }
}

impl<F: FnMut(u64) -> Vec<u64>> Wire for SimPath<F> {
    fn now(&self) -> MonoTime {
        self.clock.now()
    }

    fn send_probe(&mut self, sequence: u64) -> Result<Option<MonoTime>, Failure> {
        if self.full > 0 {
            self.full -= 1;
            return Ok(None);
        }
        if let Some((held, span)) = self.stall
            && held == sequence
        {
            self.clock.advance(Duration::from_nanos(span));
        }
        let now = self.clock.now();
        for delay in (self.fate)(sequence) {
            self.under_way.insert((now.as_nanos() + delay, sequence));
        }
        Ok(Some(now))
    }

    fn receive(&mut self) -> Result<Option<ProbeAnswer>, Failure> {
        let Some(&(at, sequence)) = self.under_way.first() else { return Ok(None) };
        if at > self.clock.now().as_nanos() {
            return Ok(None);
        }
        self.under_way.pop_first();
        let at = MonoTime::from_nanos(at);
        Ok(Some(ProbeAnswer {
            sequence,
            at,
            ttl: None,
            stamp_ns: None,
            peer: None,
            classes: [None; 2],
            reflected: None,
        }))
    }

    fn wait_until(&mut self, _now: MonoTime, until: MonoTime) {
        let next = self.under_way.first().map_or(until, |(at, _)| MonoTime::from_nanos(*at));
        self.clock.advance_to(next.min(until));
    }

    fn stamps(&mut self, _take: &mut dyn FnMut(u64, SendStamp)) {}
}

#[derive(Default)]
struct Seen {
    t1: Vec<u64>,
    answered: Vec<(u64, u64)>,
    duplicates: Vec<u64>,
    lost: Vec<u64>,
    stop_after: Option<(u64, Stop)>,
}

impl Sink for Seen {
    fn probe_sent(&mut self, _sequence: u64, t1: MonoTime) {
        self.t1.push(t1.as_nanos());
    }

    fn answered(&mut self, arrival: &ProbeAnswer, _t1: MonoTime, rtt_ns: u64) {
        self.answered.push((arrival.sequence, rtt_ns));
        if let Some((after, stop)) = &self.stop_after
            && self.answered.len() as u64 >= *after
        {
            stop.request_stop();
        }
    }

    fn duplicate(&mut self, arrival: &ProbeAnswer) {
        self.duplicates.push(arrival.sequence);
    }

    fn probe_lost(&mut self, sequence: u64) {
        self.lost.push(sequence);
    }

    fn departed(&mut self, _sequence: u64, _stamp_ns: u64) {}

    fn wants_departures(&self) -> bool {
        false
    }
}

fn rules(pace: ProbePace, count: u64) -> ProbeRunRules<'static> {
    let limits = EchoTrackerLimits { timeout_ns: 100 * MS, capacity: 1 << 12 };
    ProbeRunRules { pace, count: Some(count), deadline: None, limits, spacing: None }
}

fn drive_over(fate: impl FnMut(u64) -> Vec<u64>, rules: ProbeRunRules<'_>) -> (ProbeRun, Seen) {
    let mut path = SimPath::new(fate);
    let mut seen = Seen::default();
    let run = drive_probes(&mut path, &rules, &Stop::new(), &mut seen);
    (run, seen)
}

/// The schedule's own vectors are those of RFC 4656 (linerate_core::poisson).
#[test]
fn a_poisson_run_keeps_the_schedule_of_its_seed_and_repeats_it() {
    let run =
        || drive_over(|_| vec![US], rules(ProbePace::Poisson { mean_ns: MS, seed: 7 }, 200)).1.t1;
    let t1 = run();
    let mut schedule = Schedule::from_seed(7);
    let spans: Vec<u64> = t1.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let expected: Vec<u64> = (0..199).map(|_| schedule.span_ns(MS)).collect();
    assert_eq!(spans, expected);
    assert_eq!(run(), t1);
}

/// 1000 probes, one each ms. Every 10th is lost, every 25th (not a 10th) comes twice, every 7th
/// of the rest takes 1.5 ms longer and so arrives after its successor.
/// By hand: lost 100; duplicates 40 − 20 (multiples of 50 are lost) = 20; delayed
/// floor(999/7) + 1 = 143 multiples of 7 below 1000, minus 15 multiples of 70, = 128.
/// Of those 128 an overtaken one needs its successor to be answered and undelayed:
/// the successor 7k + 1 is lost when it is a multiple of 10: k = 7 mod 10, 7k = 49 mod 70,
/// 49 … 959 is 14 of them; 999 is not a multiple of 7. So reordered 128 − 14 = 114.
#[test]
fn planted_loss_duplicates_and_reordering_come_out() {
    let fate = |n: u64| match n {
        n if n.is_multiple_of(10) => vec![],
        n if n.is_multiple_of(25) => vec![200 * US, 300 * US],
        n if n.is_multiple_of(7) => vec![1_700 * US],
        _ => vec![200 * US],
    };
    let (run, seen) = drive_over(fate, rules(ProbePace::Every(MS), 1000));
    assert_eq!(run.ended, ProbeRunEnd::Complete);
    let counts = run.counts;
    assert_eq!((counts.sent, counts.answered, counts.lost), (1000, 900, 100));
    assert_eq!((counts.duplicates, counts.late), (20, 0));
    let delayed_and_doubled = (0..1000).filter(|n| n % 175 == 0 && n % 10 != 0).count() as u64;
    assert_eq!(delayed_and_doubled, 3, "175, 525 and 875 come twice instead of late");
    assert_eq!(counts.reordered, 114 - delayed_and_doubled);
    assert_eq!(seen.lost.len(), 100);
    assert!(seen.lost.iter().all(|n| n % 10 == 0));
    assert!(seen.duplicates.iter().all(|n| n % 25 == 0));
    assert_eq!(run.late_sends, 0);
    let steps: BTreeSet<u64> = seen.t1.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(steps, BTreeSet::from([MS]), "the pace has no drift");
}

/// The other end is silent for 100 ms of each second and then answers all at once: of a probe that
/// comes x into the silence the answer takes 100 ms − x. A tenth of the probes of an open loop meet
/// it, evenly: 99 of 100 are below 90 ms. A closed loop meets it once a second.
#[test]
fn an_open_loop_sees_a_stall_of_the_other_end_as_long_as_it_is() {
    const INTERVAL: u64 = 100 * US;
    let silent = |n: u64| {
        let into_second = n * INTERVAL % (1000 * MS);
        vec![20 * US + (100 * MS).saturating_sub(into_second)]
    };
    let limits = EchoTrackerLimits { timeout_ns: 1000 * MS, capacity: 1 << 15 };
    let rules = ProbeRunRules { limits, ..rules(ProbePace::Every(INTERVAL), 50_000) };
    let (run, seen) = drive_over(silent, rules);
    assert_eq!((run.counts.answered, run.late_sends), (50_000, 0));
    let mut rtt: Vec<u64> = seen.answered.iter().map(|(_, rtt)| *rtt).collect();
    rtt.sort_unstable();
    assert_eq!(rtt[25_000], 20 * US);
    let p99 = rtt[49_500];
    assert!((89 * MS..=91 * MS).contains(&p99), "{p99}");
}

#[test]
fn stop_and_wait_sends_on_the_answer_and_not_before() {
    let (run, seen) = drive_over(|n| vec![(n + 1) * US], rules(ProbePace::Window(1), 100));
    assert_eq!(run.counts, Counts { sent: 100, answered: 100, ..Counts::default() });
    let gaps: Vec<u64> = seen.t1.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, (1..100).map(|n| n * US).collect::<Vec<u64>>());
    assert_eq!(seen.answered[41], (41, 42 * US));
}

#[test]
fn a_lost_probe_costs_stop_and_wait_its_time_out_and_a_late_answer_stays_lost() {
    let fate = |n| if n == 3 { vec![100 * MS + 50 * US] } else { vec![100 * US] };
    let (run, seen) = drive_over(fate, rules(ProbePace::Window(1), 10));
    let expected = Counts { sent: 10, answered: 9, lost: 1, late: 1, ..Counts::default() };
    assert_eq!(run.counts, expected);
    assert_eq!(seen.lost, [3]);
    assert_eq!(seen.t1[4] - seen.t1[3], 100 * MS + 1);
}

#[test]
fn a_window_keeps_so_many_under_way() {
    let most = Rc::new(Cell::new(0));
    let most_seen = most.clone();
    let mut path = SimPath::new(|_| vec![800 * US]);
    let mut seen = Seen::default();
    let run = drive_probes(&mut path, &rules(ProbePace::Window(8), 800), &Stop::new(), &mut seen);
    assert_eq!(run.counts.answered, 800);
    for (index, t1) in seen.t1.iter().enumerate() {
        let under_way = seen.t1[..index].iter().filter(|sent| *sent + 800 * US > *t1).count() + 1;
        most_seen.set(most_seen.get().max(under_way));
    }
    assert_eq!(most.get(), 8);
    // 100 rounds of 8 in 800 µs each.
    assert_eq!(path.clock.now().as_nanos() - MS, 100 * 800 * US);
}

#[test]
fn a_full_send_queue_pauses_and_loses_nothing() {
    for pace in [ProbePace::Window(1), ProbePace::Every(MS)] {
        let mut path = SimPath::new(|_| vec![10 * US]);
        path.full = 5;
        let mut seen = Seen::default();
        let run = drive_probes(&mut path, &rules(pace, 3), &Stop::new(), &mut seen);
        assert_eq!(run.counts, Counts { sent: 3, answered: 3, ..Counts::default() });
        assert_eq!(seen.t1[0], MS + 500 * US);
    }
}

#[test]
fn probes_that_the_send_queue_never_takes_are_counted_as_not_sent() {
    for pace in [ProbePace::Window(1), ProbePace::Every(200 * MS), ProbePace::Every(MS)] {
        let mut path = SimPath::new(|_| vec![10 * US]);
        path.full = u64::MAX;
        let run = drive_probes(&mut path, &rules(pace, 3), &Stop::new(), &mut Seen::default());
        assert_eq!((run.ended, run.counts.sent, run.unsent), (ProbeRunEnd::Complete, 0, 3));
    }
    // Asked each 100 µs for the time-out of 100 ms, the first probe is refused 1001 times; the next
    // ones keep to the schedule.
    let mut path = SimPath::new(|_| vec![10 * US]);
    path.full = 1001;
    let mut seen = Seen::default();
    let run =
        drive_probes(&mut path, &rules(ProbePace::Every(200 * MS), 3), &Stop::new(), &mut seen);
    assert_eq!((run.counts.sent, run.counts.answered, run.unsent), (2, 2, 1));
    assert_eq!(seen.t1, [MS + 200 * MS, MS + 400 * MS]);
}

#[test]
fn a_stall_is_counted_and_not_made_up_for_in_a_burst() {
    let mut path = SimPath::new(|_| vec![10 * US]);
    path.stall = Some((2, 35 * MS));
    let mut seen = Seen::default();
    let run =
        drive_probes(&mut path, &rules(ProbePace::Every(10 * MS), 5), &Stop::new(), &mut seen);
    assert_eq!((run.counts.answered, run.late_sends), (5, 1));
    let gaps: Vec<u64> = seen.t1.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [10 * MS, 45 * MS, 10 * MS, 10 * MS]);
}

#[test]
fn a_wish_to_stop_ends_the_run_and_leaves_out_what_is_under_way() {
    let mut path = SimPath::new(|_| vec![100 * US]);
    let stop = Stop::new();
    let mut seen = Seen { stop_after: Some((20, stop.clone())), ..Seen::default() };
    let endless = ProbeRunRules { count: None, ..rules(ProbePace::Window(4), 0) };
    let run = drive_probes(&mut path, &endless, &stop, &mut seen);
    assert_eq!(run.ended, ProbeRunEnd::Stopped);
    assert_eq!((run.counts.sent, run.counts.answered, run.counts.lost), (20, 20, 0));
}

#[test]
fn a_deadline_ends_a_run_whose_peer_is_silent() {
    let mut path = SimPath::new(|_| vec![]);
    let deadline = Some(path.clock.now() + Duration::from_millis(250));
    let rules = ProbeRunRules { deadline, ..rules(ProbePace::Window(1), 1000) };
    let run = drive_probes(&mut path, &rules, &Stop::new(), &mut Seen::default());
    assert_eq!(run.ended, ProbeRunEnd::Deadline);
    assert_eq!((run.counts.sent, run.counts.lost), (3, 3), "time-outs at 100 and 200 ms");
}

#[test]
fn a_failure_of_the_wire_keeps_what_was_counted() {
    struct Dying(SimPath<fn(u64) -> Vec<u64>>);
    impl Wire for Dying {
        fn now(&self) -> MonoTime {
            self.0.now()
        }
        fn send_probe(&mut self, sequence: u64) -> Result<Option<MonoTime>, Failure> {
            if sequence == 5 {
                return Err(Failure::new(Fault::Unreachable, "send to", "192.0.2.1", "gone"));
            }
            self.0.send_probe(sequence)
        }
        fn receive(&mut self) -> Result<Option<ProbeAnswer>, Failure> {
            self.0.receive()
        }
        fn wait_until(&mut self, now: MonoTime, until: MonoTime) {
            self.0.wait_until(now, until);
        }
        fn stamps(&mut self, _take: &mut dyn FnMut(u64, SendStamp)) {}
    }
    let mut path = Dying(SimPath::new(|_| vec![US]));
    let run = drive_probes(
        &mut path,
        &rules(ProbePace::Window(1), 10),
        &Stop::new(),
        &mut Seen::default(),
    );
    assert!(matches!(run.ended, ProbeRunEnd::Failed(_)));
    assert_eq!(run.counts.answered, 5);
}

/// A link of 56 kbit/s with a queue of 30 kB before it and 600 ms of delay: a load of 50 kbit/s
/// fills the queue, an answer takes 600 ms at first and 4.9 s with the queue full. The rate is
/// known after a second; a probe of 720 bits is a hundredth of it in 1.44 s. In 20 s: 1 at once, 1
/// at 600 ms when that is answered, then one each 1.44 s, 14 by 20 s. 16 × 720 bits are 1.15 % of
/// 1 Mbit; 50 a second would have been 1000, or 72 %.
#[test]
fn probes_beside_a_slow_load_leave_it_its_path_and_late_answers_are_answers() {
    let mut path = SimPath::new(|n| vec![if n < 2 { 600 * MS } else { 4_900 * MS }]);
    let clock = Rc::clone(&path.clock);
    let spacing = || (clock.now().as_nanos() >= 1001 * MS).then_some(1440 * MS);
    let spacing: Spacing<'_> = &spacing;
    let limits = EchoTrackerLimits { timeout_ns: 30_000 * MS, capacity: 1 << 12 };
    let deadline = Some(MonoTime::from_nanos(20_001 * MS));
    let rules = ProbeRunRules {
        pace: ProbePace::Every(20 * MS),
        count: None,
        deadline,
        limits,
        spacing: Some(spacing),
    };
    let mut seen = Seen::default();
    let run = drive_probes(&mut path, &rules, &Stop::new(), &mut seen);
    assert!((14..=17).contains(&seen.t1.len()), "{:?}", seen.t1);
    assert_eq!((run.counts.lost, seen.lost.len()), (0, 0));
    assert!(seen.answered.iter().any(|(_, rtt)| *rtt == 4_900 * MS), "{:?}", seen.answered);
    // A path that carries the plan's probes gets them all, once it is known.
    let fast = || Some(2 * MS);
    let rules =
        ProbeRunRules { spacing: Some(&fast), ..self::rules(ProbePace::Every(20 * MS), 100) };
    let (_, seen) = drive_over(|_| vec![300 * US], rules);
    assert_eq!(seen.t1.len(), 100);
    assert!(seen.t1.windows(2).all(|pair| pair[1] - pair[0] == 20 * MS), "{:?}", seen.t1);
}
