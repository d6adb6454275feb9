//! Rate and depth of a token bucket from trains of frames with their losses.
//!
//! A bucket of rate r and depth b that is full at the start of a train holds b + r x - A after x
//! seconds in which it let A bytes pass, as long as it does not fill again. A frame of B bytes
//! that passed says b + r x >= A + B, one that was dropped b + r x < A + B. For each r that leaves
//! a span of b; it is concave in r, so its ends are found by halves. Trains are of a constant rate
//! above the contract, so that the bucket does not fill again. Where the sender paused it may have:
//! what it would have granted then is lost, and the frames after it would tell of less depth or
//! less rate, so a train ends before such a pause.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::record::RateFound;
use crate::theory::token_bucket::TokenBucket;
use crate::units::{BitRate, Bytes};

/// Times that the tolerance is doubled before there is no bucket.
const DOUBLINGS_MAX: u32 = 7;
/// Mean gaps between two frames that make a pause of the sender.
const PAUSE_GAPS: f64 = 2.0;
/// Share of its largest lack that a bucket must have regained for it to count as refilled.
const REFILLED: f64 = 0.9;
/// Halvings of a rate: beyond the precision of a double.
const HALVINGS: u32 = 80;

/// A frame of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainFrame {
    /// Time of sending, ns since any fixed moment.
    pub sent_ns: u64,
    /// Length of the frame as the contract counts.
    pub bytes: u32,
    /// True when the frame arrived at the other port.
    pub arrived: bool,
}

/// A train of equal frames at an even pace, with the numbers of those that arrived.
pub fn even_train(
    frames: u64,
    frames_per_sec: u64,
    bytes: u32,
    arrived: &[u64],
) -> Vec<TrainFrame> {
    let arrived: std::collections::HashSet<u64> = arrived.iter().copied().collect();
    let at = |number: u64| {
        let ns = u128::from(number) * 1_000_000_000 / u128::from(frames_per_sec.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    };
    (0..frames)
        .map(|n| TrainFrame { sent_ns: at(n), bytes, arrived: arrived.contains(&n) })
        .collect()
}

/// The same by arrivals, numbers rising with their times in ns: a policer that drops adds the same
/// time to each frame that it passes, so gaps at the receiver are those at the policer, and errors
/// of the generator's pace do not count. Lost frames are spread evenly between their neighbours;
/// those after the last arrival are left out.
pub fn train_by_arrival(bytes: u32, arrivals: &[(u64, u64)]) -> Vec<TrainFrame> {
    let mut frames = Vec::new();
    for pair in arrivals.windows(2) {
        let [(number, at_ns), (next, next_ns)] = [pair[0], pair[1]];
        let gap = next.saturating_sub(number);
        let span = u128::from(next_ns.saturating_sub(at_ns));
        for step in 0..gap {
            let after = span * u128::from(step) / u128::from(gap);
            let sent_ns = at_ns.saturating_add(u64::try_from(after).unwrap_or(u64::MAX));
            frames.push(TrainFrame { sent_ns, bytes, arrived: step == 0 });
        }
    }
    let last = arrivals.last().map(|&(_, sent_ns)| TrainFrame { sent_ns, bytes, arrived: true });
    frames.extend(last);
    frames
}

/// A bucket with the interval that the frames leave for each parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BucketEstimate {
    /// Rate, bit/s: the middle of its interval.
    pub rate_bps: f64,
    /// Smallest rate that fits, bit/s.
    pub rate_low_bps: f64,
    /// Largest rate that fits, bit/s.
    pub rate_high_bps: f64,
    /// Depth at that rate, bytes.
    pub burst_bytes: f64,
    /// Smallest depth that fits, bytes.
    pub burst_low_bytes: f64,
    /// Largest depth that fits, bytes.
    pub burst_high_bytes: f64,
    /// The bucket may have filled up between two frames of a train, which wastes tokens: its rate
    /// may be higher. A frame and what comes in until the next one do not fit in it; send faster.
    pub is_shallow: bool,
    /// Largest distance of frames from their times at which the bucket still fits, ns.
    pub tolerance_ns: u64,
    /// Frames that a bucket of these parameters treats otherwise than the device did, at the exact
    /// times given: few, and more the further frames were off their times.
    pub disagreements: u64,
    /// Frames of all trains.
    pub frames: u64,
}

impl BucketEstimate {
    /// Rate in bit/s with its interval.
    pub const fn rate_interval(&self) -> RateFound {
        RateFound { value: self.rate_bps, low: self.rate_low_bps, high: self.rate_high_bps }
    }

    /// Depth in bytes with its interval.
    pub const fn depth_interval(&self) -> RateFound {
        RateFound {
            value: self.burst_bytes,
            low: self.burst_low_bytes,
            high: self.burst_high_bytes,
        }
    }

    /// The same estimate with a depth that may be larger by so many bytes.
    #[must_use]
    pub fn maybe_deeper(self, bytes: f64) -> Self {
        let burst_high_bytes = self.burst_high_bytes + bytes;
        Self { burst_high_bytes, burst_bytes: self.burst_bytes + bytes / 2.0, ..self }
    }
}

/// Reason why no bucket was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FindError {
    /// No frame was lost.
    #[error("no frame was lost: the contract was not reached; send faster or longer")]
    NoLoss,
    /// No frame came out.
    #[error("no frame came out: the device forwards nothing of this train")]
    NothingArrived,
    /// No bucket does that.
    #[error("no token bucket drops these frames: loss of another kind, or more than one bucket")]
    NoBucket,
    /// The first loss came after a pause of the sender in which the bucket may have filled again.
    #[error("the tester paused before the contract was reached: run it again on an idle host")]
    Paused,
}

/// One frame's condition on r (bytes per s) and b: b + r `seconds` against `bytes`.
#[derive(Clone, Copy, Debug)]
struct FrameCondition {
    seconds: f64,
    bytes: f64,
}

impl FrameCondition {
    fn burst_at(&self, rate: f64) -> f64 {
        self.bytes - rate * self.seconds
    }
}

/// Conditions of all trains.
#[derive(Debug, Default)]
struct TrainConditions {
    passed: Vec<FrameCondition>,
    dropped: Vec<FrameCondition>,
    /// Highest rate at which frames were sent, bytes per s.
    offered: f64,
    /// Lowest of the trains.
    offered_least: f64,
    /// Largest frame of the trains, bytes.
    largest: f64,
}

impl TrainConditions {
    fn from_trains(trains: &[&[TrainFrame]]) -> Self {
        let mut all = Self { offered_least: f64::INFINITY, ..Self::default() };
        for frames in trains {
            let Some(first) = frames.first() else { continue };
            let mut passed = 0.0;
            let mut sent = 0.0;
            for frame in *frames {
                let seconds = frame.sent_ns.saturating_sub(first.sent_ns) as f64 / 1e9;
                let bytes = f64::from(frame.bytes);
                let condition = FrameCondition { seconds, bytes: passed + bytes };
                sent += bytes;
                all.largest = all.largest.max(bytes);
                if frame.arrived {
                    passed += bytes;
                    all.passed.push(condition);
                } else {
                    all.dropped.push(condition);
                }
            }
            // n frames span n - 1 gaps.
            let last = frames.last().map_or(0, |last| last.sent_ns.saturating_sub(first.sent_ns));
            if last > 0 {
                let rate = (sent - f64::from(first.bytes)) * 1e9 / last as f64;
                all.offered = all.offered.max(rate);
                all.offered_least = all.offered_least.min(rate);
            }
        }
        all.passed = hull_corners(all.passed, 1.0);
        all.dropped = hull_corners(all.dropped, -1.0);
        all
    }

    /// Smallest and largest depth at a rate, when frames were off by up to `tolerance` s.
    fn depths(&self, rate: f64, tolerance: f64) -> (f64, f64) {
        let slack = rate * tolerance;
        let low = self.passed.iter().map(|frame| frame.burst_at(rate) - slack);
        let high = self.dropped.iter().map(|frame| frame.burst_at(rate) + slack);
        (low.fold(0.0, f64::max), high.fold(f64::INFINITY, f64::min))
    }

    /// True when a bucket of such a depth can fill up between two frames of a train.
    fn is_shallow(&self, depth: f64, rate: f64, tolerance: f64) -> bool {
        let gap = self.largest / self.offered_least + 2.0 * tolerance;
        depth < self.largest + rate * gap
    }

    fn depth_span(&self, rate: f64, tolerance: f64) -> f64 {
        let (low, high) = self.depths(rate, tolerance);
        high - low
    }

    /// Rates that fit; `None` when none does.
    fn rate_range(&self, tolerance: f64) -> Option<(f64, f64)> {
        let room = |rate: f64| self.depth_span(rate, tolerance);
        let (mut low, mut high) = (0.0, self.offered);
        // The room is concave, so thirds close in on its largest.
        for _ in 0..HALVINGS {
            let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if room(a) < room(b) { low = a } else { high = b }
        }
        let best = f64::midpoint(low, high);
        if room(best) < 0.0 {
            return None;
        }
        let edge = |outside: f64| {
            let (mut inside, mut outside) = (best, outside);
            for _ in 0..HALVINGS {
                let middle = f64::midpoint(inside, outside);
                if room(middle) >= 0.0 { inside = middle } else { outside = middle }
            }
            inside
        };
        Some((edge(0.0), edge(self.offered)))
    }
}

/// The conditions that can decide: of points (seconds, bytes) the upper hull for a `side` of 1 and
/// the lower one for -1. The largest, or smallest, of bytes - r seconds is at one of its corners.
fn hull_corners(mut points: Vec<FrameCondition>, side: f64) -> Vec<FrameCondition> {
    points.sort_by(|a, b| {
        a.seconds.total_cmp(&b.seconds).then((b.bytes * side).total_cmp(&(a.bytes * side)))
    });
    let mut corners: Vec<FrameCondition> = Vec::new();
    for point in points {
        while let [.., a, b] = corners.as_slice() {
            let turn = (b.seconds - a.seconds) * (point.bytes - a.bytes)
                - (b.bytes - a.bytes) * (point.seconds - a.seconds);
            if turn * side < 0.0 {
                break;
            }
            corners.pop();
        }
        corners.push(point);
    }
    corners
}

/// The bucket that fits trains of frames, each of which found it full: the device had been idle
/// for long enough before. `tolerance_ns` is how far frames may be off the times given; it is
/// doubled up to 64 times until a bucket fits.
/// # Errors
/// No loss, no arrival, a loss that no bucket explains, or a pause before the first loss.
pub fn find_bucket(
    trains: &[&[TrainFrame]],
    tolerance_ns: u64,
) -> Result<BucketEstimate, FindError> {
    let mut found = fit_bucket(trains, tolerance_ns)?;
    let mut trains = trains.to_vec();
    loop {
        let rate = found.rate_high_bps / 8.0;
        let used: Vec<_> = trains.iter().map(|train| before_refill(train, rate)).collect();
        if used.iter().map(|train| train.len()).eq(trains.iter().map(|train| train.len())) {
            return Ok(found);
        }
        found = fit_bucket(&used, tolerance_ns).map_err(|error| match error {
            FindError::NoLoss | FindError::NothingArrived => FindError::Paused,
            other => other,
        })?;
        trains = used;
    }
}

/// The part of a train before the first pause in which a bucket of `rate` (bytes per s)
/// may have filled again.
fn before_refill(frames: &[TrainFrame], rate: f64) -> &[TrainFrame] {
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else { return frames };
    let seconds = |frame: &TrainFrame| frame.sent_ns.saturating_sub(first.sent_ns) as f64 / 1e9;
    let pause = PAUSE_GAPS * seconds(last) / frames.len().saturating_sub(1).max(1) as f64;
    // What the bucket lacks, now and at most.
    let (mut passed, mut before, mut most) = (0.0, 0.0, 0.0_f64);
    for (number, frame) in frames.iter().enumerate() {
        let at = seconds(frame);
        let lacks = passed - rate * at;
        if at - before > pause && lacks <= most * (1.0 - REFILLED) {
            return &frames[..number];
        }
        passed += if frame.arrived { f64::from(frame.bytes) } else { 0.0 };
        most = most.max(passed - rate * at);
        before = at;
    }
    frames
}

/// The bucket that fits trains without such a pause.
fn fit_bucket(trains: &[&[TrainFrame]], tolerance_ns: u64) -> Result<BucketEstimate, FindError> {
    let conditions = TrainConditions::from_trains(trains);
    if conditions.passed.is_empty() {
        return Err(FindError::NothingArrived);
    }
    if conditions.dropped.is_empty() {
        return Err(FindError::NoLoss);
    }
    let least_ns = tolerance_ns.max(1);
    let tolerances = (0..DOUBLINGS_MAX).map(|step| least_ns << step);
    let mut fits = tolerances.filter_map(|ns| Some((ns, conditions.rate_range(ns as f64 / 1e9)?)));
    let (mut tolerance_ns, (mut low, mut high)) = fits.next().ok_or(FindError::NoBucket)?;
    // The least at which a bucket fits leaves it no room: frames were off by up to twice as much.
    if let Some(wider) = fits.next().filter(|_| tolerance_ns > least_ns) {
        (tolerance_ns, (low, high)) = wider;
    }
    let tolerance = tolerance_ns as f64 / 1e9;
    let rate = f64::midpoint(low, high);
    let (shallow, deep) = conditions.depths(rate, tolerance);
    let low_depth = conditions.depths(high, tolerance).0;
    let estimate = BucketEstimate {
        rate_bps: rate * 8.0,
        rate_low_bps: low * 8.0,
        rate_high_bps: high * 8.0,
        burst_bytes: f64::midpoint(shallow, deep),
        // A faster bucket needs less depth.
        burst_low_bytes: low_depth,
        burst_high_bytes: conditions.depths(low, tolerance).1,
        is_shallow: conditions.is_shallow(low_depth, high, tolerance),
        tolerance_ns,
        disagreements: 0,
        frames: trains.iter().map(|train| train.len() as u64).sum(),
    };
    let disagreements = disagreements(&estimate, trains).ok_or(FindError::NoBucket)?;
    Ok(BucketEstimate { disagreements, ..estimate })
}

/// Frames that the estimated bucket treats otherwise than the device did.
fn disagreements(estimate: &BucketEstimate, trains: &[&[TrainFrame]]) -> Option<u64> {
    let rate = BitRate::from_nearest(estimate.rate_bps)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a depth is not negative, and a cast keeps within the range of the type"
    )]
    let burst = Bytes::new(estimate.burst_bytes.round() as u64);
    let full = TokenBucket::new(rate, burst).ok()?;
    let count = |frames: &&[TrainFrame]| {
        let mut bucket = full;
        let differs = |frame: &&TrainFrame| {
            bucket.arrive(frame.sent_ns, frame.bytes).is_none() != frame.arrived
        };
        frames.iter().filter(differs).count() as u64
    };
    Some(trains.iter().map(count).sum())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A train through a planted bucket, with frames up to `noise_ns` late at the policer.
    fn policed(bps: u64, burst: u64, fps: u64, frames: u64, noise_ns: u64) -> Vec<TrainFrame> {
        let rate = BitRate::from_bits_per_sec(bps);
        let mut bucket = TokenBucket::new(rate, Bytes::new(burst)).expect("a bucket");
        let mut state = 1_u64;
        let mut train = even_train(frames, fps, 1000, &[]);
        for frame in &mut train {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let late = if noise_ns > 0 { (state >> 33) % noise_ns } else { 0 };
            frame.arrived = bucket.arrive(frame.sent_ns + late, frame.bytes).is_none();
        }
        train
    }

    fn find_policed(bps: u64, burst: u64, fps: u64, noise_ns: u64) -> BucketEstimate {
        // 2 s: at least 200 frames at the rate of the bucket.
        let train = policed(bps, burst, fps, fps * 2, noise_ns);
        let found = find_bucket(&[&train], noise_ns.max(10)).expect("a bucket");
        let (rate, depth) = (bps as f64, burst as f64);
        let at = format!("{bps} {burst} {fps} {noise_ns}: {found:?}");
        assert!(found.rate_low_bps <= rate * 1.000_001, "{at}");
        assert!(found.rate_high_bps >= rate * 0.999_999, "{at}");
        assert!(found.burst_low_bytes <= depth + 1.0, "{at}");
        assert!(found.burst_high_bytes >= depth - 1.0, "{at}");
        assert!((found.rate_bps / rate - 1.0).abs() < 0.01, "{at}");
        assert!((found.burst_bytes - depth).abs() < 1000.0 + depth * 0.01, "{at}");
        found
    }

    #[test]
    fn a_train_ends_before_a_pause_in_which_the_bucket_may_have_filled_again() {
        // 1000-byte frames at 2000/s through a bucket of 1000 frames/s that holds 5, which is full
        // 5 ms after it was empty.
        for (number, pause_ns, used) in
            [(4, 20_000_000, 4), (100, 20_000_000, 100), (100, 2_000_000, 400), (100, 0, 400)]
        {
            let rate = BitRate::from_bits_per_sec(8_000_000);
            let mut bucket = TokenBucket::new(rate, Bytes::new(5000)).expect("a bucket");
            let mut train = even_train(400, 2000, 1000, &[]);
            for (at, frame) in train.iter_mut().enumerate() {
                frame.sent_ns += if at >= number { pause_ns } else { 0 };
                frame.arrived = bucket.arrive(frame.sent_ns, frame.bytes).is_none();
            }
            assert_eq!(before_refill(&train, 1e6).len(), used, "{number} {pause_ns}");
        }
    }

    #[test]
    fn planted_buckets_are_found_with_intervals_that_hold_them() {
        for bps in [1_000_000, 10_000_000, 12_345_678, 90_000_000] {
            for burst in [4_000, 16_000, 100_000] {
                // 1000 bytes at 100 Mbit/s are 12,500 a second.
                find_policed(bps, burst, 12_500, 0);
                find_policed(bps, burst, 12_500, 20_000);
            }
        }
        find_policed(500_000_000, 250_000, 125_000, 2_000);
    }

    #[test]
    fn a_train_by_hand_gives_the_area_by_hand() {
        // 8 kbit/s = 1000 bytes/s, 2500 bytes deep; 1000 bytes each 0.25 s. Tokens before each:
        // 2500, 1750, 1000, 250, 500, 750, 1000, 250, 500: the 1st, 2nd, 3rd and 7th pass.
        // Passed: b >= 3000 - 0.5 r (3rd) and b >= 4000 - 1.5 r (7th). Dropped: b < 4000 - 1.25 r
        // (6th) and b < 5000 - 2 r (9th). 3rd with 6th and 3rd with 9th: r < 4000 / 3; 7th with
        // 6th: r > 0. One period alone hardly tells a rate.
        let train = even_train(9, 4, 1000, &[0, 1, 2, 6]);
        let found = find_bucket(&[&train], 1).expect("a bucket");
        assert!(found.rate_low_bps < 1.0, "{found:?}");
        assert!((found.rate_high_bps - 8.0 * 4000.0 / 3.0).abs() < 0.1, "{found:?}");
        // At the largest rate 3000 - 0.5 * 1333.3, at the smallest 4000.
        assert!((found.burst_low_bytes - 2333.33).abs() < 0.1, "{found:?}");
        assert!((found.burst_high_bytes - 4000.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn longer_trains_know_the_rate_better() {
        let width = |frames| {
            let train = policed(10_000_000, 16_000, 12_500, frames, 0);
            let found = find_bucket(&[&train], 10).expect("a bucket");
            (found.rate_high_bps - found.rate_low_bps) / found.rate_bps
        };
        // One frame of 1000 bytes in the bytes that the rate let pass.
        assert!(width(2_500) < 0.01);
        assert!(width(25_000) < 0.001);
    }

    #[test]
    fn several_trains_are_taken_together() {
        let one = policed(10_000_000, 50_000, 12_500, 1_000, 0);
        let other = policed(10_000_000, 50_000, 3_000, 2_000, 0);
        let alone = find_bucket(&[&one], 10).expect("a bucket");
        let both = find_bucket(&[&one, &other], 10).expect("a bucket");
        assert_eq!(both.frames, 3_000);
        let width = |bucket: &BucketEstimate| bucket.rate_high_bps - bucket.rate_low_bps;
        assert!(width(&both) <= width(&alone));
    }

    #[test]
    fn a_bucket_that_fills_between_frames_is_marked() {
        // 1000 bytes deep: one frame empties it, and it is full again after 0.4 ms at 20 Mbit/s.
        // Frames are 0.08 ms apart: each 5th passes, 20 Mbit/s. At 19 Mbit/s it is each 6th.
        let train = policed(19_000_000, 1_000, 12_500, 25_000, 0);
        let found = find_bucket(&[&train], 10).expect("a bucket");
        assert!(found.is_shallow, "{found:?}");
        assert!((found.rate_bps / (1e8 / 6.0) - 1.0).abs() < 1e-3, "{found:?}");
        assert!(!find_policed(19_000_000, 2_000, 12_500, 0).is_shallow);
    }

    #[test]
    fn arrivals_alone_find_the_same_bucket() {
        let sent = policed(10_000_000, 16_000, 12_500, 12_500, 0);
        let numbered = (0_u64..).zip(&sent).filter(|(_, frame)| frame.arrived);
        // All of them 30 us later.
        let arrivals: Vec<_> = numbered.map(|(n, frame)| (n, frame.sent_ns + 30_000)).collect();
        let found = find_bucket(&[&train_by_arrival(1000, &arrivals)], 10).expect("a bucket");
        assert!(found.rate_low_bps <= 1e7 && 1e7 <= found.rate_high_bps, "{found:?}");
        assert!((found.burst_bytes - 16_000.0).abs() < 1000.0, "{found:?}");
        // Numbers 0, 3 and 4: two lost in between, at thirds of the time.
        let frames = train_by_arrival(64, &[(0, 100), (3, 400), (4, 500)]);
        let seen: Vec<_> = frames.iter().map(|frame| (frame.sent_ns, frame.arrived)).collect();
        assert_eq!(seen, [(100, true), (200, false), (300, false), (400, true), (500, true)]);
    }

    #[test]
    fn what_is_no_bucket_is_said_in_one_line() {
        let clean = even_train(100, 1000, 1000, &(0..100).collect::<Vec<_>>());
        assert_eq!(find_bucket(&[&clean], 10), Err(FindError::NoLoss));
        let dead = even_train(100, 1000, 1000, &[]);
        assert_eq!(find_bucket(&[&dead], 10), Err(FindError::NothingArrived));
        // Each tenth frame is lost from the start, then none: no bucket does that.
        let some: Vec<u64> = (0..5_000).filter(|n| *n > 2_500 || n % 10 != 3).collect();
        let odd = even_train(5_000, 1000, 1000, &some);
        assert_eq!(find_bucket(&[&odd], 10), Err(FindError::NoBucket));
        assert_eq!(find_bucket(&[], 10), Err(FindError::NothingArrived));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn every_planted_bucket_is_within_the_intervals(
            bps in 2_000_000_u64..90_000_000,
            burst in 2_000_u64..60_000,
        ) {
            find_policed(bps, burst, 12_500, 0);
        }
    }
}
