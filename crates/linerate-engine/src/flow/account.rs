//! What an end gathers during a test: streams, samples of both ends, and the final reports.

use std::net::SocketAddr;

use linerate_core::record::{
    Direction, EndReport, Event, Failure, Fault, FlowEnd, FlowSide, MeasurementEnd, SearchNews,
    Trial, UdpTest, Verified,
};
use linerate_core::time::MonoTime;

use super::Sample;
use super::probes::Probers;
use crate::flow::udp::search_account::SearchAccount;
use crate::path::witness::PathWitness;

/// An open stream and the addresses of its ends.
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
    pub(crate) ends: Vec<MeasurementEnd>,
    pub(crate) server_host_id: Option<String>,
    pub(crate) begin: MonoTime,
    pub(crate) connections: Vec<Connection>,
    /// The flow against the test's direction; its reports are among the others.
    pub(crate) background: Option<Connection>,
    /// Samples of the client's end, one list an interval.
    pub(crate) local_samples: Vec<Vec<Sample>>,
    /// Samples of the server's end, one list an interval.
    pub(crate) remote_samples: Vec<Vec<Sample>>,
    /// The client's final reports.
    pub(crate) local: Vec<EndReport>,
    /// The server's final reports; empty when it went away.
    pub(crate) remote: Vec<EndReport>,
    /// Spans shorter than this make no row after another: they are part of the next one, and what
    /// is left behind the last whole interval is of none.
    pub(crate) row_ns_min: u64,
    /// A rest that brought bytes is a row however short, so that rows add up to the result.
    pub(crate) rest_is_row: bool,
    /// End of the span that does not count.
    pub(crate) omit_ns: u64,
    /// Intervals that lie before that, where one ended with it.
    pub(crate) omitted: Option<usize>,
    /// How long the senders were planned to send, where what begins later is the wait for the last
    /// datagrams.
    pub(crate) planned_ns: Option<u64>,
    /// The interval that ended with the time of the test, until the rest after it is known.
    pub(crate) held: Option<IntervalSamples>,
    /// Intervals waited for the rest, so the rows are to add up to the result.
    pub(crate) rest_counts: bool,
    /// Intervals that have been looked at for rows.
    pub(crate) intervals_told: usize,
    /// The interval whose end is that of the last rows.
    pub(crate) rows_until: Option<usize>,
    /// The server tells nothing of its side: what the client's end knows is the result.
    pub(crate) one_sided: bool,
    /// Bytes that each stream of such a test begins with before its payload, where they count.
    pub(crate) head_bytes: u64,
    /// Payload of each datagram; 0 over TCP.
    pub(crate) size_bytes: u32,
    /// Smallest round trip of the control connection before data flows, where the kernel told.
    pub(crate) idle_rtt_ns: Option<u64>,
    /// Largest packet of this end's route, where the kernel told.
    pub(crate) route_mtu_bytes: Option<u32>,
    /// Rounds that chose how data is moved.
    pub(crate) trials: Vec<Trial>,
    /// The account of a search for the capacity, from both ends; none in other tests.
    pub(crate) search: Option<SearchAccount>,
    /// Watches the emulated paths on the way.
    pub(crate) witness: Option<PathWitness>,
    /// Sends probes beside the load.
    pub(crate) prober: Option<Probers>,
    /// Why a figure that the other end told while the test ran cannot be.
    pub(crate) contradiction: Option<String>,
}

/// A rest that seems to be shorter is not: the last byte came before the row before it ended, or
/// while its thread looked.
const REST_NS_MIN: u64 = 10_000_000;

/// Samples of both ends' streams at one moment.
#[derive(Debug, Default)]
pub(crate) struct IntervalSamples {
    pub(crate) local: Vec<Sample>,
    pub(crate) remote: Vec<Sample>,
}

impl IntervalSamples {
    /// When the last of it was known, since the start of the test.
    pub(crate) fn end_ns(&self) -> u64 {
        self.local.iter().chain(&self.remote).map(|sample| sample.t_ns).max().unwrap_or(0)
    }
}

type Watch<'a> = &'a mut dyn FnMut(&Event);

impl Account {
    /// Notes this end, and watches the emulated paths to a server.
    pub(crate) fn begin_test(&mut self, server: SocketAddr) {
        self.ends.push(crate::environment::local_end(Some(server.ip())));
        self.witness = Some(PathWitness::begin_watching(server.ip()));
    }

    /// The same for a test of datagrams.
    pub(crate) fn begin_datagrams(&mut self, server: SocketAddr, request: &UdpTest) {
        self.begin_test(server);
        self.size_bytes = request.size_bytes;
        self.planned_ns = request.planned_span().map(|span| span.as_nanos() as u64);
    }

    /// Notes an open stream.
    pub(crate) fn connected(
        &mut self,
        direction: Direction,
        flow: u16,
        client_addr: &str,
        server: SocketAddr,
    ) {
        let (client_addr, server_addr) = (client_addr.to_owned(), server.to_string());
        self.connections.push(Connection { direction, flow, client_addr, server_addr });
    }

    /// Notes the connected flow in the background.
    pub(crate) fn connected_background(
        &mut self,
        direction: Direction,
        client_addr: &str,
        server: SocketAddr,
    ) {
        let (client_addr, server_addr) = (client_addr.to_owned(), server.to_string());
        self.background = Some(Connection { direction, flow: 0, client_addr, server_addr });
    }

    /// True where anything was measured.
    pub(crate) fn has_samples(&self) -> bool {
        let moved = |samples: &Vec<Vec<Sample>>| {
            samples.last().is_some_and(|last| last.iter().any(|sample| sample.bytes > 0))
        };
        moved(&self.local_samples) || moved(&self.remote_samples)
    }

    /// Takes the client's samples of an interval.
    pub(crate) fn local_interval(&mut self, samples: Vec<Sample>, watch: Watch<'_>) {
        self.prober.iter().for_each(|prober| prober.learn_load_rate(&samples, true));
        self.local_samples.push(samples);
        self.report_intervals(watch);
    }

    /// Takes the server's samples of an interval.
    pub(crate) fn remote_interval(&mut self, samples: Vec<Sample>, watch: Watch<'_>) {
        self.prober.iter().for_each(|prober| prober.learn_load_rate(&samples, false));
        self.remote_samples.push(samples);
        self.report_intervals(watch);
    }

    /// Takes both ends' samples of an interval.
    pub(crate) fn interval(&mut self, interval: IntervalSamples, watch: Watch<'_>) {
        self.local_samples.push(interval.local);
        self.remote_samples.push(interval.remote);
        self.report_intervals(watch);
    }

    /// Takes those of the end of an interval, which may come after the time of the test too: then
    /// they wait as [`Self::hold_interval`] has it, and never overtake the ones that wait.
    pub(crate) fn next_interval(&mut self, interval: IntervalSamples, watch: Watch<'_>) {
        match self.held {
            Some(_) => self.hold_interval(interval, watch),
            None => self.interval(interval, watch),
        }
    }

    /// The newest samples of the client's end, told or not.
    pub(crate) fn newest_local(&self) -> &[Sample] {
        let told = || self.local_samples.last().map(Vec::as_slice);
        self.held.as_ref().map(|held| &held.local[..]).or_else(told).unwrap_or_default()
    }

    /// Takes those of the moment when senders have to stop. What comes afterwards may be too short
    /// to stand alone, so they wait for [`Self::last_interval`].
    pub(crate) fn hold_interval(&mut self, interval: IntervalSamples, watch: Watch<'_>) {
        self.rest_counts = true;
        if let Some(before) = self.held.replace(interval) {
            self.interval(before, watch);
        }
    }

    /// Takes those of the end, which the rows add up to, at `now_ns` since the start: one row with
    /// the interval that waited, or one after it where the rest is as long as others may be. Of an
    /// interval that waited and has more than the end, the end is what counts.
    pub(crate) fn last_interval(
        &mut self,
        mut interval: IntervalSamples,
        now_ns: u64,
        watch: Watch<'_>,
    ) {
        let rest_ns = |held: &IntervalSamples| interval.end_ns().saturating_sub(held.end_ns());
        let held = self.held.take().filter(|held| rest_ns(held) >= self.row_ns_min);
        let held = held.filter(|held| !has_more(held, &interval));
        if let Some(held) = held {
            self.interval(held, watch);
        }
        let told_ns = |told: &[Vec<Sample>]| Some(told.last()?.first()?.t_ns);
        let told_ns = told_ns(&self.local_samples).max(told_ns(&self.remote_samples)).unwrap_or(0);
        // The last byte may have come before the thread looked that told the row before.
        let end_ns = interval.end_ns();
        let end_ns = if end_ns < told_ns + REST_NS_MIN { end_ns.max(now_ns) } else { end_ns };
        // A row is one span for all of its streams.
        let samples = interval.local.iter_mut().chain(&mut interval.remote);
        samples.for_each(|sample| sample.t_ns = end_ns);
        self.rest_is_row = true;
        self.interval(interval, watch);
    }

    /// The omitted span was over with the last interval.
    pub(crate) fn omit_over(&mut self) {
        self.omitted = Some(self.local_samples.len());
    }

    /// Takes what an end has to add to a search.
    pub(crate) fn search_news(&mut self, news: Option<SearchNews>, watch: Watch<'_>) {
        if let (Some(search), Some(news)) = (&mut self.search, news) {
            search.take_news(&news, watch);
        }
    }

    /// Tells the rows of every interval that both ends have sampled. A row needs the receiver's
    /// count and the sender's of the same interval, whichever comes last.
    fn report_intervals(&mut self, watch: Watch<'_>) {
        let known = self.local_samples.len();
        let known = if self.one_sided { known } else { known.min(self.remote_samples.len()) };
        for at in self.intervals_told..known {
            let Some(rows) = self.interval_rows(at) else { continue };
            self.rows_until = Some(at);
            rows.into_iter().for_each(|row| watch(&Event::Interval(row)));
        }
        self.intervals_told = self.intervals_told.max(known);
    }

    /// The samples of the sending end in a direction, and of the one whose count is told: that of
    /// a receiver that tells nothing is the sender's.
    pub(super) fn samples(&self, direction: Direction) -> (&[Vec<Sample>], &[Vec<Sample>]) {
        match client_side(direction) {
            FlowSide::Sender if self.one_sided => (&self.local_samples, &self.local_samples),
            FlowSide::Sender => (&self.local_samples, &self.remote_samples),
            FlowSide::Receiver => (&self.remote_samples, &self.local_samples),
        }
    }

    /// The first stream that did not end well.
    pub(crate) fn stream_failure(&self) -> Option<Failure> {
        let ends = [("this end", &self.local), ("the server's end", &self.remote)];
        let attempt = if self.size_bytes > 0 { "move datagrams on" } else { "move data on" };
        ends.into_iter().find_map(|(whose, reports)| {
            let report = reports.iter().find(|report| report.failure.is_some())?;
            let object = format!("stream {} at {whose}", report.flow);
            let reason = report.failure.clone().unwrap_or_default();
            Some(Failure::new(Fault::Unreachable, attempt, object, reason))
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
            let advice = "something on the path changes data and rewrites checksums: a proxy, a \
                          middlebox, or faulty memory";
            Some(Failure::new(Fault::Corrupted, "check", object, reason).advise(advice))
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
            let sent: u64 = sent.map(|datagrams| datagrams.count).sum();
            let received = reports().filter_map(|end| end.received_datagrams.as_ref());
            let received =
                received.map(|datagrams| datagrams.all.received).reduce(u64::saturating_add)?;
            (sent > 0 && received == 0).then(|| {
                let object = match way {
                    Direction::Up => "the datagrams of this host",
                    Direction::Down => "the datagrams of the server",
                };
                let reason = format!("none of {sent} arrived");
                Failure::new(Fault::Unreachable, "receive", object, reason).advise(
                    "check for a firewall, a smaller path MTU (-l), or a receive buffer that is \
                     too small",
                )
            })
        })
    }
}

/// True where a stream has more bytes in `held` than at the `end`.
fn has_more(held: &IntervalSamples, end: &IntervalSamples) -> bool {
    let more = |held: &[Sample], end: &[Sample]| {
        let same = |sample: &Sample| end.iter().find(|it| it.is_of(sample)).map(|it| it.bytes);
        held.iter().any(|sample| same(sample).is_some_and(|bytes| bytes < sample.bytes))
    };
    more(&held.local, &end.local) || more(&held.remote, &end.remote)
}

/// The side that the client has in a direction.
pub(crate) const fn client_side(direction: Direction) -> FlowSide {
    match direction {
        Direction::Up => FlowSide::Sender,
        Direction::Down => FlowSide::Receiver,
    }
}

/// The side that the server has in a direction.
pub(crate) const fn server_side(direction: Direction) -> FlowSide {
    match direction {
        Direction::Up => FlowSide::Receiver,
        Direction::Down => FlowSide::Sender,
    }
}

/// Bits per second of `bytes` over `span_ns`; 0 over no time.
pub(crate) fn rate_bps(bytes: u64, span_ns: u64) -> f64 {
    if span_ns == 0 { 0.0 } else { bytes as f64 * 8e9 / span_ns as f64 }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{DatagramTally, ReceivedDatagrams, SentDatagrams};

    use super::*;

    #[test]
    fn an_interval_that_waited_with_more_than_the_end_gives_way_to_it() {
        let mut account = Account { one_sided: true, ..Account::default() };
        let mut rows = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Interval(row) = event {
                rows.push((row.end_ns, row.bytes));
            }
        };
        let at = |t_ns, bytes| IntervalSamples {
            local: vec![Sample { bytes, ..Sample::empty_at(Direction::Up, 0, t_ns) }],
            remote: Vec::new(),
        };
        account.next_interval(at(1_000_000_000, 50), &mut watch);
        account.hold_interval(at(2_000_000_000, 110), &mut watch);
        account.last_interval(at(2_500_000_000, 100), 2_500_000_000, &mut watch);
        assert_eq!(rows, [(1_000_000_000, 50), (2_500_000_000, 50)]);
    }

    #[test]
    fn nothing_received_of_what_was_sent_is_a_failure_and_silence_is_not() {
        let report = |end| EndReport::from_flow_end(Direction::Down, 0, end);
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
        assert!(of(vec![sent(1), received(0)]).is_some(), "one that is lost is all");
        assert_eq!(of(vec![sent(7), received(0), received(1)]), None, "one of two streams");
        assert_eq!(of(vec![sent(0), received(0)]), None, "nothing was sent");
        assert_eq!(of(vec![sent(7)]), None, "a receiver that tells nothing");
    }
}
