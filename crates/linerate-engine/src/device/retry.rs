//! When a trial is run again: the tester spoilt it, or made up for a pause in a way that a device
//! without a buffer could not carry.

use linerate_core::device::WhenLate;
use linerate_core::record::{BenchTest, BenchTrial, TrialPort};

use super::check;
use super::setup::{Length, TrialAbort, TrialCounts, TrialSpec};

/// Makes a trial, and makes it again where it says nothing about the device.
pub(super) fn with_retries(
    spec: &TrialSpec,
    mut once: impl FnMut(WhenLate) -> Result<TrialCounts, TrialAbort>,
) -> Result<TrialCounts, TrialAbort> {
    let mut tries = 0;
    loop {
        let outcome = once(when_late(spec))?;
        if fell_just_short(&outcome.trial) {
            let made_up = once(WhenLate::KeepSchedule)?;
            let carried = made_up.trial.invalid.is_none() && is_clean(&made_up.trial);
            return Ok(if carried { made_up } else { outcome });
        }
        if outcome.trial.invalid.is_none() || tries >= retries_max(&outcome.trial) {
            return Ok(outcome);
        }
        tries += 1;
    }
}

/// How often a trial that says nothing about the device is made again. A search takes a load that
/// the generator cannot send even without pauses for the tester's limit, and needs no other.
fn retries_max(trial: &BenchTrial) -> u32 {
    let is_limit = trial.test == BenchTest::Throughput && is_clean(trial) && !keeps_its_rate(trial);
    if is_limit { 0 } else { 3 }
}

fn is_clean(trial: &BenchTrial) -> bool {
    trial.ports.iter().all(|port| port.lost_frames() == 0)
}

/// True where the generator keeps the load's rate when nothing holds it up: it does unless 100
/// frames or more without a pause between them were slower.
pub(super) fn keeps_its_rate(trial: &BenchTrial) -> bool {
    const FRAMES: f64 = 100.0;
    let intended = trial.intended_fps.unwrap_or(0.0);
    let is_slow = |port: &TrialPort| {
        port.steady_fps.is_some_and(|fps| {
            fps < intended * check::SHORT && fps * port.steady_ns as f64 / 1e9 >= FRAMES
        })
    };
    !trial.ports.iter().any(is_slow)
}

/// True where a load was nearly offered, and nothing was lost. When the tester's pauses are made up
/// for in bursts it may be offered in full, and a device with room for these carries it.
fn fell_just_short(trial: &BenchTrial) -> bool {
    let intended = trial.intended_fps.unwrap_or(f64::INFINITY);
    let nearly = trial.ports.iter().all(|port| port.offered_fps >= intended * check::NEARLY);
    trial.test == BenchTest::Throughput && trial.invalid.is_some() && is_clean(trial) && nearly
}

/// A trial at a constant load keeps its pace and loses the time of a pause: the burst after it
/// would be a load that nobody asked for. Where frames are numbered in time, as in trains and when
/// a device is away, the schedule counts.
const fn when_late(spec: &TrialSpec) -> WhenLate {
    match spec.test {
        BenchTest::Throughput
        | BenchTest::LossCurve
        | BenchTest::Latency
        | BenchTest::Overload
        | BenchTest::Soak => WhenLate::Steady,
        BenchTest::Contract if matches!(spec.length, Length::Time(_)) => WhenLate::Steady,
        BenchTest::Flood
        | BenchTest::BackToBack
        | BenchTest::Recovery
        | BenchTest::Reset
        | BenchTest::Addresses
        | BenchTest::Blocking
        | BenchTest::Contract => WhenLate::KeepSchedule,
    }
}
