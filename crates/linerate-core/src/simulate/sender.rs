//! The sending end: window, losses, timer.

use std::time::Duration;

use super::Point;
use super::acked::Acked;
use super::congestion::Window;
use super::flow::{FlowPlan, FlowResult};
use super::points::Recorder;
use super::receiver::Ack;
use super::scoreboard::{Delivered, Scoreboard, THRESHOLD};
use crate::record::LossRecovery;
use crate::time::MonoTime;

/// Time-out before the first round trip is known (RFC 6298 §2.1).
const RTO_INITIAL: Duration = Duration::from_secs(1);
/// Longest time-out (RFC 6298 §2.5 allows a limit of at least 60 s).
const RTO_MAX: Duration = Duration::from_secs(60);

/// What the sender is doing about losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Fast recovery until this segment is acknowledged.
    Recovery {
        until: u64,
    },
    /// After a time-out, until this segment is acknowledged.
    Timeout {
        until: u64,
    },
}

/// One sender.
#[derive(Debug)]
pub(super) struct Sender {
    plan: FlowPlan,
    board: Scoreboard,
    window: Window,
    state: State,
    duplicates: u64,
    rtt: Option<RoundTrip>,
    /// Time-out before any backing off.
    rto: Duration,
    backoff: u32,
    /// When the timer runs out; absent while nothing is outstanding.
    pub(super) rto_due: Option<MonoTime>,
    segments: u64,
    window_segments: u64,
    cwnd_max: f64,
    recorder: Option<Recorder>,
    /// A segment that must go out whatever the window says.
    urgent: bool,
    result: FlowResult,
}

/// Smoothed round trip (RFC 6298 §2), in seconds.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    smoothed: f64,
    variation: f64,
}

impl Sender {
    pub(super) fn new(plan: FlowPlan) -> Self {
        let mss = u64::from(plan.tcp.mss_bytes.max(1));
        Self {
            board: Scoreboard::default(),
            window: Window::new(&plan.tcp),
            state: State::Open,
            duplicates: 0,
            rtt: None,
            rto: RTO_INITIAL,
            backoff: 0,
            rto_due: None,
            segments: plan.bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(mss)),
            window_segments: (plan.tcp.window_bytes / mss).max(1),
            cwnd_max: 0.0,
            recorder: plan.points.map(|points| Recorder::new(points, plan.start)),
            urgent: false,
            result: FlowResult::default(),
            plan,
        }
    }

    pub(super) const fn plan(&self) -> &FlowPlan {
        &self.plan
    }

    pub(super) const fn is_finished(&self) -> bool {
        self.result.finished_after.is_some()
    }

    /// Payload that was acknowledged; the last segment may be short.
    pub(super) fn acked_bytes(&self) -> u64 {
        let bytes = self.board.first() * u64::from(self.plan.tcp.mss_bytes);
        self.plan.bytes.map_or(bytes, |all| bytes.min(all))
    }

    /// What it did so far.
    pub(super) fn result(&self) -> FlowResult {
        let mss = u64::from(self.plan.tcp.mss_bytes);
        FlowResult {
            acked_bytes: self.acked_bytes(),
            cwnd_bytes_max: whole(self.cwnd_max * mss as f64),
            points: self.recorder.as_ref().map(Recorder::points).unwrap_or_default(),
            ..self.result.clone()
        }
    }

    /// The next segment that may leave at `now`.
    pub(super) fn send(&mut self, now: MonoTime) -> Option<u64> {
        let number = self.next_to_send(now)?;
        self.result.segments_sent += 1;
        if self.rto_due.is_none() {
            self.rto_due = Some(now + self.rto());
        }
        Some(number)
    }

    fn next_to_send(&mut self, now: MonoTime) -> Option<u64> {
        let urgent = std::mem::take(&mut self.urgent);
        if !urgent && self.board.in_flight() as f64 + 1.0 > self.window.cwnd {
            return None;
        }
        if let Some(number) = self.board.retransmit(now) {
            self.result.retransmitted += 1;
            return Some(number);
        }
        let next = self.board.next();
        let room = next < self.board.first() + self.window_segments;
        (next < self.segments && room).then(|| self.board.send_new(now))
    }

    pub(super) fn acknowledge(&mut self, now: MonoTime, ack: &Ack) {
        let before = self.board.first();
        let delivered = self.board.acknowledge(ack.next);
        let acked = self.board.first() - before;
        if self.plan.tcp.recovery == LossRecovery::Sack {
            for &(from, to) in ack.blocks.iter().filter(|(from, to)| from < to) {
                self.board.sack(from, to);
            }
            self.board.judge();
        }
        if let Some(delivered) = delivered {
            self.on_progress(now, acked, delivered);
        } else if !self.board.is_empty() {
            self.duplicates += 1;
            self.on_duplicate(now);
        }
        self.keep_result(now);
    }

    fn on_progress(&mut self, now: MonoTime, acked: u64, delivered: Delivered) {
        let sample_ns = delivered.is_sample.then(|| now.nanos_since(delivered.sent));
        if let Some(sample_ns) = sample_ns {
            self.measure(sample_ns as f64 * 1e-9);
        }
        self.duplicates = 0;
        self.backoff = 0;
        let first = self.board.first();
        match self.state {
            State::Recovery { until } if first < until => self.on_partial(acked),
            State::Recovery { .. } => {
                self.state = State::Open;
                self.window.cwnd = self.window.ssthresh;
            }
            State::Timeout { until } => {
                if first >= until {
                    self.state = State::Open;
                }
                self.grow(now, acked, sample_ns);
            }
            State::Open => {
                self.grow(now, acked, sample_ns);
                self.begin_recovery_if_lost(now);
            }
        }
        self.rto_due = (!self.board.is_empty()).then(|| now + self.rto());
    }

    /// A new acknowledgement within fast recovery that does not cover all of it.
    fn on_partial(&mut self, acked: u64) {
        match self.plan.tcp.recovery {
            LossRecovery::Sack => {}
            LossRecovery::NewReno => {
                self.window.cwnd = (self.window.cwnd - acked as f64 + 1.0).max(1.0);
                self.board.lose(self.board.first());
                self.urgent = true;
            }
            LossRecovery::Reno => {
                self.state = State::Open;
                self.window.cwnd = self.window.ssthresh;
            }
        }
    }

    fn on_duplicate(&mut self, now: MonoTime) {
        match (self.state, self.plan.tcp.recovery) {
            (State::Open, LossRecovery::Sack) => self.begin_recovery_if_lost(now),
            (State::Open, _) if self.duplicates == THRESHOLD => self.begin_recovery(now),
            // Each duplicate says that a segment has left the network (RFC 5681 §3.2).
            (State::Recovery { .. }, LossRecovery::Reno | LossRecovery::NewReno) => {
                self.window.cwnd += 1.0;
            }
            _ => {}
        }
    }

    /// With selective acknowledgements: enters recovery as soon as a segment is lost.
    fn begin_recovery_if_lost(&mut self, now: MonoTime) {
        let sack = self.plan.tcp.recovery == LossRecovery::Sack;
        if sack && self.board.has_lost() {
            self.begin_recovery(now);
        }
    }

    fn begin_recovery(&mut self, now: MonoTime) {
        self.note_loss_event(now);
        self.result.recoveries += 1;
        let outstanding = self.board.next() - self.board.first();
        self.window.reduce(outstanding as f64);
        self.state = State::Recovery { until: self.board.next() };
        self.board.lose(self.board.first());
        self.urgent = true;
        self.window.cwnd = match self.plan.tcp.recovery {
            LossRecovery::Sack => self.window.ssthresh,
            // Window inflation: the three duplicates have left the network.
            LossRecovery::Reno | LossRecovery::NewReno => self.window.ssthresh + THRESHOLD as f64,
        };
    }

    pub(super) fn on_timeout(&mut self, now: MonoTime) {
        self.note_loss_event(now);
        self.result.timeouts += 1;
        // RFC 5681 §3.1: once for one loss, however often the timer runs out.
        if self.backoff == 0 {
            self.window.reduce(self.board.in_flight() as f64);
        }
        self.window.restart();
        self.state = State::Timeout { until: self.board.next() };
        self.board.lose_all();
        self.duplicates = 0;
        self.backoff += 1;
        self.rto_due = Some(now + self.rto());
    }

    fn note_loss_event(&mut self, now: MonoTime) {
        if let Some(recorder) = &mut self.recorder {
            recorder.loss_event(now);
        }
    }

    fn grow(&mut self, now: MonoTime, acked: u64, sample_ns: Option<u64>) {
        // Only a window that is used may grow (RFC 7661 §4.3, RFC 2861).
        let used = self.board.in_flight() + acked;
        if (used as f64) < self.window.cwnd.floor() && self.window.cwnd >= self.window.ssthresh {
            return;
        }
        if used as f64 * 2.0 < self.window.cwnd {
            return;
        }
        self.window.grow(&Acked {
            now,
            segments: acked,
            first: self.board.first(),
            next: self.board.next(),
            sample_ns,
            rtt_s: self.rtt.map_or(0.0, |rtt| rtt.smoothed),
        });
    }

    fn measure(&mut self, rtt_s: f64) {
        let rtt = match self.rtt {
            None => RoundTrip { smoothed: rtt_s, variation: rtt_s / 2.0 },
            Some(RoundTrip { smoothed, variation }) => RoundTrip {
                variation: 0.75 * variation + 0.25 * (smoothed - rtt_s).abs(),
                smoothed: 0.875 * smoothed + 0.125 * rtt_s,
            },
        };
        // Linux bounds the variation's part from below, so the time-out lies at least rto_min
        // above the round trip (tcp_set_rto); RFC 6298 bounds the sum.
        let margin_s = (4.0 * rtt.variation).max(self.plan.tcp.rto_min.as_secs_f64());
        self.rto = Duration::from_nanos(whole((rtt.smoothed + margin_s) * 1e9));
        self.rtt = Some(rtt);
    }

    fn rto(&self) -> Duration {
        if self.backoff == 0 {
            return self.rto;
        }
        self.rto.saturating_mul(1 << self.backoff.min(10)).min(RTO_MAX)
    }

    fn keep_result(&mut self, now: MonoTime) {
        self.cwnd_max = self.cwnd_max.max(self.window.cwnd);
        let finished = self.board.first() >= self.segments && self.result.finished_after.is_none();
        if finished {
            self.result.finished_after = Some(now.since(self.plan.start));
        }
        if self.recorder.as_ref().is_some_and(|recorder| finished || recorder.is_due(now)) {
            self.keep_point(now);
        }
    }

    fn keep_point(&mut self, now: MonoTime) {
        let mss = u64::from(self.plan.tcp.mss_bytes);
        let ssthresh = self.window.ssthresh;
        let point = Point {
            at: now,
            acked_bytes: self.acked_bytes(),
            cwnd_bytes: whole(self.window.cwnd * mss as f64),
            ssthresh_bytes: ssthresh.is_finite().then(|| whole(ssthresh * mss as f64)),
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.keep(point);
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
const fn whole(value: f64) -> u64 {
    value as u64
}
