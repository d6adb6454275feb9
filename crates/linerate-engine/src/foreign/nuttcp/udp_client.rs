//! A UDP test with `nuttcp -S`: marks around the data, intervals and summary from the server.
//!
//! A server that transmits does so to a port of this end, as nuttcp has no flip over UDP: a filter
//! or an address translation on the way keeps it back. Left out: several streams, over which nuttcp
//! deals one count; delays, whose stamps come only with later versions.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{
    DatagramCounts, DatagramTally, DatagramsSent, Direction, EndReport, Failure, Fault, FlowEnd,
    ReceivedDatagrams, Record, SentDatagrams, TcpDirections, UdpPlan, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::nuttcp::{
    BEGIN_MARKS, END_MARKS, NuttcpClientMachine, NuttcpClientTest, NuttcpInterval, NuttcpSummary,
    PORT, Parameters, UNLIMITED, UNTIL_TIMEOUT, UdpMark, is_swapped,
};
use linerate_proto::ttcp::TtcpMarks;
use linerate_sys::clock::monotonic;
use linerate_sys::datagram_socket::DatagramSocket;
use linerate_sys::poll::readable;
use linerate_sys::tcp::{self, TcpOptions};

use super::client::{NuttcpExtras, ToldInterval, take_news};
use super::fail::silent;
use super::layout::{NATIVE, NUMBERED_BYTES_MIN, SWAPPED};
use crate::context::Context;
use crate::flow::account::Account;
use crate::flow::contradiction::of_sender;
use crate::flow::peer::{bind_address, connect_failure};
use crate::flow::udp::client::{checked_request, run_by};
use crate::flow::udp::endpoint::Endpoint;
use crate::flow::{self, Flows, FlowsAnswer, Net, Sample, Socket, TestSession};
use crate::foreign::marked_stream::{MarkedStream, StreamTarget};

/// A server that transmits begins within this time.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Once it has begun, at a slow pace the first data comes well after its mark.
const FIRST_TIMEOUT: Duration = Duration::from_secs(15);
/// A server that acknowledges nothing for this long has vanished.
const SERVER_VANISHED: Duration = Duration::from_secs(30);
/// Datagrams of others that are dropped in one look.
const STRAYS_MAX: u32 = 256;

/// Measures with a server of nuttcp over UDP.
pub(crate) fn measure_udp(
    plan: &UdpPlan,
    server: SocketAddr,
    request: &UdpTest,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let mut told = |_: &_, _: &_| {};
    let extras = NuttcpExtras { intervals: true, ..NuttcpExtras::without_options(&mut told) };
    measure_with(plan, server, request, extras, context, account).map(|_| ())
}

/// Measures with a server of nuttcp over UDP, as `throughput::run_udp` does; also gives what the
/// server told of its end.
pub fn run_udp(
    plan: &UdpPlan,
    extras: NuttcpExtras<'_>,
    context: &mut Context<'_>,
) -> (Record, Option<NuttcpSummary>) {
    let mut summary = None;
    let record = run_by(plan, u32::MAX, context, |plan, server, context, account| {
        let request = checked_request(plan)?;
        summary = Some(measure_with(plan, server, &request, extras, context, account)?);
        Ok(())
    });
    (record, summary)
}

fn measure_with(
    plan: &UdpPlan,
    server: SocketAddr,
    request: &UdpTest,
    extras: NuttcpExtras<'_>,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<NuttcpSummary, Failure> {
    // Jitter is that of single datagrams, each at its own time.
    let alone = UdpTest { joined: request.joined && extras.jitter == 0, ..request.clone() };
    let request = &alone;
    check_request(request)?;
    if extras.jitter > 0 || extras.delay > 0 {
        check_times(request)?;
    }
    let target = StreamTarget { plan, server, request, name: "nuttcp", layout: NATIVE };
    let mut flows = NuttcpUdpClient {
        stream: MarkedStream::with_open_socket(target, account)?,
        peer: server,
        opens: None,
        ended: MonoTime::default(),
        received: DatagramCounts::default(),
        told: extras.told,
        summary: NuttcpSummary::default(),
        sent: None,
        context,
        account,
    };
    let up = flows.sends_data();
    let mut parameters = parameters(plan, request);
    parameters.instant = extras.instant || extras.jitter > 0;
    (parameters.jitter, parameters.delay) = (extras.jitter, extras.delay);
    let local = flows.stream.socket.as_ref().and_then(DatagramSocket::local_address);
    parameters.port = match (extras.data_port, local) {
        (Some(port), _) if up => port,
        (_, Some(local)) if !up => local.port(),
        _ => PORT,
    };
    // A transmitter says how much it has sent only in tests with intervals.
    if extras.intervals || !up {
        parameters.interval_s = plan.test.interval_ns as f64 / 1e9;
    }
    flows.peer.set_port(parameters.port);
    let timeout = Duration::from_nanos(plan.server.connect_timeout_ns);
    let bound = bind_address(plan.server.bind.as_deref())?;
    let control = tcp::connect(server, bound, &TcpOptions::default(), timeout);
    let control = control.map_err(|error| connect_failure(&error))?;
    tcp::notice_vanished_peer(&control, SERVER_VANISHED);
    let test = flows.client_test(parameters);
    flows.run(NuttcpClientMachine::new(monotonic(), test), &mut Socket::new(control)?)
}

/// Refuses settings that the protocol has no place for.
fn check_request(request: &UdpTest) -> Result<(), Failure> {
    let refuse = |reason: &str, advice: &str| {
        Err(Failure::new(Fault::Usage, "ask nuttcp for", "a UDP test", reason).advise(advice))
    };
    if request.directions == TcpDirections::Both {
        return refuse("it measures one way at a time", "omit --bidir");
    }
    if request.streams > 1 {
        return refuse("one count is all it has for all streams", "omit -P");
    }
    if request.omit_ns > 0 {
        return refuse("its summary counts from the start", "leave out -O");
    }
    let down = request.directions == TcpDirections::Down;
    if down && request.size_bytes < NUMBERED_BYTES_MIN {
        return refuse("datagrams below 32 bytes are not counted", "give -l 32 or more");
    }
    Ok(())
}

/// Refuses settings for which nuttcp cannot measure jitter and delays.
fn check_times(request: &UdpTest) -> Result<(), Failure> {
    let refuse = |reason: &str, advice: &str| {
        let failure = Failure::new(Fault::Usage, "ask nuttcp for", "jitter", reason);
        Err(failure.advise(advice))
    };
    if request.directions != TcpDirections::Up {
        return refuse("only a receiving server reports it", "leave out -r, or -j and -o");
    }
    if request.pace.is_none() {
        return refuse("it is defined for a paced test only", "give a rate by -R");
    }
    Ok(())
}

/// The parameters of a plan.
fn parameters(plan: &UdpPlan, request: &UdpTest) -> Parameters {
    let count = request.datagram_budget();
    // A pace of kbit/s, never above what was asked for but by its last kbit/s.
    let bps = request.pace.map(BitRate::bits_per_sec);
    let rate = bps.map_or(UNLIMITED, |bps| bps.div_ceil(1000).min(UNLIMITED - 1));
    let timeout_s = match request.planned_span() {
        Some(span) if count.is_none() => span.as_secs_f64(),
        _ => 0.0,
    };
    Parameters {
        buflen: request.size_bytes,
        nbuf: count.unwrap_or(UNTIL_TIMEOUT),
        window: plan.test.window_bytes.unwrap_or(0),
        rate,
        client_sends: request.directions == TcpDirections::Up,
        timeout_s,
        udp: true,
        tos: plan.test.dscp.unwrap_or(0) << 2,
        ..Parameters::default()
    }
}

/// A server that said OK opens its port only then.
const OPENS: Duration = Duration::from_millis(10);

/// The client's end of a test of one stream.
struct NuttcpUdpClient<'a, 'w> {
    stream: MarkedStream<'a>,
    /// Where the other end takes datagrams.
    peer: SocketAddr,
    /// Until when a server that sends may begin; none once the stream is open.
    opens: Option<MonoTime>,
    /// When the last datagram had left.
    ended: MonoTime,
    /// The counts that a receiving server has told at the ends of intervals.
    received: DatagramCounts,
    told: &'a mut ToldInterval<'a>,
    /// The server's summary of its end, and the datagrams that it has sent by that.
    summary: NuttcpSummary,
    sent: Option<DatagramsSent>,
    context: &'a mut Context<'w>,
    account: &'a mut Account,
}

impl Flows for NuttcpUdpClient<'_, '_> {
    type Machine = NuttcpClientMachine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NuttcpClientMachine>,
    ) -> Result<Option<FlowsAnswer<NuttcpClientMachine>>, Failure> {
        match output {
            Output::News(news) => {
                if let Some(interval) = take_news(news, self.account, self.told) {
                    self.add_told_interval(now, &interval);
                }
            }
            Output::Open => self.begin_opening(now)?,
            Output::Begin => self.account.begin = now,
            Output::Start => self.stream.start_threads(self.account.begin)?,
            Output::Sample => self.sample(now),
            Output::StopSending => self.stream.endpoint.stop_sending(),
            Output::Ended => {
                self.ended = now;
                self.stream.marks = self.sends_data().then(|| TtcpMarks::new(now, END_MARKS));
            }
            Output::Peer(summary) => {
                self.summary = *summary;
                // A server that has told needs no more of them.
                self.stream.marks.take_if(|_| self.summary.megabytes.is_some());
                let sent = self.sent_by_server(now);
                let wrong = self.stream.endpoint.reported_sent(&[sent]);
                self.account.contradiction = self.account.contradiction.take().or(wrong);
                self.sent = Some(sent);
            }
            Output::Finished => self.finish(now),
            _ => {}
        }
        Ok(None)
    }

    fn answer(
        &mut self,
        now: MonoTime,
    ) -> Result<Option<FlowsAnswer<NuttcpClientMachine>>, Failure> {
        self.stream.send_due(now);
        let Some(until) = self.opens else {
            return match !self.sends_data() && self.stream.endpoint.has_failed() {
                true => Err(silent(&self.stream.server(), "end of the data")),
                false => Ok(None),
            };
        };
        let open = match self.stream.marks {
            Some(marks) => marks.is_over(),
            None => self.await_begin(now, until)?,
        };
        self.opens = self.opens.filter(|_| !open);
        Ok(open.then_some(FlowsAnswer::Opened))
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        FlowState { done: self.stream.is_done(), ..FlowState::default() }
    }

    fn peer_name(&self) -> String {
        self.stream.server()
    }
}

impl NuttcpUdpClient<'_, '_> {
    /// The test as its machine knows it.
    fn client_test(&self, parameters: Parameters) -> NuttcpClientTest {
        let request = self.stream.target.request;
        let interval = Duration::from_nanos(request.interval_ns);
        NuttcpClientTest { parameters, span: request.planned_span(), interval }
    }

    /// Runs the test; what was measured is kept, however it ended.
    fn run(
        self,
        machine: NuttcpClientMachine,
        net: &mut impl Net,
    ) -> Result<NuttcpSummary, Failure> {
        let stop = self.context.stop.clone();
        let mut session = TestSession::new(machine, self);
        let result = flow::run(&mut session, net, &stop);
        let mut flows = session.flows;
        if flows.stream.endpoint.has_started() {
            flows.account.local = flows.stream.end_threads();
        }
        result?;
        flows.account.stream_failure().map_or(Ok(flows.summary), Err)
    }

    const fn sends_data(&self) -> bool {
        matches!(self.stream.target.request.directions, TcpDirections::Up)
    }

    /// Begins to open the stream.
    fn begin_opening(&mut self, now: MonoTime) -> Result<(), Failure> {
        self.opens = Some(now + BEGIN_TIMEOUT);
        if self.sends_data() {
            self.stream.marks = Some(TtcpMarks::new(now + OPENS, BEGIN_MARKS));
            self.opened(self.peer)?;
        }
        Ok(())
    }

    /// Looks for the marks of the begin and the first data, which stays.
    fn await_begin(&mut self, now: MonoTime, until: MonoTime) -> Result<bool, Failure> {
        let mut bytes = [0; 64];
        for _ in 0..STRAYS_MAX {
            let Some(socket) = &self.stream.socket else { break };
            let ready = readable(socket, Duration::ZERO).unwrap_or(false);
            let Some((length, peer)) =
                socket.peek_from(&mut bytes).unwrap_or(None).filter(|_| ready)
            else {
                break;
            };
            let ours = peer.ip().to_canonical() == self.stream.target.server.ip().to_canonical();
            match UdpMark::parse(&bytes[..length]) {
                None if ours => {
                    if is_swapped(&bytes[..length], length) {
                        let StreamTarget { request, plan, .. } = &self.stream.target;
                        let endpoint = Endpoint::with_layout((*request).clone(), SWAPPED, plan.cpu);
                        self.stream.endpoint = endpoint;
                    }
                    return self.opened(peer).map(|()| true);
                }
                Some(_) if ours => self.opens = Some(now + FIRST_TIMEOUT),
                _ => {}
            }
            let _ = socket.receive_from(&mut bytes);
        }
        if now < until {
            return Ok(false);
        }
        let failure = silent(&self.stream.server(), "datagram");
        Err(failure.advise("a firewall may block UDP: the server sends to this host"))
    }

    fn opened(&mut self, peer: SocketAddr) -> Result<(), Failure> {
        let direction = if self.sends_data() { Direction::Up } else { Direction::Down };
        self.stream.opened(direction, peer, self.context, self.account)
    }

    /// Tells what an interval had; what a receiving server says of it comes by itself.
    fn sample(&mut self, now: MonoTime) {
        self.account.local_interval(self.stream.samples(now), self.context.watch);
        if !self.sends_data() {
            self.account.remote_interval(Vec::new(), self.context.watch);
        }
    }

    /// Takes an interval that the server told as a sample of its end.
    fn add_told_interval(&mut self, now: MonoTime, interval: &NuttcpInterval) {
        let Some((lost, all)) = interval.datagrams else { return };
        let Self { received, account, .. } = self;
        // One that is late was counted as lost in an interval before, and makes this count less.
        let came = u64::try_from(all.saturating_sub(lost)).unwrap_or(0);
        received.datagrams = received.datagrams.saturating_add(came);
        received.next = received.next.saturating_add_signed(all);
        let sent = all_sent(Direction::Up, received.next);
        let wrong = of_sender(self.stream.target.request, &sent, now.nanos_since(account.begin));
        if let Some(reason) = wrong {
            account.contradiction.get_or_insert(reason);
            return;
        }
        let t_ns =
            self.stream.target.request.interval_ns * (account.remote_samples.len() as u64 + 1);
        let sample = sample(t_ns, *received, account);
        account.remote_interval(vec![sample], self.context.watch);
    }

    /// The datagrams that the server has sent, as far as its summary and the arrivals here tell.
    fn sent_by_server(&self, now: MonoTime) -> DatagramsSent {
        let size = u64::from(self.stream.target.request.size_bytes);
        let next = self.next(now);
        let known = next.saturating_mul(size);
        let bytes = self.summary.payload_bytes(known).unwrap_or(known);
        let datagrams = bytes.div_ceil(size).max(next);
        let span_ns = self.summary.span_ns(bytes).unwrap_or(0);
        DatagramsSent { span_ns, ..all_sent(Direction::Down, datagrams) }
    }

    /// Ends the streams and puts both ends' counts together.
    fn finish(&mut self, now: MonoTime) {
        if self.sends_data() {
            return self.finish_sending();
        }
        self.sample(now);
        let wrong = self.came_beyond(now);
        self.account.contradiction = self.account.contradiction.take().or(wrong);
        self.account.local = self.stream.end_threads();
        if let Some(sent) = self.sent.filter(|_| self.summary.megabytes.is_some()) {
            let ends = self.account.local.iter();
            self.account.remote = ends.map(|own| transmitter(own, &sent, &self.summary)).collect();
        }
    }

    /// Datagrams that the server had sent by the last one that came.
    fn next(&self, now: MonoTime) -> u64 {
        self.stream.samples(now).first().map_or(0, |sample| sample.counts().next)
    }

    /// The reason why the server cannot have sent what its datagrams say, those among them that
    /// came after its summary.
    fn came_beyond(&self, now: MonoTime) -> Option<String> {
        let sent = all_sent(Direction::Down, self.next(now));
        of_sender(self.stream.target.request, &sent, now.nanos_since(self.account.begin))
    }

    fn finish_sending(&mut self) {
        let ended = self.stream.endpoint.datagrams_sent().unwrap_or_default();
        let ended = ended.first().map(|sent| sent.datagrams);
        let sent = ended.unwrap_or(0);
        let size = u64::from(self.stream.target.request.size_bytes);
        let arrived = self.summary.payload_bytes(sent * size).map(|bytes| bytes.div_ceil(size));
        let rows = self.account.remote_samples.len() as u64;
        let wrong = ended.and_then(|sent| {
            let announced = self.received.next.saturating_sub(rows);
            of_receiver(sent, announced, arrived.unwrap_or(0))
        });
        self.account.contradiction = self.account.contradiction.take().or(wrong);
        // What has no line of its own is one row: both ends' samples are of the same moments.
        let account = &mut *self.account;
        let known = account.remote_samples.len();
        account.local_samples.truncate(known);
        account.remote_samples.truncate(account.local_samples.len());
        account.local_interval(self.stream.endpoint.sample(self.ended), self.context.watch);
        if let Some(arrived) = arrived {
            let counts = DatagramCounts { datagrams: arrived, next: sent, ..self.received };
            let sample = sample(self.ended.nanos_since(account.begin), counts, account);
            account.remote_interval(vec![sample], self.context.watch);
        }
        self.account.local = self.stream.end_threads();
        let (summary, size_bytes) = (&self.summary, self.stream.target.request.size_bytes);
        let told = self.account.local.iter().zip(arrived);
        let report = |(own, arrived)| receiver(own, arrived, summary, size_bytes);
        self.account.remote = told.map(report).collect();
    }
}

/// Datagrams that a transmitter without an omitted span has sent.
const fn all_sent(direction: Direction, datagrams: u64) -> DatagramsSent {
    DatagramsSent { direction, flow: 0, datagrams, measured: datagrams, span_ns: 0 }
}

/// The reason why the server cannot have received what it says of `sent` datagrams; none where
/// it can. A path may deliver each twice, and nuttcp counts both; its lines round what was
/// announced.
fn of_receiver(sent: u64, announced: u64, arrived: u64) -> Option<String> {
    let counted = if arrived > sent.saturating_mul(2) { arrived } else { announced };
    (counted > sent).then(|| format!("it counts {counted} datagrams of {sent} that were sent"))
}

fn sample(t_ns: u64, counts: DatagramCounts, account: &Account) -> Sample {
    Sample::empty_at(Direction::Up, 0, t_ns).with_datagrams(counts, account.size_bytes)
}

/// The report of the server's receiver, from its summary.
fn receiver(own: &EndReport, received: u64, summary: &NuttcpSummary, size_bytes: u32) -> EndReport {
    let sent = own.end.sent_datagrams.as_ref().map(|sent| sent.measured);
    let received = received.min(sent.unwrap_or(received));
    let lost = sent.unwrap_or(received).saturating_sub(received);
    let tally = DatagramTally { sent, received, lost, ..DatagramTally::default() };
    let bytes = received.saturating_mul(size_bytes.into());
    let received_datagrams = Some(ReceivedDatagrams {
        size_bytes,
        all: tally,
        measured: tally,
        ..ReceivedDatagrams::default()
    });
    let end = FlowEnd {
        bytes,
        bytes_measured: bytes,
        span_ns: own.end.span_ns.max(summary.span_ns(bytes).unwrap_or(0)),
        io_calls: summary.calls.unwrap_or(0),
        technique: "nuttcp".to_owned(),
        received_datagrams,
        ..FlowEnd::default()
    };
    own.of_other_end(end)
}

/// The report of the server's transmitter, from its summary.
fn transmitter(own: &EndReport, told: &DatagramsSent, summary: &NuttcpSummary) -> EndReport {
    let size_bytes =
        own.end.received_datagrams.as_ref().map_or(0, |datagrams| datagrams.size_bytes);
    let bytes = told.datagrams.saturating_mul(size_bytes.into());
    let (count, measured) = (told.datagrams, told.measured);
    let sent_datagrams =
        Some(SentDatagrams { size_bytes, count, measured, ..SentDatagrams::default() });
    let end = FlowEnd {
        bytes,
        bytes_measured: bytes,
        span_ns: told.span_ns,
        io_calls: summary.calls.unwrap_or(0),
        technique: "nuttcp".to_owned(),
        sent_datagrams,
        ..FlowEnd::default()
    };
    own.of_other_end(end)
}
