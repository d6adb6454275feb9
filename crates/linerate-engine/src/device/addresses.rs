//! How many hardware addresses a switch remembers, and how fast it learns them (RFC 2889 §5.7 and
//! §5.8).
//!
//! The second port sends one frame from each of many addresses to the first; then the first sends
//! one to each of them, and the third port must stay silent: a frame there was flooded, because
//! its address was not known. Before each trial the second port's link restarts, by which a switch
//! forgets what it learnt there, and each trial has addresses of its own. The three ports' own
//! addresses come on top of the count. Left out: waiting for the ageing time of the switch.

use linerate_core::device::addresses::{
    ADDRESSES_MAX, AddressOutcome, AddressSearch, AddressTrial, GENTLE_FPS, RATE_STEPS,
};
use linerate_core::device::search::{Controller, Invalid as Spoilt};
use linerate_core::record::{BenchPlan, BenchTest, Caching, Failure, Fault};

use super::setup::{
    AddressSeries, FramePattern, RestartTarget, TestSetup, TrialAbort, TrialCounts, TrialSpec,
};

/// Ports by their part: test frames come from the first.
const TESTING: usize = 0;
const LEARNING: usize = 1;
const MONITORING: usize = 2;

/// How long the learning port's link is down, ns.
const DOWN_NS: u64 = 20_000_000;

/// Addresses, then the rate at which so many of them are learnt.
pub(super) fn addresses(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    throughput_fps: f64,
    max_fps: u64,
) -> Result<Caching, TrialAbort> {
    if setup.port_names().len() < 3 {
        let reason = "frames to unknown addresses are seen at a third port: name three";
        let object = format!("{} ports", setup.port_names().len());
        return Err(Failure::new(Fault::Usage, "count addresses on", object, reason).into());
    }
    let max = if plan.frames.flows > 1 { plan.frames.flows } else { ADDRESSES_MAX };
    let gentle = GENTLE_FPS.min((throughput_fps / 10.0) as u64).max(1);
    let mut trials = Trials { setup, gentle_fps: gentle, series: 0 };
    let mut capacity = AddressSearch::capacity(u64::from(max), gentle);
    trials.run_search(&mut capacity)?;
    let addresses = capacity.largest_passed().unwrap_or(0);
    let mut learning_fps = None;
    if addresses > 0 {
        let step = (max_fps / RATE_STEPS).max(1);
        let mut rate = AddressSearch::learning_rate(addresses, max_fps.max(1), step);
        trials.run_search(&mut rate)?;
        learning_fps = rate.largest_passed().map(|fps| fps as f64);
    }
    Ok(Caching { addresses, unbounded: capacity.is_at_max(), learning_fps })
}

struct Trials<'a> {
    setup: &'a mut dyn TestSetup,
    /// At this rate or slower, it does not matter which.
    gentle_fps: u64,
    series: u8,
}

impl Trials<'_> {
    fn run_search(&mut self, search: &mut AddressSearch) -> Result<(), TrialAbort> {
        while let Some(trial) = search.next().into_trial() {
            search.add_outcome(self.run_address_trial(trial)?);
        }
        Ok(())
    }

    fn run_address_trial(&mut self, trial: AddressTrial) -> Result<AddressOutcome, TrialAbort> {
        self.series = self.series.wrapping_add(1);
        let count = u32::try_from(trial.addresses).unwrap_or(u32::MAX);
        let learnt = AddressSeries { count, series: self.series };
        self.setup.restart(&RestartTarget::Link(LEARNING, DOWN_NS))?;
        let learning = TrialSpec {
            pattern: Some(FramePattern::Learning(learnt, TESTING)),
            outputs: Some(vec![TESTING]),
            may_fall_short: trial.learning_fps <= self.gentle_fps,
            ..single_sender_spec(LEARNING, trial.learning_fps, trial.addresses)
        };
        let learning = learning.because(format!("{count} addresses to learn"));
        let taught = self.setup.run_trial(&learning)?;
        let test = TrialSpec {
            pattern: Some(FramePattern::Learnt(learnt)),
            outputs: Some(vec![LEARNING]),
            may_fall_short: true,
            ..single_sender_spec(TESTING, self.gentle_fps, trial.addresses)
        };
        let test = test.because(format!("a frame to each of {count} addresses"));
        let tested = self.setup.run_trial(&test)?;
        let (sent, received) = tested.totals();
        Ok(AddressOutcome {
            trial,
            flooded: received_at(&tested, MONITORING),
            lost: sent.saturating_sub(received),
            invalid: spoilt(&taught, trial).or_else(|| spoilt(&tested, trial)),
        })
    }
}

fn single_sender_spec(sender: usize, fps: u64, frames: u64) -> TrialSpec {
    TrialSpec {
        senders: Some(vec![sender]),
        arrivals: false,
        ..TrialSpec::frame_train(BenchTest::Addresses, Some(fps), frames)
    }
}

fn received_at(outcome: &TrialCounts, port: usize) -> u64 {
    let received = outcome.results.iter().flat_map(|result| &result.received);
    received.filter(|(at, _)| *at == port).map(|(_, it)| it.frames).sum()
}

/// An address that was not sent is not one that was forgotten.
fn spoilt(outcome: &TrialCounts, trial: AddressTrial) -> Option<Spoilt> {
    let invalid =
        outcome.trial.invalid.as_ref().map(|reason| Spoilt::Other(reason.detail().to_owned()));
    let is_short = outcome.totals().0 < trial.addresses;
    invalid.or_else(|| is_short.then_some(Spoilt::GeneratorStarved))
}

#[cfg(test)]
mod tests {
    use super::super::simulated::{Device, Simulated, bench_plan};
    use super::*;

    fn simulate_caching(table: (u32, u64), ports: usize) -> Result<Caching, TrialAbort> {
        let device = Device { table, ..Device::default() };
        let mut setup = Simulated { ports, ..Simulated::new(device) };
        let mut plan = bench_plan(1);
        plan.frames.flows = 2000;
        addresses(&mut setup, &plan, 10_000.0, 20_000)
    }

    #[test]
    fn the_planted_table_and_the_rate_at_which_it_fills_are_found() {
        let caching = simulate_caching((1000, 5000), 3).unwrap();
        assert_eq!((caching.addresses, caching.unbounded), (1000, false));
        // Of 20,000 frames/s a hundredth is the step.
        let fps = caching.learning_fps.unwrap();
        assert!((4800.0..=5005.0).contains(&fps), "{fps}");
    }

    #[test]
    fn a_table_larger_than_all_that_is_tried_has_no_upper_bound() {
        let caching = simulate_caching((1_000_000, 1_000_000), 3).unwrap();
        assert_eq!((caching.addresses, caching.unbounded), (2000, true));
        assert_eq!(caching.learning_fps, Some(20_000.0));
    }

    #[test]
    fn two_ports_are_too_few() {
        let Err(TrialAbort::Failed(failure)) = simulate_caching((10, 10), 2) else {
            panic!("it counted")
        };
        assert!(failure.reason.contains("third port"), "{failure}");
    }
}
