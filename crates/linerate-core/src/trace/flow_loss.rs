//! Loss of some flows and not of others: a member of a bundle or one of several routers side by
//! side loses, and only those flows that are hashed to it see that.
//!
//! At one place the flows are split into two groups, each with its own share of losses. A split is
//! told when the flows differ by more than chance from there on (likelihood ratio over all flows)
//! and all later hops of the flows that lose show it. Rounds send the flows in changing order, so a
//! router that limits its answers hits all alike.

use std::collections::BTreeMap;

use super::witness::{STEP_MIN, Witness, later_show, likelihood, loss_share};
use crate::record::{Finding, Hop, TracePhase, TraceResult};
use crate::stats::{Z_95, wilson_interval};

/// Normal quantile of 0.9995: flows that are alike are called different once in 2000 places.
const Z: f64 = 3.290_5;
/// Groups of flows with a loss of their own.
const GROUPS_MAX: usize = 4;
/// Least probes of a flow to a hop.
const PROBES_MIN: u64 = 5;

/// Losses of the flows of a trace at its hops.
struct FlowTable {
    /// Hops that answer all they get, in order.
    ttls: Vec<u8>,
    /// Probes and losses of each flow at each of these hops.
    flows: BTreeMap<u16, Vec<Witness>>,
    /// True when the last hop is the end.
    sure: bool,
}

/// Flows that lose packets while others do not, by the answers of the hops at `ttls`.
pub(super) fn find_flow_losses(trace: &TraceResult, ttls: Vec<u8>) -> Vec<Finding> {
    let mut table = FlowTable::from_trace(trace, ttls);
    let of = u16::try_from(table.flows.len()).unwrap_or(u16::MAX);
    let mut found = Vec::new();
    while let Some(split) = table.best_split().filter(|_| found.len() < GROUPS_MAX) {
        for flow in &split.flows {
            table.flows.remove(flow);
        }
        found.extend(split.finding(trace, &table, of));
    }
    found
}

impl FlowTable {
    fn from_trace(trace: &TraceResult, ttls: Vec<u8>) -> Self {
        let mut flows: BTreeMap<u16, Vec<Witness>> = BTreeMap::new();
        let end = trace.hops.last().filter(|hop| hop.is_end).map(|hop| hop.ttl);
        let hops = trace.hops.iter().filter(|hop| ttls.contains(&hop.ttl));
        for (index, hop) in hops.enumerate() {
            for sample in hop.samples.iter().filter(|sample| sample.phase == TracePhase::Idle) {
                let row = flows.entry(sample.flow).or_default();
                let nothing = |ttl: &u8| Witness { ttl: *ttl, sent: 0, lost: 0 };
                row.extend(ttls.iter().skip(row.len()).map(nothing));
                if let Some(cell) = row.get_mut(index) {
                    cell.sent += 1;
                    cell.lost += u64::from(sample.rtt_ns.is_none());
                }
            }
        }
        flows.retain(|_, row| row.iter().all(|cell| cell.sent >= PROBES_MIN));
        let sure = end.is_some() && ttls.last().copied() == end;
        Self { ttls, flows, sure }
    }

    /// Losses of these flows from a hop on.
    fn losses_from<'a>(
        &'a self,
        flows: impl IntoIterator<Item = &'a u16>,
        index: usize,
    ) -> Witness {
        let rows = flows.into_iter().filter_map(|flow| self.flows.get(flow));
        sum(rows.flat_map(|row| row.iter().skip(index)))
    }

    /// The place and the flows that explain all losses best, where flows differ at all.
    fn best_split(&self) -> Option<FlowSplit> {
        let least_later = if self.sure { 1 } else { 2 };
        let places = (0..self.ttls.len()).filter(|at| self.ttls.len() - at >= least_later);
        let splits = places.filter(|&index| self.differ(index)).flat_map(|index| {
            let mut order: Vec<u16> = self.flows.keys().copied().collect();
            let lost = |flow: &u16| loss_share(self.losses_from([flow], index)).unwrap_or(0.0);
            order.sort_by(|one, other| lost(other).total_cmp(&lost(one)));
            (1..order.len()).map(move |count| FlowSplit::from_table(self, index, &order[..count]))
        });
        let best = splits.max_by(|one, other| one.gain.total_cmp(&other.gain))?;
        (best.gain > STEP_MIN && best.shows_later(self)).then_some(best)
    }

    /// True when flows lose differently from a hop on: the ratio of the likelihoods of a share each
    /// and of one share for all, as chi-squared.
    fn differ(&self, index: usize) -> bool {
        let each = self.flows.keys().map(|flow| likelihood(self.losses_from([flow], index)));
        let gain =
            2.0 * (each.sum::<f64>() - likelihood(self.losses_from(self.flows.keys(), index)));
        self.flows.len() > 1 && gain > chi_squared(self.flows.len() - 1)
    }
}

/// Some flows that lose from a hop on.
struct FlowSplit {
    index: usize,
    flows: Vec<u16>,
    lossy: Witness,
    gain: f64,
}

impl FlowSplit {
    fn from_table(table: &FlowTable, index: usize, flows: &[u16]) -> Self {
        let lossy = table.losses_from(flows, index);
        let all = table.losses_from(table.flows.keys(), 0);
        let rest = Witness { sent: all.sent - lossy.sent, lost: all.lost - lossy.lost, ..all };
        let gain = 2.0 * (likelihood(lossy) + likelihood(rest) - likelihood(all));
        let more = loss_share(lossy) > loss_share(rest);
        let gain = if more { gain } else { 0.0 };
        Self { index, flows: flows.to_vec(), lossy, gain }
    }

    fn shows_later(&self, table: &FlowTable) -> bool {
        let hops = (self.index..table.ttls.len()).map(|index| {
            sum(self.flows.iter().filter_map(|flow| table.flows.get(flow)?.get(index)))
        });
        later_show(&hops.collect::<Vec<_>>(), self.lossy, table.sure)
    }

    /// Builds the finding. `rest` has the flows that are left; losses that these have too are not
    /// the group's own.
    fn finding(mut self, trace: &TraceResult, rest: &FlowTable, of: u16) -> Option<Finding> {
        self.flows.sort_unstable();
        let base = loss_share(rest.losses_from(rest.flows.keys(), self.index)).unwrap_or(0.0);
        let interval = wilson_interval(self.lossy.lost, self.lossy.sent, Z_95)?;
        let at = rest.ttls[self.index];
        let after = self.index.checked_sub(1).map_or(0, |before| rest.ttls[before]);
        let at_hops = [at, after].into_iter();
        let mut own =
            at_hops.map(|ttl| self.own_routers(trace, ttl)).filter(|routers| !routers.is_empty());
        Some(Finding::FlowLoss {
            after,
            at,
            routers: own.next().unwrap_or_default(),
            of,
            ratio: loss_share(self.lossy)? - base,
            low: (interval.low - base).max(0.0),
            high: interval.high - base,
            sent: self.lossy.sent,
            flows: self.flows,
        })
    }

    /// Routers of a hop that answered these flows; none where one of them answered others too.
    fn own_routers(&self, trace: &TraceResult, ttl: u8) -> Vec<String> {
        let hop = trace.hops.iter().find(|hop| hop.ttl == ttl);
        let of_these = |flow: &u16| self.flows.contains(flow);
        let nodes = hop.iter().flat_map(|hop: &&Hop| &hop.nodes);
        let theirs = nodes.filter(|node| node.flows.iter().any(of_these));
        let theirs: Vec<_> = theirs.collect();
        let measured = rounds_flows(trace);
        let alone = theirs.iter().all(|node| {
            let known = node.flows.iter().filter(|flow| measured.contains(flow));
            known.clone().all(of_these)
        });
        let names = theirs.into_iter().map(|node| node.address.clone());
        if alone { names.collect() } else { Vec::new() }
    }
}

/// The flows that rounds measured; the search for paths sends more.
fn rounds_flows(trace: &TraceResult) -> Vec<u16> {
    let samples = trace.hops.iter().flat_map(|hop| &hop.samples);
    let mut flows: Vec<u16> = samples
        .filter(|sample| sample.phase == TracePhase::Idle)
        .map(|sample| sample.flow)
        .collect();
    flows.sort_unstable();
    flows.dedup();
    flows
}

fn sum<'a>(cells: impl Iterator<Item = &'a Witness>) -> Witness {
    cells.fold(Witness { ttl: 0, sent: 0, lost: 0 }, |sum, cell| Witness {
        ttl: sum.ttl.max(cell.ttl),
        sent: sum.sent + cell.sent,
        lost: sum.lost + cell.lost,
    })
}

/// The quantile of 0.9995 of chi-squared (Wilson and Hilferty, "The distribution of chi-square",
/// PNAS 17, 1931): k (1 - 2/9k + z sqrt(2/9k))^3 with k degrees of freedom.
fn chi_squared(degrees: usize) -> f64 {
    let k = degrees as f64;
    let spread = 2.0 / (9.0 * k);
    k * (1.0 - spread + Z * spread.sqrt()).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Tables of chi-squared for 0.0005: 17.730 with 3, 22.105 with 5, 39.719 with 15.
        for (degrees, expected) in [(3, 17.730), (5, 22.105), (15, 39.719)] {
            let found = chi_squared(degrees);
            // The approximation errs to the high side here, by 2.3 % at most.
            assert!((1.0..1.025).contains(&(found / expected)), "{degrees}: {found}");
        }
    }
}
