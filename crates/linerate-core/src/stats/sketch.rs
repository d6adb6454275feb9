//! A sketch of very many samples that adds up: of two sketches the sketch of all their samples.
//!
//! Percentiles of an hour do not add up to those of a day, whatever mean is taken of them; counts
//! by bin do. Bins are those of HdrHistogram with a mantissa of seven bits: values below 256 have
//! one each, larger ones fall in bins no wider than 1/128 of their value. A percentile is the
//! highest value of its bin, or the largest sample, so it is at most 1/128 (0.8 %) above the true
//! one and never below. Only bins that hold samples are kept, so that a sketch of delays that stay
//! within a factor of two has at most 128 of them.
//!
//! # Source
//! Gil Tene's HdrHistogram for the bins; the percentile is that of RFC 2330 §11.3. The numbers of
//! the stored form are LEB128 (DWARF 5 §7.6).

use std::collections::BTreeMap;

use super::quantile::weighted_quantile;

/// Bits of a value that a bin keeps beside the leading one.
const BITS: u32 = 7;
/// Bins of a factor of two.
const BINS: u32 = 1 << BITS;
/// The form of the bytes.
const FORM: u8 = 1;
/// Bins of all of `u64`.
const BIN_MAX: u32 = (64 - BITS) * BINS + BINS - 1;

/// Samples by bin; two of the same samples are equal however they were put together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    bins: BTreeMap<u32, u64>,
    count: u64,
    min: u64,
    max: u64,
}

impl Sketch {
    /// Adds `times` samples of the same value.
    pub fn record_many(&mut self, sample: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.min = if self.count == 0 { sample } else { self.min.min(sample) };
        self.max = self.max.max(sample);
        self.count = self.count.saturating_add(times);
        let bin = self.bins.entry(bin_of_value(sample)).or_default();
        *bin = bin.saturating_add(times);
    }

    /// Adds one sample.
    pub fn record(&mut self, sample: u64) {
        self.record_many(sample, 1);
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count = self.count.saturating_add(other.count);
        for (bin, times) in &other.bins {
            let mine = self.bins.entry(*bin).or_default();
            *mine = mine.saturating_add(*times);
        }
    }

    /// Number of samples.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The smallest sample.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest sample.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The percentile of `share` (0.99 for the 99th), at most 1/128 above the true one; `None`
    /// without samples and for a share outside 0 … 1.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        weighted_quantile(self.bin_counts(), self.count, share)
    }

    /// Bins that hold samples, rising: the highest value of the bin (of the last, the largest
    /// sample) and its count.
    pub fn bin_counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.iter().map(|(bin, times)| (highest(*bin).min(self.max), *times))
    }

    /// The sum of all samples, each taken as the highest value of its bin: at most 1/128 too much.
    pub fn sum(&self) -> f64 {
        self.bin_counts().map(|(value, times)| value as f64 * times as f64).sum()
    }

    /// Samples at or below a value, of those bins that lie there as a whole; it never falls when
    /// samples are added.
    pub fn at_most(&self, value: u64) -> u64 {
        let below = self.bins.iter().take_while(|(bin, _)| highest(**bin) <= value);
        below.fold(0, |sum, (_, times)| sum.saturating_add(*times))
    }

    /// The stored form: a byte for the form, the smallest and the largest sample, then of each bin
    /// its distance from the one before and its count. Some two bytes a bin.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORM];
        if self.count == 0 {
            return bytes;
        }
        write_varint(&mut bytes, self.min);
        write_varint(&mut bytes, self.max);
        let mut before = 0;
        for (bin, times) in &self.bins {
            write_varint(&mut bytes, u64::from(bin - before));
            write_varint(&mut bytes, *times);
            before = *bin;
        }
        bytes
    }

    /// The sketch of a stored form; `None` of bytes that are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (form, mut rest) = bytes.split_first()?;
        if *form != FORM {
            return None;
        }
        let mut sketch = Self::default();
        if rest.is_empty() {
            return Some(sketch);
        }
        (sketch.min, sketch.max) = (read_varint(&mut rest)?, read_varint(&mut rest)?);
        let mut place = 0_u32;
        while !rest.is_empty() {
            let (further, times) = (read_varint(&mut rest)?, read_varint(&mut rest)?);
            place = place.checked_add(u32::try_from(further).ok()?)?;
            let again = further == 0 && !sketch.bins.is_empty();
            if place > BIN_MAX || times == 0 || again {
                return None;
            }
            sketch.count = sketch.count.checked_add(times)?;
            sketch.bins.insert(place, times);
        }
        let (first, last) = (sketch.bins.keys().next()?, sketch.bins.keys().next_back()?);
        (bin_of_value(sketch.min) == *first
            && bin_of_value(sketch.max) == *last
            && sketch.min <= sketch.max)
            .then_some(sketch)
    }
}

/// The bin of a value.
const fn bin_of_value(value: u64) -> u32 {
    let shift = (63 - (value | 1).leading_zeros()).saturating_sub(BITS);
    #[expect(clippy::cast_possible_truncation, reason = "below 256 after the shift")]
    let mantissa = (value >> shift) as u32;
    shift * BINS + mantissa
}

/// The highest value of a bin.
const fn highest(bin: u32) -> u64 {
    if bin < 2 * BINS {
        return bin as u64;
    }
    let shift = bin / BINS - 1;
    let mantissa = (bin - shift * BINS) as u64;
    (mantissa << shift) | ((1 << shift) - 1)
}

fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for at in 0..10_u32 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        // The tenth byte has the one bit that is left.
        if at == 9 && part > 1 {
            return None;
        }
        value |= part << (7 * at);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

impl Extend<(u64, u64)> for Sketch {
    fn extend<I: IntoIterator<Item = (u64, u64)>>(&mut self, pairs: I) {
        pairs.into_iter().for_each(|(value, times)| self.record_many(value, times));
    }
}

impl FromIterator<u64> for Sketch {
    fn from_iter<I: IntoIterator<Item = u64>>(samples: I) -> Self {
        let mut sketch = Self::default();
        sketch.extend(samples.into_iter().map(|sample| (sample, 1)));
        sketch
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::Sorted;

    #[test]
    fn bins_are_those_of_the_histogram() {
        // By hand: up to 255 one value each; 256 and 257 share one, 512 to 515, 1000 is in 1000 to
        // 1003 (a width of 4), and the largest value is in the last bin.
        for (value, highest_of_its_bin) in [
            (0, 0),
            (1, 1),
            (255, 255),
            (256, 257),
            (257, 257),
            (512, 515),
            (1000, 1003),
            (1_000_000, 1_003_519),
            (u64::MAX, u64::MAX),
        ] {
            assert_eq!(highest(bin_of_value(value)), highest_of_its_bin, "{value}");
        }
        assert_eq!(bin_of_value(u64::MAX), BIN_MAX);
        for number in 1..=BIN_MAX {
            let first = highest(number - 1) + 1;
            assert_eq!((bin_of_value(first), bin_of_value(highest(number))), (number, number));
            assert!(highest(number) - first <= first / 128, "{number}");
        }
    }

    #[test]
    fn the_percentile_of_a_day_is_not_the_mean_of_those_of_its_hours() {
        // One hour of 100 ms in a day of 1 ms: by hand 1/24 of all samples are above 1 ms, so the
        // 99th percentile is 100 ms, and the mean of the hours' is 5.1 ms.
        let hour = |ms: u64| -> Sketch { (0..100).map(|_| ms * 1_000_000).collect() };
        let mut day = Sketch::default();
        for at in 0..24 {
            day.merge(&hour(if at == 7 { 100 } else { 1 }));
        }
        assert_eq!(day.quantile(0.99), Some(100_000_000));
        assert_eq!((day.count(), day.min(), day.max()), (2400, Some(1_000_000), Some(100_000_000)));
        assert_eq!(day.at_most(2_000_000), 2300);
        // 999,424 to 1,003,519 is one bin: not below 1 ms as a whole, whatever is in it.
        assert_eq!((day.at_most(1_000_000), day.at_most(1_003_519)), (0, 2300));
        let (sum, exact) = (day.sum(), 2300.0 * 1e6 + 100.0 * 1e8);
        assert!(sum >= exact && sum <= exact * (1.0 + 1.0 / 128.0), "{sum} {exact}");
    }

    #[test]
    fn the_stored_form_is_that_of_a_hand_made_one() {
        let sketch: Sketch = [3, 3, 300].into_iter().collect();
        // 300 is LEB128 0xac 0x02; its bin is 128 + 150 = 278, 275 behind 3: 0x93 0x02.
        assert_eq!(sketch.to_bytes(), [1, 3, 0xac, 0x02, 3, 2, 0x93, 0x02, 1]);
        assert_eq!(Sketch::from_bytes(&[1]), Some(Sketch::default()));
        for wrong in [
            &[][..],
            &[2],
            &[1, 3],
            &[1, 3, 3],
            &[1, 3, 3, 3, 0],
            &[1, 3, 3, 4, 1],
            &[1, 3, 3, 3, 1, 0, 1],
            &[1, 3, 0x80],
            &[1, 3, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 1],
        ] {
            assert_eq!(Sketch::from_bytes(wrong), None, "{wrong:?}");
        }
    }

    fn spread() -> impl Strategy<Value = Vec<u64>> {
        // Of every order of magnitude.
        prop::collection::vec((any::<u64>(), 0_u32..64).prop_map(|(bits, by)| bits >> by), 0..120)
    }

    proptest! {
        #[test]
        fn the_sketch_of_two_is_the_sketch_of_all(left in spread(), right in spread()) {
            let of = |samples: &[u64]| samples.iter().copied().collect::<Sketch>();
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let whole = of(&[left, right].concat());
            prop_assert_eq!(&merged, &whole);
            prop_assert_eq!(Sketch::from_bytes(&merged.to_bytes()), Some(whole));
        }

        #[test]
        fn a_percentile_is_the_exact_one_or_at_most_a_128th_above(
            samples in spread(), permille in 0_u64..=1000,
        ) {
            prop_assume!(!samples.is_empty());
            let share = permille as f64 / 1000.0;
            let sketch: Sketch = samples.iter().copied().collect();
            let exact = Sorted::new(samples).quantile(share).expect("there are samples");
            let found = sketch.quantile(share).expect("there are samples");
            prop_assert!((exact..=exact.saturating_add(exact / 128)).contains(&found));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Sketch::from_bytes(&bytes);
            let led: Vec<u8> = [1].into_iter().chain(bytes).collect();
            if let Some(sketch) = Sketch::from_bytes(&led) {
                prop_assert_eq!(Sketch::from_bytes(&sketch.to_bytes()), Some(sketch));
            }
        }
    }
}
