//! BBR as Linux has it (`net/ipv4/tcp_bbr.c`): version 1 of Cardwell et al. 2016,
//! draft-cardwell-iccrg-bbr-congestion-control-00, with its rule for policers.
//!
//! The sender paces at a multiple of the largest delivery rate of the last ten round trips, and
//! keeps twice its product with the smallest round trip of the last ten seconds under way.

use std::collections::VecDeque;
use std::time::Duration;

use super::delivery::DeliveryRate;
use crate::time::MonoTime;

/// Gain that doubles the rate each round trip: 2 / ln 2.
const HIGH_GAIN: f64 = 2.885;
const CWND_GAIN: f64 = 2.0;
/// Gains of the cycle, one round trip each: probing, draining, cruising.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Pacing stays this much below the rate, to keep queues short.
const PACING_SHARE: f64 = 0.99;
const BANDWIDTH_ROUNDS: u64 = 10;
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
const RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT: Duration = Duration::from_millis(200);
const CWND_MIN: f64 = 4.0;
/// Aggregated acknowledgements are made room for, up to so much time of the bandwidth.
const EXTRA_MAX: Duration = Duration::from_millis(100);
const EXTRA_ROUNDS: u64 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BbrMode {
    Startup,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// Counts and times that an acknowledgement reports to BBR.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckReport {
    pub(super) now: MonoTime,
    pub(super) rate: Option<DeliveryRate>,
    /// Segments newly delivered, and newly taken for lost.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Segments delivered and lost since the begin.
    pub(super) delivered_all: u64,
    pub(super) lost_all: u64,
    pub(super) rtt: Option<Duration>,
    pub(super) in_flight_before: f64,
    pub(super) in_flight: f64,
    pub(super) repairing: bool,
}

/// The largest of the last rounds.
#[derive(Clone, Debug, Default)]
struct Largest(VecDeque<(u64, f64)>);

impl Largest {
    fn push_value(&mut self, round: u64, rounds: u64, value: f64) {
        while self.0.back().is_some_and(|&(_, last)| last <= value) {
            self.0.pop_back();
        }
        self.0.push_back((round, value));
        while self.0.front().is_some_and(|&(at, _)| at + rounds < round) {
            self.0.pop_front();
        }
    }

    fn get(&self) -> f64 {
        self.0.front().map_or(0.0, |&(_, value)| value)
    }
}

/// One sender's BBR; rates in segments per second.
#[derive(Clone, Debug)]
pub(super) struct Bbr {
    mode: BbrMode,
    bandwidth: Largest,
    round: u64,
    round_end: u64,
    round_began: bool,
    rtt_min: Duration,
    rtt_min_at: MonoTime,
    rtt_is_known: bool,
    probe_rtt_until: Option<MonoTime>,
    probe_rtt_round: bool,
    full: f64,
    full_rounds: u32,
    is_full: bool,
    phase: usize,
    phase_at: MonoTime,
    /// Segments per second at which pieces leave.
    pub(super) pace: f64,
    prior_cwnd: f64,
    repairing: bool,
    conserving: bool,
    initial: f64,
    policer: PolicerEstimate,
    extra: AckAggregation,
}

/// The rate that a policer leaves, once two intervals agree on it.
#[derive(Clone, Copy, Debug, Default)]
struct PolicerEstimate {
    sampling: bool,
    rounds: u32,
    delivered: u64,
    lost: u64,
    at: MonoTime,
    rate: f64,
    used: bool,
}

/// Acknowledgements beyond the estimated bandwidth: aggregation.
#[derive(Clone, Debug, Default)]
struct AckAggregation {
    largest: Largest,
    begin: MonoTime,
    acked: f64,
}

impl Bbr {
    /// `phase` tells flows apart: the first phase of each is drawn in Linux.
    pub(super) fn new(initial_window: f64, start: MonoTime, phase: u32) -> Self {
        Self {
            mode: BbrMode::Startup,
            bandwidth: Largest::default(),
            round: 0,
            round_end: 0,
            round_began: false,
            rtt_min: Duration::MAX,
            rtt_min_at: start,
            rtt_is_known: false,
            probe_rtt_until: None,
            probe_rtt_round: false,
            full: 0.0,
            full_rounds: 0,
            is_full: false,
            // Never the draining one.
            phase: if phase.is_multiple_of(7) { 0 } else { 1 + (phase % 7) as usize },
            phase_at: start,
            // Until a round trip is known it is taken for 1 ms.
            pace: HIGH_GAIN * initial_window * 1000.0,
            prior_cwnd: 0.0,
            repairing: false,
            conserving: false,
            initial: initial_window,
            policer: PolicerEstimate::default(),
            extra: AckAggregation { begin: start, ..AckAggregation::default() },
        }
    }

    /// Takes in an acknowledgement and sets pace and window; a piece has `piece` segments.
    pub(super) fn acknowledge(&mut self, told: &AckReport, cwnd: &mut f64, piece: f64) {
        self.measure(told);
        self.measure_extra(told, *cwnd);
        self.next_phase(told, piece);
        self.look_whether_full(told);
        self.check_drain(told, piece);
        self.probe_rtt(told, cwnd);
        self.set_pace(*cwnd);
        self.set_window(told, cwnd, piece);
    }

    /// The timer ran out.
    pub(super) fn timeout(&mut self, told: &AckReport, cwnd: f64) {
        self.save_cwnd(cwnd);
        self.repairing = true;
        self.full = 0.0;
        self.round_began = true;
        self.sample_policer(&AckReport { lost: 1, ..*told });
    }

    fn save_cwnd(&mut self, cwnd: f64) {
        let fresh = !self.repairing && self.mode != BbrMode::ProbeRtt;
        self.prior_cwnd = if fresh { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    fn bandwidth(&self) -> f64 {
        if self.policer.used { self.policer.rate } else { self.bandwidth.get() }
    }

    /// Segments under way at a gain of the bandwidth, with room for pieces on their way.
    fn in_flight_at(&self, bandwidth: f64, gain: f64, piece: f64) -> f64 {
        self.with_room(self.product(bandwidth, gain), piece)
    }

    /// Segments under way at a gain of the bandwidth; the first flight until a round trip is known.
    fn product(&self, bandwidth: f64, gain: f64) -> f64 {
        if self.rtt_min == Duration::MAX {
            return self.initial;
        }
        (bandwidth * self.rtt_min.as_secs_f64() * gain).ceil()
    }

    fn with_room(&self, segments: f64, piece: f64) -> f64 {
        let even = ((segments + 3.0 * piece) / 2.0).ceil() * 2.0;
        let probing = self.mode == BbrMode::ProbeBandwidth && self.phase == 0;
        if probing { even + 2.0 } else { even }
    }

    fn measure(&mut self, told: &AckReport) {
        self.round_began = false;
        let Some(rate) = told.rate else { return };
        if rate.prior >= self.round_end {
            self.round_end = told.delivered_all;
            self.round += 1;
            self.round_began = true;
            self.conserving = false;
        }
        self.sample_policer(told);
        self.bandwidth.push_value(self.round, BANDWIDTH_ROUNDS, rate.per_second());
    }

    fn measure_extra(&mut self, told: &AckReport, cwnd: f64) {
        if told.delivered == 0 || told.rate.is_none() {
            return;
        }
        let expected = self.bandwidth() * told.now.duration_since(self.extra.begin).as_secs_f64();
        if self.extra.acked <= expected {
            (self.extra.acked, self.extra.begin) = (0.0, told.now);
        }
        let expected = self.bandwidth() * told.now.duration_since(self.extra.begin).as_secs_f64();
        self.extra.acked += told.delivered as f64;
        let extra = (self.extra.acked - expected).max(0.0).min(cwnd);
        self.extra.largest.push_value(self.round, EXTRA_ROUNDS, extra);
    }

    const fn pacing_gain(&self) -> f64 {
        match self.mode {
            BbrMode::Startup => HIGH_GAIN,
            BbrMode::Drain => 1.0 / HIGH_GAIN,
            BbrMode::ProbeBandwidth if self.policer.used => 1.0,
            BbrMode::ProbeBandwidth => CYCLE[self.phase],
            BbrMode::ProbeRtt => 1.0,
        }
    }

    const fn cwnd_gain(&self) -> f64 {
        match self.mode {
            BbrMode::Startup | BbrMode::Drain => HIGH_GAIN,
            BbrMode::ProbeBandwidth => CWND_GAIN,
            BbrMode::ProbeRtt => 1.0,
        }
    }

    fn next_phase(&mut self, told: &AckReport, piece: f64) {
        if self.mode != BbrMode::ProbeBandwidth {
            return;
        }
        let long = told.now.duration_since(self.phase_at) > self.rtt_min;
        let gain = self.pacing_gain();
        let largest = self.bandwidth.get();
        let ends = if gain > 1.0 {
            let reached = self.in_flight_at(largest, gain, piece);
            long && (told.lost > 0 || told.in_flight_before >= reached)
        } else if gain < 1.0 {
            long || told.in_flight_before <= self.in_flight_at(largest, 1.0, piece)
        } else {
            long
        };
        if ends {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_at = told.now;
        }
    }

    fn look_whether_full(&mut self, told: &AckReport) {
        if self.is_full || !self.round_began || told.rate.is_none() {
            return;
        }
        let largest = self.bandwidth.get();
        if largest >= self.full * FULL_GROWTH {
            (self.full, self.full_rounds) = (largest, 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, told: &AckReport, piece: f64) {
        if self.mode == BbrMode::Startup && self.is_full {
            self.mode = BbrMode::Drain;
        }
        let level = self.in_flight_at(self.bandwidth.get(), 1.0, piece);
        if self.mode == BbrMode::Drain && told.in_flight <= level {
            self.cruise(told.now);
        }
    }

    fn cruise(&mut self, now: MonoTime) {
        self.mode = BbrMode::ProbeBandwidth;
        self.phase_at = now;
    }

    fn probe_rtt(&mut self, told: &AckReport, cwnd: &mut f64) {
        let expired = told.now > self.rtt_min_at + RTT_WINDOW;
        if let Some(rtt) = told.rtt.filter(|rtt| *rtt < self.rtt_min || expired) {
            (self.rtt_min, self.rtt_min_at) = (rtt, told.now);
        }
        if expired && self.mode != BbrMode::ProbeRtt {
            self.save_cwnd(*cwnd);
            self.mode = BbrMode::ProbeRtt;
            self.probe_rtt_until = None;
        }
        if self.mode != BbrMode::ProbeRtt {
            return;
        }
        let Some(until) = self.probe_rtt_until else {
            if told.in_flight <= CWND_MIN {
                self.probe_rtt_until = Some(told.now + PROBE_RTT);
                self.probe_rtt_round = false;
                self.round_end = told.delivered_all;
            }
            return;
        };
        self.probe_rtt_round |= self.round_began;
        if self.probe_rtt_round && told.now > until {
            self.rtt_min_at = told.now;
            *cwnd = cwnd.max(self.prior_cwnd);
            if self.is_full {
                self.cruise(told.now);
            } else {
                self.mode = BbrMode::Startup;
            }
        }
    }

    fn set_pace(&mut self, cwnd: f64) {
        if !self.rtt_is_known && self.rtt_min != Duration::MAX {
            self.rtt_is_known = true;
            self.pace = HIGH_GAIN * cwnd / self.rtt_min.as_secs_f64();
        }
        let pace = self.bandwidth() * self.pacing_gain() * PACING_SHARE;
        // While the bandwidth is being found the pace does not fall.
        if pace > self.pace || (self.is_full && pace > 0.0) {
            self.pace = pace;
        }
    }

    fn set_window(&mut self, told: &AckReport, cwnd: &mut f64, piece: f64) {
        let acked = told.delivered as f64;
        if told.delivered > 0 && !self.conserves(told, cwnd) {
            let mut target = self.product(self.bandwidth(), self.cwnd_gain());
            if self.is_full {
                let most = self.bandwidth() * EXTRA_MAX.as_secs_f64();
                target += self.extra.largest.get().min(most).ceil();
            }
            let target = self.with_room(target, piece);
            if self.is_full {
                *cwnd = (*cwnd + acked).min(target);
            } else if *cwnd < target || (told.delivered_all as f64) < self.initial {
                *cwnd += acked;
            }
            *cwnd = cwnd.max(CWND_MIN);
        }
        if self.mode == BbrMode::ProbeRtt {
            *cwnd = cwnd.min(CWND_MIN);
        }
    }

    /// Packet conservation: in the first round trip of a recovery as many segments leave as arrive;
    /// after it the window is restored.
    fn conserves(&mut self, told: &AckReport, cwnd: &mut f64) -> bool {
        if told.lost > 0 {
            *cwnd = (*cwnd - told.lost as f64).max(1.0);
        }
        let acked = told.delivered as f64;
        if told.repairing && !self.repairing {
            self.conserving = true;
            self.round_end = told.delivered_all;
            *cwnd = told.in_flight + acked;
        } else if self.repairing && !told.repairing {
            *cwnd = cwnd.max(self.prior_cwnd);
            self.conserving = false;
        }
        self.repairing = told.repairing;
        if self.conserving {
            *cwnd = cwnd.max(told.in_flight + acked);
        }
        self.conserving
    }

    /// The window before a recovery that begins now.
    pub(super) fn recovery_begins(&mut self, cwnd: f64) {
        self.save_cwnd(cwnd);
    }

    fn sample_policer(&mut self, told: &AckReport) {
        if self.policer.used {
            if self.mode == BbrMode::ProbeBandwidth && self.round_began {
                self.policer.rounds += 1;
                if self.policer.rounds >= 48 {
                    self.policer = PolicerEstimate::default();
                    self.cruise(told.now);
                }
            }
            return;
        }
        if !self.policer.sampling {
            if told.lost == 0 {
                return;
            }
            self.begin_interval(told);
            self.policer.sampling = true;
        }
        self.policer.rounds += u32::from(self.round_began);
        if self.policer.rounds < 4 {
            return;
        }
        if self.policer.rounds > 16 {
            self.policer = PolicerEstimate::default();
            return;
        }
        if told.lost > 0 {
            self.end_interval(told);
        }
    }

    fn begin_interval(&mut self, told: &AckReport) {
        let policer = &mut self.policer;
        (policer.rounds, policer.at) = (0, told.now);
        (policer.delivered, policer.lost) = (told.delivered_all, told.lost_all);
    }

    /// Two intervals in a row with a fifth lost, and rates within an eighth: a policer.
    fn end_interval(&mut self, told: &AckReport) {
        let lost = told.lost_all - self.policer.lost;
        let delivered = told.delivered_all - self.policer.delivered;
        let span = told.now.duration_since(self.policer.at);
        if delivered == 0 || lost * 256 < 50 * delivered || span < Duration::from_millis(1) {
            return;
        }
        let rate = delivered as f64 / span.as_secs_f64();
        if self.policer.rate > 0.0 && (rate - self.policer.rate).abs() <= self.policer.rate / 8.0 {
            self.policer.rate = f64::midpoint(rate, self.policer.rate);
            (self.policer.used, self.policer.rounds) = (true, 0);
            return;
        }
        self.policer.rate = rate;
        self.begin_interval(told);
    }
}
