//! How the window grows and shrinks, in segments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TcpModel;
use super::hystart::HyStart;
use crate::time::MonoTime;

/// A congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionControl {
    /// Additive increase of one segment each round trip, times `beta` on a loss (RFC 5681).
    Reno {
        /// What is left of the window after a loss.
        beta: f64,
    },
    /// Growth by the cube of the time since the last loss (RFC 9438).
    Cubic {
        /// What is left of the window after a loss.
        beta: f64,
        /// Scale, in segments per cubic second.
        scale: f64,
    },
}

/// The congestion controls that the model has, each with the values of its standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ControlName {
    /// [`CongestionControl::RENO`].
    Reno,
    /// [`CongestionControl::CUBIC`].
    Cubic,
}

impl ControlName {
    /// The one of this name; `None` for one that the model does not have.
    pub fn of(name: &str) -> Option<Self> {
        let all = [Self::Reno, Self::Cubic];
        all.into_iter().find(|control| CongestionControl::from(*control).name() == name)
    }
}

impl From<ControlName> for CongestionControl {
    fn from(name: ControlName) -> Self {
        match name {
            ControlName::Reno => Self::RENO,
            ControlName::Cubic => Self::CUBIC,
        }
    }
}

impl From<CongestionControl> for ControlName {
    fn from(control: CongestionControl) -> Self {
        match control {
            CongestionControl::Reno { .. } => Self::Reno,
            CongestionControl::Cubic { .. } => Self::Cubic,
        }
    }
}

impl CongestionControl {
    /// RFC 5681: half.
    pub const RENO: Self = Self::Reno { beta: 0.5 };
    /// RFC 9438 §4.6, §5: 0.7 and 0.4.
    pub const CUBIC: Self = Self::Cubic { beta: 0.7, scale: 0.4 };

    /// Its name, as in plans and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno { .. } => "reno",
            Self::Cubic { .. } => "cubic",
        }
    }

    const fn beta(self) -> f64 {
        match self {
            Self::Reno { beta } | Self::Cubic { beta, .. } => beta,
        }
    }
}

/// The congestion window of one sender.
#[derive(Clone, Debug)]
pub(super) struct Window {
    control: CongestionControl,
    /// Most segments that one acknowledgement counts for.
    growth_per_ack: f64,
    hystart: Option<HyStart>,
    /// The window in segments.
    pub(super) cwnd: f64,
    /// Below it, slow start; infinite at first.
    pub(super) ssthresh: f64,
    /// Where CUBIC's curve is flat: the window before the last reduction, or less of it.
    window_max: f64,
    /// The window before the last reduction.
    before: f64,
    epoch: Option<Epoch>,
}

/// A stretch of congestion avoidance of CUBIC.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: MonoTime,
    /// Seconds until the window is back at its maximum (RFC 9438 §4.2).
    k: f64,
    /// The window of an equivalent Reno flow (RFC 9438 §4.3).
    reno: f64,
}

/// What an acknowledgement tells the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: MonoTime,
    /// Segments that it newly covers.
    pub(super) segments: u64,
    /// The first segment that it does not cover.
    pub(super) first: u64,
    /// The next new segment.
    pub(super) next: u64,
    /// The round trip that it tells, if it tells one.
    pub(super) sample_ns: Option<u64>,
    /// The smoothed round trip.
    pub(super) rtt_s: f64,
}

impl Window {
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

    pub(super) fn grow(&mut self, acked: &Acked) {
        // A sender that counts acknowledgements does so in both phases (RFC 5681 §3.1, equation
        // 3), which costs it a factor of sqrt(2) under delayed ones (Mathis et al. 1997, table 1).
        let mut segments = (acked.segments as f64).min(self.growth_per_ack);
        if self.cwnd < self.ssthresh {
            let ends = self.hystart.as_mut().is_some_and(|hystart| hystart.ends(acked, self.cwnd));
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
        }
    }

    fn grow_cubic(&mut self, acked: &Acked, segments: f64, beta: f64, scale: f64) {
        let (cwnd, window_max) = (self.cwnd, self.window_max.max(self.cwnd));
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            start: acked.now,
            k: ((window_max - cwnd) / scale).cbrt(),
            reno: cwnd,
        });
        self.window_max = window_max;
        // RFC 9438 §4.3: the Reno-friendly rate, one segment a round trip above the old maximum.
        let alpha = if epoch.reno < self.before { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
        epoch.reno += alpha * segments / cwnd;
        let t = acked.now.since(epoch.start).as_secs_f64() + acked.rtt_s;
        let target = scale * (t - epoch.k).powi(3) + window_max;
        // RFC 9438 §4.2: between the window and one and a half of it.
        let target = target.clamp(cwnd, 1.5 * cwnd);
        let cubic = cwnd + (target - cwnd) / cwnd * segments;
        self.cwnd = cubic.max(epoch.reno);
    }

    /// A loss event: the threshold falls, the caller decides the window.
    pub(super) fn reduce(&mut self, in_flight: f64) {
        self.before = self.cwnd;
        let beta = self.control.beta();
        let before = match self.control {
            CongestionControl::Reno { .. } => in_flight,
            CongestionControl::Cubic { .. } => self.cwnd,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(now_ns: u64, segments: u64) -> Acked {
        let now = MonoTime::from_nanos(now_ns);
        Acked { now, segments, first: 0, next: 0, sample_ns: None, rtt_s: 0.1 }
    }

    fn window(congestion_control: CongestionControl, initial_window: u32) -> Window {
        Window::new(&TcpModel { congestion_control, initial_window, ..TcpModel::TODAY })
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_one_a_round_trip() {
        let mut window = window(CongestionControl::RENO, 10);
        window.grow(&acked(0, 10));
        assert!((window.cwnd - 20.0).abs() < 1e-9);
        window.reduce(20.0);
        window.cwnd = window.ssthresh;
        assert!((window.cwnd - 10.0).abs() < 1e-9);
        for _ in 0..10 {
            window.grow(&acked(0, 1));
        }
        assert!((window.cwnd - 11.0).abs() < 0.05, "{}", window.cwnd);
    }

    #[test]
    fn cubic_is_back_at_its_maximum_after_k() {
        // W_max 1000 after a loss: 700 left; K = cbrt(300/0.4) = 9.0856 s. Updates each 100 ms.
        let mut window = window(CongestionControl::CUBIC, 1000);
        window.reduce(1000.0);
        window.cwnd = window.ssthresh;
        assert!((window.cwnd - 700.0).abs() < 1e-9);
        let mut now = 0;
        while now < 9_085_600_000 {
            let segments = 850;
            window.grow(&acked(now, segments));
            now += 100_000_000;
        }
        assert!((window.cwnd - 1000.0).abs() < 3.0, "{}", window.cwnd);
    }
}
