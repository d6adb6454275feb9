//! The first of two buckets: of a train that meets both, the part that the first one alone
//! explains.
//!
//! A train above the peak rate is held at it until the sustained bucket is empty, and at the
//! sustained rate from then on. The longest part from its start that one bucket explains ends
//! where the second one bites.

use super::find::{BucketEstimate, FindError, TrainFrame, find_bucket};

/// The bucket of the longest first part of a train that one explains, and the length of that part
/// in frames: all of them when one bucket explains the whole train.
///
/// Frames may be off their times by 64 times `tolerance_ns`; that is to stay below the time
/// between two frames at the rate that is looked for.
/// # Errors
/// No loss, no arrival, or a loss that no bucket explains.
pub fn find_first(
    frames: &[TrainFrame],
    tolerance_ns: u64,
) -> Result<(BucketEstimate, usize), FindError> {
    let first = |length: usize| find_bucket(&[&frames[..length]], tolerance_ns);
    if let Some(found) = fitted(first(frames.len()))? {
        return Ok((found, frames.len()));
    }
    // One frame that passed has no loss: a shorter part of a part that fits does fit too.
    let (mut fits, mut fails) = (0, frames.len());
    let mut found = Err(FindError::NoBucket);
    while fails - fits > 1 {
        let middle = fits.midpoint(fails);
        match first(middle) {
            Err(FindError::NoBucket) => fails = middle,
            Err(FindError::NoLoss | FindError::NothingArrived) => fits = middle,
            Ok(bucket) => {
                fits = middle;
                found = Ok(bucket);
            }
        }
    }
    found.map(|bucket| (bucket, fits))
}

/// A bucket, none where more than one is at work, or why nothing can be said of any.
fn fitted(found: Result<BucketEstimate, FindError>) -> Result<Option<BucketEstimate>, FindError> {
    match found {
        Ok(bucket) => Ok(Some(bucket)),
        Err(FindError::NoBucket) => Ok(None),
        Err(other) => Err(other),
    }
}

#[cfg(test)]
mod tests {
    use super::super::find::train;
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
        let mut frames = train(frames, 8000, 64, &[]);
        for frame in &mut frames {
            let mut passes = |it: &mut TokenBucket| it.arrive(frame.sent_ns, frame.bytes).is_none();
            frame.arrived = buckets.iter_mut().all(&mut passes);
        }
        frames
    }

    #[test]
    fn the_peak_rule_is_found_in_front_of_the_sustained_one() {
        // 1000/s with 5 at once; 250/s with 26 at once is empty after (26 - 5) / 750 s = 28 ms.
        let frames = through(&[(1000, 5), (250, 26)], 1600);
        let (found, length) = find_first(&frames, 1000).expect("a bucket");
        assert!((found.rate_bps / 512_000.0 - 1.0).abs() < 0.01, "{found:?}");
        assert!((found.burst_bytes / 64.0 - 5.0).abs() < 0.2, "{found:?}");
        // The frame that the second drops first comes within one time at the peak, 1 ms, after it.
        let ends_ms = length as f64 / 8.0;
        assert!((28.0..30.5).contains(&ends_ms), "{ends_ms}");
    }

    #[test]
    fn one_bucket_explains_its_whole_train() {
        let frames = through(&[(1000, 5)], 1600);
        let (found, length) = find_first(&frames, 1000).expect("a bucket");
        assert_eq!(length, frames.len());
        assert!((found.rate_bps / 512_000.0 - 1.0).abs() < 0.001, "{found:?}");
        assert_eq!(find_first(&through(&[(8001, 5)], 100), 1000).err(), Some(FindError::NoLoss));
    }
}
