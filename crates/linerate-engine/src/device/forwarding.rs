//! Whether frames come out of the device at all: a few slow ones before the first trial.
//!
//! A device or a link behind it that is too narrow for them (its MTU), or that leads elsewhere,
//! drops all in silence; every test would find a device that forwards nothing. Left out: lengths of
//! a mix that are lost while others come.

use linerate_core::device::WhenLate;
use linerate_core::record::{BenchPlan, BenchTest, Failure, Fault};

use super::setup::{Length, TrialAbort, TrialSpec};
use super::tester::BenchTester;

/// Frames of a try, and how fast they go.
const FRAMES: u64 = 16;
const FPS: u64 = 1000;

/// A device may ask for hardware addresses first.
const TRIES: u64 = 3;
/// With those that a busy tester spoils.
const TRIES_MAX: u64 = 20;

/// Sends some frames and looks for them; what spoils a trial is left to the trials, which say it.
pub(super) fn check_forwarding(
    tester: &mut BenchTester<'_, '_>,
    plan: &BenchPlan,
) -> Result<(), TrialAbort> {
    let spec = TrialSpec {
        length: Length::Frames(FRAMES),
        ..TrialSpec::new(BenchTest::Latency, Some(FPS), 0)
    };
    let mut silent = 0;
    for _ in 0..TRIES_MAX {
        let outcome = tester.run_single_trial(&spec, WhenLate::KeepSchedule)?;
        let (sent, received) = outcome.totals();
        if received > 0 || sent == 0 {
            return Ok(());
        }
        silent += u64::from(outcome.trial.invalid.is_none());
        if silent == TRIES {
            return Err(nothing_came(tester, plan).into());
        }
    }
    Ok(())
}

fn nothing_came(tester: &BenchTester<'_, '_>, plan: &BenchPlan) -> Failure {
    let ports = tester.ports.iter().map(|port| match &port.host {
        Some(host) => format!("{} of {host}", port.name),
        None => port.name.clone(),
    });
    let ports: Vec<String> = ports.collect();
    let attempt = match &plan.frames.mix {
        Some(_) => "find frames of a mix again at".to_owned(),
        None => format!("find frames of {} bytes again at", plan.frames.size_bytes),
    };
    let reason = format!("none of {} came through the device", TRIES * FRAMES);
    Failure::new(Fault::Unreachable, attempt, ports.join(", "), reason).advise(
        "check that it forwards between these ports, and that its MTU and that of every link allow \
         this frame size",
    )
}
