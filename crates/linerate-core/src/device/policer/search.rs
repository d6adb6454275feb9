//! Which trains to send: first the fastest, then one at twice the rate that was found, long enough
//! for its precision.

use super::find::{BucketEstimate, FindError};
use crate::device::search::{Controller, NextTrial};

/// Length of the first train, ns.
const FIRST_NS: u64 = 1_000_000_000;
/// The longest train, ns.
const LONGEST_NS: u64 = 60_000_000_000;
/// Idle time before the first train, ns: nothing is known about the bucket yet.
const FIRST_IDLE_NS: u64 = 2_000_000_000;

/// A train to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainTrial {
    /// Rate of the train, frames per second, at an even pace.
    pub load_fps: u64,
    /// Time for which frames are sent, ns.
    pub duration_ns: u64,
    /// Time without frames before it, in which the bucket fills.
    pub idle_before_ns: u64,
}

/// The search, step by step. Its outcome is that of [`super::find_bucket`] for the train.
#[derive(Clone, Debug)]
pub struct PolicerSearch {
    max_fps: u64,
    frame_bytes: u32,
    precision: f64,
    found: Vec<Result<BucketEstimate, FindError>>,
}

impl PolicerSearch {
    /// A search with frames of one size, up to the largest load, for a rate known to `precision`
    /// (0.01 for 1 %).
    pub fn new(max_fps: u64, frame_bytes: u32, precision: f64) -> Self {
        Self { max_fps, frame_bytes, precision: precision.clamp(1e-4, 1.0), found: Vec::new() }
    }

    /// Estimate from the last train; `None` before the first.
    pub fn last_estimate(&self) -> Option<Result<BucketEstimate, FindError>> {
        self.found.last().copied()
    }

    /// The second train: at twice the rate found, until the bucket is empty and for as many frames
    /// more as one frame is to be the precision of.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates and times are not negative, and a cast keeps within the range of the type"
    )]
    fn second(&self, first: &BucketEstimate) -> TrainTrial {
        let rate_fps = (first.rate_bps / 8.0 / f64::from(self.frame_bytes)).max(1.0);
        let load_fps = ((rate_fps * 2.0).ceil() as u64).clamp(1, self.max_fps);
        let depth = first.burst_high_bytes.max(0.0) / f64::from(self.frame_bytes);
        let excess = (load_fps as f64 - rate_fps).max(1.0);
        let empty_s = depth / excess;
        let precise_s = 2.0 / (self.precision * rate_fps);
        let duration = (2.0 * empty_s + precise_s) * 1e9;
        TrainTrial {
            load_fps,
            duration_ns: (duration as u64).clamp(FIRST_NS, LONGEST_NS),
            idle_before_ns: ((1.5 * depth / rate_fps * 1e9) as u64).min(LONGEST_NS),
        }
    }
}

impl Controller for PolicerSearch {
    type Trial = TrainTrial;
    type Outcome = Result<BucketEstimate, FindError>;

    fn next(&self) -> NextTrial<TrainTrial> {
        match self.found.as_slice() {
            [] => NextTrial::Trial(TrainTrial {
                load_fps: self.max_fps,
                duration_ns: FIRST_NS,
                idle_before_ns: FIRST_IDLE_NS,
            }),
            [Ok(first)] => NextTrial::Trial(self.second(first)),
            _ => NextTrial::Done,
        }
    }

    fn add_outcome(&mut self, outcome: Self::Outcome) {
        self.found.push(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::super::find::{even_train, find_bucket};
    use super::*;
    use crate::theory::token_bucket::TokenBucket;
    use crate::units::{BitRate, Bytes};

    #[test]
    fn two_trains_find_a_policer_to_the_precision() {
        let (rate, burst) = (BitRate::from_bits_per_sec(20_000_000), Bytes::new(125_000));
        let mut search = PolicerSearch::new(81_274, 1518, 0.01);
        let mut trains = 0;
        while let Some(trial) = search.next().into_trial() {
            let frames = trial.load_fps * (trial.duration_ns / 1_000) / 1_000_000;
            let mut frames = even_train(frames, trial.load_fps, 1518, &[]);
            let mut bucket = TokenBucket::new(rate, burst).expect("a bucket");
            for frame in &mut frames {
                frame.arrived = bucket.arrive(frame.sent_ns, frame.bytes).is_none();
            }
            search.add_outcome(find_bucket(&[&frames], 100));
            trains += 1;
        }
        let found = search.last_estimate().expect("trains").expect("a bucket");
        assert_eq!(trains, 2);
        assert!((found.rate_bps / 2e7 - 1.0).abs() < 0.005, "{found:?}");
        assert!((found.rate_high_bps - found.rate_low_bps) / 2e7 < 0.01, "{found:?}");
        assert!((found.burst_bytes - 125_000.0).abs() < 1518.0, "{found:?}");
    }

    #[test]
    fn a_device_without_a_policer_ends_after_one_train() {
        let mut search = PolicerSearch::new(1000, 64, 0.01);
        search.add_outcome(Err(FindError::NoLoss));
        assert_eq!(search.next(), NextTrial::Done);
        assert_eq!(search.last_estimate(), Some(Err(FindError::NoLoss)));
    }
}
