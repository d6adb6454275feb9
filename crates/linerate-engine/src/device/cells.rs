//! A policer of cells against what was ordered: PCR with CDVT, SCR with MBS.
//!
//! A train far above PCR shows the peak rule until the sustained bucket is empty; one just below
//! the peak rate that was found meets the sustained rule alone. Where that may stand before the
//! peak rule, trains that are too short to empty it show the peak rule alone. Then what the order
//! allows is sent: MBS cells at PCR after a rest, and cells at SCR for long; none may be lost.
//! Cells are frames of the plan's length. Source: ATM Forum Traffic Management 4.0 §4.4; ITU-T
//! I.371. Left out: tagging (CLP), which no frame shows, and partial packet discard.

use linerate_core::device::policer::{
    BucketEstimate, FindError, TrainFrame, TrainTrial, cell_estimate as in_cells, compare,
    compare_burst, find_bucket, find_first, is_behind_another, max_burst,
};
use linerate_core::record::{
    BenchPlan, BenchTest, CellContract, ComparedParameter, ContractFound, Failure, Holds,
};

use super::burst::ROOM_FRAMES;
use super::contract::{PRECISION, TOLERANCE_NS, bucket, lateness, send_train, take_bucket, trains};
use super::setup::{TestSetup, TrialAbort, TrialCounts, TrialSpec};

/// The first train is so many times as fast as the peak rate.
const ABOVE_PEAK: f64 = 8.0;

/// Trains that show the peak rule where the sustained one may stand before it, in the same: short
/// of room, at once, and long.
const SHORT_LOADS: [f64; 3] = [ABOVE_PEAK, 2.0, 1.3];

/// The second is this share of the peak rate that was found.
const BELOW_PEAK: f64 = 0.9;

/// Trains for the sustained rule, each four times as long, until frames are lost.
const TRIES: u32 = 3;

const SECOND_NS: f64 = 1e9;

/// The longest train and rest, s.
const LONGEST_S: f64 = 60.0;

/// Time without frames before the first train, s: nothing is known about the device yet.
const FIRST_REST_S: f64 = 2.0;

/// The peak and sustained rules of a device that grants cells (GCRA), compared with what was
/// ordered.
pub(super) fn measure_cell_contract(
    setup: &mut dyn TestSetup,
    plan: &BenchPlan,
    ordered: &CellContract,
    most: u64,
) -> Result<ContractFound, TrialAbort> {
    let mut test =
        CellTest { setup, plan, ordered, most, found: ContractFound::default(), open: false };
    let (peak, sustained) = match test.find_peak_rule()? {
        FirstCellRule::Peak(peak, train) => {
            // A slower one than was ordered may be something of both rules.
            let is_slow = test.per_s(peak.rate_bps) < test.between();
            let sustained = test.sustained(Some(&peak).filter(|_| !is_slow))?;
            let hidden = match &sustained {
                Some(rule) if !is_behind_another(&train, rule) => test.hidden_peak(rule)?,
                _ => None,
            };
            (Some(hidden.unwrap_or(peak)), sustained)
        }
        FirstCellRule::Sustained(bucket) => (None, Some(bucket)),
        FirstCellRule::None => (None, None),
    };
    test.compare(peak.as_ref(), sustained.as_ref());
    test.send_within_contract()?;
    let CellTest { mut found, open, .. } = test;
    let is_broken = found.as_ordered == Some(false);
    found.as_ordered = (is_broken || !open).then_some(!is_broken);
    Ok(found)
}

/// The rule that the first train of cells showed.
enum FirstCellRule {
    /// With the train that shows it.
    Peak(BucketEstimate, Vec<TrainFrame>),
    /// No peak rule stands before the sustained one.
    Sustained(BucketEstimate),
    None,
}

struct CellTest<'a> {
    setup: &'a mut dyn TestSetup,
    plan: &'a BenchPlan,
    ordered: &'a CellContract,
    /// Frames per second that can be sent.
    most: u64,
    found: ContractFound,
    /// Something could not be measured.
    open: bool,
}

impl CellTest<'_> {
    /// Depth of the sustained bucket that was ordered, cells.
    fn sustained_depth_cells(&self) -> f64 {
        let CellContract { pcr_per_sec, scr_per_sec, mbs_cells, .. } = *self.ordered;
        let spread_s = 1.0 / scr_per_sec - 1.0 / pcr_per_sec;
        let burst_s = mbs_cells.saturating_sub(1) as f64 * spread_s;
        1.0 + (burst_s + self.ordered.cdvt_ns.unwrap_or(0) as f64 / SECOND_NS) * scr_per_sec
    }

    /// Time in which that bucket is full again, with half as much in reserve.
    fn rest_s(&self) -> f64 {
        1.5 * self.sustained_depth_cells() / self.ordered.scr_per_sec
    }

    /// How far off frames may be: doubled six times it stays below half of the time between two
    /// cells at the peak rate.
    fn tolerance_ns(&self) -> u64 {
        truncate_to_u64(SECOND_NS / self.ordered.pcr_per_sec / 128.0).min(TOLERANCE_NS)
    }

    fn train_trial(&self, load_fps: u64, duration_s: f64, rest_s: f64) -> TrainTrial {
        TrainTrial {
            load_fps,
            duration_ns: truncate_to_u64(duration_s.min(LONGEST_S) * SECOND_NS),
            idle_before_ns: truncate_to_u64(rest_s.min(LONGEST_S) * SECOND_NS),
        }
    }

    fn broken(&mut self, finding: String) {
        self.found.findings.push(finding);
        self.found.as_ordered = Some(false);
    }

    fn find_peak_rule(&mut self) -> Result<FirstCellRule, TrialAbort> {
        let CellContract { pcr_per_sec, mbs_cells, .. } = *self.ordered;
        let above = truncate_to_u64(pcr_per_sec * ABOVE_PEAK).min(self.most);
        let mut loads = vec![above, self.most];
        loads.dedup();
        // Long enough to come out behind the sustained bucket.
        let duration_s = (4.0 * mbs_cells as f64).max(200.0) / pcr_per_sec;
        let mut error = FindError::NoLoss;
        for load_fps in loads {
            let trial = self.train_trial(load_fps, duration_s, self.rest_s().max(FIRST_REST_S));
            let (plan, tolerance_ns) = (self.plan, self.tolerance_ns());
            let read = |outcome: &TrialCounts| find_first_rule(plan, &trial, outcome, tolerance_ns);
            match send_train(self.setup, plan, &trial, read)?.1 {
                Ok((bucket, train, false)) => return Ok(FirstCellRule::Peak(bucket, train)),
                Ok((bucket, train, true)) => {
                    let per_s = self.per_s(bucket.rate_bps);
                    // Of one rule alone: the one whose rate is nearer.
                    if per_s >= self.between() {
                        return Ok(FirstCellRule::Peak(bucket, train));
                    }
                    let line = format!(
                        "no peak rule: {load_fps} cells/s pass until the sustained \
                                        bucket is empty"
                    );
                    self.broken(line);
                    return Ok(FirstCellRule::Sustained(bucket));
                }
                Err(FindError::NoLoss) => {}
                Err(other) => {
                    error = other;
                    break;
                }
            }
        }
        self.lacking("peak", error);
        Ok(FirstCellRule::None)
    }

    /// The peak rule behind a sustained one, which takes of its depth what the peak rule drops:
    /// from trains that leave it some.
    fn hidden_peak(
        &mut self,
        sustained: &BucketEstimate,
    ) -> Result<Option<BucketEstimate>, TrialAbort> {
        let plan = self.plan;
        let scr = self.per_s(sustained.rate_low_bps);
        let depth = sustained.burst_low_bytes / f64::from(plan.frames.size_bytes.max(1)) - 1.0;
        let rest_s = self.rest_s().max(2.0 * depth / scr.max(1e-9));
        let tolerance_ns = self.tolerance_ns();
        let (mut found, mut late_ns) = (Vec::new(), tolerance_ns);
        for load in SHORT_LOADS {
            let load_fps = truncate_to_u64(self.ordered.pcr_per_sec * load).clamp(1, self.most);
            let trial =
                self.train_trial(load_fps, depth / (load_fps as f64 - scr).max(1.0), rest_s);
            let read = |outcome: &TrialCounts| {
                let mut both = trains(plan, &trial, outcome)?;
                let late_ns = lateness(outcome, &both, tolerance_ns.saturating_mul(64));
                Ok(both.pop().map(|train| (train, late_ns)).ok_or(FindError::NothingArrived))
            };
            let Ok((train, late)) = send_train(self.setup, plan, &trial, read)?.1 else { continue };
            found.push(train);
            late_ns = late_ns.max(late);
        }
        let trains: Vec<&[TrainFrame]> = found.iter().map(Vec::as_slice).collect();
        Ok(find_bucket(&trains, late_ns).ok())
    }

    fn per_s(&self, bps: f64) -> f64 {
        bps / 8.0 / f64::from(self.plan.frames.size_bytes.max(1))
    }

    /// Above the sustained rate and below the peak rate that were ordered, as far from either.
    fn between(&self) -> f64 {
        (self.ordered.pcr_per_sec * self.ordered.scr_per_sec).sqrt()
    }

    /// The sustained rule, by a train that the peak rule lets pass, as far as that is known.
    fn sustained(
        &mut self,
        peak: Option<&BucketEstimate>,
    ) -> Result<Option<BucketEstimate>, TrialAbort> {
        let load = peak.map_or_else(
            || self.between(),
            |estimate| self.per_s(estimate.rate_low_bps) * BELOW_PEAK,
        );
        let load_fps = truncate_to_u64(load).clamp(1, self.most);
        let scr = self.ordered.scr_per_sec;
        let excess = (load_fps as f64 - scr).max(scr / 100.0);
        // Until the bucket is empty, and until one cell is to the rate what it is to be known to.
        let mut duration_s =
            (2.0 * self.sustained_depth_cells() / excess + 2.0 / (PRECISION * scr)).max(1.0);
        for _ in 0..TRIES {
            let frames_s = ROOM_FRAMES as f64 / load_fps as f64;
            let trial = self.train_trial(load_fps, duration_s.min(frames_s), self.rest_s());
            let plan = self.plan;
            let read = |outcome: &TrialCounts| bucket(plan, &trial, outcome, peak);
            match send_train(self.setup, plan, &trial, read)?.1 {
                Ok(bucket) => return Ok(Some(bucket)),
                Err(FindError::NoLoss) => {}
                Err(other) => {
                    self.lacking("sustained", other);
                    return Ok(None);
                }
            }
            if duration_s >= LONGEST_S.min(frames_s) {
                break;
            }
            duration_s *= 4.0;
        }
        self.lacking("sustained", FindError::NoLoss);
        Ok(None)
    }

    /// A rule that was not found: without a loss the device grants more than was ordered.
    fn lacking(&mut self, rule: &str, error: FindError) {
        let line = format!("the {rule} rule: {error}");
        match error {
            FindError::NoLoss => self.broken(line),
            FindError::NothingArrived | FindError::NoBucket | FindError::Paused => {
                self.found.findings.push(line);
                self.open = true;
            }
        }
    }

    /// Every parameter beside its order.
    fn compare(&mut self, peak: Option<&BucketEstimate>, sustained: Option<&BucketEstimate>) {
        let bytes = self.plan.frames.size_bytes;
        let mut cdvt_s = self.ordered.cdvt_ns.map(|ns| ns as f64 / SECOND_NS);
        if let Some(rule) = peak.and_then(|estimate| in_cells(estimate, bytes)) {
            self.against(
                compare(self.ordered.pcr_per_sec, rule.rate_per_s(), PRECISION)
                    .with_parameter("pcr", "cells/s"),
            );
            match cdvt_s {
                Some(cdvt_s) => {
                    self.against(
                        compare(cdvt_s, rule.limit_interval(), PRECISION)
                            .with_parameter("cdvt", "s"),
                    );
                }
                None => self.found.findings.push(format!(
                    "cdvt: {:.6} s ({:.6} to {:.6}), none was ordered",
                    rule.limit_s, rule.limit_low_s, rule.limit_high_s
                )),
            }
            cdvt_s = cdvt_s.or(Some(rule.limit_s));
        }
        let Some(bucket) = sustained else { return };
        take_bucket(&mut self.found, bucket);
        let Some(rule) = in_cells(bucket, bytes) else { return };
        self.against(
            compare(self.ordered.scr_per_sec, rule.rate_per_s(), PRECISION)
                .with_parameter("scr", "cells/s"),
        );
        if let Some(burst) = max_burst(&rule, self.ordered.pcr_per_sec, cdvt_s.unwrap_or(0.0)) {
            self.against(compare_burst(&burst, self.ordered.mbs_cells as f64, PRECISION));
        }
    }

    fn against(&mut self, compared: ComparedParameter) {
        let verdict = match compared.holds {
            Holds::Kept => None,
            Holds::Less => Some("less"),
            Holds::More => Some("more"),
        };
        if let Some(verdict) = verdict {
            let ComparedParameter { parameter, unit, ordered, found, low, high, .. } = &compared;
            let digits = if unit == "s" { 6 } else { 0 };
            self.broken(format!(
                "{parameter}: {found:.digits$} {unit} ({low:.digits$} to {high:.digits$}), \
                 {verdict} than the {ordered:.digits$} that were ordered"
            ));
        }
        self.found.compared.push(compared);
    }

    /// Sends cells as the contract allows them, at the peak rate and at the sustained one: none may
    /// be lost.
    fn send_within_contract(&mut self) -> Result<(), TrialAbort> {
        let CellContract { pcr_per_sec, scr_per_sec, mbs_cells, .. } = *self.ordered;
        let rest = truncate_to_u64(self.rest_s().min(LONGEST_S) * SECOND_NS);
        let idle_ns = rest.max(self.plan.times.settle_ns);
        let pcr = truncate_to_u64(pcr_per_sec).clamp(1, self.most);
        let burst =
            TrialSpec::frame_train(BenchTest::Contract, Some(pcr), mbs_cells.clamp(2, ROOM_FRAMES));
        let scr = truncate_to_u64(scr_per_sec).clamp(1, self.most);
        let long = TrialSpec::new(BenchTest::Contract, Some(scr), self.plan.times.trial_ns);
        for (spec, what) in [(burst, "MBS cells at PCR"), (long, "cells at SCR")] {
            let spec = TrialSpec { senders: Some(vec![0]), idle_ns, ..spec }.because(what);
            let outcome = self.setup.run_trial(&spec)?;
            let late_ns =
                outcome.results.iter().map(|result| result.sent.worst_late_ns).max().unwrap_or(0);
            let point = outcome.load_point();
            let lost = point.sent.saturating_sub(point.received);
            if outcome.trial.invalid.is_some() {
                self.found.findings.push(format!("{what}: the tester was disturbed"));
                self.open = true;
                continue;
            }
            self.found.steps.push(point);
            // A late cell comes nearer to the next one than the order allows.
            if lost > 0 && late_ns as f64 > SECOND_NS / pcr_per_sec / 2.0 {
                let late_us = late_ns / 1000;
                let line =
                    format!("{what}: {lost} lost, but the tester was {late_us} \u{b5}s late");
                self.found.findings.push(line);
                self.open = true;
            } else if lost > 0 {
                self.broken(format!("{what}: {lost} of {} were lost", outcome.totals().0));
            }
        }
        Ok(())
    }
}

/// A rule, the train that shows it, and whether it explains all of that.
type FirstRule = (BucketEstimate, Vec<TrainFrame>, bool);

/// The rule that is met first.
fn find_first_rule(
    plan: &BenchPlan,
    trial: &TrainTrial,
    outcome: &TrialCounts,
    tolerance_ns: u64,
) -> Result<Result<FirstRule, FindError>, Failure> {
    let mut best: Result<FirstRule, FindError> = Err(FindError::NothingArrived);
    let mut longest = 0;
    let both = trains(plan, trial, outcome)?;
    let late_ns = lateness(outcome, &both, tolerance_ns.saturating_mul(64));
    for train in both {
        let found = find_first(&train, tolerance_ns, late_ns);
        let length = found.as_ref().map_or(0, |(_, length)| *length);
        if best.is_err() || length > longest {
            longest = length;
            best = found.map(|(bucket, length)| (bucket, train.clone(), length == train.len()));
        }
    }
    Ok(best)
}

/// A rate or time that is not negative, cut.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is not negative, and a cast keeps within the range of the type"
)]
const fn truncate_to_u64(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use linerate_core::theory::token_bucket::TokenBucket;
    use linerate_core::units::{BitRate, Bytes};

    use super::super::simulated::{Device, Late, Simulated, bench_plan};
    use super::*;

    fn find_cell_contract(rules: &[(u64, u64)]) -> ContractFound {
        found_by(rules, None)
    }

    /// Buckets of 64-byte frames a second, so many bytes deep, one behind the other.
    fn found_by(rules: &[(u64, u64)], late: Option<Late>) -> ContractFound {
        let bucket = |&(fps, bytes): &(u64, u64)| {
            TokenBucket::new(BitRate::from_bits_per_sec(fps * 512), Bytes::new(bytes)).unwrap()
        };
        let policers = rules.iter().map(bucket).collect();
        let mut setup = Simulated::new(Device { policers, ..Device::default() });
        setup.late = late;
        // BT = 31 x (4 - 1) ms = 93 ms and 4 ms of CDVT: a bucket of 1 + 97 / 4 = 25.25 cells.
        let ordered = CellContract {
            pcr_per_sec: 1000.0,
            cdvt_ns: Some(4_000_000),
            scr_per_sec: 250.0,
            mbs_cells: 32,
        };
        measure_cell_contract(&mut setup, &bench_plan(1_000_000_000), &ordered, 100_000).unwrap()
    }

    fn verdicts(found: &ContractFound) -> Vec<(&str, Holds)> {
        found
            .compared
            .iter()
            .map(|compared| (compared.parameter.as_str(), compared.holds))
            .collect()
    }

    #[test]
    fn a_device_with_the_contract_that_was_ordered_keeps_every_parameter() {
        // 1 + 4 ms x 1000/s = 5 cells at once are 320 bytes, and 25.25 cells 1616.
        let found = find_cell_contract(&[(1000, 320), (250, 1616)]);
        let kept = ["pcr", "cdvt", "scr", "mbs"].map(|name| (name, Holds::Kept));
        assert_eq!(verdicts(&found), kept, "{found:?}");
        assert_eq!(found.as_ordered, Some(true), "{:?}", found.findings);
        // 32 cells at once and 250 in a second, none lost.
        let steps: Vec<_> = found.steps.iter().map(|step| (step.sent, step.received)).collect();
        assert_eq!(steps, [(32, 32), (250, 250)]);
        let cir = found.cir_bps.unwrap();
        assert!(cir.low <= 128_000.0 && 128_000.0 <= cir.high, "{cir:?}");
    }

    #[test]
    fn half_of_the_ordered_burst_is_found_where_rates_are_as_ordered() {
        // L = 56 ms less 4 ms of CDVT over 3 ms: MBS = 1 + 17.3 = 18.
        let found = find_cell_contract(&[(1000, 320), (250, 15 * 64)]);
        let kept = |name| (name, Holds::Kept);
        let expected = [kept("pcr"), kept("cdvt"), kept("scr"), ("mbs", Holds::Less)];
        assert_eq!(verdicts(&found), expected, "{found:?}");
        assert!((found.compared[3].found - 18.0).abs() <= 1.0, "{:?}", found.compared);
        assert_eq!(found.as_ordered, Some(false));
        let burst = &found.findings[0];
        assert!(burst.contains("less than the 32 that were ordered"), "{burst}");
        // 32 cells at PCR lose some.
        assert!(found.steps[0].received < 32, "{:?}", found.steps);
    }

    const OFTEN: (u64, u64) = (20_000_000, 1_000_000_000);
    const NEVER: (u64, u64) = (u64::MAX / 4, u64::MAX / 4);

    /// How often each parameter was told of a device by 60 testers, late in as many ways; none of
    /// them tells what is not so.
    fn told_by_late_testers(
        rules: &[(u64, u64)],
        truths: [(&str, f64); 4],
        late: Late,
    ) -> ([u32; 4], Vec<String>) {
        let (mut told, mut wrong) = ([0; 4], Vec::new());
        for seed in 0..60 {
            let found = found_by(rules, Some(Late { seed, ..late }));
            for ((name, truth), told) in truths.iter().zip(&mut told) {
                let it = found.compared.iter().find(|compared| compared.parameter == *name);
                *told += u32::from(it.is_some());
                // One cell of the thirty that a first rule is found from.
                let off = it
                    .filter(|compared| compared.low > truth * 1.03 || compared.high < truth * 0.97);
                wrong.extend(off.map(|compared| format!("{seed}: {compared:?}")));
            }
        }
        (told, wrong)
    }

    #[test]
    fn however_late_the_tester_is_the_truth_is_within_what_is_found_or_nothing_is_said() {
        // PCR 1000/s, CDVT 4 ms, SCR 250/s, MBS 18.
        let truths = [("pcr", 1000.0), ("cdvt", 0.004), ("scr", 250.0), ("mbs", 18.0)];
        let pause_ns = (5_000_000, 22_000_000);
        for (jitter_ns, every_ns, skew_ns, least) in [
            (5_000, NEVER, 0, 50),
            (5_000, OFTEN, 22_000_000, 50),
            (50_000, OFTEN, 0, 50),
            (150_000, NEVER, 0, 50),
            (250_000, NEVER, 0, 50),
        ] {
            let late = Late { seed: 0, jitter_ns, pause_ns, every_ns, skew_ns };
            let (told, wrong) = told_by_late_testers(&[(1000, 320), (250, 15 * 64)], truths, late);
            let at = format!("{jitter_ns} {every_ns:?}: {told:?} {wrong:#?}");
            assert!(wrong.is_empty(), "{at}");
            assert!(told.iter().all(|count| *count >= least), "{at}");
        }
    }

    #[test]
    fn a_sustained_rule_before_the_peak_rule_hides_neither() {
        let truths = [("pcr", 1000.0), ("cdvt", 0.004), ("scr", 250.0), ("mbs", 32.0)];
        for jitter_ns in [0, 5_000, 50_000] {
            let pause_ns = (1, 2);
            let late = Late { seed: 0, jitter_ns, pause_ns, every_ns: NEVER, skew_ns: 0 };
            let (told, wrong) = told_by_late_testers(&[(250, 1616), (1000, 320)], truths, late);
            assert!(wrong.is_empty(), "{jitter_ns}: {told:?} {wrong:#?}");
            assert!(told.iter().all(|count| *count >= 50), "{jitter_ns}: {told:?}");
        }
    }

    #[test]
    fn whatever_stands_first_no_parameter_is_told_wrong() {
        let mut wrong = Vec::new();
        for seed in 0..120 {
            let mut random = linerate_core::path::Random::new(seed, 0);
            let mut between = |low: f64, high: f64| low + random.next_uniform() * (high - low);
            // Peak rules of 500 to 1500/s and 3 to 8 deep, sustained ones of 150 to 350/s and 20
            // to 50 deep.
            let (pcr, at_once) = (between(500.0, 1500.0), between(3.0, 8.0));
            let (scr, depth) = (between(150.0, 350.0), between(20.0, 50.0));
            let rule = |fps: f64, cells: f64| (fps as u64, (cells * 64.0) as u64);
            let (peak, sustained) = (rule(pcr, at_once), rule(scr, depth));
            let rules = if seed % 3 == 0 { [peak, sustained] } else { [sustained, peak] };
            let (jitter_ns, pause_ns) = (5_000, (1, 2));
            let late = Late { seed, jitter_ns, pause_ns, every_ns: NEVER, skew_ns: 0 };
            let found = found_by(&rules, Some(late));
            for (name, truth) in [("pcr", peak.0 as f64), ("scr", sustained.0 as f64)] {
                let it = found.compared.iter().find(|compared| compared.parameter == name);
                let off = it
                    .filter(|compared| compared.low > truth * 1.03 || compared.high < truth * 0.97);
                wrong.extend(off.map(|compared| format!("{seed} {rules:?}: {compared:?}")));
            }
        }
        assert!(wrong.is_empty(), "{} {wrong:#?}", wrong.len());
    }

    #[test]
    fn a_device_without_one_of_the_rules_is_found_out() {
        // The sustained rule alone.
        let without_peak = find_cell_contract(&[(250, 1616)]);
        assert!(without_peak.findings[0].starts_with("no peak rule"), "{without_peak:?}");
        assert_eq!(without_peak.as_ordered, Some(false));
        assert_eq!(without_peak.compared[0].parameter, "scr");
        // The peak rule alone.
        let without_sustained = find_cell_contract(&[(1000, 320)]);
        assert!(without_sustained.findings[0].contains("sustained rule: no frame was lost"));
        assert_eq!(without_sustained.as_ordered, Some(false));
        // None at all.
        let none = find_cell_contract(&[]);
        assert_eq!((none.cir_bps, none.as_ordered), (None, Some(false)));
        assert!(none.findings[0].contains("peak rule: no frame was lost"), "{none:?}");
    }
}
