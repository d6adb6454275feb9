//! What four times of a probe say of its way there, its way back, and the two clocks that read
//! them.
//!
//! # Source
//! RFC 8762 §4 (the four times), RFC 7679 (one-way delay). That delays are not negative bounds the
//! offset θ of the remote clock: −(T4 − T3) ≤ θ ≤ T2 − T1 for every probe; halfway between the
//! tightest of these bounds is the estimate of NTP (RFC 5905 §8), half their distance its error,
//! whatever the path's asymmetry.

use super::LineFit;
use crate::record::ClockState;

/// The times of one probe in ns since 1970: T1 and T4 by the local clock, T2 and T3 by the remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FourStamps {
    /// The probe left.
    pub t1_ns: u64,
    /// It arrived.
    pub t2_ns: u64,
    /// The answer left.
    pub t3_ns: u64,
    /// It arrived.
    pub t4_ns: u64,
}

/// `later` less `earlier`, which two clocks may have turned round.
const fn span(later: u64, earlier: u64) -> i64 {
    later.wrapping_sub(earlier).cast_signed()
}

impl FourStamps {
    /// T2 − T1: the delay there plus the offset of the clocks.
    pub const fn forward_ns(self) -> i64 {
        span(self.t2_ns, self.t1_ns)
    }

    /// T4 − T3: the delay back less the offset of the clocks.
    pub const fn backward_ns(self) -> i64 {
        span(self.t4_ns, self.t3_ns)
    }

    /// T3 − T2.
    pub const fn residence_ns(self) -> i64 {
        span(self.t3_ns, self.t2_ns)
    }

    /// (T4 − T1) − (T3 − T2): the offset cancels out.
    pub const fn path_ns(self) -> i64 {
        span(self.t4_ns, self.t1_ns) - self.residence_ns()
    }
}

/// What both ends say of their clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockClaim {
    /// Largest error of both together, where both say that they are synchronised.
    pub error_ns: Option<u64>,
    /// Both are one clock, for both ends are one host.
    pub one_clock: bool,
}

/// What the packets leave of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offset {
    /// What is known.
    pub state: ClockState,
    /// Error of a one-way delay; `None` when unsynchronised.
    pub error_ns: Option<u64>,
    /// Remote less local clock at the first probe: to be taken from forward delays and added to
    /// backward ones. 0 when synchronised.
    pub at_first_ns: f64,
    /// Its growth in ns per ns.
    pub drift: f64,
    /// The claim was wrong.
    pub refuted: bool,
    first_ns: u64,
}

impl Offset {
    /// The offset at a local time.
    pub fn at(&self, local_ns: u64) -> f64 {
        self.at_first_ns + self.drift * span(local_ns, self.first_ns) as f64
    }
}

/// Probes of a window at least: the smallest delay of fewer is often no small one.
const WINDOW_MIN: usize = 16;
const WINDOWS_MAX: usize = 8;
/// Drift of a clock beyond which it is no drift: crystals are within 100 ppm, and NTP slews by
/// 500 ppm at most.
const DRIFT_MAX: f64 = 600e-6;

/// What the probes of a time allow the offset to be.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    at_ns: f64,
    low: f64,
    high: f64,
}

impl Bounds {
    fn of(probes: &[FourStamps], first_ns: u64) -> Option<Self> {
        let low = probes.iter().map(|probe| -probe.backward_ns()).max()?;
        let high = probes.iter().map(|probe| probe.forward_ns()).min()?;
        let at = |probe: &FourStamps| span(probe.t1_ns, first_ns) as f64;
        let at_ns = (at(probes.first()?) + at(probes.last()?)) / 2.0;
        Some(Self { at_ns, low: low as f64, high: high as f64 })
    }

    fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }
}

/// What is known of the offset of two clocks from probes in the order of sending; `None` without
/// probes. The error is never below what the probes prove: a claim that they contradict is void.
pub fn clock_offset(probes: &[FourStamps], claim: ClockClaim) -> Option<Offset> {
    let first_ns = probes.first()?.t1_ns;
    let count = (probes.len() / WINDOW_MIN).clamp(1, WINDOWS_MAX);
    let edge = |window: usize| probes.len() * window / count;
    let windows = (0..count).map(|window| &probes[edge(window)..edge(window + 1)]);
    let bounds: Vec<Bounds> = windows.filter_map(|probes| Bounds::of(probes, first_ns)).collect();
    let within = |claimed: f64| bounds.iter().all(|b| b.low <= claimed && b.high >= -claimed);
    let claimed_ns = if claim.one_clock { Some(0) } else { claim.error_ns };
    let agreed = claimed_ns.filter(|claimed| within(*claimed as f64));
    let known = Offset {
        state: ClockState::Synchronised,
        error_ns: agreed,
        at_first_ns: 0.0,
        drift: 0.0,
        refuted: claimed_ns.is_some() && agreed.is_none(),
        first_ns,
    };
    if agreed.is_some() {
        return Some(known);
    }
    let constant = common(&bounds, 0.0);
    let drifting = || {
        let middles: Vec<(f64, f64)> = bounds.iter().map(|b| (b.at_ns, b.middle())).collect();
        let line = LineFit::of(&middles).filter(|line| line.slope.abs() <= DRIFT_MAX)?;
        Some((line.slope, common(&bounds, line.slope)?))
    };
    let found = constant.map(|constant| (0.0, constant)).or_else(drifting);
    let Some((drift, at_first_ns)) = found else {
        return Some(Offset { state: ClockState::Unsynchronised, ..known });
    };
    // Of each window, for a clock that drifts unnoticed is still within the bounds of each.
    let error = bounds.iter().map(|b| {
        let offset = at_first_ns + drift * b.at_ns;
        (b.high - offset).max(offset - b.low)
    });
    let error_ns = Some(whole(error.fold(0.0, f64::max)));
    let state = ClockState::OffsetEstimated;
    Some(Offset { state, error_ns, at_first_ns, drift, ..known })
}

/// Rounded up.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an error is not negative, and one of centuries may saturate"
)]
fn whole(ns: f64) -> u64 {
    ns.ceil() as u64
}

/// The offset at the first probe that lies in the middle of what all windows allow, given its
/// drift; `None` where they contradict each other: a step, or another drift.
fn common(bounds: &[Bounds], drift: f64) -> Option<f64> {
    let low = bounds.iter().map(|b| b.low - drift * b.at_ns).fold(f64::MIN, f64::max);
    let high = bounds.iter().map(|b| b.high - drift * b.at_ns).fold(f64::MAX, f64::min);
    (low <= high).then_some(f64::midpoint(low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Probes every 10 ms over a path of 2 ms there and 1 ms back, with up to 0.7 ms of queue in
    /// either, answered after 0.1 ms by a clock that is ahead by `offset(i)`.
    fn probes(n: i64, offset: impl Fn(i64) -> i64) -> Vec<FourStamps> {
        let start = 1_700_000_000_000_000_000;
        let queue = |i: i64, step: i64| (i * step) % 8 * MS / 10;
        let probe = |i: i64| {
            let t1 = start + i * 10 * MS;
            let t2 = t1 + 2 * MS + queue(i, 3);
            let t3 = t2 + MS / 10;
            let t4 = t3 + MS + queue(i, 5);
            let ahead = offset(i);
            let [t1_ns, t2_ns, t3_ns, t4_ns] =
                [t1, t2 + ahead, t3 + ahead, t4].map(i64::cast_unsigned);
            FourStamps { t1_ns, t2_ns, t3_ns, t4_ns }
        };
        (0..n).map(probe).collect()
    }

    /// 2 ms there and 1 ms back: the estimate takes both for 1.5 ms and says ±1.5 ms.
    #[test]
    fn an_offset_is_estimated_within_the_error_that_is_named() {
        let offset = clock_offset(&probes(200, |_| 300 * MS), ClockClaim::default());
        let offset = offset.expect("probes");
        assert_eq!(offset.state, ClockState::OffsetEstimated);
        assert!((offset.at_first_ns - 300.5e6).abs() < 1.0, "{offset:?}");
        assert_eq!((offset.error_ns, offset.refuted), (Some(1_500_000), false));
        let probe = probes(1, |_| 300 * MS)[0];
        assert_eq!((probe.forward_ns(), probe.backward_ns()), (302 * MS, -299 * MS));
        assert_eq!((probe.residence_ns(), probe.path_ns()), (MS / 10, 3 * MS));
    }

    #[test]
    fn a_claim_holds_until_the_packets_refute_it() {
        let claim = ClockClaim { error_ns: Some(100_000), one_clock: false };
        // Of 2 ms there at least, the clock may be behind by 2 ms before a delay is negative.
        for (ahead_us, refuted) in [(0, false), (-2_050, false), (-2_150, true), (1_150, true)] {
            let offset = clock_offset(&probes(100, |_| ahead_us * 1_000), claim).expect("probes");
            let state =
                if refuted { ClockState::OffsetEstimated } else { ClockState::Synchronised };
            assert_eq!((offset.state, offset.refuted), (state, refuted), "{ahead_us} us");
            let error_ns = if refuted { 1_500_000 } else { 100_000 };
            assert_eq!(offset.error_ns, Some(error_ns), "{ahead_us} us");
        }
        let one = ClockClaim { one_clock: true, ..ClockClaim::default() };
        let offset = clock_offset(&probes(5, |_| 0), one).expect("probes");
        assert_eq!((offset.state, offset.error_ns), (ClockState::Synchronised, Some(0)));
        assert_eq!(clock_offset(&[], claim), None);
    }

    #[test]
    fn a_drift_is_found_and_a_step_ends_all_talk_of_delays() {
        // 100 ppm: 1 µs in 10 ms, 2 ms over all.
        let offset = clock_offset(&probes(2_000, |i| i * 1_000), ClockClaim::default());
        let offset = offset.expect("probes");
        assert_eq!(offset.state, ClockState::OffsetEstimated, "{offset:?}");
        let truth = |i: i64| (i * 1_000) as f64;
        for (i, probe) in (0..2_000).zip(probes(2_000, |_| 0)) {
            let error = (offset.at(probe.t1_ns) - truth(i)).abs();
            assert!(error <= offset.error_ns.expect("known") as f64, "{i}: {error}");
        }
        let step = |i: i64| if i < 77 { 0 } else { 40 * MS };
        let offset = clock_offset(&probes(200, step), ClockClaim::default()).expect("probes");
        assert_eq!((offset.state, offset.error_ns), (ClockState::Unsynchronised, None));
    }
}
