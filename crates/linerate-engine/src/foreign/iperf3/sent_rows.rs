//! Rows of what an end of a UDP test sent: nobody else counts before the end of the test.

use linerate_core::record::{Direction, IntervalRow};

use crate::flow::Sample;
use crate::flow::account::rate_bps;

/// Follows the samples of the sending streams of one end.
#[derive(Debug, Default)]
pub(crate) struct SentRows {
    before: Vec<Sample>,
}

impl SentRows {
    /// The rows of the interval that ends with these samples: every stream of the direction, when
    /// there are several, and their sum.
    pub(crate) fn next(
        &mut self,
        samples: &[Sample],
        direction: Direction,
        (size_bytes, omit_ns): (u32, u64),
    ) -> Vec<IntervalRow> {
        let sent = samples.iter().filter(|sample| sample.direction == direction);
        let mut rows: Vec<IntervalRow> =
            sent.map(|sample| self.row(sample, (size_bytes, omit_ns))).collect();
        self.before = samples.to_vec();
        match rows.as_mut_slice() {
            [] => {}
            [only] => only.flow = None,
            [first, ..] => {
                let first = first.clone();
                rows.push(IntervalRow {
                    flow: None,
                    bytes: rows.iter().map(|row| row.bytes).sum(),
                    goodput_bps: rows.iter().map(|row| row.goodput_bps).sum(),
                    ..first
                });
            }
        }
        rows
    }

    fn row(&self, sample: &Sample, (size_bytes, omit_ns): (u32, u64)) -> IntervalRow {
        let same = |it: &&Sample| (it.direction, it.flow) == (sample.direction, sample.flow);
        let before = self.before.iter().find(same);
        let (start_ns, sent) = before.map_or((0, 0), |it| (it.t_ns, it.counts().datagrams));
        let bytes = sample.counts().datagrams.saturating_sub(sent) * u64::from(size_bytes);
        IntervalRow {
            start_ns,
            end_ns: sample.t_ns,
            direction: sample.direction,
            flow: Some(sample.flow),
            bytes,
            goodput_bps: rate_bps(bytes, sample.t_ns.saturating_sub(start_ns)),
            retransmits: None,
            cwnd_bytes: None,
            rtt_ns: None,
            rtt_var_ns: None,
            send_window_bytes: None,
            pmtu_bytes: None,
            omitted: start_ns < omit_ns,
            datagrams: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::DatagramCounts;

    use super::*;

    #[test]
    fn rows_are_differences_of_what_was_sent_and_add_up() {
        let sample = |flow, t_s: u64, datagrams| {
            let counts = DatagramCounts { datagrams, ..DatagramCounts::default() };
            Sample::of(Direction::Up, flow, t_s * 1_000_000_000).with_datagrams(counts, 1000)
        };
        let mut rows = SentRows::default();
        let about = (1000, 1_000_000_000);
        rows.next(&[sample(0, 1, 10), sample(1, 1, 20)], Direction::Up, about);
        let second = rows.next(&[sample(0, 2, 15), sample(1, 2, 40)], Direction::Up, about);
        let bytes: Vec<_> = second.iter().map(|row| (row.flow, row.bytes, row.omitted)).collect();
        let expected = [(Some(0), 5000, false), (Some(1), 20_000, false), (None, 25_000, false)];
        assert_eq!(bytes, expected);
        // 25,000 bytes in a second are 200 kbit/s.
        assert!((second[2].goodput_bps - 200_000.0).abs() < 1e-6);
    }
}
