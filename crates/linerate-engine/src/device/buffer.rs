//! The device's buffer, which short trials would count as rate.
//!
//! After a search, a few overloads at twice the result show how many frames go in before the first
//! is lost. Over the time of a trial these are no rate: both bounds are less by them. A device that
//! loses nothing at twice its result is not limited by its rate there, and nothing is taken off.
//! One that holds a single frame is a case of its own ([`without_buffer`]).

use linerate_core::device::buffer::{BufferDepth, OfferedLoad, buffer_frames_from_arrivals};
use linerate_core::record::{BenchTest, GoalFound, TrialPort};

use super::burst::ROOM_FRAMES;
use super::setup::{TestSetup, TrialAbort, TrialSpec};

/// Overloads, of which the middle one counts, and how many are made for them at most: in one in
/// which the tester paused for more than this share of it the device had time to empty.
const TRIALS: usize = 3;
const TRIALS_MAX: usize = 12;
const PAUSED_MAX: f64 = 0.01;

/// The load of an overload, times the result.
const OVERLOAD_FACTOR: f64 = 2.0;

/// The rate of a device that holds a single frame is below so many times what passed, and found to
/// within this width.
const SINGLE_FACTOR_MAX: f64 = 1.25;
const SINGLE_WIDTH: f64 = 1.0025;

/// The longest overload, in ns.
const LONGEST_NS: u64 = 1_000_000_000;

/// A buffer that makes less of the rate than this does not matter.
const NEGLIGIBLE: f64 = 0.001;

/// Bounds further apart than this, with what the overloads differ by, leave no result: it is their
/// middle.
const UNCERTAIN: f64 = 0.02;

/// Frames that the device buffers at about this load before it loses one, from overloads of
/// `trial_ns`; none where the trials tell nothing or nothing was lost.
pub(super) fn measure_buffer_depth(
    setup: &mut dyn TestSetup,
    lower_fps: f64,
    most_fps: u64,
    trial_ns: u64,
) -> Result<Option<BufferDepth>, TrialAbort> {
    let fps = ((lower_fps * OVERLOAD_FACTOR) as u64).clamp(1, most_fps);
    if (fps as f64) < lower_fps * 1.2 {
        return Ok(None);
    }
    let length_ns = trial_ns.min(LONGEST_NS).min(ROOM_FRAMES.saturating_mul(1_000_000_000) / fps);
    let mut found = Vec::new();
    for _ in 0..TRIALS_MAX {
        if found.len() == TRIALS {
            break;
        }
        let mut spec = TrialSpec::new(BenchTest::Throughput, Some(fps), length_ns);
        spec.arrivals = true;
        let outcome = setup.run_trial(&spec.because("how much the device holds back"))?;
        let away = |port: &TrialPort| port.away_ns as f64 > length_ns as f64 * PAUSED_MAX;
        if outcome.trial.invalid.is_some() || outcome.trial.ports.iter().any(away) {
            continue;
        }
        let each = outcome.results.iter().filter(|result| !result.arrivals.is_empty());
        let of = each.filter_map(|result| {
            let sent = usize::try_from(result.sent.frames).unwrap_or(usize::MAX);
            let kept = &result.arrivals[..sent.min(result.arrivals.len())];
            let came: Vec<bool> = kept.iter().map(Option::is_some).collect();
            buffer_frames_from_arrivals(&came)
        });
        found.extend(of.reduce(f64::max));
    }
    Ok(if found.len() == TRIALS { BufferDepth::from_trials(found) } else { None })
}

/// The rate of a device without room for a second frame. At a load above its rate it loses every
/// other frame, because each comes while the one before it is served; below, those alone that came
/// too near to the one before. Where half of them do, which is at its rate when frames are as often
/// early as late, each of these costs a frame and the one after it passes: a third is lost. The
/// lower bound stays what passed.
pub(super) fn without_buffer(
    setup: &mut dyn TestSetup,
    goal: &mut GoalFound,
    held: &BufferDepth,
    trial_ns: u64,
) -> Result<(), TrialAbort> {
    let Some(lower) = goal.lower_fps else { return Ok(()) };
    let (mut low, mut high) = (lower, lower * SINGLE_FACTOR_MAX);
    goal.held_frames = Some(held.frames_median);
    goal.unfinished = Some(
        "the device has no room for a second frame, so that what the tester is off its times, \
         about 1 \u{b5}s, decides what it loses at such a rate"
            .to_owned(),
    );
    for (load, is_carried) in [(low, true), (high, false)] {
        if loses_less_than_a_third(setup, load, trial_ns)? != Some(is_carried) {
            return Ok(());
        }
    }
    while high > low * SINGLE_WIDTH {
        let middle = f64::midpoint(low, high);
        match loses_less_than_a_third(setup, middle, trial_ns)? {
            Some(true) => low = middle,
            Some(false) => high = middle,
            None => return Ok(()),
        }
    }
    goal.unfinished = None;
    goal.upper_fps = Some(high);
    goal.conditional_fps = Some(low);
    Ok(())
}

/// True where most of the trials at a load lose less than a third; none where they say nothing.
fn loses_less_than_a_third(
    setup: &mut dyn TestSetup,
    fps: f64,
    trial_ns: u64,
) -> Result<Option<bool>, TrialAbort> {
    let mut few = Vec::new();
    for _ in 0..TRIALS {
        let length_ns = trial_ns.min(LONGEST_NS);
        let spec = TrialSpec::new(BenchTest::Throughput, Some(fps as u64), length_ns);
        let outcome = setup.run_trial(&spec.because("whether it loses every other frame"))?;
        let ports = outcome.trial.ports.iter().filter(|_| outcome.trial.invalid.is_none());
        few.extend(ports.map(|port| port.lost_frames() * 3 < port.sent));
    }
    let yes = few.iter().filter(|is_lost| **is_lost).count();
    Ok((few.len() * 2 > TRIALS && yes * 2 != few.len()).then_some(yes * 2 > few.len()))
}

/// Subtracts the frames that the device buffers from the bounds of a goal: `passed` are the loads
/// sent without loss at its lower bound, `lost` those that lost frames at its upper one.
pub(super) fn subtract_buffered(
    goal: &mut GoalFound,
    held: &BufferDepth,
    passed: &[&OfferedLoad],
    lost: &[&OfferedLoad],
) {
    let Some(lower) = goal.lower_fps else { return };
    let least = |held: f64| passed.iter().map(|load| load.min_service_fps(held)).reduce(f64::max);
    let most = |held: f64| lost.iter().map(|load| load.min_service_fps(held)).reduce(f64::min);
    let (Some(low), Some(high)) = (least(held.frames_median), most(held.frames_median)) else {
        return;
    };
    if lower - low < lower * NEGLIGIBLE {
        return;
    }
    goal.held_frames = Some(held.frames_median);
    let widest = most(held.frames_min).unwrap_or(high) - least(held.frames_max).unwrap_or(low);
    if widest.max(low - high) > low * UNCERTAIN {
        goal.unfinished = Some(format!(
            "its trials, or those without a pause of the tester, are too short for a device that \
             holds {:.0} frames: --trial-time takes longer ones",
            held.frames_median
        ));
        return;
    }
    goal.lower_fps = Some(low.min(high));
    goal.upper_fps = Some(high.max(low));
    goal.conditional_fps = Some(f64::midpoint(low, high));
}

#[cfg(test)]
mod tests {
    use linerate_core::device::buffer::lacks_room_for_second_frame;

    use super::super::simulated::{Device, Late, Simulated};
    use super::*;

    #[test]
    fn what_a_device_holds_is_found_by_an_overload() {
        for (capacity_fps, buffer) in [(3370, 200), (73_000, 1), (137_000, 7), (333_000, 64)] {
            let device = Device { capacity_fps, buffer, ..Device::default() };
            let mut setup = Simulated::new(device);
            let found =
                measure_buffer_depth(&mut setup, capacity_fps as f64, 1_000_000, 1_000_000_000);
            let found = found.unwrap().expect("it loses at twice its rate");
            assert!(
                (found.frames_median - buffer as f64).abs() <= 2.0,
                "{capacity_fps}: {found:?}"
            );
        }
        let mut setup = Simulated::new(Device::default());
        assert_eq!(
            measure_buffer_depth(&mut setup, 1000.0, 1_000_000, 1_000_000_000).unwrap(),
            None
        );
    }

    #[test]
    fn a_device_without_room_for_a_second_frame_is_found_by_every_other_loss() {
        for (capacity_fps, jitter_ns) in [(73_000, 40), (73_000, 700), (200_000, 300)] {
            let device = Device { capacity_fps, buffer: 1, ..Device::default() };
            let late = Late { seed: 7, jitter_ns, ..Late::default() };
            let mut setup = Simulated { late: Some(late), ..Simulated::new(device) };
            setup.ceiling_fps = 4 * capacity_fps;
            let capacity = capacity_fps as f64;
            let mut goal = goal_with_lower_bound(capacity * 0.93);
            let held = BufferDepth::from_trials(vec![0.5, 0.5, 0.6]).unwrap();
            assert!(lacks_room_for_second_frame(held.frames_median, capacity));
            without_buffer(&mut setup, &mut goal, &held, 100_000_000).unwrap();
            let found = goal.throughput_fps().unwrap();
            assert!((found / capacity - 1.0).abs() < 0.01, "{capacity} {jitter_ns}: {goal:?}");
        }
        // A device that loses nothing there holds more than that: no result.
        let mut goal = goal_with_lower_bound(73_000.0);
        let held = BufferDepth::from_trials(vec![0.5; 3]).unwrap();
        let mut setup = Simulated::new(Device::default());
        without_buffer(&mut setup, &mut goal, &held, 100_000_000).unwrap();
        assert_eq!(goal.throughput_fps(), None);
    }

    fn goal_with_lower_bound(lower: f64) -> GoalFound {
        GoalFound {
            goal: "strict".to_owned(),
            lower_fps: Some(lower),
            upper_fps: Some(lower * 1.005),
            conditional_fps: Some(lower),
            trials: 1,
            spent_ns: 1,
            tester_limited: false,
            loss_ratio_below: None,
            held_frames: None,
            scattered: None,
            unfinished: None,
        }
    }

    fn offered_load(fps: f64, seconds: f64) -> OfferedLoad {
        OfferedLoad { fps, frames: (fps * seconds) as u64, pauses: Vec::new() }
    }

    #[test]
    fn a_buffer_is_no_rate() {
        let held = BufferDepth::from_trials(vec![200.0, 199.0, 201.0]).unwrap();
        // In 0.1 s 5,370 frames/s pass 3,370 frames/s with room for 200; 5,390 do not.
        let mut short = goal_with_lower_bound(5370.0);
        subtract_buffered(
            &mut short,
            &held,
            &[&offered_load(5370.0, 0.1)],
            &[&offered_load(5390.0, 0.1)],
        );
        assert!((short.throughput_fps().unwrap() - 3380.0).abs() < 1e-3, "{short:?}");
        assert!((short.lower_fps.unwrap() - 3370.0).abs() < 1e-3, "{short:?}");
        // In 60 s it does not matter.
        let mut long = goal_with_lower_bound(3373.0);
        subtract_buffered(
            &mut long,
            &held,
            &[&offered_load(3373.0, 60.0)],
            &[&offered_load(3380.0, 60.0)],
        );
        assert_eq!((long.lower_fps, long.held_frames), (Some(3373.0), None));
        // Where overloads differ by more, nothing is said.
        let mut unsure = goal_with_lower_bound(5370.0);
        let held = BufferDepth::from_trials(vec![150.0, 200.0, 400.0]).unwrap();
        subtract_buffered(
            &mut unsure,
            &held,
            &[&offered_load(5370.0, 0.1)],
            &[&offered_load(5390.0, 0.1)],
        );
        assert_eq!(unsure.throughput_fps(), None);
        assert!(unsure.unfinished.unwrap().contains("too short"));
    }
}
