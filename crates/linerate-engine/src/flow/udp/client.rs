//! The client's side of one UDP test: from a plan to a record.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{Event, Failure, Fault, Plan, Record, UdpPlan, UdpTest};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output, TestFailureReason};
use linerate_proto::native::{
    Accept, Message, NativeClientMachine, NativeClientTest, NativePeerFault, SEARCH,
};
use linerate_sys::clock::monotonic;

use super::endpoint::{Endpoint, StreamId};
use super::keep_alive;
use super::opening::{Asking, Caller, unanswered};
use super::search_account::SearchAccount;
use super::socket::{header_bytes, open_socket};
use crate::address::{resolve, resolve_server};
use crate::context::Context;
use crate::flow::Words;
use crate::flow::account::{Account, client_side};
use crate::flow::peer::{bind_address, credentials, plain_address};
use crate::flow::probes;
use crate::flow::record::record_of;
use crate::flow::tcp::control::{connect_control, rtt_min, token_of};
use crate::flow::{self, Flows, FlowsAnswer, Sample, Socket, TestSession};
use crate::socket_address::{at_port, local_towards};

/// Streams have this long to open.
const OPEN_TIMEOUT: Duration = keep_alive::SILENCE_MAX;
/// So near to that the server's word says less than what was seen here: it waits as long, and
/// began with its answer, which a busy host or a full path may have held up.
const NEAR: Duration = Duration::from_secs(2);

/// Largest IP packet that a test sends where nobody says how long its datagrams are: that of
/// Ethernet, so that results of most paths compare.
const PACKET_BYTES: u32 = 1500;

/// The record of a test that `measure` makes with the server at an address. Where the plan does not
/// say how long datagrams are, they fill a packet of the path, up to `usual_bytes_max`.
pub(crate) fn run_by<F>(
    plan: &UdpPlan,
    usual_bytes_max: u32,
    context: &mut Context<'_>,
    measure: F,
) -> Record
where
    F: FnOnce(&UdpPlan, SocketAddr, &mut Context<'_>, &mut Account) -> Result<(), Failure>,
{
    let mut plan = plan.clone();
    let account = Account {
        row_ns_min: plan.test.interval_ns / 4,
        omit_ns: plan.test.omit_ns,
        // What comes late counts. After an omitted begin the rows have as much of what was sent
        // before it.
        rest_is_row: plan.test.omit_ns == 0 && plan.server.via.is_none(),
        ..Account::default()
    };
    let server = match plan.server.via {
        None => resolve_server(&plan.server),
        // Other programs take each connection for a test.
        Some(_) => resolve(&plan.server.host, plan.server.port, plan.server.family),
    };
    if let Ok(server) = &server {
        plan.test.size_bytes.get_or_insert_with(|| usual_size(*server).min(usual_bytes_max));
    }
    record_of(Plan::Udp(plan.clone()), account, context, |context, account| {
        measure(&plan, server?, context, account)
    })
}

/// The most that an Ethernet packet carries, or one of the route to the server where that is less.
fn usual_size(server: SocketAddr) -> u32 {
    let route = linerate_sys::datagram_socket::route_mtu_bytes(server).unwrap_or(PACKET_BYTES);
    route.min(PACKET_BYTES).saturating_sub(header_bytes(server.ip())).max(16)
}

fn request(plan: &UdpPlan) -> UdpTest {
    let mut test = plan.test.clone().with_size(plan.test.size_bytes.unwrap_or(PACKET_BYTES));
    if test.search.is_some() {
        // A search begins at its lowest rate.
        test.pace = Some(linerate_core::search::rate_of_row(0));
    }
    test
}

/// The request of a plan, within the protocol's bounds.
pub(crate) fn checked_request(plan: &UdpPlan) -> Result<UdpTest, Failure> {
    let request = request(plan);
    request.check().map_err(|error| Failure::new(Fault::Usage, "plan", "UDP test", error))?;
    Ok(request)
}

/// Measures with a server of this program's own protocol.
pub(crate) fn measure(
    plan: &UdpPlan,
    server: SocketAddr,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let request = checked_request(plan)?;
    let local = bind_address(plan.server.bind.as_deref())?;
    account.begin_datagrams(server, &request);
    let timeout = Duration::from_nanos(plan.server.connect_timeout_ns);
    let control = connect_control(server, local, timeout)?;
    account.idle_rtt_ns = rtt_min(&control).map(|rtt| rtt.as_nanos() as u64);
    account.prober = probes::begin_probing(&plan.server, request.dscp, &context.stop);
    let mut net = Socket::new(control)?;
    let test = NativeClientTest {
        span: request.planned_span(),
        interval: Duration::from_nanos(request.interval_ns),
        request: Message::UdpRequest { test: request.clone(), login: false },
        last: true,
        credentials: credentials(plan.server.token.as_ref()),
    };
    let stop = context.stop.clone();
    let flows = NativeUdpClient {
        endpoint: Endpoint::new(request.clone(), plan.cpu),
        request,
        server,
        local,
        control: net.another()?,
        accept: None,
        opening: Vec::new(),
        deadline: MonoTime::default(),
        started: false,
        told: false,
        context,
        account,
    };
    let mut session = TestSession::new(NativeClientMachine::new(monotonic(), test), flows);
    let result = flow::run(&mut session, &mut net, &stop);
    session.flows.conclude(result)
}

/// The streams of a test, and what is seen of them.
struct NativeUdpClient<'a, 'w> {
    endpoint: Endpoint,
    request: UdpTest,
    server: SocketAddr,
    local: Option<IpAddr>,
    control: TcpStream,
    /// The server's answer that admits the test.
    accept: Option<Box<Accept>>,
    /// Streams until the server says that all are open, and when they should be.
    opening: Vec<Asking>,
    deadline: MonoTime,
    started: bool,
    /// The server knows what was sent.
    told: bool,
    context: &'a mut Context<'w>,
    account: &'a mut Account,
}

impl Flows for NativeUdpClient<'_, '_> {
    type Machine = NativeClientMachine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NativeClientMachine>,
    ) -> Result<Option<FlowsAnswer<NativeClientMachine>>, Failure> {
        match output {
            Output::Decide(accept) => {
                self.check_features(&accept)?;
                self.account.search = self.search_account();
                self.accept = Some(accept);
                return Ok(Some(FlowsAnswer::Decided(Ok(()))));
            }
            Output::Open => {
                self.begin_opening(now)?;
                return Ok(Some(FlowsAnswer::Opened));
            }
            Output::Begin => self.take_streams()?,
            Output::Start => self.start_senders(now)?,
            Output::Sample => {
                self.account.local_interval(self.endpoint.sample(now), self.context.watch);
            }
            Output::News(news) => self.take_news(news),
            Output::StopSending => self.endpoint.stop_sending(),
            Output::Peer(reports) => self.account.remote = *reports,
            _ => {}
        }
        Ok(None)
    }

    fn answer(
        &mut self,
        now: MonoTime,
    ) -> Result<Option<FlowsAnswer<NativeClientMachine>>, Failure> {
        if !self.opening.is_empty() {
            if now >= self.deadline {
                return Err(unanswered(&self.opening));
            }
            self.opening.iter_mut().for_each(|stream| stream.ask_server(now));
        }
        if !self.started {
            return Ok(None);
        }
        self.account.search_news(self.endpoint.search_news(), self.context.watch);
        if self.endpoint.has_failed() {
            let (peer, reason) = (plain_address(self.server), keep_alive::silent());
            let attempt = "exchange datagrams with";
            return Err(Failure::new(Fault::Unreachable, attempt, peer, reason)
                .advise("the results so far are kept"));
        }
        let Some(streams) = self.endpoint.datagrams_sent().filter(|_| !self.told) else {
            return Ok(None);
        };
        self.told = true;
        Ok(Some(FlowsAnswer::Tell(vec![Message::UdpSent { streams }])))
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        FlowState { done: self.started && self.endpoint.is_done(), ..FlowState::default() }
    }

    fn peer_name(&self) -> String {
        plain_address(self.server)
    }

    fn failure(&self, reason: TestFailureReason<NativePeerFault>) -> Failure {
        let aborted = matches!(reason, TestFailureReason::Peer(NativePeerFault::Aborted(_)));
        // The server gives up at the same time, and knows less about the reason.
        if aborted && !self.opening.is_empty() && monotonic() + NEAR >= self.deadline {
            return unanswered(&self.opening);
        }
        NativeClientMachine::failure(&self.peer_name(), reason)
    }
}

impl NativeUdpClient<'_, '_> {
    /// An older server would keep the lowest pace of a search, and the figures would look sound.
    fn check_features(&self, accept: &Accept) -> Result<(), Failure> {
        if self.request.search.is_none() || accept.features.iter().any(|has| has == SEARCH) {
            return Ok(());
        }
        let (peer, reason) = (plain_address(self.server), "the server does not know it");
        Err(Failure::new(Fault::PeerIncompatible, "search with", peer, reason)
            .advise("install the same version at both ends"))
    }

    /// The account of a search; none in other tests.
    fn search_account(&self) -> Option<SearchAccount> {
        self.request.search.as_ref()?;
        let direction = *self.request.each_direction().first()?;
        let headers = header_bytes(self.server.ip());
        Some(SearchAccount::new(direction, self.request.size_bytes.saturating_add(headers)))
    }

    /// Begins to open every stream.
    fn begin_opening(&mut self, now: MonoTime) -> Result<(), Failure> {
        let Some(accept) = &self.accept else { return Ok(()) };
        let token = token_of(accept, self.server)?;
        if accept.udp_ports.len() != self.request.places().count() {
            let (peer, reason) =
                (plain_address(self.server), "it named another number of UDP ports than streams");
            return Err(Failure::new(Fault::PeerMisbehaved, "talk to", peer, reason));
        }
        self.deadline = now + OPEN_TIMEOUT;
        for ((direction, flow), &port) in self.request.places().zip(&accept.udp_ports) {
            let server = at_port(self.server, port);
            let local = local_towards(server, self.local);
            let socket = open_socket(&self.request, local)
                .and_then(|socket| socket.connect(server).map(|()| socket));
            let socket = socket.map_err(|error| crate::failure::system(&error))?;
            let caller = Caller::new(direction, flow, token, now);
            self.opening.push(Asking::new(socket, server, caller));
        }
        Ok(())
    }

    /// The server says that every stream is open there, too.
    fn take_streams(&mut self) -> Result<(), Failure> {
        for stream in self.opening.drain(..) {
            let Caller { direction, flow, token, .. } = stream.caller;
            let client_addr =
                stream.socket.local_address().map_or_else(String::new, |addr| addr.to_string());
            self.account.route_mtu_bytes = stream.socket.mtu_bytes();
            self.account.connected(direction, flow, &client_addr, stream.server);
            let place = StreamId { direction, flow, side: client_side(direction), client_addr };
            self.endpoint.add(stream.socket, place, token);
        }
        if let Some(accept) = self.accept.take() {
            self.account.server_host_id = accept.host_id;
            self.account.ends.push(accept.end);
        }
        let (streams, size) = (self.request.streams, self.request.size_bytes);
        let noun = if streams == 1 { "stream" } else { "streams" };
        let line = format!("{streams} UDP {noun} to {}, datagrams of {size} bytes", self.server);
        (self.context.watch)(&Event::Connected(line));
        self.endpoint.start_receivers().map_err(|error| crate::failure::system(&error))
    }

    fn start_senders(&mut self, now: MonoTime) -> Result<(), Failure> {
        self.account.begin = now;
        self.started = true;
        let interface = self.account.ends.first().and_then(|end| end.interface.as_ref());
        self.endpoint.note_rtt(rtt_min(&self.control), interface);
        self.endpoint.start_senders(now).map_err(|error| crate::failure::system(&error))
    }

    /// Takes the samples that the server tells of its streams.
    fn take_news(&mut self, news: Message) {
        match news {
            Message::UdpInterval { samples } => {
                let size = self.request.size_bytes;
                let samples = samples.iter().map(|sample| Sample::of_udp(sample, size)).collect();
                self.account.remote_interval(samples, self.context.watch);
            }
            Message::UdpSent { streams } => {
                let wrong = self.endpoint.reported_sent(&streams);
                self.account.contradiction = self.account.contradiction.take().or(wrong);
            }
            Message::UdpSearch(news) => {
                self.account.search_news(Some(news), self.context.watch);
            }
            _ => {}
        }
    }

    /// Keeps what was measured, however the test ended.
    fn conclude(self, result: Result<(), Failure>) -> Result<(), Failure> {
        if self.started {
            self.account.local_interval(self.endpoint.sample(monotonic()), self.context.watch);
            self.account.search_news(self.endpoint.search_news(), self.context.watch);
            self.account.local = self.endpoint.finish();
        }
        result?;
        self.account.stream_failure().map_or(Ok(()), Err)
    }
}
