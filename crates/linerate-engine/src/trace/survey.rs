//! The parts of a trace over any network: find the hops, measure them in rounds, then look for
//! next hops, changed headers and sizes. Rounds come before the rest, whose bunches of probes use
//! up what routers answer.

use std::net::IpAddr;

use linerate_core::path::Random;
use linerate_core::record::{
    ArrivedMarks, Failure, Hop, HopNode, HopSample, TracePhase, TracePlan, TraceProbes, TraceResult,
};
use linerate_core::trace::places;
use linerate_core::trace::stopping::{FAILURE, flows_needed};

use super::live::FLOWS_MAX;
use super::network::{Network, Said, TraceProbe};
use super::prober::{ProbeOutcome, ProbeRound, Shot, TraceProber};

/// Probes of the search go out in bunches of so many hops: the end answers those beyond it too,
/// and its answers are limited.
const BUNCH: u8 = 4;
/// The search ends after this many hops in a row that say nothing.
const SILENT_MAX: usize = 8;
/// Time between the probes of a bunch, so that they make no queue.
const GAP_NS: u64 = 3_000_000;
/// Tries for flows that are not answered; Linux answers one a second of those beyond a burst.
const PATH_TRIES: usize = 12;
/// Time between tries for flows that were not answered.
const PATH_PAUSE_NS: u64 = 800_000_000;
/// Round trips to wait for an answer, and the least.
const WAITS: u64 = 4;
const WAIT_NS_MIN: u64 = 200_000_000;
/// Where no other is asked for: assured forwarding 11 (RFC 2597), which a router that clears marks
/// does not spare, and no queue is hurried for.
const DSCP: u8 = 10;
/// ECT(0) (RFC 3168 §5).
const ECN: u8 = 2;
/// Larger than the hops of any path.
pub(super) const TTL_FAR: u8 = 64;

/// A trace as it goes on.
pub(super) struct TraceSurvey<'a, N> {
    pub(super) prober: TraceProber<N>,
    pub(super) plan: &'a TracePlan,
    pub(super) trace: TraceResult,
    pub(super) tos: u8,
}

impl<'a, N: Network> TraceSurvey<'a, N> {
    pub(super) fn new(network: N, plan: &'a TracePlan, target: IpAddr) -> Self {
        let trace = TraceResult {
            target: target.to_string(),
            reads_quotes: network.reads_quotes(),
            ..TraceResult::default()
        };
        let tos = plan.dscp.unwrap_or(0) << 2;
        Self { prober: TraceProber::new(network, plan.timeout_ns), plan, trace, tos }
    }

    fn probe_to_hop(&self, ttl: u8) -> TraceProbe {
        TraceProbe { ttl, tos: self.tos, ..TraceProbe::default() }
    }

    pub(super) fn stopped(&self) -> bool {
        self.prober.network.stopped()
    }

    /// Finds the hops and where they end.
    pub(super) fn find_hops(&mut self) -> Result<(), Failure> {
        let mut first = 1;
        while first <= self.plan.hops_max && !self.stopped() {
            let last = first.saturating_add(BUNCH - 1).min(self.plan.hops_max);
            let probes: Vec<TraceProbe> =
                (first..=last).map(|ttl| self.probe_to_hop(ttl)).collect();
            let mut outcomes = self.prober.send_all(probes, GAP_NS)?;
            // Once more those that were not answered, before a path seems longer than it is.
            let silent = outcomes
                .iter()
                .filter(|outcome| outcome.answer.is_none())
                .map(|outcome| outcome.probe);
            let again = self.prober.send_all(silent.collect::<Vec<_>>(), GAP_NS)?;
            outcomes.extend(again);
            let ended = outcomes
                .iter()
                .filter(|outcome| is_end(outcome) || is_refusal(outcome))
                .map(|outcome| outcome.probe.ttl)
                .min();
            let last = ended.unwrap_or(last);
            for ttl in first..=last {
                self.trace.hops.push(Hop { ttl, ..Hop::default() });
            }
            for outcome in outcomes.iter().filter(|outcome| outcome.probe.ttl <= last) {
                self.note_outcome(outcome, TracePhase::Search);
            }
            let silent = self.trace.hops.iter().rev().take_while(|hop| hop.nodes.is_empty());
            let goes_round = places::find_loop(&self.trace).is_some();
            if ended.is_some() || goes_round || silent.count() >= SILENT_MAX {
                break;
            }
            first = last.saturating_add(1);
        }
        let heard = self.trace.hops.iter().rposition(|hop| !hop.nodes.is_empty());
        self.trace.hops.truncate(heard.map_or(0, |last| last + 1));
        self.trace.reached = self.trace.hops.last().is_some_and(|hop| hop.is_end);
        Ok(())
    }

    /// Sends one probe of each measured flow to each hop every interval, `count` times or until
    /// `ended`. A round that this host is late with is put off. The flows come in another order in
    /// each round: a router that answers so many a second then answers none of them more than
    /// another.
    pub(super) fn rounds(
        &mut self,
        count: u32,
        phase: TracePhase,
        ended: impl FnMut() -> bool,
    ) -> Result<(), Failure> {
        let mut order: Vec<u16> = (0..self.plan.flows).collect();
        if order.len() > 1 {
            let ports = order.iter().filter_map(|&flow| self.prober.network.source_port(flow));
            self.trace.flow_ports = ports.collect();
        }
        let hops = self.trace.hops.len() as u64;
        let probes = hops * order.len() as u64;
        let gap_ns = self.plan.interval_ns / (probes + 2).max(1);
        let echoes = self.plan.probes == TraceProbes::Udp && self.prober.network.has_echo();
        // Two probes to one router are then never closer than three quarters of their distance.
        let late_ns_max = gap_ns * hops / 4;
        let mut random = Random::new(0, 0);
        let mut shots = Vec::new();
        for round in 0..u64::from(count) {
            let start_ns = round * self.plan.interval_ns;
            let mut after_ns = start_ns;
            let round = Some(ProbeRound { number: round, late_ns_max });
            order.sort_by_cached_key(|_| random.next_uniform().to_bits());
            for &flow in &order {
                for hop in &self.trace.hops {
                    let probe = TraceProbe { flow, ..self.probe_to_hop(hop.ttl) };
                    shots.push(Shot { after_ns, probe, round });
                    after_ns += gap_ns;
                }
            }
            if echoes {
                let probe = TraceProbe { echo: true, ..self.probe_to_hop(TTL_FAR) };
                shots.push(Shot { after_ns, probe, round });
            }
        }
        let outcomes = self.prober.run(&shots, ended)?;
        self.trace.late_rounds += std::mem::take(&mut self.prober.late_rounds);
        for outcome in outcomes {
            self.note_outcome(&outcome, phase);
        }
        Ok(())
    }

    /// Keeps what became of a probe.
    pub(super) fn note_outcome(&mut self, outcome: &ProbeOutcome, phase: TracePhase) {
        let Some(at_ns) = outcome.sent_ns else { return };
        let answer = outcome.answer.as_ref();
        let rtt_ns = answer.map(|answer| answer.rtt_ns);
        let flow = outcome.probe.flow;
        if outcome.probe.echo {
            self.trace.echoes.push(HopSample { at_ns, flow, node: None, rtt_ns, phase });
            return;
        }
        let index = usize::from(outcome.probe.ttl).saturating_sub(1);
        let Some(hop) = self.trace.hops.get_mut(index) else { return };
        let node = answer.map(|answer| {
            hop.is_end |= is_end(outcome);
            let address = answer.from.to_string();
            let known = hop.nodes.iter().position(|node| node.address == address);
            let index = known.unwrap_or_else(|| {
                hop.nodes.push(HopNode { address, ..HopNode::default() });
                hop.nodes.len() - 1
            });
            let node = &mut hop.nodes[index];
            if !node.flows.contains(&flow) {
                node.flows.push(flow);
            }
            if node.labels.is_empty() {
                node.labels.clone_from(&answer.labels);
            }
            index as u16
        });
        hop.samples.push(HopSample { at_ns, flow, node, rtt_ns, phase });
    }

    /// Waits no longer for answers than some times the longest round trip: what follows asks many
    /// questions, to which silence is an answer.
    pub(super) fn wait_shorter(&mut self) {
        let samples = self.trace.hops.iter().flat_map(|hop| &hop.samples);
        let longest =
            samples.filter_map(|sample| sample.rtt_ns).max().unwrap_or(self.plan.timeout_ns);
        let enough = (longest * WAITS).max(WAIT_NS_MIN);
        self.prober.timeout_ns = self.plan.timeout_ns.min(enough);
    }

    /// Sends more flows to each hop until all its next hops are seen with 95 %.
    pub(super) fn find_paths(&mut self) -> Result<(), Failure> {
        for _ in 0..PATH_TRIES {
            let mut probes = Vec::new();
            for hop in self.trace.hops.iter().filter(|hop| !hop.nodes.is_empty()) {
                probes.extend(wanted_flows(hop).into_iter().map(|flow| (hop.ttl, flow)));
            }
            if probes.is_empty() || self.stopped() {
                return Ok(());
            }
            // One flow after the other, so that each router has time in between.
            probes.sort_by_key(|(ttl, flow)| (*flow, *ttl));
            let probes =
                probes.into_iter().map(|(ttl, flow)| TraceProbe { flow, ..self.probe_to_hop(ttl) });
            let outcomes = self.prober.send_all(probes.collect::<Vec<_>>(), GAP_NS)?;
            for outcome in &outcomes {
                self.note_outcome(outcome, TracePhase::Search);
            }
            // Routers that answer one a second have the next token by then.
            if outcomes.iter().any(|outcome| outcome.answer.is_none()) {
                self.prober.pause_discarding(PATH_PAUSE_NS);
            }
        }
        Ok(())
    }

    /// Sends probes with marks and reads how they arrive.
    pub(super) fn read_marks(&mut self) -> Result<(), Failure> {
        if !self.prober.network.reads_quotes() {
            return Ok(());
        }
        let dscp = self.plan.dscp.filter(|dscp| *dscp > 0).unwrap_or(DSCP);
        (self.trace.dscp_sent, self.trace.ecn_sent) = (Some(dscp), Some(ECN));
        for _ in 0..3 {
            let open = self.trace.hops.iter().filter(|hop| hop.arrived.is_none());
            let open = open.filter(|hop| !hop.nodes.is_empty());
            let marked = |ttl| TraceProbe { tos: dscp << 2 | ECN, ..self.probe_to_hop(ttl) };
            let probes: Vec<TraceProbe> = open.map(|hop| marked(hop.ttl)).collect();
            if probes.is_empty() || self.stopped() {
                return Ok(());
            }
            for outcome in self.prober.send_all(probes, GAP_NS)? {
                self.note_outcome(&outcome, TracePhase::Search);
                let arrived: Option<ArrivedMarks> =
                    outcome.answer.and_then(|answer| answer.arrived);
                let index = usize::from(outcome.probe.ttl) - 1;
                if let (Some(hop), Some(arrived)) = (self.trace.hops.get_mut(index), arrived) {
                    hop.arrived = Some(arrived);
                }
            }
        }
        Ok(())
    }
}

/// True where a router says that it passes nothing on.
fn is_refusal(outcome: &ProbeOutcome) -> bool {
    outcome.answer.as_ref().is_some_and(|answer| matches!(answer.said, Said::Refused(_)))
}

/// True where an answer is the target's.
fn is_end(outcome: &ProbeOutcome) -> bool {
    outcome.answer.as_ref().is_some_and(|answer| matches!(answer.said, Said::Reached))
}

/// Flows to send to a hop: as many as are missing to what its known routers ask for.
fn wanted_flows(hop: &Hop) -> Vec<u16> {
    if hop.is_end {
        return Vec::new();
    }
    let needed = flows_needed(hop.nodes.len(), FAILURE).min(FLOWS_MAX);
    let answered: Vec<u16> = hop.nodes.iter().flat_map(|node| node.flows.clone()).collect();
    let missing = usize::from(needed).saturating_sub(answered.len());
    (0..FLOWS_MAX).filter(|flow| !answered.contains(flow)).take(missing).collect()
}
