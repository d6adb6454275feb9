//! Causes at the ends: windows, buffers, applications, processors, the start.
//!
//! The kernel's own counters of what it waited for (`tcpi_rwnd_limited`, `tcpi_sndbuf_limited`)
//! decide nothing here: for one and the same window of 39 kB they said 98 % under CUBIC and 43 %
//! under BBR, and 0 % and 37 % for one send buffer (Linux 6.18).

use super::candidate::{Candidate, share_of};
use super::evidence::{Evidence, HostEvidence, NO_QUEUE};
use super::remedy;
use crate::record::{
    At, Cause, Confidence, FlowSide, HostAdvice, Note, RemedyCommand, RemedyLine, ScaleLoss, Sign,
    SignKind, TcpOption,
};
use crate::theory::ladder::{AGREES_WITHIN, Response};

/// In flight over a window: full from here on (0.96 to 1.00 measured with CUBIC and BBR).
pub(super) const WINDOW_FULL: f64 = 0.85;
/// A pace counts as kept from this share of it on.
const PACE_KEPT: f64 = 0.95;
/// The most that a window varies while nobody tunes it.
const WINDOW_CONSTANT: f64 = 1.2;
/// A window that one end advertised and the other saw, apart by this factor: something changed it.
const REWRITTEN: f64 = 1.5;
/// Computing and waiting for a CPU, of the time: a host that can do no more.
pub(super) const BUSY: f64 = 0.9;
/// Time that a quota kept a thread from running, of the time.
const THROTTLED: f64 = 0.05;
/// Received and not read, over the receive buffer: the reader is late.
const QUEUE_UNREAD: f64 = 0.5;
/// In flight over the congestion window: something else holds the sender.
const NOT_BY_CWND: f64 = 0.85;
/// In flight over the send buffer, from where a buffer without room explains it: 0.6 and more were
/// seen in flight, and up to 1.8 with senders that add whole super-packets.
const BUFFER_FLIGHT: (f64, f64) = (0.35, 2.2);
/// Memory of the send buffer over what it may take up: it is full.
const BUFFER_FULL: f64 = 0.9;
/// Time blocked in write() of a sender that is not held by its application.
const WRITES_BLOCK: f64 = 0.5;
/// A congestion window that varies no more stands still; for so many round trips; and it is full.
const STILL: f64 = 1.02;
const STILL_ROUNDS: f64 = 20.0;
const CLAMP_FULL: f64 = 0.8;
/// Round trips within which a transfer is all start.
const START_ROUNDS: f64 = 12.0;

/// The receiver's window: full, while no queue stands on the path.
pub(super) fn receive_window(evidence: &Evidence) -> Option<Candidate> {
    let (window, flight) = (evidence.offered_bytes()?, evidence.flight_bytes()?);
    let full = share_of(Some(flight), Some(window)).filter(|full| *full >= WINDOW_FULL)?;
    let inflation = evidence.inflation().filter(|times| *times <= NO_QUEUE)?;
    let bps = 8.0 * window * f64::from(evidence.flows.max(1)) / evidence.rtt.base_s?;
    let mut signs = vec![
        Sign::figure(SignKind::WindowOffered, window),
        Sign::at_least(SignKind::FlightOverThatWindow, full, WINDOW_FULL),
        Sign::at_most(SignKind::Inflation, inflation, NO_QUEUE),
    ];
    let varies =
        evidence.window.offered_range.filter(|range| range.0 > 0.0).map(|range| range.1 / range.0);
    // The receiver's tuning grows with a transfer that has only begun.
    let rounds = share_of(evidence.rate.span_s, evidence.rtt.base_s);
    let begun = rounds.is_some_and(|rounds| rounds <= START_ROUNDS);
    if begun && varies.is_some_and(|varies| varies > WINDOW_CONSTANT) {
        return None;
    }
    if let Some(varies) = varies.filter(|varies| *varies <= WINDOW_CONSTANT) {
        signs.push(Sign::at_most(SignKind::WindowVaries, varies, WINDOW_CONSTANT));
    }
    let (cause, notes) = whose_window(evidence);
    let agrees = evidence.steady_bps().is_some_and(|rate| (rate / bps - 1.0).abs() < AGREES_WITHIN);
    let certain = agrees && !evidence.rtt.base_is_loaded;
    let confidence = if certain { Confidence::High } else { Confidence::Medium };
    let mut candidate = Candidate::new(cause, confidence, signs).allowing(bps);
    candidate.notes = notes;
    Some(candidate.mended_by(match cause {
        Cause::ReceivingApplication => remedy::reader(),
        Cause::ReceivingHost => remedy::for_host(At::Receiver),
        _ => remedy::receive_window(evidence),
    }))
}

/// A full window is the receiver's setting, or a device's on the way, or a late reader's.
fn whose_window(evidence: &Evidence) -> (Cause, Vec<Note>) {
    if let Some(why) = changed_window(evidence) {
        return (Cause::Middlebox, vec![why]);
    }
    let queue = share_of(evidence.window.receive_queue_bytes, evidence.window.receive_buffer_bytes);
    if queue.is_some_and(|queue| queue >= QUEUE_UNREAD) {
        let cause = match cpu_signs(&evidence.receiver) {
            Some(_) => Cause::ReceivingHost,
            None => Cause::ReceivingApplication,
        };
        return (cause, vec![Note::UnreadAtReceiver]);
    }
    let mut notes = Vec::new();
    if evidence.scale_agreed() == Some(false) {
        let ends = [(FlowSide::Sender, &evidence.sender), (FlowSide::Receiver, &evidence.receiver)];
        let off = ends.into_iter().find(|(_, host)| host.window_scaling == Some(false));
        notes.extend(off.map(|(side, _)| Note::ScalingOff(side)));
    }
    (Cause::ReceiveWindow, notes)
}

/// Something between the ends changed the window: both hosts scale and the connection
/// does not, or the window that one end advertised is not the one that the other was offered.
pub(super) fn changed_window(evidence: &Evidence) -> Option<Note> {
    let scales = |host: &HostEvidence| host.window_scaling == Some(true);
    let both = scales(&evidence.sender) && scales(&evidence.receiver);
    if both && evidence.scale_agreed() == Some(false) {
        let place = match (evidence.removed(TcpOption::WindowScale), evidence.syn.arrived) {
            (Some(segment), _) => ScaleLoss::RemovedFrom(segment),
            (None, Some(syn)) if syn.window_scale.is_none() => ScaleLoss::BeforeSynArrived,
            (None, Some(_)) => ScaleLoss::AfterSynArrived,
            (None, None) => ScaleLoss::NotKnown,
        };
        return Some(Note::WindowScaleLost(place));
    }
    let (seen, told) = (evidence.window.offered_max_bytes?, evidence.window.advertised_max_bytes?);
    let apart = evidence.scale_agreed() == Some(true) && told > REWRITTEN * seen;
    apart.then_some(Note::WindowRewritten { advertised_bytes: told, offered_bytes: seen })
}

/// A pace that was asked for and kept.
pub(super) fn own_pace(evidence: &Evidence) -> Option<Candidate> {
    let (pace, rate) = (evidence.asked.pace_bps?, evidence.steady_bps()?);
    let kept = share_of(Some(rate), Some(pace)).filter(|kept| *kept >= PACE_KEPT)?;
    let signs = vec![
        Sign::figure(SignKind::PaceAsked, pace),
        Sign::at_least(SignKind::RateOverPace, kept, PACE_KEPT),
    ];
    let candidate = Candidate::new(Cause::SendingApplication, Confidence::High, signs);
    let remedy = vec![RemedyLine::advice(At::Test, HostAdvice::LeaveOutPace)];
    Some(candidate.allowing(pace).mended_by(remedy))
}

/// A pace of reading that was asked for and kept.
pub(super) fn own_read_pace(evidence: &Evidence) -> Option<Candidate> {
    let (pace, rate) = (evidence.asked.read_pace_bps?, evidence.steady_bps()?);
    let kept = share_of(Some(rate), Some(pace)).filter(|kept| *kept >= PACE_KEPT)?;
    let signs = vec![
        Sign::figure(SignKind::ReadPaceAsked, pace),
        Sign::at_least(SignKind::RateOverPace, kept, PACE_KEPT),
    ];
    let candidate = Candidate::new(Cause::ReceivingApplication, Confidence::High, signs);
    let remedy = vec![RemedyLine::advice(At::Test, HostAdvice::LeaveOutReadPace)];
    Some(candidate.allowing(pace).mended_by(remedy))
}

/// A sender whose thread mostly sleeps, and neither computes nor waits for room.
pub(super) fn idle_sender(evidence: &Evidence) -> Option<Candidate> {
    let host = &evidence.sender;
    let blocked = host.blocked.filter(|blocked| *blocked < 0.2)?;
    let busy = host.cpu? + host.waited?;
    if busy >= BUSY || host.asleep.is_none_or(|asleep| asleep < WRITES_BLOCK) {
        return None;
    }
    let signs = vec![
        Sign::at_least(SignKind::SenderSlept, host.asleep?, WRITES_BLOCK),
        Sign::at_most(SignKind::SenderBlocked, blocked, 0.2),
    ];
    Some(Candidate::new(Cause::SendingApplication, Confidence::Medium, signs))
}

/// Signs that a host spends all the CPU time it has on the transfer.
fn cpu_signs(host: &HostEvidence) -> Option<Vec<Sign>> {
    let mut signs = Vec::new();
    let used = host.cpu? + host.waited.unwrap_or(0.0);
    if used >= BUSY {
        let name = SignKind::ComputedOrWaited;
        signs.push(Sign::at_least(name, used, BUSY));
    }
    if let Some(throttled) = host.throttled.filter(|share| *share >= THROTTLED) {
        signs.push(Sign::at_least(SignKind::Throttled, throttled, THROTTLED));
    }
    (!signs.is_empty()).then_some(signs)
}

/// A host that can do no more.
pub(super) fn busy_host(evidence: &Evidence) -> Option<Candidate> {
    let of = |host: &HostEvidence, cause, at| {
        let candidate = Candidate::new(cause, Confidence::Medium, cpu_signs(host)?);
        Some(candidate.mended_by(remedy::for_host(at)))
    };
    of(&evidence.receiver, Cause::ReceivingHost, At::Receiver)
        .or_else(|| of(&evidence.sender, Cause::SendingHost, At::Sender))
}

/// The sender's buffer: neither window is full, no queue stands, and the buffer has no room.
pub(super) fn send_buffer(evidence: &Evidence) -> Option<Candidate> {
    let (flight, buffer) = (evidence.flight_bytes()?, evidence.window.send_buffer_bytes?);
    let inflation = evidence.inflation().filter(|times| *times <= NO_QUEUE)?;
    let held = share_of(Some(flight), Some(buffer))?;
    if !(BUFFER_FLIGHT.0..=BUFFER_FLIGHT.1).contains(&held) {
        return None;
    }
    let by_window = share_of(Some(flight), evidence.offered_bytes()).unwrap_or(0.0);
    let by_cwnd = share_of(Some(flight), evidence.window.cwnd_bytes).unwrap_or(0.0);
    let lossless = evidence.loss.ratio.is_none_or(|ratio| ratio < 1e-4);
    if by_window >= WINDOW_FULL || (by_cwnd > NOT_BY_CWND && !lossless) {
        return None;
    }
    let memory = share_of(evidence.window.send_memory_bytes, Some(buffer));
    let most = evidence.sender.tcp_mem_bytes.map(|memory| memory[2] as f64);
    let at_most = most.is_some_and(|most| buffer >= 0.9 * most);
    let fixed = evidence.sender.buffer_asked_bytes.is_some();
    let full = memory.map_or(at_most || fixed, |memory| memory >= BUFFER_FULL);
    if !full || evidence.sender.blocked.is_some_and(|blocked| blocked < WRITES_BLOCK) {
        return None;
    }
    let mut signs = vec![
        Sign::figure(SignKind::SendBufferGranted, buffer),
        Sign::at_least(SignKind::FlightOverBuffer, held, BUFFER_FLIGHT.0),
        Sign::at_most(SignKind::FlightOverWindow, by_window, WINDOW_FULL),
        Sign::at_most(SignKind::Inflation, inflation, NO_QUEUE),
    ];
    if let Some(memory) = memory {
        signs.push(Sign::at_least(SignKind::BufferMemoryUsed, memory, BUFFER_FULL));
    }
    if let Some(blocked) = evidence.sender.blocked {
        signs.push(Sign::at_least(SignKind::BlockedInWrite, blocked, WRITES_BLOCK));
    }
    let confidence = if memory.is_some() { Confidence::High } else { Confidence::Medium };
    let candidate = Candidate::new(Cause::SendBuffer, confidence, signs);
    let candidate = candidate.mended_by(remedy::send_buffer(evidence));
    Some(match evidence.steady_bps() {
        Some(bps) => candidate.allowing(bps),
        None => candidate,
    })
}

/// A congestion window that is full and stands still, of a sender that nothing tells to hold it:
/// CUBIC and Reno add to it each round trip while no segment is lost.
pub(super) fn clamped_window(evidence: &Evidence) -> Option<Candidate> {
    if !matches!(evidence.loss.response, Some(Response::Cubic | Response::Reno)) {
        return None;
    }
    let (least, most) = evidence.window.cwnd_range.filter(|range| range.0 > 0.0)?;
    let rounds = share_of(evidence.rate.span_s, evidence.rtt.base_s)
        .filter(|rounds| *rounds >= STILL_ROUNDS)?;
    let inflation = evidence.inflation().filter(|times| *times <= NO_QUEUE)?;
    let full = share_of(evidence.flight_bytes(), Some(most)).filter(|full| *full >= CLAMP_FULL)?;
    let lossless = evidence.loss.retransmits == Some(0.0);
    let by_window = share_of(Some(most), evidence.offered_bytes()).unwrap_or(0.0);
    if !lossless || most > STILL * least || by_window >= WINDOW_FULL {
        return None;
    }
    let signs = vec![
        Sign::at_most(SignKind::CwndVaries, most / least, STILL),
        Sign::figure(SignKind::Cwnd, most),
        Sign::at_least(SignKind::FlightOverIt, full, CLAMP_FULL),
        Sign::at_least(SignKind::RoundsWithoutGrowth, rounds, STILL_ROUNDS),
        Sign::at_most(SignKind::Inflation, inflation, NO_QUEUE),
    ];
    let bps = 8.0 * most * f64::from(evidence.flows.max(1)) / evidence.rtt.base_s?;
    let candidate = Candidate::new(Cause::CongestionControl, Confidence::Medium, signs);
    let remedy = vec![
        RemedyLine::command(At::Sender, RemedyCommand::ShowFixedMetrics),
        RemedyLine::advice(At::Sender, HostAdvice::UnlockWindow),
    ];
    Some(candidate.allowing(bps).mended_by(remedy))
}

/// The start: the transfer was over before its window had grown.
pub(super) fn start_up(evidence: &Evidence) -> Option<Candidate> {
    let (span, base) = (evidence.rate.span_s?, evidence.rtt.base_s?);
    let rounds = span / base;
    let lossless = evidence.loss.ratio.is_none_or(|ratio| ratio < 1e-3);
    let short = rounds <= START_ROUNDS && lossless;
    let growing = evidence.window.left_slow_start == Some(false) && still_rises(evidence);
    if !(short || growing && lossless) {
        return None;
    }
    let mut signs = vec![Sign::figure(SignKind::RoundTripsTaken, rounds)];
    if short {
        signs[0] = Sign::at_most(SignKind::RoundTripsTaken, rounds, START_ROUNDS);
    }
    if let Some((first, last)) = evidence.window.cwnd_ends {
        signs.push(Sign::figure(SignKind::CwndAtFirst, first));
        signs.push(Sign::figure(SignKind::CwndAtLast, last));
    }
    let candidate = Candidate::new(Cause::StartUp, Confidence::Medium, signs);
    Some(candidate.mended_by(remedy::start_up()))
}

/// True when the rate of the last interval is far above the mean.
fn still_rises(evidence: &Evidence) -> bool {
    let rates = &evidence.rate.intervals_bps;
    let last = rates.last().zip(evidence.rate.mean_bps);
    rates.len() >= 3 && last.is_some_and(|(last, mean)| *last > 1.3 * mean)
}
