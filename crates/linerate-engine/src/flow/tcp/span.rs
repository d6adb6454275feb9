//! The measured span of a receiving stream, and the bytes in it.
//!
//! The span begins when the first byte is there to be read, or at the first read after the omitted
//! span. A test by time ends that long after; the read that straddles the end counts in proportion,
//! so that neither large reads nor a stall at the end bends the rate. If the sender closes before,
//! its end-of-file ends the span. A test by bytes ends with the last byte, and so does one whose
//! receiver counts all.
//!
//! Where the span is fixed it begins with the test, or with the end of the omitted span, for all
//! streams alike: their sum over one span is then no more than the path carried in it.
//!
//! A thread that comes late finds more than one segment waiting. What waited took time to arrive
//! that nobody measured: it does not count or, where all bytes have to, the span begins as much
//! earlier as they took at the rate of the others. What lies behind a missing segment when the
//! omitted span ends came before, too: the measured span begins once that segment is there.

use linerate_core::record::Finish;
use linerate_core::time::MonoTime;
use linerate_sys::tcp::Waiting;

/// Longest wait for a segment that is missing where the measured span is to begin: two round trips
/// of 500 ms.
const GAP_NS_MAX: u64 = 1_000_000_000;

/// One part in so many of the bytes of a span may have come before it.
const GAP_SHARE: u64 = 250;

/// A socket from which everything was read may hold a few segments that have just come, of 2,304
/// bytes each (struct sk_buff's truesize for 1,448), or one joined packet.
const MEMORY_MIN: u64 = 16 << 10;
const MEMORY_MAX: u64 = 128 << 10;

/// Which bytes of a stream count, and over which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// From its first byte, for the time of the test.
    Own,
    /// The whole stream up to its last byte: nobody else says when the test is over.
    Whole,
    /// From the start of the test, for all streams alike.
    Fixed,
}

/// Follows the reads of one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanMeter {
    limit_ns: Option<u64>,
    omit_ns: u64,
    /// Start of the stream: no byte can have come before it, and a fixed span begins with it.
    start: MonoTime,
    extent: Extent,
    first: Option<MonoTime>,
    begin: Option<BytesAtTime>,
    last: BytesAtTime,
    /// The bytes that had come, read or not, before a fixed span began.
    arrived: BytesAtTime,
    /// Bytes and time of the end; set once, later reads do not count.
    end: Option<BytesAtTime>,
}

#[derive(Clone, Copy, Debug, Default)]
struct BytesAtTime {
    at: MonoTime,
    bytes: u64,
}

/// The bytes that a stream received or sent in its measured span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MeasuredSpan {
    /// Start of the span on the receiver's clock.
    pub(crate) begin: MonoTime,
    /// Length of the span.
    pub(crate) span_ns: u64,
    /// Bytes in the span.
    pub(crate) bytes: u64,
    /// Bytes of the whole test, the omitted span included.
    pub(crate) bytes_total: u64,
}

impl SpanMeter {
    /// For a stream that can bring nothing before `start`.
    pub(crate) const fn new(finish: Finish, omit_ns: u64, start: MonoTime, extent: Extent) -> Self {
        let limit_ns = match finish {
            Finish::TimeNs(ns) => Some(ns),
            Finish::Bytes(_) | Finish::Buffers(_) => None,
        };
        let last = BytesAtTime { at: MonoTime::from_nanos(0), bytes: 0 };
        let (first, begin, end, arrived) = (None, None, None, last);
        Self { limit_ns, omit_ns, start, extent, first, begin, last, arrived, end }
    }

    /// The first byte is there to be read, and `waiting` bytes in all.
    pub(crate) fn readable(&mut self, now: MonoTime, waiting: u64) {
        self.arrived = BytesAtTime { at: now, bytes: waiting };
        let fixed = self.extent == Extent::Fixed;
        let (first, waiting) = if fixed { (self.start, 0) } else { (now, waiting) };
        self.first = Some(first);
        self.last = BytesAtTime { at: first, bytes: 0 };
        if self.omit_ns == 0 {
            self.begin = Some(BytesAtTime { at: first, bytes: waiting });
        }
    }

    /// A read returned `count` bytes; more may be `waiting`.
    #[inline]
    pub(crate) fn read(&mut self, now: MonoTime, count: usize, waiting: impl FnOnce() -> Waiting) {
        let next = BytesAtTime { at: now, bytes: self.last.bytes + count as u64 };
        if let Some(begin) = self.begin {
            if self.end.is_none()
                && let Some(end_at) = self.end_at(begin)
                && now > end_at
            {
                self.end = Some(straddle(self.last, next, end_at));
            }
        } else if self.extent == Extent::Fixed {
            let here = BytesAtTime { at: now, bytes: next.bytes + waiting().bytes };
            let begin_at = time_after_ns(self.start, self.omit_ns);
            if now >= begin_at {
                self.begin = Some(straddle(self.arrived, here, begin_at));
            }
            self.arrived = here;
        } else if let Some(late_ns) = self.past_omitted(now) {
            let waiting = waiting();
            let explained = waiting.unexplained_bytes <= self.unexplained_max(next);
            if explained || late_ns >= self.patience_ns() {
                self.begin = Some(BytesAtTime { at: now, bytes: next.bytes + waiting.bytes });
            }
        }
        self.last = next;
    }

    /// How long ago the omitted span ended, if it did.
    fn past_omitted(&self, now: MonoTime) -> Option<u64> {
        now.nanos_since(self.first.unwrap_or(now)).checked_sub(self.omit_ns)
    }

    /// How long the measured span waits for a missing segment: what lies behind it came before.
    fn patience_ns(&self) -> u64 {
        self.limit_ns.map_or(GAP_NS_MAX, |limit| (limit / 2).min(GAP_NS_MAX))
    }

    /// Memory that may lie behind a missing segment and is handed over with it: [`GAP_SHARE`] of
    /// what the measured span is to bring, by the rate until `now`.
    fn unexplained_max(&self, now: BytesAtTime) -> u64 {
        let span_ns = now.at.nanos_since(self.first.unwrap_or(now.at));
        let bytes = self.limit_ns.map(|limit| u128::from(now.bytes) * u128::from(limit));
        let expected = bytes.and_then(|bytes| bytes.checked_div(u128::from(span_ns)));
        let share = expected.map_or(MEMORY_MAX, |share| u64::try_from(share).unwrap_or(u64::MAX));
        (share / GAP_SHARE).clamp(MEMORY_MIN, MEMORY_MAX)
    }

    /// When a test by time is over for this stream, if it has begun.
    pub(crate) fn deadline(&self) -> Option<MonoTime> {
        let first = self.first?;
        let span = self.omit_ns.saturating_add(self.limit_ns?);
        Some(time_after_ns(first, span))
    }

    /// The account of the stream, which ended at `now` with or without an end-of-file.
    pub(crate) fn finish(self, now: MonoTime) -> MeasuredSpan {
        let Some(begin) = self.begin else {
            return MeasuredSpan { bytes_total: self.last.bytes, ..MeasuredSpan::default() };
        };
        let end = self.end.unwrap_or_else(|| match self.end_at(begin) {
            Some(end_at) => BytesAtTime { at: now.min(end_at).max(self.last.at), ..self.last },
            None => self.last,
        });
        // All that came waited already when the thread did: it came since the stream could bring
        // something, and no sooner.
        let waited = begin.bytes > 0 && begin.bytes >= end.bytes;
        let all = self.extent == Extent::Whole || self.limit_ns.is_none() || waited;
        let begin = if all && self.omit_ns == 0 { self.of_all(begin, end) } else { begin };
        MeasuredSpan {
            begin: begin.at,
            span_ns: end.at.nanos_since(begin.at),
            bytes: end.bytes.saturating_sub(begin.bytes),
            bytes_total: self.last.bytes,
        }
    }

    /// Where the span of all bytes begins, of which some waited at `begin`.
    fn of_all(&self, begin: BytesAtTime, end: BytesAtTime) -> BytesAtTime {
        let counted = u128::from(end.bytes.saturating_sub(begin.bytes));
        let waiting = u128::from(begin.bytes.min(end.bytes));
        let span = u128::from(end.at.nanos_since(begin.at));
        let before = (span * waiting).checked_div(counted).unwrap_or(u128::MAX);
        let before = u64::try_from(before).unwrap_or(u64::MAX);
        let before = before.min(begin.at.nanos_since(self.start));
        BytesAtTime { at: MonoTime::from_nanos(begin.at.as_nanos() - before), bytes: 0 }
    }

    fn end_at(&self, begin: BytesAtTime) -> Option<MonoTime> {
        let limit = self.limit_ns.filter(|_| self.extent != Extent::Whole)?;
        Some(time_after_ns(begin.at, limit))
    }
}

const fn time_after_ns(at: MonoTime, ns: u64) -> MonoTime {
    MonoTime::from_nanos(at.as_nanos().saturating_add(ns))
}

/// The point at `end_at` on the straight line from `before` to `after`.
fn straddle(before: BytesAtTime, after: BytesAtTime, end_at: MonoTime) -> BytesAtTime {
    let whole = u128::from(after.at.nanos_since(before.at).max(1));
    let part = u128::from(end_at.nanos_since(before.at)).min(whole);
    let bytes = u128::from(after.bytes - before.bytes) * part / whole;
    BytesAtTime { at: end_at, bytes: before.bytes + u64::try_from(bytes).unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// Memory that no segment of the last moment explains.
    const GAP: u64 = 1 << 20;
    const NOTHING: Waiting = Waiting { bytes: 0, unexplained_bytes: 0 };

    fn waiting_bytes(bytes: u64) -> Waiting {
        Waiting { bytes, unexplained_bytes: 0 }
    }

    fn time_at_ms(ms: u64) -> MonoTime {
        MonoTime::from_nanos(ms * MS)
    }

    fn span_meter(limit_ms: u64, omit_ms: u64) -> SpanMeter {
        SpanMeter::new(Finish::TimeNs(limit_ms * MS), omit_ms * MS, time_at_ms(0), Extent::Own)
    }

    #[test]
    fn a_read_across_the_end_counts_in_proportion() {
        // 1000 bytes every 30 ms from 0; the end at 100 ms lies a third into the fourth read.
        let mut meter = span_meter(100, 0);
        meter.readable(time_at_ms(0), 0);
        for ms in [30, 60, 90, 120, 150] {
            meter.read(time_at_ms(ms), 1000, || NOTHING);
        }
        let measured = meter.finish(time_at_ms(151));
        assert_eq!(measured.bytes, 3333);
        assert_eq!(measured.span_ns, 100 * MS);
        assert_eq!(measured.bytes_total, 5000);
    }

    #[test]
    fn a_stall_before_the_end_stretches_the_span_to_the_end() {
        let mut meter = span_meter(100, 0);
        meter.readable(time_at_ms(0), 0);
        meter.read(time_at_ms(10), 1000, || NOTHING);
        let measured = meter.finish(time_at_ms(3000));
        assert_eq!((measured.bytes, measured.span_ns), (1000, 100 * MS));
    }

    #[test]
    fn an_early_end_of_file_ends_the_span() {
        let mut meter = span_meter(100, 0);
        meter.readable(time_at_ms(0), 0);
        meter.read(time_at_ms(50), 1000, || NOTHING);
        let measured = meter.finish(time_at_ms(60));
        assert_eq!((measured.bytes, measured.span_ns), (1000, 60 * MS));
    }

    #[test]
    fn the_omitted_span_ends_at_a_read_and_its_bytes_do_not_count() {
        let mut meter = span_meter(100, 50);
        meter.readable(time_at_ms(0), 0);
        for ms in [20, 40, 60, 80, 160] {
            meter.read(time_at_ms(ms), 600, || NOTHING);
        }
        // Begins at 60 ms with 1800 bytes; ends at 160 ms with 3000.
        let measured = meter.finish(time_at_ms(161));
        assert_eq!(
            (measured.begin, measured.bytes, measured.span_ns),
            (time_at_ms(60), 1200, 100 * MS)
        );
    }

    #[test]
    fn a_test_by_bytes_ends_with_the_last_byte() {
        let mut meter = SpanMeter::new(Finish::Bytes(2000), 0, time_at_ms(0), Extent::Own);
        meter.readable(time_at_ms(5), 0);
        meter.read(time_at_ms(10), 1000, || NOTHING);
        meter.read(time_at_ms(25), 1000, || NOTHING);
        let measured = meter.finish(time_at_ms(400));
        assert_eq!((measured.bytes, measured.span_ns), (2000, 20 * MS));
    }

    #[test]
    fn what_waited_when_the_thread_came_does_not_count_in_a_test_by_time() {
        // 100 bytes each ms from 0; the thread comes at 20 ms, when 2000 wait, and again at the
        // end of the omitted span, when 1000 still wait behind what it read.
        let mut meter = span_meter(100, 0);
        meter.readable(time_at_ms(20), 2000);
        for (ms, count) in [(20, 2000), (70, 5000), (120, 5000), (130, 1000)] {
            meter.read(time_at_ms(ms), count, || NOTHING);
        }
        let measured = meter.finish(time_at_ms(131));
        assert_eq!((measured.bytes, measured.span_ns), (10_000, 100 * MS));
        assert_eq!(measured.bytes_total, 13_000);
        let mut meter = span_meter(100, 50);
        meter.readable(time_at_ms(0), 0);
        for (ms, count, waiting) in [(40, 4000, 0), (60, 1000, 1000), (160, 11_000, 0)] {
            meter.read(time_at_ms(ms), count, || waiting_bytes(waiting));
        }
        let measured = meter.finish(time_at_ms(161));
        assert_eq!((measured.bytes, measured.span_ns), (10_000, 100 * MS));
    }

    #[test]
    fn where_all_bytes_count_the_span_begins_as_early_as_those_that_waited() {
        // 100 bytes each ms from 0; the thread comes at 20 ms.
        let mut meter = SpanMeter::new(Finish::Bytes(10_000), 0, time_at_ms(0), Extent::Own);
        meter.readable(time_at_ms(20), 2000);
        meter.read(time_at_ms(20), 2000, || NOTHING);
        meter.read(time_at_ms(100), 8000, || NOTHING);
        let measured = meter.finish(time_at_ms(300));
        assert_eq!((measured.bytes, measured.span_ns), (10_000, 100 * MS));
        // Everything was there already: it came since the stream could bring something.
        let mut meter = SpanMeter::new(Finish::Bytes(500), 0, time_at_ms(10), Extent::Own);
        meter.readable(time_at_ms(15), 500);
        meter.read(time_at_ms(16), 500, || NOTHING);
        let measured = meter.finish(time_at_ms(300));
        assert_eq!(
            (measured.begin, measured.bytes, measured.span_ns),
            (time_at_ms(10), 500, 6 * MS)
        );
    }

    #[test]
    fn what_all_waited_when_the_thread_came_is_the_result_of_a_test_by_time_too() {
        // A test of 200 ms whose receiver gets to run 190 ms late, when all of it has come.
        let mut meter = span_meter(200, 0);
        meter.readable(time_at_ms(190), 5000);
        meter.read(time_at_ms(191), 5000, || NOTHING);
        let measured = meter.finish(time_at_ms(192));
        assert_eq!(
            (measured.begin, measured.bytes, measured.span_ns),
            (time_at_ms(0), 5000, 192 * MS)
        );
    }

    #[test]
    fn a_receiver_that_counts_all_has_the_time_of_what_came_late_too() {
        let mut meter = SpanMeter::new(Finish::TimeNs(100 * MS), 0, time_at_ms(0), Extent::Whole);
        meter.readable(time_at_ms(0), 0);
        for ms in [50, 100, 150] {
            meter.read(time_at_ms(ms), 1000, || NOTHING);
        }
        let measured = meter.finish(time_at_ms(400));
        assert_eq!((measured.bytes, measured.span_ns), (3000, 150 * MS));
    }

    /// Segments of 1,000 bytes come at 1 byte/us from 0 on; a thread looks first at `late_us`,
    /// then reads all that is there, at most 20,000 bytes, after each of `pauses_us`. What a meter
    /// makes of it, and the bytes that came in the span by the schedule.
    fn played(
        mut meter: SpanMeter,
        late_us: u64,
        pauses_us: &[u64],
        total: u64,
    ) -> (MeasuredSpan, u64) {
        let us = |us: u64| MonoTime::from_nanos(us * 1000);
        let come = |us: u64| (us / 1000 * 1000).min(total);
        let (mut now, mut taken) = (late_us.max(1000), 0);
        meter.readable(us(now), come(now));
        for pause in pauses_us {
            now += pause;
            let count = (come(now) - taken).min(20_000);
            if count > 0 {
                taken += count;
                meter.read(us(now), count as usize, || waiting_bytes(come(now) - taken));
            }
        }
        while taken < total {
            now += 1000;
            let count = (come(now) - taken).min(20_000);
            taken += count;
            meter.read(us(now), count as usize, || waiting_bytes(come(now) - taken));
        }
        let measured = meter.finish(us(now));
        let (begin, span) = (measured.begin.as_nanos() / 1000, measured.span_ns / 1000);
        (measured, come(begin + span + 1000).saturating_sub(come(begin).saturating_sub(1000)))
    }

    proptest::proptest! {
        #[test]
        fn no_span_has_more_bytes_than_came_in_it(
            late_us in 0_u64..200_000,
            pauses_us in proptest::collection::vec(0_u64..60_000, 1..40),
            omit_ms in proptest::option::of(1_u64..300),
            limit_ms in proptest::option::of(1_u64..600),
            extent in proptest::sample::select(&[Extent::Own, Extent::Whole, Extent::Fixed][..]),
            total in 1_u64..1_000,
        ) {
            let finish = limit_ms.map_or(Finish::Bytes(0), |ms| Finish::TimeNs(ms * MS));
            let meter = SpanMeter::new(finish, omit_ms.unwrap_or(0) * MS, time_at_ms(0), extent);
            let whole = extent == Extent::Whole;
            let total = total * 1000;
            let (measured, came) = played(meter, late_us, &pauses_us, total);
            // What comes while the thread is away across the beginning of a fixed span is shared
            // out evenly: there are as many bytes in doubt as come in its longest pause.
            let away = if extent == Extent::Fixed && omit_ms.is_some() { 61_000 } else { 0 };
            // Where all bytes count, those that waited are given the rate of the others, which is
            // known to a segment: 195 kB that waited before 40 kB may begin 4.9 kB too late.
            let all = omit_ms.is_none() && (whole || limit_ms.is_none());
            let waited = (late_us.max(1000) / 1000 * 1000).min(total);
            let of_others = (1000 * waited).checked_div(total - waited).unwrap_or(0);
            let doubt = away + if all { of_others } else { 0 };
            let most = (came + doubt).min(measured.span_ns / 1000 + 2000 + doubt);
            proptest::prop_assert!(measured.bytes <= most, "{measured:?}, {came} came");
            proptest::prop_assert_eq!(measured.bytes_total, total);
            if all {
                proptest::prop_assert_eq!(measured.bytes, total);
            }
        }
    }

    #[test]
    fn a_fixed_span_is_that_of_the_test_whenever_bytes_come() {
        // 1000 bytes every 30 ms from 0; the first is noticed at 20 ms. From 50 ms to 150 ms are
        // a third of the second read, two whole ones and the fifth, which ends there.
        let finish = Finish::TimeNs(100 * MS);
        let mut meter = SpanMeter::new(finish, 50 * MS, time_at_ms(0), Extent::Fixed);
        meter.readable(time_at_ms(20), 2);
        for ms in [30, 60, 90, 120, 150, 180] {
            meter.read(time_at_ms(ms), 1000, || NOTHING);
        }
        let measured = meter.finish(time_at_ms(181));
        assert_eq!((measured.begin, measured.span_ns), (time_at_ms(50), 100 * MS));
        assert_eq!((measured.bytes, measured.bytes_total), (3334, 6000));
    }

    #[test]
    fn the_span_waits_for_a_missing_segment_where_the_omitted_one_ends() {
        // 1000 bytes each 10 ms. At 50 ms a segment is missing, behind which 30,000 bytes lie; it
        // comes at 80 ms and everything is read: from there on 100 bytes/ms.
        let play = |gap: [u64; 4]| {
            let mut meter = span_meter(100, 50);
            meter.readable(time_at_ms(0), 0);
            let reads = [(50, 1000), (60, 1000), (70, 1000), (80, 31_000)];
            for ((ms, count), unexplained_bytes) in reads.into_iter().zip(gap) {
                meter.read(time_at_ms(ms), count, || Waiting { bytes: 0, unexplained_bytes });
            }
            (9..20).for_each(|tens| meter.read(time_at_ms(tens * 10), 1000, || NOTHING));
            meter.finish(time_at_ms(200))
        };
        // 30,000 bytes are 21 segments, of 2,304 bytes of memory each: less than one joined packet,
        // and three times of what the span has.
        for memory in [GAP, 21 * 2_304] {
            let measured = play([memory, memory, memory, 0]);
            let expected = (time_at_ms(80), 10_000, 100 * MS);
            assert_eq!((measured.begin, measured.bytes, measured.span_ns), expected);
        }
        // A few segments have just come.
        assert_eq!(play([5 * 2_304, GAP, GAP, 0]).begin, time_at_ms(50));
        // A gap that stays is waited for during half of the test, here 50 ms.
        let mut meter = span_meter(100, 50);
        meter.readable(time_at_ms(0), 0);
        for ms in [50, 70, 90, 110, 130] {
            meter.read(time_at_ms(ms), 1000, || Waiting { bytes: 0, unexplained_bytes: GAP });
        }
        let measured = meter.finish(time_at_ms(140));
        assert_eq!(
            (measured.begin, measured.bytes, measured.span_ns),
            (time_at_ms(110), 1000, 30 * MS)
        );
    }

    #[test]
    fn nothing_read_is_nothing_measured() {
        assert_eq!(span_meter(100, 0).finish(time_at_ms(100)), MeasuredSpan::default());
    }
}
