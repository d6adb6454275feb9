//! Where packets are lost, and which routers merely answer less.
//!
//! A hop is a witness when its answers are not limited and no later hop answers more. Loss is
//! where the witnesses' losses step up: the place at which two shares, one before and one from
//! there on, explain all answers best, and far better than one share.

use super::witness::{STEP_MIN, Witness, later_show, likelihood, loss_share};
use super::{bucket, flow_loss};
use crate::record::{Finding, HopSample, TracePhase, TraceResult};
use crate::stats::{Z_95, wilson_interval};

/// Fewer rounds make no witness.
const ROUNDS_MIN: u64 = 5;

/// The losses, and the routers that limit their answers. Where some flows lose packets on their
/// own, losses of all flows are those that the others have too.
pub(super) fn find_losses(trace: &TraceResult) -> (Vec<Finding>, Vec<Finding>) {
    let mut all = Witnesses::from_trace(trace, &[]);
    let mut losses = flow_loss::find_flow_losses(trace, all.own.clone());
    let flows = losses.iter().flat_map(|finding| match finding {
        Finding::FlowLoss { flows, .. } => flows.clone(),
        _ => Vec::new(),
    });
    let flows: Vec<u16> = flows.collect();
    if !flows.is_empty() {
        all.list = Witnesses::from_trace(trace, &flows).list;
    }
    let nothing = Witness { ttl: 0, sent: 0, lost: 0 };
    find_loss_steps(&all.list, nothing, all.reach_the_end(trace), &mut losses);
    all.limited.sort_by_key(|(counts, _)| counts.ttl);
    let limited = all.limited.into_iter().map(|(counts, per_second)| Finding::RateLimited {
        at: counts.ttl,
        per_second,
        sent: counts.sent,
        answered: counts.sent - counts.lost,
    });
    (losses, limited.collect())
}

/// Hops whose answers show losses of the path, and hops that limit their answers.
struct Witnesses {
    list: Vec<Witness>,
    /// Hops that are witnesses by their own answers, not by echoes.
    own: Vec<u8>,
    limited: Vec<(Witness, Option<f64>)>,
}

impl Witnesses {
    /// Hops as all flows but `without` show them. Echoes are a flow of their own, which may be one
    /// of these.
    fn from_trace(trace: &TraceResult, without: &[u16]) -> Self {
        let (mut list, mut limited) = (Vec::new(), Vec::new());
        for hop in &trace.hops {
            let counts = count_losses(hop.ttl, &hop.samples, without);
            if counts.sent < ROUNDS_MIN || counts.lost == counts.sent {
                continue;
            }
            // Who answers every round may be slow for the bunches of the search: that is no
            // matter.
            match bucket_of(&hop.samples).filter(|_| counts.lost > 0) {
                Some(bucket) => limited.push((counts, Some(bucket.per_second))),
                None => list.push(counts),
            }
        }
        let mut own: Vec<u8> = list.iter().map(|witness: &Witness| witness.ttl).collect();
        // Answers to echoes stand for the end where its error messages are limited.
        let end = end_of(trace);
        let echoes = count_losses(end.unwrap_or(u8::MAX), &trace.echoes, without);
        let answered = echoes.sent >= ROUNDS_MIN && echoes.lost < echoes.sent;
        if answered && end.is_some() && without.is_empty() {
            list.retain(|witness| Some(witness.ttl) != end);
            list.push(echoes);
        }
        drop_those_that_answer_less(&mut list, &mut limited);
        own.retain(|ttl| limited.iter().all(|(counts, _)| counts.ttl != *ttl));
        Self { list, own, limited }
    }

    /// True when the end is among them.
    fn reach_the_end(&self, trace: &TraceResult) -> bool {
        let end = end_of(trace);
        end.is_some() && self.list.last().map(|witness| witness.ttl) == end
    }
}

fn end_of(trace: &TraceResult) -> Option<u8> {
    trace.hops.last().filter(|hop| hop.is_end).map(|hop| hop.ttl)
}

fn count_losses(ttl: u8, samples: &[HopSample], without: &[u16]) -> Witness {
    let counts =
        |sample: &&HopSample| sample.phase == TracePhase::Idle && !without.contains(&sample.flow);
    let rounds = || samples.iter().filter(counts);
    let sent = rounds().count() as u64;
    Witness { ttl, sent, lost: rounds().filter(|sample| sample.rtt_ns.is_none()).count() as u64 }
}

/// Probes of every phase take tokens, so all of them count.
fn bucket_of(samples: &[HopSample]) -> Option<bucket::ReplyTokenBucket> {
    let probes: Vec<(u64, bool)> =
        samples.iter().map(|sample| (sample.at_ns, sample.rtt_ns.is_some())).collect();
    bucket::fit_token_bucket(&probes)
}

/// Removes hops with a lower share of answers than a hop behind them: they limit their answers and
/// lose nothing.
fn drop_those_that_answer_less(
    witnesses: &mut Vec<Witness>,
    limited: &mut Vec<(Witness, Option<f64>)>,
) {
    let mut highest = f64::INFINITY;
    let mut kept = Vec::new();
    for &witness in witnesses.iter().rev() {
        let Some(interval) = wilson_interval(witness.lost, witness.sent, Z_95) else { continue };
        if interval.low > highest {
            limited.push((witness, None));
        } else {
            highest = highest.min(interval.high);
            kept.push(witness);
        }
    }
    kept.reverse();
    *witnesses = kept;
}

/// Finds the step in `witnesses` beyond `before`, then those on both of its sides.
fn find_loss_steps(witnesses: &[Witness], before: Witness, sure: bool, losses: &mut Vec<Finding>) {
    let Some(index) = best_step(witnesses, before) else { return };
    let after = sum(&witnesses[index..]);
    if !later_show(&witnesses[index..], after, sure) {
        return;
    }
    let (Some(ratio), Some(interval)) =
        (loss_share(after), wilson_interval(after.lost, after.sent, Z_95))
    else {
        return;
    };
    find_loss_steps(&witnesses[..index], before, true, losses);
    let base = loss_share(sum_with(before, &witnesses[..index])).unwrap_or(0.0);
    let at = witnesses[index];
    losses.push(Finding::Loss {
        after: if index == 0 { before.ttl } else { witnesses[index - 1].ttl },
        at: at.ttl,
        ratio: ratio - base,
        low: (interval.low - base).max(0.0),
        high: interval.high - base,
        sent: after.sent,
    });
    find_loss_steps(&witnesses[index + 1..], at, sure, losses);
}

/// Index of the hop from which on another share of losses explains the answers best, if far better
/// than one share for all (twice the logarithm of the ratio of likelihoods). Before the first
/// witness is this host, which loses nothing, so that the first one may show the loss of its own
/// link: its share stands against one in a thousand.
fn best_step(witnesses: &[Witness], before: Witness) -> Option<usize> {
    let all = sum_with(before, witnesses);
    let gain = |index: usize| {
        let (one, other) = (sum_with(before, &witnesses[..index]), sum(&witnesses[index..]));
        let gain = 2.0 * (likelihood(one) + likelihood(other) - likelihood(all));
        (index, if loss_share(other) > loss_share(one) { gain } else { 0.0 })
    };
    let later = (usize::from(before.sent == 0)..witnesses.len()).map(gain);
    let best = later.max_by(|one, other| one.1.total_cmp(&other.1));
    let best = best.filter(|(_, gain)| *gain > STEP_MIN).map(|(index, _)| index);
    best.or_else(|| (before.sent == 0 && loss_or_none(all) > STEP_MIN).then_some(0))
}

/// Gain in the likelihood of the losses by their own share over one in a thousand, twice its
/// logarithm: with all hops alike there is no earlier one to compare with.
fn loss_or_none(all: Witness) -> f64 {
    let base: f64 = 1e-3;
    if loss_share(all).is_none_or(|share| share <= base) {
        return 0.0;
    }
    let (lost, kept) = (all.lost as f64, (all.sent - all.lost) as f64);
    2.0 * (likelihood(all) - lost * base.ln() - kept * (1.0 - base).ln())
}

fn sum(witnesses: &[Witness]) -> Witness {
    sum_with(Witness { ttl: 0, sent: 0, lost: 0 }, witnesses)
}

fn sum_with(first: Witness, witnesses: &[Witness]) -> Witness {
    witnesses.iter().fold(first, |sum, witness| Witness {
        ttl: sum.ttl,
        sent: sum.sent + witness.sent,
        lost: sum.lost + witness.lost,
    })
}
