//! The model of a path held against what was measured on it, and asked what a change would give.
//!
//! A model that does not reach the measured rate says nothing of any other: it is wrong somewhere.
//! Left out: causes that the model does not have (processors' own limits, outages, order of paths).

use std::time::Duration;

use super::{RUN, SEEDS, fit_path, format_rate, goodput_bps_of};
use crate::explain::evidence::Evidence;
use crate::explain::mechanism::mechanism;
use crate::explain::of_record::{directions, with_path};
use crate::path::Framing;
use crate::record::{
    Cause, ControlName, Direction, LimitVerdict, NextBound, NextLimit, OnModel, Outcome, PathPlan,
    Plan, Record, Remedy, RemedyCommand, RemedyOnModel, SimulatedTcp, SocketBuffer, TcpTest,
};
use crate::simulate::{Stack, TcpChoice, mtu_bytes};
use crate::theory::ladder::AGREES_WITHIN;

/// Packets of all runs together: a second on a slow processor.
const PACKETS_MAX: f64 = 2e6;
/// Runs with one seed: as measured, without the cause, two remedies; seldom a fifth.
const RUNS: f64 = 4.0;
/// A window that never binds.
const NO_WINDOW: u64 = 1 << 30;
/// A bound is what limits where the rate comes this close to it.
const AT_BOUND: f64 = 0.88;

/// The plan of the path that a survey probed, the client's packets forward; `None` without trains
/// or a round trip.
pub fn path_of(record: &Record) -> Option<PathPlan> {
    let up = mechanism(&record.trains, Direction::Up);
    let down = mechanism(&record.trains, Direction::Down);
    let rtts = record.parts.iter().flat_map(directions).filter_map(|evidence| evidence.rtt.base_s);
    let rtt = Duration::try_from_secs_f64(rtts.reduce(f64::min)?).ok()?;
    match (up, down) {
        (Some(up), down) => Some(fit_path(&up, down.as_ref(), rtt)),
        (None, Some(down)) => {
            let plan = fit_path(&down, None, rtt);
            Some(PathPlan { forward: None, backward: plan.forward, ..plan })
        }
        (None, None) => None,
    }
}

/// Adds to verdicts of a record what TCP reaches on the model of its path: without the cause, and
/// with the remedies that the model can take.
pub fn try_changes(record: &Record, verdicts: &mut [LimitVerdict]) {
    for verdict in verdicts {
        let known = measured(record, verdict).and_then(|(evidence, part)| {
            Model::from_record(record, verdict, &evidence, test_of(part)?)?
                .ask_model(verdict, &evidence)
        });
        if let Some((model, next)) = known {
            if let Some((bound, bps)) = next.zip(model.without_cause_bps) {
                verdict.next = Some(NextLimit { bound, bps });
            }
            verdict.model = Some(model);
        }
    }
}

/// Evidence that the verdict was made from, and the part of the record that it is about.
pub(in crate::explain) fn measured<'a>(
    record: &'a Record,
    verdict: &LimitVerdict,
) -> Option<(Evidence, &'a Record)> {
    let parts = std::iter::once(record).chain(&record.parts);
    parts.into_iter().find_map(|part| {
        let of_way = |evidence: &Evidence| {
            evidence.direction == verdict.direction
                && evidence.rate.mean_bps == verdict.measured_bps
        };
        let evidence = directions(part).into_iter().find(of_way)?;
        Some((with_path(evidence, record), part))
    })
}

const fn test_of(part: &Record) -> Option<&TcpTest> {
    match &part.plan {
        Plan::Tcp(plan) => Some(&plan.test),
        _ => None,
    }
}

/// A path and a TCP on it, as in one measurement.
#[derive(Clone, Debug)]
struct Model {
    path: PathPlan,
    tcp: SimulatedTcp,
    streams: u32,
    /// Left out at the start, then measured.
    spans: [Duration; 2],
}

impl Model {
    fn from_record(
        record: &Record,
        verdict: &LimitVerdict,
        evidence: &Evidence,
        test: &TcpTest,
    ) -> Option<Self> {
        let cause = verdict.cause.filter(|_| verdict.outcome == Outcome::Limited)?;
        if evidence.loopback || evidence.spoilt.is_some() {
            return None;
        }
        let rtt =
            Duration::try_from_secs_f64(evidence.rtt.base_s.filter(|base| *base > 0.0)?).ok()?;
        let path = match &evidence.trains {
            Some(found) => {
                let other = match evidence.direction? {
                    Direction::Up => Direction::Down,
                    Direction::Down => Direction::Up,
                };
                fit_path(found, mechanism(&record.trains, other).as_ref(), rtt)
            }
            None => of_link(evidence, rtt)?,
        };
        let held = held_bps(verdict, cause).map(|bps| bps / f64::from(evidence.flows.max(1)));
        let window = match cause {
            Cause::ReceiveWindow | Cause::Middlebox => evidence.offered_bytes(),
            _ => held
                .and_then(|bps| evidence.bdp_bytes(bps))
                .or_else(|| tuned_window_bytes(evidence)),
        };
        let tcp = simulated_tcp(evidence, &path, window.map_or(NO_WINDOW, whole_bytes))?;
        let span = Duration::try_from_secs_f64(evidence.rate.span_s?).ok()?.min(RUN);
        let omit = Duration::from_nanos(test.omit_ns).min(RUN);
        Some(Self { path, tcp, streams: evidence.flows.max(1), spans: [omit, span] })
    }

    /// Question for the model and its answer: the rate without the cause, and the limit that is met
    /// then.
    fn ask_model(
        &self,
        verdict: &LimitVerdict,
        evidence: &Evidence,
    ) -> Option<(OnModel, Option<NextBound>)> {
        let measured = verdict.measured_bps?;
        let reached_bps = self.goodput_bps()?;
        let agrees = (reached_bps / measured - 1.0).abs() <= AGREES_WITHIN;
        let mut found =
            OnModel { reached_bps, agrees, without_cause_bps: None, remedies: Vec::new() };
        if !agrees {
            return Some((found, None));
        }
        let without = verdict.cause.and_then(|cause| self.without(cause, evidence));
        let bps = without.as_ref().and_then(Self::goodput_bps).filter(|bps| *bps >= measured);
        found.without_cause_bps = bps;
        let next = without.zip(bps).map(|(model, bps)| model.bound_at(bps));
        let remedies = verdict.remedy.iter().filter_map(|line| {
            let bps = self.with_setting(&line.remedy)?.goodput_bps()?;
            Some(RemedyOnModel { remedy: line.remedy.clone(), bps })
        });
        found.remedies = remedies.take(2).collect();
        Some((found, next))
    }

    /// The mean of several seeds; `None` where it takes too long or nothing bounds it.
    fn goodput_bps(&self) -> Option<f64> {
        let bounds = [self.link_payload_bps(), self.device_bps(), Some(self.window_bps())];
        let most = bounds.into_iter().flatten().reduce(f64::min)?;
        let seconds = self.spans.iter().sum::<Duration>().as_secs_f64();
        let packets = most * seconds / 8.0 / f64::from(self.tcp.mss_bytes);
        let seeds = PACKETS_MAX / RUNS / packets.max(1.0);
        if seeds < 1.0 {
            return None;
        }
        let seeds = whole_bytes(seeds).min(SEEDS);
        goodput_bps_of(&self.path, &self.tcp, self.streams, self.spans, seeds).ok()
    }

    /// Payload that the narrowest bound of the path lets through.
    fn link_payload_bps(&self) -> Option<f64> {
        let [forward, _] = self.path.direction_facts().ok()?;
        let packet = self.tcp.mss_bytes + self.tcp.header_bytes;
        let line = f64::from(Framing::ETHERNET.line_bytes(packet));
        let payload = f64::from(self.tcp.mss_bytes);
        Some(forward.rate?.bits_per_sec() as f64 * payload / line)
    }

    /// Payload that a device with a rate of packets forwards.
    fn device_bps(&self) -> Option<f64> {
        let packets_per_s = self.path.direction(false).packets_per_sec?;
        Some(packets_per_s as f64 * 8.0 * f64::from(self.tcp.mss_bytes))
    }

    fn window_bps(&self) -> f64 {
        self.rate_of_bytes(self.tcp.window_bytes as f64)
    }

    /// Bit/s of so many bytes of each stream a round trip.
    fn rate_of_bytes(&self, bytes: f64) -> f64 {
        let rtt = self
            .path
            .direction_facts()
            .map_or(0.0, |[there, back]| (there.delay + back.delay).as_secs_f64());
        bytes * 8.0 * f64::from(self.streams) / rtt.max(1e-6)
    }

    /// True when the send buffer limits a rate: without it the same transfer is faster.
    fn is_held_by_send_buffer(&self, bps: f64) -> bool {
        let Some(bytes) = self.tcp.send_buffer_bytes else { return false };
        // What is in use after a stroke, each round trip, is the most.
        let stroke = self.rate_of_bytes(bytes as f64 + f64::from(u16::MAX));
        if self.link_payload_bps().is_none_or(|link| stroke >= link) {
            return false;
        }
        let tcp = SimulatedTcp { send_buffer_bytes: None, ..self.tcp.clone() };
        let free = Self { tcp, ..self.clone() };
        free.goodput_bps().is_some_and(|free| free > bps * (1.0 + AGREES_WITHIN))
    }

    /// The same without a cause; `None` where the model does not have it.
    fn without(&self, cause: Cause, evidence: &Evidence) -> Option<Self> {
        let mut model = self.clone();
        let link = model.link_payload_bps();
        let forward = model.path.forward.as_deref_mut()?;
        match cause {
            Cause::ReceiveWindow => model.tcp.window_bytes = NO_WINDOW,
            Cause::SendBuffer => model.tcp.send_buffer_bytes = None,
            Cause::Middlebox
            | Cause::SendingApplication
            | Cause::SendingHost
            | Cause::ReceivingApplication
            | Cause::ReceivingHost => {
                model.tcp.window_bytes =
                    tuned_window_bytes(evidence).map_or(NO_WINDOW, whole_bytes);
            }
            Cause::RandomLoss => (forward.loss, forward.burst_loss) = (None, None),
            Cause::Policer => forward.policer = None,
            Cause::Shaper => forward.shaper = None,
            Cause::SmallBuffer => forward.buffer = None,
            Cause::Reordering => forward.reorder = None,
            Cause::OtherTraffic => forward.cross.clear(),
            Cause::AckPath => model.path.backward = None,
            Cause::StartUp => model.spans = [RUN, RUN / 2],
            _ => return None,
        }
        // Without a rate of the path there is nothing to promise.
        link.map(|_| model)
    }

    /// The same with what a line to type sets, of the settings that the model has.
    fn with_setting(&self, remedy: &Remedy) -> Option<Self> {
        let mut model = self.clone();
        match remedy {
            Remedy::Line(RemedyCommand::UseCongestionControl { name }) if name == "bbr" => {
                (model.tcp.congestion_control, model.tcp.hystart) = (ControlName::Bbr, false);
                (self.tcp.congestion_control != ControlName::Bbr).then_some(model)
            }
            Remedy::Line(RemedyCommand::RaiseBuffer {
                buffer: SocketBuffer::Receive,
                bytes,
                ..
            }) => {
                // Linux offers about half of its receive buffer as a window (tcp_adv_win_scale,
                // tcp(7)).
                model.tcp.window_bytes = bytes / 2;
                self.link_payload_bps().map(|_| model)
            }
            _ => None,
        }
    }

    /// Bound of a rate that was reached.
    fn bound_at(&self, bps: f64) -> NextBound {
        let has = |key: fn(&PathPlan) -> bool| self.path.forward.as_deref().is_some_and(key);
        if self.is_held_by_send_buffer(bps) {
            NextBound::SendBuffer
        } else if bps >= AT_BOUND * self.window_bps() {
            NextBound::ModelWindow
        } else if has(|hop| hop.policer.is_some() || hop.shaper.is_some()) {
            NextBound::RegulatedRate
        } else if has(|hop| hop.packets_per_sec.is_some()) {
            NextBound::PacketRate
        } else if self.link_payload_bps().is_some_and(|link| bps >= AT_BOUND * link) {
            NextBound::PathLink
        } else if has(|hop| hop.loss.is_some() || hop.burst_loss.is_some()) {
            NextBound::Loss
        } else if has(|hop| !hop.cross.is_empty()) {
            NextBound::ModelTraffic
        } else {
            NextBound::ModelBuffer
        }
    }
}

/// The rate at which an end holds a transfer.
fn held_bps(verdict: &LimitVerdict, cause: Cause) -> Option<f64> {
    let ends = matches!(
        cause,
        Cause::SendingApplication
            | Cause::SendingHost
            | Cause::ReceivingApplication
            | Cause::ReceivingHost
    );
    verdict.expected_bps.or(verdict.measured_bps).filter(|_| ends)
}

/// The window up to which the receiver tunes its own: half of tcp_rmem.
fn tuned_window_bytes(evidence: &Evidence) -> Option<f64> {
    if evidence.scale_agreed() == Some(false) || evidence.asked.window_bytes.is_some() {
        return evidence.offered_bytes();
    }
    evidence
        .receiver
        .tcp_mem_bytes
        .map(|memory| memory[2] as f64 / 2.0)
        .filter(|bytes| *bytes > 0.0)
}

/// The path of a transfer without probes: its slowest known link, where nothing was lost on it.
fn of_link(evidence: &Evidence, rtt: Duration) -> Option<PathPlan> {
    let lossy = evidence.loss.ratio.is_none_or(|ratio| ratio > 1e-4);
    let speeds = [evidence.sender.speed_bps, evidence.receiver.speed_bps];
    let link = speeds.into_iter().flatten().reduce(f64::min).filter(|_| !lossy)?;
    let forward = PathPlan { rate: Some(format_rate(link)), ..PathPlan::default() };
    Some(PathPlan {
        delay: Some(format!("{:.3} ms", rtt.as_secs_f64() * 500.0)),
        forward: Some(Box::new(forward)),
        ..PathPlan::default()
    })
}

/// The TCP of the transfer; `None` for a congestion control that the model does not have.
pub(super) fn simulated_tcp(
    evidence: &Evidence,
    path: &PathPlan,
    window_bytes: u64,
) -> Option<SimulatedTcp> {
    let control = match evidence.loss.control.as_deref()? {
        "cubic" => ControlName::Cubic,
        "reno" => ControlName::Reno,
        name if name.starts_with("bbr") => ControlName::Bbr,
        _ => return None,
    };
    let sack = evidence.syn.sender_agreed.is_none_or(|agreed| agreed.sack);
    let choice = TcpChoice {
        congestion_control: Some(control),
        recovery: Some(Stack::Today.recovery(sack)),
        window_bytes: Some(window_bytes),
        initial_window: evidence.window.initial_segments,
        mss_bytes: evidence.mss_bytes,
        ..TcpChoice::default()
    };
    let tcp = SimulatedTcp::from(&choice.model_for_mtu(mtu_bytes(path)).ok()?);
    Some(SimulatedTcp { send_buffer_bytes: send_buffer(evidence).map(whole_bytes), ..tcp })
}

/// Size that the sender's buffer may grow to: the one that was asked for, or the maximum of
/// tcp_wmem.
fn send_buffer(evidence: &Evidence) -> Option<f64> {
    match evidence.sender.buffer_asked_bytes {
        Some(_) => evidence.window.send_buffer_bytes,
        None => evidence.sender.tcp_mem_bytes.map(|memory| memory[2] as f64),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
const fn whole_bytes(value: f64) -> u64 {
    value as u64
}
