//! What a client gathers during a test: streams, samples of both ends, and the final reports; and
//! the rows of intervals, whose counts close.

use std::net::SocketAddr;

use linerate_core::record::{
    DatagramRow, Direction, End, Event, Failure, Fault, IntervalRow, Side,
};
use linerate_core::time::MonoTime;
use linerate_proto::native::{EndReport, UdpSample, UdpSearchNews};

use super::search_account::SearchAccount;
use crate::path::witness::Witness;
use crate::throughput::{client_side, rate_bps};

/// An open stream.
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
    pub(crate) size_bytes: u32,
    /// Largest packet of this end's route, where the kernel told.
    pub(crate) route_mtu_bytes: Option<u32>,
    pub(crate) connections: Vec<Connection>,
    /// Samples of the client's end, one list an interval.
    pub(crate) local_samples: Vec<Vec<UdpSample>>,
    /// Samples of the server's end, one list an interval.
    pub(crate) remote_samples: Vec<Vec<UdpSample>>,
    /// The client's final reports.
    pub(crate) local: Vec<EndReport>,
    /// The server's final reports; empty when it went away.
    pub(crate) remote: Vec<EndReport>,
    /// Spans shorter than this make no row: the rest after the last whole interval.
    pub(crate) row_ns_min: u64,
    /// End of the span that does not count.
    pub(crate) omit_ns: u64,
    /// How long the senders were planned to send; what begins later is the wait for the last ones.
    pub(crate) planned_ns: Option<u64>,
    /// Intervals whose rows have been told.
    pub(crate) intervals_told: usize,
    /// Watches the emulated paths on the way.
    pub(crate) witness: Option<Witness>,
    /// What both ends told of a search; none in other tests.
    pub(crate) search: Option<SearchAccount>,
}

type Watch<'a> = &'a mut dyn FnMut(&Event);

/// What both ends knew of a stream at the end of an interval, counted from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) t_ns: u64,
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
    pub(crate) fn of(received: &UdpSample, sent: Option<&UdpSample>) -> Self {
        let counts = received.counts;
        let told = sent.map_or(0, |sample| sample.counts.datagrams);
        Self {
            t_ns: received.t_ns,
            sent: told.max(counts.next),
            received: counts.datagrams,
            lost: counts.next.saturating_sub(counts.datagrams),
            lost_here: counts.lost_here,
            duplicates: counts.duplicates,
            reordered: counts.reordered,
            jitter_ns: counts.jitter_ns,
        }
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
    /// Notes an open stream.
    pub(crate) fn connected(
        &mut self,
        (direction, flow): (Direction, u16),
        client_addr: &str,
        server: SocketAddr,
        route_mtu_bytes: Option<u32>,
    ) {
        self.route_mtu_bytes = route_mtu_bytes;
        self.connections.push(Connection {
            direction,
            flow,
            client_addr: client_addr.to_owned(),
            server_addr: server.to_string(),
        });
    }

    /// Whether anything was measured.
    pub(crate) fn has_samples(&self) -> bool {
        let moved = |samples: &Vec<Vec<UdpSample>>| {
            samples.last().is_some_and(|last| last.iter().any(|it| it.counts.datagrams > 0))
        };
        moved(&self.local_samples) || moved(&self.remote_samples)
    }

    /// Takes the client's samples of an interval.
    pub(crate) fn local_interval(&mut self, samples: Vec<UdpSample>, watch: Watch<'_>) {
        self.local_samples.push(samples);
        self.tell(watch);
    }

    /// Takes the server's samples of an interval.
    pub(crate) fn remote_interval(&mut self, samples: Vec<UdpSample>, watch: Watch<'_>) {
        self.remote_samples.push(samples);
        self.tell(watch);
    }

    /// Takes what an end has to add to a search.
    pub(crate) fn search_news(&mut self, news: Option<UdpSearchNews>, watch: Watch<'_>) {
        if let (Some(search), Some(news)) = (&mut self.search, news) {
            search.take(&news, watch);
        }
    }

    /// Tells the rows of every interval that both ends have sampled.
    fn tell(&mut self, watch: Watch<'_>) {
        let known = self.local_samples.len().min(self.remote_samples.len());
        for at in self.intervals_told..known {
            for direction in [Direction::Up, Direction::Down] {
                let rows = self.rows(direction, at);
                rows.into_iter().for_each(|row| watch(&Event::Interval(row)));
            }
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
            Some(Failure::new(Fault::Unreachable, "move datagrams on", object, reason))
        })
    }

    /// The failure of a direction in which datagrams were sent and none is known to have arrived,
    /// by the word of an end that looked; a test that was stopped at once sent none.
    pub(crate) fn nothing_received(&self) -> Option<Failure> {
        [Direction::Up, Direction::Down].into_iter().find_map(|way| {
            let reports = || {
                let both = self.local.iter().chain(&self.remote);
                both.filter(move |report| report.direction == way).map(|report| &report.end)
            };
            let sent = reports().filter_map(|end| end.sent_datagrams.as_ref());
            let sent: u64 = sent.map(|it| it.count).sum();
            let received = reports().filter_map(|end| end.received_datagrams.as_ref());
            let received = received.map(|it| it.all.received).reduce(u64::saturating_add)?;
            (sent > 0 && received == 0).then(|| {
                let object = match way {
                    Direction::Up => "the datagrams of this host",
                    Direction::Down => "the datagrams of the server",
                };
                let reason = format!("none of {sent} arrived");
                Failure::new(Fault::Unreachable, "receive", object, reason).advise(
                    "look for a firewall, a smaller MTU (-l), or too small a receive buffer",
                )
            })
        })
    }

    /// What was known of a stream at the end of each interval that both ends have sampled.
    pub(crate) fn known(&self, direction: Direction, flow: u16) -> Vec<Known> {
        let (sent, received) = match client_side(direction) {
            Side::Sender => (&self.local_samples, &self.remote_samples),
            Side::Receiver => (&self.remote_samples, &self.local_samples),
        };
        let of = |samples: &[UdpSample]| {
            let same = |it: &&UdpSample| (it.direction, it.flow) == (direction, flow);
            samples.iter().find(same).copied()
        };
        let pairs = sent.iter().zip(received);
        let pairs = pairs.filter_map(|(sent, received)| Some((of(sent), of(received)?)));
        pairs.map(|(sent, received)| Known::of(&received, sent.as_ref())).collect()
    }

    /// The rows of interval `at` of `direction`: every stream, when there are several, and their
    /// sum.
    fn rows(&self, direction: Direction, at: usize) -> Vec<IntervalRow> {
        let flows = self.connections.iter().filter(|it| it.direction == direction);
        let rows = flows.filter_map(|place| {
            let known = self.known(direction, place.flow);
            let before = at.checked_sub(1).and_then(|before| known.get(before));
            self.row(place, known.get(at)?, &before.copied().unwrap_or_default())
        });
        let mut rows: Vec<IntervalRow> = rows.collect();
        if let [only] = rows.as_mut_slice() {
            only.flow = None;
        } else if let Some(total) = total(&rows) {
            rows.push(total);
        }
        rows
    }

    fn row(&self, place: &Connection, now: &Known, before: &Known) -> Option<IntervalRow> {
        let span_ns = now.t_ns.saturating_sub(before.t_ns);
        let late = self.planned_ns.is_some_and(|planned| before.t_ns >= planned);
        // A test that ends before its first interval does is a row, too.
        if (span_ns < self.row_ns_min && before.t_ns > 0) || late {
            return None;
        }
        let datagrams = now.since(before);
        let bytes = datagrams.received * u64::from(self.size_bytes);
        Some(IntervalRow {
            start_ns: before.t_ns,
            end_ns: now.t_ns,
            direction: place.direction,
            flow: Some(place.flow),
            bytes,
            goodput_bps: rate_bps(bytes, span_ns),
            retransmits: None,
            cwnd_bytes: None,
            rtt_ns: None,
            rtt_var_ns: None,
            send_window_bytes: None,
            pmtu_bytes: None,
            omitted: before.t_ns < self.omit_ns,
            datagrams: Some(datagrams),
        })
    }
}

fn total(rows: &[IntervalRow]) -> Option<IntervalRow> {
    let first = rows.first()?;
    let parts = rows.iter().filter_map(|row| row.datagrams);
    let datagrams = parts.reduce(|one, other| DatagramRow {
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
        datagrams,
        ..first.clone()
    })
}

#[cfg(test)]
mod tests {
    use linerate_proto::native::UdpCounts;

    use super::*;

    fn sample(t_s: u64, datagrams: u64, next: u64) -> UdpSample {
        UdpSample {
            direction: Direction::Up,
            flow: 0,
            t_ns: t_s * 1_000_000_000,
            counts: UdpCounts { datagrams, next, ..UdpCounts::default() },
            cpu_ns: None,
            run_queue_wait_ns: None,
        }
    }

    /// The rows of a stream of 1000-byte datagrams whose ends told these counts.
    fn rows(sent: &[UdpSample], received: &[UdpSample]) -> Vec<IntervalRow> {
        let mut account = Account { size_bytes: 1000, ..Account::default() };
        let server = SocketAddr::from(([192, 0, 2, 1], 5210));
        account.connected((Direction::Up, 0), "", server, None);
        let mut rows = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                rows.push(row.clone());
            }
        };
        for (sent, received) in sent.iter().zip(received) {
            account.local_interval(vec![*sent], &mut watch);
            account.remote_interval(vec![*received], &mut watch);
        }
        rows
    }

    #[test]
    fn nothing_received_of_what_was_sent_is_a_failure_and_silence_is_not() {
        use linerate_core::record::{DatagramTally, FlowEnd, ReceivedDatagrams, SentDatagrams};
        let report = |end: FlowEnd| EndReport {
            direction: Direction::Down,
            flow: 0,
            end,
            syn: None,
            client_addr: String::new(),
            failure: None,
            stolen_ratio: None,
        };
        let sent = |count| FlowEnd {
            sent_datagrams: Some(SentDatagrams { count, ..SentDatagrams::default() }),
            ..FlowEnd::default()
        };
        let received = |received| {
            let all = DatagramTally { received, ..DatagramTally::default() };
            let received_datagrams = Some(ReceivedDatagrams { all, ..Default::default() });
            FlowEnd { received_datagrams, ..FlowEnd::default() }
        };
        let of = |ends: Vec<FlowEnd>| {
            let local = ends.into_iter().map(report).collect();
            Account { local, ..Account::default() }.nothing_received()
        };
        let failure = of(vec![sent(7), received(0)]).expect("none of 7");
        assert!(failure.to_string().contains("none of 7 arrived"), "{failure}");
        assert_eq!(of(vec![sent(7), received(1)]), None);
        assert_eq!(of(vec![sent(7), received(0), received(1)]), None, "one of two streams");
        assert_eq!(of(vec![sent(0), received(0)]), None, "nothing was sent");
        assert_eq!(of(vec![sent(7)]), None, "a receiver that tells nothing");
    }

    #[test]
    fn up_to_any_interval_sent_is_received_and_lost_and_in_flight() {
        // 100 sent, 90 came up to number 95; 200 sent, 3 of the 5 passed over came late; at the
        // end the receiver looks later than the sender.
        let sent = [sample(1, 100, 100), sample(2, 200, 200), sample(3, 290, 290)];
        let received = [sample(1, 90, 95), sample(2, 197, 199), sample(3, 298, 300)];
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
