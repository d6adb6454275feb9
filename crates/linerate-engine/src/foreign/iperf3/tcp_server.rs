//! The TCP streams of a test at the server.
//!
//! Nothing but the order of arrival tells which is which: first those on which the server receives,
//! then those on which it sends.

use linerate_core::record::{Direction, EndReport, Event, Failure, FlowSide, TcpPlan};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::iperf3::{COOKIE_BYTES, Iperf3ServerMachine, Params, Results};
use linerate_sys::tcp::{self, TcpOptions};

use super::plan::{plan_of, request_of};
use super::registry::Iperf3Connection;
use super::report::{
    Other, amounts, count_between, in_one_span, is_of, remote_reports, results, to_the_end,
};
use super::shared::{About, Served};
use super::tcp_streams::TcpStreams;
use crate::flow::Sample;
use crate::flow::account::{Account, IntervalSamples, client_side, server_side};
use crate::flow::peer::plain_address;
use crate::flow::tcp::endpoint::StreamId;
use crate::foreign::test::opened;
use crate::served::LogText;

/// A test that was let in.
pub(super) struct Iperf3TcpServer {
    params: Params,
    streams: TcpStreams,
    arrivals: Vec<Iperf3Connection>,
    account: Account,
    /// When the client said that the test was over.
    ended: MonoTime,
    of_client: Option<Results>,
}

impl Iperf3TcpServer {
    /// The test of a client, and its plan.
    pub(super) fn new(params: Params, about: &About<'_>) -> (TcpPlan, Self) {
        let request = request_of(&params, about.shared.interval);
        let plan = plan_of(&params, &request, about.peer);
        let account = Account {
            row_ns_min: request.interval_ns / 4,
            omit_ns: request.omit_ns,
            ends: vec![crate::environment::local_end(Some(about.peer.ip()))],
            ..Account::default()
        };
        let test = Self {
            streams: TcpStreams::new(request, &params, [0, COOKIE_BYTES]),
            params,
            arrivals: Vec::new(),
            account,
            ended: MonoTime::default(),
            of_client: None,
        };
        (plan, test)
    }
}

impl Served for Iperf3TcpServer {
    fn is_ready(&mut self, _: &About<'_>) -> Result<bool, Failure> {
        Ok(true)
    }

    fn open_streams(&mut self, about: &mut About<'_>) -> Result<bool, Failure> {
        let missing = self.streams.places.len() - self.arrivals.len();
        let arrivals =
            about.registration.iter().flat_map(|registration| registration.arrivals.try_iter());
        self.arrivals.extend(arrivals.take(missing));
        if self.arrivals.len() < self.streams.places.len() {
            return Ok(false);
        }
        self.take_streams(about)?;
        self.streams.prepare()?;
        Ok(true)
    }

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Iperf3ServerMachine>,
        about: &mut About<'_>,
    ) -> Result<Option<Results>, Failure> {
        match output {
            Output::Begin => self.account.begin = now,
            Output::Start => self.streams.start_streams(self.account.begin)?,
            Output::Sample => self.sample(now, about),
            // It follows a sample of the same moment.
            Output::OmitOver => {
                self.account.omit_over();
                self.streams.omitted = self.counted();
            }
            Output::StopSending => self.streams.endpoint.stop_sending(),
            Output::Ended => {
                self.ended = now;
                self.streams.ended = self.counts(now);
            }
            Output::Peer(results) => self.of_client = Some(*results),
            Output::StopReceiving => self.streams.endpoint.stop_receiving(),
            Output::Count => return Ok(Some(self.final_results(now, about))),
            _ => {}
        }
        Ok(None)
    }

    fn flow_state(&mut self, now: MonoTime) -> FlowState {
        FlowState { settled: self.has_all(now), ..self.streams.flow_state() }
    }

    fn end_streams(&mut self) -> LogText {
        self.streams.endpoint.halt_streams();
        let noun = if self.streams.request.streams == 1 { "stream" } else { "streams" };
        let amounts = amounts(&self.account.remote);
        let line = format!("iperf3: {} {noun}{amounts}", self.streams.request.streams);
        LogText::from_reports(line, &self.account.remote)
    }
}

impl Iperf3TcpServer {
    /// Sorts the connections into their places and sets their options.
    fn take_streams(&mut self, about: &mut About<'_>) -> Result<(), Failure> {
        self.arrivals.sort_by_key(|arrival| arrival.serial);
        let arrivals = std::mem::take(&mut self.arrivals);
        let places = self.streams.places.clone();
        for (place, arrival) in places.iter().zip(&arrivals) {
            let (direction, flow) = (place.direction, place.flow);
            let opened =
                opened(&arrival.stream, direction, flow, Some(about.cookie.printable_text()));
            if let Ok(local) = arrival.stream.local_addr() {
                self.account.connected(direction, flow, &opened.remote_addr, local);
            }
            about.observer.event_seen(&Event::Stream(opened));
        }
        for (place, arrival) in places.iter().zip(arrivals) {
            let side = server_side(place.direction);
            let options = TcpOptions { mss_bytes: None, ..self.streams.options(side) };
            tcp::adjust(&arrival.stream, &options).map_err(|error| {
                crate::failure::system(&error).advise("check the limits of this host with sysctl")
            })?;
            let (direction, flow) = (place.direction, place.flow);
            let client_addr = plain_address(arrival.peer);
            let place = StreamId { direction, flow, side, client_addr };
            self.streams.endpoint.add(arrival.stream, place);
        }
        Ok(())
    }

    /// True where every stream has what the client says that it sent, and this end has sent its
    /// own.
    fn has_all(&mut self, now: MonoTime) -> bool {
        let Some(of_client) = &self.of_client else { return false };
        let samples = self.streams.endpoint.sample(now);
        let mut up = self.streams.places.iter().filter(|place| place.direction == Direction::Up);
        self.streams.request.omit_ns == 0
            && self.streams.endpoint.has_sent()
            && up.all(|place| {
                let same =
                    samples.iter().find(|sample| is_of(place, sample.direction, sample.flow));
                let bytes = same.map_or(0, |sample| sample.bytes);
                of_client.stream(place.id).is_some_and(|stream| bytes >= stream.bytes)
            })
    }

    fn sample(&mut self, now: MonoTime, about: &mut About<'_>) {
        let (samples, acknowledged) = self.streams.sample(now);
        let mut watch = |event: &Event| about.observer.event_seen(event);
        self.account.remote_interval(samples, &mut watch);
        self.account.local_interval(acknowledged, &mut watch);
    }

    /// The samples of every stream at the last row.
    fn counted(&self) -> Vec<Sample> {
        let Account { local_samples, remote_samples, .. } = &self.account;
        let received = remote_samples.last().into_iter().flatten();
        let received =
            received.filter(|sample| server_side(sample.direction) == FlowSide::Receiver);
        received.chain(local_samples.last().into_iter().flatten()).cloned().collect()
    }

    /// The samples of every stream now: bytes received, or acknowledged by the client.
    fn counts(&mut self, now: MonoTime) -> Vec<Sample> {
        let (samples, acknowledged) = self.streams.sample(now);
        let received = samples.into_iter();
        let received =
            received.filter(|sample| server_side(sample.direction) == FlowSide::Receiver);
        received.chain(acknowledged).collect()
    }

    /// Ends the streams and puts both ends' counts together; what the client is told.
    fn final_results(&mut self, now: MonoTime, about: &mut About<'_>) -> Results {
        let (mut remote, mut local) = self.streams.sample(now);
        let Self { streams, account, .. } = self;
        account.remote = streams.finish();
        let omit_ns = streams.request.omit_ns;
        let ended_ns = self.ended.nanos_since(account.begin);
        let other = Other { side_of: client_side, omit_ns, delivered_ns: None, ended_ns };
        let of_client = self.of_client.take().unwrap_or_default();
        account.local = remote_reports(&streams.places, &of_client, &other);
        about.check_client_figures(account, now);
        settle_counts(streams, account, self.params.counts_as_it_ended(), ended_ns);
        to_the_end(&mut remote, &streams.omitted, &account.remote);
        to_the_end(&mut local, &streams.omitted, &account.remote);
        let mut watch = |event: &Event| about.observer.event_seen(event);
        let now_ns = now.nanos_since(account.begin);
        account.last_interval(IntervalSamples { local, remote }, now_ns, &mut watch);
        let mut own = results(&streams.places, &account.remote, server_side);
        own.server_output = about.output(account, &self.params);
        own
    }
}

/// Which bytes count, and over which time. Of a test by time, as at iperf3's own server, what had
/// come when the test ended, and of what this end sent what had arrived; both over the time until
/// then. A test by bytes or blocks, or of a client of this program, which waits until all has come,
/// counts what was received whole, over the time until the last byte.
fn settle_counts(streams: &TcpStreams, account: &mut Account, as_it_ended: bool, ended_ns: u64) {
    let Account { remote, local, .. } = account;
    let counts = |it: &&Sample| as_it_ended || it.direction == Direction::Down;
    let until: Vec<Sample> = streams.ended.iter().filter(counts).cloned().collect();
    count_between(remote, &streams.omitted, &until, ended_ns);
    if !as_it_ended {
        in_one_span(remote, Direction::Up, streams.request.omit_ns);
    }
    // An acknowledgement may be on the way of what the client has read.
    for sent in remote.iter_mut().filter(|report| report.direction == Direction::Down) {
        let same = |it: &&EndReport| (it.direction, it.flow) == (sent.direction, sent.flow);
        let Some(read) = local.iter().find(same).map(|report| &report.end) else { continue };
        // A client that waits for it has read it by the end of its own time.
        if read.bytes_measured > sent.end.bytes_measured {
            sent.end.bytes_measured = read.bytes_measured.min(sent.end.bytes);
            sent.end.span_ns = sent.end.span_ns.max(read.span_ns);
        }
    }
    in_one_span(remote, Direction::Down, streams.request.omit_ns);
}
