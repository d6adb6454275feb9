//! What a sender does about losses: the recoveries of RFC 5681, RFC 6582 and RFC 6675, and that of
//! Linux of today: RACK-TLP (RFC 8985) with proportional rate reduction (RFC 6937) and undoing what
//! was no loss (RFC 3522, RFC 3708).

use std::time::Duration;

use super::delivery::NewArrivals;
use super::loss_state::{State, TailProbe, Undo};
use super::receiver::Ack;
use super::scoreboard::{Delivered, THRESHOLD};
use super::sender::TcpSender;
use crate::record::LossRecovery;
use crate::time::MonoTime;

/// Added to two round trips before a probe, for clocks (two jiffies of 4 ms in Linux).
const PROBE_MARGIN: Duration = Duration::from_millis(8);

impl TcpSender {
    /// An acknowledgement under RFC 5681, RFC 6582 or RFC 6675.
    pub(super) fn repair(
        &mut self,
        now: MonoTime,
        acked: u64,
        delivered: Option<Delivered>,
        rtt: Option<Duration>,
    ) {
        if self.plan.tcp.recovery == LossRecovery::Sack {
            let before = self.board.lost_segments();
            self.board.mark_lost();
            self.lost += self.board.lost_segments() - before;
        }
        if delivered.is_some() {
            self.on_progress(now, acked, rtt);
        } else if !self.board.is_empty() {
            self.duplicates += 1;
            self.on_duplicate(now);
        }
    }

    fn on_progress(&mut self, now: MonoTime, acked: u64, rtt: Option<Duration>) {
        self.duplicates = 0;
        self.backoff = 0;
        let first = self.board.first_unacked();
        match self.state {
            State::Recovery { until } if first < until => self.on_partial(acked),
            State::Recovery { .. } => {
                self.state = State::Open;
                self.set_cwnd(self.window.ssthresh);
            }
            State::Timeout { until } => {
                if first >= until {
                    self.state = State::Open;
                }
                self.grow_window(now, acked, rtt);
            }
            State::Open => {
                self.grow_window(now, acked, rtt);
                self.begin_recovery_if_lost(now);
            }
        }
        self.rto_due = (!self.board.is_empty()).then(|| now + self.backed_off_rto());
    }

    /// A new acknowledgement within fast recovery that does not cover all of it.
    fn on_partial(&mut self, acked: u64) {
        match self.plan.tcp.recovery {
            LossRecovery::Sack | LossRecovery::Rack => {}
            LossRecovery::NewReno => {
                self.set_cwnd((self.window.cwnd - acked as f64 + 1.0).max(1.0));
                self.lose_first();
                self.urgent = true;
            }
            LossRecovery::Reno => {
                self.state = State::Open;
                self.set_cwnd(self.window.ssthresh);
            }
        }
    }

    fn on_duplicate(&mut self, now: MonoTime) {
        match (self.state, self.plan.tcp.recovery) {
            (State::Open, LossRecovery::Sack) => self.begin_recovery_if_lost(now),
            (State::Open, _) if self.duplicates == THRESHOLD => self.begin_recovery(now),
            // Each duplicate says that a segment has left the network (RFC 5681 §3.2).
            (State::Recovery { .. }, LossRecovery::Reno | LossRecovery::NewReno) => {
                self.set_cwnd(self.window.cwnd + 1.0);
            }
            _ => {}
        }
    }

    /// Enters recovery as soon as a segment is lost, with selective acknowledgements.
    fn begin_recovery_if_lost(&mut self, now: MonoTime) {
        let sack = self.plan.tcp.recovery == LossRecovery::Sack;
        if sack && self.board.has_lost() {
            self.begin_recovery(now);
        }
    }

    fn begin_recovery(&mut self, now: MonoTime) {
        self.note_loss_event(now);
        self.result.recoveries += 1;
        let outstanding = self.board.next() - self.board.first_unacked();
        self.keep_for_undo();
        self.reduce(outstanding as f64);
        self.state = State::Recovery { until: self.board.next() };
        if self.is_rack() {
            return;
        }
        self.lose_first();
        self.urgent = true;
        self.set_cwnd(match self.plan.tcp.recovery {
            LossRecovery::Sack | LossRecovery::Rack => self.window.ssthresh,
            // Window inflation: the three duplicates have left the network.
            LossRecovery::Reno | LossRecovery::NewReno => self.window.ssthresh + THRESHOLD as f64,
        });
    }

    fn lose_first(&mut self) {
        let before = self.board.lost_segments();
        self.board.mark_segment_lost(self.board.first_unacked());
        self.lost += self.board.lost_segments() - before;
    }

    /// Lowers the threshold; BBR keeps the former window instead.
    fn reduce(&mut self, in_flight: f64) {
        match &mut self.bbr {
            Some(bbr) => bbr.recovery_begins(self.window.cwnd),
            None => self.window.reduce(in_flight),
        }
    }

    /// BBR sets the window itself.
    const fn set_cwnd(&mut self, cwnd: f64) {
        if self.bbr.is_none() {
            self.window.cwnd = cwnd;
        }
    }

    pub(super) fn on_timeout(&mut self, now: MonoTime) {
        self.note_loss_event(now);
        self.result.timeouts += 1;
        // RFC 5681 §3.1: once for one loss, however often the timer runs out.
        if self.backoff == 0 {
            if self.state == State::Open {
                self.keep_for_undo();
            }
            self.reduce(self.board.in_flight() as f64);
        }
        let told = self.bbr_report(now);
        if let Some(bbr) = &mut self.bbr {
            bbr.timeout(&told, self.window.cwnd);
        }
        self.window.restart();
        self.state = State::Timeout { until: self.board.next() };
        let before = self.board.lost_segments();
        self.board.lose_all();
        self.lost += self.board.lost_segments() - before;
        (self.rack_due, self.probe) = (None, TailProbe::default());
        self.duplicates = 0;
        self.backoff += 1;
        self.rto_due = Some(now + self.backed_off_rto());
    }

    /// An acknowledgement under RACK.
    pub(super) fn repair_by_time(
        &mut self,
        now: MonoTime,
        ack: &Ack,
        acked: u64,
        heard: &NewArrivals,
        highest: u64,
        rtt: Option<Duration>,
    ) {
        self.rack.note_arrivals(now, heard, highest, self.rtt_min);
        if ack.duplicate.is_some() {
            self.on_duplicate_arrival(heard);
        }
        self.end_probe(now, ack);
        let lost = self.detect_losses(now);
        if acked > 0 {
            self.backoff = 0;
        }
        let first = self.board.first_unacked();
        let spurious = acked > 0 && !ack.again;
        match self.state {
            State::Recovery { until } | State::Timeout { until } => {
                if self.was_no_loss(spurious) {
                    self.undo_reduction();
                } else if first >= until {
                    self.end_recovery();
                } else if matches!(self.state, State::Timeout { .. }) && acked > 0 {
                    self.grow_window(now, heard.segments, rtt);
                }
            }
            State::Open if acked > 0 && lost == 0 => self.grow_window(now, heard.segments, rtt),
            State::Open => {}
        }
        if self.state == State::Open && self.board.has_lost() {
            self.begin_recovery(now);
        }
        if matches!(self.state, State::Recovery { .. }) {
            self.reduce_in_proportion(heard.segments, acked > 0 && lost == 0);
        }
        if acked > 0 {
            self.rto_due = (!self.board.is_empty()).then(|| now + self.backed_off_rto());
            self.set_probe(now);
        }
    }

    fn detect_losses(&mut self, now: MonoTime) -> u64 {
        let repairing = self.state != State::Open;
        let rtts = self.round_trips();
        let (lost, due) = self.rack.mark_lost(now, &mut self.board, repairing, rtts);
        self.rack_due = due;
        self.lost += lost;
        lost
    }

    /// The reordering window of the oldest segments is over.
    pub(super) fn judge_by_time(&mut self, now: MonoTime) {
        if self.detect_losses(now) > 0 && self.state == State::Open {
            self.begin_recovery(now);
        }
        if matches!(self.state, State::Recovery { .. }) {
            self.reduce_in_proportion(0, false);
        }
    }

    /// The receiver had it twice: the reordering window is too narrow, and a retransmission was
    /// for nothing.
    fn on_duplicate_arrival(&mut self, heard: &NewArrivals) {
        let prior = heard.newest.map_or(self.deliveries.total, |newest| newest.mark.delivered);
        self.rack.duplicate(prior, self.deliveries.total);
        if let Some(undo) = &mut self.undo {
            undo.open = undo.open.saturating_sub(1);
        }
    }

    fn keep_for_undo(&mut self) {
        self.undo = Some(Undo {
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            open: 0,
            any: false,
            delivered: 0,
            sent_before: self.result.segments_sent,
        });
    }

    pub(super) const fn note_retransmission(&mut self) {
        if let Some(undo) = &mut self.undo {
            undo.open += 1;
            undo.any = true;
        }
    }

    /// True when the segments taken for lost arrived after all: the original filled the gap, or the
    /// receiver had every retransmission twice.
    fn was_no_loss(&self, spurious: bool) -> bool {
        self.undo.is_some_and(|undo| undo.any && (spurious || undo.open == 0))
    }

    fn undo_reduction(&mut self) {
        if let Some(undo) = self.undo.take().filter(|_| self.bbr.is_none()) {
            self.window.cwnd = self.window.cwnd.max(undo.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(undo.ssthresh);
        }
        self.board.lose_none();
        self.state = State::Open;
        self.rack.recovery_ended();
    }

    fn end_recovery(&mut self) {
        if matches!(self.state, State::Recovery { .. }) {
            self.set_cwnd(self.window.ssthresh);
        }
        self.state = State::Open;
        self.rack.recovery_ended();
    }

    /// The window in recovery (RFC 6937 §3, with the slow start's bound where nothing new is lost).
    fn reduce_in_proportion(&mut self, delivered: u64, is_safe: bool) {
        if self.bbr.is_some() {
            return;
        }
        let Some(undo) = &mut self.undo else { return };
        undo.delivered += delivered;
        let out = (self.result.segments_sent - undo.sent_before) as f64;
        let (target, in_flight) = (self.window.ssthresh, self.board.in_flight() as f64);
        let all = undo.delivered as f64;
        let may = if in_flight > target {
            (all * target / undo.cwnd.max(1.0)).ceil() - out
        } else {
            let bound = (all - out).max(delivered as f64) + f64::from(u8::from(is_safe));
            bound.min(target - in_flight)
        };
        // The first retransmission leaves at once.
        let least = if out < 1.0 { 1.0 } else { 0.0 };
        self.window.cwnd = in_flight + may.max(least);
    }

    /// Sets the timer of the tail probe to two round trips after the last sending, if the time-out
    /// is not before that.
    pub(super) fn set_probe(&mut self, now: MonoTime) {
        let tail = self.state == State::Open && self.board.sacked() == 0 && !self.board.is_empty();
        if !self.is_rack() || !tail || self.probe.out.is_some() || self.rtt_min == Duration::MAX {
            self.probe.due = None;
            return;
        }
        let alone = self.board.in_flight() == 1;
        let margin = if alone { self.plan.tcp.rto_min } else { PROBE_MARGIN };
        let due = now + (self.smoothed() * 2 + margin);
        self.probe.due = self.rto_due.is_none_or(|rto| due < rto).then_some(due);
    }

    pub(super) fn send_probe(&mut self, now: MonoTime) {
        self.probe.due = None;
        let next = self.board.next();
        let room =
            next < self.written() && next < self.board.first_unacked() + self.window_segments;
        self.probe.out = Some((next + u64::from(room), !room));
        if !room && next > self.board.first_unacked() {
            self.board.mark_segment_lost(next - 1);
        }
        self.urgent = true;
        self.rto_due = Some(now + self.backed_off_rto());
    }

    /// A probe that repaired a loss is a sign of congestion as any other.
    fn end_probe(&mut self, now: MonoTime, ack: &Ack) {
        let Some((_, again)) = self.probe.out.filter(|(until, _)| ack.next >= *until) else {
            return;
        };
        self.probe.out = None;
        if again && ack.duplicate.is_none() && ack.again && self.state == State::Open {
            self.note_loss_event(now);
            self.reduce(self.board.in_flight() as f64);
            self.set_cwnd(self.window.ssthresh);
        }
    }
}
