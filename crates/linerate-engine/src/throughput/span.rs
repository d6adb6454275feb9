//! The measured span of a receiving stream, and the bytes in it.
//!
//! The span begins when the first byte is there to be read, or at the first read after the omitted
//! span. A test by time ends that long after; the read that straddles the end counts in proportion,
//! so that neither large reads nor a stall at the end bends the rate. If the sender closes before,
//! its end-of-file ends the span. A test by bytes ends with the last byte.
//!
//! Where the span is fixed it begins with the test, or with the end of the omitted span, for all
//! streams alike: their sum over one span is then no more than the path carried in it.

use linerate_core::record::Finish;
use linerate_core::time::MonoTime;

/// Follows the reads of one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanMeter {
    limit_ns: Option<u64>,
    omit_ns: u64,
    /// When the test began, where that fixes the span.
    start: Option<MonoTime>,
    first: Option<MonoTime>,
    begin: Option<Point>,
    last: Point,
    /// Set once; later reads no longer count.
    end: Option<Point>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Point {
    at: MonoTime,
    bytes: u64,
}

/// What a stream received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measured {
    /// Start of the span on the receiver's clock.
    pub(crate) begin: MonoTime,
    /// Length of the span.
    pub(crate) span_ns: u64,
    /// Bytes in the span.
    pub(crate) bytes: u64,
    /// Bytes in all.
    pub(crate) bytes_total: u64,
}

impl SpanMeter {
    pub(crate) const fn new(finish: Finish, omit_ns: u64) -> Self {
        let limit_ns = match finish {
            Finish::TimeNs(ns) => Some(ns),
            Finish::Bytes(_) | Finish::Buffers(_) => None,
        };
        let last = Point { at: MonoTime::from_nanos(0), bytes: 0 };
        Self { limit_ns, omit_ns, start: None, first: None, begin: None, last, end: None }
    }

    /// The same with the span of a test that began at `start`.
    pub(crate) const fn fixed_at(self, start: Option<MonoTime>) -> Self {
        Self { start, ..self }
    }

    /// The first byte is there to be read.
    pub(crate) fn readable(&mut self, now: MonoTime) {
        let first = self.start.unwrap_or(now);
        self.first = Some(first);
        self.last = Point { at: first, bytes: 0 };
        if self.omit_ns == 0 {
            self.begin = Some(self.last);
        }
    }

    /// A read returned `count` bytes.
    #[inline]
    pub(crate) fn read(&mut self, now: MonoTime, count: usize) {
        let next = Point { at: now, bytes: self.last.bytes + count as u64 };
        if let Some(begin) = self.begin {
            if self.end.is_none()
                && let Some(end_at) = self.end_at(begin)
                && now > end_at
            {
                self.end = Some(straddle(self.last, next, end_at));
            }
        } else if now.nanos_since(self.first.unwrap_or(now)) >= self.omit_ns {
            let fixed = self.start.map(|start| later(start, self.omit_ns));
            self.begin = Some(fixed.map_or(next, |at| straddle(self.last, next, at)));
        }
        self.last = next;
    }

    /// When a test by time is over for this stream, if it has begun.
    pub(crate) fn deadline(&self) -> Option<MonoTime> {
        let first = self.first?;
        let span = self.omit_ns.saturating_add(self.limit_ns?);
        Some(later(first, span))
    }

    /// The account of the stream, which ended at `now` with or without an end-of-file.
    pub(crate) fn finish(self, now: MonoTime) -> Measured {
        let Some(begin) = self.begin else {
            return Measured { bytes_total: self.last.bytes, ..Measured::default() };
        };
        let end = self.end.unwrap_or_else(|| match self.end_at(begin) {
            Some(end_at) => Point { at: now.min(end_at).max(self.last.at), ..self.last },
            None => self.last,
        });
        Measured {
            begin: begin.at,
            span_ns: end.at.nanos_since(begin.at),
            bytes: end.bytes.saturating_sub(begin.bytes),
            bytes_total: self.last.bytes,
        }
    }

    fn end_at(&self, begin: Point) -> Option<MonoTime> {
        let limit = self.limit_ns?;
        Some(later(begin.at, limit))
    }
}

const fn later(at: MonoTime, ns: u64) -> MonoTime {
    MonoTime::from_nanos(at.nanos().saturating_add(ns))
}

/// The point at `end_at` on the straight line from `before` to `after`.
fn straddle(before: Point, after: Point, end_at: MonoTime) -> Point {
    let whole = u128::from(after.at.nanos_since(before.at).max(1));
    let part = u128::from(end_at.nanos_since(before.at)).min(whole);
    let bytes = u128::from(after.bytes - before.bytes) * part / whole;
    Point { at: end_at, bytes: before.bytes + u64::try_from(bytes).unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> MonoTime {
        MonoTime::from_nanos(ms * MS)
    }

    fn meter(limit_ms: u64, omit_ms: u64) -> SpanMeter {
        SpanMeter::new(Finish::TimeNs(limit_ms * MS), omit_ms * MS)
    }

    #[test]
    fn a_read_across_the_end_counts_in_proportion() {
        // 1000 bytes every 30 ms from 0; the end at 100 ms lies a third into the fourth read.
        let mut meter = meter(100, 0);
        meter.readable(at(0));
        for ms in [30, 60, 90, 120, 150] {
            meter.read(at(ms), 1000);
        }
        let measured = meter.finish(at(151));
        assert_eq!(measured.bytes, 3333);
        assert_eq!(measured.span_ns, 100 * MS);
        assert_eq!(measured.bytes_total, 5000);
    }

    #[test]
    fn a_stall_before_the_end_stretches_the_span_to_the_end() {
        let mut meter = meter(100, 0);
        meter.readable(at(0));
        meter.read(at(10), 1000);
        let measured = meter.finish(at(3000));
        assert_eq!((measured.bytes, measured.span_ns), (1000, 100 * MS));
    }

    #[test]
    fn an_early_end_of_file_ends_the_span() {
        let mut meter = meter(100, 0);
        meter.readable(at(0));
        meter.read(at(50), 1000);
        let measured = meter.finish(at(60));
        assert_eq!((measured.bytes, measured.span_ns), (1000, 60 * MS));
    }

    #[test]
    fn the_omitted_span_ends_at_a_read_and_its_bytes_do_not_count() {
        let mut meter = meter(100, 50);
        meter.readable(at(0));
        for ms in [20, 40, 60, 80, 160] {
            meter.read(at(ms), 600);
        }
        // Begins at 60 ms with 1800 bytes; ends at 160 ms with 3000.
        let measured = meter.finish(at(161));
        assert_eq!((measured.begin, measured.bytes, measured.span_ns), (at(60), 1200, 100 * MS));
    }

    #[test]
    fn a_test_by_bytes_ends_with_the_last_byte() {
        let mut meter = SpanMeter::new(Finish::Bytes(2000), 0);
        meter.readable(at(5));
        meter.read(at(10), 1000);
        meter.read(at(25), 1000);
        let measured = meter.finish(at(400));
        assert_eq!((measured.bytes, measured.span_ns), (2000, 20 * MS));
    }

    #[test]
    fn a_fixed_span_is_that_of_the_test_whenever_bytes_come() {
        // 1000 bytes every 30 ms from 0; the first is noticed at 20 ms. From 50 ms to 150 ms are
        // a third of the second read, two whole ones and the fifth, which ends there.
        let mut meter = meter(100, 50).fixed_at(Some(at(0)));
        meter.readable(at(20));
        for ms in [30, 60, 90, 120, 150, 180] {
            meter.read(at(ms), 1000);
        }
        let measured = meter.finish(at(181));
        assert_eq!((measured.begin, measured.span_ns), (at(50), 100 * MS));
        assert_eq!((measured.bytes, measured.bytes_total), (3334, 6000));
    }

    #[test]
    fn nothing_read_is_nothing_measured() {
        assert_eq!(meter(100, 0).finish(at(100)), Measured::default());
    }
}
