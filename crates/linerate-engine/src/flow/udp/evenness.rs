//! How evenly a paced sender really sent: gaps between batches, and the busiest millisecond and
//! 10 ms, by its own clock just before each call.

use linerate_core::record::{PaceKept, PacedBy};
use linerate_core::stats::LogHistogram;
use linerate_core::time::MonoTime;

/// Follows the batches of one stream.
#[derive(Clone, Debug)]
pub(super) struct Evenness {
    begin: MonoTime,
    last: Option<MonoTime>,
    gaps: LogHistogram,
    bins: [Bins; 2],
    sent: u64,
    /// The count in the batch before the last.
    batch_max: u32,
}

/// Datagrams of the present bin, and the most of any.
#[derive(Clone, Copy, Debug)]
struct Bins {
    width_ns: u64,
    index: u64,
    now: u64,
    most: u64,
}

impl Evenness {
    /// The bins before anything is sent; they begin at `begin`.
    pub(super) fn starting_at(begin: MonoTime) -> Self {
        let bins = |width_ns| Bins { width_ns, index: 0, now: 0, most: 0 };
        Self {
            begin,
            last: None,
            gaps: LogHistogram::default(),
            bins: [bins(1_000_000), bins(10_000_000)],
            sent: 0,
            batch_max: 0,
        }
    }

    /// `count` datagrams leave at `now`.
    pub(super) fn note_sent(&mut self, count: usize, now: MonoTime) {
        if let Some(last) = self.last.replace(now) {
            self.gaps.record(now.nanos_since(last));
        }
        self.sent += count as u64;
        self.batch_max = self.batch_max.max(u32::try_from(count).unwrap_or(u32::MAX));
        let at_ns = now.nanos_since(self.begin);
        self.bins.iter_mut().for_each(|bins| bins.add(at_ns, count as u64));
    }

    /// The account, for sending that took `span_ns` in all.
    pub(super) fn pace_kept(&self, span_ns: u64, forgiven_ns: u64) -> PaceKept {
        let [ms, ten_ms] = self.bins.map(|bins| bins.busiest_ratio(self.sent, span_ns));
        PaceKept {
            paced_by: PacedBy::UserSpace,
            batch: self.batch_max,
            gap_p50_ns: self.gaps.quantile(0.5),
            gap_p99_ns: self.gaps.quantile(0.99),
            gap_max_ns: self.gaps.quantile(1.0),
            busiest_1ms_ratio: ms,
            busiest_10ms_ratio: ten_ms,
            forgiven_ns,
        }
    }
}

impl Bins {
    fn add(&mut self, at_ns: u64, count: u64) {
        let index = at_ns / self.width_ns;
        self.now = if index == self.index { self.now + count } else { count };
        self.index = index;
        self.most = self.most.max(self.now);
    }

    /// The busiest bin over the mean one; none where the whole is shorter than two bins.
    fn busiest_ratio(&self, sent: u64, span_ns: u64) -> Option<f64> {
        let mean = sent as f64 * self.width_ns as f64 / span_ns as f64;
        (span_ns >= 2 * self.width_ns && sent > 0).then(|| self.most as f64 / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_stream_has_no_busy_millisecond_and_a_burst_shows() {
        let mut even = Evenness::starting_at(MonoTime::from_nanos(0));
        (0..1000).for_each(|n| even.note_sent(2, MonoTime::from_nanos(n * 200_000)));
        let kept = even.pace_kept(200_000_000, 0);
        assert_eq!((kept.busiest_1ms_ratio, kept.busiest_10ms_ratio), (Some(1.0), Some(1.0)));
        assert_eq!((kept.batch, kept.gap_p50_ns.map(|ns| ns / 1000)), (2, Some(200)));
        // 90 more in one millisecond: 100 instead of 10, beside a mean of 2090 / 200.
        even.note_sent(90, MonoTime::from_nanos(199_900_000));
        let kept = even.pace_kept(200_000_000, 0);
        let ratio = kept.busiest_1ms_ratio.expect("200 ms");
        assert!((ratio - 100.0 / 10.45).abs() < 1e-9, "{ratio}");
        assert_eq!(kept.batch, 90);
    }

    #[test]
    fn too_short_a_run_has_no_ratio() {
        let mut short = Evenness::starting_at(MonoTime::from_nanos(0));
        short.note_sent(1, MonoTime::from_nanos(5));
        let kept = short.pace_kept(1_500_000, 0);
        assert_eq!((kept.busiest_1ms_ratio, kept.gap_p50_ns), (None, None));
    }
}
