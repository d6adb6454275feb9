//! What a congestion control keeps of a path that loses segments: Mathis, PFTK, CUBIC and BBR,
//! and the loss that a wanted rate can bear.
//!
//! All speak of one long flow of full segments whose losses are independent of what it sends. Left
//! out: start-up (`slow_start`), queues that the flow fills itself (`buffer`), and windows except
//! where PFTK has one (`window`). Rates are payload, in bit/s.

use std::time::Duration;

use thiserror::Error;

use crate::units::{BitRate, Bytes};

/// CUBIC's C, segments per second cubed (RFC 9438 §5.1).
pub const CUBIC_C: f64 = 0.4;
/// Share of its window that CUBIC keeps at a loss (RFC 9438 §4.6).
pub const CUBIC_BETA: f64 = 0.7;
/// Share of its window that Reno keeps at a loss (RFC 5681 §3.1).
pub const RENO_BETA: f64 = 0.5;
/// Share of lost segments above which BBR version 1 takes the rate to be too high and yields (N.
/// Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 14(5), 2016).
pub const BBR1_LOSS_MAX: f64 = 0.2;
/// Share of segments lost in a round above which BBR version 3 bounds its data in flight
/// (draft-ietf-ccwg-bbr, BBR.LossThresh).
pub const BBR3_LOSS_MAX: f64 = 0.02;
/// Share of its bound that BBR version 3 keeps then (draft-ietf-ccwg-bbr, BBR.Beta).
pub const BBR3_BETA: f64 = 0.7;
/// Shortest retransmission timeout of Linux (TCP_RTO_MIN); RFC 6298 §2.4 asks for 1 s.
pub const RTO_MIN_LINUX: Duration = Duration::from_millis(200);

/// The most loss for which the square-root rule holds; above it segments sent again are lost too,
/// and their waits count (Mathis et al. 1997, §4; Padhye et al. 1998, §3).
pub const MATHIS_LOSS_MAX: f64 = 0.01;

/// Round trip and segment size of a path, for the loss formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// Round trip, queues included.
    pub rtt: Duration,
}

/// Number of segments that one acknowledgement answers, b in the formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// One acknowledgement for each segment.
    Every,
    /// One acknowledgement for two segments: delayed acknowledgements (RFC 1122 §4.2.3.2).
    EverySecond,
}

impl Acks {
    /// Segments per acknowledgement.
    pub const fn segments(self) -> u32 {
        match self {
            Self::Every => 1,
            Self::EverySecond => 2,
        }
    }

    /// The constant C of [`mathis_rate`]: sqrt(3 / 2b), so 1.2247 or 0.8660.
    pub fn mathis_constant(self) -> f64 {
        (1.5 / f64::from(self.segments())).sqrt()
    }
}

/// Parameters of PFTK beside the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pftk {
    /// Segments per acknowledgement.
    pub acks: Acks,
    /// First retransmission timeout.
    pub rto: Duration,
    /// Largest window; none when nothing bounds it.
    pub window: Option<Bytes>,
}

/// The two ends of the range of a Reno flow's rate or loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenoRange {
    /// Rate with one acknowledgement for two segments.
    pub low: f64,
    /// Rate with an acknowledgement for each segment.
    pub high: f64,
}

/// Mean window of CUBIC, and the region it is in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicWindow {
    /// Mean window in segments.
    pub segments: f64,
    /// Reno would have as much or more, and so rules.
    pub reno_friendly: bool,
}

/// Reason why a rate cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum LossError {
    /// Every rate divides by it.
    #[error("a round trip of 0 sets no bound on the rate")]
    ZeroRtt,
    /// Segments of 0 bytes.
    #[error("segments of 0 bytes carry nothing")]
    ZeroMss,
    /// A timeout of 0, which does not exist.
    #[error("a retransmission timeout of 0 does not exist")]
    ZeroRto,
    /// A window of 0 bytes.
    #[error("a window of 0 bytes carries nothing")]
    ZeroWindow,
    /// No loss, no bound.
    #[error("a loss of 0 sets no bound on the rate")]
    NoLoss,
    /// Not a share, or all.
    #[error("a loss of {ratio} is not above 0 and below 1")]
    LossOutOfRange {
        /// The share asked for.
        ratio: f64,
    },
    /// BBR version 1 yields there.
    #[error("a loss of {ratio} is not from 0 to 0.2, where BBR keeps its rate")]
    LossBeyondBbr {
        /// The share asked for.
        ratio: f64,
    },
    /// Any loss allows it.
    #[error("a rate of 0 bears any loss")]
    ZeroRate,
    /// Less than about a segment in each round trip.
    #[error("{rate} is less than the formula gives at any loss; it sets no budget")]
    RateTooLow {
        /// The rate that is wanted.
        rate: BitRate,
    },
    /// The window does not allow it.
    #[error("{rate} is no less than the window allows without loss")]
    RateAboveWindow {
        /// The rate that is wanted.
        rate: BitRate,
    },
}

/// The rate at which a Reno flow loses one segment in each 1/p: R = (8 MSS / RTT) C / sqrt(p) with
/// C = sqrt(3 / 2b).
///
/// p counts loss events: segments lost within a round trip are one. Holds below about 1 %, where
/// timeouts are rare. 1460 bytes, 100 ms and 1 in 10,000 give 14.305 Mbit/s.
///
/// ```
/// # use std::time::Duration;
/// # use linerate_core::theory::loss::{Acks, Path, mathis_rate};
/// let path = Path { mss_bytes: 1460, rtt: Duration::from_millis(100) };
/// let bps = mathis_rate(&path, Acks::Every, 1e-4).expect("a possible path");
/// assert!((bps / 1e6 - 14.305).abs() < 1e-3);
/// ```
/// # Errors
/// A round trip or segment of 0, p not above 0 and below 1.
/// # Source
/// M. Mathis, J. Semke, J. Mahdavi, T. Ott, "The macroscopic behavior of the TCP congestion
/// avoidance algorithm", CCR 27(3), 1997, §2 and table 1.
pub fn mathis_rate(path: &Path, acks: Acks, p: f64) -> Result<f64, LossError> {
    let segment_bps = path.segment_bps()?;
    Ok(segment_bps * acks.mathis_constant() / checked_loss(p)?.sqrt())
}

/// The most loss at which [`mathis_rate`] still is `rate`: p = (8 MSS C / (RTT R))².
/// # Errors
/// A round trip, segment or rate of 0, a rate that any loss allows.
pub fn mathis_budget(path: &Path, acks: Acks, rate: BitRate) -> Result<f64, LossError> {
    let window = path.window_segments(rate)?;
    budget((acks.mathis_constant() / window).powi(2), rate)
}

/// Rate of a Reno flow with timeouts and a largest window W: R = 8 MSS min(W / (MSS RTT), 1 / (RTT
/// sqrt(2bp/3) + T0 min(1, 3 sqrt(3bp/8)) p (1 + 32p²))).
///
/// 1460 bytes, 100 ms, 1 in 10,000, two segments an acknowledgement and a timeout of 200 ms give
/// 10.111 Mbit/s.
/// # Errors
/// A round trip, segment, timeout or window of 0, p not above 0 and below 1.
/// # Source
/// J. Padhye, V. Firoiu, D. Towsley, J. Kurose, "Modeling TCP throughput", SIGCOMM 1998, §2.3.
/// RFC 5348 §3.1 leaves out the window and the minimum ([`tfrc_rate`]).
pub fn pftk_rate(path: &Path, model: &Pftk, p: f64) -> Result<f64, LossError> {
    let segment_bits = path.segment_bits()?;
    let rate_bps = segment_bits / model.seconds_per_segment(path, checked_loss(p)?)?;
    Ok(model.window_bps(path)?.map_or(rate_bps, |window_bps| rate_bps.min(window_bps)))
}

/// The most loss at which [`pftk_rate`] still is `rate`.
/// # Errors
/// A round trip, segment, timeout, window or rate of 0, a rate that any loss or that no loss
/// allows.
pub fn pftk_budget(path: &Path, model: &Pftk, rate: BitRate) -> Result<f64, LossError> {
    path.window_segments(rate)?;
    let wanted_bps = rate.bits_per_sec() as f64;
    if model.window_bps(path)?.is_some_and(|window_bps| wanted_bps >= window_bps) {
        return Err(LossError::RateAboveWindow { rate });
    }
    let wanted = path.segment_bits()? / wanted_bps;
    if model.seconds_per_segment(path, 1.0)? <= wanted {
        return Err(LossError::RateTooLow { rate });
    }
    // The time per segment grows with p. 200 halvings of the exponent reach the nearest f64.
    let (mut low, mut high) = (f64::MIN_POSITIVE.ln(), 0.0);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if model.seconds_per_segment(path, middle.exp())? < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low.exp())
}

/// Range of rates of Reno, and of CUBIC where it behaves as Reno: from a receiver that delays its
/// acknowledgements to one that does not.
///
/// Up to [`MATHIS_LOSS_MAX`] this is [`mathis_rate`]. Above it, it is [`pftk_rate`]: at the low end
/// every loss of a retransmission waits for Linux's timer, RTT + 200 ms; at the high end for a
/// round trip, which is the least that RACK needs to see it (RFC 8985). 1448 bytes, 20 ms and 0.2
/// lie between 0.105 and 0.783 Mbit/s, where the square-root rule says 1.124 to 1.586; Linux 6.18
/// got 0.55 (CUBIC, 2026-11-22).
/// # Errors
/// A round trip or segment of 0, p not above 0 and below 1.
pub fn reno_range(path: &Path, p: f64) -> Result<RenoRange, LossError> {
    let rate = |acks| match checked_loss(p)? {
        p if p <= MATHIS_LOSS_MAX => mathis_rate(path, acks, p),
        p => pftk_rate(path, &path.beyond_mathis(acks), p),
    };
    Ok(RenoRange { low: rate(Acks::EverySecond)?, high: rate(Acks::Every)? })
}

/// The most loss at which either end of [`reno_range`] still is `rate`.
/// # Errors
/// A round trip, segment or rate of 0, a rate that any loss allows.
pub fn reno_budget(path: &Path, rate: BitRate) -> Result<RenoRange, LossError> {
    let budget = |acks| match mathis_budget(path, acks, rate) {
        Ok(p) if p <= MATHIS_LOSS_MAX => Ok(p),
        Ok(_) | Err(LossError::RateTooLow { .. }) => {
            pftk_budget(path, &path.beyond_mathis(acks), rate)
        }
        Err(error) => Err(error),
    };
    Ok(RenoRange { low: budget(Acks::EverySecond)?, high: budget(Acks::Every)? })
}

/// Rate that a TCP-friendly sender keeps to: 8 s / (RTT sqrt(2bp/3) + 3 T0 sqrt(3bp/8) p (1 +
/// 32p²)), PFTK without a window and without its minimum.
///
/// The two part where 3 sqrt(3bp/8) exceeds 1: above p = 8 / (27 b).
/// # Errors
/// A round trip, segment or timeout of 0, p not above 0 and below 1.
/// # Source
/// RFC 5348 §3.1, which recommends b = 1 and T0 = 4 RTT.
pub fn tfrc_rate(path: &Path, acks: Acks, rto: Duration, p: f64) -> Result<f64, LossError> {
    let segment_bits = path.segment_bits()?;
    let model = Pftk { acks, rto, window: None };
    let (recovery, timeouts) = model.recovery_and_timeout_s(path, checked_loss(p)?)?;
    Ok(segment_bits / (recovery + timeouts))
}

/// CUBIC's mean window: the larger of its own, (C (3 + β) / (4 (1 − β)))^¼ (RTT / p)^¾, and
/// Reno's, sqrt(3/2) / sqrt(p).
///
/// Its own grows with the round trip, so that CUBIC beats Reno on long paths with little loss:
/// below p = 0.548 RTT³ (RTT in seconds).
/// # Errors
/// A round trip of 0, p not above 0 and below 1.
/// # Source
/// RFC 9438 §5 and §5.1; RFC 8312 §5.1 prints 187 segments for 100 ms and 1 in 10,000.
pub fn cubic_window(rtt: Duration, p: f64) -> Result<CubicWindow, LossError> {
    let seconds = seconds(rtt)?;
    let p = checked_loss(p)?;
    let cubic = cubic_constant().powf(0.25) * (seconds / p).powf(0.75);
    let reno = Acks::Every.mathis_constant() / p.sqrt();
    Ok(CubicWindow { segments: cubic.max(reno), reno_friendly: reno >= cubic })
}

/// Rate of CUBIC: 8 MSS / RTT of its mean window. 1460 bytes, 100 ms and 1 in 10,000 give 21.888
/// Mbit/s.
pub fn cubic_rate(path: &Path, p: f64) -> Result<f64, LossError> {
    Ok(path.segment_bps()? * cubic_window(path.rtt, p)?.segments)
}

/// The most loss at which [`cubic_rate`] still is `rate`.
/// # Errors
/// A round trip, segment or rate of 0, a rate that any loss allows.
pub fn cubic_budget(path: &Path, rate: BitRate) -> Result<f64, LossError> {
    let window = path.window_segments(rate)?;
    let cubic = seconds(path.rtt)? * cubic_constant().cbrt() / window.powf(4.0 / 3.0);
    let reno = (Acks::Every.mathis_constant() / window).powi(2);
    budget(cubic.max(reno), rate)
}

/// Rate of BBR version 1 at a bottleneck: R = C (1 − p), for p up to 0.2. An estimate: its probing
/// costs more, and version 3 yields from 2 %.
pub fn bbr1_rate(bottleneck: BitRate, p: f64) -> Result<f64, LossError> {
    if !(0.0..=BBR1_LOSS_MAX).contains(&p) {
        return Err(LossError::LossBeyondBbr { ratio: p });
    }
    Ok(bottleneck.bits_per_sec() as f64 * (1.0 - p))
}

/// Error of a predicted rate by chance alone after `events` losses, as a share of it: 1 / (2
/// sqrt(k)), one standard deviation. `None` without a loss.
///
/// The count of a Poisson process varies by sqrt(k), and the rate goes with its root.
pub fn chance_error(events: u64) -> Option<f64> {
    (events > 0).then(|| 0.5 / (events as f64).sqrt())
}

impl Path {
    /// Bits of payload in a segment.
    fn segment_bits(&self) -> Result<f64, LossError> {
        if self.mss_bytes == 0 {
            return Err(LossError::ZeroMss);
        }
        Ok(f64::from(self.mss_bytes) * 8.0)
    }

    /// Rate of one segment in each round trip, bit/s.
    fn segment_bps(&self) -> Result<f64, LossError> {
        Ok(self.segment_bits()? / seconds(self.rtt)?)
    }

    /// PFTK's model for the two ends of [`reno_range`].
    fn beyond_mathis(&self, acks: Acks) -> Pftk {
        let rto = match acks {
            Acks::Every => self.rtt,
            Acks::EverySecond => self.rtt + RTO_MIN_LINUX,
        };
        Pftk { acks, rto, window: None }
    }

    /// Segments in flight at `rate`.
    fn window_segments(&self, rate: BitRate) -> Result<f64, LossError> {
        if rate.bits_per_sec() == 0 {
            return Err(LossError::ZeroRate);
        }
        Ok(rate.bits_per_sec() as f64 / self.segment_bps()?)
    }
}

impl Pftk {
    /// Seconds that a segment costs by duplicate acknowledgements and by timeouts; `p` up to 1.
    fn recovery_and_timeout_s(&self, path: &Path, p: f64) -> Result<(f64, f64), LossError> {
        if self.rto.is_zero() {
            return Err(LossError::ZeroRto);
        }
        let b = f64::from(self.acks.segments());
        let recovery = seconds(path.rtt)? * (2.0 * b * p / 3.0).sqrt();
        let share = 3.0 * (3.0 * b * p / 8.0).sqrt();
        Ok((recovery, self.rto.as_secs_f64() * share * p * (1.0 + 32.0 * p * p)))
    }

    fn seconds_per_segment(&self, path: &Path, p: f64) -> Result<f64, LossError> {
        let (recovery, timeouts) = self.recovery_and_timeout_s(path, p)?;
        let all = self.rto.as_secs_f64() * p * (1.0 + 32.0 * p * p);
        Ok(recovery + timeouts.min(all))
    }

    fn window_bps(&self, path: &Path) -> Result<Option<f64>, LossError> {
        let seconds = seconds(path.rtt)?;
        match self.window.map(Bytes::count) {
            Some(0) => Err(LossError::ZeroWindow),
            window => Ok(window.map(|bytes| bytes as f64 * 8.0 / seconds)),
        }
    }
}

/// C (3 + β) / (4 (1 − β)) of RFC 9438 §5.
fn cubic_constant() -> f64 {
    CUBIC_C * (3.0 + CUBIC_BETA) / (4.0 * (1.0 - CUBIC_BETA))
}

fn seconds(rtt: Duration) -> Result<f64, LossError> {
    if rtt.is_zero() { Err(LossError::ZeroRtt) } else { Ok(rtt.as_secs_f64()) }
}

fn checked_loss(p: f64) -> Result<f64, LossError> {
    match p {
        0.0 => Err(LossError::NoLoss),
        _ if p > 0.0 && p < 1.0 => Ok(p),
        ratio => Err(LossError::LossOutOfRange { ratio }),
    }
}

fn budget(p: f64, rate: BitRate) -> Result<f64, LossError> {
    if p < 1.0 { Ok(p) } else { Err(LossError::RateTooLow { rate }) }
}

#[cfg(test)]
mod tests;
