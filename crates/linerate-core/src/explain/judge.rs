//! The choice among the causes that agree with the evidence, and the verdict about it.

use super::candidate::Candidate;
use super::evidence::Evidence;
use super::mechanism::Findings;
use super::{
    datagrams, ends, gate, innocent, interventions, ladder, latency, members, others_queue, path,
    pings, remedy, socket, trains, unlike,
};
use crate::record::{Cause, Confidence, DecidingTest, LimitVerdict, Note, Outcome};
use crate::theory::ladder::APART;

/// Verdict on one direction: the limit of its rate, with the evidence.
pub fn judge_direction(evidence: &Evidence) -> LimitVerdict {
    let own = own_rate(evidence).map(|candidate| verdict_for(evidence, candidate));
    if let Some(verdict) = own.or_else(|| gate::failure_verdict(evidence)) {
        // What a handshake lost does not depend on who had a CPU; what probes lost is told beside
        // the reason why no more is said.
        return LimitVerdict {
            connection: evidence.connection.clone(),
            measured_bps: evidence.rate.mean_bps,
            loss: evidence.trains.as_ref().map(Findings::probe_loss),
            handshake: evidence.syn.changes.clone(),
            ..verdict
        };
    }
    let verdict = match first_cause(evidence) {
        Some(candidate) => {
            let cause = candidate.cause;
            match interventions::test_candidate(evidence, candidate) {
                Some(candidate) => verdict_for(evidence, candidate),
                None => match interventions::cause_shown(evidence) {
                    Some(candidate) => verdict_for(evidence, candidate),
                    None => interventions::refuted_verdict(evidence, cause),
                },
            }
        }
        None => {
            let open = undetermined(evidence);
            let decided = interventions::decide_between(evidence, &open.between);
            match decided.or_else(|| interventions::cause_shown(evidence)) {
                Some(mut candidate) => {
                    candidate.signs.splice(0..0, open.evidence);
                    verdict_for(evidence, candidate)
                }
                None => interventions::narrow_verdict(evidence, open),
            }
        }
    };
    let mut verdict = LimitVerdict {
        connection: evidence.connection.clone(),
        measured_bps: evidence.rate.mean_bps,
        unseen: evidence.unseen.clone(),
        latency: latency::latency(evidence),
        loss: evidence.trains.as_ref().map(Findings::probe_loss),
        handshake: evidence.syn.changes.clone(),
        ..verdict
    };
    if verdict.latency.as_ref().and_then(|latency| latency.cause) == Some(Cause::StandingQueue) {
        let lines = remedy::standing_queue(evidence, &verdict);
        verdict.remedy.extend(lines);
    }
    verdict.innocent = innocent::findings(evidence, &verdict);
    verdict.notes.extend(evidence.remarks.iter().cloned().map(Note::Source));
    verdict
}

/// A pace that was asked for and kept, which needs no path to be the limit.
fn own_rate(evidence: &Evidence) -> Option<Candidate> {
    let certain = evidence.loopback && evidence.spoilt.is_none();
    let pace = || ends::own_pace(evidence).or_else(|| ends::own_read_pace(evidence));
    certain.then(pace).flatten()
}

/// The first cause whose signs are all there. What is certain comes first, then the ends, then the
/// path: the network is not blamed for what a host does.
fn first_cause(evidence: &Evidence) -> Option<Candidate> {
    if let Some(moment) = &evidence.moment {
        return socket::socket_cause(evidence, moment);
    }
    if let Some(sent) = &evidence.datagrams {
        return datagrams::first_cause(evidence, sent);
    }
    let rules: [fn(&Evidence) -> Option<Candidate>; 28] = [
        trains::black_hole,
        pings::outages,
        pings::lossy_pings,
        path::nothing_moved,
        path::smaller_segments,
        ends::own_pace,
        ends::own_read_pace,
        interventions::port_held,
        ends::receive_window,
        others_queue::receive_window,
        path::known_link,
        busy_host,
        ends::send_buffer,
        ends::clamped_window,
        ends::idle_sender,
        ends::start_up,
        path::outages,
        path::ack_path,
        trains::acks_held,
        path::sack_stripped,
        members::bad_member,
        trains::cause_of_trains,
        unlike::metered,
        trains::undecided_candidate,
        path::full_bottleneck,
        path::reordering,
        path::bbr_found,
        path::fingerprint,
    ];
    rules.iter().find_map(|rule| rule(evidence))
}

/// A host that fills the path is not what limits it, however long its threads waited.
fn busy_host(evidence: &Evidence) -> Option<Candidate> {
    if path::fills_the_link(evidence) { None } else { ends::busy_host(evidence) }
}

fn verdict_for(evidence: &Evidence, candidate: Candidate) -> LimitVerdict {
    let full = candidate.cause == Cause::Link;
    let outcome = if full { Outcome::AtCeiling } else { Outcome::Limited };
    let path = ladder::without(evidence, Some(candidate.cause));
    let ceiling = path.as_ref().and_then(|ladder| Some(ladder.ceiling()?.payload_bps));
    // Without a rate of the path a next limit would be a promise that nobody can keep.
    let known = evidence.capacity_bps.is_some() || ceiling.is_some();
    let next = (!full && known).then(|| ladder::next(evidence, candidate.cause)).flatten();
    let mut notes = candidate.notes;
    if !full && !known {
        notes.push(Note::PathNotMeasured);
    }
    let close = next.as_ref().zip(candidate.bps).filter(|(next, bps)| next.bps < APART * bps);
    if let Some((next, _)) = close {
        notes.push(Note::CloseLimits { next: next.bound });
    }
    // What the other way's own load does, a test without it shows.
    let by_load = matches!(candidate.cause, Cause::AckPath | Cause::DuplexMismatch);
    let one_way = (by_load && evidence.asked.both_ways).then_some(DecidingTest::OneWay);
    LimitVerdict {
        deciding_test: one_way,
        cause: Some(candidate.cause),
        confidence: Some(candidate.confidence),
        ceiling_bps: if full { candidate.bps } else { ceiling },
        expected_bps: candidate.bps,
        evidence: candidate.signs,
        next,
        remedy: candidate.remedy,
        notes,
        ..LimitVerdict::from_outcome(evidence.direction, outcome)
    }
}

/// Nothing on the list, or more than one cause.
fn undetermined(evidence: &Evidence) -> LimitVerdict {
    let verdict = LimitVerdict::from_outcome(evidence.direction, Outcome::Undetermined);
    let trains = DecidingTest::ProbeTrains;
    let held = || Some((path::held_by_an_end(evidence)?, DecidingTest::BothHosts));
    let still = path::starved(evidence).map(|found| (found, DecidingTest::PacketSizes));
    let lossy = || Some((path::unexplained_loss(evidence)?, trains));
    let queue = || Some((path::standing_queue(evidence)?, trains));
    let found = still.or_else(lossy).or_else(held).or_else(queue);
    let found = match (&evidence.moment, &evidence.datagrams) {
        (Some(moment), _) => Some(socket::undecided_causes(evidence, moment)),
        (_, Some(sent)) => Some(datagrams::causes_of_loss(sent)),
        _ => found.map(|((signs, between), test)| (signs, between, test)),
    };
    match found {
        Some((signs, between, test)) => LimitVerdict {
            evidence: signs,
            between,
            deciding_test: Some(test),
            confidence: Some(Confidence::Low),
            ..verdict
        },
        None => LimitVerdict { deciding_test: Some(trains), ..verdict },
    }
}
