//! Loss and forwarding over load: the loads of both curves, and what a device does under overload.
//!
//! Sources: RFC 2544 §26.3; RFC 1242 (overload behavior); RFC 2285 §3.6 and RFC 2889 §5.6
//! (forwarding rate, at maximum offered load and at its maximum). The shares of the throughput at
//! which overload is tried, and the words for what comes of it, are ours.

use super::search::{GoalError, Range, StepDown};
use crate::record::{LoadPoint, Overload, OverloadKind};

/// Steps of the loss curve: a tenth of the largest load, the coarsest that RFC 2544 §26.3 allows.
pub const CURVE_STEPS: u64 = 10;

/// Trials in a row without loss that end it.
pub const CURVE_CLEAN: usize = 2;

/// Loads of the overload curve, as shares of the throughput in per cent.
pub const OVERLOAD_PERCENT: [u64; 5] = [110, 125, 150, 200, 300];

/// Least share of the best forwarding rate at the largest load for a device that holds.
const HOLDS_FROM: f64 = 0.95;
/// Share of the best forwarding rate below which a device collapses.
const COLLAPSES_BELOW: f64 = 0.5;

/// The series of trials of the loss curve: down by tenths from the largest load until two in a row
/// lose nothing, or to the last tenth.
/// # Errors
/// No load, or trials of 0 s.
pub fn loss_curve(max_fps: u64, trial_ns: u64) -> Result<StepDown, GoalError> {
    let share = 1.0 / CURVE_STEPS as f64;
    // A tenth is rounded; the bottom is what is left above zero.
    let step_fps = (max_fps + CURVE_STEPS / 2) / CURVE_STEPS;
    let min_fps = max_fps.saturating_sub(step_fps * (CURVE_STEPS - 1)).max(1);
    StepDown::new(Range { min_fps, max_fps }, share, trial_ns, CURVE_CLEAN)
}

/// The loads of the overload curve, rising: [`OVERLOAD_PERCENT`] of the throughput up to the
/// largest load, which is the last.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "loads are not negative, and a cast keeps within the range of the type"
)]
pub fn overload_loads(throughput_fps: f64, max_fps: u64) -> Vec<u64> {
    let load = |percent: u64| (throughput_fps * percent as f64 / 100.0).max(1.0) as u64;
    let mut loads: Vec<u64> =
        OVERLOAD_PERCENT.iter().map(|&percent| load(percent).min(max_fps)).collect();
    loads.dedup();
    loads
}

impl Overload {
    /// The figures of a curve beyond a throughput, which was forwarded as well; `None` without a
    /// curve, or when nothing was forwarded. All rates are of all sending ports together.
    pub fn from_points<'a>(
        points: impl IntoIterator<Item = &'a LoadPoint>,
        throughput_fps: Option<f64>,
    ) -> Option<Self> {
        let points: Vec<&LoadPoint> = points.into_iter().collect();
        let largest = points.iter().max_by(|a, b| a.offered_fps.total_cmp(&b.offered_fps))?;
        let forwarded = points.iter().map(|point| point.forwarded_fps);
        let best_fps = forwarded.chain(throughput_fps).reduce(f64::max).filter(|fps| *fps > 0.0)?;
        let kept = largest.forwarded_fps / best_fps;
        let kind = match kept {
            kept if kept >= HOLDS_FROM => OverloadKind::Holds,
            kept if kept < COLLAPSES_BELOW => OverloadKind::Collapses,
            _ => OverloadKind::Sags,
        };
        Some(Self {
            best_fps,
            largest_offered_fps: largest.offered_fps,
            at_largest_fps: largest.forwarded_fps,
            kept,
            kind,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::{Controller, TrialOutcome};
    use super::*;

    fn load_point(offered_fps: u64, forwarded_fps: u64) -> LoadPoint {
        LoadPoint {
            intended_fps: Some(offered_fps as f64),
            offered_fps: offered_fps as f64,
            forwarded_fps: forwarded_fps as f64,
            loss_ratio: 1.0 - forwarded_fps as f64 / offered_fps as f64,
            sent: offered_fps,
            received: forwarded_fps,
        }
    }

    fn overload_kind(points: &[LoadPoint], throughput_fps: Option<f64>) -> Option<OverloadKind> {
        Overload::from_points(points, throughput_fps).map(|overload| overload.kind)
    }

    #[test]
    fn a_livelocked_router_collapses() {
        // 5,000 frames/s at its best, 200 at 14,880.
        let points = [load_point(5_000, 5_000), load_point(10_000, 2_000), load_point(14_880, 200)];
        let overload = Overload::from_points(&points, None).expect("points");
        assert_eq!((overload.best_fps, overload.largest_offered_fps), (5_000.0, 14_880.0));
        assert_eq!((overload.at_largest_fps, overload.kept), (200.0, 0.04));
        assert_eq!(overload.kind, OverloadKind::Collapses);
        // The best may be the throughput itself, which is none of the points.
        assert_eq!(overload_kind(&points[2..], None), Some(OverloadKind::Holds));
        assert_eq!(overload_kind(&points[2..], Some(5_000.0)), Some(OverloadKind::Collapses));
    }

    #[test]
    fn a_switch_holds_and_nothing_forwarded_is_no_curve() {
        assert_eq!(
            overload_kind(&[load_point(10_000, 9_000)], Some(9_000.0)),
            Some(OverloadKind::Holds)
        );
        assert_eq!(
            overload_kind(&[load_point(10_000, 8_000)], Some(9_000.0)),
            Some(OverloadKind::Sags)
        );
        assert_eq!(overload_kind(&[], Some(9_000.0)), None);
        assert_eq!(overload_kind(&[load_point(10_000, 0)], None), None);
    }

    #[test]
    fn overload_rises_to_the_largest_load() {
        assert_eq!(overload_loads(500.0, 1_000), [550, 625, 750, 1_000]);
        assert_eq!(overload_loads(1_000.0, 10_000), [1_100, 1_250, 1_500, 2_000, 3_000]);
        assert_eq!(overload_loads(1_000.0, 1_000), [1_000]);
    }

    #[test]
    fn a_device_that_always_loses_has_ten_points() {
        for max_fps in [1, 7, 1_000, 1_004, 1_488_095] {
            let mut curve = loss_curve(max_fps, 1_000_000_000).expect("loads");
            let mut loads = Vec::new();
            while let Some(trial) = curve.next().into_trial() {
                loads.push(trial.load_fps);
                curve.add_outcome(TrialOutcome::complete(&trial, trial.frames(), 0));
            }
            assert_eq!(loads[0], max_fps);
            assert!(loads.len() <= 10, "{loads:?}");
            assert!(loads.len() == 10 || max_fps < 10, "{loads:?}");
        }
        assert!(loss_curve(0, 1).is_err() && loss_curve(10, 0).is_err());
    }
}
