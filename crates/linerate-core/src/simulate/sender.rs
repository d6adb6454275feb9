//! The sending end: what leaves when, round trips, timers. What it does about losses is in
//! `repair`.

use std::time::Duration;

use super::acked::Acked;
use super::bbr::{AckReport, Bbr};
use super::burst::{Bursts, Room, piece_segments, truncated};
use super::congestion::CongestionWindow;
use super::delivery::{Deliveries, NewArrivals, Transmission};
use super::flow::{FlowPlan, FlowResult};
use super::loss_state::{State, TailProbe, Undo};
use super::points::Recorder;
use super::rack::{Rack, RackRoundTrips};
use super::receiver::Ack;
use super::scoreboard::{Delivered, Scoreboard};
use super::send_buffer::SendBuffer;
use super::{CongestionControl, SequencePoint};
use crate::record::LossRecovery;
use crate::time::MonoTime;

/// Time-out before the first round trip is known (RFC 6298 §2.1).
const RTO_INITIAL: Duration = Duration::from_secs(1);
/// Longest time-out (RFC 6298 §2.5 allows a limit of at least 60 s).
const RTO_MAX: Duration = Duration::from_secs(60);

/// State of one sender.
#[derive(Debug)]
pub(super) struct TcpSender {
    pub(super) plan: FlowPlan,
    pub(super) board: Scoreboard,
    pub(super) window: CongestionWindow,
    pub(super) bbr: Option<Bbr>,
    pub(super) state: State,
    pub(super) duplicates: u64,
    rtt: Option<RoundTrip>,
    pub(super) rtt_min: Duration,
    /// Time-out before any backing off.
    rto: Duration,
    pub(super) backoff: u32,
    /// Time at which the retransmission timer runs out; absent while nothing is outstanding.
    pub(super) rto_due: Option<MonoTime>,
    pub(super) rack: Rack,
    /// Time at which RACK looks again at segments that are not late yet.
    pub(super) rack_due: Option<MonoTime>,
    pub(super) probe: TailProbe,
    pub(super) undo: Option<Undo>,
    pub(super) deliveries: Deliveries,
    /// Segments taken for lost.
    pub(super) lost: u64,
    bursts: Bursts,
    /// True while the sender waits for its pace.
    paced: bool,
    /// The window of congestion held the sender back when it last sent.
    limited: bool,
    segments: u64,
    buffer: Option<SendBuffer>,
    pub(super) window_segments: u64,
    cwnd_max: f64,
    recorder: Option<Recorder>,
    /// A segment that must be sent whatever the window.
    pub(super) urgent: bool,
    pub(super) result: FlowResult,
}

/// Smoothed round trip (RFC 6298 §2), in seconds.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    smoothed: f64,
    variation: f64,
}

impl TcpSender {
    pub(super) fn new(plan: FlowPlan) -> Self {
        let mss = u64::from(plan.tcp.mss_bytes.max(1));
        let window = CongestionWindow::new(&plan.tcp);
        let bbr = plan.tcp.congestion_control == CongestionControl::Bbr;
        Self {
            board: Scoreboard::default(),
            bbr: bbr.then(|| Bbr::new(window.cwnd, plan.start, plan.hash)),
            window,
            state: State::Open,
            duplicates: 0,
            rtt: None,
            rtt_min: Duration::MAX,
            rto: RTO_INITIAL,
            backoff: 0,
            rto_due: None,
            rack: Rack::new(),
            rack_due: None,
            probe: TailProbe::default(),
            undo: None,
            deliveries: Deliveries::default(),
            lost: 0,
            bursts: Bursts::default(),
            paced: false,
            limited: false,
            buffer: SendBuffer::from_tcp(&plan.tcp),
            segments: plan.bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(mss)),
            window_segments: (plan.tcp.window_bytes / mss).max(1),
            cwnd_max: 0.0,
            recorder: plan.points.map(|points| Recorder::new(points, plan.start)),
            urgent: false,
            result: FlowResult::default(),
            plan,
        }
    }

    pub(super) const fn flow_plan(&self) -> &FlowPlan {
        &self.plan
    }

    pub(super) const fn is_finished(&self) -> bool {
        self.result.finished_after.is_some()
    }

    /// Payload that was acknowledged; the last segment may be short.
    pub(super) fn acked_bytes(&self) -> u64 {
        let bytes = self.board.first_unacked() * u64::from(self.plan.tcp.mss_bytes);
        self.plan.bytes.map_or(bytes, |all| bytes.min(all))
    }

    /// Counters of the connection up to now.
    pub(super) fn result(&self) -> FlowResult {
        let mss = u64::from(self.plan.tcp.mss_bytes);
        FlowResult {
            acked_bytes: self.acked_bytes(),
            cwnd_bytes_max: truncated(self.cwnd_max * mss as f64),
            points: self.recorder.as_ref().map(Recorder::points).unwrap_or_default(),
            ..self.result.clone()
        }
    }

    /// Losses are found by time, as in Linux of today.
    pub(super) fn is_rack(&self) -> bool {
        self.plan.tcp.recovery == LossRecovery::Rack
    }

    /// The next segment that may leave at `now`.
    pub(super) fn send_segment(&mut self, now: MonoTime) -> Option<Transmission> {
        let sent = self.next_to_send(now)?;
        self.result.segments_sent += 1;
        if self.is_rack() {
            self.rack.note_sent(now, sent.number);
        }
        if self.rto_due.is_none() {
            self.rto_due = Some(now + self.backed_off_rto());
        }
        self.set_probe(now);
        Some(sent)
    }

    fn next_to_send(&mut self, now: MonoTime) -> Option<Transmission> {
        let urgent = std::mem::take(&mut self.urgent);
        self.limited = self.board.in_flight() as f64 + 1.0 > self.window.cwnd;
        self.paced = !self.limited && !urgent && self.is_paced(now);
        if !urgent && (self.limited || self.paced) {
            return None;
        }
        let mark = self.deliveries.send_mark(now, self.board.is_empty());
        if let Some(number) = self.board.retransmit(now, mark) {
            self.result.retransmitted += 1;
            self.note_retransmission();
            self.bursts.end_piece();
            self.pace_segments(now, 1);
            return Some(Transmission { number, again: true });
        }
        let next = self.board.next();
        let end =
            self.board.first_unacked().saturating_add(self.window_segments).min(self.written());
        if next >= end || !self.admits(now, end - next, urgent) {
            return None;
        }
        Some(Transmission { number: self.board.send_new(now, mark), again: false })
    }

    /// Segments that there are to send, sent ones included.
    pub(super) fn written(&self) -> u64 {
        self.buffer.map_or(self.segments, |buffer| buffer.written().min(self.segments))
    }

    /// Takes a new segment into a piece; false when it has to wait.
    fn admits(&mut self, now: MonoTime, window_room: u64, urgent: bool) -> bool {
        if !self.plan.tcp.offload || urgent {
            self.pace_segments(now, 1);
            return true;
        }
        let size = self.segments_per_piece();
        let free = truncated(self.window.cwnd).saturating_sub(self.board.in_flight());
        let room = Room {
            segments: free.min(window_room),
            window: self.window.cwnd.min(self.window_segments as f64),
            oldest: self.board.oldest(),
            rtt: self.smoothed(),
            // The receiver's window opens once more when its program has read.
            at_once: self.state != State::Open || window_room < free,
        };
        let begins = !self.bursts.is_within();
        let takes = self.bursts.admits(now, size, &room);
        if takes && begins {
            self.pace_segments(now, size.min(room.segments));
        }
        self.limited |= !takes;
        takes
    }

    /// Segments that leave in one piece at today's rate.
    pub(super) fn segments_per_piece(&self) -> u64 {
        let mss = f64::from(self.plan.tcp.mss_bytes);
        let rtt = self.rtt_min.min(Duration::from_secs(1));
        let rate = match (&self.bbr, self.rtt) {
            (Some(bbr), _) => bbr.pace * mss,
            (None, Some(rtt)) if rtt.smoothed > 0.0 => {
                // `tcp_update_pacing_rate`: twice the rate in slow start, a fifth more later.
                let (cwnd, starts) =
                    (self.window.cwnd, self.window.cwnd < self.window.ssthresh / 2.0);
                let gain = if starts { 2.0 } else { 1.2 };
                gain * cwnd.max(self.board.in_flight() as f64) * mss / rtt.smoothed
            }
            _ => f64::INFINITY,
        };
        piece_segments(rate, self.plan.tcp.mss_bytes, rtt)
    }

    fn is_paced(&self, now: MonoTime) -> bool {
        self.bbr.is_some() && !self.bursts.is_within() && now < self.bursts.paced_until()
    }

    fn pace_segments(&mut self, now: MonoTime, segments: u64) {
        if let Some(bbr) = self.bbr.as_ref().filter(|bbr| bbr.pace > 0.0) {
            self.bursts.pace_piece(now, Duration::from_secs_f64(segments as f64 / bbr.pace));
        }
    }

    /// Time of this sender's next event, whatever arrives.
    pub(super) fn next_event_time(&self) -> Option<MonoTime> {
        let pace = self.paced.then(|| self.bursts.paced_until());
        [self.rto_due, self.rack_due, self.probe.due, pace].into_iter().flatten().min()
    }

    /// Runs a timer that is due, and sends.
    pub(super) fn on_timer(&mut self, now: MonoTime) {
        let is_due = |due: Option<MonoTime>| due.is_some_and(|due| due <= now);
        if is_due(self.rack_due) {
            self.judge_by_time(now);
        }
        if is_due(self.probe.due) {
            self.send_probe(now);
        }
        if is_due(self.rto_due) {
            self.on_timeout(now);
        }
    }

    pub(super) fn acknowledge(&mut self, now: MonoTime, ack: &Ack) {
        let (before, highest) = (self.board.first_unacked(), self.board.highest());
        let in_flight_before = self.board.in_flight() as f64;
        let lost_before = self.lost;
        let mut heard = NewArrivals::default();
        let delivered = self.board.acknowledge(ack.next, &mut heard);
        let acked = self.board.first_unacked() - before;
        if let Some(buffer) = &mut self.buffer {
            buffer.acknowledged(self.board.first_unacked());
        }
        if matches!(self.plan.tcp.recovery, LossRecovery::Sack | LossRecovery::Rack) {
            for &(from, to) in ack.blocks.iter().filter(|(from, to)| from < to) {
                self.board.mark_sacked(from, to, &mut heard);
            }
        }
        let rtt = self.sample(now, delivered, &heard);
        let rate = self.deliveries.count_arrivals(now, &heard, self.rtt_min);
        if self.is_rack() {
            self.repair_by_time(now, ack, acked, &heard, highest, rtt);
        } else {
            self.repair(now, acked, delivered, rtt);
        }
        if self.bbr.is_some() {
            let (piece, lost) = (self.segments_per_piece() as f64, self.lost - lost_before);
            let delivered = heard.segments;
            let told =
                AckReport { rate, delivered, lost, rtt, in_flight_before, ..self.bbr_report(now) };
            if let Some(bbr) = &mut self.bbr {
                bbr.acknowledge(&told, &mut self.window.cwnd, piece);
            }
        }
        self.keep_result(now);
    }

    /// The round trip that an acknowledgement gives, if any.
    fn sample(
        &mut self,
        now: MonoTime,
        delivered: Option<Delivered>,
        heard: &NewArrivals,
    ) -> Option<Duration> {
        let acked =
            delivered.filter(|delivered| delivered.is_sample).map(|delivered| delivered.sent);
        let by_block = heard.newest.filter(|newest| self.is_rack() && !newest.again);
        let sacked = by_block.filter(|_| delivered.is_none()).map(|newest| newest.at);
        let sent = acked.or(sacked)?;
        let rtt = now.duration_since(sent);
        self.rtt_min = self.rtt_min.min(rtt);
        self.measure(rtt.as_secs_f64());
        Some(rtt)
    }

    /// State of the sender for BBR, without an arrival.
    pub(super) fn bbr_report(&self, now: MonoTime) -> AckReport {
        AckReport {
            now,
            rate: None,
            delivered: 0,
            lost: 0,
            delivered_all: self.deliveries.total,
            lost_all: self.lost,
            rtt: None,
            in_flight_before: 0.0,
            in_flight: self.board.in_flight() as f64,
            repairing: self.state != State::Open,
        }
    }

    pub(super) fn note_loss_event(&mut self, now: MonoTime) {
        if let Some(recorder) = &mut self.recorder {
            recorder.loss_event(now);
        }
    }

    pub(super) fn grow_window(&mut self, now: MonoTime, acked: u64, rtt: Option<Duration>) {
        if self.bbr.is_some() || !self.window_is_used(acked) {
            return;
        }
        self.window.grow_on_ack(&Acked {
            now,
            segments: acked,
            first: self.board.first_unacked(),
            next: self.board.next(),
            sample_ns: rtt.map(|rtt| u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX)),
            rtt_s: self.rtt.map_or(0.0, |rtt| rtt.smoothed),
        });
    }

    /// Only a window that is used may grow (RFC 7661 §4.3, RFC 2861).
    fn window_is_used(&self, acked: u64) -> bool {
        let used = (self.board.in_flight() + acked) as f64;
        let starts = self.window.cwnd < self.window.ssthresh;
        if self.plan.tcp.offload {
            return self.limited || (starts && used * 2.0 > self.window.cwnd);
        }
        used * 2.0 >= self.window.cwnd && (starts || used >= self.window.cwnd.floor())
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
        self.rto = Duration::from_nanos(truncated((rtt.smoothed + margin_s) * 1e9));
        self.rtt = Some(rtt);
    }

    /// The smoothed round trip; 0 before the first.
    pub(super) fn smoothed(&self) -> Duration {
        self.rtt.map_or(Duration::ZERO, |rtt| Duration::from_secs_f64(rtt.smoothed))
    }

    pub(super) fn round_trips(&self) -> RackRoundTrips {
        RackRoundTrips { smallest: self.rtt_min.min(RTO_MAX), smoothed: self.smoothed() }
    }

    pub(super) fn backed_off_rto(&self) -> Duration {
        if self.backoff == 0 {
            return self.rto;
        }
        self.rto.saturating_mul(1 << self.backoff.min(10)).min(RTO_MAX)
    }

    fn keep_result(&mut self, now: MonoTime) {
        self.cwnd_max = self.cwnd_max.max(self.window.cwnd);
        let finished =
            self.board.first_unacked() >= self.segments && self.result.finished_after.is_none();
        if finished {
            self.result.finished_after = Some(now.duration_since(self.plan.start));
        }
        if self.recorder.as_ref().is_some_and(|recorder| finished || recorder.is_due(now)) {
            self.keep_point(now);
        }
    }

    fn keep_point(&mut self, now: MonoTime) {
        let mss = u64::from(self.plan.tcp.mss_bytes);
        let ssthresh = self.window.ssthresh;
        let point = SequencePoint {
            at: now,
            acked_bytes: self.acked_bytes(),
            cwnd_bytes: truncated(self.window.cwnd * mss as f64),
            ssthresh_bytes: ssthresh.is_finite().then(|| truncated(ssthresh * mss as f64)),
        };
        if let Some(recorder) = &mut self.recorder {
            recorder.keep_point(point);
        }
    }
}
