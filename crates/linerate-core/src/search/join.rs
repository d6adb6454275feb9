//! Sub-intervals by both ends: what the receiver took in beside what the sender offered.
//!
//! The sender's times count from its start, the receiver's from its first arrival; the two differ
//! by a one-way delay, which is left out of account.

use super::rates::rate_of_row;
use crate::record::{CapacitySearch, Direction, SearchSpan, SearchTrial, SubInterval};

/// Most statuses that a record keeps: ten minutes of them.
const TRIALS_MAX: usize = 12_000;

/// Sub-intervals and statuses of a search while it goes on.
#[derive(Clone, Debug, Default)]
pub struct SubIntervals {
    spans: Vec<SearchSpan>,
    trials: Vec<SearchTrial>,
    left_out: u64,
}

impl SubIntervals {
    /// Adds the reports of an end.
    pub fn extend(&mut self, spans: &[SearchSpan], trials: &[SearchTrial]) {
        self.spans.extend_from_slice(spans);
        let room = TRIALS_MAX.saturating_sub(self.trials.len()).min(trials.len());
        self.trials.extend_from_slice(&trials[..room]);
        self.left_out += (trials.len() - room) as u64;
    }

    /// One sub-interval, by the reports so far.
    pub fn joined_sub_interval(&self, span: SearchSpan, packet_bytes: u32) -> SubInterval {
        joined(span, &self.trials, packet_bytes)
    }

    /// The search as a record keeps it.
    pub fn capacity_search(&self, direction: Direction, packet_bytes: u32) -> CapacitySearch {
        let rows = self.spans.iter().map(|&span| joined(span, &self.trials, packet_bytes));
        let sub_intervals: Vec<SubInterval> = rows.collect();
        let best = sub_intervals.iter().reduce(|best, row| match row.ip_bps > best.ip_bps {
            true => row,
            false => best,
        });
        let best = best.filter(|best| best.span.received > 0).map(|best| best.span.index);
        CapacitySearch {
            direction,
            packet_bytes,
            sub_intervals,
            best,
            confirmed_ns: self.trials.iter().find(|trial| trial.confirmed).map(|trial| trial.t_ns),
            trials: self.trials.clone(),
            trials_left_out: self.left_out,
        }
    }
}

/// A sub-interval with the sender's statuses of its time.
pub fn joined(span: SearchSpan, trials: &[SearchTrial], packet_bytes: u32) -> SubInterval {
    let within = span.start_ns()..span.end_ns();
    let first = trials.partition_point(|trial| trial.t_ns < within.start);
    let last = trials.partition_point(|trial| trial.t_ns < within.end);
    let of_span = trials.get(first..last).unwrap_or_default();
    let rtts = || of_span.iter().filter_map(|trial| trial.rtt_ns);
    let bits = span.received as f64 * f64::from(packet_bytes) * 8.0;
    let lost = u64::try_from(span.lost).unwrap_or(0);
    let all = span.received + lost;
    SubInterval {
        span,
        ip_bps: bits * 1e9 / span.length_ns.max(1) as f64,
        loss_ratio: (all > 0).then(|| lost as f64 / all as f64),
        offered_bps: offered(trials, first, within.start, within.end),
        rtt_min_ns: rtts().min(),
        rtt_max_ns: rtts().max(),
    }
}

/// The mean rate offered from `start_ns` to `end_ns`: the lowest until the first status, each
/// status's from its arrival. `first` is the first status not before the start.
fn offered(trials: &[SearchTrial], first: usize, start_ns: u64, end_ns: u64) -> Option<f64> {
    trials.first()?;
    let before = first.checked_sub(1).and_then(|at| trials.get(at));
    let (mut at_ns, mut bits) = (start_ns, 0.0);
    let mut bps = before.map_or_else(|| rate_of_row(0).bits_per_sec(), |trial| trial.offered_bps);
    for trial in trials.get(first..)?.iter().take_while(|trial| trial.t_ns < end_ns) {
        bits += bps as f64 * trial.t_ns.saturating_sub(at_ns) as f64;
        (at_ns, bps) = (trial.t_ns, trial.offered_bps);
    }
    bits += bps as f64 * end_ns.saturating_sub(at_ns) as f64;
    (end_ns > start_ns).then(|| bits / end_ns.saturating_sub(start_ns) as f64)
}
