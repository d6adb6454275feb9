//! What a receiver makes of arrivals: whole sub-intervals, and the delays since the last status.
//!
//! An arrival belongs to the sub-interval of its own time, so a reader that was held up moves
//! nothing from one to the next. The first begins with the first arrival. Delays are transit times
//! above the smallest so far, so the clocks of the ends need not agree.

use crate::record::SearchSpan;

/// Counts of a stream since its start, as its tracker has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Different datagrams that arrived.
    pub received: u64,
    /// The highest number that arrived, and 1.
    pub next: u64,
    /// Arrivals below a number that had arrived before.
    pub reordered: u64,
    /// Arrivals of a datagram that had arrived before.
    pub duplicates: u64,
}

/// One arrival whose delay counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampedArrival {
    /// Time of sending, by the sender's clock.
    pub stamp_ns: u64,
    /// Time of arrival, by the receiver's clock.
    pub at_ns: u64,
}

/// Delays of some arrivals above the smallest of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayRange {
    /// Smallest delay above the base.
    pub min_ns: u64,
    /// Mean, rounded down.
    pub mean_ns: u64,
    /// Largest delay above the base.
    pub max_ns: u64,
}

/// Transit times of some arrivals.
#[derive(Clone, Copy, Debug, Default)]
struct Transits {
    count: u64,
    sum_ns: i128,
    min_ns: i64,
    max_ns: i64,
}

/// Follows the arrivals of one stream.
#[derive(Clone, Debug)]
pub struct SubIntervalMeter {
    length_ns: u64,
    /// Start of the sub-interval of index 0.
    origin_ns: Option<u64>,
    /// Index of the present sub-interval.
    index: u32,
    before: StreamCounts,
    in_span: Transits,
    in_status: Transits,
    smallest_ns: Option<i64>,
    newest: Option<StampedArrival>,
}

impl SubIntervalMeter {
    /// Follows a stream with sub-intervals of this length.
    pub fn new(length_ns: u64) -> Self {
        Self {
            length_ns: length_ns.max(1),
            origin_ns: None,
            index: 0,
            before: StreamCounts::default(),
            in_span: Transits::default(),
            in_status: Transits::default(),
            smallest_ns: None,
            newest: None,
        }
    }

    /// True when a time is after the present sub-interval; [`SubIntervalMeter::close_sub_interval`]
    /// is due then.
    #[inline]
    pub fn is_beyond(&self, at_ns: u64) -> bool {
        self.end_ns().is_some_and(|end| at_ns >= end)
    }

    /// Ends the present sub-interval. `tally` has the counts up to its end.
    pub fn close_sub_interval(&mut self, tally: StreamCounts) -> SearchSpan {
        let lost = |tally: &StreamCounts| {
            i64::try_from(tally.next.saturating_sub(tally.received)).unwrap_or(i64::MAX)
        };
        let before = std::mem::replace(&mut self.before, tally);
        let delay = std::mem::take(&mut self.in_span).range_above(self.smallest_ns);
        let span = SearchSpan {
            index: self.index,
            length_ns: self.length_ns,
            received: tally.received.saturating_sub(before.received),
            lost: lost(&tally).saturating_sub(lost(&before)),
            reordered: tally.reordered.saturating_sub(before.reordered),
            duplicates: tally.duplicates.saturating_sub(before.duplicates),
            delay_min_ns: delay.map(|delay| delay.min_ns),
            delay_mean_ns: delay.map(|delay| delay.mean_ns),
            delay_max_ns: delay.map(|delay| delay.max_ns),
        };
        self.index = self.index.saturating_add(1);
        span
    }

    /// Any datagram arrived at `at_ns`.
    #[inline]
    pub fn start_at_arrival(&mut self, at_ns: u64) {
        self.origin_ns.get_or_insert(at_ns);
    }

    /// Takes the delay of an arrival.
    #[inline]
    pub fn record_arrival(&mut self, arrival: StampedArrival) {
        let transit_ns = arrival.at_ns.cast_signed().saturating_sub(arrival.stamp_ns.cast_signed());
        let smallest = self.smallest_ns.map_or(transit_ns, |smallest| smallest.min(transit_ns));
        self.smallest_ns = Some(smallest);
        self.in_span.record_transit(transit_ns);
        self.in_status.record_transit(transit_ns);
        self.newest = Some(arrival);
    }

    /// The delays since the last call, and the newest arrival among them.
    pub fn status(&mut self) -> Option<(DelayRange, StampedArrival)> {
        let delay = std::mem::take(&mut self.in_status).range_above(self.smallest_ns);
        delay.zip(self.newest.take())
    }

    /// True when a sender that sent for `sent_ns` sent in all of the present sub-interval, but for
    /// a tenth: the first datagram may leave late, and the last one leaves before the end.
    pub fn is_whole(&self, sent_ns: u64) -> bool {
        let end_ns = self.length_ns.saturating_mul(u64::from(self.index) + 1);
        self.origin_ns.is_some() && sent_ns.saturating_add(self.length_ns / 10) >= end_ns
    }

    fn end_ns(&self) -> Option<u64> {
        let lengths = self.length_ns.saturating_mul(u64::from(self.index) + 1);
        Some(self.origin_ns?.saturating_add(lengths))
    }
}

impl Transits {
    fn record_transit(&mut self, transit_ns: i64) {
        let first = self.count == 0;
        self.min_ns = if first { transit_ns } else { self.min_ns.min(transit_ns) };
        self.max_ns = if first { transit_ns } else { self.max_ns.max(transit_ns) };
        self.count += 1;
        self.sum_ns += i128::from(transit_ns);
    }

    fn range_above(self, smallest_ns: Option<i64>) -> Option<DelayRange> {
        let smallest = smallest_ns.filter(|_| self.count > 0)?;
        let mean = self.sum_ns / i128::from(self.count);
        Some(DelayRange {
            min_ns: self.min_ns.abs_diff(smallest),
            mean_ns: u64::try_from(mean - i128::from(smallest)).unwrap_or(0),
            max_ns: self.max_ns.abs_diff(smallest),
        })
    }
}
