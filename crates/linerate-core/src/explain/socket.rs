//! Causes that one moment of a live socket shows: its queues, its windows, its timer, and the sums
//! since it was opened (`ss -ti`; RFC 9293 §3.8.6.1 for the persist timer).
//!
//! A moment has one rate, so it never proves a full link: the kernel's rate of delivery is that of
//! the flow itself. Where a queue stands the link is one of a list. The kernel's times of waiting
//! (`tcpi_rwnd_limited`, `tcpi_sndbuf_limited`) decide only where nothing of the moment speaks
//! against them: see `ends.rs`.

use super::candidate::{Candidate, share_of};
use super::ends::WINDOW_FULL;
use super::evidence::{Evidence, NO_QUEUE, SocketMoment};
use super::path::LOSSY;
use super::remedy;
use crate::record::{
    At, Cause, Confidence, DecidingTest, HostAdvice, Note, RemedyLine, Sign, SignKind, SocketNote,
};
use crate::theory::ladder::Response;

/// Time of waiting over the busy time: the sender waited for that more than for all else.
const MOSTLY: f64 = 0.5;
/// Time with something to send over the age, below which a program asks for no more.
const DEMAND: f64 = 0.5;
/// In flight over the congestion window: that holds the sender.
const CWND_FULL: f64 = 0.85;
/// Busy time that the buffer held the sender, from which the program had more to send.
const HELD: f64 = 0.1;
/// Memory of the send buffer over what it may take up: it is full.
const BUFFER_FULL: f64 = 0.9;
/// A pace counts as kept from this share of it on.
const PACE_KEPT: f64 = 0.95;
/// Received and not read over the room for it: the reader is late.
const UNREAD: f64 = 0.5;
/// A read of a socket's queue takes no longer than this: less received and not read is no sign.
const UNREAD_BYTES: f64 = 65_536.0;

/// The share of time that a program had something to send, where the age is known.
fn demand(moment: &SocketMoment) -> Option<f64> {
    share_of(moment.busy_s, moment.age_s).map(|share| share.min(1.0))
}

/// True where more than half of what was moved came in.
const fn receives(moment: &SocketMoment) -> bool {
    moment.received_bytes > moment.acknowledged_bytes
}

/// The first cause whose signs are all there.
pub(super) fn socket_cause(evidence: &Evidence, moment: &SocketMoment) -> Option<Candidate> {
    if receives(moment) && moment.send_queue_bytes.unwrap_or(0.0) == 0.0 {
        return unread(moment);
    }
    let rules: [fn(&Evidence, &SocketMoment) -> Option<Candidate>; 7] = [
        closed_window,
        full_window,
        own_pace,
        nothing_to_send,
        full_buffer,
        window_by_time,
        asks_for_little,
    ];
    rules.iter().find_map(|rule| rule(evidence, moment))
}

/// Data lies in the receive queue of this host: its program does not read.
fn unread(moment: &SocketMoment) -> Option<Candidate> {
    let queue = moment.receive_queue_bytes.filter(|bytes| *bytes >= UNREAD_BYTES)?;
    let mut signs = vec![Sign::at_least(SignKind::Unread, queue, UNREAD_BYTES)];
    let mut confidence = Confidence::Medium;
    if let Some(room) = moment.receive_room_bytes {
        let full = share_of(Some(queue), Some(room)).filter(|full| *full >= UNREAD)?;
        signs.push(Sign::at_least(SignKind::UnreadOverRoom, full, UNREAD));
        confidence = Confidence::High;
    }
    let mut candidate = Candidate::new(Cause::ReceivingApplication, confidence, signs);
    candidate.notes.push(Note::Socket(SocketNote::NotReadHere));
    Some(candidate.mended_by(remedy::reader()))
}

/// The receiver's window is closed: what arrived there is not read.
fn closed_window(evidence: &Evidence, moment: &SocketMoment) -> Option<Candidate> {
    let queue = moment.send_queue_bytes.filter(|bytes| *bytes > 0.0)?;
    let zero = evidence.window.offered_bytes == Some(0.0);
    if !(moment.persist_timer || zero) {
        return None;
    }
    let unsent = evidence.window.unsent_bytes.unwrap_or(queue);
    let mut signs = vec![Sign::figure(SignKind::Unsent, unsent)];
    signs.extend(waited(evidence.window.window_limited));
    let mut candidate = Candidate::new(Cause::ReceivingApplication, Confidence::High, signs);
    candidate.notes.push(Note::Socket(SocketNote::WindowClosed));
    Some(candidate.mended_by(remedy::reader()))
}

/// The receiver's window is full, or too small for a segment, and more waits to be sent.
fn full_window(evidence: &Evidence, _: &SocketMoment) -> Option<Candidate> {
    let unsent = evidence.window.unsent_bytes.filter(|bytes| *bytes > 0.0)?;
    let window = evidence.offered_bytes()?;
    let flight = evidence.window.flight_bytes?;
    let full = share_of(Some(flight), Some(window)).unwrap_or(0.0);
    let below_a_segment = evidence.mss_bytes.is_some_and(|mss| window < f64::from(mss));
    if full < WINDOW_FULL && !below_a_segment {
        return None;
    }
    let mut signs = vec![Sign::figure(SignKind::WindowOffered, window)];
    match below_a_segment {
        true => {
            let mss = f64::from(evidence.mss_bytes?);
            signs.push(Sign::figure(SignKind::SegmentSize, mss));
        }
        false => {
            signs.push(Sign::at_least(SignKind::FlightOverThatWindow, full, WINDOW_FULL));
        }
    }
    signs.push(Sign::figure(SignKind::Unsent, unsent));
    signs.extend(waited(evidence.window.window_limited));
    let for_long = evidence.window.window_limited.is_some_and(|share| share >= MOSTLY);
    let no_queue = evidence.inflation().is_some_and(|times| times <= NO_QUEUE);
    let confidence = if for_long && no_queue { Confidence::High } else { Confidence::Medium };
    let mut candidate = Candidate::new(Cause::ReceiveWindow, confidence, signs);
    // A window that was larger before does not bound the rate since the connection was opened.
    let allowed = evidence.rtt.loaded_s.filter(|rtt| *rtt > 0.0).map(|rtt| 8.0 * window / rtt);
    let is_bound = |bps: &f64| evidence.rate.mean_bps.is_some_and(|mean| mean <= AGREES * bps);
    if let Some(bps) = allowed.filter(is_bound) {
        candidate = candidate.allowing(bps);
    }
    candidate.notes.push(MAY_READ_LATE);
    Some(candidate.mended_by(remedy::receive_window(evidence)))
}

/// The most that a rate is above what its window and its round trip allow: both vary.
const AGREES: f64 = 1.2;
/// Note on a small window, which the sender's end cannot tell from a late reader.
const MAY_READ_LATE: Note = Note::Socket(SocketNote::MayReadLate);

/// A window that the kernel says it waited for most of the time, where this end does not print it.
fn window_by_time(evidence: &Evidence, _: &SocketMoment) -> Option<Candidate> {
    let limited = evidence.window.window_limited.filter(|share| *share >= MOSTLY)?;
    let known = evidence.offered_bytes().zip(evidence.window.flight_bytes);
    if known.is_some_and(|(window, flight)| flight < 0.5 * window) {
        return None;
    }
    let mut signs = vec![Sign::at_least(SignKind::BusyForWindow, limited, MOSTLY)];
    signs.extend(
        evidence.offered_bytes().map(|bytes| Sign::figure(SignKind::WindowOfferedNow, bytes)),
    );
    let mut candidate = Candidate::new(Cause::ReceiveWindow, Confidence::Medium, signs);
    candidate.notes.push(MAY_READ_LATE);
    Some(candidate.mended_by(remedy::receive_window(evidence)))
}

/// Time in which the peer's window held the sender.
fn waited(limited: Option<f64>) -> Option<Sign> {
    limited.map(|share| Sign::figure(SignKind::BusyForWindow, share))
}

/// A pace that the program gave the kernel, and that is kept.
fn own_pace(evidence: &Evidence, moment: &SocketMoment) -> Option<Candidate> {
    let pace = moment.pace_max_bps?;
    let rate = moment.delivery_bps.or(evidence.rate.mean_bps);
    let kept = share_of(rate, Some(pace)).filter(|kept| *kept >= PACE_KEPT)?;
    let signs = vec![
        Sign::figure(SignKind::PaceAllowed, pace),
        Sign::at_least(SignKind::RateOverPace, kept, PACE_KEPT),
    ];
    let remedy = vec![RemedyLine::advice(At::Sender, HostAdvice::AllowPace)];
    let candidate = Candidate::new(Cause::SendingApplication, Confidence::High, signs);
    Some(candidate.allowing(pace).mended_by(remedy))
}

/// The send queue holds nothing that is not on its way, and the windows have room.
fn nothing_to_send(evidence: &Evidence, moment: &SocketMoment) -> Option<Candidate> {
    if evidence.window.unsent_bytes.is_some_and(|bytes| bytes > 0.0) {
        return None;
    }
    let by_cwnd = share_of(evidence.window.flight_bytes, evidence.window.cwnd_bytes)?;
    let few = demand(moment).is_some_and(|share| share < DEMAND);
    let empty = moment.send_queue_bytes == Some(0.0) && evidence.window.flight_bytes == Some(0.0);
    // A program that was held by its buffer had more to send.
    let held = evidence.window.buffer_limited.is_some_and(|share| share >= HELD)
        || memory_full(evidence).is_some();
    if by_cwnd >= CWND_FULL || held || !(empty || few) {
        return None;
    }
    let mut signs = Vec::new();
    if let Some(share) = demand(moment) {
        let name = SignKind::TimeWithData;
        signs.push(match share < DEMAND {
            true => Sign::at_most(name, share, DEMAND),
            false => Sign::figure(name, share),
        });
    }
    signs.extend(moment.send_queue_bytes.map(|bytes| Sign::figure(SignKind::SendQueue, bytes)));
    signs.push(Sign::at_most(SignKind::FlightOverCwnd, by_cwnd, CWND_FULL));
    Some(no_more(signs, Confidence::Medium))
}

/// Most of its life the program had nothing to send, whatever it is doing now.
fn asks_for_little(_: &Evidence, moment: &SocketMoment) -> Option<Candidate> {
    let share = demand(moment).filter(|share| *share < DEMAND)?;
    let name = SignKind::TimeWithData;
    let signs = vec![Sign::at_most(name, share, DEMAND)];
    Some(no_more(signs, Confidence::Medium))
}

fn no_more(signs: Vec<Sign>, confidence: Confidence) -> Candidate {
    let mut candidate = Candidate::new(Cause::SendingApplication, confidence, signs);
    candidate.notes.push(Note::Socket(SocketNote::NothingToSend));
    candidate
}

/// Memory of the send buffer over what it may take up, where that is full (`ss -m`).
fn memory_full(evidence: &Evidence) -> Option<f64> {
    let memory = share_of(evidence.window.send_memory_bytes, evidence.window.send_buffer_bytes);
    memory.filter(|memory| *memory >= BUFFER_FULL)
}

/// The send buffer has no room, or had none for most of the busy time, all of it is in flight, and
/// neither window is full.
fn full_buffer(evidence: &Evidence, _: &SocketMoment) -> Option<Candidate> {
    let flight = evidence.window.flight_bytes;
    let by_window = share_of(flight, evidence.offered_bytes()).unwrap_or(0.0);
    let by_cwnd = share_of(flight, evidence.window.cwnd_bytes).unwrap_or(0.0);
    let waits = evidence.window.unsent_bytes.is_some_and(|bytes| bytes > 0.0);
    if by_window >= WINDOW_FULL || by_cwnd >= CWND_FULL || waits {
        return None;
    }
    let mut signs = Vec::new();
    if let Some(memory) = memory_full(evidence) {
        let name = SignKind::SendMemoryUsed;
        signs.push(Sign::at_least(name, memory, BUFFER_FULL));
    }
    let limited = evidence.window.buffer_limited.unwrap_or(0.0);
    if limited >= MOSTLY {
        let name = SignKind::BusyForBuffer;
        signs.push(Sign::at_least(name, limited, MOSTLY));
    }
    if signs.is_empty() {
        return None;
    }
    signs.push(Sign::at_most(SignKind::FlightOverCwnd, by_cwnd, CWND_FULL));
    let candidate = Candidate::new(Cause::SendBuffer, Confidence::Medium, signs);
    Some(candidate.mended_by(remedy::send_buffer(evidence)))
}

/// More than one cause agrees with the moment: its signs, the causes, and what decides.
pub(super) fn undecided_causes(
    evidence: &Evidence,
    moment: &SocketMoment,
) -> (Vec<Sign>, Vec<Cause>, DecidingTest) {
    if receives(moment) {
        let queue = moment.receive_queue_bytes.unwrap_or(0.0);
        let signs = vec![Sign::figure(SignKind::Unread, queue)];
        return (signs, Vec::new(), DecidingTest::SsAtSender);
    }
    let window = &evidence.window;
    let waits = window.unsent_bytes.is_some_and(|bytes| bytes > 0.0);
    let by_cwnd = share_of(window.flight_bytes, window.cwnd_bytes).unwrap_or(0.0);
    let name = SignKind::FlightOverCwnd;
    if !waits && by_cwnd < CWND_FULL {
        let mut signs = vec![Sign::at_most(name, by_cwnd, CWND_FULL)];
        let limited = window.buffer_limited.unwrap_or(0.0);
        let waited = SignKind::BusyForBuffer;
        signs.push(Sign::figure(waited, limited));
        let between = vec![Cause::SendBuffer, Cause::SendingApplication];
        return (signs, between, DecidingTest::SsWithMemory);
    }
    let mut signs = Vec::new();
    let mut between = Vec::new();
    if by_cwnd >= CWND_FULL {
        signs.push(Sign::at_least(name, by_cwnd, CWND_FULL));
    }
    let times = evidence.inflation();
    let stands = times.is_some_and(|times| times > NO_QUEUE);
    let rtt = || SignKind::InflationOverLeast;
    signs.extend(times.map(|times| match stands {
        true => Sign::at_least(rtt(), times, NO_QUEUE),
        false => Sign::at_most(rtt(), times, NO_QUEUE),
    }));
    // BBR paces by the rate that its own model found of the path, and lets no queue stand.
    let paced = evidence.loss.response == Some(Response::Bbr) && waits && by_cwnd < CWND_FULL;
    if stands || paced {
        between.extend([Cause::Link, Cause::Shaper, Cause::OtherTraffic]);
    }
    if let Some(ratio) = evidence.loss.ratio.filter(|ratio| *ratio >= LOSSY) {
        signs.push(Sign::at_least(SignKind::SegmentsAgain, ratio, LOSSY));
        if !stands {
            between.extend([Cause::RandomLoss, Cause::Policer, Cause::SmallBuffer]);
        }
    }
    if between.is_empty() && window.left_slow_start == Some(false) && by_cwnd >= CWND_FULL {
        between.push(Cause::StartUp);
    }
    let test = match between.is_empty() {
        true => DecidingTest::SsAtBothEnds,
        false => DecidingTest::ProbeTrains,
    };
    (signs, between, test)
}
