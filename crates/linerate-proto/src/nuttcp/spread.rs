//! Minimum, mean and maximum of jitter (`-j`) and one-way delay (`-o`) at a receiver of nuttcp
//! 7.0.1 and newer, in milliseconds; lines are written and parsed. nuttcp's jitter is the
//! difference of the gap between two arrivals from the gap of the pace; the delay is by the clocks
//! of both ends.

/// Bit of the parameters: show the minimum.
const LEAST: u8 = 1;
/// Bit of the parameters: show the mean.
const MEAN: u8 = 2;
/// Bit of the parameters: show the maximum, the default of `-j`.
pub const MOST: u8 = 4;
/// Bit of the parameters: count jitter only between consecutive datagrams of the transmitter.
pub const IN_ORDER: u8 = 8;

/// Quantity of a [`NuttcpTimeSpread`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    /// Difference of the gap between arrivals from the gap of the pace.
    Jitter,
    /// One-way delay from the transmitter.
    Delay,
}

impl Timed {
    const fn printed_names(self) -> (&'static str, &'static str) {
        match self {
            Self::Jitter => ("jitter", "Jitter"),
            Self::Delay => ("OWD", "OWD"),
        }
    }
}

/// Minimum, mean and maximum of times so far, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NuttcpTimeSpread {
    /// Number of times.
    pub n: u64,
    /// Smallest time in milliseconds.
    pub least_ms: f64,
    /// Mean time in milliseconds.
    pub mean_ms: f64,
    /// Largest time in milliseconds.
    pub most_ms: f64,
}

impl NuttcpTimeSpread {
    /// Adds one time.
    pub fn record(&mut self, ms: f64) {
        let first = self.n == 0;
        self.n += 1;
        self.least_ms = if first { ms } else { self.least_ms.min(ms) };
        self.most_ms = if first { ms } else { self.most_ms.max(ms) };
        self.mean_ms += (ms - self.mean_ms) / self.n as f64;
    }

    /// A summary line without its prefix and newline.
    pub fn to_line(self, of: Timed, parse: bool) -> String {
        let (word, _) = of.printed_names();
        let Self { least_ms, mean_ms, most_ms, .. } = self;
        if parse {
            return format!(
                "msmin{word}={least_ms:.4} msavg{word}={mean_ms:.4} msmax{word}={most_ms:.4}"
            );
        }
        format!(
            "min-{word} = {least_ms:.4} ms, avg-{word} = {mean_ms:.4} ms, \
             max-{word} = {most_ms:.4} ms"
        )
    }

    /// Columns at the end of an interval line: those of the three that `wanted` selects.
    pub fn columns(self, of: Timed, wanted: u8, parse: bool) -> String {
        let (word, title) = of.printed_names();
        let three = [
            (LEAST, "min", "Min", self.least_ms),
            (MEAN, "avg", "Avg", self.mean_ms),
            (MOST, "max", "Max", self.most_ms),
        ];
        let shown = three.into_iter().filter(|(bit, ..)| self.n > 0 && wanted & bit != 0);
        let columns = shown.map(|(_, small, large, ms)| match parse {
            true => format!(" ms{small}{word}={ms:.4}"),
            false => format!(" {ms:.4} ms{large}{title}"),
        });
        columns.collect()
    }

    /// Parses a summary line after its prefix; `None` for any other line.
    pub fn parse(text: &str) -> Option<(Timed, Self)> {
        let of = [Timed::Jitter, Timed::Delay];
        let of = of.into_iter().find(|of| {
            let (word, _) = of.printed_names();
            text.starts_with(&format!("min-{word} = "))
                || text.starts_with(&format!("msmin{word}="))
        })?;
        let number = |word: &str| word.rsplit('=').next()?.parse::<f64>().ok();
        let numbers = text.split_whitespace().filter_map(number).filter(|ms| ms.is_finite());
        let numbers: Vec<f64> = numbers.collect();
        let [least_ms, mean_ms, most_ms] = numbers[..] else { return None };
        Some((of, Self { n: 1, least_ms, mean_ms, most_ms }))
    }
}

/// Jitter and delay of arrivals, of the whole test and since the last interval line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NuttcpArrivals {
    gap_ms: Option<f64>,
    last_ns: Option<u64>,
    /// Jitter of the whole test.
    pub jitter: NuttcpTimeSpread,
    /// Jitter since the last interval line.
    pub jitter_row: NuttcpTimeSpread,
    /// One-way delays of the whole test.
    pub delay: NuttcpTimeSpread,
    /// One-way delays since the last interval line.
    pub delay_row: NuttcpTimeSpread,
}

impl NuttcpArrivals {
    /// Arrivals of datagrams whose pace has this gap; without a pace there is no jitter.
    pub fn from_gap_ms(gap_ms: Option<f64>) -> Self {
        Self { gap_ms, ..Self::default() }
    }

    /// Adds a datagram that arrived at `now_ns` by the wall clock. Its gap counts only if it is the
    /// `neighbour` of the previous one; `sent_us` is its time of sending, where delay is requested.
    pub fn record(&mut self, now_ns: u64, neighbour: bool, sent_us: Option<u64>) {
        let before = self.last_ns.replace(now_ns).filter(|_| neighbour);
        if let (Some(before), Some(gap_ms)) = (before, self.gap_ms) {
            let ms = (now_ns.wrapping_sub(before).cast_signed() as f64 / 1e6 - gap_ms).abs();
            self.jitter.record(ms);
            self.jitter_row.record(ms);
        }
        if let Some(sent_us) = sent_us {
            let ms = (now_ns / 1000).wrapping_sub(sent_us).cast_signed() as f64 / 1e3;
            self.delay.record(ms);
            self.delay_row.record(ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// nuttcp 7.3.3 -u -j -o, as its server told it, and `-fparse`.
    #[test]
    fn lines_are_those_of_the_original_and_read_again() {
        let spread = NuttcpTimeSpread { n: 3, least_ms: 0.0011, mean_ms: 0.1651, most_ms: 25.7244 };
        for (of, parse, line) in [
            (
                Timed::Jitter,
                false,
                "min-jitter = 0.0011 ms, avg-jitter = 0.1651 ms, max-jitter = 25.7244 ms",
            ),
            (Timed::Delay, false, "min-OWD = 0.0011 ms, avg-OWD = 0.1651 ms, max-OWD = 25.7244 ms"),
            (Timed::Jitter, true, "msminjitter=0.0011 msavgjitter=0.1651 msmaxjitter=25.7244"),
            (Timed::Delay, true, "msminOWD=0.0011 msavgOWD=0.1651 msmaxOWD=25.7244"),
        ] {
            assert_eq!(spread.to_line(of, parse), line);
            assert_eq!(
                NuttcpTimeSpread::parse(line),
                Some((of, NuttcpTimeSpread { n: 1, ..spread }))
            );
            for cut in 0..line.len() - 8 {
                let _ = NuttcpTimeSpread::parse(&line[..cut]);
            }
        }
        assert_eq!(NuttcpTimeSpread::parse("min-jitter = nan ms, avg-jitter = 1 ms"), None);
        let columns = |of, wanted, parse| spread.columns(of, wanted, parse);
        assert_eq!(columns(Timed::Jitter, MOST, false), " 25.7244 msMaxJitter");
        assert_eq!(columns(Timed::Delay, MEAN, false), " 0.1651 msAvgOWD");
        assert_eq!(
            columns(Timed::Jitter, LEAST | MEAN, true),
            " msminjitter=0.0011 msavgjitter=0.1651"
        );
        assert_eq!(NuttcpTimeSpread::default().columns(Timed::Jitter, MOST, false), "");
    }

    #[test]
    fn jitter_is_how_far_a_gap_is_from_that_of_the_pace() {
        let mut arrivals = NuttcpArrivals::from_gap_ms(Some(2.0));
        // Gaps of 2, 5 and 1 ms: 0, 3 and 1 ms off; then one that is no neighbour.
        for (ms, neighbour) in [(10, true), (12, true), (17, true), (18, true), (90, false)] {
            arrivals.record(ms * 1_000_000, neighbour, Some(ms * 1000 - 4000));
        }
        let NuttcpTimeSpread { n, least_ms, mean_ms, most_ms } = arrivals.jitter;
        assert_eq!((n, least_ms, most_ms), (3, 0.0, 3.0));
        assert!((mean_ms - 4.0 / 3.0).abs() < 1e-12);
        // Each was on the way for 4 ms.
        let NuttcpTimeSpread { n, least_ms, mean_ms, most_ms } = arrivals.delay;
        assert_eq!((n, least_ms, mean_ms, most_ms), (5, 4.0, 4.0, 4.0));
        let mut unpaced = NuttcpArrivals::default();
        unpaced.record(1, true, None);
        unpaced.record(2, true, None);
        assert_eq!((unpaced.jitter.n, unpaced.delay.n), (0, 0));
    }
}
