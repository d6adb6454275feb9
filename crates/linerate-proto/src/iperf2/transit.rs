//! One-way delays of a stream by the wall clocks of both ends: valid only where these are
//! synchronised, as on one host.
//!
//! Mean and squares follow Welford's recurrence (Knuth, TAOCP vol. 2, §4.2.2), as in iperf 2.1, so
//! that reports agree with its own.

use super::read_be_u32;

/// Words of the transit times in a report.
pub(super) const WORDS: usize = 15;

/// Statistics of the one-way delays so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Transit {
    /// Number of datagrams.
    pub n: u32,
    /// Smallest delay, in microseconds; negative where the clocks disagree.
    pub min_us: i64,
    /// Largest delay, in microseconds.
    pub max_us: i64,
    /// Mean delay, in microseconds.
    pub mean_us: f64,
    /// Sum of the squared distances from the mean, in microseconds squared.
    pub squares_us2: f64,
}

impl Transit {
    /// Adds the delay of one datagram.
    pub fn record(&mut self, delay_us: i64) {
        let first = self.n == 0;
        self.n = self.n.saturating_add(1);
        self.min_us = if first { delay_us } else { self.min_us.min(delay_us) };
        self.max_us = if first { delay_us } else { self.max_us.max(delay_us) };
        let distance = delay_us as f64 - self.mean_us;
        self.mean_us += distance / f64::from(self.n);
        self.squares_us2 += distance * (delay_us as f64 - self.mean_us);
    }

    /// Standard deviation of the sample, in microseconds; `None` for fewer than two datagrams.
    pub fn deviation_us(&self) -> Option<f64> {
        (self.n > 1).then(|| (self.squares_us2 / f64::from(self.n - 1)).sqrt())
    }

    /// The 15 words of a report on a test of `span_us`.
    pub(super) fn report_words(self, span_us: u64) -> [u32; WORDS] {
        let sum_us = self.mean_us * f64::from(self.n);
        let times = [self.min_us, self.max_us, sum_us.round() as i64, self.mean_us.round() as i64];
        let mut words = [0; WORDS];
        for (pair, time) in words.chunks_exact_mut(2).zip(times) {
            pair[0] = (time / 1_000_000) as i32 as u32;
            pair[1] = (time % 1_000_000) as i32 as u32;
        }
        words[8] = self.squares_us2 as u32;
        words[9] = (self.squares_us2.fract() * 1e6).round() as u32;
        words[12] = self.n;
        // From gaps and their time clients compute the datagrams a second.
        words[13] = (f64::from(self.n) * 1e6 / span_us.max(1) as f64) as u32;
        words[14] = 1;
        words
    }

    /// Parses the words of a report; `None` where no datagram was counted or a field is invalid.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let at = |index: usize| read_be_u32(bytes, index * 4);
        let time = |index| {
            let (seconds, micros) = (at(index)?.cast_signed(), at(index + 1)?.cast_signed());
            let sound = micros.unsigned_abs() < 1_000_000;
            sound.then(|| i64::from(seconds) * 1_000_000 + i64::from(micros))
        };
        let n = at(12).filter(|n| *n > 0)?;
        let parsed = Self {
            n,
            min_us: time(0)?,
            max_us: time(2)?,
            // The seconds of the sum overflow soon, and the mean is precise enough.
            mean_us: time(6)? as f64,
            squares_us2: f64::from(at(8)?) + f64::from(at(9)?.min(999_999)) / 1e6,
        };
        Some(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_of_2_4_and_9_us_have_a_mean_of_5_and_squares_of_26() {
        // (2 - 5)^2 + (4 - 5)^2 + (9 - 5)^2 = 9 + 1 + 16; over two: 13.
        let mut transit = Transit::default();
        [4, 2, 9].into_iter().for_each(|us| transit.record(us));
        assert_eq!((transit.n, transit.min_us, transit.max_us), (3, 2, 9));
        assert!((transit.mean_us - 5.0).abs() < 1e-12, "{transit:?}");
        assert!((transit.squares_us2 - 26.0).abs() < 1e-12, "{transit:?}");
        assert!(transit.deviation_us().is_some_and(|us| (us - 13_f64.sqrt()).abs() < 1e-12));
    }

    #[test]
    fn a_clock_behind_gives_negative_delays_that_survive_the_report() {
        let mut transit = Transit::default();
        [-1_500_000, -500_000].into_iter().for_each(|us| transit.record(us));
        let bytes: Vec<u8> =
            transit.report_words(2_000_000).into_iter().flat_map(u32::to_be_bytes).collect();
        let read = Transit::parse(&bytes).expect("two delays");
        assert_eq!((read.min_us, read.max_us, read.n), (-1_500_000, -500_000, 2));
        assert!((read.mean_us + 1_000_000.0).abs() < 1e-9, "{read:?}");
    }
}
