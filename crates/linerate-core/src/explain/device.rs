//! What limits a benchmark's result: the tester, the medium, stalls, or the device.

use crate::record::{BenchResult, GoalFound, LimitedBy};

/// From this share of the theoretical rate on, the medium is the limit: RFC 8239 §2 tests at
/// 99.98 % for the tolerance of clocks, and a search ends within half a per cent.
const MEDIUM_FROM: f64 = 0.995;

/// The part that a device benchmark's result is the measure of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceLimit {
    /// The tester sends or counts no more.
    Tester,
    /// The medium carries no more.
    Medium,
    /// Now and then frames are lost far below what usually passes.
    Stalls,
    /// The device forwards no more.
    Device,
}

impl DeviceLimit {
    /// The limit of a benchmark; none without a throughput.
    pub fn from_result(result: &BenchResult) -> Option<Self> {
        let usual = usual_goal(result)?;
        let fps = usual.throughput_fps()?;
        let share = result.theoretical_fps.map(|theory| fps / theory);
        Some(if stalls_part(result).is_some() {
            Self::Stalls
        } else if share.is_some_and(|share| share >= MEDIUM_FROM) {
            Self::Medium
        } else if usual.tester_limited {
            Self::Tester
        } else {
            Self::Device
        })
    }

    /// The part in the words of all results.
    pub const fn limited_by(self) -> LimitedBy {
        match self {
            Self::Tester => LimitedBy::ThisHost,
            Self::Medium => LimitedBy::Link,
            Self::Stalls | Self::Device => LimitedBy::Device,
        }
    }
}

/// The goal that speaks for the throughput: typical where it is there, else the first with a rate.
pub fn usual_goal(result: &BenchResult) -> Option<&GoalFound> {
    let found = |goal: &&GoalFound| goal.throughput_fps().is_some();
    result.find_goal("typical").filter(found).or_else(|| result.goals.iter().find(found))
}

/// The rates of strict and typical where strict lies below by more than the resolution of both
/// searches: the device stalls now and then.
pub fn stalls_part(result: &BenchResult) -> Option<(f64, f64)> {
    let (strict, typical) = (result.find_goal("strict")?, result.find_goal("typical")?);
    let apart = match (strict.upper_fps, typical.lower_fps) {
        (Some(upper), Some(lower)) => upper <= lower,
        _ => false,
    };
    let least = strict.throughput_fps().unwrap_or(0.0);
    apart.then_some((least, typical.throughput_fps()?))
}
