//! The rows of intervals, from what both ends told of a stream: those of datagrams close, sent is
//! received and lost and in flight.

use linerate_core::record::{DatagramRow, Direction, IntervalRow, Side};

use super::Sample;
use super::account::{Account, rate_bps};

/// What both ends told of a stream at the end of an interval.
#[derive(Clone, Copy, Default)]
struct Moment<'a> {
    receiver: Option<&'a Sample>,
    sender: Option<&'a Sample>,
}

impl<'a> Moment<'a> {
    const fn at(&self, end: Side) -> Option<&'a Sample> {
        match end {
            Side::Receiver => self.receiver,
            Side::Sender => self.sender,
        }
    }
}

/// What both ends knew of a stream of datagrams at the end of an interval, counted from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) t_ns: u64,
    pub(crate) bytes: u64,
    /// By the sender's word, or by the numbers of arrivals where these are ahead of it: each end
    /// looks at its own time.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Numbers passed over.
    pub(crate) lost: u64,
    pub(crate) lost_here: u64,
    pub(crate) duplicates: u64,
    pub(crate) reordered: u64,
    pub(crate) jitter_ns: Option<u64>,
}

impl Known {
    /// None over TCP, and where no receiver tells.
    fn of(moment: Moment<'_>) -> Option<Self> {
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

    fn since(&self, before: &Self) -> DatagramRow {
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
    /// What was known of a stream of datagrams at the end of each interval that both ends have
    /// sampled.
    pub(super) fn known(&self, direction: Direction, flow: u16) -> Vec<Known> {
        let stream = Sample::of(direction, flow, 0);
        let intervals = self.local_samples.len().min(self.remote_samples.len());
        let moments = (0..intervals).map(|at| self.moment(&stream, Some(at)));
        moments.filter_map(Known::of).collect()
    }

    /// What was told of a stream at the end of interval `at`.
    fn moment(&self, stream: &Sample, at: Option<usize>) -> Moment<'_> {
        let (sent, received) = self.samples(stream.direction);
        let of = |samples| same_stream(samples, at?, stream);
        Moment { receiver: of(received), sender: of(sent) }
    }

    /// The rows of interval `at` of `direction`: every stream, when there are several, and their
    /// sum.
    pub(super) fn rows(&self, direction: Direction, at: usize) -> Vec<IntervalRow> {
        let (sent, received) = self.samples(direction);
        // Of datagrams a receiver may tell nothing before the end: then the row is what was sent.
        let untold = self.size_bytes > 0 && received[at].is_empty();
        let counted = if untold { &sent[at] } else { &received[at] };
        let of_way = counted.iter().filter(|sample| sample.direction == direction);
        let moments =
            of_way.map(|it| (self.moment(it, Some(at)), self.moment(it, at.checked_sub(1))));
        let mut rows: Vec<IntervalRow> =
            moments.filter_map(|(now, before)| self.row(now, before)).collect();
        // A thread may look a moment before the omitted span is over by its own begin.
        let counts = self.omitted.is_some_and(|omitted| at >= omitted);
        rows.iter_mut().filter(|_| counts).for_each(|row| row.omitted = false);
        if at > 0 {
            let brings = self.rest_is_row && rows.iter().any(|row| row.bytes > 0);
            rows.retain(|row| brings || row.end_ns.saturating_sub(row.start_ns) >= self.row_ns_min);
        }
        // After the planned time a receiver waits, unless a queue held something back; a sender
        // that is behind its plan goes on.
        if !untold || rows.iter().all(|row| row.bytes == 0) {
            let waits = |row: &IntervalRow| {
                let over = self.planned_ns.is_some_and(|planned| row.start_ns >= planned);
                // After an omitted begin the rows have as much of what was under way then.
                over && (row.bytes == 0 || self.omit_ns > 0 && !self.rest_is_row)
            };
            rows.retain(|row| !waits(row));
        }
        if let [only] = rows.as_mut_slice() {
            only.flow = None;
        } else if let Some(total) = total(&rows) {
            rows.push(total);
        }
        rows
    }

    fn row(&self, now: Moment<'_>, before: Moment<'_>) -> Option<IntervalRow> {
        let sender = now.sender;
        let end = if now.receiver.is_some() { Side::Receiver } else { Side::Sender };
        let (sample, previous) = (now.at(end)?, before.at(end));
        let (start_ns, bytes) = previous.map_or((0, 0), |it| (it.t_ns, it.bytes));
        let span_ns = sample.t_ns.saturating_sub(start_ns);
        let bytes = sample.bytes.saturating_sub(bytes);
        let retransmits = sender.and_then(|sender| {
            let before = before.sender.and_then(|before| before.retransmits).unwrap_or(0);
            Some(sender.retransmits?.saturating_sub(before))
        });
        let datagrams =
            Known::of(now).map(|known| known.since(&Known::of(before).unwrap_or_default()));
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

fn total(rows: &[IntervalRow]) -> Option<IntervalRow> {
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
    use crate::flow::account::Interval;

    fn sample(flow: u16, t_ns: u64, bytes: u64) -> Sample {
        let (retransmits, rtt_ns) = (Some(bytes / 1000), Some(u64::from(flow) + 1));
        Sample { bytes, retransmits, rtt_ns, ..Sample::of(Direction::Up, flow, t_ns) }
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
            Interval { local: samples.clone(), remote: samples }
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
        Sample::of(Direction::Up, 0, t_s * 1_000_000_000).with_datagrams(counts, 1000)
    }

    /// The rows of a stream of 1000-byte datagrams whose ends told these counts.
    fn rows(sent: &[Sample], received: &[Sample]) -> Vec<IntervalRow> {
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
            let sample = Sample::of(Direction::Up, flow, 1_000_000_000);
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
        let rows = rows(&sent, &received);
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
