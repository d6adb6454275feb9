//! Changing one thing at a time: which change tells the most, when its runs are clear, and what
//! they leave of the causes.
//!
//! Runs without and with the change take turns (A B A B), so that a path that drifts shifts both.
//! Whether the change moved the rate is decided by a Bayes factor of two samples of log rates with
//! an unknown common spread: what equal runs differ by here is in both hypotheses, and a spread
//! that few runs cannot show has a prior. Clear is a factor of 20 ("strong": Kass and Raftery,
//! Bayes Factors, JASA 90, 1995, section 3.2), the same that Wald's sequential test has for errors
//! of 5 % ((1 - 0.05) / 0.05 = 19; Sequential Tests of Statistical Hypotheses, 1945).

use super::candidate::{Candidate, share};
use super::ends::NO_QUEUE;
use super::evidence::Evidence;
use super::path::payload_share;
use crate::record::{
    At, Cause, Change, Confidence, Intervention, InterventionEnd, Outcome, RemedyLine, ShortRun,
    Sign, Tried, Verdict,
};
use crate::theory::ladder::Response;
use crate::units::BitRate;

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
/// The rate rises: from this factor on. Four streams of equal windows have 4, of a policer 2, and
/// of a full link up to 1.4 of a short run that has not recovered from its first loss.
const RISES: f64 = 1.5;
/// The rate stays: up to this factor, either way.
const STAYS: f64 = 1.25;
/// A run without any data counts as this rate, bit/s.
const STILL_BPS: f64 = 1e3;
/// Short runs speak for the longer test where their rate over its own is between these.
const SPEAKS: (f64, f64) = (0.6, 1.6);
/// So much more is lost: the change overruns a queue or a policer.
const MORE_LOST: f64 = 3.0;
/// No more is lost than before.
const AS_LOST: f64 = 2.0;
/// Losses that the path makes by itself do not fall to less than this share by a pace.
const FEWER_LOST: f64 = 0.2;
/// One rival among k others has at most 4 (1 + k) / (4 + k) times its share with four streams.
const NOT_A_RIVAL: f64 = 3.0;
/// The pace that is tried, of what the path carries.
const PACED_SHARE: f64 = 0.9;
const STREAMS: u16 = 4;
/// Segments that pass tunnels and stay below every offload's mistakes with full ones.
const SEGMENT_BYTES: u32 = 1200;

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

/// What a change did to the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moved {
    Rises,
    Stays,
    Falls,
}

/// What runs with a change show against runs without it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Weighed {
    /// The rate with the change over that without it.
    factor: f64,
    /// What it did; none where the runs are not clear, or the effect is small.
    moved: Option<Moved>,
    /// Whether more runs would change nothing.
    clear: bool,
    /// The furthest apart that two equal runs were: the larger rate over the smaller.
    apart: f64,
}

/// Whether these runs say what the change does, so that no more are needed.
pub fn is_clear(plain: &[ShortRun], changed: &[ShortRun]) -> bool {
    weigh(plain, changed).is_some_and(|weighed| weighed.clear)
}

/// The two samples held against each other; none without a run of each.
fn weigh(plain: &[ShortRun], changed: &[ShortRun]) -> Option<Weighed> {
    let logs = |runs: &[ShortRun]| -> Vec<f64> {
        runs.iter().map(|run| run.goodput_bps.max(STILL_BPS).ln()).collect()
    };
    let (plain, changed) = (logs(plain), logs(changed));
    let (a, b) = (mean(&plain)?, mean(&changed)?);
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
    let apart = [&plain, &changed].into_iter().map(|logs| range(logs).exp()).fold(1.0, f64::max);
    // Beyond what equal runs were seen to be apart by, which few runs show too little of.
    let beyond = RISES * apart;
    let moved = match factor {
        _ if !clear => None,
        factor if stays && (1.0 / STAYS..=STAYS).contains(&factor) => Some(Moved::Stays),
        factor if factor >= beyond => Some(Moved::Rises),
        factor if factor <= 1.0 / beyond => Some(Moved::Falls),
        _ => None,
    };
    Some(Weighed { factor, moved, clear, apart })
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn squares(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean) * (value - mean)).sum()
}

fn range(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// What the rate does, and whether more is lost.
type Prediction = (Option<Moved>, Option<bool>);

/// What a change does where a cause holds the rate, and whether more is lost then; none where it
/// could be either.
fn predicted(change: &Change, cause: Cause) -> Prediction {
    use Cause as C;
    // Of those that can be tried BBR alone does not answer each loss.
    let bbr = matches!(change, Change::CongestionControl(name) if name.starts_with("bbr"));
    let moved = match change {
        Change::Streams(_) => match cause {
            C::ReceiveWindow | C::SendBuffer | C::RandomLoss | C::SmallBuffer | C::Policer => {
                Some(Moved::Rises)
            }
            C::OtherTraffic | C::Reordering | C::CongestionControl => Some(Moved::Rises),
            C::Link | C::LinkFallback | C::Shaper | C::SendingHost | C::ReceivingHost => {
                Some(Moved::Stays)
            }
            _ => None,
        },
        Change::CongestionControl(_) => match cause {
            C::ReceiveWindow | C::Link | C::LinkFallback | C::Shaper | C::ReceivingHost => {
                Some(Moved::Stays)
            }
            C::RandomLoss | C::SmallBuffer | C::Policer | C::CongestionControl if bbr => {
                Some(Moved::Rises)
            }
            _ => None,
        },
        Change::Pace(_) => match cause {
            C::SmallBuffer | C::Policer => Some(Moved::Rises),
            C::RandomLoss | C::ReceiveWindow | C::SendBuffer => Some(Moved::Stays),
            _ => None,
        },
        Change::Segments(_) => match cause {
            C::MtuBlackHole | C::Offload | C::TunnelMtu => Some(Moved::Rises),
            C::Outages | C::ReceiveWindow | C::Link => Some(Moved::Stays),
            _ => None,
        },
        Change::Buffers(_) => match cause {
            C::ReceiveWindow | C::SendBuffer => Some(Moved::Rises),
            C::Link | C::Shaper | C::RandomLoss | C::Policer => Some(Moved::Stays),
            _ => None,
        },
    };
    let more_lost = match cause {
        C::RandomLoss | C::OtherTraffic if bbr => Some(false),
        C::SmallBuffer | C::Policer | C::PacketRate if bbr => Some(true),
        _ => None,
    };
    (moved, more_lost)
}

/// What a change is expected to tell, in nats: of which cause it is where each of several is as
/// likely; of whether it is the one that the signs name where they name one.
fn information(change: &Change, named: Option<Cause>, others: &[Cause]) -> f64 {
    let each = 1.0 / others.len().max(1) as f64;
    let mut causes: Vec<(Cause, f64)> = others.iter().map(|cause| (*cause, each)).collect();
    let of_others = entropy(change, &causes);
    let Some(named) = named else { return of_others };
    causes.iter_mut().for_each(|(_, weight)| *weight /= 2.0);
    causes.push((named, 0.5));
    entropy(change, &causes) - of_others / 2.0
}

/// The entropy of what a change does over causes with these chances.
fn entropy(change: &Change, causes: &[(Cause, f64)]) -> f64 {
    let mut outcomes: Vec<(Prediction, f64)> = Vec::new();
    for (cause, weight) in causes {
        let outcome = predicted(change, *cause);
        match outcomes.iter_mut().find(|(known, _)| *known == outcome) {
            Some((_, sum)) => *sum += weight,
            None => outcomes.push((outcome, *weight)),
        }
    }
    // Causes whose outcome nobody knows are not separated from any other.
    let of_known = outcomes.iter().filter(|(outcome, _)| *outcome != (None, None));
    of_known.map(|(_, chance)| -chance * chance.ln()).sum()
}

/// The change to try next; none where the verdict needs none or nothing is left that would tell.
/// `controls` are those that the sender may use, where they are known.
pub(super) fn next(
    evidence: &Evidence,
    verdict: &Verdict,
    controls: Option<&[String]>,
) -> Option<Change> {
    if matches!(verdict.outcome, Outcome::NoVerdict) || verdict.cause == Some(Cause::Tester) {
        return None;
    }
    let tried = |change: &Change| {
        let same = |it: &Intervention| {
            std::mem::discriminant(&it.change) == std::mem::discriminant(change)
        };
        evidence.interventions.iter().any(same)
    };
    let possible = possible(evidence, controls).into_iter().filter(|change| !tried(change));
    if verdict.confidence == Some(Confidence::High) {
        // What is sure needs no proof; its remedy is tried where a socket of ours can have it.
        return possible.into_iter().find(|change| is_remedy(change, verdict));
    }
    let usual = || USUAL.into_iter().filter(|usual| verdict.cause != Some(*usual)).collect();
    let others: Vec<Cause> = match verdict.between.as_slice() {
        [] => usual(),
        between => between.to_vec(),
    };
    let told = possible.map(|change| (information(&change, verdict.cause, &others), change));
    let told = told.filter(|(nats, _)| *nats > 0.1);
    // The first of equals.
    told.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, change)| change)
}

/// Changes that can be made here.
fn possible(evidence: &Evidence, controls: Option<&[String]>) -> Vec<Change> {
    let other = match evidence.loss.response {
        Some(Response::Bbr) => "cubic",
        _ => "bbr",
    };
    let has = controls.is_none_or(|names| names.iter().any(|name| name == other));
    let known = evidence.loss.control.is_some();
    let mut changes = Vec::new();
    if evidence.flows <= 1 {
        changes.push(Change::Streams(STREAMS));
    }
    if has && known {
        changes.push(Change::CongestionControl(other.to_owned()));
    }
    changes.extend(pace(evidence).map(Change::Pace));
    changes.extend(buffers(evidence).map(Change::Buffers));
    if evidence.mss_bytes.is_none_or(|mss| mss > SEGMENT_BYTES) {
        changes.push(Change::Segments(SEGMENT_BYTES));
    }
    changes
}

/// 0.9 of what the path carries, where that is known and well above the rate.
fn pace(evidence: &Evidence) -> Option<BitRate> {
    let bounds = [evidence.sustained_bps, evidence.capacity_bps].into_iter().flatten();
    let bound = bounds.reduce(f64::min).map(|ip_bps| ip_bps * payload_share(evidence));
    let reached = evidence
        .interventions
        .iter()
        .filter(|it| matches!(it.change, Change::CongestionControl(_) | Change::Streams(_)));
    let reached = reached.filter_map(|it| mean_of(&it.changed, |run| Some(run.goodput_bps)));
    let bps = PACED_SHARE * bound.or_else(|| reached.reduce(f64::max))?;
    let far = evidence.steady_bps().is_some_and(|rate| bps >= RISES * rate);
    BitRate::from_nearest(bps).filter(|_| far)
}

/// The largest buffers that both hosts give, where they are twice what is in flight.
fn buffers(evidence: &Evidence) -> Option<u64> {
    let most = evidence.sender.core_max_bytes?.min(evidence.receiver.core_max_bytes?);
    let flight = evidence.flight_bytes()?;
    (most as f64 >= 2.0 * flight && evidence.asked.window_bytes.is_none()).then_some(most)
}

fn mean_of(runs: &[ShortRun], of: impl Fn(&ShortRun) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = runs.iter().map(of).collect();
    mean(&values?)
}

/// An intervention and what it shows.
struct Found<'a> {
    made: &'a Intervention,
    weighed: Weighed,
    lost: Option<(f64, f64)>,
}

impl Found<'_> {
    /// Whether it agrees with a cause, as far as it is clear.
    fn agrees(&self, evidence: &Evidence, cause: Cause) -> bool {
        let (moved, more_lost) = predicted(&self.made.change, cause);
        let rate = moved.zip(self.weighed.moved).is_none_or(|(said, seen)| said == seen);
        let rises = self.weighed.moved == Some(Moved::Rises);
        // A control that overruns the queue at its start loses more on every path: only that no
        // more was lost says something.
        let as_lost = self.lost.is_some_and(|(before, after)| after <= AS_LOST * before);
        let loss = !(rises && as_lost && more_lost == Some(true));
        rate && loss && !(rises && self.rules_out(evidence, cause))
    }

    /// What a rise by this much rules out.
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

    fn sign(&self) -> Sign {
        let name = match &self.made.change {
            Change::Streams(count) => format!("rate with {count} streams over that with one"),
            Change::CongestionControl(name) => format!("rate with {name} over that without"),
            Change::Pace(pace) => {
                format!("rate paced at {:.1} Mbit/s over that without", mbit(*pace))
            }
            Change::Segments(bytes) => format!("rate with segments of {bytes} bytes over that"),
            Change::Buffers(bytes) => format!("rate with buffers of {bytes} bytes over that"),
        };
        match self.weighed.moved {
            Some(Moved::Rises) => {
                Sign::at_least(name, self.weighed.factor, RISES * self.weighed.apart, "1")
            }
            Some(Moved::Stays) => Sign::at_most(name, self.weighed.factor, STAYS, "1"),
            Some(Moved::Falls) => {
                Sign::at_most(name, self.weighed.factor, 1.0 / (RISES * self.weighed.apart), "1")
            }
            None => Sign::figure(name, self.weighed.factor, "1"),
        }
    }

    /// What it means, in a sentence.
    fn meaning(&self) -> Option<String> {
        let times = number_of_times(self.weighed.factor);
        let lost = self.lost.filter(|(before, _)| *before > 0.0);
        let as_lost = lost.is_some_and(|(before, after)| after <= AS_LOST * before);
        let more = lost.is_some_and(|(before, after)| after >= MORE_LOST * before);
        Some(match (&self.made.change, self.weighed.moved?) {
            (Change::Streams(count), Moved::Rises) => {
                format!("with {count} streams {times} the rate: a limit per flow, not the link")
            }
            (Change::Streams(count), Moved::Stays) => {
                format!("with {count} streams the same rate: the limit is shared by all flows")
            }
            (Change::CongestionControl(name), Moved::Rises) if as_lost => format!(
                "with {name} {times} the rate, and no more was lost: losses that the congestion \
                 control answers, and not its own queue"
            ),
            (Change::CongestionControl(name), Moved::Rises) if more => format!(
                "with {name} {times} the rate, and more was lost: it does not answer losses"
            ),
            (Change::CongestionControl(name), Moved::Rises) => {
                format!("with {name} {times} the rate: losses that the congestion control answers")
            }
            (Change::CongestionControl(name), Moved::Stays) => {
                format!("with {name} the same rate: it is not how losses are answered")
            }
            (Change::Pace(_), Moved::Rises) => {
                format!("paced below the bottleneck {times} the rate: bursts overran it")
            }
            (Change::Pace(_), Moved::Stays) => {
                "paced below the bottleneck the same rate: it is not the bursts".to_owned()
            }
            (Change::Segments(bytes), Moved::Rises) => {
                format!("with segments of {bytes} bytes {times} the rate: large ones do not pass")
            }
            (Change::Segments(_), _) => return None,
            (Change::Buffers(_), Moved::Rises) => {
                format!("with larger buffers {times} the rate: a buffer held it")
            }
            (Change::Buffers(_), Moved::Stays) => {
                "with larger buffers the same rate: it is not a buffer".to_owned()
            }
            (_, Moved::Falls) => return None,
        })
    }

    fn tried(&self) -> Option<Tried> {
        let rate = |runs| mean_of(runs, |run| Some(run.goodput_bps));
        Some(Tried { before_bps: rate(&self.made.plain)?, after_bps: rate(&self.made.changed)? })
    }
}

fn number_of_times(factor: f64) -> String {
    if factor >= 9.95 { format!("{factor:.0} times") } else { format!("{factor:.1} times") }
}

fn mbit(rate: BitRate) -> f64 {
    rate.bits_per_sec() as f64 / 1e6
}

/// Every intervention that speaks for the test that is explained.
fn found(evidence: &Evidence) -> Vec<Found<'_>> {
    let steady = evidence.steady_bps();
    let speaks = |made: &&Intervention| {
        let plain = mean_of(&made.plain, |run| Some(run.goodput_bps));
        let of = share(plain, steady).is_some_and(|of| (SPEAKS.0..=SPEAKS.1).contains(&of));
        // Where hardly anything moved there is no rate to compare.
        of || steady.is_none_or(|rate| rate < STILL_BPS)
    };
    let made = evidence.interventions.iter().filter(|it| it.ended != InterventionEnd::Failed);
    made.filter(speaks)
        .filter_map(|made| {
            let lost = |runs| mean_of(runs, |run: &ShortRun| run.retransmit_ratio);
            Some(Found {
                made,
                weighed: weigh(&made.plain, &made.changed)?,
                lost: lost(&made.plain).zip(lost(&made.changed)),
            })
        })
        .collect()
}

/// A cause that the signs name, and what trying says of it: surer, as it was, or none.
pub(super) fn tested(evidence: &Evidence, mut candidate: Candidate) -> Option<Candidate> {
    let found = found(evidence);
    let sure = candidate.confidence == Confidence::High;
    if !sure && found.iter().any(|it| !it.agrees(evidence, candidate.cause)) {
        return None;
    }
    let proves = |it: &&Found<'_>| {
        let (said, _) = predicted(&it.made.change, candidate.cause);
        said.is_some() && said == it.weighed.moved
    };
    if found.iter().any(|it| proves(&it)) {
        candidate.confidence = Confidence::High;
    }
    add(&found, &mut candidate);
    Some(candidate)
}

/// The one cause that trying leaves of several.
pub(super) fn decided(evidence: &Evidence, between: &[Cause]) -> Option<Candidate> {
    let found = found(evidence);
    let [cause] = left(evidence, &found, between)[..] else { return None };
    let rose = found.iter().filter(|it| it.weighed.moved == Some(Moved::Rises)).count();
    let confidence = if rose >= 2 { Confidence::High } else { Confidence::Medium };
    let mut candidate = Candidate::new(cause, confidence, Vec::new());
    candidate.remedy = super::remedy::of(cause, evidence);
    add(&found, &mut candidate);
    Some(candidate)
}

fn left(evidence: &Evidence, found: &[Found<'_>], between: &[Cause]) -> Vec<Cause> {
    // Nothing that was clear decides nothing.
    if between.len() < 2 || found.iter().all(|it| it.weighed.moved.is_none()) {
        return between.to_vec();
    }
    let agree = |cause: &Cause| found.iter().all(|it| it.agrees(evidence, *cause));
    between.iter().copied().filter(agree).collect()
}

/// What trying adds to a verdict that stays open: fewer causes, its figures.
pub(super) fn narrowed(evidence: &Evidence, mut verdict: Verdict) -> Verdict {
    let found = found(evidence);
    let left = left(evidence, &found, &verdict.between);
    if !left.is_empty() {
        verdict.between = left;
    }
    verdict.evidence.extend(signs(&found));
    verdict.notes.extend(found.iter().filter_map(Found::meaning));
    verdict
}

/// The causes that the usual ones leave where trying refutes the one that the signs named.
pub(super) fn refuted(evidence: &Evidence, cause: Cause) -> Verdict {
    let found = found(evidence);
    let usual: Vec<Cause> = USUAL.into_iter().filter(|usual| *usual != cause).collect();
    let verdict = Verdict {
        between: left(evidence, &found, &usual),
        confidence: Some(Confidence::Low),
        ..Verdict::of(evidence.direction, Outcome::Undetermined)
    };
    narrowed(evidence, verdict)
}

fn signs(found: &[Found<'_>]) -> Vec<Sign> {
    let mut signs: Vec<Sign> = found.iter().map(Found::sign).collect();
    let apart = found.iter().map(|it| it.weighed.apart).reduce(f64::max);
    signs.extend(apart.map(|apart| Sign::figure("equal runs here, one over another", apart, "1")));
    signs
}

fn add(found: &[Found<'_>], candidate: &mut Candidate) {
    candidate.signs.extend(signs(found));
    candidate.notes.extend(found.iter().filter_map(Found::meaning));
    for it in found {
        let tried = it.tried();
        let line = candidate.remedy.iter_mut().find(|line| is_line(&it.made.change, line));
        match line {
            Some(line) => line.tried = tried,
            None if it.weighed.moved == Some(Moved::Rises) => {
                candidate.remedy.push(RemedyLine { tried, ..line_of(&it.made.change) });
            }
            None => {}
        }
    }
}

/// Whether a change is what a verdict prescribes.
fn is_remedy(change: &Change, verdict: &Verdict) -> bool {
    verdict.remedy.iter().any(|line| is_line(change, line))
}

fn is_line(change: &Change, line: &RemedyLine) -> bool {
    match change {
        Change::CongestionControl(name) => {
            line.text.ends_with(&format!("tcp_congestion_control={name}"))
        }
        Change::Pace(_) => line.is_command && line.text.contains(" fq maxrate "),
        Change::Streams(_) | Change::Segments(_) | Change::Buffers(_) => false,
    }
}

/// The change as something to do.
fn line_of(change: &Change) -> RemedyLine {
    match change {
        Change::Streams(count) => {
            RemedyLine::advice(At::Test, format!("several connections at once (-P {count})"))
        }
        Change::CongestionControl(name) => {
            let line = format!("sysctl -w net.ipv4.tcp_congestion_control={name}");
            RemedyLine::command(At::Sender, line)
        }
        Change::Pace(pace) => {
            let kbit = pace.bits_per_sec() / 1000;
            let line = format!("tc qdisc replace dev DEV root fq maxrate {kbit}kbit");
            RemedyLine::command(At::Sender, line)
        }
        Change::Segments(bytes) => {
            RemedyLine::advice(At::Test, format!("segments of at most {bytes} bytes (-M {bytes})"))
        }
        Change::Buffers(bytes) => {
            RemedyLine::advice(At::Test, format!("ask for buffers of {bytes} bytes (-w {bytes})"))
        }
    }
}

#[cfg(test)]
#[path = "interventions_tests.rs"]
mod tests;
