//! Changing one thing at a time: which change tells the most, when its runs are clear, and what
//! they leave of the causes.
//!
//! Runs without and with the change take turns (A B A B), so that a path that drifts shifts both.
//! Whether the change moved the rate is decided by a Bayes factor of two samples of log rates with
//! an unknown common spread: what equal runs differ by here is in both hypotheses, and a spread
//! that few runs cannot show has a prior. Clear is a factor of 20 ("strong": Kass and Raftery,
//! Bayes Factors, JASA 90, 1995, section 3.2), the same that Wald's sequential test has for errors
//! of 5 % ((1 - 0.05) / 0.05 = 19; Sequential Tests of Statistical Hypotheses, 1945).

use super::candidate::{Candidate, share_of};
use super::changes::{
    AS_LOST, Choices, RISES, RateShift, effect_note, entropy, is_apart, is_line, is_remedy,
    line_of, mean_of, mean_value, possible, predict_effect,
};
use super::evidence::{Evidence, NO_QUEUE};
use super::path::LOSSY;
use crate::record::{
    Cause, Change, Confidence, Intervention, InterventionEnd, LimitVerdict, Note, Outcome,
    RemedyLine, ShortRun, Sign, SignKind, Tried,
};

/// From this Bayes factor on a finding is clear.
const CLEAR: f64 = 20.0;
/// Fewest runs of each kind: one pair does not show what equal runs differ by.
const RUNS_MIN: usize = 2;
/// The spread of log rates of equal runs before any were seen: one run of 8 s with 13 losses has
/// 15 % (measured), and runs over a path without losses 2 to 5 %.
const SPREAD: f64 = 0.12;
/// Runs that this prior counts for.
const SPREAD_RUNS: f64 = 4.0;
/// Effects that count as one: the rate times this to that, either way.
const EFFECTS: (f64, f64) = (1.25, 10.0);
const EFFECT_STEPS: u32 = 16;
/// The rate stays: up to this factor, either way.
const STAYS: f64 = 1.25;
/// A run without any data counts as this rate, bit/s.
const STILL_BPS: f64 = 1e3;
/// Short runs speak for the longer test where their rate over its own is between these.
const SPEAKS: (f64, f64) = (0.6, 1.6);
/// Losses that the path makes by itself do not fall to less than this share by a pace.
const FEWER_LOST: f64 = 0.2;
/// One rival among k others has at most 4 (1 + k) / (4 + k) times its share with four streams.
const NOT_A_RIVAL: f64 = 3.0;
/// Information from a run at another port, as a share of the usual: a device that treats ports
/// apart is rarer than the other causes.
const SELDOM: f64 = 0.5;
/// Nats of what is so one of forty times (0.025 ln 40 + 0.975 ln 1.026).
const SELDOM_NATS: f64 = 0.117;

/// Causes to tell apart where the signs name none.
const USUAL: [Cause; 7] = [
    Cause::Link,
    Cause::ReceiveWindow,
    Cause::SendBuffer,
    Cause::RandomLoss,
    Cause::SmallBuffer,
    Cause::OtherTraffic,
    Cause::ReceivingHost,
];

/// Effect of a change: runs with it compared with runs without it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ChangeEffect {
    /// The rate with the change over that without it.
    factor: f64,
    /// Direction of the effect; `None` where the runs are not clear, or the effect is small.
    moved: Option<RateShift>,
    /// True when more runs would not change the result.
    clear: bool,
    /// The furthest apart that two equal runs were: the larger rate over the smaller.
    apart: f64,
}

/// True when these runs show the effect of the change, so that no more are needed.
pub fn is_clear(plain: &[ShortRun], changed: &[ShortRun]) -> bool {
    estimate_effect(plain, changed).is_some_and(|weighed| weighed.clear)
}

/// The two samples held against each other; none without a run of each.
fn estimate_effect(plain: &[ShortRun], changed: &[ShortRun]) -> Option<ChangeEffect> {
    let logs = |runs: &[ShortRun]| -> Vec<f64> {
        runs.iter().map(|run| run.goodput_bps.max(STILL_BPS).ln()).collect()
    };
    let (plain, changed) = (logs(plain), logs(changed));
    let (a, b) = (mean_value(&plain)?, mean_value(&changed)?);
    let within = squares(&plain, a) + squares(&changed, b) + SPREAD_RUNS * SPREAD * SPREAD;
    let (m, n) = (plain.len() as f64, changed.len() as f64);
    let difference = b - a;
    // The likelihood of an effect, the mean and the spread integrated out (a t distribution).
    let likelihood = |effect: f64| {
        let off = difference - effect;
        (within / (within + off * off * m * n / (m + n))).powf((SPREAD_RUNS + m + n - 1.0) / 2.0)
    };
    let (least, most) = (EFFECTS.0.ln(), EFFECTS.1.ln());
    let of_effects = |sign: f64| {
        let step = |at: u32| least + (most - least) * f64::from(at) / f64::from(EFFECT_STEPS - 1);
        let sum: f64 = (0..EFFECT_STEPS).map(|at| likelihood(sign * step(at))).sum();
        sum / f64::from(EFFECT_STEPS)
    };
    let (none, up, down) = (likelihood(0.0), of_effects(1.0), of_effects(-1.0));
    let factor = difference.exp();
    let enough = plain.len() >= RUNS_MIN && changed.len() >= RUNS_MIN;
    let stays = none >= CLEAR * (up + down) / 2.0;
    let clear = enough && (stays || up >= CLEAR * none || down >= CLEAR * none);
    let apart =
        [&plain, &changed].into_iter().map(|logs| spread_of(logs).exp()).fold(1.0, f64::max);
    // Beyond what equal runs were seen to be apart by, which few runs show too little of.
    let beyond = RISES * apart;
    let moved = match factor {
        _ if !clear => None,
        factor if stays && (1.0 / STAYS..=STAYS).contains(&factor) => Some(RateShift::Stays),
        factor if factor >= beyond => Some(RateShift::Rises),
        factor if factor <= 1.0 / beyond => Some(RateShift::Falls),
        _ => None,
    };
    Some(ChangeEffect { factor, moved, clear, apart })
}

fn squares(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean) * (value - mean)).sum()
}

fn spread_of(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Information expected from a change, in nats. Where the signs name no cause: on which of several
/// equally likely causes it is. Where they name one: on whether it is that one.
fn information(
    evidence: &Evidence,
    change: &Change,
    named: Option<Cause>,
    others: &[Cause],
) -> f64 {
    match change {
        // The flow loses what probes do not: its port or its protocol, the one as likely as not.
        Change::OtherPort if is_apart(evidence) => std::f64::consts::LN_2,
        // Any cause of the path may be of one family's path alone, which is seldom so; what the
        // sender is held by may be its calls.
        Change::Family(_) | Change::Writes(_) => {
            let is_of = |cause: Cause| match change {
                Change::Writes(_) => is_senders(cause),
                _ => predict_effect(change, cause).0.is_none(),
            };
            if others.iter().copied().chain(named).any(is_of) { SELDOM_NATS } else { 0.0 }
        }
        Change::OtherPort => SELDOM * usual_information(change, named, others),
        _ => usual_information(change, named, others),
    }
}

const fn is_senders(cause: Cause) -> bool {
    matches!(cause, Cause::SendBuffer | Cause::SendingApplication | Cause::SendingHost)
}

fn usual_information(change: &Change, named: Option<Cause>, others: &[Cause]) -> f64 {
    let each = 1.0 / others.len().max(1) as f64;
    let mut causes: Vec<(Cause, f64)> = others.iter().map(|cause| (*cause, each)).collect();
    let of_others = entropy(change, &causes);
    let Some(named) = named else { return of_others };
    causes.iter_mut().for_each(|(_, weight)| *weight /= 2.0);
    causes.push((named, 0.5));
    entropy(change, &causes) - of_others / 2.0
}

/// The change to try next; none where the verdict needs none or nothing is left that would tell.
pub(super) fn next_change(
    evidence: &Evidence,
    verdict: &LimitVerdict,
    choices: Choices<'_>,
) -> Option<Change> {
    if matches!(verdict.outcome, Outcome::NoVerdict) || verdict.cause == Some(Cause::Tester) {
        return None;
    }
    let tried = |change: &Change| {
        let same = |made: &Intervention| {
            std::mem::discriminant(&made.change) == std::mem::discriminant(change)
        };
        evidence.interventions.iter().any(same)
    };
    let possible = possible(evidence, choices).into_iter().filter(|change| !tried(change));
    if verdict.confidence == Some(Confidence::High) {
        // What is sure needs no proof; its remedy is tried where a socket of ours can have it.
        return possible.into_iter().find(|change| is_remedy(change, verdict));
    }
    let usual = || USUAL.into_iter().filter(|usual| verdict.cause != Some(*usual)).collect();
    let others: Vec<Cause> = match verdict.between.as_slice() {
        [] => usual(),
        between => between.to_vec(),
    };
    let told =
        possible.map(|change| (information(evidence, &change, verdict.cause, &others), change));
    let told = told.filter(|(nats, _)| *nats > 0.1);
    // The first of equals.
    told.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, change)| change)
}

/// An intervention and what it shows.
struct TriedChange<'a> {
    made: &'a Intervention,
    weighed: ChangeEffect,
    lost: Option<(f64, f64)>,
}

impl TriedChange<'_> {
    /// True when the effect, as far as it is clear, is the one that a cause predicts.
    fn agrees_with(&self, evidence: &Evidence, cause: Cause) -> bool {
        let (moved, more_lost) = predict_effect(&self.made.change, cause);
        let rate = moved.zip(self.weighed.moved).is_none_or(|(said, seen)| said == seen);
        let rises = self.weighed.moved == Some(RateShift::Rises);
        // A control that overruns the queue at its start loses more on every path: only that no
        // more was lost says something.
        let as_lost = self.lost.is_some_and(|(before, after)| after <= AS_LOST * before);
        let loss = !(rises && as_lost && more_lost == Some(true));
        rate && loss && !(rises && self.rules_out(evidence, cause))
    }

    /// True when a rise by this much refutes a cause.
    fn rules_out(&self, evidence: &Evidence, cause: Cause) -> bool {
        let no_queue = evidence.inflation().is_some_and(|times| times <= NO_QUEUE);
        let many = self.weighed.factor >= NOT_A_RIVAL && no_queue;
        let fewer = self.lost.is_some_and(|(before, after)| after <= FEWER_LOST * before);
        match (&self.made.change, cause) {
            (Change::Streams(_), Cause::OtherTraffic) => many,
            (Change::Pace(_), Cause::RandomLoss | Cause::OtherTraffic) => fewer,
            _ => false,
        }
    }

    fn effect_sign(&self) -> Sign {
        let kind = SignKind::RateWithChange(self.made.change.clone());
        let (factor, apart) = (self.weighed.factor, self.weighed.apart);
        match self.weighed.moved {
            Some(RateShift::Rises) => Sign::at_least(kind, factor, RISES * apart),
            Some(RateShift::Stays) => Sign::at_most(kind, factor, STAYS),
            Some(RateShift::Falls) => Sign::at_most(kind, factor, 1.0 / (RISES * apart)),
            None => Sign::figure(kind, factor),
        }
    }

    /// Note on the effect.
    fn change_note(&self) -> Option<Note> {
        effect_note(&self.made.change, self.weighed.moved?, self.weighed.factor, self.lost)
    }

    fn before_and_after(&self) -> Option<Tried> {
        let rate = |runs| mean_of(runs, |run| Some(run.goodput_bps));
        Some(Tried { before_bps: rate(&self.made.plain)?, after_bps: rate(&self.made.changed)? })
    }
}

/// Every intervention that speaks for the test that is explained.
fn usable_effects(evidence: &Evidence) -> Vec<TriedChange<'_>> {
    let steady = evidence.steady_bps();
    let speaks = |made: &&Intervention| {
        let plain = mean_of(&made.plain, |run| Some(run.goodput_bps));
        let of = share_of(plain, steady).is_some_and(|of| (SPEAKS.0..=SPEAKS.1).contains(&of));
        // Where hardly anything moved there is no rate to compare.
        of || steady.is_none_or(|rate| rate < STILL_BPS)
    };
    let made = evidence.interventions.iter().filter(|made| made.ended != InterventionEnd::Failed);
    made.filter(speaks)
        .filter_map(|made| {
            let lost = |runs| mean_of(runs, |run: &ShortRun| run.retransmit_ratio);
            Some(TriedChange {
                made,
                weighed: estimate_effect(&made.plain, &made.changed)?,
                lost: lost(&made.plain).zip(lost(&made.changed)),
            })
        })
        .collect()
}

/// The change of this kind that made the rate rise.
fn find_rise<'a>(
    found: &'a [TriedChange<'_>],
    is: impl Fn(&Change) -> bool,
) -> Option<&'a TriedChange<'a>> {
    found
        .iter()
        .find(|tried| is(&tried.made.change) && tried.weighed.moved == Some(RateShift::Rises))
}

/// A device that holds one port back: all else is the same at another one.
pub(super) fn port_held(evidence: &Evidence) -> Option<Candidate> {
    let found = usable_effects(evidence);
    let risen = find_rise(&found, |change| *change == Change::OtherPort)?;
    let drops = evidence.loss.ratio.is_some_and(|again| again >= LOSSY)
        && evidence.inflation().is_some_and(|times| times <= NO_QUEUE);
    let cause = if drops { Cause::Policer } else { Cause::Shaper };
    let candidate = Candidate::new(cause, Confidence::High, Vec::new());
    Some(match mean_of(&risen.made.plain, |run| Some(run.goodput_bps)) {
        Some(bps) => candidate.allowing(bps),
        None => candidate,
    })
}

/// Cause that only a change can show, where the signs name none or one that the changes refute: the
/// path of one address family alone, a sender that its system calls limit.
pub(super) fn cause_shown(evidence: &Evidence) -> Option<Candidate> {
    let found = usable_effects(evidence);
    let family = find_rise(&found, |change| matches!(change, Change::Family(_)));
    let writes = || find_rise(&found, |change| matches!(change, Change::Writes(_)));
    let cause = match family {
        Some(_) => Cause::AddressFamily,
        None => writes().map(|_| Cause::SendingHost)?,
    };
    let mut candidate = Candidate::new(cause, Confidence::Medium, Vec::new());
    add_effects(&found, &mut candidate);
    Some(candidate)
}

/// A cause that the signs name, and what trying says of it: surer, as it was, or none.
pub(super) fn test_candidate(evidence: &Evidence, mut candidate: Candidate) -> Option<Candidate> {
    let found = usable_effects(evidence);
    let sure = candidate.confidence == Confidence::High;
    if !sure && found.iter().any(|tried| !tried.agrees_with(evidence, candidate.cause)) {
        return None;
    }
    let proves = |tried: &&TriedChange<'_>| {
        let (said, _) = predict_effect(&tried.made.change, candidate.cause);
        said.is_some() && said == tried.weighed.moved
    };
    if found.iter().any(|tried| proves(&tried)) {
        candidate.confidence = Confidence::High;
    }
    add_effects(&found, &mut candidate);
    Some(candidate)
}

/// The one cause that trying leaves of several.
pub(super) fn decide_between(evidence: &Evidence, between: &[Cause]) -> Option<Candidate> {
    let found = usable_effects(evidence);
    let [cause] = remaining_causes(evidence, &found, between)[..] else { return None };
    let rose = found.iter().filter(|tried| tried.weighed.moved == Some(RateShift::Rises)).count();
    let confidence = if rose >= 2 { Confidence::High } else { Confidence::Medium };
    let mut candidate = Candidate::new(cause, confidence, Vec::new());
    candidate.remedy = super::remedy::for_cause(cause, evidence);
    add_effects(&found, &mut candidate);
    Some(candidate)
}

fn remaining_causes(
    evidence: &Evidence,
    found: &[TriedChange<'_>],
    between: &[Cause],
) -> Vec<Cause> {
    // Nothing that was clear decides nothing.
    if between.len() < 2 || found.iter().all(|tried| tried.weighed.moved.is_none()) {
        return between.to_vec();
    }
    let agree = |cause: &Cause| found.iter().all(|tried| tried.agrees_with(evidence, *cause));
    between.iter().copied().filter(agree).collect()
}

/// Open verdict with the effects of the changes added: fewer causes, and figures.
pub(super) fn narrow_verdict(evidence: &Evidence, mut verdict: LimitVerdict) -> LimitVerdict {
    let found = usable_effects(evidence);
    let left = remaining_causes(evidence, &found, &verdict.between);
    if !left.is_empty() {
        verdict.between = left;
    }
    verdict.evidence.extend(effect_signs(&found));
    verdict.notes.extend(found.iter().filter_map(TriedChange::change_note));
    verdict
}

/// The causes that the usual ones leave where trying refutes the one that the signs named.
pub(super) fn refuted_verdict(evidence: &Evidence, cause: Cause) -> LimitVerdict {
    let found = usable_effects(evidence);
    let usual: Vec<Cause> = USUAL.into_iter().filter(|usual| *usual != cause).collect();
    let verdict = LimitVerdict {
        between: remaining_causes(evidence, &found, &usual),
        confidence: Some(Confidence::Low),
        ..LimitVerdict::from_outcome(evidence.direction, Outcome::Undetermined)
    };
    narrow_verdict(evidence, verdict)
}

fn effect_signs(found: &[TriedChange<'_>]) -> Vec<Sign> {
    let mut signs: Vec<Sign> = found.iter().map(TriedChange::effect_sign).collect();
    let apart = found.iter().map(|tried| tried.weighed.apart).reduce(f64::max);
    signs.extend(apart.map(|apart| Sign::figure(SignKind::EqualRunsApart, apart)));
    signs
}

fn add_effects(found: &[TriedChange<'_>], candidate: &mut Candidate) {
    candidate.signs.extend(effect_signs(found));
    candidate.notes.extend(found.iter().filter_map(TriedChange::change_note));
    for it in found {
        let tried = it.before_and_after();
        let line = candidate.remedy.iter_mut().find(|line| is_line(&it.made.change, line));
        match line {
            Some(line) => line.tried = tried,
            None if it.weighed.moved == Some(RateShift::Rises) => {
                candidate.remedy.push(RemedyLine { tried, ..line_of(&it.made.change) });
            }
            None => {}
        }
    }
}

#[cfg(test)]
#[path = "interventions_tests.rs"]
mod tests;
