//! The rows of intervals, from what both ends told of a stream: those of datagrams close, sent is
//! received and lost and in flight.

use linerate_core::record::{DatagramRow, Direction, FlowSide, IntervalRow};

use super::Sample;
use super::account::{Account, rate_bps};

/// The samples of both ends of a stream at the end of an interval.
#[derive(Clone, Copy, Default)]
struct Moment<'a> {
    receiver: Option<&'a Sample>,
    sender: Option<&'a Sample>,
}

impl<'a> Moment<'a> {
    const fn sample_of_side(&self, end: FlowSide) -> Option<&'a Sample> {
        match end {
            FlowSide::Receiver => self.receiver,
            FlowSide::Sender => self.sender,
        }
    }
}

/// The counts of both ends of a stream of datagrams at the end of an interval, from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DatagramTotals {
    pub(crate) t_ns: u64,
    pub(crate) bytes: u64,
    /// Datagrams sent, by the sender's word, or by the numbers of arrivals where these are ahead of
    /// it: each end looks at its own time.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Datagrams lost: sequence numbers passed over.
    pub(crate) lost: u64,
    pub(crate) lost_here: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) jitter_ns: Option<u64>,
}

impl DatagramTotals {
    /// The totals at a moment; none over TCP, and where no receiver tells.
    fn from_moment(moment: Moment<'_>) -> Option<Self> {
        let received = moment.receiver?;
        let counts = received.datagrams?;
        let told = moment.sender.map_or(0, |sample| sample.counts().datagrams);
        Some(Self {
            t_ns: received.t_ns,
            bytes: received.bytes,
            sent: told.max(counts.next),
            received: counts.datagrams,
            lost: counts.next.saturating_sub(counts.datagrams),
            lost_here: counts.lost_here,
            duplicates: counts.duplicates,
            reordered: counts.reordered,
            jitter_ns: counts.jitter_ns,
        })
    }

    /// Sent, and neither arrived nor passed over.
    pub(crate) const fn in_flight(&self) -> u64 {
        self.sent.saturating_sub(self.received + self.lost)
    }

    fn row_since(&self, before: &Self) -> DatagramRow {
        DatagramRow {
            sent: self.sent.saturating_sub(before.sent),
            received: self.received.saturating_sub(before.received),
            lost: self.lost.cast_signed() - before.lost.cast_signed(),
            lost_here: self.lost_here.saturating_sub(before.lost_here),
            duplicates: self.duplicates.saturating_sub(before.duplicates),
            reordered: self.reordered.saturating_sub(before.reordered),
            in_flight: self.in_flight(),
            jitter_ns: self.jitter_ns,
        }
    }
}

impl Account {
    /// The totals of a stream of datagrams at the end of each interval that both ends have sampled.
    pub(super) fn datagram_totals(&self, direction: Direction, flow: u16) -> Vec<DatagramTotals> {
        let stream = Sample::empty_at(direction, flow, 0);
        let intervals = self.local_samples.len().min(self.remote_samples.len());
        let moments = (0..intervals).map(|at| self.moment(&stream, Some(at)));
        moments.filter_map(DatagramTotals::from_moment).collect()
    }

    /// The samples of a stream at the end of interval `at`.
    fn moment(&self, stream: &Sample, at: Option<usize>) -> Moment<'_> {
        let (sent, received) = self.samples(stream.direction);
        let of = |samples| same_stream(samples, at?, stream);
        Moment { receiver: of(received), sender: of(sent) }
    }

    /// The rows of interval `at`, both directions; none where they are too short to
    /// stand alone, as where a late thread ends one interval and the next at once: the next rows
    /// have what they bring.
    pub(super) fn interval_rows(&self, at: usize) -> Option<Vec<IntervalRow>> {
        let since = self.rows_since(at);
        let ways = [Direction::Up, Direction::Down];
        let all = ways.map(|way| self.rows_of(way, at, since));
        let brings = self.rest_is_row && all.iter().flatten().any(|row| row.bytes > 0);
        let short = |row: &IntervalRow| row.end_ns.saturating_sub(row.start_ns) < self.row_ns_min;
        let mut rows = all.iter().flatten();
        let has_rows = rows.clone().next().is_some();
        if since.is_some() && has_rows && !brings && rows.all(short) {
            return None;
        }
        let told = ways.into_iter().zip(all);
        Some(told.flat_map(|(way, rows)| self.with_sum(rows, way, at, brings)).collect())
    }

    /// The interval at whose end the rows of interval `at` begin: no row lies on both
    /// sides of the end of the omitted span.
    fn rows_since(&self, at: usize) -> Option<usize> {
        let omitted = self.omitted.filter(|omitted| at >= *omitted);
        self.rows_until.max(omitted.and_then(|omitted| omitted.checked_sub(1)))
    }

    /// A receiver of datagrams may tell nothing before the end: then the rows are what was sent.
    fn is_untold(&self, direction: Direction, at: usize) -> bool {
        self.size_bytes > 0 && self.samples(direction).1[at].is_empty()
    }

    /// A row of each stream of `direction`, from the end of interval `since` to that of
    /// `at`.
    fn rows_of(&self, direction: Direction, at: usize, since: Option<usize>) -> Vec<IntervalRow> {
        let (sent, received) = self.samples(direction);
        let counted = if self.is_untold(direction, at) { &sent[at] } else { &received[at] };
        let of_way = counted.iter().filter(|sample| sample.direction == direction);
        let moments =
            of_way.map(|sample| (self.moment(sample, Some(at)), self.moment(sample, since)));
        let mut rows: Vec<IntervalRow> =
            moments.filter_map(|(now, before)| self.interval_row(now, before)).collect();
        // A thread may look a moment before the omitted span is over by its own begin.
        let counts = self.omitted.is_some_and(|omitted| at >= omitted);
        rows.iter_mut().filter(|_| counts).for_each(|row| row.omitted = false);
        rows
    }

    /// The rows of the streams that are told, when there are several, and their sum.
    fn with_sum(
        &self,
        mut rows: Vec<IntervalRow>,
        direction: Direction,
        at: usize,
        brings: bool,
    ) -> Vec<IntervalRow> {
        // After the planned time a receiver waits, unless a queue held something back; a sender
        // that is behind its plan goes on.
        if !self.is_untold(direction, at) || rows.iter().all(|row| row.bytes == 0) {
            let waits = |row: &IntervalRow| {
                let over = self.planned_ns.is_some_and(|planned| row.start_ns >= planned);
                // After an omitted begin the rows have as much of what was under way then. What one
                // stream brings is a row of all of them.
                let late = self.omit_ns > 0 && !self.rest_is_row && !self.rest_counts;
                over && (late || row.bytes == 0 && !brings)
            };
            rows.retain(|row| !waits(row));
        }
        if let [only] = rows.as_mut_slice() {
            only.flow = None;
        } else if let Some(total) = sum_rows(&rows) {
            rows.push(total);
        }
        rows
    }

    fn interval_row(&self, now: Moment<'_>, before: Moment<'_>) -> Option<IntervalRow> {
        let sender = now.sender;
        let end = if now.receiver.is_some() { FlowSide::Receiver } else { FlowSide::Sender };
        let (sample, previous) = (now.sample_of_side(end)?, before.sample_of_side(end));
        let (start_ns, bytes) = previous.map_or((0, 0), |sample| (sample.t_ns, sample.bytes));
        let span_ns = sample.t_ns.saturating_sub(start_ns);
        let bytes = sample.bytes.saturating_sub(bytes);
        let retransmits = sender.and_then(|sender| {
            let before = before.sender.and_then(|before| before.retransmits).unwrap_or(0);
            Some(sender.retransmits?.saturating_sub(before))
        });
        let datagrams = DatagramTotals::from_moment(now)
            .map(|known| known.row_since(&DatagramTotals::from_moment(before).unwrap_or_default()));
        Some(IntervalRow {
            start_ns,
            end_ns: sample.t_ns,
            direction: sample.direction,
            flow: Some(sample.flow),
            bytes,
            goodput_bps: rate_bps(bytes, span_ns),
            retransmits,
            cwnd_bytes: sender.and_then(|sender| sender.cwnd_bytes),
            rtt_ns: sender.and_then(|sender| sender.rtt_ns),
            rtt_var_ns: sender.and_then(|sender| sender.rtt_var_ns),
            send_window_bytes: sender.and_then(|sender| sender.send_window_bytes),
            pmtu_bytes: sender.and_then(|sender| sender.pmtu_bytes),
            omitted: start_ns < self.omit_ns,
            datagrams,
        })
    }
}

fn same_stream<'a>(all: &'a [Vec<Sample>], at: usize, stream: &Sample) -> Option<&'a Sample> {
    all.get(at)?.iter().find(|sample| sample.is_of(stream))
}

fn sum_rows(rows: &[IntervalRow]) -> Option<IntervalRow> {
    let first = rows.first()?;
    let sum = |pick: fn(&IntervalRow) -> Option<u64>| rows.iter().map(pick).sum::<Option<u64>>();
    let datagrams = rows.iter().filter_map(|row| row.datagrams);
    let datagrams = datagrams.reduce(|one, other| DatagramRow {
        sent: one.sent + other.sent,
        received: one.received + other.received,
        lost: one.lost + other.lost,
        lost_here: one.lost_here + other.lost_here,
        duplicates: one.duplicates + other.duplicates,
        reordered: one.reordered + other.reordered,
        in_flight: one.in_flight + other.in_flight,
        // A jitter is no sum; the most uneven stream tells of the queue.
        jitter_ns: one.jitter_ns.max(other.jitter_ns),
    });
    Some(IntervalRow {
        flow: None,
        bytes: rows.iter().map(|row| row.bytes).sum(),
        goodput_bps: rows.iter().map(|row| row.goodput_bps).sum(),
        retransmits: sum(|row| row.retransmits),
        cwnd_bytes: sum(|row| row.cwnd_bytes),
        // A round-trip time is no sum; the slowest stream tells of the queue.
        rtt_ns: rows.iter().filter_map(|row| row.rtt_ns).max(),
        rtt_var_ns: None,
        send_window_bytes: sum(|row| row.send_window_bytes),
        datagrams,
        ..first.clone()
    })
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{DatagramCounts, Event};

    use super::*;
    use crate::flow::account::IntervalSamples;

    fn sample(flow: u16, t_ns: u64, bytes: u64) -> Sample {
        let (retransmits, rtt_ns) = (Some(bytes / 1000), Some(u64::from(flow) + 1));
        Sample { bytes, retransmits, rtt_ns, ..Sample::empty_at(Direction::Up, flow, t_ns) }
    }

    #[test]
    fn rows_are_differences_of_the_receivers_counts_and_add_up() {
        let mut account = Account::default();
        let mut rows = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                rows.push(row.clone());
            }
        };
        let second = 1_000_000_000;
        account.local_samples = vec![
            vec![sample(0, second, 1000), sample(1, second, 5000)],
            vec![sample(0, 2 * second, 4000), sample(1, 2 * second, 5000)],
        ];
        account.remote_interval(vec![sample(0, second, 1000), sample(1, second, 2000)], &mut watch);
        account.remote_interval(
            vec![sample(0, 2 * second, 4000), sample(1, 2 * second, 2000)],
            &mut watch,
        );
        let bytes: Vec<(Option<u16>, u64)> = rows.iter().map(|row| (row.flow, row.bytes)).collect();
        let expected = [
            (Some(0), 1000),
            (Some(1), 2000),
            (None, 3000),
            (Some(0), 3000),
            (Some(1), 0),
            (None, 3000),
        ];
        assert_eq!(bytes, expected);
        // 3000 bytes in a second are 24 kbit/s.
        assert!((rows[2].goodput_bps - 24_000.0).abs() < 1e-9);
        assert_eq!(rows[2].rtt_ns, Some(2), "the slower stream's");
    }

    #[test]
    fn retransmits_of_the_rows_add_up_to_the_senders_count() {
        // The sender has retransmitted 3, 5 and, with the rest after the last interval, 6 times.
        let mut account = Account::default();
        let mut counts = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                counts.push(row.retransmits);
            }
        };
        let second = 1_000_000_000;
        account.local_interval(vec![sample(0, second, 3000)], &mut watch);
        account.remote_interval(vec![sample(0, second, 3000)], &mut watch);
        account.remote_interval(vec![sample(0, 2 * second, 5000)], &mut watch);
        account.local_interval(vec![sample(0, 2 * second, 5000)], &mut watch);
        account.remote_interval(vec![sample(0, 5 * second / 2, 6000)], &mut watch);
        account.local_interval(vec![sample(0, 5 * second / 2, 6000)], &mut watch);
        assert_eq!(counts, [Some(3), Some(2), Some(1)]);
    }

    #[test]
    fn the_rest_after_the_last_interval_makes_no_row() {
        let mut account = Account { row_ns_min: 250_000_000, ..Account::default() };
        let mut count = 0;
        let mut watch = |_: &Event| count += 1;
        account.local_samples =
            vec![vec![sample(0, 1_000_000_000, 10)], vec![sample(0, 1_000_400_000, 12)]];
        account.remote_interval(vec![sample(0, 1_000_000_000, 10)], &mut watch);
        account.remote_interval(vec![sample(0, 1_000_400_000, 12)], &mut watch);
        assert_eq!(count, 1);
    }

    /// Start, end and bytes of the rows of a sender of 1000 bytes each second, which has to stop
    /// at 2 s and whose last `rest` bytes come `rest_ms` later.
    fn rows_with_rest(rest_ms: u64, rest: u64) -> Vec<(u64, u64, u64)> {
        let mut account = Account { row_ns_min: 250_000_000, ..Account::default() };
        let mut rows = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                rows.push((row.start_ns / 1_000_000, row.end_ns / 1_000_000, row.bytes));
            }
        };
        let interval = |ms: u64, bytes| {
            let samples = vec![sample(0, ms * 1_000_000, bytes)];
            IntervalSamples { local: samples.clone(), remote: samples }
        };
        account.interval(interval(1000, 1000), &mut watch);
        account.hold_interval(interval(2000, 2000), &mut watch);
        let now_ns = (2020 + rest_ms) * 1_000_000;
        account.last_interval(interval(2000 + rest_ms, 2000 + rest), now_ns, &mut watch);
        rows
    }

    #[test]
    fn what_comes_after_the_time_of_the_test_is_in_its_last_row() {
        assert_eq!(rows_with_rest(100, 70), [(0, 1000, 1000), (1000, 2100, 1070)]);
        let apart = [(0, 1000, 1000), (1000, 2000, 1000), (2000, 2300, 70)];
        assert_eq!(rows_with_rest(300, 70), apart);
        assert_eq!(rows_with_rest(0, 0), [(0, 1000, 1000), (1000, 2000, 1000)]);
        assert_eq!(rows_with_rest(0, 5), [(0, 1000, 1000), (1000, 2000, 1005)]);
    }

    /// Start and end in ms, and bytes, of the rows of a stream of one byte each ms, whose thread
    /// looks at these times: at the ends of intervals, when it stops, at an interval that ends
    /// after that, and at the end.
    fn rows_looked_at(looks: [&[u64]; 2], stop: u64, end: u64) -> Vec<(u64, u64, u64)> {
        let mut account = Account { row_ns_min: 125_000_000, ..Account::default() };
        let mut rows = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                rows.push((row.start_ns / 1_000_000, row.end_ns / 1_000_000, row.bytes));
            }
        };
        let at = |ms: u64| {
            let local = vec![sample(0, ms * 1_000_000, ms)];
            IntervalSamples { remote: local.clone(), local }
        };
        looks[0].iter().for_each(|ms| account.next_interval(at(*ms), &mut watch));
        account.hold_interval(at(stop), &mut watch);
        looks[1].iter().for_each(|ms| account.next_interval(at(*ms), &mut watch));
        account.last_interval(at(end), end * 1_000_000, &mut watch);
        rows
    }

    #[test]
    fn whenever_a_late_thread_looks_the_rows_add_up_to_the_last_byte() {
        // The interval of 500 ms ended 450 ms late, the next one in time.
        let late = rows_looked_at([&[950, 1000], &[]], 1000, 1010);
        assert_eq!(late, [(0, 950, 950), (950, 1010, 60)]);
        // It was away between the last interval and the stop, and what was queued came long after.
        let away = rows_looked_at([&[500, 1000], &[]], 1004, 1290);
        assert_eq!(away, [(0, 500, 500), (500, 1000, 500), (1000, 1290, 290)]);
        // An interval ends after the stop, and the rest is as long as others may be.
        let after = rows_looked_at([&[500, 1000], &[1500]], 1000, 1700);
        let rows = [(0, 500, 500), (500, 1000, 500), (1000, 1500, 500), (1500, 1700, 200)];
        assert_eq!(after, rows);
        for stop in [1000, 1001, 1100, 1130, 1400] {
            for look in [&[][..], &[stop], &[stop + 1], &[stop + 140], &[stop + 1, stop + 300]] {
                for rest in [0, 1, 124, 125, 600] {
                    let end = look.last().copied().unwrap_or(stop) + rest;
                    let rows = rows_looked_at([&[480, 999], look], stop, end);
                    let begins = rows.iter().map(|row| row.0);
                    let ends = std::iter::once(0).chain(rows.iter().map(|row| row.1));
                    assert!(begins.zip(ends).all(|(begin, end)| begin == end), "{rows:?}");
                    assert_eq!(rows.iter().map(|row| row.2).sum::<u64>(), end, "{rows:?}");
                }
            }
        }
    }

    #[test]
    fn what_a_short_omitted_interval_brings_is_of_no_row_that_counts() {
        let mut account =
            Account { row_ns_min: 125_000_000, omit_ns: 1_000_000_000, ..Account::default() };
        let mut rows = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                rows.push((row.omitted, row.start_ns / 1_000_000, row.bytes));
            }
        };
        for (ms, bytes) in [(950, 95), (1000, 100), (1050, 107), (1500, 152)] {
            let local = vec![sample(0, ms * 1_000_000, bytes)];
            account.interval(IntervalSamples { remote: local.clone(), local }, &mut watch);
            if ms == 1000 {
                account.omit_over();
            }
        }
        assert_eq!(rows, [(true, 0, 95), (false, 1000, 52)]);
    }

    #[test]
    fn a_rest_of_one_direction_is_a_row_of_both() {
        let mut account = Account {
            row_ns_min: 250_000_000,
            size_bytes: 1000,
            planned_ns: Some(1_000_000_000),
            ..Account::default()
        };
        let mut rows = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                rows.push((row.direction, row.bytes));
            }
        };
        let at = |ms: u64, up: u64, down: u64| {
            let of = |direction, count| {
                let counts = DatagramCounts { datagrams: count, next: count, ..<_>::default() };
                Sample::empty_at(direction, 0, ms * 1_000_000).with_datagrams(counts, 1000)
            };
            let local = vec![of(Direction::Up, up), of(Direction::Down, down)];
            IntervalSamples { local, remote: Vec::new() }
        };
        account.next_interval(at(1000, 10, 20), &mut watch);
        account.hold_interval(at(1000, 10, 20), &mut watch);
        account.last_interval(at(1300, 11, 20), 1_300_000_000, &mut watch);
        let (up, down) = (Direction::Up, Direction::Down);
        assert_eq!(rows, [(up, 10_000), (down, 20_000), (up, 1000), (down, 0)]);
    }

    #[test]
    fn a_rest_that_one_of_two_streams_brought_is_a_row_of_both_and_their_sum() {
        let mut account =
            Account { row_ns_min: 250_000_000, rest_is_row: true, ..Account::default() };
        let mut rows = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                rows.push((row.flow, row.bytes));
            }
        };
        for (ms, one) in [(1000, 1000), (1100, 1070), (1110, 1070)] {
            let samples = vec![sample(0, ms * 1_000_000, one), sample(1, ms * 1_000_000, 2000)];
            account.local_interval(samples.clone(), &mut watch);
            account.remote_interval(samples, &mut watch);
        }
        let (first, second) = (Some(0), Some(1));
        let whole = [(first, 1000), (second, 2000), (None, 3000)];
        // The second rest brought nothing.
        assert_eq!(rows, [whole, [(first, 70), (second, 0), (None, 70)]].concat());
    }

    #[test]
    fn a_test_shorter_than_its_interval_is_a_row() {
        // An interval of a day stands for none, and a quarter of it is the shortest rest.
        let mut account = Account { row_ns_min: 21_600_000_000_000, ..Account::default() };
        let mut rows = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                rows.push((row.start_ns, row.end_ns, row.bytes));
            }
        };
        account.local_samples = vec![vec![sample(0, 50_000_000, 10)]];
        account.remote_interval(vec![sample(0, 50_000_000, 10)], &mut watch);
        assert_eq!(rows, [(0, 50_000_000, 10)]);
    }

    fn datagrams(t_s: u64, datagrams: u64, next: u64) -> Sample {
        let counts = DatagramCounts { datagrams, next, ..DatagramCounts::default() };
        Sample::empty_at(Direction::Up, 0, t_s * 1_000_000_000).with_datagrams(counts, 1000)
    }

    /// The rows of a stream of 1000-byte datagrams whose ends told these counts.
    fn watched_rows(sent: &[Sample], received: &[Sample]) -> Vec<IntervalRow> {
        let mut account = Account::default();
        let mut rows = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                rows.push(row.clone());
            }
        };
        for (sent, received) in sent.iter().zip(received) {
            account.local_interval(vec![sent.clone()], &mut watch);
            account.remote_interval(vec![received.clone()], &mut watch);
        }
        rows
    }

    #[test]
    fn rows_of_datagrams_that_no_receiver_tells_of_are_what_was_sent() {
        let mut account =
            Account { size_bytes: 1000, omit_ns: 1_000_000_000, ..Account::default() };
        account.planned_ns = Some(2_000_000_000);
        let mut rows = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                rows.push((row.flow, row.bytes, row.omitted, row.goodput_bps));
                assert_eq!(row.datagrams, None, "nobody knows what arrived");
            }
        };
        let other = |sample| Sample { flow: 1, ..sample };
        // At 2 s, when the plan ends, one stream has 5 more to send; then nothing moves.
        for (t_s, one, two) in [(1, 10, 20), (2, 15, 40), (3, 20, 40), (4, 20, 40)] {
            let samples = vec![datagrams(t_s, one, one), other(datagrams(t_s, two, two))];
            account.local_interval(samples, &mut watch);
            account.remote_interval(Vec::new(), &mut watch);
        }
        let bytes: Vec<_> = rows.iter().map(|row| (row.0, row.1, row.2)).collect();
        let (first, second) = (Some(0), Some(1));
        assert_eq!(
            bytes[..3],
            [(first, 10_000, true), (second, 20_000, true), (None, 30_000, true)]
        );
        assert_eq!(
            bytes[3..6],
            [(first, 5000, false), (second, 20_000, false), (None, 25_000, false)]
        );
        // 25,000 bytes in a second are 200 kbit/s.
        assert!((rows[5].3 - 200_000.0).abs() < 1e-6);
        assert_eq!(bytes[6..], [(first, 5000, false), (second, 0, false), (None, 5000, false)]);
    }

    #[test]
    fn counts_of_datagrams_add_up_over_streams() {
        let mut account = Account::default();
        let mut sums = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event
                && row.flow.is_none()
            {
                sums.extend(row.datagrams);
            }
        };
        let told = |flow, [datagrams, next, lost_here, duplicates, reordered]: [u64; 5]| {
            let counts = DatagramCounts {
                datagrams,
                next,
                lost_here,
                duplicates,
                reordered,
                ..<_>::default()
            };
            let sample = Sample::empty_at(Direction::Up, flow, 1_000_000_000);
            sample.with_datagrams(counts, 1000)
        };
        let sent = vec![told(0, [100, 100, 0, 0, 0]), told(1, [50, 50, 0, 0, 0])];
        account.local_interval(sent, &mut watch);
        let received = vec![told(0, [90, 97, 3, 1, 4]), told(1, [30, 45, 8, 2, 5])];
        account.remote_interval(received, &mut watch);
        let [sum] = sums.as_slice() else { panic!("one interval: {sums:?}") };
        // 7 and 15 were passed over, 3 and 5 are on their way.
        assert_eq!((sum.sent, sum.received, sum.lost, sum.in_flight), (150, 120, 22, 8));
        assert_eq!((sum.lost_here, sum.duplicates, sum.reordered), (11, 3, 9));
    }

    #[test]
    fn up_to_any_interval_sent_is_received_and_lost_and_in_flight() {
        // 100 sent, 90 came up to number 95; 200 sent, 3 of the 5 passed over came late; at the
        // end the receiver looks later than the sender.
        let sent = [datagrams(1, 100, 100), datagrams(2, 200, 200), datagrams(3, 290, 290)];
        let received = [datagrams(1, 90, 95), datagrams(2, 197, 199), datagrams(3, 298, 300)];
        let rows = watched_rows(&sent, &received);
        let mut sums = (0, 0, 0);
        for row in &rows {
            let it = row.datagrams.expect("a UDP row");
            sums = (sums.0 + it.sent, sums.1 + it.received, sums.2 + it.lost);
            let closed = sums.1.cast_signed() + sums.2 + it.in_flight.cast_signed();
            assert_eq!(sums.0.cast_signed(), closed, "{it:?}");
        }
        let lost: Vec<i64> = rows.iter().filter_map(|row| Some(row.datagrams?.lost)).collect();
        assert_eq!(lost, [5, -3, 0]);
        let flying = rows.iter().filter_map(|row| Some(row.datagrams?.in_flight));
        assert_eq!(flying.collect::<Vec<u64>>(), [5, 1, 0]);
        // 90 datagrams of 1000 bytes in a second are 720 kbit/s.
        assert!((rows[0].goodput_bps - 720_000.0).abs() < 1e-6);
    }
}
