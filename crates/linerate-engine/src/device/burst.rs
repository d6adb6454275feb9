//! Tests by trains of frames: back-to-back bursts, recovery from overload, restarts.

use linerate_core::device::burst::{
    BURST_MAX, BURST_STEP, Burst, BurstLimits, BurstOutcome, BurstSearch,
};
use linerate_core::device::recovery::{
    LoadDrop, Recovery as Recovered, RecoveryLoads, measure_recovery, missing_runs,
};
use linerate_core::device::search::{Controller, Invalid as Spoilt};
use linerate_core::record::{BackToBack, BenchPlan, BenchTest, BurstRun, OverloadRecovery};
use linerate_core::stats::Moments;

use super::setup::{Length, SenderResult, TestSetup, TrialAbort, TrialSpec};

/// Bursts below this say little about the rate within them.
const RATE_FRAMES: u64 = 64;

/// The longest burst at the generator's highest rate of which nothing is lost (RFC 2544 §26.4),
/// with the buffer that it implies (RFC 9004 §6.4).
pub(super) fn back_to_back(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    throughput: Option<f64>,
) -> Result<Option<BackToBack>, TrialAbort> {
    let repeats = plan.times.repetitions.max(1);
    let mut search = BurstSearch::new(BURST_MAX, BURST_STEP, repeats);
    let (mut rates, mut trials) = (Moments::default(), vec![0; repeats as usize]);
    while let Some(trial) = search.next().into_trial() {
        let spec =
            TrialSpec::frame_train(BenchTest::BackToBack, plan.frames_per_sec_max, trial.frames);
        let outcome = setup.run_trial(&spec)?;
        let (sent, received) = outcome.totals();
        if trial.frames >= RATE_FRAMES {
            rates.record(outcome.offered_fps());
        }
        if let Some(count) = trials.get_mut(trial.repeat as usize) {
            *count += 1;
        }
        let invalid =
            outcome.trial.invalid.as_ref().map(|reason| Spoilt::Other(reason.detail().to_owned()));
        search.add_outcome(BurstOutcome { frames: trial.frames, sent, received, invalid });
    }
    let burst_fps = rates.mean().unwrap_or(0.0);
    let limits =
        BurstLimits { rate_fps: burst_fps, throughput_fps: throughput, max_frames: BURST_MAX };
    let Some(burst) = Burst::from_lengths(search.lengths(), &limits) else { return Ok(None) };
    let runs = search.lengths().iter().zip(trials);
    Ok(Some(BackToBack {
        runs: runs.map(|(&frames, trials)| BurstRun { frames, trials }).collect(),
        mean_frames: burst.mean_frames,
        min_frames: burst.min_frames as u64,
        max_frames: burst.max_frames as u64,
        stddev_frames: burst.stddev_frames.unwrap_or(0.0),
        unbounded: burst.is_at_max,
        burst_fps,
        implied_buffer_ns: burst.implied_s * 1e9,
        corrected_buffer_ns: burst.corrected_s.map(|corrected| corrected * 1e9),
        buffer_frames: burst.corrected_frames,
    }))
}

/// From overload to half of it: the time from the drop to the last frame that was lost (RFC 2544
/// §26.5), of the sender that took longest.
pub(super) fn recovery(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    throughput_fps: f64,
    max_fps: u64,
) -> Result<OverloadRecovery, TrialAbort> {
    let RecoveryLoads { overload_fps, after_fps } = RecoveryLoads::new(throughput_fps, max_fps);
    let mut found = OverloadRecovery {
        overload_fps: overload_fps as f64,
        after_fps: after_fps as f64,
        times_ns: Vec::new(),
        not_recovered_ns: Vec::new(),
        without_overload: 0,
    };
    for _ in 0..plan.times.repetitions.max(1) {
        // Numbers of arrivals are kept from the first frame: both parts have to fit in.
        let room_ns = ROOM_FRAMES * 1_000_000_000 / overload_fps;
        let part_ns = plan.times.trial_ns.min(room_ns / 2).max(1);
        let spec = TrialSpec {
            length: Length::Time(2 * part_ns),
            arrivals: true,
            drop_to: Some((after_fps, part_ns)),
            ..TrialSpec::new(BenchTest::Recovery, Some(overload_fps), 2 * part_ns)
        };
        let outcome = setup.run_trial(&spec)?;
        for result in &outcome.results {
            result.has_arrivals()?;
        }
        match outcome.results.iter().filter_map(|result| recovered(result, after_fps)).max() {
            Some(Recovered::NoOverload) | None => found.without_overload += 1,
            Some(Recovered::Recovered(ns)) => found.times_ns.push(ns),
            Some(Recovered::NotRecovered(ns)) => found.not_recovered_ns.push(ns),
        }
    }
    Ok(found)
}

/// Frames whose arrivals are kept, less some.
pub(super) const ROOM_FRAMES: u64 = 1_000_000;

fn recovered(result: &SenderResult, after_fps: u64) -> Option<Recovered> {
    let sent = usize::try_from(result.sent.frames).unwrap_or(usize::MAX).min(result.arrivals.len());
    let drop = LoadDrop { sequence: result.drop_at?, fps: after_fps, sent: sent as u64 };
    Some(measure_recovery(&drop, &missing_runs(&result.arrivals[..sent])))
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Device, Simulated, bench_plan};
    use super::*;

    #[test]
    fn the_longest_burst_shows_the_planted_buffer() {
        // Frames 1 us apart, each takes 10 us to go out: when frame n comes (from 0), n - n / 10
        // are inside. Frame 70 finds 63 of 64 places taken, frame 71 all: 71 frames pass.
        let device = Device { capacity_fps: 100_000, buffer: 64, ..Device::default() };
        let mut setup = Simulated::new(device);
        let found = back_to_back(&mut setup, &bench_plan(1), Some(100_000.0)).unwrap().unwrap();
        assert_eq!(found.runs.len(), 3);
        for run in &found.runs {
            assert_eq!(run.frames, 71);
        }
        assert!((found.burst_fps - 1e6).abs() < 1.0);
        // 64 places, to within the step of the search and the frame that is going out.
        let frames = found.buffer_frames.unwrap();
        assert!((60.0..=64.0).contains(&frames), "{frames}");
        assert!(!found.unbounded);
    }

    #[test]
    fn a_buffer_that_holds_all_bursts_is_said_to_be_unbounded() {
        let device = Device { capacity_fps: 100_000, ..Device::default() };
        let found =
            back_to_back(&mut Simulated::new(device), &bench_plan(1), None).unwrap().unwrap();
        assert_eq!((found.min_frames, found.unbounded), (BURST_MAX, true));
    }

    #[test]
    fn recovery_ends_with_the_last_lost_frame_after_the_drop() {
        // 1100 frames/s for 1 s, then 550. The device is out from 0.99 s to 1.05 s: frames 0 to 27
        // after the drop are lost, the last of them 27 / 550 = 49.09 ms after it.
        let outage = Some((990_000_000, 1_050_000_000));
        let mut setup = Simulated::new(Device { outage, ..Device::default() });
        let found = recovery(&mut setup, &bench_plan(1_000_000_000), 1000.0, 1_000_000).unwrap();
        assert_eq!((found.overload_fps, found.after_fps), (1100.0, 550.0));
        assert_eq!(found.times_ns, [(27.0_f64 * 1e9 / 550.0).round() as u64; 3]);
    }

    #[test]
    fn a_device_that_loses_in_the_overload_alone_recovers_at_once() {
        // 1100 frames/s into 1000, with room for 10: all losses are before the drop.
        let device = Device { capacity_fps: 1000, buffer: 10, ..Device::default() };
        let mut setup = Simulated::new(device);
        let found = recovery(&mut setup, &bench_plan(1_000_000_000), 1000.0, 1_000_000).unwrap();
        assert_eq!((found.times_ns, found.without_overload), (vec![0; 3], 0));
    }

    #[test]
    fn a_device_that_is_not_overloaded_has_nothing_to_recover_from() {
        let mut setup = Simulated::new(Device::default());
        let found = recovery(&mut setup, &bench_plan(1_000_000_000), 1000.0, 1_000_000).unwrap();
        assert_eq!((found.times_ns, found.without_overload), (vec![], 3));
    }

    #[test]
    fn a_device_that_loses_to_the_end_has_not_recovered() {
        // From 0.99 s on; the drop is at 1 s, the last of 550 frames 549 / 550 s after it.
        let outage = Some((990_000_000, u64::MAX));
        let mut setup = Simulated::new(Device { outage, ..Device::default() });
        let found = recovery(&mut setup, &bench_plan(1_000_000_000), 1000.0, 1_000_000).unwrap();
        assert!(found.times_ns.is_empty());
        assert_eq!(found.not_recovered_ns, [(549.0_f64 * 1e9 / 550.0).round() as u64; 3]);
    }
}
