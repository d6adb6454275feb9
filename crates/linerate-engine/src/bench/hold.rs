//! What the device holds back, where short trials would count it as rate.
//!
//! After a search, a few overloads at twice the result show how many frames go in before the first
//! is lost. Over the time of a trial these are no rate: both bounds are less by them. A device that
//! loses nothing at twice its result is not limited by its rate there, and nothing is taken off.

use linerate_core::bench::buffer::{Held, Load, held_frames};
use linerate_core::record::{BenchTest, GoalFound};

use super::bed::{Ask, Bed, Ended};
use super::burst::ROOM_FRAMES;

/// Overloads, of which the middle one counts.
const TRIALS: usize = 3;

/// The load of an overload, times the result.
const OVER: f64 = 2.0;

/// Frames that come to a device differ in their time on the way by so many ns, without anything
/// that tells it. One that holds less than two frames loses by it, and another one does not.
const JITTER_NS: f64 = 1000.0;
const ROOM_FOR_TWO: f64 = 1.75;

/// Longest overload, ns.
const LONGEST_NS: u64 = 1_000_000_000;

/// A buffer that makes less of the rate than this does not matter.
const MATTERS: f64 = 0.001;

/// Bounds further apart than this, with what the overloads differ by, leave no result: it is their
/// middle.
const UNSURE: f64 = 0.02;

/// What a device at about this load holds, in trials of `trial_ns`; none where nothing can be told
/// or nothing was lost.
pub(super) fn held(
    bed: &mut dyn Bed,
    lower_fps: f64,
    most_fps: u64,
    trial_ns: u64,
) -> Result<Option<Held>, Ended> {
    let fps = ((lower_fps * OVER) as u64).clamp(1, most_fps);
    if (fps as f64) < lower_fps * 1.2 {
        return Ok(None);
    }
    let length_ns = trial_ns.min(LONGEST_NS).min(ROOM_FRAMES.saturating_mul(1_000_000_000) / fps);
    let mut found = Vec::new();
    for _ in 0..TRIALS {
        let mut ask = Ask::new(BenchTest::Throughput, Some(fps), length_ns);
        ask.arrivals = true;
        let outcome = bed.trial(&ask.because("how much the device holds back"))?;
        if outcome.trial.invalid.is_some() {
            continue;
        }
        let each = outcome.ways.iter().filter(|way| !way.arrivals.is_empty());
        let of = each.filter_map(|way| {
            let sent = usize::try_from(way.sent.frames).unwrap_or(usize::MAX);
            let kept = &way.arrivals[..sent.min(way.arrivals.len())];
            let came: Vec<bool> = kept.iter().map(Option::is_some).collect();
            held_frames(&came)
        });
        found.extend(of.reduce(f64::max));
    }
    Ok(if found.len() == TRIALS { Held::of(found) } else { None })
}

/// Takes what was held off the bounds of a goal: `passed` is what was sent without loss at its lower
/// bound, `lost` what lost at its upper one.
pub(super) fn take_off(goal: &mut GoalFound, held: &Held, passed: &[&Load], lost: &[&Load]) {
    let Some(lower) = goal.lower_fps else { return };
    if held.frames < ROOM_FOR_TWO && lower * JITTER_NS / 1e9 > UNSURE / 2.0 {
        goal.held_frames = Some(held.frames);
        goal.unfinished = Some(
            "the device has no room for a second frame, so that what the tester is off its times, \
             about 1 \u{b5}s, decides what it loses at such a rate"
                .to_owned(),
        );
        return;
    }
    let least = |held: f64| passed.iter().map(|it| it.carried_by(held)).reduce(f64::max);
    let most = |held: f64| lost.iter().map(|it| it.carried_by(held)).reduce(f64::min);
    let (Some(low), Some(high)) = (least(held.frames), most(held.frames)) else { return };
    if lower - low < lower * MATTERS {
        return;
    }
    goal.held_frames = Some(held.frames);
    let widest = most(held.least).unwrap_or(high) - least(held.most).unwrap_or(low);
    if widest.max(low - high) > low * UNSURE {
        goal.unfinished = Some(format!(
            "its trials, or those without a pause of the tester, are too short for a device that \
             holds {:.0} frames: --trial-time takes longer ones",
            held.frames
        ));
        return;
    }
    goal.lower_fps = Some(low.min(high));
    goal.upper_fps = Some(high.max(low));
    goal.conditional_fps = Some(f64::midpoint(low, high));
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Device, Simulated};
    use super::*;

    #[test]
    fn what_a_device_holds_is_found_by_an_overload() {
        for (capacity_fps, buffer) in [(3370, 200), (73_000, 1), (137_000, 7), (333_000, 64)] {
            let device = Device { capacity_fps, buffer, ..Device::default() };
            let mut bed = Simulated::new(device);
            let found = held(&mut bed, capacity_fps as f64, 1_000_000, 1_000_000_000);
            let found = found.unwrap().expect("it loses at twice its rate");
            assert!((found.frames - buffer as f64).abs() <= 2.0, "{capacity_fps}: {found:?}");
        }
        let mut bed = Simulated::new(Device::default());
        assert_eq!(held(&mut bed, 1000.0, 1_000_000, 1_000_000_000).unwrap(), None);
    }

    fn goal(lower: f64) -> GoalFound {
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

    fn load(fps: f64, seconds: f64) -> Load {
        Load { fps, frames: (fps * seconds) as u64, pauses: Vec::new() }
    }

    #[test]
    fn a_buffer_is_no_rate() {
        let held = Held::of(vec![200.0, 199.0, 201.0]).unwrap();
        // In 0.1 s 5,370 frames/s pass 3,370 frames/s with room for 200; 5,390 do not.
        let mut short = goal(5370.0);
        take_off(&mut short, &held, &[&load(5370.0, 0.1)], &[&load(5390.0, 0.1)]);
        assert!((short.throughput_fps().unwrap() - 3380.0).abs() < 1e-3, "{short:?}");
        assert!((short.lower_fps.unwrap() - 3370.0).abs() < 1e-3, "{short:?}");
        // In 60 s it does not matter.
        let mut long = goal(3373.0);
        take_off(&mut long, &held, &[&load(3373.0, 60.0)], &[&load(3380.0, 60.0)]);
        assert_eq!((long.lower_fps, long.held_frames), (Some(3373.0), None));
        // Where overloads differ by more, nothing is said.
        let mut unsure = goal(5370.0);
        let held = Held::of(vec![150.0, 200.0, 400.0]).unwrap();
        take_off(&mut unsure, &held, &[&load(5370.0, 0.1)], &[&load(5390.0, 0.1)]);
        assert_eq!(unsure.throughput_fps(), None);
        assert!(unsure.unfinished.unwrap().contains("too short"));
    }
}
