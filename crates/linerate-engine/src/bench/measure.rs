//! Tests at constant loads: flood, throughput, loss and overload curves, latency, soak.

use linerate_core::bench::curve;
use linerate_core::bench::latency::Delays;
use linerate_core::bench::medium::is_tester_limited;
use linerate_core::bench::pair::{Cause, Pair};
use linerate_core::bench::search::{
    Controller, Goal, GoalResult, Invalid as Spoilt, LoadTrial, MultiSearch, Range, Status,
    TrialOutcome, Tried, Why,
};
use linerate_core::bench::soak::{Interval, Intervals};
use linerate_core::record::{
    BenchGoal, BenchLatency, BenchPlan, BenchResult, BenchTest, Failure, Fault, GoalFound, Invalid,
    LoadPoint, RateFound, Soak, TrialPort,
};

use super::bed::{Ask, Bed, Ended, Outcome};

/// No search goes below this load, frames per second.
const LEAST_FPS: u64 = 10;

/// A load is offered when the rate of its frames is this share of it, as for a trial's validity:
/// what was really offered is what a result says (RFC 2285 §3.5.2). Below, what is missing counts
/// as lost (RFC 9971).
const OFFERED: f64 = super::check::SHORT;

/// What the loads of a device are held against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// What the tester can send and count on one port.
    pub tester_fps: f64,
    /// What the medium allows.
    pub theoretical_fps: Option<f64>,
    /// The plan's own bound.
    pub asked_max: Option<u64>,
}

impl Bounds {
    /// The largest load of a search.
    pub(super) fn max_fps(&self) -> u64 {
        let medium = self.theoretical_fps.unwrap_or(f64::INFINITY);
        let most = self.tester_fps.min(medium).max(LEAST_FPS as f64) as u64;
        self.asked_max.map_or(most, |asked| asked.min(most)).max(LEAST_FPS)
    }

    fn is_tester_limited(&self, fps: f64) -> bool {
        is_tester_limited(fps, self.tester_fps)
            && self.theoretical_fps.is_none_or(|it| fps < it * 0.999)
    }
}

/// What comes out of all that the generators can do.
pub(super) fn flood(bed: &mut dyn Bed, plan: &BenchPlan) -> Result<LoadPoint, Ended> {
    let ask = Ask::new(BenchTest::Flood, None, plan.times.trial_ns);
    Ok(bed.trial(&ask)?.point())
}

/// Searches for the highest load of every goal at once.
pub(super) fn throughput(
    bed: &mut dyn Bed,
    plan: &BenchPlan,
    bounds: &Bounds,
    found: &mut BenchResult,
) -> Result<(), Ended> {
    let range = Range { min_fps: LEAST_FPS, max_fps: bounds.max_fps() };
    let mut goals: Vec<Goal> = plan.goals.iter().map(BenchGoal::search).collect();
    // Cheap ones first: they leave bounds for the dear ones.
    goals.sort_by_key(|goal| goal.duration_sum_ns);
    let search = MultiSearch::new(goals, range)
        .map_err(|error| Failure::new(Fault::Usage, "search for", "the throughput", error))?;
    let mut search = search.ignoring_long_trials();
    while let Some(trial) = search.next().trial() {
        let outcome = match bed.trial(&ask_for(&trial)) {
            Ok(outcome) => outcome,
            Err(ended) => {
                keep(&search, plan, bounds, found);
                return Err(ended);
            }
        };
        search.take(told(&trial, &outcome));
    }
    keep(&search, plan, bounds, found);
    Ok(())
}

fn keep(search: &MultiSearch, plan: &BenchPlan, bounds: &Bounds, found: &mut BenchResult) {
    let results = search.results();
    let of_goal = |goal: &BenchGoal| {
        results.iter().find(|result| result.goal.name == goal.name).map(|it| goal_found(it, bounds))
    };
    found.goals = plan.goals.iter().filter_map(of_goal).collect();
    found.stalls_per_sec = stalls(&results, search.trace());
}

fn ask_for(trial: &LoadTrial) -> Ask {
    Ask::new(BenchTest::Throughput, Some(trial.load_fps), trial.duration_ns)
        .because(words(trial.why))
}

fn words(why: Why) -> String {
    match why {
        Why::WarmUp => "warm-up, does not count".to_owned(),
        Why::Maximum => "the largest load first".to_owned(),
        Why::Forwarded { at_fps } => format!("what came out at {at_fps} frames/s"),
        Why::Lower { than_fps } => format!("{than_fps} frames/s were too many"),
        Why::Higher { than_fps } => format!("{than_fps} frames/s were not the most"),
        Why::Between { lower_fps, upper_fps } => {
            format!("between {lower_fps} and {upper_fps} frames/s")
        }
        Why::Verify => "a lossy trial once more".to_owned(),
        Why::Repeat => "not yet decided at this load".to_owned(),
        Why::Listed => "next of the list".to_owned(),
        Why::Unasked => "made beside the search".to_owned(),
    }
}

/// A trial as the search is told of it. A generator that fell short and lost nothing is a load
/// that could not be offered; the search knows that case.
fn told(trial: &LoadTrial, outcome: &Outcome) -> TrialOutcome {
    // The worst port decides: a load is carried when each port's frames came through.
    let worst =
        outcome.trial.ports.iter().max_by_key(|port| (port.lost(), std::cmp::Reverse(port.sent)));
    let (sent, received) = worst.map_or((0, 0), |port| in_time(port, trial));
    let offered_fps = worst.map_or(0.0, |port| port.offered_fps.min(trial.load_fps as f64));
    let loss_runs = worst.map(|port| port.loss_runs);
    let invalid = match &outcome.trial.invalid {
        None => None,
        Some(Invalid::GeneratorShort { .. }) if received >= sent => None,
        Some(Invalid::GeneratorShort { .. } | Invalid::StolenTime { .. }) => {
            Some(Spoilt::GeneratorStarved)
        }
        Some(Invalid::CounterDrops { .. }) => Some(Spoilt::ReceiverDropped),
        Some(Invalid::LinkDown { .. }) => Some(Spoilt::LinkDown),
        Some(Invalid::Loop { .. }) => Some(Spoilt::Loop),
        Some(Invalid::CountsDisagree { detail }) => Some(Spoilt::Other(detail.clone())),
    };
    let elapsed_ns = match sent > 1 && offered_fps > 0.0 {
        true => (sent as f64 / offered_fps * 1e9) as u64,
        false => trial.duration_ns,
    };
    let complete = TrialOutcome::complete(trial, sent, received);
    TrialOutcome { loss_runs, invalid, elapsed_ns, ..complete }
}

/// Frames that were sent within the trial's time, and those of them that came: a generator that is
/// behind sends all its frames, later.
fn in_time(port: &TrialPort, trial: &LoadTrial) -> (u64, u64) {
    let share = port.offered_fps / trial.load_fps.max(1) as f64;
    // A single frame has no rate.
    if port.sent < 2 || share >= OFFERED {
        return (port.sent, port.received);
    }
    let sent = (trial.frames() as f64 * share) as u64;
    let came = port.received as f64 / port.sent as f64;
    (sent, (sent as f64 * came).round() as u64)
}

fn goal_found(result: &GoalResult, bounds: &Bounds) -> GoalFound {
    let lower = result.lower_fps.map(|fps| carried(fps as f64, result.offered_fps));
    let at_maximum = result.status == Status::AtMaximum;
    GoalFound {
        goal: result.goal.name.clone(),
        lower_fps: lower,
        upper_fps: result.upper_fps.map(|fps| fps as f64).filter(|_| !at_maximum),
        conditional_fps: result.conditional_fps,
        trials: u32::try_from(result.trials).unwrap_or(u32::MAX),
        spent_ns: result.sending_ns,
        tester_limited: result.is_tester_limit
            || lower.is_some_and(|fps| bounds.is_tester_limited(fps)),
        loss_ratio_below: result.zero_loss_bound(),
    }
}

/// What the device carried at a load that it passed: a tester that paused offered less.
fn carried(load_fps: f64, offered_fps: Option<f64>) -> f64 {
    // Less than a frame in a thousand is the clock of counting.
    offered_fps.filter(|it| *it < load_fps * 0.999).unwrap_or(load_fps)
}

/// How often the device stops for a moment, where that is what pulls strict below typical.
fn stalls(results: &[GoalResult], trace: &[Tried]) -> Option<RateFound> {
    let named = |name| results.iter().find(|it| it.goal.name.starts_with(name)).cloned();
    let pair = Pair::compare(named("typical")?, named("strict")?, trace);
    let Cause::Stalls { rate, .. } = pair.cause else { return None };
    Some(RateFound { value: rate.per_second, low: rate.low_per_second, high: rate.high_per_second })
}

/// Loss at loads from the largest down, until two in a row lose nothing (RFC 2544 §26.3).
pub(super) fn loss_curve(
    bed: &mut dyn Bed,
    plan: &BenchPlan,
    bounds: &Bounds,
    curve: &mut Vec<LoadPoint>,
) -> Result<(), Ended> {
    let series = curve::loss_curve(bounds.max_fps(), plan.times.trial_ns);
    let mut series = series
        .map_err(|error| Failure::new(Fault::Usage, "step down from", "the largest load", error))?;
    while let Some(trial) = series.next().trial() {
        let ask = Ask::new(BenchTest::LossCurve, Some(trial.load_fps), trial.duration_ns);
        let outcome = bed.trial(&ask)?;
        let told = told(&trial, &outcome);
        let invalid = told.invalid.clone().filter(|_| !is_of_device(&outcome));
        let told = TrialOutcome { invalid, ..told };
        if told.invalidity().is_none() {
            curve.push(outcome.point());
        }
        series.take(told);
    }
    Ok(())
}

/// Whether load and loss of a trial are the device's. They are where the generator fell short:
/// what it sent stands beside what it was asked for.
fn is_of_device(outcome: &Outcome) -> bool {
    matches!(outcome.trial.invalid, None | Some(Invalid::GeneratorShort { .. }))
}

/// What comes out beyond the throughput (RFC 2285 §3.6, RFC 2889 §5.6).
pub(super) fn overload(
    bed: &mut dyn Bed,
    plan: &BenchPlan,
    (bounds, throughput): (&Bounds, f64),
    curve: &mut Vec<LoadPoint>,
) -> Result<(), Ended> {
    for fps in curve::overload_loads(throughput, bounds.max_fps()) {
        let outcome = bed.trial(&Ask::new(BenchTest::Overload, Some(fps), plan.times.trial_ns))?;
        if is_of_device(&outcome) {
            curve.push(outcome.point());
        }
    }
    Ok(())
}

/// Delays at one load, of every frame of all repetitions. `frame_ns` is the time of a frame on the
/// medium.
pub(super) fn latency(
    bed: &mut dyn Bed,
    plan: &BenchPlan,
    fps: f64,
    frame_ns: Option<u64>,
) -> Result<Vec<BenchLatency>, Ended> {
    let mut delays = Delays::default();
    for _ in 0..plan.times.repetitions.max(1) {
        let ask = Ask::new(BenchTest::Latency, Some(fps.max(1.0) as u64), plan.times.latency_ns);
        let outcome = bed.trial(&ask)?;
        let received = outcome.ways.iter().flat_map(|way| &way.received);
        delays.add(received.map(|(_, received)| &received.latency));
    }
    Ok(delays.latency(fps, frame_ns))
}

/// A long run at one load, second by second; nothing when the tester spoilt every one.
pub(super) fn soak(bed: &mut dyn Bed, plan: &BenchPlan, fps: f64) -> Result<Option<Soak>, Ended> {
    let mut intervals = Intervals::default();
    for _ in 0..plan.times.soak_seconds() {
        let ask = Ask::new(BenchTest::Soak, Some(fps.max(1.0) as u64), SECOND_NS);
        let outcome = bed.trial(&ask)?;
        let received = || outcome.ways.iter().flat_map(|way| &way.received).map(|it| &it.1);
        let runs = received().map(|it| it.loss_runs).sum();
        let longest = received().map(|it| it.longest_loss_run).max().unwrap_or(0);
        intervals.add(Interval {
            point: outcome.point(),
            duration_ns: SECOND_NS,
            loss_runs: (runs, longest),
            is_short: matches!(outcome.trial.invalid, Some(Invalid::GeneratorShort { .. })),
            is_valid: is_of_device(&outcome),
        });
    }
    Ok(intervals.found())
}

const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use linerate_core::record::LatencyKind;

    use super::super::simulated::{Device, Simulated, plan};
    use super::*;

    fn bounds(tester_fps: f64) -> Bounds {
        Bounds { tester_fps, theoretical_fps: None, asked_max: None }
    }

    fn strict(seconds: u64) -> BenchGoal {
        let ns = seconds * SECOND_NS;
        BenchGoal { final_trial_ns: ns, duration_sum_ns: ns, ..BenchGoal::strict() }
    }

    fn searched(mut bed: Simulated, goals: Vec<BenchGoal>, tester_fps: f64) -> BenchResult {
        let plan = BenchPlan { goals, ..plan(SECOND_NS) };
        let mut found = BenchResult::default();
        throughput(&mut bed, &plan, &bounds(tester_fps), &mut found).unwrap();
        found
    }

    /// That the bounds hold the capacity: a buffer of a frame is one more in the whole trial.
    fn check(found: &GoalFound, capacity: f64) {
        let (lower, upper) = (found.lower_fps.unwrap(), found.upper_fps.unwrap());
        assert!(lower <= capacity + 2.0 && lower >= capacity * 0.995 - 1.0, "{found:?}");
        assert!(upper >= capacity && upper <= capacity * 1.006 + 2.0, "{found:?}");
    }

    #[test]
    fn throughput_is_the_planted_capacity_to_within_the_width() {
        for capacity_fps in [1000, 1250, 4000, 12_500] {
            let device = Device { capacity_fps, buffer: 2, ..Device::default() };
            let found = searched(Simulated::new(device), vec![strict(2)], 50_000.0);
            check(&found.goals[0], capacity_fps as f64);
            assert!(!found.goals[0].tester_limited);
        }
    }

    #[test]
    fn a_device_as_fast_as_the_tester_is_the_testers_limit() {
        let found = searched(Simulated::new(Device::default()), vec![strict(1)], 5000.0);
        let goal = &found.goals[0];
        assert_eq!((goal.lower_fps, goal.upper_fps), (Some(5000.0), None));
        assert!(goal.tester_limited);
        // Nothing of 5000 frames was lost: below 3 / 5000.
        assert!((goal.loss_ratio_below.unwrap() - 6e-4).abs() < 1e-9);
    }

    #[test]
    fn what_a_tester_that_pauses_offered_is_what_a_device_carried() {
        let trial = LoadTrial {
            load_fps: 1000,
            duration_ns: SECOND_NS,
            stop_at_lost: None,
            goal: 0,
            why: Why::Maximum,
        };
        let at = |share: f64| {
            let mut outcome =
                Simulated::new(Device::default()).trial(&ask_for(&trial)).expect("a trial");
            outcome.trial.ports[0].offered_fps = 1000.0 * share;
            told(&trial, &outcome)
        };
        // 4 ms of pauses in a second: within the width of every goal, and said.
        let paused = at(0.996);
        assert_eq!(paused.loss_ratio(), 0.0);
        let offered = paused.offered_fps().unwrap();
        assert!((offered - 996.0).abs() < 1e-3, "{offered}");
        assert_eq!(carried(1000.0, Some(offered)), offered);
        // 10 ms are another load: what is missing counts as lost.
        assert!((at(0.99).loss_ratio() - 0.01).abs() < 1e-9);
        // The clock of a generator is no pause.
        assert_eq!(carried(1000.0, at(0.9995).offered_fps()), 1000.0);
    }

    #[test]
    fn trials_that_the_tester_spoilt_are_not_held_against_the_device() {
        let device = Device { capacity_fps: 4000, buffer: 2, ..Device::default() };
        let bed = Simulated { spoil_every: Some(3), ..Simulated::new(device) };
        check(&searched(bed, vec![strict(2)], 50_000.0).goals[0], 4000.0);
    }

    #[test]
    fn stalls_pull_strict_below_typical_and_are_counted() {
        // Every 7 s nothing is forwarded for 20 ms, and eight frames fit in: above 400 frames/s
        // such a trial of 1 s loses.
        let stall = Some((7 * SECOND_NS, 20_000_000));
        let device = Device { capacity_fps: 2000, buffer: 8, stall, ..Device::default() };
        let goals = vec![strict(10), BenchGoal::typical()];
        let found = searched(Simulated::new(device), goals, 10_000.0);
        let typical = found.goals[1].lower_fps.unwrap();
        assert!((1985.0..=2008.0).contains(&typical), "{typical}");
        let strict = found.goals[0].lower_fps.unwrap();
        assert!((300.0..=402.0).contains(&strict), "{strict}");
        let stalls = found.stalls_per_sec.expect("they are what the two differ by");
        assert!((stalls.low..=stalls.high).contains(&(1.0 / 7.0)), "{stalls:?}");
    }

    #[test]
    fn the_loss_curve_goes_down_by_tenths_until_two_loads_lose_nothing() {
        // 2 ms a frame, no room to wait: of 1000 frames/s every other one passes.
        let device = Device { capacity_fps: 500, buffer: 1, ..Device::default() };
        let mut curve = Vec::new();
        let bounds = bounds(1000.0);
        loss_curve(&mut Simulated::new(device), &plan(2 * SECOND_NS), &bounds, &mut curve).unwrap();
        let loads: Vec<f64> = curve.iter().filter_map(|point| point.intended_fps).collect();
        assert_eq!(loads, [1000.0, 900.0, 800.0, 700.0, 600.0, 500.0, 400.0]);
        assert_eq!((curve[0].sent, curve[0].received), (2000, 1000));
        assert!((curve[0].loss_ratio - 0.5).abs() < 1e-9);
        assert!(curve[1..5].iter().all(|point| point.loss_ratio > 0.0));
        assert!(curve[5..].iter().all(|point| point.loss_ratio == 0.0));
    }

    #[test]
    fn beyond_its_throughput_the_device_forwards_no_more() {
        let device = Device { capacity_fps: 500, buffer: 1, ..Device::default() };
        let mut curve = Vec::new();
        let bounds = bounds(1000.0);
        let plan = plan(2 * SECOND_NS);
        overload(&mut Simulated::new(device), &plan, (&bounds, 500.0), &mut curve).unwrap();
        // 110, 125, 150, 200 %, where the tester ends.
        let loads: Vec<f64> = curve.iter().filter_map(|point| point.intended_fps).collect();
        assert_eq!(loads, [550.0, 625.0, 750.0, 1000.0]);
        // 2 ms a frame and a frame each ms.
        assert!((curve[3].forwarded_fps - 500.0).abs() < 1e-6, "{:?}", curve[3]);
    }

    #[test]
    fn a_flood_is_what_comes_out_of_all_that_the_tester_can_send() {
        let device = Device { capacity_fps: 500_000, buffer: 1, ..Device::default() };
        let point = flood(&mut Simulated::new(device), &plan(SECOND_NS / 10)).unwrap();
        assert_eq!((point.intended_fps, point.sent, point.received), (None, 100_000, 50_000));
    }

    #[test]
    fn a_soak_counts_its_seconds_with_errors_and_its_runs() {
        // 3 s of 100 frames: the 140th and the 280th are lost, in the second and the third second.
        let mut bed = Simulated::new(Device { lose_every: Some(140), ..Device::default() });
        let mut plan = plan(SECOND_NS);
        plan.times.soak_ns = 3 * SECOND_NS;
        let found = soak(&mut bed, &plan, 100.0).unwrap().unwrap();
        assert_eq!((found.point.sent, found.point.received), (300, 298));
        assert_eq!((found.errored_seconds, found.loss_runs, found.longest_loss_run), (2, 2, 1));
        assert_eq!(found.duration_ns, 3 * SECOND_NS);
    }

    #[test]
    fn delay_is_that_of_every_frame_less_its_time_on_the_medium() {
        // 50 us a frame in the device; 5 us a frame on the medium.
        let device = Device { capacity_fps: 20_000, ..Device::default() };
        let plan = plan(SECOND_NS / 10);
        let found = latency(&mut Simulated::new(device), &plan, 1000.0, Some(5000)).unwrap();
        let [store, cut] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((store.kind, cut.kind), (LatencyKind::StoreAndForward, LatencyKind::CutThrough));
        assert_eq!((store.min_ns, cut.min_ns), (40_000, 45_000));
        assert_eq!((store.max_ns, store.frames), (40_000, 300));
        assert!((cut.mean_ns - 45_000.0).abs() < 1e-6);
    }
}
