//! A bounded, evenly thinned list of signed samples, for percentiles of values whose origin is not
//! known until the end, such as delays between clocks that do not agree.
//!
//! Every sample is kept until the list is full; then every second one is dropped, and from there on
//! only every second one is taken in, and so on. Extremes and count are of all samples.

use super::Sorted;

/// The most samples that are kept.
const KEPT_MAX: usize = 65_536;

/// An evenly thinned list.
#[derive(Clone, Debug, Default)]
pub struct Thinned {
    kept: Vec<i64>,
    /// Binary logarithm of the samples of which one is kept.
    shift: u32,
    count: u64,
    extremes: Option<(i64, i64)>,
}

impl Thinned {
    /// Adds one sample.
    #[inline]
    pub fn record(&mut self, sample: i64) {
        let (low, high) = self.extremes.unwrap_or((sample, sample));
        self.extremes = Some((low.min(sample), high.max(sample)));
        if self.count & ((1 << self.shift) - 1) == 0 {
            if self.kept.len() == KEPT_MAX {
                self.drop_every_second();
            }
            // After thinning, this one may be between those that stay.
            if self.count & ((1 << self.shift) - 1) == 0 {
                self.kept.push(sample);
            }
        }
        self.count += 1;
    }

    fn drop_every_second(&mut self) {
        let mut index = 0;
        self.kept.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.shift += 1;
    }

    /// Samples that were added.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Smallest and largest of all samples.
    pub const fn extremes(&self) -> Option<(i64, i64)> {
        self.extremes
    }

    /// The kept samples less the smallest of all, sorted.
    pub fn above_smallest(&self) -> Sorted {
        let low = self.extremes.map_or(0, |(low, _)| low);
        Sorted::new(self.kept.iter().map(|sample| sample.abs_diff(low)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_samples_are_kept_until_the_list_is_full() {
        let mut thinned = Thinned::default();
        [5, -3, 9].into_iter().for_each(|sample| thinned.record(sample));
        assert_eq!(thinned.above_smallest().samples(), [0, 8, 12]);
        assert_eq!((thinned.count(), thinned.extremes()), (3, Some((-3, 9))));
    }

    #[test]
    fn a_long_run_is_thinned_evenly_and_keeps_its_extremes() {
        let mut thinned = Thinned::default();
        // 300,000 fit in 65,536 places at one in eight: 37,500.
        (0..300_000).for_each(|sample| thinned.record(sample));
        let sorted = thinned.above_smallest();
        assert_eq!(sorted.samples().len(), 37_500);
        assert!(sorted.samples().iter().all(|sample| sample % 8 == 0));
        assert_eq!(thinned.extremes(), Some((0, 299_999)));
    }

    #[test]
    fn clocks_at_the_ends_of_their_range_do_not_overflow() {
        let mut thinned = Thinned::default();
        [i64::MIN, i64::MAX].into_iter().for_each(|sample| thinned.record(sample));
        assert_eq!(thinned.above_smallest().samples(), [0, u64::MAX]);
    }
}
