//! The UDP streams of a test at the server.
//!
//! Datagrams that arrive after `test end` still count: receivers take what the client says that it
//! sent, or until nothing more comes.

use linerate_core::record::{Event, Failure, Fault, StreamOpened, UdpPlan};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::iperf3::{Iperf3ServerMachine, Params, Results};

use super::datagrams::{
    TestEnd, layout_of, reported_sent, udp_plan_of, udp_remote_reports, udp_request_of,
    udp_results, until_last,
};
use super::report::{amounts, to_the_end};
use super::shared::{About, Served};
use super::udp_port::{Iperf3UdpPort, PortTurn};
use super::udp_streams::UdpStreams;
use crate::flow::account::{Account, IntervalSamples, client_side, server_side};
use crate::flow::peer::plain_address;
use crate::served::LogText;

/// A test that was let in.
pub(super) struct Iperf3UdpServer<'a> {
    params: Params,
    streams: UdpStreams,
    udp_port: Option<&'a Iperf3UdpPort>,
    /// Turn of this test at the port that all clients share, until its streams are open.
    turn: Option<PortTurn<'a>>,
    /// Streams that are open.
    open: usize,
    account: Account,
    /// When the client said that the test was over.
    ended: MonoTime,
    of_client: Option<Results>,
}

impl<'a> Iperf3UdpServer<'a> {
    /// The test of a client, and its plan.
    pub(super) fn new(params: Params, about: &About<'a>) -> (UdpPlan, Self) {
        let request = udp_request_of(&params, about.shared.interval);
        let plan = udp_plan_of(&params, &request, about.peer);
        let account = Account {
            size_bytes: request.size_bytes,
            row_ns_min: request.interval_ns / 4,
            omit_ns: request.omit_ns,
            ends: vec![crate::environment::local_end(Some(about.peer.ip()))],
            ..Account::default()
        };
        let test = Self {
            streams: UdpStreams::new(request, &params, layout_of(&params), None),
            params,
            udp_port: about.shared.udp_port,
            turn: None,
            open: 0,
            account,
            ended: MonoTime::default(),
            of_client: None,
        };
        (plan, test)
    }
}

impl Served for Iperf3UdpServer<'_> {
    fn is_ready(&mut self, about: &About<'_>) -> Result<bool, Failure> {
        let Some(udp_port) = self.udp_port else {
            let reason = "the UDP port is another program's";
            let peer = plain_address(about.peer);
            return Err(Failure::new(Fault::PeerMisbehaved, "serve", peer, reason));
        };
        // No stream of it comes by TCP.
        about.expect_no_streams();
        self.turn = udp_port.turn_of(about.peer.ip());
        Ok(self.turn.is_some())
    }

    /// Opens the streams in the order in which they announce themselves.
    fn open_streams(&mut self, about: &mut About<'_>) -> Result<bool, Failure> {
        let (Some(turn), Some(udp_port)) = (&self.turn, self.udp_port) else { return Ok(false) };
        let own = about.own.unwrap_or_else(|| udp_port.local_address().ip());
        for place in self.streams.places.clone().iter().skip(self.open) {
            let next = turn.next(&self.streams.request, own);
            let next = next.map_err(|error| crate::failure::system(&error))?;
            let Some((socket, peer)) = next else { return Ok(false) };
            let (direction, flow) = (place.direction, place.flow);
            let local_addr = socket.local_address().map_or_else(String::new, plain_address);
            let (sndbuf_bytes, rcvbuf_bytes) = socket.buffers();
            let client_addr = plain_address(peer);
            self.account.connected(direction, flow, &client_addr, udp_port.local_address());
            about.observer.event_seen(&Event::Stream(StreamOpened {
                direction,
                flow,
                local_addr,
                remote_addr: client_addr.clone(),
                mss_bytes: None,
                sndbuf_bytes,
                rcvbuf_bytes,
                session: Some(about.cookie.printable_text()),
            }));
            self.streams.add(socket, place, server_side(direction), client_addr);
            self.open += 1;
        }
        self.turn = None;
        let started = self.streams.endpoint.start_receivers();
        started.map_err(|error| crate::failure::system(&error))?;
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
            Output::Start => {
                let started = self.streams.endpoint.start_senders(self.account.begin);
                started.map_err(|error| crate::failure::system(&error))?;
            }
            Output::Sample => self.report_interval(now, about),
            // It follows a sample of the same moment.
            Output::OmitOver => {
                self.account.omit_over();
                self.streams.omitted =
                    self.account.remote_samples.last().cloned().unwrap_or_default();
            }
            Output::StopSending => self.streams.endpoint.stop_sending(),
            Output::Ended => self.ended = now,
            Output::Peer(results) => {
                let size_bytes = self.streams.request.size_bytes;
                let sent = reported_sent(&self.streams.places, &results, size_bytes);
                self.account.contradiction = self.streams.endpoint.reported_sent(&sent);
                self.of_client = Some(*results);
            }
            Output::Count => return Ok(Some(self.final_results(now, about))),
            _ => {}
        }
        Ok(None)
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        FlowState { done: self.streams.endpoint.is_done(), ..FlowState::default() }
    }

    /// `iperf3: 2 UDP streams, 100000 bytes up in 1.000 s, 800 kbit/s, 100 datagrams received, 3
    /// lost`.
    fn end_streams(&mut self) -> LogText {
        self.streams.endpoint.halt_streams();
        let noun = if self.streams.request.streams == 1 { "stream" } else { "streams" };
        let amounts = amounts(&self.account.remote);
        let mut line = format!("iperf3: {} UDP {noun}{amounts}", self.streams.request.streams);
        let ends = || self.account.remote.iter().map(|report| &report.end);
        let received = ends().filter_map(|end| end.received_datagrams.as_ref());
        if let Some(all) = received
            .map(|datagrams| (datagrams.all.received, datagrams.all.lost))
            .reduce(|one, other| (one.0 + other.0, one.1 + other.1))
        {
            line.push_str(&format!(", {} datagrams received, {} lost", all.0, all.1));
        }
        let sent = ends().filter_map(|end| end.sent_datagrams.as_ref());
        if let Some(count) = sent.map(|datagrams| datagrams.count).reduce(|one, other| one + other)
        {
            line.push_str(&format!(", {count} datagrams sent"));
        }
        LogText::from_reports(line, &self.account.remote)
    }
}

impl Iperf3UdpServer<'_> {
    /// The interval that ends with the time waits for what its streams have counted at the end.
    fn report_interval(&mut self, now: MonoTime, about: &mut About<'_>) {
        let mut watch = |event: &Event| about.observer.event_seen(event);
        let remote = self.streams.endpoint.sample(now);
        let interval = IntervalSamples { local: Vec::new(), remote };
        if self.streams.is_over(now, self.account.begin) {
            self.account.hold_interval(interval, &mut watch);
        } else {
            self.account.next_interval(interval, &mut watch);
        }
    }

    /// Ends the streams and puts both ends' counts together; what the client is told.
    fn final_results(&mut self, now: MonoTime, about: &mut About<'_>) -> Results {
        let samples = self.streams.endpoint.sample(now);
        let sent = self.streams.endpoint.datagrams_sent().unwrap_or_default();
        let request = &self.streams.request;
        let told = TestEnd {
            side_of: server_side,
            omitted: &self.streams.omitted,
            sent: &sent,
            omit_ns: request.omit_ns,
            end_ns: self.ended.nanos_since(self.account.begin),
        };
        let mut own = udp_results(&self.streams.places, &samples, request.size_bytes, &told);
        let Self { streams, account, .. } = self;
        account.remote = streams.finish();
        streams.count_by_rows(&mut account.remote, &account.remote_samples);
        let mut remote = samples;
        to_the_end(&mut remote, &streams.omitted, &account.remote);
        let mut watch = |event: &Event| about.observer.event_seen(event);
        let now_ns = now.nanos_since(account.begin);
        account.last_interval(IntervalSamples { local: Vec::new(), remote }, now_ns, &mut watch);
        until_last(&mut own, &streams.places, &account.remote);
        let of_client = self.of_client.take().unwrap_or_default();
        let (ours, request) = (&account.remote, &streams.request);
        account.local = udp_remote_reports(&streams.places, &of_client, ours, client_side, request);
        about.check_client_figures(account, now);
        own.server_output = about.output(account, &self.params);
        own
    }
}
