//! Where packets are lost, and which routers merely answer less.
//!
//! A hop is a witness when its answers are not limited and no later hop answers more. Loss is
//! where the witnesses' losses step up: the place at which two shares, one before and one from
//! there on, explain all answers best, and far better than one share.

use super::bucket;
use crate::record::{Finding, HopSample, Trace, TracePhase};
use crate::stats::{Z_95, wilson_interval};

/// A step must explain the answers better than none by this much, as chi-squared with one degree
/// of freedom: a chance of 0.0005 at one place, which there are up to 30 of.
const STEP_MIN: f64 = 12.0;
/// Fewer rounds make no witness.
const ROUNDS_MIN: u64 = 5;

#[derive(Clone, Copy, Debug)]
struct Witness {
    ttl: u8,
    sent: u64,
    lost: u64,
}

/// The losses, and the routers that limit their answers.
pub(super) fn find(trace: &Trace) -> (Vec<Finding>, Vec<Finding>) {
    let mut limited = Vec::new();
    let mut witnesses = Vec::new();
    for hop in &trace.hops {
        let counts = count(hop.ttl, &hop.samples);
        if counts.sent < ROUNDS_MIN || counts.lost == counts.sent {
            continue;
        }
        // Who answers every round may be slow for the bunches of the search: that is no matter.
        match bucket_of(&hop.samples).filter(|_| counts.lost > 0) {
            Some(bucket) => limited.push((counts, Some(bucket.per_second))),
            None => witnesses.push(counts),
        }
    }
    // Answers to echoes stand for the end where its error messages are limited.
    let end = trace.hops.last().filter(|hop| hop.is_end).map(|hop| hop.ttl);
    let echoes = count(end.unwrap_or(u8::MAX), &trace.echoes);
    if echoes.sent >= ROUNDS_MIN && echoes.lost < echoes.sent && end.is_some() {
        witnesses.retain(|it| Some(it.ttl) != end);
        witnesses.push(echoes);
    }
    let sure = end.is_some_and(|end| witnesses.last().is_some_and(|it| it.ttl == end));
    drop_those_that_answer_less(&mut witnesses, &mut limited);
    let mut losses = Vec::new();
    steps(&witnesses, Witness { ttl: 0, sent: 0, lost: 0 }, sure, &mut losses);
    limited.sort_by_key(|(counts, _)| counts.ttl);
    let limited = limited.into_iter().map(|(counts, per_second)| Finding::RateLimited {
        at: counts.ttl,
        per_second,
        sent: counts.sent,
        answered: counts.sent - counts.lost,
    });
    (losses, limited.collect())
}

fn count(ttl: u8, samples: &[HopSample]) -> Witness {
    let rounds = || samples.iter().filter(|it| it.phase == TracePhase::Idle);
    let sent = rounds().count() as u64;
    Witness { ttl, sent, lost: rounds().filter(|it| it.rtt_ns.is_none()).count() as u64 }
}

/// Probes of every phase take tokens, so all of them count.
fn bucket_of(samples: &[HopSample]) -> Option<bucket::Bucket> {
    let probes: Vec<(u64, bool)> =
        samples.iter().map(|it| (it.at_ns, it.rtt_ns.is_some())).collect();
    bucket::fit(&probes)
}

/// A hop beyond which more comes back than from itself loses nothing: it answers less.
fn drop_those_that_answer_less(
    witnesses: &mut Vec<Witness>,
    limited: &mut Vec<(Witness, Option<f64>)>,
) {
    let mut highest = f64::INFINITY;
    let mut kept = Vec::new();
    for &it in witnesses.iter().rev() {
        let Some(interval) = wilson_interval(it.lost, it.sent, Z_95) else { continue };
        if interval.low > highest {
            limited.push((it, None));
        } else {
            highest = highest.min(interval.high);
            kept.push(it);
        }
    }
    kept.reverse();
    *witnesses = kept;
}

/// Finds the step in `witnesses` beyond `before`, then those on both of its sides.
fn steps(witnesses: &[Witness], before: Witness, sure: bool, losses: &mut Vec<Finding>) {
    let Some(index) = best_step(witnesses, before) else { return };
    let after = sum(&witnesses[index..]);
    if !later_show(&witnesses[index..], after, sure) {
        return;
    }
    let (Some(ratio), Some(interval)) =
        (share(after), wilson_interval(after.lost, after.sent, Z_95))
    else {
        return;
    };
    steps(&witnesses[..index], before, true, losses);
    let base = share(sum_with(before, &witnesses[..index])).unwrap_or(0.0);
    let at = witnesses[index];
    losses.push(Finding::Loss {
        after: if index == 0 { before.ttl } else { witnesses[index - 1].ttl },
        at: at.ttl,
        ratio: ratio - base,
        low: (interval.low - base).max(0.0),
        high: interval.high - base,
        sent: after.sent,
    });
    steps(&witnesses[index + 1..], at, sure, losses);
}

/// Where two shares explain the answers best, if far better than one (twice the logarithm of the
/// ratio of likelihoods). Before the first witness is this host, which loses nothing, so that the
/// first one may show the loss of its own link: its share stands against one in a thousand.
fn best_step(witnesses: &[Witness], before: Witness) -> Option<usize> {
    let all = sum_with(before, witnesses);
    let gain = |index: usize| {
        let (one, other) = (sum_with(before, &witnesses[..index]), sum(&witnesses[index..]));
        let gain = 2.0 * (likelihood(one) + likelihood(other) - likelihood(all));
        (index, if share(other) > share(one) { gain } else { 0.0 })
    };
    let later = (usize::from(before.sent == 0)..witnesses.len()).map(gain);
    let best = later.max_by(|one, other| one.1.total_cmp(&other.1));
    let best = best.filter(|(_, gain)| *gain > STEP_MIN).map(|(index, _)| index);
    best.or_else(|| (before.sent == 0 && loss_or_none(all) > STEP_MIN).then_some(0))
}

/// How much better the share of all losses explains them than one in a thousand: with all hops
/// alike there is no earlier one to compare with.
fn loss_or_none(all: Witness) -> f64 {
    let base: f64 = 1e-3;
    if share(all).is_none_or(|share| share <= base) {
        return 0.0;
    }
    let (lost, kept) = (all.lost as f64, (all.sent - all.lost) as f64);
    2.0 * (likelihood(all) - lost * base.ln() - kept * (1.0 - base).ln())
}

/// Whether each later witness may well lose as much as all of them together. Without the end two
/// must say so: the last router alone may limit its answers in a way that no bucket explains.
fn later_show(later: &[Witness], all: Witness, sure: bool) -> bool {
    let Some(together) = wilson_interval(all.lost, all.sent, Z_95) else { return false };
    let shows = |it: &Witness| {
        wilson_interval(it.lost, it.sent, Z_95).is_some_and(|own| own.high >= together.low)
    };
    (sure || later.len() > 1) && later.iter().all(shows)
}

fn sum(witnesses: &[Witness]) -> Witness {
    sum_with(Witness { ttl: 0, sent: 0, lost: 0 }, witnesses)
}

fn sum_with(first: Witness, witnesses: &[Witness]) -> Witness {
    witnesses.iter().fold(first, |sum, it| Witness {
        ttl: sum.ttl,
        sent: sum.sent + it.sent,
        lost: sum.lost + it.lost,
    })
}

fn share(of: Witness) -> Option<f64> {
    (of.sent > 0).then(|| of.lost as f64 / of.sent as f64)
}

fn likelihood(of: Witness) -> f64 {
    let term = |part: u64| {
        let part = part as f64;
        if part == 0.0 { 0.0 } else { part * (part / of.sent as f64).ln() }
    };
    term(of.lost) + term(of.sent - of.lost)
}
