//! How the window grows and shrinks, in segments.

use super::acked::Acked;
use super::hystart::HyStart;
use super::{CongestionControl, TcpModel};
use crate::time::MonoTime;

/// Growth in a round trip of CUBIC before the first loss: Linux probes by a twentieth at least
/// (`bictcp_update` in `net/ipv4/tcp_cubic.c`), where RFC 9438 has the cube alone.
const GROWTH_BEFORE_LOSS: f64 = 1.05;

/// The congestion window of one sender.
#[derive(Clone, Debug)]
pub(super) struct CongestionWindow {
    control: CongestionControl,
    /// Most segments that one acknowledgement counts for.
    growth_per_ack: f64,
    hystart: Option<HyStart>,
    /// The window in segments.
    pub(super) cwnd: f64,
    /// Threshold below which the window grows by slow start; infinite at first.
    pub(super) ssthresh: f64,
    /// The window before the last reduction, or less of it: where CUBIC's curve is flat. It stays
    /// until the next reduction; 0 without one, or after a time-out (RFC 9438 §4.8).
    window_max: f64,
    /// The window before the last reduction.
    before: f64,
    epoch: Option<Epoch>,
}

/// A stretch of congestion avoidance of CUBIC.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: MonoTime,
    /// Window at which the curve is flat: `window_max`, or the window at the start where that is
    /// larger.
    origin: f64,
    /// Seconds until the window is there (RFC 9438 §4.2).
    k: f64,
    /// The window of an equivalent Reno flow (RFC 9438 §4.3).
    reno: f64,
}

impl CongestionWindow {
    pub(super) fn new(tcp: &TcpModel) -> Self {
        Self {
            control: tcp.congestion_control,
            growth_per_ack: f64::from(tcp.growth_per_ack.max(1)),
            hystart: tcp.hystart.then(HyStart::new),
            cwnd: f64::from(tcp.initial_window.max(1)),
            ssthresh: f64::INFINITY,
            window_max: 0.0,
            before: 0.0,
            epoch: None,
        }
    }

    pub(super) fn grow_on_ack(&mut self, acked: &Acked) {
        // A sender that counts acknowledgements does so in both phases (RFC 5681 §3.1, equation
        // 3), which costs it a factor of sqrt(2) under delayed ones (Mathis et al. 1997, table 1).
        let mut segments = (acked.segments as f64).min(self.growth_per_ack);
        if self.cwnd < self.ssthresh {
            let ends = self
                .hystart
                .as_mut()
                .is_some_and(|hystart| hystart.slow_start_ends(acked, self.cwnd));
            if ends {
                self.ssthresh = self.cwnd;
                self.hystart = None;
            }
            let room = self.ssthresh - self.cwnd;
            if segments <= room {
                self.cwnd += segments;
                return;
            }
            self.cwnd = self.ssthresh;
            segments -= room;
        }
        match self.control {
            CongestionControl::Reno { .. } => self.cwnd += segments / self.cwnd,
            CongestionControl::Cubic { beta, scale } => {
                self.grow_cubic(acked, segments, beta, scale);
            }
            // It sets the window itself.
            CongestionControl::Bbr => {}
        }
    }

    fn grow_cubic(&mut self, acked: &Acked, segments: f64, beta: f64, scale: f64) {
        let (cwnd, window_max) = (self.cwnd, self.window_max);
        let epoch = self.epoch.get_or_insert_with(|| {
            let origin = window_max.max(cwnd);
            let k = ((origin - cwnd) / scale).cbrt();
            Epoch { start: acked.now, origin, k, reno: cwnd }
        });
        // RFC 9438 §4.3: the Reno-friendly rate, one segment a round trip above the old maximum.
        let alpha = if epoch.reno < self.before { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
        epoch.reno += alpha * segments / cwnd;
        let t = acked.now.duration_since(epoch.start).as_secs_f64() + acked.rtt_s;
        let target = scale * (t - epoch.k).powi(3) + epoch.origin;
        // RFC 9438 §4.2: between the window and one and a half of it.
        let least = if window_max > 0.0 { 1.0 } else { GROWTH_BEFORE_LOSS };
        let target = target.clamp(least * cwnd, 1.5 * cwnd);
        let cubic = cwnd + (target - cwnd) / cwnd * segments;
        self.cwnd = cubic.max(epoch.reno);
    }

    /// A loss event: the threshold falls, the caller decides the window.
    pub(super) fn reduce(&mut self, in_flight: f64) {
        self.before = self.cwnd;
        let beta = self.control.decrease_factor();
        let before = match self.control {
            CongestionControl::Reno { .. } => in_flight,
            CongestionControl::Cubic { .. } | CongestionControl::Bbr => self.cwnd,
        };
        // Fast convergence (RFC 9438 §4.7): give way to newer flows.
        self.window_max = if self.cwnd < self.window_max {
            self.cwnd * f64::midpoint(1.0, beta)
        } else {
            self.cwnd
        };
        self.ssthresh = (before * beta).max(2.0);
        self.epoch = None;
    }

    /// Restarts after a time-out: all is sent again from one segment on, and the former window is
    /// forgotten (RFC 9438 §4.8).
    pub(super) fn restart(&mut self) {
        self.cwnd = 1.0;
        self.window_max = 0.0;
        self.epoch = None;
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times and counts of tests are small and not negative"
)]
mod tests {
    use super::*;

    fn acked_segments(now_ns: u64, segments: u64) -> Acked {
        let now = MonoTime::from_nanos(now_ns);
        Acked { now, segments, first: 0, next: 0, sample_ns: None, rtt_s: 0.1 }
    }

    fn window(congestion_control: CongestionControl, initial_window: u32) -> CongestionWindow {
        CongestionWindow::new(&TcpModel { congestion_control, initial_window, ..TcpModel::TODAY })
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_one_a_round_trip() {
        let mut window = window(CongestionControl::RENO, 10);
        window.grow_on_ack(&acked_segments(0, 10));
        assert!((window.cwnd - 20.0).abs() < 1e-9);
        window.reduce(20.0);
        window.cwnd = window.ssthresh;
        assert!((window.cwnd - 10.0).abs() < 1e-9);
        for _ in 0..10 {
            window.grow_on_ack(&acked_segments(0, 1));
        }
        assert!((window.cwnd - 11.0).abs() < 0.05, "{}", window.cwnd);
    }

    /// The window of CUBIC each 100 ms, the round trip, after a loss at `window_max` segments, with
    /// the time since the end of the recovery in seconds.
    fn after_a_loss(window_max: u32, seconds: u64) -> Vec<(f64, f64)> {
        let mut window = window(CongestionControl::CUBIC, window_max);
        window.reduce(f64::from(window_max));
        window.cwnd = window.ssthresh;
        let mut curve = Vec::new();
        for round in 0..seconds * 10 {
            curve.push((round as f64 * 0.1, window.cwnd));
            // Every second segment is acknowledged, spread over the round trip.
            let acks = (window.cwnd / 2.0).round() as u64;
            for ack in 0..acks {
                window.grow_on_ack(&acked_segments(
                    round * 100_000_000 + ack * 100_000_000 / acks,
                    2,
                ));
            }
        }
        curve
    }

    #[test]
    fn cubic_keeps_to_its_cube_to_twelve_seconds_beyond_the_maximum() {
        // RFC 9438 §4.2, figure 1: W(t) = 0.4 (t - K)^3 + W_max with K = cbrt(0.3 W_max / 0.4): 0.7
        // W_max at 0, W_max at K, and 691.2 segments above it at K + 12 s, where the growth is 17
        // segments a round trip. The window runs up to a round trip behind the curve, as it is
        // raised by what the curve will be then; the Reno-friendly window (5.3, later 10 segments
        // a second) stays below from the start for the first, until K + 4 s for the others.
        for window_max in [1000_u32, 250] {
            let largest = f64::from(window_max);
            let k = (0.3 * largest / 0.4).cbrt();
            for (t, cwnd) in after_a_loss(window_max, (k + 12.0) as u64) {
                let cube = |t: f64| 0.4 * (t - k).powi(3) + largest;
                let (low, high) = (0.98 * cube(t - 0.1), 1.02 * cube(t + 0.1));
                assert!((low..=high).contains(&cwnd), "{t} s: {cwnd}, the cube {}", cube(t));
            }
        }
    }

    #[test]
    fn the_maximum_of_the_last_loss_decides_on_fast_convergence() {
        // RFC 9438 §4.7 with losses at 1000, 800 and 1200 segments: 1000; below it, so 0.85 x 800;
        // above that, so 1200.
        let mut window = window(CongestionControl::CUBIC, 1000);
        let maxima = [1000.0, 800.0, 1200.0].map(|cwnd| {
            window.cwnd = cwnd;
            window.reduce(cwnd);
            window.window_max
        });
        assert_eq!(maxima, [1000.0, 680.0, 1200.0]);
    }

    #[test]
    fn after_a_timeout_the_curve_begins_at_the_threshold() {
        // RFC 9438 §4.8: K is 0 and W_max the window at the start of the avoidance, 70; the old
        // maximum of 100 would give K = 4.2 s. Linux adds a twentieth each round trip: 70 x 1.05
        // after one of 70 segments, where the cube that starts at 70 has gained nothing.
        let mut window = window(CongestionControl::CUBIC, 100);
        window.reduce(100.0);
        window.restart();
        window.grow_on_ack(&acked_segments(0, 69));
        assert!((window.cwnd - 70.0).abs() < 1e-9, "{}", window.cwnd);
        for segment in 0..70 {
            window.grow_on_ack(&acked_segments(100_000_000 + segment, 1));
        }
        assert!((window.cwnd - 73.5).abs() < 0.1, "{}", window.cwnd);
        assert_eq!(window.epoch.map(|epoch| epoch.k), Some(0.0));
    }
}
