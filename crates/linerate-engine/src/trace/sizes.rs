//! The largest packet that goes on from each hop: by what routers tell, and where they tell
//! nothing by what arrives.
//!
//! Probes have DF set. A packet that is too big for the next link is told of by that link's router
//! (RFC 1191, RFC 8201), which is the last hop that it reaches. Where none does, large probes
//! vanish while small ones beside them are answered: a black hole (RFC 2923 §2.1), whose size is
//! searched by halves.

use linerate_core::record::{Failure, SizeLimit, TracePhase};

use super::network::{Network, Said, TraceProbe};
use super::prober::ProbeOutcome;
use super::survey::TraceSurvey;

/// Every link carries so much (RFC 791, RFC 8200 §5); routers of IPv4 in use carry 576 and more.
const LEAST: u32 = 576;
/// Pairs of a large and a small probe before a size counts as vanished.
const PAIRS: usize = 3;
/// Time between pairs: routers that answer one a second answer each.
const PAIR_GAP_NS: u64 = 250_000_000;
/// Limits on one path.
const LIMITS_MAX: usize = 8;

impl<N: Network> TraceSurvey<'_, N> {
    /// Finds the sizes, from that of this host's own link downwards.
    pub(super) fn find_sizes(&mut self) -> Result<(), Failure> {
        let mut size = self.own_size()?;
        let mut from = 0;
        for _ in 0..LIMITS_MAX {
            if from >= self.trace.hops.len() || self.stopped() {
                break;
            }
            let Some(limit) = self.next_limit(from, size)? else { break };
            self.set_hop_mtu(from, limit.after.into(), size);
            self.trace.size_limits.push(limit);
            (from, size) = (limit.after.into(), limit.bytes);
            if size == 0 {
                return Ok(());
            }
        }
        let all = self.trace.hops.len();
        self.set_hop_mtu(from, all, size);
        self.trace.mtu_bytes = self.trace.reached.then_some(size);
        Ok(())
    }

    /// The largest packet that this host sends at all: its interface's MTU, or what IP holds. What
    /// it does not send vanishes nowhere.
    fn own_size(&mut self) -> Result<u32, Failure> {
        let told = self.prober.network.link_mtu();
        if self.prober.send_without_wait(self.sized_probe(1, told))?
            || !self.prober.send_without_wait(self.sized_probe(1, LEAST))?
        {
            return Ok(told);
        }
        let (mut goes, mut refused) = (LEAST, told);
        while refused - goes > 1 && !self.stopped() {
            let middle = u32::midpoint(goes, refused);
            if self.prober.send_without_wait(self.sized_probe(1, middle))? {
                goes = middle;
            } else {
                refused = middle;
            }
        }
        Ok(goes)
    }

    /// Sets the size known to arrive at the hops from `from` (counted from 0) to `to`.
    fn set_hop_mtu(&mut self, from: usize, to: usize, size: u32) {
        let last = to.min(self.trace.hops.len());
        for hop in self.trace.hops.get_mut(from..last).unwrap_or(&mut []) {
            hop.mtu_bytes = Some(size);
        }
    }

    fn sized_probe(&self, ttl: u8, bytes: u32) -> TraceProbe {
        TraceProbe { ttl, bytes, tos: self.tos, ..TraceProbe::default() }
    }

    /// The first place beyond hop `from` that packets of `size` do not pass.
    fn next_limit(&mut self, from: usize, size: u32) -> Result<Option<SizeLimit>, Failure> {
        let heard = self.trace.hops.iter().skip(from).filter(|hop| !hop.nodes.is_empty());
        let ttls: Vec<u8> = heard.map(|hop| hop.ttl).collect();
        let mut passed = vec![false; ttls.len()];
        let mut small = vec![0; ttls.len()];
        for _ in 0..PAIRS {
            let open = || (0..ttls.len()).filter(|&index| !passed[index]);
            let probes: Vec<TraceProbe> = open()
                .flat_map(|index| {
                    [self.sized_probe(ttls[index], size), self.sized_probe(ttls[index], 0)]
                })
                .collect();
            let gap_ns = PAIR_GAP_NS / (probes.len() as u64 + 1);
            let outcomes = self.prober.send_all(probes, gap_ns)?;
            for outcome in &outcomes {
                if let Some(limit) = self.reported_limit(outcome, from, size) {
                    return Ok(Some(limit));
                }
                let Some(index) = ttls.iter().position(|ttl| *ttl == outcome.probe.ttl) else {
                    continue;
                };
                let answered = outcome.answer.is_some();
                match outcome.probe.bytes {
                    0 => {
                        self.note_outcome(outcome, TracePhase::Search);
                        small[index] += usize::from(answered);
                    }
                    _ => passed[index] |= answered,
                }
            }
            // Who lets a later hop answer passes it on.
            if let Some(last) = passed.iter().rposition(|passed| *passed) {
                passed[..last].fill(true);
            }
            if passed.iter().all(|passed| *passed) {
                return Ok(None);
            }
        }
        let Some(first) = passed.iter().position(|passed| !passed) else { return Ok(None) };
        // All later hops must say the same, and answer small ones: silence is no proof.
        let beyond: usize = small[first..].iter().sum();
        if beyond < PAIRS {
            return Ok(None);
        }
        let after = first.checked_sub(1).map_or(from as u8, |index| ttls[index]);
        let bytes = self.largest(&ttls[first..], size)?;
        Ok(Some(SizeLimit { after, at: ttls[first], bytes, reported: false }))
    }

    /// A router's own word.
    fn reported_limit(&self, outcome: &ProbeOutcome, from: usize, size: u32) -> Option<SizeLimit> {
        let answer = outcome.answer.as_ref()?;
        let Said::TooBig(mtu) = answer.said else { return None };
        let address = answer.from.to_string();
        let hops = self.trace.hops.iter().skip(from);
        let known = hops.clone().find(|hop| hop.nodes.iter().any(|node| node.address == address));
        // A router may tell from an address of its other side: then the probe's reach bounds it.
        let after = known.map_or_else(|| outcome.probe.ttl.saturating_sub(1), |hop| hop.ttl);
        let bytes = if (68..size).contains(&mtu) { mtu } else { 0 };
        Some(SizeLimit { after, at: after + 1, bytes, reported: true })
    }

    /// The largest size that one of some hops answers, by halves.
    fn largest(&mut self, ttls: &[u8], size: u32) -> Result<u32, Failure> {
        let (mut goes, mut vanishes) = (LEAST, size);
        while vanishes - goes > 1 && !self.stopped() {
            let middle = u32::midpoint(goes, vanishes);
            let mut answered = false;
            for _ in 0..2 {
                let probes = ttls.iter().take(4).map(|&ttl| self.sized_probe(ttl, middle));
                let outcomes = self.prober.send_all(probes.collect::<Vec<_>>(), PAIR_GAP_NS / 8)?;
                answered = outcomes.iter().any(|outcome| outcome.answer.is_some());
                if answered {
                    break;
                }
            }
            if answered {
                goes = middle;
            } else {
                vanishes = middle;
            }
        }
        Ok(goes)
    }
}
