//! The client's side of one UDP test: from a plan to a record.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_core::record::{
    EndReport, Event, Failure, Fault, Plan, Record, Status, UdpPlan, UdpTest,
};
use linerate_core::units::BitRate;
use linerate_proto::native::{Accept, ClientEvent, ClientMachine, Message, SEARCH, Token};
use linerate_sys::clock::{monotonic, record_id, wall};
use linerate_sys::datagram_socket::any_local;

use super::endpoint::{Endpoint, Place, open_socket};
use super::opening::{Asking, TURN, unanswered};
use super::pulse;
use super::search_account::SearchAccount;
use crate::address::resolve;
use crate::context::Context;
use crate::flow::Sample;
use crate::flow::account::{Account, client_side};
use crate::flow::fold::fold;
use crate::foreign;
use crate::path::witness::Witness;
use crate::throughput::{Control, LOOK, LOOK_AT_END, bind_address, connect_control, refused};

/// After the planned end the server has this long to report: what it has to say waits behind the
/// test's own datagrams where these fill the path.
const REPORT_TIMEOUT: Duration = Duration::from_secs(20);
/// The server has this long to answer a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Streams have this long to open.
const OPEN_TIMEOUT: Duration = pulse::SILENCE_MAX;

/// Largest IP packet that a test sends where nobody says how long its datagrams are: that of
/// Ethernet, so that results of most paths compare.
const PACKET_BYTES: u32 = 1500;

/// Measures UDP throughput as planned. The record always exists: when something fails it says so,
/// and keeps what was measured before.
pub fn run(plan: &UdpPlan, context: &mut Context<'_>) -> Record {
    run_by(plan, context, |plan, server, (context, account)| match plan.via {
        None => Test::open(plan, server, context, account)
            .and_then(|test| test.measure(context, account)),
        Some(via) if plan.search.is_some() => {
            let reason = format!("{via} has no statuses to search by");
            let failure = Failure::new(Fault::Usage, "search for the capacity by", "--via", reason);
            Err(failure.advise("run linerate serve at the other end"))
        }
        Some(via) => {
            foreign::measure_udp(via, (plan, server, &checked_request(plan)?), context, account)
        }
    })
}

/// Who is told while a test runs, and where what was seen is kept.
pub(crate) type Told<'a, 'b> = (&'a mut Context<'b>, &'a mut Account);

/// The record of a test that `measure` makes with the server at an address.
pub(crate) fn run_by(
    plan: &UdpPlan,
    context: &mut Context<'_>,
    measure: impl FnOnce(&UdpPlan, SocketAddr, Told<'_, '_>) -> Result<(), Failure>,
) -> Record {
    let begin = monotonic();
    let tool = context.tool.clone();
    let mut plan = plan.clone();
    let mut record = Record::begin(record_id(), tool, Plan::Udp(plan.clone()), wall());
    let mut account =
        Account { row_ns_min: plan.interval_ns / 4, omit_ns: plan.omit_ns, ..Account::default() };
    let server = resolve(&plan.host, plan.port, plan.family);
    if let Ok(server) = &server {
        plan.size_bytes.get_or_insert_with(|| {
            usual_size(*server).min(plan.via.map_or(u32::MAX, foreign::datagram_bytes_usual))
        });
        record.plan = Plan::Udp(plan.clone());
    }
    (context.watch)(&Event::Plan(record.plan.clone()));
    let result = server.and_then(|server| measure(&plan, server, (context, &mut account)));
    let result = result.and_then(|()| account.nothing_received().map_or(Ok(()), Err));
    if let Err(failure) = result {
        let measured = account.has_samples();
        record.status = if measured { Status::Partial } else { Status::Error };
        record.failure = Some(failure);
    }
    record.paths = account.witness.take().map(Witness::end).unwrap_or_default();
    fold(&mut record, &account);
    if context.stop.asked() && record.failure.is_none() {
        record.status = Status::Interrupted;
    }
    for caveat in &record.caveats {
        (context.watch)(&Event::Caveat(caveat.clone()));
    }
    record.duration_ns = monotonic().nanos_since(begin);
    record
}

/// The most that an Ethernet packet carries, or one of the route to the server where that is less.
fn usual_size(server: SocketAddr) -> u32 {
    let route = linerate_sys::datagram_socket::route_mtu_bytes(server).unwrap_or(PACKET_BYTES);
    route.min(PACKET_BYTES).saturating_sub(header_bytes(server.ip())).max(16)
}

/// IP and UDP headers in the family of an address.
pub(super) const fn header_bytes(address: IpAddr) -> u32 {
    use linerate_core::theory::framing::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, UDP_HEADER_BYTES};
    match address {
        IpAddr::V4(_) => IPV4_HEADER_BYTES + UDP_HEADER_BYTES,
        IpAddr::V6(_) => IPV6_HEADER_BYTES + UDP_HEADER_BYTES,
    }
}

fn request(plan: &UdpPlan) -> UdpTest {
    // A search begins at its lowest rate.
    let lowest = || linerate_core::search::rate(0);
    let pace = if plan.search.is_some() { Some(lowest()) } else { plan.pace };
    UdpTest {
        directions: plan.directions,
        streams: plan.streams,
        finish: plan.finish,
        omit_ns: plan.omit_ns,
        interval_ns: plan.interval_ns,
        size_bytes: plan.size_bytes.unwrap_or(PACKET_BYTES),
        pace_bps: pace.map(BitRate::bits_per_sec),
        window_bytes: plan.window_bytes,
        dscp: plan.dscp,
        joined: plan.joined,
        search: plan.search.clone(),
        taken_singly: plan.taken_singly,
    }
}

/// The request of a plan, within the protocol's bounds.
pub(crate) fn checked_request(plan: &UdpPlan) -> Result<UdpTest, Failure> {
    let request = request(plan);
    request.check().map_err(|error| {
        Failure::new(Fault::Usage, "plan", "UDP test", error).advise("see linerate udp --help")
    })?;
    Ok(request)
}

/// A test whose streams are open.
struct Test {
    control: Control,
    machine: ClientMachine,
    endpoint: Endpoint,
    request: UdpTest,
}

impl Test {
    /// Connects control and opens the streams, up to the server's `ready`.
    fn open(
        plan: &UdpPlan,
        server: SocketAddr,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<Self, Failure> {
        let request = checked_request(plan)?;
        let local = bind_address(plan.bind.as_deref())?;
        account.ends.push(crate::environment::local_end(Some(server.ip())));
        account.witness = Some(Witness::begin(server.ip()));
        account.size_bytes = request.size_bytes;
        account.planned_ns = request.planned_span().map(|span| span.as_nanos() as u64);
        let timeout = Duration::from_nanos(plan.connect_timeout_ns);
        let control = connect_control(server, local, timeout)?;
        let endpoint = Endpoint::new(request.clone(), plan.cpu);
        let mut test = Self { control, machine: ClientMachine::default(), endpoint, request };
        let accept = test.ask(context)?;
        test.check_features(&accept)?;
        account.search = test.search_account(server);
        test.open_streams(&accept, server, local, context, account)?;
        account.server_host_id = accept.host_id;
        account.ends.push(accept.end);
        let noun = if plan.streams == 1 { "stream" } else { "streams" };
        let size = test.request.size_bytes;
        let line = format!("{} UDP {noun} to {server}, datagrams of {size} bytes", plan.streams);
        (context.watch)(&Event::Connected(line));
        Ok(test)
    }

    /// Sends the request and returns the server's yes.
    fn ask(&mut self, context: &Context<'_>) -> Result<Accept, Failure> {
        self.control.send(&Message::UdpRequest(self.request.clone()))?;
        match self.next_event(ANSWER_TIMEOUT, context)? {
            Some(ClientEvent::Accepted(accept)) => Ok(*accept),
            Some(event) => Err(self.refusal(event)),
            None => Err(self.silent()),
        }
    }

    /// An older server would keep the lowest pace of a search, and the figures would look sound.
    fn check_features(&self, accept: &Accept) -> Result<(), Failure> {
        if self.request.search.is_none() || accept.features.iter().any(|has| has == SEARCH) {
            return Ok(());
        }
        let reason = "the server does not know it";
        Err(Failure::new(Fault::PeerIncompatible, "search with", self.control.peer(), reason)
            .advise("install the same version at both ends"))
    }

    /// The account of a search; none in other tests.
    fn search_account(&self, server: SocketAddr) -> Option<SearchAccount> {
        self.request.search.as_ref()?;
        let direction = *self.request.each_direction().first()?;
        let packet_bytes = self.request.size_bytes.saturating_add(header_bytes(server.ip()));
        Some(SearchAccount::new(direction, packet_bytes))
    }

    /// Opens every stream, until the server says that all are open there too.
    fn open_streams(
        &mut self,
        accept: &Accept,
        server: SocketAddr,
        local: Option<IpAddr>,
        context: &Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        let misbehaved = |reason: &str| {
            Failure::new(Fault::PeerMisbehaved, "talk to", self.control.peer(), reason)
        };
        let token = Token::from_hex(&accept.token)
            .ok_or_else(|| misbehaved("its token is not 32 hexadecimal digits"))?;
        if accept.udp_ports.len() != self.request.places().count() {
            return Err(misbehaved("it named another number of UDP ports than streams"));
        }
        let mut streams = Vec::new();
        for (place, &port) in self.request.places().zip(&accept.udp_ports) {
            let server = SocketAddr::new(server.ip(), port);
            let local = local.map_or_else(|| any_local(server), |ip| SocketAddr::new(ip, 0));
            let socket = open_socket(&self.request, local)
                .and_then(|socket| socket.connect(server).map(|()| socket));
            let socket = socket.map_err(|error| crate::failure::system(&error))?;
            streams.push(Asking::new(socket, place, server, token));
        }
        self.await_ready(&mut streams, context)?;
        for stream in streams {
            let place = (stream.direction, stream.flow);
            let client_addr =
                stream.socket.local_address().map_or_else(String::new, |addr| addr.to_string());
            let (direction, flow) = place;
            account.route_mtu_bytes = stream.socket.mtu_bytes();
            account.connected(direction, flow, &client_addr, stream.server);
            let side = client_side(direction);
            self.endpoint.add(stream.socket, Place { direction, flow, side, client_addr }, token);
        }
        Ok(())
    }

    fn await_ready(
        &mut self,
        streams: &mut [Asking],
        context: &Context<'_>,
    ) -> Result<(), Failure> {
        let deadline = monotonic() + OPEN_TIMEOUT;
        loop {
            let now = monotonic();
            if now >= deadline {
                return Err(unanswered(streams));
            }
            streams.iter_mut().for_each(|stream| stream.turn(now));
            match self.next_event(TURN, context)? {
                Some(ClientEvent::Ready) => return Ok(()),
                // The server gives up at the same time, and knows less about the reason.
                Some(ClientEvent::Aborted(_)) if now + LOOK * 4 >= deadline => {
                    return Err(unanswered(streams));
                }
                Some(event) => return Err(self.refusal(event)),
                None if context.stop.asked() => return Err(self.silent()),
                None => {}
            }
        }
    }

    /// Starts, follows and ends the test.
    fn measure(mut self, context: &mut Context<'_>, account: &mut Account) -> Result<(), Failure> {
        let started = self.endpoint.start_receivers();
        started.map_err(|error| crate::failure::system(&error))?;
        self.control.send(&Message::Start)?;
        account.begin = monotonic();
        let interface = account.ends.first().and_then(|end| end.interface.as_ref());
        self.endpoint.note_rtt(self.control.rtt_min(), interface);
        let started = self.endpoint.start_senders(account.begin);
        started.map_err(|error| crate::failure::system(&error))?;
        let result = self.follow(context, account);
        if result.is_ok() {
            self.drain();
        }
        account.local_interval(self.endpoint.sample(monotonic()), context.watch);
        account.search_news(self.endpoint.search_news(), context.watch);
        account.local = self.endpoint.finish();
        account.remote = result?;
        // The server has reported; a bye that does not reach it changes nothing.
        let _ = self.control.send(&Message::Bye);
        account.stream_failure().map_or(Ok(()), Err)
    }

    /// Takes samples and messages until the server has reported.
    fn follow(
        &mut self,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<Vec<EndReport>, Failure> {
        let begin = account.begin;
        let planned = self.request.planned_span();
        let interval = Duration::from_nanos(self.request.interval_ns);
        let (mut tick, mut stopping, mut told) = (begin + interval, false, false);
        let mut give_up = planned.map(|span| begin + span + REPORT_TIMEOUT);
        loop {
            let now = monotonic();
            if now >= tick {
                account.local_interval(self.endpoint.sample(now), context.watch);
                tick += interval;
            }
            account.search_news(self.endpoint.search_news(), context.watch);
            if context.stop.asked() && !stopping {
                stopping = true;
                self.endpoint.stop_sending();
                self.control.send(&Message::Stop)?;
                give_up = Some(now + REPORT_TIMEOUT);
            }
            if let Some(streams) = self.endpoint.sent().filter(|_| !told) {
                told = true;
                self.control.send(&Message::UdpSent { streams })?;
            }
            if self.endpoint.has_failed() {
                return Err(self.vanished());
            }
            if give_up.is_some_and(|end| now >= end) {
                return Err(self.silent());
            }
            let due = told || planned.is_some_and(|span| now >= begin + span);
            let look = if due { LOOK_AT_END } else { LOOK };
            let Some(message) = self.control.receive(tick.min(now + look))? else { continue };
            match self.machine.handle(message) {
                Ok(ClientEvent::UdpInterval(samples)) => {
                    let size = self.request.size_bytes;
                    let samples = samples.iter().map(|it| Sample::of_udp(it, size)).collect();
                    account.remote_interval(samples, context.watch);
                }
                Ok(ClientEvent::UdpSent(sent)) => self.endpoint.told_sent(&sent),
                Ok(ClientEvent::UdpSearch(news)) => {
                    account.search_news(Some(news), context.watch);
                }
                Ok(ClientEvent::Reported(reports)) => return Ok(reports),
                Ok(event) => return Err(self.refusal(event)),
                Err(error) => return Err(self.control.misbehaved(&error)),
            }
        }
    }

    /// Waits for what is still on the way to this end; its receivers know when to leave.
    fn drain(&self) {
        let end = monotonic() + REPORT_TIMEOUT;
        while !self.endpoint.is_done() && monotonic() < end {
            linerate_sys::clock::sleep(LOOK_AT_END);
        }
    }

    fn next_event(
        &mut self,
        timeout: Duration,
        context: &Context<'_>,
    ) -> Result<Option<ClientEvent>, Failure> {
        let end = monotonic() + timeout;
        loop {
            if let Some(message) = self.control.receive(end.min(monotonic() + LOOK))? {
                let event = self.machine.handle(message);
                return event.map(Some).map_err(|error| self.control.misbehaved(&error));
            }
            if monotonic() >= end || context.stop.asked() {
                return Ok(None);
            }
        }
    }

    fn silent(&self) -> Failure {
        let reason = "the server fell silent";
        Failure::new(Fault::Unreachable, "hear from", self.control.peer(), reason)
            .advise("the results so far are kept")
    }

    fn vanished(&self) -> Failure {
        let reason = pulse::silent();
        Failure::new(Fault::Unreachable, "exchange datagrams with", self.control.peer(), reason)
            .advise("the results so far are kept")
    }

    /// The failure behind an event that ends the test.
    fn refusal(&self, event: ClientEvent) -> Failure {
        let peer = self.control.peer();
        match event {
            ClientEvent::Refused(refuse) => refused(peer, &refuse),
            ClientEvent::Aborted(reason) => Failure::new(
                Fault::PeerRefused,
                "test with",
                peer,
                format!(
                    "the server aborted: \
                                                                             {reason}"
                ),
            ),
            _ => Failure::new(Fault::PeerMisbehaved, "test with", peer, "answers out of order"),
        }
    }
}
