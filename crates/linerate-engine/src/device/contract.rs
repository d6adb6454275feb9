//! The policer or shaper against what was ordered.
//!
//! After a rest, a train of frames at the highest rate shows by the numbers of those that came
//! where the bucket was empty; a second one at twice the rate found is precise. Then the steps of
//! a service activation (ITU-T Y.1564 §8), where a contract was ordered. Bytes are those of frames
//! with FCS. A shaper delays before it drops: what is found as its burst includes its queue. Left
//! out: colours, and the depth of a shaper that drops nothing.

use linerate_core::device::activation::{
    Activation, ActivationStage, ActivationTimes, Broken, Criteria, Service, ServiceCounts,
    ServiceOutcome, ServiceVerdict,
};
use linerate_core::device::policer::{
    BucketEstimate, FindError, PolicerSearch, TrainFrame, TrainTrial, compare, find_bucket,
    frames_for_second,
};
use linerate_core::device::search::{Controller, Invalid as Spoilt};
use linerate_core::record::{
    BenchContract, BenchPlan, BenchTest, ContractFound, Failure, Fault, Holds, LoadPoint, RateFound,
};

use super::burst::ROOM_FRAMES;
use super::setup::{SenderResult, TestSetup, TrialAbort, TrialCounts, TrialSpec};

/// The rate is to be known to this share.
pub(super) const PRECISION: f64 = 0.01;

/// Frames are off their times by so much at least, ns.
pub(super) const TOLERANCE_NS: u64 = 2_000;

/// A train that tells nothing is sent so often.
const TRIES: u32 = 4;

/// A delay that grows by this much within a train is a queue's, ns.
const QUEUE_NS: u64 = 1_000_000;

/// The token bucket of a device that polices, compared with what was ordered.
pub(super) fn contract(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    most: u64,
) -> Result<ContractFound, TrialAbort> {
    let mut found = ContractFound::default();
    let mut search = PolicerSearch::new(most, plan.frames.size_bytes, PRECISION);
    while let Some(trial) = search.next().into_trial() {
        let read = |outcome: &TrialCounts| bucket(plan, &trial, outcome, None);
        let (outcome, bucket) = send_train(setup, plan, &trial, read)?;
        search.add_outcome(bucket);
        note_delay(&outcome, &mut found.findings);
    }
    match search.last_estimate() {
        Some(Ok(bucket)) => take_bucket(&mut found, &bucket),
        Some(Err(error)) => found.findings.push(error.to_string()),
        None => {}
    }
    if let Some(ordered) = &plan.contract {
        let as_found = against(ordered, &mut found);
        let in_steps = activate(setup, plan, ordered, &mut found)?;
        // What was broken was broken, however far the steps came.
        found.as_ordered = if as_found { in_steps } else { Some(false) };
    }
    Ok(found)
}

/// Sends a train, and again where the tester paused so early that it tells nothing; what is `read`
/// of it.
pub(super) fn send_train<T>(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    trial: &TrainTrial,
    read: impl Fn(&TrialCounts) -> Result<Result<T, FindError>, Failure>,
) -> Result<(TrialCounts, Result<T, FindError>), TrialAbort> {
    let frames = u128::from(trial.load_fps) * u128::from(trial.duration_ns) / 1_000_000_000;
    let frames = u64::try_from(frames).unwrap_or(u64::MAX).clamp(2, ROOM_FRAMES);
    let spec = TrialSpec {
        senders: Some(vec![0]),
        idle_ns: trial.idle_before_ns.max(plan.times.settle_ns),
        ..TrialSpec::frame_train(BenchTest::Contract, Some(trial.load_fps), frames)
    };
    let spec = spec.because("a train after a rest");
    let mut tries = TRIES;
    loop {
        let outcome = setup.run_trial(&spec)?;
        let found = read(&outcome)?;
        tries -= 1;
        if tries == 0 || !matches!(found, Err(FindError::Paused)) {
            return Ok((outcome, found));
        }
    }
}

/// The bucket that drops what was dropped of a train, and not by the one before it.
pub(super) fn bucket(
    plan: &BenchPlan,
    trial: &TrainTrial,
    outcome: &TrialCounts,
    before: Option<&BucketEstimate>,
) -> Result<Result<BucketEstimate, FindError>, Failure> {
    let both = trains(plan, trial, outcome)?;
    let off_ns = lateness(outcome, &both, 500_000_000 / trial.load_fps.max(1)).max(TOLERANCE_NS);
    let trains = both.into_iter().map(|train| match before {
        Some(before) => frames_for_second(&train, before),
        None => (train, 0.0),
    });
    let trains: Vec<_> = trains.collect();
    let Some(result) = outcome.results.first() else { return Ok(Err(FindError::NothingArrived)) };
    let late_ns = result.sent.worst_late_ns.max(off_ns);
    let mut found = Err(FindError::NoBucket);
    // A busy machine sends late: frames that came tell when, and else nothing but the worst.
    for tolerance_ns in [off_ns, late_ns] {
        for (train, deeper) in &trains {
            if found == Err(FindError::NoBucket) {
                found = find_bucket(&[train], tolerance_ns)
                    .map(|estimate| estimate.maybe_deeper(*deeper));
            }
        }
    }
    Ok(found)
}

/// The frames of a train at the times of its schedule, and at those that arrivals tell.
pub(super) fn trains(
    plan: &BenchPlan,
    trial: &TrainTrial,
    outcome: &TrialCounts,
) -> Result<Vec<Vec<TrainFrame>>, Failure> {
    let Some(result) = outcome.results.first() else { return Ok(Vec::new()) };
    result.has_arrivals()?;
    let times = [scheduled(result, trial), arrived(result, trial)];
    Ok(times.iter().map(|times| train_frames(plan, result, times)).collect())
}

/// How far off its schedule the frames of a train were, ns, by those that arrived, the most less
/// the least, and by pauses that are no longer than `most_ns`: beyond that nothing could be told.
/// Of n even samples the range is (n - 1) / (n + 1) of the whole in the mean.
pub(super) fn lateness(outcome: &TrialCounts, trains: &[Vec<TrainFrame>], most_ns: u64) -> u64 {
    let [scheduled, arrived] = trains else { return 0 };
    let came = scheduled.iter().zip(arrived).filter(|(frame, _)| frame.arrived);
    let off = came.map(|(due, came)| came.sent_ns.cast_signed() - due.sent_ns.cast_signed());
    let (mut count, mut least, mut most) = (0_i64, i64::MAX, i64::MIN);
    for off_ns in off {
        (count, least, most) = (count + 1, least.min(off_ns), most.max(off_ns));
    }
    let range = most.saturating_sub(least).max(0);
    let range = range.saturating_add(range / (count - 1).max(1) * 2).cast_unsigned();
    let pauses = outcome.results.iter().flat_map(|result| &result.sent.timing.pauses);
    let short = pauses.map(|pause| pause.late_ns).filter(|late_ns| *late_ns <= most_ns).max();
    range.min(most_ns).max(short.unwrap_or(0))
}

fn train_frames(plan: &BenchPlan, result: &SenderResult, times: &[u64]) -> Vec<TrainFrame> {
    let frame = |number: usize, sent_ns: &u64| TrainFrame {
        sent_ns: *sent_ns,
        bytes: plan.frames.size_bytes,
        arrived: result.arrivals.get(number).is_some_and(Option::is_some),
    };
    times.iter().enumerate().map(|(number, sent_ns)| frame(number, sent_ns)).collect()
}

/// When each frame was sent: when it was due, but after a pause of the tester at once.
fn scheduled(result: &SenderResult, trial: &TrainTrial) -> Vec<u64> {
    let fps = u128::from(trial.load_fps.max(1));
    let due = |number: u64| (u128::from(number) * 1_000_000_000 / fps) as u64;
    let mut pauses = result.sent.timing.pauses.iter().peekable();
    let mut not_before = 0;
    let at = |number: u64| {
        while let Some(pause) = pauses.next_if(|pause| pause.sequence <= number) {
            not_before = due(pause.sequence) + pause.late_ns;
        }
        due(number).max(not_before)
    };
    (0..result.sent.frames).map(at).collect()
}

/// When each frame was at the device: when it came, for one that came, and for one that was
/// dropped when it was to be sent, but not before the last one that came.
fn arrived(result: &SenderResult, trial: &TrainTrial) -> Vec<u64> {
    let mut times = scheduled(result, trial);
    let first = result.arrivals.iter().zip(&times).find_map(|(came, due)| Some(((*came)?, *due)));
    let Some((came, due)) = first else { return times };
    let mut last = 0;
    for (number, time) in times.iter_mut().enumerate() {
        if let Some(at) = result.arrivals.get(number).copied().flatten() {
            last = at.saturating_sub(came) + due;
            *time = last;
        } else {
            *time = last.max(*time);
        }
    }
    times
}

/// A shaper lets frames wait: their delay grows within the train.
fn note_delay(outcome: &TrialCounts, findings: &mut Vec<String>) {
    let received = outcome.results.iter().flat_map(|result| &result.received).map(|(_, it)| it);
    for received in received.filter(|counts| counts.frames > 0) {
        let least = received.latency.min_ns;
        let middle = received.latency.bins.quantile(0.5).unwrap_or(least);
        if middle.saturating_sub(least) > QUEUE_NS && findings.is_empty() {
            findings.push(format!(
                "half of the frames waited for {:.1} ms or more: the device shapes, and the burst \
                 includes its queue",
                (middle - least) as f64 / 1e6
            ));
        }
    }
}

pub(super) fn take_bucket(found: &mut ContractFound, bucket: &BucketEstimate) {
    found.cir_bps = Some(RateFound {
        value: bucket.rate_bps,
        low: bucket.rate_low_bps,
        high: bucket.rate_high_bps,
    });
    found.cbs_bytes = Some(RateFound {
        value: bucket.burst_bytes,
        low: bucket.burst_low_bytes,
        high: bucket.burst_high_bytes,
    });
    if bucket.is_shallow {
        let line = "the bucket is so shallow that it fills between two frames: its rate may be \
                    higher";
        found.findings.push(line.to_owned());
    }
}

/// Rate and burst against the order: with excess, the device drops at the sum of both.
fn against(ordered: &BenchContract, found: &mut ContractFound) -> bool {
    let excess_bps = ordered.eir.map_or(0, |rate| rate.bits_per_sec());
    let rate = (ordered.cir.bits_per_sec() + excess_bps) as f64;
    let burst = (ordered.cbs_bytes + ordered.ebs_bytes.unwrap_or(0)) as f64;
    let mut kept = true;
    for (what, name, unit, ordered, value) in [
        ("rate", "cir", "bit/s", rate, found.cir_bps),
        ("burst", "cbs", "bytes", burst, found.cbs_bytes),
    ] {
        let Some(measured) = value else { continue };
        let RateFound { value, low, high } = measured;
        let compared = compare(ordered, measured, PRECISION).with_parameter(name, unit);
        let holds = compared.holds;
        found.compared.push(compared);
        let verdict = match holds {
            Holds::Kept => continue,
            Holds::Less => "less",
            Holds::More => "more",
        };
        kept = false;
        found.findings.push(format!(
            "{what}: {value:.0} {unit} ({low:.0} to {high:.0}), {verdict} than the {ordered:.0} \
             that were ordered"
        ));
    }
    kept
}

/// Steps of the committed rate, the excess rate, and above both; nothing when the tester was
/// disturbed in them.
fn activate(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    ordered: &BenchContract,
    found: &mut ContractFound,
) -> Result<Option<bool>, TrialAbort> {
    let service = Service {
        name: "contract".to_owned(),
        cir_bps: ordered.cir.bits_per_sec(),
        eir_bps: ordered.eir.map_or(0, |rate| rate.bits_per_sec()),
        burst_bytes: ordered.cbs_bytes + ordered.ebs_bytes.unwrap_or(0),
        is_policed: true,
        criteria: Criteria { loss_ratio: 0.0, delay_ns: None, variation_ns: None },
    };
    let step_ns = plan.times.trial_ns;
    let times = ActivationTimes { step_ns, performance_ns: step_ns };
    let activation = Activation::new(vec![service], times, true);
    let mut activation = activation
        .map_err(|error| Failure::new(Fault::Usage, "activate", "the contract", error))?;
    while let Some(trial) = activation.next().into_trial() {
        let bps = trial.loads.first().map_or(0, |(_, bps)| *bps);
        let fps = (bps / 8 / u64::from(plan.frames.size_bytes.max(1))).max(1);
        let spec = TrialSpec {
            senders: Some(vec![0]),
            idle_ns: plan.times.settle_ns,
            may_fall_short: matches!(
                trial.stage,
                ActivationStage::Excess | ActivationStage::Policing
            ),
            ..TrialSpec::new(BenchTest::Contract, Some(fps), trial.duration_ns)
        };
        let outcome = setup.run_trial(&spec.because(stage_name(trial.stage)))?;
        if outcome.trial.invalid.is_none() {
            found.steps.push(outcome.load_point());
        }
        activation.add_outcome(service_outcome(&outcome, plan.frames.size_bytes));
    }
    let broken = activation.verdicts().iter().filter(|verdict| !verdict.broken.is_empty());
    found.findings.extend(broken.map(finding));
    let (done, all) = (activation.verdicts().len(), activation.trials().len());
    if done < all {
        found.findings.push(format!("the tester was disturbed after {done} of {all} steps"));
    }
    let is_broken = activation.verdicts().iter().any(|verdict| !verdict.broken.is_empty());
    Ok((done == all || is_broken).then_some(!is_broken))
}

fn service_outcome(outcome: &TrialCounts, frame_bytes: u32) -> ServiceOutcome {
    let LoadPoint { sent, received, .. } = outcome.load_point();
    let span = outcome
        .results
        .first()
        .map(|result| result.sent.last_ns.saturating_sub(result.sent.first_ns));
    // n frames take up n gaps of the load.
    let gap = span.unwrap_or(0) / sent.saturating_sub(1).max(1);
    let counts = ServiceCounts {
        service: 0,
        sent,
        received,
        received_bytes: received * u64::from(frame_bytes),
        delay_ns: None,
        variation_ns: None,
    };
    let invalid = outcome.trial.invalid.as_ref();
    ServiceOutcome {
        counts: vec![counts],
        elapsed_ns: span.unwrap_or(0) + gap,
        away_ns: outcome.results.first().map_or(0, |result| result.sent.timing.away_ns),
        invalid: invalid.map(|reason| Spoilt::Other(reason.detail().to_owned())),
    }
}

fn stage_name(stage: ActivationStage) -> String {
    match stage {
        ActivationStage::Committed { percent } => format!("{percent} % of the committed rate"),
        ActivationStage::Excess => "committed and excess rate".to_owned(),
        ActivationStage::Policing => "above both rates".to_owned(),
        ActivationStage::Performance => "the committed rate, for long".to_owned(),
    }
}

fn finding(verdict: &ServiceVerdict) -> String {
    let broken: Vec<String> = verdict.broken.iter().map(broken_words).collect();
    format!("{}: {}", stage_name(verdict.stage), broken.join(", "))
}

fn broken_words(broken: &Broken) -> String {
    match broken {
        Broken::Loss { ratio } => format!("{:.4} % were lost", ratio * 100.0),
        Broken::Delay { ns } => format!("a delay of {} ns", ns.unwrap_or(0)),
        Broken::Variation { ns } => format!("a delay variation of {} ns", ns.unwrap_or(0)),
        Broken::BelowCommitted { bps } => format!("{bps:.0} bit/s came out, less than committed"),
        Broken::AboveContract { bps } => format!("{bps:.0} bit/s came out, more than the contract"),
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::theory::token_bucket::TokenBucket;
    use linerate_core::units::{BitRate, Bytes};

    use super::super::simulated::{Device, Late, Simulated, bench_plan};
    use super::*;

    /// A policer of 1,000 frames/s of 64 bytes, 50 at once: 512,000 bit/s and 3,200 bytes.
    fn simulate_contract(ordered: Option<(u64, u64)>) -> ContractFound {
        let bucket = TokenBucket::new(BitRate::from_bits_per_sec(512_000), Bytes::new(3200));
        let device = Device { policers: vec![bucket.unwrap()], ..Device::default() };
        let ordered = ordered.map(|(cir_bps, cbs_bytes)| BenchContract {
            cir: BitRate::from_bits_per_sec(cir_bps),
            cbs_bytes,
            eir: None,
            ebs_bytes: None,
        });
        let plan = BenchPlan { contract: ordered, ..bench_plan(1_000_000_000) };
        contract(&mut Simulated::new(device), &plan, 20_000).unwrap()
    }

    fn is_in(found: Option<RateFound>, truth: f64, width: f64) {
        let found = found.unwrap();
        assert!(found.low <= truth * 1.001 && found.high >= truth * 0.999, "{found:?}");
        assert!((found.value / truth - 1.0).abs() < width, "{found:?}");
    }

    #[test]
    fn rate_and_depth_of_a_policer_are_found_from_its_losses() {
        let found = simulate_contract(None);
        is_in(found.cir_bps, 512_000.0, 0.01);
        is_in(found.cbs_bytes, 3200.0, 0.03);
        assert_eq!((found.as_ordered, found.steps.len()), (None, 0));
        assert!(found.findings.is_empty(), "{:?}", found.findings);
    }

    #[test]
    fn a_policer_as_ordered_keeps_every_step() {
        let found = simulate_contract(Some((512_000, 3200)));
        assert_eq!(found.as_ordered, Some(true), "{:?}", found.findings);
        // 25, 50, 75 and 100 % of the rate, 125 % of it, and the rate for long.
        let loads: Vec<f64> = found.steps.iter().filter_map(|step| step.intended_fps).collect();
        assert_eq!(loads, [250.0, 500.0, 750.0, 1000.0, 1250.0, 1000.0]);
        assert!(found.steps[..4].iter().all(|step| step.sent == step.received));
    }

    #[test]
    fn a_perfect_policer_is_never_convicted_however_late_the_tester() {
        let ms = 1_000_000;
        let mut kept = 0;
        for seed in 1..=25 {
            let late = Late { seed, jitter_ns: 3000, ..Late::default() };
            let busy = Late { pause_ns: (ms / 10, 4 * ms), every_ns: (20 * ms, 200 * ms), ..late };
            let held_up =
                Late { pause_ns: (2 * ms, 15 * ms), every_ns: (100 * ms, 400 * ms), ..late };
            for late in [late, busy, held_up] {
                let bucket =
                    TokenBucket::new(BitRate::from_bits_per_sec(512_000), Bytes::new(3200));
                let device = Device { policers: vec![bucket.unwrap()], ..Device::default() };
                let contract_of = BenchContract {
                    cir: BitRate::from_bits_per_sec(512_000),
                    cbs_bytes: 3200,
                    eir: None,
                    ebs_bytes: None,
                };
                let plan = BenchPlan { contract: Some(contract_of), ..bench_plan(1_000_000_000) };
                let mut setup = Simulated { late: Some(late), ..Simulated::new(device) };
                let found = contract(&mut setup, &plan, 20_000).unwrap();
                assert_ne!(found.as_ordered, Some(false), "{late:?}: {:?}", found.findings);
                kept += usize::from(found.as_ordered == Some(true));
            }
        }
        println!("{kept} of 75 were found as ordered, none otherwise");
        assert!(kept >= 50, "{kept} of 75");
    }

    #[test]
    fn a_policer_that_grants_less_or_more_than_ordered_is_found_out() {
        let less = simulate_contract(Some((1_024_000, 3200)));
        assert_eq!(less.as_ordered, Some(false));
        assert!(less.findings[0].contains("less than the 1024000"), "{:?}", less.findings);
        let more = simulate_contract(Some((256_000, 1600)));
        assert_eq!(more.as_ordered, Some(false));
        assert!(more.findings[0].contains("more than the 256000"), "{:?}", more.findings);
        assert!(more.findings[1].starts_with("burst"), "{:?}", more.findings);
    }

    #[test]
    fn a_device_without_a_policer_reaches_no_contract() {
        let mut setup = Simulated::new(Device::default());
        let found = contract(&mut setup, &bench_plan(1_000_000_000), 20_000).unwrap();
        assert_eq!((found.cir_bps, found.cbs_bytes), (None, None));
        assert_eq!(found.findings.len(), 1);
    }
}
