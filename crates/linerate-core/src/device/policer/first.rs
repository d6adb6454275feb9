//! The first of two buckets: of a train that meets both, the part that the first one alone
//! explains.
//!
//! A train above the peak rate is held at it until the sustained bucket is empty, and at the
//! sustained rate from then on. The longest part from its start that one bucket explains ends
//! where the second one bites.

use super::find::{BucketEstimate, FindError, TrainFrame, find_bucket};

/// Mean gaps between two frames that make a pause of the sender.
const PAUSE_GAPS: u64 = 4;

/// The bucket of the longest first part of a train that one explains, and the length of that part
/// in frames: all of them when one bucket explains the whole train.
///
/// Frames may be off their times by 64 times `tolerance_ns`; that is to stay below the time
/// between two frames at the rate that is looked for. Where they are known to be off by `late_ns`,
/// its interval is as wide as that leaves it, however well they happen to fit.
/// # Errors
/// No loss, no arrival, or a loss that no bucket explains.
pub fn find_first(
    frames: &[TrainFrame],
    tolerance_ns: u64,
    late_ns: u64,
) -> Result<(BucketEstimate, usize), FindError> {
    let honest = |found: BucketEstimate, part: &[TrainFrame]| {
        let wider = (late_ns > found.tolerance_ns).then(|| find_bucket(&[part], late_ns).ok());
        wider.flatten().unwrap_or(found)
    };
    let (found, length) = longest_fitting_part(frames, tolerance_ns, u64::MAX)?;
    if length == frames.len() {
        return Ok((honest(found, frames), length));
    }
    // The first frames that the second bucket drops look like some that are further off their
    // times: far from its end the part tells how far they are.
    let own = find_bucket(&[&frames[..length / 2]], tolerance_ns);
    let most_ns = own.map_or(u64::MAX, |own| own.tolerance_ns.saturating_mul(2));
    let (found, length) = longest_fitting_part(frames, tolerance_ns, most_ns)?;
    let is_exact = found.tolerance_ns <= tolerance_ns;
    let clear = &frames[..length / 4 * 3];
    let bucket = match find_bucket(&[clear], tolerance_ns).ok().filter(|_| !is_exact) {
        Some(bucket) => honest(bucket, clear),
        None => honest(found, &frames[..length]),
    };
    Ok((bucket, length))
}

/// True when the train met another bucket before `found`. A train that is faster than both empties
/// the bucket that stands first, whatever the second one drops, and from then on no more than its
/// rate arrives. That shows up to the first pause.
pub fn is_behind_another(frames: &[TrainFrame], found: &BucketEstimate) -> bool {
    let (rate, depth) = (found.rate_high_bps / 8.0, found.burst_high_bytes);
    let begin_ns = frames.first().map_or(0, |frame| frame.sent_ns);
    let span_ns = frames.last().map_or(0, |frame| frame.sent_ns - begin_ns);
    let pause_ns = PAUSE_GAPS * span_ns / frames.len().max(1) as u64;
    let (mut level, mut granted, mut last_ns) = (depth, None, begin_ns);
    for frame in frames {
        let bytes = f64::from(frame.bytes);
        let gap_ns = frame.sent_ns.saturating_sub(last_ns);
        last_ns = last_ns.max(frame.sent_ns);
        let comes = rate * gap_ns as f64 / 1e9;
        level = (level + comes).min(depth);
        match &mut granted {
            None if level >= bytes => level -= bytes,
            // What it holds is less than a frame; times may be off by another.
            None => granted = Some(2.0 * bytes),
            Some(_) if gap_ns > pause_ns => return false,
            Some(granted) => {
                *granted += comes;
                if frame.arrived && *granted < bytes {
                    return true;
                }
                *granted -= if frame.arrived { bytes } else { 0.0 };
            }
        }
    }
    false
}

/// Longest first part of a train that one bucket explains with frames off their times by `most_ns`
/// at most: that bucket, and the length of the part.
fn longest_fitting_part(
    frames: &[TrainFrame],
    tolerance_ns: u64,
    most_ns: u64,
) -> Result<(BucketEstimate, usize), FindError> {
    let first = |length: usize| {
        let found = find_bucket(&[&frames[..length]], tolerance_ns)?;
        if found.tolerance_ns > most_ns { Err(FindError::NoBucket) } else { Ok(found) }
    };
    if let Some(found) = bucket_unless_several(first(frames.len()))? {
        return Ok((found, frames.len()));
    }
    // One frame that passed has no loss: a shorter part of a part that fits does fit too.
    let (mut fits, mut fails) = (0, frames.len());
    let mut found = Err(FindError::NoBucket);
    while fails - fits > 1 {
        let middle = fits.midpoint(fails);
        match first(middle) {
            Err(FindError::NoBucket) => fails = middle,
            Err(FindError::NoLoss | FindError::NothingArrived | FindError::Paused) => fits = middle,
            Ok(bucket) => {
                fits = middle;
                found = Ok(bucket);
            }
        }
    }
    found.map(|bucket| (bucket, fits))
}

/// Frames of a train that say something of a second bucket behind the first, and how many bytes
/// deeper than they say that second one may be.
///
/// A sender that makes up for a pause sends faster than the first bucket allows. What that one may
/// have dropped says nothing of the second, and is left out; but where the second stands before
/// it, such frames have spent_bytes of its depth.
pub fn frames_for_second(frames: &[TrainFrame], first: &BucketEstimate) -> (Vec<TrainFrame>, f64) {
    let (rate, depth) = (first.rate_low_bps / 8.0, first.burst_low_bytes);
    let slack = rate * first.tolerance_ns as f64 / 1e9;
    let (mut level, mut last_ns) = (depth, frames.first().map_or(0, |frame| frame.sent_ns));
    let (mut kept, mut spent_bytes, mut is_empty) = (Vec::with_capacity(frames.len()), 0.0, false);
    for frame in frames {
        let bytes = f64::from(frame.bytes);
        let gap_ns = frame.sent_ns.saturating_sub(last_ns);
        last_ns = frame.sent_ns;
        level = (level + rate * gap_ns as f64 / 1e9).min(depth);
        if frame.arrived || level >= bytes + slack {
            kept.push(*frame);
            is_empty |= !frame.arrived;
        } else if !is_empty {
            spent_bytes += bytes;
        }
        if frame.arrived {
            level = (level - bytes).max(0.0);
        }
    }
    (kept, spent_bytes)
}

/// A bucket, none where more than one is at work, or the reason why none can be told.
fn bucket_unless_several(
    found: Result<BucketEstimate, FindError>,
) -> Result<Option<BucketEstimate>, FindError> {
    match found {
        Ok(bucket) => Ok(Some(bucket)),
        Err(FindError::NoBucket) => Ok(None),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::find::even_train;
    use super::*;
    use crate::theory::token_bucket::TokenBucket;
    use crate::units::{BitRate, Bytes};

    /// A train of 64 bytes at 8000 frames/s through buckets one behind the other.
    fn through(buckets: &[(u64, u64)], frames: u64) -> Vec<TrainFrame> {
        let bucket = |&(fps, depth): &(u64, u64)| {
            let rate = BitRate::from_bits_per_sec(fps * 512);
            TokenBucket::new(rate, Bytes::new(depth * 64)).expect("a bucket")
        };
        let mut buckets: Vec<TokenBucket> = buckets.iter().map(bucket).collect();
        let mut frames = even_train(frames, 8000, 64, &[]);
        for frame in &mut frames {
            let mut passes =
                |bucket: &mut TokenBucket| bucket.arrive(frame.sent_ns, frame.bytes).is_none();
            frame.arrived = buckets.iter_mut().all(&mut passes);
        }
        frames
    }

    #[test]
    fn the_peak_rule_is_found_in_front_of_the_sustained_one() {
        // 1000/s with 5 at once; 250/s with 26 at once is empty after (26 - 5) / 750 s = 28 ms.
        let frames = through(&[(1000, 5), (250, 26)], 1600);
        let (found, length) = find_first(&frames, 1000, 0).expect("a bucket");
        assert!((found.rate_bps / 512_000.0 - 1.0).abs() < 0.01, "{found:?}");
        assert!((found.burst_bytes / 64.0 - 5.0).abs() < 0.2, "{found:?}");
        // The frame that the second drops first comes within one time at the peak, 1 ms, after it.
        let ends_ms = length as f64 / 8.0;
        assert!((28.0..30.5).contains(&ends_ms), "{ends_ms}");
    }

    #[test]
    fn which_of_two_rules_stands_first_shows_in_what_the_other_let_pass() {
        let sustained = find_bucket(&[&through(&[(250, 26)], 1600)], 1000).expect("a bucket");
        assert!(is_behind_another(&through(&[(1000, 5), (250, 26)], 1600), &sustained));
        assert!(!is_behind_another(&through(&[(250, 26), (1000, 5)], 1600), &sustained));
        assert!(!is_behind_another(&through(&[(250, 26)], 1600), &sustained));
    }

    #[test]
    fn one_bucket_explains_its_whole_train() {
        let frames = through(&[(1000, 5)], 1600);
        let (found, length) = find_first(&frames, 1000, 0).expect("a bucket");
        assert_eq!(length, frames.len());
        assert!((found.rate_bps / 512_000.0 - 1.0).abs() < 0.001, "{found:?}");
        assert_eq!(find_first(&through(&[(8001, 5)], 100), 1000, 0).err(), Some(FindError::NoLoss));
    }

    #[test]
    fn what_the_first_bucket_may_have_dropped_says_nothing_of_the_second() {
        // A peak rule of 1000/s that lets 5 pass at once; after 10 ms at 900/s twenty come at once.
        let first = BucketEstimate {
            rate_bps: 512_000.0,
            rate_low_bps: 512_000.0,
            rate_high_bps: 512_000.0,
            burst_bytes: 320.0,
            burst_low_bytes: 320.0,
            burst_high_bytes: 320.0,
            is_shallow: false,
            tolerance_ns: 0,
            disagreements: 0,
            frames: 0,
        };
        let frame = |sent_ns, arrived| TrainFrame { sent_ns, bytes: 64, arrived };
        let mut frames: Vec<_> = (0..10).map(|at| frame(at * 1_111_111, true)).collect();
        frames.extend((0..20).map(|at| frame(30_000_000, at < 5)));
        // Ten ms later one more is lost, which the peak rule lets pass.
        frames.push(frame(40_000_000, false));
        frames.push(frame(40_000_000, true));
        let (kept, spent_bytes) = frames_for_second(&frames, &first);
        assert_eq!((kept.len(), spent_bytes), (17, 15.0 * 64.0));
        assert_eq!(kept[15], frame(40_000_000, false));
    }
}
