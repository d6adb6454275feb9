//! Service activation: does each service get what was ordered, and do all of them together?
//!
//! First each service alone in steps of its committed rate, then with its excess rate, then above
//! both to see the policer; then all services together for a long time. A failed service ends the
//! first part before the second, unless all is asked for. Source: ITU-T Y.1564 §8; the step above
//! both rates is CIR + 125 % of EIR, and 125 % of CIR where there is no EIR.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::search::{Controller, INVALID_MAX, Invalid, NextTrial};

/// Steps of the committed rate, percent.
pub const STEPS_PERCENT: [u64; 4] = [25, 50, 75, 100];

/// Limits that a service must keep at or below its committed rate (its service acceptance
/// criteria).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Criteria {
    /// Largest frame loss ratio.
    pub loss_ratio: f64,
    /// Largest frame transfer delay, ns; `None` when there is no such limit.
    pub delay_ns: Option<u64>,
    /// Largest delay variation, ns.
    pub variation_ns: Option<u64>,
}

/// A service as ordered. Rates and bytes are counted at the layer of the contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Service {
    /// Name that the report prints.
    pub name: String,
    /// Committed information rate, bit/s.
    pub cir_bps: u64,
    /// Excess information rate, bit/s; 0 for none.
    pub eir_bps: u64,
    /// Committed and excess burst together, bytes: they may be forwarded on top of the rates.
    pub burst_bytes: u64,
    /// True when a policer must hold the service to its rates.
    pub is_policed: bool,
    /// Limits for loss, delay and delay variation.
    pub criteria: Criteria,
}

/// Step of the activation test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "stage")]
pub enum ActivationStage {
    /// A share of the committed rate.
    Committed {
        /// Load in percent of the CIR.
        percent: u64,
    },
    /// Load at CIR + EIR.
    Excess,
    /// Load above CIR + EIR.
    Policing,
    /// Performance test: all services together at CIR.
    Performance,
}

/// A trial: services with the rates to send them at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceTrial {
    /// The part of the test.
    pub stage: ActivationStage,
    /// Number of the service and its rate, bit/s.
    pub loads: Vec<(usize, u64)>,
    /// Time for which frames are sent, ns.
    pub duration_ns: u64,
}

/// Counts of one service in one trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceCounts {
    /// Number of the service.
    pub service: usize,
    /// Frames of the service sent.
    pub sent: u64,
    /// Frames received from the device.
    pub received: u64,
    /// Bytes of those frames, as the contract counts.
    pub received_bytes: u64,
    /// Frame transfer delay, ns, in the statistic of the order; `None` when not measured.
    pub delay_ns: Option<u64>,
    /// Frame delay variation, ns.
    pub variation_ns: Option<u64>,
}

/// Outcome of a trial, with the counts of each service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceOutcome {
    /// Counts of each service of the trial.
    pub counts: Vec<ServiceCounts>,
    /// Time of sending, ns.
    pub elapsed_ns: u64,
    /// Part of `elapsed_ns` in which the tester was paused and sent nothing, ns.
    pub away_ns: u64,
    /// The reason why the outcome does not count.
    pub invalid: Option<Invalid>,
}

/// A limit that was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "broken")]
pub enum Broken {
    /// More frames were lost.
    Loss {
        /// Loss ratio that was measured.
        ratio: f64,
    },
    /// Frames were later, or the delay was not measured.
    Delay {
        /// Delay that was measured, ns; `None` when no frame had one.
        ns: Option<u64>,
    },
    /// The delay varied more, or was not measured.
    Variation {
        /// Delay variation that was measured, ns.
        ns: Option<u64>,
    },
    /// Less than the committed rate was forwarded.
    BelowCommitted {
        /// Rate that was received, bit/s.
        bps: f64,
    },
    /// More than both rates and the bursts was forwarded: the policer is too lax.
    AboveContract {
        /// Rate that was received, bit/s.
        bps: f64,
    },
}

/// Verdict for one service in one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceVerdict {
    /// Number of the service.
    pub service: usize,
    /// The part of the test.
    pub stage: ActivationStage,
    /// Information rate that was forwarded, bit/s.
    pub received_bps: f64,
    /// Loss ratio of the service's frames.
    pub loss_ratio: f64,
    /// Limits that were not kept; none for a pass.
    pub broken: Vec<Broken>,
}

/// Reason why a test cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ActivationError {
    /// The list of services is empty.
    #[error("an activation test needs a service")]
    NoService,
    /// A service without a committed rate.
    #[error("service {name}: the committed rate is 0; there is nothing to commit to")]
    NoRate {
        /// Name of the service.
        name: String,
    },
    /// A step or the performance test lasts 0 s.
    #[error("steps and the performance test last longer than 0 s")]
    NoTime,
}

/// Times of the two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivationTimes {
    /// Length of each step, ns: 1 to 60 s.
    pub step_ns: u64,
    /// Length of the test of all services together, ns: 15 min, 2 h or 24 h.
    pub performance_ns: u64,
}

/// Service activation test: which trial comes next, and the verdicts so far.
#[derive(Clone, Debug)]
pub struct Activation {
    services: Vec<Service>,
    plan: Vec<ServiceTrial>,
    done: usize,
    invalid: usize,
    goes_on: bool,
    verdicts: Vec<ServiceVerdict>,
}

impl Activation {
    /// The test of these services; `goes_on` runs the second part even if the first failed.
    /// # Errors
    /// No service, one without a committed rate, a time of 0.
    pub fn new(
        services: Vec<Service>,
        times: ActivationTimes,
        goes_on: bool,
    ) -> Result<Self, ActivationError> {
        if services.is_empty() {
            return Err(ActivationError::NoService);
        }
        if let Some(service) = services.iter().find(|service| service.cir_bps == 0) {
            return Err(ActivationError::NoRate { name: service.name.clone() });
        }
        if times.step_ns == 0 || times.performance_ns == 0 {
            return Err(ActivationError::NoTime);
        }
        let plan = plan_trials(&services, times);
        Ok(Self { services, plan, done: 0, invalid: 0, goes_on, verdicts: Vec::new() })
    }

    /// All trials in the order made.
    pub fn trials(&self) -> &[ServiceTrial] {
        &self.plan
    }

    /// Verdicts of the trials so far, in their order.
    pub fn verdicts(&self) -> &[ServiceVerdict] {
        &self.verdicts
    }

    /// True once all trials were run and every limit was kept.
    pub fn has_passed(&self) -> bool {
        self.done == self.plan.len() && self.is_clean()
    }

    fn is_clean(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.broken.is_empty())
    }
}

impl Controller for Activation {
    type Trial = ServiceTrial;
    type Outcome = ServiceOutcome;

    fn next(&self) -> NextTrial<ServiceTrial> {
        let trial = self.plan.get(self.done).filter(|trial| {
            let is_held =
                trial.stage == ActivationStage::Performance && !self.goes_on && !self.is_clean();
            !is_held && self.invalid < INVALID_MAX
        });
        trial.cloned().map_or(NextTrial::Done, NextTrial::Trial)
    }

    fn add_outcome(&mut self, outcome: ServiceOutcome) {
        let Some(trial) = self.next().into_trial() else { return };
        if outcome.invalid.is_some() || outcome.elapsed_ns == 0 {
            self.invalid += 1;
            return;
        }
        self.invalid = 0;
        self.done += 1;
        for counts in &outcome.counts {
            if let Some(service) = self.services.get(counts.service) {
                self.verdicts.push(judge_service(service, trial.stage, counts, &outcome));
            }
        }
    }
}

/// The trials of a test.
fn plan_trials(services: &[Service], times: ActivationTimes) -> Vec<ServiceTrial> {
    let mut plan = Vec::new();
    for (number, service) in services.iter().enumerate() {
        let mut add = |stage, bps| {
            let loads = vec![(number, bps)];
            plan.push(ServiceTrial { stage, loads, duration_ns: times.step_ns });
        };
        for percent in STEPS_PERCENT {
            add(ActivationStage::Committed { percent }, percent_of(service.cir_bps, percent));
        }
        if service.eir_bps > 0 {
            add(ActivationStage::Excess, service.cir_bps.saturating_add(service.eir_bps));
        }
        if service.is_policed {
            add(ActivationStage::Policing, policing_bps(service));
        }
    }
    let loads = services.iter().map(|service| service.cir_bps).enumerate().collect();
    let duration_ns = times.performance_ns;
    plan.push(ServiceTrial { stage: ActivationStage::Performance, loads, duration_ns });
    plan
}

/// The given percentage of a rate.
fn percent_of(bps: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(bps) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// The rate that a policer must cut.
fn policing_bps(service: &Service) -> u64 {
    match service.eir_bps {
        0 => percent_of(service.cir_bps, 125),
        eir => service.cir_bps.saturating_add(percent_of(eir, 125)),
    }
}

fn judge_service(
    service: &Service,
    stage: ActivationStage,
    counts: &ServiceCounts,
    outcome: &ServiceOutcome,
) -> ServiceVerdict {
    let seconds = outcome.elapsed_ns as f64 / 1e9;
    let received_bps = counts.received_bytes as f64 * 8.0 / seconds;
    let lost = counts.sent.saturating_sub(counts.received);
    let loss_ratio = if counts.sent == 0 { 1.0 } else { lost as f64 / counts.sent as f64 };
    let broken = match stage {
        ActivationStage::Committed { .. } | ActivationStage::Performance => {
            check_committed(service, counts, loss_ratio)
        }
        ActivationStage::Excess | ActivationStage::Policing => {
            check_above_committed(service, stage, received_bps, outcome)
        }
    };
    ServiceVerdict { service: counts.service, stage, received_bps, loss_ratio, broken }
}

/// Checks a step at or below the committed rate: all limits hold.
fn check_committed(service: &Service, counts: &ServiceCounts, loss_ratio: f64) -> Vec<Broken> {
    let Criteria { loss_ratio: most, delay_ns, variation_ns } = service.criteria;
    let is_above = |got: Option<u64>, most: Option<u64>| match (got, most) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(got), Some(most)) => got > most,
    };
    let loss = (loss_ratio > most).then_some(Broken::Loss { ratio: loss_ratio });
    let delay = is_above(counts.delay_ns, delay_ns);
    let delay = delay.then_some(Broken::Delay { ns: counts.delay_ns });
    let variation = is_above(counts.variation_ns, variation_ns);
    let variation = variation.then_some(Broken::Variation { ns: counts.variation_ns });
    loss.into_iter().chain(delay).chain(variation).collect()
}

/// Checks a step above the committed rate: that rate is still forwarded, and with a policer no more
/// than the contract. Frames that were not sent while the tester was away do not count.
fn check_above_committed(
    service: &Service,
    stage: ActivationStage,
    received_bps: f64,
    outcome: &ServiceOutcome,
) -> Vec<Broken> {
    let seconds = outcome.elapsed_ns as f64 / 1e9;
    let sending_s = outcome.elapsed_ns.saturating_sub(outcome.away_ns) as f64 / 1e9;
    let sending = (sending_s / seconds).clamp(0.0, 1.0);
    let least = service.cir_bps as f64 * (1.0 - service.criteria.loss_ratio) * sending;
    // A whole number of frames makes the rate a little less than asked.
    let is_below = received_bps < least * (1.0 - 1e-3);
    let burst_bps = service.burst_bytes as f64 * 8.0 / seconds;
    let contract = service.cir_bps as f64 + service.eir_bps as f64 + burst_bps;
    let is_policing = stage == ActivationStage::Policing && service.is_policed;
    let is_above = is_policing && received_bps > contract * (1.0 + 1e-3);
    let below = is_below.then_some(Broken::BelowCommitted { bps: received_bps });
    let above = is_above.then_some(Broken::AboveContract { bps: received_bps });
    below.into_iter().chain(above).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME_BYTES: u64 = 1000;
    const TIMES: ActivationTimes =
        ActivationTimes { step_ns: 10_000_000_000, performance_ns: 900_000_000_000 };

    fn service(eir_bps: u64) -> Service {
        Service {
            name: "gold".to_owned(),
            cir_bps: 10_000_000,
            eir_bps,
            burst_bytes: 16_000,
            is_policed: true,
            criteria: Criteria { loss_ratio: 1e-4, delay_ns: Some(5_000_000), variation_ns: None },
        }
    }

    /// Sends whole frames through a device that passes so much of each service.
    fn run(activation: &mut Activation, passes_bps: f64, delay_ns: u64) {
        while let Some(trial) = activation.next().into_trial() {
            let seconds = trial.duration_ns as f64 / 1e9;
            let counts = trial.loads.iter().map(|&(service, bps)| {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let frames = |bps: f64| (bps * seconds / 8.0 / FRAME_BYTES as f64) as u64;
                let (sent, received) = (frames(bps as f64), frames(passes_bps.min(bps as f64)));
                ServiceCounts {
                    service,
                    sent,
                    received,
                    received_bytes: received * FRAME_BYTES,
                    delay_ns: Some(delay_ns),
                    variation_ns: None,
                }
            });
            let counts = counts.collect();
            let elapsed_ns = trial.duration_ns;
            activation.add_outcome(ServiceOutcome {
                counts,
                elapsed_ns,
                away_ns: 0,
                invalid: None,
            });
        }
    }

    #[test]
    fn what_a_tester_that_was_away_did_not_send_is_no_broken_commitment() {
        // 10 s at 125 % of 10 Mbit/s, 3 s of it away: 7 s of the committed rate came, 7 Mbit/s.
        let service = service(0);
        let counts = ServiceCounts {
            service: 0,
            sent: 10_000,
            received: 8750,
            received_bytes: 8_750_000,
            delay_ns: None,
            variation_ns: None,
        };
        let of = |away_ns| {
            let counts = vec![counts];
            let outcome =
                ServiceOutcome { counts, elapsed_ns: 10_000_000_000, away_ns, invalid: None };
            judge_service(&service, ActivationStage::Policing, &outcome.counts[0], &outcome).broken
        };
        assert_eq!(of(3_000_000_000), []);
        assert_eq!(of(0), [Broken::BelowCommitted { bps: 7e6 }]);
    }

    fn activation(eir_bps: u64) -> Activation {
        Activation::new(vec![service(eir_bps)], TIMES, false).expect("a service")
    }

    #[test]
    fn steps_are_quarters_of_cir_then_eir_then_above() {
        let loads = |eir_bps| {
            let plan = activation(eir_bps);
            plan.trials().iter().map(|trial| trial.loads[0].1 / 100_000).collect::<Vec<_>>()
        };
        // 10 Mbit/s and 4 of excess: 14, then 10 + 1.25 * 4 = 15; alone 12.5.
        assert_eq!(loads(4_000_000), [25, 50, 75, 100, 140, 150, 100]);
        assert_eq!(loads(0), [25, 50, 75, 100, 125, 100]);
    }

    #[test]
    fn a_device_that_keeps_the_contract_passes() {
        let mut good = activation(4_000_000);
        run(&mut good, 14_000_000.0, 1_000_000);
        assert!(good.has_passed(), "{:?}", good.verdicts());
        assert_eq!(good.verdicts().len(), 7);
    }

    #[test]
    fn a_lax_policer_fails_at_the_last_step() {
        let mut lax = activation(4_000_000);
        run(&mut lax, 1e9, 1_000_000);
        assert!(!lax.has_passed());
        let broken: Vec<_> =
            lax.verdicts().iter().filter(|verdict| !verdict.broken.is_empty()).collect();
        assert_eq!(broken.len(), 1);
        assert_eq!(broken[0].broken, [Broken::AboveContract { bps: 15_000_000.0 }]);
        // The long part is not run.
        assert!(lax.verdicts().iter().all(|verdict| verdict.stage != ActivationStage::Performance));
    }

    #[test]
    fn a_device_that_grants_too_little_fails_at_cir() {
        let mut tight = activation(0);
        run(&mut tight, 9_000_000.0, 1_000_000);
        let of = |stage| {
            let verdicts = tight.verdicts().iter();
            verdicts
                .filter(|verdict| verdict.stage == stage)
                .flat_map(|verdict| &verdict.broken)
                .collect::<Vec<_>>()
        };
        assert!(of(ActivationStage::Committed { percent: 75 }).is_empty());
        let [Broken::Loss { ratio }] = of(ActivationStage::Committed { percent: 100 })[..] else {
            panic!("a tenth is lost");
        };
        assert!((ratio - 0.1).abs() < 1e-9);
        assert_eq!(of(ActivationStage::Policing), [&Broken::BelowCommitted { bps: 9_000_000.0 }]);
    }

    #[test]
    fn a_late_device_fails_and_so_does_one_that_was_not_timed() {
        let mut late = activation(0);
        run(&mut late, 10_000_000.0, 6_000_000);
        assert_eq!(late.verdicts()[0].broken, [Broken::Delay { ns: Some(6_000_000) }]);
        let none = ServiceCounts {
            service: 0,
            sent: 100,
            received: 100,
            received_bytes: 100_000,
            delay_ns: None,
            variation_ns: None,
        };
        assert_eq!(check_committed(&service(0), &none, 0.0), [Broken::Delay { ns: None }]);
    }

    #[test]
    fn impossible_tests_are_refused() {
        let refused = |services, times| Activation::new(services, times, false).map(drop);
        assert_eq!(refused(Vec::new(), TIMES), Err(ActivationError::NoService));
        let free = Service { cir_bps: 0, ..service(0) };
        assert!(refused(vec![free], TIMES).is_err());
        let times = ActivationTimes { step_ns: 0, ..TIMES };
        assert_eq!(refused(vec![service(0)], times), Err(ActivationError::NoTime));
    }

    #[test]
    fn invalid_trials_are_asked_for_again_and_end_the_test() {
        let mut activation = activation(0);
        let first = activation.next();
        for _ in 0..INVALID_MAX {
            assert_eq!(activation.next(), first);
            let invalid = Some(Invalid::LinkDown);
            activation.add_outcome(ServiceOutcome {
                counts: Vec::new(),
                elapsed_ns: 1,
                away_ns: 0,
                invalid,
            });
        }
        assert_eq!(activation.next(), NextTrial::Done);
        assert!(!activation.has_passed());
    }
}
