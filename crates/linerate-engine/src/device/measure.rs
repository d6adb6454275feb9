//! Tests at constant loads: flood, loss and overload curves, latency, soak.

use linerate_core::device::curve;
use linerate_core::device::latency::FrameDelays;
use linerate_core::device::search::{Controller, TrialOutcome};
use linerate_core::device::soak::{SoakInterval, SoakIntervals};
use linerate_core::record::{
    BenchLatency, BenchPlan, BenchTest, Failure, Fault, InvalidTrialReason, LoadPoint, Soak,
};

use super::bounds::Bounds;
use super::search::search_outcome;
use super::setup::{TestSetup, TrialAbort, TrialCounts, TrialSpec};

/// The frame rate that comes out of all that the generators can do.
pub(super) fn measure_flood(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
) -> Result<LoadPoint, TrialAbort> {
    let spec = TrialSpec::new(BenchTest::Flood, None, plan.times.trial_ns);
    Ok(setup.run_trial(&spec)?.load_point())
}

/// Loss at loads from the largest down, until two in a row lose nothing (RFC 2544 §26.3).
pub(super) fn loss_curve(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    bounds: &Bounds,
    curve: &mut Vec<LoadPoint>,
) -> Result<(), TrialAbort> {
    let series = curve::loss_curve(bounds.max_fps(), plan.times.trial_ns);
    let mut series = series
        .map_err(|error| Failure::new(Fault::Usage, "step down from", "the largest load", error))?;
    while let Some(trial) = series.next().into_trial() {
        let spec = TrialSpec::new(BenchTest::LossCurve, Some(trial.load_fps), trial.duration_ns);
        let outcome = setup.run_trial(&spec)?;
        let judged = search_outcome(&trial, &outcome);
        let invalid = judged.invalid.clone().filter(|_| !is_of_device(&outcome));
        let judged = TrialOutcome { invalid, ..judged };
        if judged.invalidity().is_none() {
            curve.push(outcome.load_point());
        }
        series.add_outcome(judged);
    }
    Ok(())
}

/// True where load and loss of a trial are the device's. They are also where the generator fell
/// short: the load that it sent stands beside the one that it was asked for.
fn is_of_device(outcome: &TrialCounts) -> bool {
    matches!(outcome.trial.invalid, None | Some(InvalidTrialReason::GeneratorShort { .. }))
}

/// Measures the rate that comes out at loads beyond the throughput (RFC 2285 §3.6, RFC 2889 §5.6).
pub(super) fn overload(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    bounds: &Bounds,
    throughput_fps: f64,
    curve: &mut Vec<LoadPoint>,
) -> Result<(), TrialAbort> {
    for fps in curve::overload_loads(throughput_fps, bounds.max_fps()) {
        let outcome = setup.run_trial(&TrialSpec::new(
            BenchTest::Overload,
            Some(fps),
            plan.times.trial_ns,
        ))?;
        if is_of_device(&outcome) {
            curve.push(outcome.load_point());
        }
    }
    Ok(())
}

/// Delays at one load, of every frame of all repetitions. `frame_ns` is the time of a frame on the
/// medium.
pub(super) fn latency(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    fps: f64,
    frame_ns: Option<u64>,
) -> Result<Vec<BenchLatency>, TrialAbort> {
    let mut delays = FrameDelays::default();
    for _ in 0..plan.times.repetitions.max(1) {
        let spec =
            TrialSpec::new(BenchTest::Latency, Some(fps.max(1.0) as u64), plan.times.latency_ns);
        let outcome = setup.run_trial(&spec)?;
        let received = outcome.results.iter().flat_map(|result| &result.received);
        delays.add(received.map(|(_, received)| &received.latency));
    }
    Ok(delays.latency(fps, frame_ns))
}

/// A long run at one load, second by second; nothing when the tester spoilt every one.
pub(super) fn measure_soak(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    fps: f64,
) -> Result<Option<Soak>, TrialAbort> {
    let mut intervals = SoakIntervals::default();
    for _ in 0..plan.times.soak_seconds() {
        let spec = TrialSpec::new(BenchTest::Soak, Some(fps.max(1.0) as u64), SECOND_NS);
        let outcome = setup.run_trial(&spec)?;
        let received =
            || outcome.results.iter().flat_map(|result| &result.received).map(|result| &result.1);
        let runs = received().map(|counts| counts.loss_runs).sum();
        let longest = received().map(|counts| counts.longest_loss_run).max().unwrap_or(0);
        intervals.add(SoakInterval {
            point: outcome.load_point(),
            duration_ns: SECOND_NS,
            loss_runs: (runs, longest),
            is_short: matches!(
                outcome.trial.invalid,
                Some(InvalidTrialReason::GeneratorShort { .. })
            ),
            is_valid: is_of_device(&outcome),
        });
    }
    Ok(intervals.soak_result())
}

const SECOND_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use linerate_core::record::LatencyKind;

    use super::super::simulated::{Device, Simulated, bench_plan};
    use super::*;

    fn bounds(tester_fps: f64) -> Bounds {
        Bounds { tester_fps, theoretical_fps: None, asked_max: None }
    }

    #[test]
    fn the_loss_curve_goes_down_by_tenths_until_two_loads_lose_nothing() {
        // 2 ms a frame, no room to wait: of 1000 frames/s every other one passes.
        let device = Device { capacity_fps: 500, buffer: 1, ..Device::default() };
        let mut curve = Vec::new();
        let bounds = bounds(1000.0);
        loss_curve(&mut Simulated::new(device), &bench_plan(2 * SECOND_NS), &bounds, &mut curve)
            .unwrap();
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
        let plan = bench_plan(2 * SECOND_NS);
        overload(&mut Simulated::new(device), &plan, &bounds, 500.0, &mut curve).unwrap();
        // 110, 125, 150, 200 %, where the tester ends.
        let loads: Vec<f64> = curve.iter().filter_map(|point| point.intended_fps).collect();
        assert_eq!(loads, [550.0, 625.0, 750.0, 1000.0]);
        // 2 ms a frame and a frame each ms.
        assert!((curve[3].forwarded_fps - 500.0).abs() < 1e-6, "{:?}", curve[3]);
    }

    #[test]
    fn a_flood_is_what_comes_out_of_all_that_the_tester_can_send() {
        let device = Device { capacity_fps: 500_000, buffer: 1, ..Device::default() };
        let point =
            measure_flood(&mut Simulated::new(device), &bench_plan(SECOND_NS / 10)).unwrap();
        assert_eq!((point.intended_fps, point.sent, point.received), (None, 100_000, 50_000));
    }

    #[test]
    fn a_soak_counts_its_seconds_with_errors_and_its_runs() {
        // 3 s of 100 frames: the 140th and the 280th are lost, in the second and the third second.
        let mut setup = Simulated::new(Device { lose_every: Some(140), ..Device::default() });
        let mut plan = bench_plan(SECOND_NS);
        plan.times.soak_ns = 3 * SECOND_NS;
        let found = measure_soak(&mut setup, &plan, 100.0).unwrap().unwrap();
        assert_eq!((found.point.sent, found.point.received), (300, 298));
        assert_eq!((found.errored_seconds, found.loss_runs, found.longest_loss_run), (2, 2, 1));
        assert_eq!(found.duration_ns, 3 * SECOND_NS);
    }

    #[test]
    fn delay_is_that_of_every_frame_less_its_time_on_the_medium() {
        // 50 us a frame in the device; 5 us a frame on the medium.
        let device = Device { capacity_fps: 20_000, ..Device::default() };
        let plan = bench_plan(SECOND_NS / 10);
        let found = latency(&mut Simulated::new(device), &plan, 1000.0, Some(5000)).unwrap();
        let [store, cut] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((store.kind, cut.kind), (LatencyKind::StoreAndForward, LatencyKind::CutThrough));
        assert_eq!((store.min_ns, cut.min_ns), (40_000, 45_000));
        assert_eq!((store.max_ns, store.frames), (40_000, 300));
        assert!((cut.mean_ns - 45_000.0).abs() < 1e-6);
    }
}
