//! The search for the throughput: several goals over one set of trials, within a bounded time.
//!
//! A search that the tester's machine keeps from its end has no result, and says so: what was found
//! by then are bounds. What the device holds back is taken off the bounds of short trials
//! ([`super::buffer`]).

use std::collections::BTreeMap;

use linerate_core::device::buffer::{OfferedLoad, lacks_room_for_second_frame};
use linerate_core::device::pair::{LossCause, ThroughputPair, scattered_above};
use linerate_core::device::search::{
    Controller, FinishedTrial, Goal, GoalResult, INVALID_MAX, Invalid as Spoilt, LoadTrial,
    MultiSearch, Range, Status, TrialOutcome, Why,
};
use linerate_core::device::time_needed::longest_search_ns;
use linerate_core::record::{
    BenchGoal, BenchPlan, BenchResult, BenchTest, Failure, Fault, GoalFound, InvalidTrialReason,
    RateFound, TrialPort,
};
use linerate_sys::clock::monotonic;

use super::bounds::{Bounds, LEAST_FPS};
use super::setup::{TestSetup, TrialAbort, TrialCounts, TrialSpec};
use super::{buffer, check, retry};

/// A load is offered when the rate of its frames is this share of it, as for a trial's validity:
/// what was really offered is what a result says (RFC 2285 §3.5.2). Below, what is missing counts
/// as lost (RFC 9971).
const OFFERED: f64 = check::SHORT;

/// A search that comes to no end has a result when its bounds are this near to each other.
const NEAR: f64 = 1.02;

/// A search under way, with what its trials say beside their counts.
struct Search<'a> {
    plan: &'a BenchPlan,
    bounds: &'a Bounds,
    search: MultiSearch,
    /// The loads that were really sent in the trials that count, by the load asked for, each with
    /// true where frames were lost.
    sent: BTreeMap<u64, Vec<(bool, OfferedLoad)>>,
    /// Why the last trial that did not count did not.
    spoilt: Option<String>,
    is_over_time: bool,
}

/// Searches for the highest load of every goal at once.
pub(super) fn throughput(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    bounds: &Bounds,
    found: &mut BenchResult,
) -> Result<(), TrialAbort> {
    let range = Range { min_fps: LEAST_FPS, max_fps: bounds.max_fps() };
    let mut goals: Vec<Goal> = plan.goals.iter().map(BenchGoal::search_goal).collect();
    // Cheap ones first: they leave bounds for the dear ones.
    goals.sort_by_key(|goal| goal.duration_sum_ns);
    let search = MultiSearch::new(goals, range)
        .map_err(|error| Failure::new(Fault::Usage, "search for", "the throughput", error))?;
    let search = search.ignoring_long_trials();
    let (sent, spoilt) = (BTreeMap::new(), None);
    let mut search = Search { plan, bounds, search, sent, spoilt, is_over_time: false };
    let ended = search.run(setup);
    search.store_goals(found);
    ended?;
    subtract_buffered_frames(setup, plan, &search, found)
}

impl Search<'_> {
    fn run(&mut self, setup: &mut dyn TestSetup) -> Result<(), TrialAbort> {
        let (began, longest_ns) = (monotonic(), longest_search_ns(self.plan));
        while let Some(trial) = self.search.next().into_trial() {
            if monotonic().nanos_since(began) > longest_ns {
                self.is_over_time = true;
                break;
            }
            let outcome = setup.run_trial(&spec_of(&trial))?;
            let judged = search_outcome(&trial, &outcome);
            if judged.invalidity().is_some() {
                let detail =
                    outcome.trial.invalid.as_ref().map(|reason| reason.detail().to_owned());
                self.spoilt = detail;
            } else if let [result] = outcome.results.as_slice() {
                let fps = outcome.trial.ports.first().map_or(0.0, steady_fps);
                let pauses = result.sent.timing.pauses.clone();
                let load = OfferedLoad { fps, frames: result.sent.frames, pauses };
                let lost = judged.lost_frames() > 0;
                self.sent.entry(trial.load_fps).or_default().push((lost, load));
            }
            self.search.add_outcome(judged);
        }
        Ok(())
    }

    fn store_goals(&self, found: &mut BenchResult) {
        let results = self.search.results();
        let of_goal = |goal: &BenchGoal| {
            let result = results.iter().find(|result| result.goal.name == goal.name)?;
            Some(self.goal_found(result))
        };
        found.goals = self.plan.goals.iter().filter_map(of_goal).collect();
        found.stalls_per_sec = stalls(&results, self.search.trials());
    }

    fn goal_found(&self, result: &GoalResult) -> GoalFound {
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
                || lower.is_some_and(|fps| self.bounds.is_tester_limited(fps)),
            loss_ratio_below: result.zero_loss_bound(),
            held_frames: None,
            scattered: scattered_above(result, self.search.trials()),
            unfinished: self.unfinished(result),
        }
    }

    fn unfinished(&self, result: &GoalResult) -> Option<String> {
        // Bounds are bounds, though the search looked for nearer ones.
        let near = |lower: u64, upper: u64| upper as f64 <= lower as f64 * NEAR;
        if result.lower_fps.zip(result.upper_fps).is_some_and(|(lower, upper)| near(lower, upper)) {
            return None;
        }
        let why = || self.spoilt.as_ref().map(|why| format!("; the last: {why}"));
        let why = || why().unwrap_or_default();
        match &result.status {
            Status::Regular | Status::AtMaximum | Status::BelowMinimum => None,
            Status::Invalid(_) => {
                Some(format!("{INVALID_MAX} loads in a row had only invalid trials{}", why()))
            }
            Status::Unfinished if self.is_over_time => {
                let seconds = longest_search_ns(self.plan) as f64 / 1e9;
                Some(format!("not decided within {seconds:.0} s{}", why()))
            }
            Status::Unfinished => Some("it was not searched to its end".to_owned()),
        }
    }

    /// The loads really sent when `load` was asked for: of trials that lost frames, or of those
    /// that did not.
    fn sent_at(&self, load: Option<u64>, lost: bool) -> Vec<&OfferedLoad> {
        let at = load.and_then(|load| self.sent.get(&load)).into_iter().flatten();
        at.filter(|load| load.0 == lost).map(|load| &load.1).collect()
    }
}

/// Takes the device's buffer off results of trials in which it matters. With several senders at
/// once it is not known whose frames are in it.
fn subtract_buffered_frames(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    search: &Search<'_>,
    found: &mut BenchResult,
) -> Result<(), TrialAbort> {
    let most = search.bounds.tester_fps.max(1.0) as u64;
    let most = plan.frames_per_sec_max.map_or(most, |asked| asked.min(most));
    let results = search.search.results();
    for goal in found.goals.iter_mut().filter(|goal| goal.unfinished.is_none()) {
        let Some(result) = results.iter().find(|result| result.goal.name == goal.goal) else {
            continue;
        };
        let passed = search.sent_at(result.lower_fps, false);
        let lost = search.sent_at(result.upper_fps, true);
        let Some(lower) = result.lower_fps.filter(|_| !passed.is_empty() && !lost.is_empty())
        else {
            continue;
        };
        let trial_ns = result.goal.final_duration_ns.max(LEAST_HELD_NS);
        let Some(held) = buffer::measure_buffer_depth(setup, lower as f64, most, trial_ns)? else {
            continue;
        };
        if lacks_room_for_second_frame(held.frames_median, lower as f64) {
            buffer::without_buffer(setup, goal, &held, trial_ns)?;
        } else {
            buffer::subtract_buffered(goal, &held, &passed, &lost);
        }
    }
    Ok(())
}

/// An overload is at least so long, ns.
const LEAST_HELD_NS: u64 = 100_000_000;

fn spec_of(trial: &LoadTrial) -> TrialSpec {
    TrialSpec::new(BenchTest::Throughput, Some(trial.load_fps), trial.duration_ns)
        .because(load_reason_text(trial.why))
}

fn load_reason_text(why: Why) -> String {
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

/// A trial's outcome for the search. A generator that cannot send a load, pauses or not, and
/// lost nothing is a load that could not be offered; the search knows that case.
pub(super) fn search_outcome(trial: &LoadTrial, outcome: &TrialCounts) -> TrialOutcome {
    // The worst port decides: a load is carried when each port's frames came through.
    let ports = outcome.trial.ports.iter();
    let worst = ports.max_by_key(|port| (port.lost_elsewhere(), std::cmp::Reverse(port.sent)));
    let is_short = matches!(outcome.trial.invalid, Some(InvalidTrialReason::GeneratorShort { .. }));
    let (sent, received) = worst.map_or((0, 0), |port| in_time(port, trial, is_short));
    let offered_fps = worst.map_or(0.0, |port| steady_fps(port).min(trial.load_fps as f64));
    let loss_runs = worst.map(|port| port.loss_runs);
    let invalid = match &outcome.trial.invalid {
        None => None,
        Some(InvalidTrialReason::GeneratorShort { .. })
            if received >= sent && !retry::keeps_its_rate(&outcome.trial) =>
        {
            None
        }
        Some(InvalidTrialReason::GeneratorShort { .. } | InvalidTrialReason::StolenTime { .. }) => {
            Some(Spoilt::GeneratorStarved)
        }
        Some(InvalidTrialReason::CounterDrops { .. }) => Some(Spoilt::ReceiverDropped),
        Some(InvalidTrialReason::LinkDown { .. }) => Some(Spoilt::LinkDown),
        Some(InvalidTrialReason::Loop { .. }) => Some(Spoilt::Loop),
        Some(InvalidTrialReason::CountsDisagree { detail }) => Some(Spoilt::Other(detail.clone())),
    };
    let elapsed_ns = match sent > 1 && offered_fps > 0.0 {
        true => (sent as f64 / offered_fps * 1e9) as u64,
        false => trial.duration_ns,
    };
    let complete = TrialOutcome::complete(trial, sent, received);
    TrialOutcome { loss_runs, invalid, elapsed_ns, ..complete }
}

/// The rate at which a port sent, its pauses left out: at less than that the device was never
/// asked.
fn steady_fps(port: &TrialPort) -> f64 {
    port.steady_fps.unwrap_or(port.offered_fps).max(port.offered_fps)
}

/// Frames that were sent within the trial's time, and those of them that came: a generator that is
/// behind sends all its frames, later. Of lost frames that the tester's times explain nothing is
/// known: the others stand for them.
fn in_time(port: &TrialPort, trial: &LoadTrial, is_short: bool) -> (u64, u64) {
    let share = steady_fps(port) / trial.load_fps.max(1) as f64;
    let attributable = port.sent.saturating_sub(port.lost_explained).max(port.received).max(1);
    let received = (port.sent as f64 * port.received as f64 / attributable as f64).round() as u64;
    // One that is lost is lost, however many the others are.
    let received = if port.lost_elsewhere() > 0 { received.min(port.sent - 1) } else { received };
    // A single frame has no rate.
    if !is_short || port.sent < 2 || share >= OFFERED {
        return (port.sent, received);
    }
    let sent = (trial.frames() as f64 * share) as u64;
    let came = received as f64 / port.sent as f64;
    (sent, (sent as f64 * came).round() as u64)
}

/// The rate that the device carried at a load that it passed: a tester that is behind offered less.
fn carried(load_fps: f64, offered_fps: Option<f64>) -> f64 {
    // Less than a frame in a thousand is the clock of counting.
    offered_fps.filter(|offered| *offered < load_fps * 0.999).unwrap_or(load_fps)
}

/// How often the device stops for a moment, where that is what pulls strict below typical.
fn stalls(results: &[GoalResult], trace: &[FinishedTrial]) -> Option<RateFound> {
    let named = |name| results.iter().find(|result| result.goal.name.starts_with(name)).cloned();
    let pair = ThroughputPair::compare(named("typical")?, named("strict")?, trace);
    let LossCause::Stalls { rate, .. } = pair.cause else { return None };
    Some(RateFound { value: rate.per_second, low: rate.low_per_second, high: rate.high_per_second })
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Device, Late, Simulated, bench_plan};
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn bounds(tester_fps: f64) -> Bounds {
        Bounds { tester_fps, theoretical_fps: None, asked_max: None }
    }

    fn strict(seconds: u64) -> BenchGoal {
        let ns = seconds * SECOND_NS;
        BenchGoal { final_trial_ns: ns, duration_sum_ns: ns, ..BenchGoal::strict() }
    }

    fn searched(mut setup: Simulated, goals: Vec<BenchGoal>, tester_fps: f64) -> BenchResult {
        let plan = BenchPlan { goals, ..bench_plan(SECOND_NS) };
        let mut found = BenchResult::default();
        throughput(&mut setup, &plan, &bounds(tester_fps), &mut found).unwrap();
        found
    }

    /// Asserts that the bounds hold the capacity: a buffer of a frame is one more in the whole
    /// trial.
    fn assert_bounds_hold(found: &GoalFound, capacity: f64) {
        let (lower, upper) = (found.lower_fps.unwrap(), found.upper_fps.unwrap());
        assert!(lower <= capacity + 2.0 && lower >= capacity * 0.995 - 1.0, "{found:?}");
        assert!(upper >= capacity && upper <= capacity * 1.006 + 2.0, "{found:?}");
    }

    #[test]
    fn throughput_is_the_planted_capacity_to_within_the_width() {
        for capacity_fps in [1000, 1250, 4000, 12_500] {
            let device = Device { capacity_fps, buffer: 2, ..Device::default() };
            let found = searched(Simulated::new(device), vec![strict(2)], 50_000.0);
            assert_bounds_hold(&found.goals[0], capacity_fps as f64);
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
    fn what_a_tester_that_is_behind_offered_is_what_a_device_carried() {
        let trial = LoadTrial {
            load_fps: 1000,
            duration_ns: SECOND_NS,
            stop_at_lost: None,
            goal: 0,
            why: Why::Maximum,
        };
        let at = |share: f64| {
            let mut outcome =
                Simulated::new(Device::default()).run_trial(&spec_of(&trial)).expect("a trial");
            outcome.trial.ports[0].offered_fps = 1000.0 * share;
            outcome.trial.ports[0].steady_fps = Some(1000.0 * share);
            outcome.trial.ports[0].steady_ns = SECOND_NS;
            if share < check::SHORT {
                let detail = "slower all the time".to_owned();
                outcome.trial.invalid = Some(InvalidTrialReason::GeneratorShort { detail });
            }
            search_outcome(&trial, &outcome)
        };
        let behind = at(0.996);
        assert_eq!(behind.loss_ratio(), 0.0);
        let offered = behind.offered_fps().unwrap();
        assert!((offered - 996.0).abs() < 1e-3, "{offered}");
        assert_eq!(carried(1000.0, Some(offered)), offered);
        // More is another load: what is missing counts as lost.
        assert!((at(0.99).loss_ratio() - 0.01).abs() < 1e-9);
        // The clock of a generator is no pause.
        assert_eq!(carried(1000.0, at(0.9995).offered_fps()), 1000.0);
    }

    /// Testers as they are: alone on a machine, with other work beside, with a program that takes
    /// all processors, and hardly there.
    fn testers(seed: u64) -> [Late; 4] {
        let late = Late { seed, jitter_ns: 40, ..Late::default() };
        let ms = 1_000_000;
        [
            late,
            Late { pause_ns: (ms / 10, 4 * ms), every_ns: (20 * ms, 200 * ms), ..late },
            Late {
                pause_ns: (2 * ms, 15 * ms),
                every_ns: (100 * ms, 400 * ms),
                skew_ns: 5 * ms,
                ..late
            },
            Late { pause_ns: (ms, 10 * ms), every_ns: (ms, 10 * ms), skew_ns: 10 * ms, ..late },
        ]
    }

    /// Searches with every tester: how many results there were, and of these those of testers
    /// that are alone or have little beside. Each is within a hundredth of the device.
    fn found_by_late_testers(devices: &[(u64, usize, u64)]) -> (usize, usize) {
        let (mut found_all, mut found_some) = (0, 0);
        for &(capacity_fps, buffer, seeds) in devices {
            for seed in 1..=seeds {
                for (kind, late) in testers(seed).into_iter().enumerate() {
                    let device = Device { capacity_fps, buffer, ..Device::default() };
                    let mut setup = Simulated { late: Some(late), ..Simulated::new(device) };
                    setup.ceiling_fps = 4 * capacity_fps;
                    let quick = BenchGoal { final_trial_ns: SECOND_NS / 5, ..BenchGoal::typical() };
                    let goal = BenchGoal { duration_sum_ns: SECOND_NS, ..quick };
                    let found = searched(setup, vec![goal], 4.0 * capacity_fps as f64);
                    let goal = &found.goals[0];
                    let Some(fps) = goal.throughput_fps() else {
                        assert!(
                            goal.unfinished.is_some(),
                            "{capacity_fps} {kind} {seed}: {goal:?}"
                        );
                        assert!(kind > 0, "{capacity_fps} {seed}: {goal:?}");
                        continue;
                    };
                    let off = fps / capacity_fps as f64 - 1.0;
                    assert!(off.abs() < 0.01, "{capacity_fps} {kind} {seed}: {off} {goal:?}");
                    found_all += usize::from(kind < 2);
                    found_some += 1;
                }
            }
        }
        (found_some, found_all)
    }

    // Fast devices take as many frames to simulate: one draw of them is enough.
    #[test]
    fn a_device_is_found_within_a_hundredth_or_no_result_is_said_however_late_the_tester() {
        let (some, all) = found_by_late_testers(&[(3370, 200, 3), (33_000, 1, 1)]);
        println!("{some} of 16 found, {all} of 8 without much beside");
        assert!(all >= 7, "{all} of 8");
    }

    #[test]
    #[ignore = "nightly: fast devices, a minute of a core"]
    fn a_fast_device_is_found_within_a_hundredth_or_no_result_is_said_however_late_the_tester() {
        let devices = [(3370, 200, 3), (73_000, 1, 3), (137_000, 7, 2), (333_000, 64, 1)];
        let (some, all) = found_by_late_testers(&devices);
        println!("{some} of 36 found, {all} of 18 without much beside");
        assert!(all >= 15, "{all} of 18");
    }

    #[test]
    fn scattered_loss_is_named_where_it_ends_a_goal() {
        // Of 30,000 frames in a second one in 20,000: half of the trials are clean at 14,000.
        let device = Device {
            capacity_fps: 33_000,
            buffer: 64,
            lose_every: Some(20_011),
            ..Device::default()
        };
        let found = searched(Simulated::new(device), vec![BenchGoal::typical()], 100_000.0);
        let goal = &found.goals[0];
        let scattered = goal.scattered.expect("single losses");
        assert!(scattered.up_to_fps > 30_000.0 && scattered.up_to_fps <= 33_200.0, "{goal:?}");
        assert!(scattered.low <= 1.0 / 20_011.0 && 1.0 / 20_011.0 <= scattered.high, "{goal:?}");
    }

    #[test]
    fn trials_that_the_tester_spoilt_are_not_held_against_the_device() {
        let device = Device { capacity_fps: 4000, buffer: 2, ..Device::default() };
        let setup = Simulated { spoil_every: Some(3), ..Simulated::new(device) };
        assert_bounds_hold(&searched(setup, vec![strict(2)], 50_000.0).goals[0], 4000.0);
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
}
