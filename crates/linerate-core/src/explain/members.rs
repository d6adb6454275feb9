//! Flows that ran at once between the same hosts and fared unlike: each has a path of its own.

use super::candidate::Candidate;
use super::evidence::{EachFlow, Evidence};
use crate::record::{Cause, Confidence, PathAdvice, RemedyLine, Sign, SignKind};

/// Flows of one test that show groups.
const FLOWS_MIN: usize = 4;
/// Share of segments lost of each flow of the worse group, and how many at the least.
const LOSES: f64 = 0.01;
const LOST_MIN: f64 = 8.0;
/// Ratio of the loss ratios of two groups of flows from which on they did not share one queue:
/// flows that do lose within five times of each other.
const UNLIKE: f64 = 8.0;
/// Rate of the worse group over that of the better.
const SLOWER: f64 = 0.5;
/// Round trips of the worse group over those of the better: it is no fuller queue that drops more.
const NO_FULLER: f64 = 1.1;

/// Some flows lose what others of the same test do not: a member of a trunk, or one of several
/// paths, loses packets.
pub(super) fn bad_member(evidence: &Evidence) -> Option<Candidate> {
    let lossy = |flow: &&EachFlow| flow.retransmit_ratio() >= LOSES && flow.again >= LOST_MIN;
    let worse: Vec<&EachFlow> = evidence.each.iter().filter(lossy).collect();
    let better: Vec<&EachFlow> = evidence.each.iter().filter(|flow| !lossy(flow)).collect();
    if evidence.each.len() < FLOWS_MIN || worse.is_empty() || better.is_empty() {
        return None;
    }
    let least = worse.iter().map(|flow| flow.retransmit_ratio()).fold(f64::INFINITY, f64::min);
    // Three lost more than were seen: the upper bound of a share of which none was seen (95 %).
    let bound = |flow: &&EachFlow| (flow.again + 3.0) / flow.sent.max(1.0);
    let most = better.iter().map(bound).fold(0.0, f64::max);
    let median = |flows: &[&EachFlow], of: fn(&EachFlow) -> f64| {
        let mut values: Vec<f64> = flows.iter().map(|flow| of(flow)).collect();
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (slow, fast) = (median(&worse, |flow| flow.bps), median(&better, |flow| flow.bps));
    let (short, long) = (median(&worse, |flow| flow.rtt_s), median(&better, |flow| flow.rtt_s));
    if least < UNLIKE * most || slow > SLOWER * fast || short > NO_FULLER * long {
        return None;
    }
    let signs = vec![
        Sign::figure(SignKind::LossyFlows, worse.len() as f64),
        Sign::at_least(SignKind::LossyShareLeast, least, UNLIKE * most),
        Sign::figure(SignKind::LosslessFlows, better.len() as f64),
        Sign::at_most(SignKind::LossyOverLossless, slow / fast, SLOWER),
    ];
    let remedy = vec![RemedyLine::on_path(PathAdvice::TakeOutMember)];
    Some(Candidate::new(Cause::UnequalPaths, Confidence::High, signs).mended_by(remedy))
}
