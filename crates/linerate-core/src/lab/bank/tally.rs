//! How a diagnosis and the baselines score over the cases of a bank.

use std::collections::{BTreeMap, BTreeSet};

use super::{BASELINES, Case, CaseLabels, Label, NoCause, Validity};
use crate::record::Confidence;
use crate::stats::{Interval, Z_95, wilson_interval};

/// A promised next limit counts as reached from this share of it on.
const PROMISE_KEPT: f64 = 0.8;

/// Counts of right labels and false accusations of one judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Cases whose cause the judge named first.
    pub right: u64,
    /// Cases that are scored.
    pub cases: u64,
    /// Innocent cases that it accused.
    pub accused: u64,
    /// Innocent cases that count.
    pub innocent: u64,
}

impl Score {
    fn add(&mut self, case: &Case, label: Label) {
        self.cases += 1;
        self.right += u64::from(case.is_right(label));
        self.innocent += u64::from(case.is_innocent());
        self.accused += u64::from(case.is_false_accusation(label));
    }

    /// Share of the cases that it named right, with its 95 % interval.
    pub fn accuracy(&self) -> Option<(f64, Interval)> {
        let interval = wilson_interval(self.right, self.cases, Z_95)?;
        Some((self.right as f64 / self.cases as f64, interval))
    }
}

/// Scores over many cases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Score of the diagnosis.
    pub diagnosis: Score,
    /// The baselines, in their order.
    pub baselines: [Score; BASELINES.len()],
    /// Right verdicts with a cause, and all verdicts with a cause, by their confidence.
    pub by_confidence: BTreeMap<Confidence, (u64, u64)>,
    /// Ceilings that right verdicts stated, over the path's rate, the lowest first.
    pub ceiling_ratios: Vec<f64>,
    /// Rate of the path without the cause that was rightly named, over the next limit that the
    /// verdict promised, the lowest first.
    pub next_ratios: Vec<f64>,
    /// Number of times that each label (inner key) was given where each (outer key) was planted.
    pub confusion: BTreeMap<Label, BTreeMap<Label, u64>>,
    /// Scenarios that were measured more than once.
    pub repeated: u64,
    /// Repeated scenarios with the same label each time.
    pub agreed: u64,
    /// Queues that were named on the axis of the delay, and cases: of deep buffers that were
    /// planted, and of innocent paths.
    pub queues: [(u64, u64); 2],
    /// Cases that do not count.
    pub void: u64,
    /// Cases that this machine spoilt.
    pub disturbed: u64,
    /// Cases that could not be built or measured.
    pub failed: u64,
}

impl Tally {
    /// Median distance of stated ceilings from the path's rate, as a share.
    pub fn ceiling_error(&self) -> Option<f64> {
        let mut errors: Vec<f64> =
            self.ceiling_ratios.iter().map(|ratio| (ratio - 1.0).abs()).collect();
        errors.sort_unstable_by(f64::total_cmp);
        errors.get(errors.len() / 2).copied()
    }

    /// Promised next limits of which the path reached four fifths.
    pub fn promises_kept(&self) -> usize {
        self.next_ratios.iter().filter(|ratio| **ratio >= PROMISE_KEPT).count()
    }

    /// The scores of judged cases.
    pub fn from_cases<'a>(cases: impl IntoIterator<Item = (&'a Case, &'a CaseLabels)>) -> Self {
        let mut tally = Self::default();
        let mut said: BTreeMap<(String, u64), Vec<Label>> = BTreeMap::new();
        for (case, judged) in cases {
            match &case.validity {
                Validity::Valid => {}
                Validity::Void(_) => tally.void += 1,
                Validity::Disturbed(_) => tally.disturbed += 1,
                Validity::Failed(_) => tally.failed += 1,
            }
            if case.validity != Validity::Valid {
                continue;
            }
            let label = judged.diagnosis_label();
            let planted = case.is_of_delay();
            if planted || case.is_innocent() {
                let (named, of) = &mut tally.queues[usize::from(!planted)];
                (*named, *of) = (*named + u64::from(judged.names_queue), *of + 1);
            }
            if planted {
                continue;
            }
            tally.diagnosis.add(case, label);
            for (score, label) in tally.baselines.iter_mut().zip(judged.baselines) {
                score.add(case, label);
            }
            let names = !matches!(label, Label::None(NoCause::Undetermined | NoCause::NoVerdict));
            if let Some(confidence) = judged.confidence.filter(|_| names) {
                let (right, of) = tally.by_confidence.entry(confidence).or_default();
                *right += u64::from(case.is_right(label));
                *of += 1;
            }
            tally.ceiling_ratios.extend(judged.ceiling_ratio);
            tally.next_ratios.extend(judged.next_ratio);
            *tally.confusion.entry(case.expect).or_default().entry(label).or_default() += 1;
            said.entry((case.name(), case.seed)).or_default().push(label);
        }
        tally.ceiling_ratios.sort_unstable_by(f64::total_cmp);
        tally.next_ratios.sort_unstable_by(f64::total_cmp);
        let again: Vec<_> = said.values().filter(|labels| labels.len() > 1).collect();
        tally.repeated = again.len() as u64;
        let agrees = |labels: &&&Vec<Label>| labels.iter().collect::<BTreeSet<_>>().len() == 1;
        tally.agreed = again.iter().filter(agrees).count() as u64;
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::super::NoCause;
    use super::*;
    use crate::record::Cause;

    #[test]
    fn only_valid_cases_count_and_an_innocent_path_that_is_accused_is_told_apart() {
        let window = Label::Cause(Cause::ReceiveWindow);
        let loss = Label::Cause(Cause::RandomLoss);
        let case = |recipe: &str, expect, validity| Case {
            recipe: recipe.to_owned(),
            expect,
            validity,
            ..Case::default()
        };
        let judged = |said| CaseLabels {
            said,
            confidence: Some(Confidence::High),
            ceiling_ratio: Some(0.9),
            next_ratio: (said == Some(window)).then_some(0.85),
            names_queue: said == Some(loss),
            baselines: [window; BASELINES.len()],
        };
        let void = Validity::Void(String::new());
        let cases = [
            (case("w", window, Validity::Valid), judged(Some(window))),
            (case("w", window, Validity::Valid), judged(Some(loss))),
            (case("l", loss, void), judged(Some(loss))),
            (case("i", Label::AT_CEILING, Validity::Valid), judged(Some(loss))),
            (case("j", Label::AT_CEILING, Validity::Valid), judged(None)),
            (case("q", Label::Cause(Cause::StandingQueue), Validity::Valid), judged(Some(loss))),
        ];
        let tally = Tally::from_cases(cases.iter().map(|(case, judged)| (case, judged)));
        assert_eq!(tally.diagnosis, Score { right: 1, cases: 4, accused: 1, innocent: 2 });
        assert_eq!(tally.baselines[3], Score { right: 2, cases: 4, accused: 2, innocent: 2 });
        assert_eq!(tally.by_confidence, [(Confidence::High, (1, 3))].into());
        assert!((tally.ceiling_error().expect("ceilings") - 0.1).abs() < 1e-9);
        assert_eq!((tally.promises_kept(), tally.next_ratios.len()), (1, 1));
        // Of the delay alone: one planted queue, and one of two innocent paths.
        assert_eq!(tally.queues, [(1, 1), (1, 2)]);
        assert_eq!((tally.void, tally.repeated, tally.agreed), (1, 1, 0));
        let silent = Label::None(NoCause::Undetermined);
        assert_eq!(tally.confusion[&Label::AT_CEILING], [(loss, 1), (silent, 1)].into());
        // 1 of 4: Wilson's interval at 95 % is 4.56 to 69.94 %.
        let (share, interval) = tally.diagnosis.accuracy().expect("cases");
        assert!((share - 0.25).abs() < 1e-9);
        assert!((interval.low - 0.0456).abs() < 1e-3 && (interval.high - 0.6994).abs() < 1e-3);
    }
}
