//! What a client gathers during a test: connections, samples of both ends, and the final reports.

use std::net::SocketAddr;

use linerate_core::record::{
    Direction, End, Event, Failure, Fault, FlowEnd, IntervalRow, Trial, Verified,
};
use linerate_core::time::MonoTime;
use linerate_proto::native::{EndReport, FlowSample};

use crate::path::witness::Witness;

/// A connected data stream.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) direction: Direction,
    pub(crate) flow: u16,
    pub(crate) client_addr: String,
    pub(crate) server_addr: String,
}

/// Everything that was seen of a test.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) ends: Vec<End>,
    pub(crate) server_host_id: Option<String>,
    pub(crate) begin: MonoTime,
    pub(crate) connections: Vec<Connection>,
    /// The flow against the test's direction; its reports are among the others.
    pub(crate) background: Option<Connection>,
    /// Samples of the client's end, one list an interval.
    pub(crate) local_samples: Vec<Vec<FlowSample>>,
    /// Samples of the server's end, one list an interval.
    pub(crate) remote_samples: Vec<Vec<FlowSample>>,
    /// The client's final reports.
    pub(crate) local: Vec<EndReport>,
    /// The server's final reports; empty when it went away.
    pub(crate) remote: Vec<EndReport>,
    /// Spans shorter than this make no row after another: the rest behind the last whole interval.
    pub(crate) row_ns_min: u64,
    /// End of the span that does not count.
    pub(crate) omit_ns: u64,
    /// Intervals whose rows have been told.
    pub(crate) intervals_told: usize,
    /// The server tells nothing of its side: what the client's end knows is the result.
    pub(crate) one_sided: bool,
    /// What each stream of such a test begins with before its payload, where that counts.
    pub(crate) head_bytes: u64,
    /// Rounds that chose how data is moved.
    pub(crate) trials: Vec<Trial>,
    /// Watches the emulated paths on the way.
    pub(crate) witness: Option<Witness>,
}

type Watch<'a> = &'a mut dyn FnMut(&Event);

impl Account {
    /// Notes a connected stream.
    pub(crate) fn connected(
        &mut self,
        direction: Direction,
        flow: u16,
        client_addr: &str,
        server: SocketAddr,
    ) {
        self.connections.push(Connection {
            direction,
            flow,
            client_addr: client_addr.to_owned(),
            server_addr: server.to_string(),
        });
    }

    /// Notes the connected flow in the background.
    pub(crate) fn connected_background(
        &mut self,
        direction: Direction,
        client_addr: &str,
        server: SocketAddr,
    ) {
        let server_addr = server.to_string();
        let client_addr = client_addr.to_owned();
        self.background = Some(Connection { direction, flow: 0, client_addr, server_addr });
    }

    /// Whether anything was measured.
    pub(crate) fn has_samples(&self) -> bool {
        let moved = |samples: &Vec<Vec<FlowSample>>| {
            samples.last().is_some_and(|last| last.iter().any(|sample| sample.bytes > 0))
        };
        moved(&self.local_samples) || moved(&self.remote_samples)
    }

    /// Takes the client's samples of an interval.
    pub(crate) fn local_interval(&mut self, samples: Vec<FlowSample>, watch: Watch<'_>) {
        self.local_samples.push(samples);
        self.tell(watch);
    }

    /// Takes the server's samples of an interval.
    pub(crate) fn remote_interval(&mut self, samples: Vec<FlowSample>, watch: Watch<'_>) {
        self.remote_samples.push(samples);
        self.tell(watch);
    }

    /// Tells the rows of every interval that both ends have sampled. A row needs the receiver's
    /// count and the sender's retransmits of the same interval, whichever comes last.
    fn tell(&mut self, watch: Watch<'_>) {
        let known = self.local_samples.len();
        let known = if self.one_sided { known } else { known.min(self.remote_samples.len()) };
        for at in self.intervals_told..known {
            let (local, remote) = (&self.local_samples, &self.remote_samples);
            let there = if self.one_sided { local } else { remote };
            let up = self.rows(Direction::Up, at, there, local);
            let down = self.rows(Direction::Down, at, local, remote);
            up.into_iter().chain(down).for_each(|row| watch(&Event::Interval(row)));
        }
        self.intervals_told = self.intervals_told.max(known);
    }

    /// The first stream that did not end well.
    pub(crate) fn stream_failure(&self) -> Option<Failure> {
        let ends = [("this end", &self.local), ("the server's end", &self.remote)];
        ends.into_iter().find_map(|(whose, reports)| {
            let report = reports.iter().find(|report| report.failure.is_some())?;
            let object = format!("stream {} at {whose}", report.flow);
            let reason = report.failure.clone().unwrap_or_default();
            Some(Failure::new(Fault::Unreachable, "move data on", object, reason))
        })
    }

    /// The first stream whose contents were not those that were sent.
    pub(crate) fn wrong_contents(&self) -> Option<Failure> {
        let ends = [("this end", &self.local), ("the server", &self.remote)];
        ends.into_iter().find_map(|(whose, reports)| {
            let wrong = |end: &FlowEnd| end.verified.filter(|found| found.wrong_bytes > 0);
            let (report, found) =
                reports.iter().find_map(|report| Some((report, wrong(&report.end)?)))?;
            let Verified { bytes, wrong_bytes, first_wrong_offset } = found;
            let object = format!("contents of stream {} at {whose}", report.flow);
            let place = first_wrong_offset.unwrap_or_default();
            let reason = format!(
                "{wrong_bytes} of {bytes} bytes are not what was sent, the first at offset {place}"
            );
            let advice = "something on the way changes data and mends its checksums: a proxy, a \
                          middlebox, or memory that fails";
            Some(Failure::new(Fault::Corrupted, "check", object, reason).advise(advice))
        })
    }

    /// The rows of interval `at` of `direction`: every stream, when there are several, and their
    /// sum. `received` are the receiving end's samples, `sent` the sending end's.
    fn rows(
        &self,
        direction: Direction,
        at: usize,
        received: &[Vec<FlowSample>],
        sent: &[Vec<FlowSample>],
    ) -> Vec<IntervalRow> {
        let mut rows = Vec::new();
        let before = at.checked_sub(1);
        for sample in received[at].iter().filter(|sample| sample.direction == direction) {
            let earlier = before.and_then(|i| same_flow(&received[i], sample));
            let newest = sent.get(at).and_then(|samples| same_flow(samples, sample));
            let older = before.and_then(|i| same_flow(sent.get(i)?, sample));
            let row = self.row(sample, earlier, newest, older);
            // A test that ends before its first interval does is a row, too.
            if earlier.is_none() || row.end_ns - row.start_ns >= self.row_ns_min {
                rows.push(row);
            }
        }
        if let [only] = rows.as_mut_slice() {
            only.flow = None;
        } else if let Some(total) = total(&rows) {
            rows.push(total);
        }
        rows
    }

    fn row(
        &self,
        sample: &FlowSample,
        earlier: Option<&FlowSample>,
        sender: Option<&FlowSample>,
        sender_before: Option<&FlowSample>,
    ) -> IntervalRow {
        let start_ns = earlier.map_or(0, |earlier| earlier.t_ns);
        let bytes = sample.bytes - earlier.map_or(0, |earlier| earlier.bytes.min(sample.bytes));
        let retransmits = sender.and_then(|sender| {
            let before = sender_before.and_then(|before| before.retransmits).unwrap_or(0);
            Some(sender.retransmits?.saturating_sub(before))
        });
        IntervalRow {
            start_ns,
            end_ns: sample.t_ns,
            direction: sample.direction,
            flow: Some(sample.flow),
            bytes,
            goodput_bps: rate_bps(bytes, sample.t_ns.saturating_sub(start_ns)),
            retransmits,
            cwnd_bytes: sender.and_then(|sender| sender.cwnd_bytes),
            rtt_ns: sender.and_then(|sender| sender.rtt_ns),
            rtt_var_ns: sender.and_then(|sender| sender.rtt_var_ns),
            send_window_bytes: sender.and_then(|sender| sender.send_window_bytes),
            pmtu_bytes: sender.and_then(|sender| sender.pmtu_bytes),
            omitted: start_ns < self.omit_ns,
            datagrams: None,
        }
    }
}

/// Bits per second of `bytes` over `span_ns`; 0 over no time.
pub(crate) fn rate_bps(bytes: u64, span_ns: u64) -> f64 {
    if span_ns == 0 { 0.0 } else { bytes as f64 * 8e9 / span_ns as f64 }
}

fn same_flow<'a>(samples: &'a [FlowSample], like: &FlowSample) -> Option<&'a FlowSample> {
    samples.iter().find(|other| other.direction == like.direction && other.flow == like.flow)
}

fn total(rows: &[IntervalRow]) -> Option<IntervalRow> {
    let first = rows.first()?;
    let sum = |pick: fn(&IntervalRow) -> Option<u64>| rows.iter().map(pick).sum::<Option<u64>>();
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
        ..first.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(flow: u16, t_ns: u64, bytes: u64) -> FlowSample {
        FlowSample {
            direction: Direction::Up,
            flow,
            t_ns,
            bytes,
            retransmits: Some(bytes / 1000),
            cwnd_bytes: None,
            rtt_ns: Some(u64::from(flow) + 1),
            send_window_bytes: None,
            receive_window_bytes: None,
            delivery_rate_bps: None,
            rtt_var_ns: None,
            pmtu_bytes: None,
            cpu_ns: None,
            run_queue_wait_ns: None,
        }
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
}
