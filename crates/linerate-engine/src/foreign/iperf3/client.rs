//! The client's side: measures with an iperf3 server.
//!
//! The server tells its counts only at the end, so the rows of an interval come from what its
//! kernel has acknowledged. iperf3's own client says `test end` while its send buffers are full,
//! and what was on the way then counts on one side only; this one waits until all is acknowledged
//! and read, within [`DELIVERY_MAX`].

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Failure, Fault, Finish, Record, Side, StreamOpened, TcpDirections, TcpPlan,
    TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_proto::iperf3::{
    COOKIE_BYTES, ClientEvent, ClientMachine, Cookie, Params, ServerOutput, State, frame,
};
use linerate_sys::clock::{monotonic, random_bytes};
use linerate_sys::tcp::{self, TcpOptions};

use super::control::Control;
use super::ending::Ending;
use super::fail::refusal;
use super::gather::opened;
use super::login::Login;
use super::plan::{burst_of, out_of_bounds, params};
use super::report::{Other, Place, count_between, in_one_span, places, remote_reports, results};
use super::silence::Silence;
use crate::address::resolve;
use crate::context::Context;
use crate::flow::Sample;
use crate::path::witness::Witness;
use crate::throughput::account::Account;
use crate::throughput::client::{bind_address, client_side, connect_failure, request, run_by};
use crate::throughput::endpoint::{Endpoint, socket_options};
use crate::throughput::session::LOOK_AT_END;

/// The server has this long for each step of the set-up and of the end.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// How often the client looks at its stop flag.
const LOOK: Duration = Duration::from_millis(50);
/// What is on the way at the end has this long to arrive.
const DELIVERY_MAX: Duration = Duration::from_secs(2);
/// A server that closes nothing is done sending when nothing has come for this long.
const QUIET_READING: Duration = Duration::from_millis(200);

/// Threads that were told to leave are given this long.
const LEAVE_MAX: Duration = Duration::from_secs(1);

/// What goes with the parameters and is no part of the plan.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// The prefix of the client's lines.
    pub title: Option<String>,
    /// A text for the server's document.
    pub extra_data: Option<String>,
    /// What the server printed is wanted.
    pub server_output: bool,
    /// Who measures, for a server that asks.
    pub login: Option<Login>,
    /// Blocks that leave at once within the pace.
    pub burst: Option<u64>,
    /// Rate that the sending kernel holds each stream to, in bit/s (`--fq-rate`).
    pub fq_rate_bps: Option<u64>,
    /// A test gives up when nothing is received for so long.
    pub receive_max: Option<Duration>,
    /// Local port of the first stream; those of the others follow.
    pub local_port: Option<u16>,
    /// The interface that alone carries the test.
    pub device: Option<String>,
    /// The processor that the server's end runs on.
    pub server_affinity: Option<u32>,
}

impl Extras {
    /// The parameters with these beside them.
    pub(super) fn with(self, params: Params) -> Result<Params, Failure> {
        let params = Params {
            title: self.title,
            extra_data: self.extra_data,
            get_server_output: self.server_output,
            auth_token: self.login.map(|login| login.token()).transpose()?,
            burst: self.burst,
            fq_rate_bps: self.fq_rate_bps,
            server_affinity: self.server_affinity.map(u64::from),
            ..params
        };
        params.check().map_err(|error| out_of_bounds(&error))?;
        Ok(params)
    }
}

/// Measures with an iperf3 server, as `throughput::run` does, and gives what that printed where it
/// was wanted.
pub fn run(
    plan: &TcpPlan,
    extras: Extras,
    context: &mut Context<'_>,
) -> (Record, Option<ServerOutput>) {
    let mut output = None;
    let record = run_by(plan, context, |context, account| {
        measure_with(plan, extras, context, account).map(|said| output = said)
    });
    (record, output)
}

/// Measures with an iperf3 server; what was seen is in `account`.
pub(crate) fn measure(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    measure_with(plan, Extras::default(), context, account).map(|_| ())
}

fn measure_with(
    plan: &TcpPlan,
    extras: Extras,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<Option<ServerOutput>, Failure> {
    let mut test = Test::open(plan, extras, context, account)?;
    let result = test.measure(context, account);
    if result.is_err() {
        test.endpoint.halt();
        // The server frees its place at once; one that went away does not care.
        let _ = test.control.send_state(State::ClientTerminate);
    }
    if account.local.is_empty() {
        account.local = test.endpoint.finish();
    }
    result?;
    account.stream_failure().map_or(Ok(test.server_output), Err)
}

/// A test whose streams are connected.
struct Test {
    control: Control<ClientMachine>,
    endpoint: Endpoint,
    request: TcpTest,
    places: Vec<Place>,
    /// What had been acknowledged of each sending stream when the omitted span ended.
    omitted: Vec<Sample>,
    /// What the server printed.
    server_output: Option<ServerOutput>,
    /// It was asked for.
    wants_output: bool,
    receive_max: Option<Duration>,
}

impl Test {
    /// Connects control and data streams, up to `test running`.
    fn open(
        plan: &TcpPlan,
        extras: Extras,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<Self, Failure> {
        let receive_max = extras.receive_max;
        let (local_port, device) = (extras.local_port, extras.device.clone());
        let params = extras.with(params(plan)?)?;
        let request = request(plan);
        request.check().map_err(|error| {
            Failure::new(Fault::Usage, "plan", "TCP test", error).advise("see linerate tcp --help")
        })?;
        let server = resolve(&plan.host, plan.port, plan.family)?;
        let local = bind_address(plan.bind.as_deref())?;
        account.ends.push(crate::environment::local_end(Some(server.ip())));
        account.witness = Some(Witness::begin(server.ip()));
        let cookie = Cookie::from_random(random_bytes());
        let way = Way {
            server,
            local,
            cookie,
            timeout: Duration::from_nanos(plan.connect_timeout_ns),
            local_port,
            device,
        };
        let control = way.control()?;
        account.server_host_id = same_host(&control);
        let places = places(request.each_direction(), request.streams);
        let endpoint = Endpoint::of_iperf3(in_whole_blocks(request.clone()))
            .leaving_open()
            .in_bursts(burst_of(&params))
            .paced_by_kernel(params.fq_rate_bps);
        let mut test = Self {
            control,
            endpoint,
            request,
            places,
            omitted: Vec::new(),
            server_output: None,
            wants_output: params.get_server_output,
            receive_max,
        };
        test.set_up(&params, &way, context, account).inspect_err(|_| {
            test.endpoint.halt();
        })?;
        Ok(test)
    }

    fn set_up(
        &mut self,
        params: &Params,
        way: &Way,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        loop {
            match self.next_event(ANSWER_TIMEOUT, context)? {
                ClientEvent::SendParams => self.control.send(&frame(&params.to_json()))?,
                ClientEvent::CreateStreams => {
                    self.connect_streams(way, context, account)?;
                    let noun = if self.request.streams == 1 { "stream" } else { "streams" };
                    let line = format!("{} {noun} to {}, iperf3", self.request.streams, way.server);
                    (context.watch)(&Event::Connected(line));
                    let prepared = self.endpoint.prepare();
                    prepared.map_err(|error| crate::failure::system(&error))?;
                }
                // The server sends no data before this.
                ClientEvent::Starting => account.begin = monotonic(),
                ClientEvent::Running => return Ok(()),
                event => return Err(refusal(self.control.peer(), event)),
            }
        }
    }

    fn connect_streams(
        &mut self,
        way: &Way,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        for (at, place) in self.places.iter().enumerate() {
            let opened = way.connect(&mut self.endpoint, &self.request, (at, place))?;
            account.connected(place.direction, place.flow, &opened.local_addr, way.server);
            (context.watch)(&Event::Stream(opened));
        }
        Ok(())
    }

    fn measure(&mut self, context: &mut Context<'_>, account: &mut Account) -> Result<(), Failure> {
        let started = self.endpoint.start(account.begin);
        started.map_err(|error| crate::failure::system(&error))?;
        let ending = self.follow(context, account)?;
        self.control.send_state(State::TestEnd)?;
        self.control.machine.ended();
        match self.next_event(ANSWER_TIMEOUT, context)? {
            ClientEvent::SendResults => {}
            event => return Err(refusal(self.control.peer(), event)),
        }
        let sent = self.endpoint.acknowledged(monotonic(), COOKIE_BYTES as u64);
        self.end_receivers();
        self.sample(monotonic(), account, context);
        let done = std::mem::replace(&mut self.endpoint, Endpoint::new(self.request.clone()));
        let omit_ns = self.request.omit_ns;
        let delivered_ns = ending.span_ns(account.begin, omit_ns);
        account.local = done.finish();
        count_between(&mut account.local, (&self.omitted, &sent), delivered_ns);
        in_one_span(&mut account.local, Direction::Down, omit_ns);
        let own = results(&self.places, &account.local, client_side);
        self.control.send(&frame(&own.to_json()))?;
        match self.next_event(ANSWER_TIMEOUT, context)? {
            ClientEvent::Results(mut results) => {
                // A server of 3.12 and later goes on sending it once anybody has asked.
                self.server_output = results.server_output.take().filter(|_| self.wants_output);
                let other = Other {
                    side_of: server_side,
                    omit_ns,
                    // The server began its measured span by its own clock.
                    delivered_ns: (omit_ns == 0).then_some(delivered_ns),
                    ended_ns: ending.stopped.nanos_since(account.begin),
                };
                account.remote = remote_reports(&self.places, &results, &other);
            }
            event => return Err(refusal(self.control.peer(), event)),
        }
        // The results are here; what is said afterwards changes nothing.
        if let Ok(ClientEvent::Finished) = self.next_event(ANSWER_TIMEOUT, context) {
            let _ = self.control.send_state(State::IperfDone);
        }
        Ok(())
    }

    /// Takes samples until the end, and until what was sent has been read there.
    fn follow(
        &mut self,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<Ending, Failure> {
        let begin = account.begin;
        let planned = self.request.planned_span();
        let interval = Duration::from_nanos(self.request.interval_ns);
        let mut tick = begin + interval;
        let mut omit =
            (self.request.omit_ns > 0).then(|| begin + Duration::from_nanos(self.request.omit_ns));
        let mut end: Option<Ending> = None;
        let mut silence = Silence::since(begin, self.receive_max);
        loop {
            let now = monotonic();
            if self.request.directions != TcpDirections::Up && end.is_none() {
                let silent = silence.look(self.received(now), now);
                silence.check(silent, self.control.peer())?;
            }
            if now >= tick {
                self.sample(now, account, context);
                tick += interval;
            }
            if omit.is_some_and(|at| now >= at) {
                omit = None;
                self.omitted = self.endpoint.acknowledged(now, COOKIE_BYTES as u64);
            }
            let over = planned.map_or_else(|| self.is_complete(), |span| now >= begin + span);
            if (over || context.stop.asked()) && end.is_none() {
                self.endpoint.stop_sending();
                end = Some(Ending::at(now));
            }
            if let Some(end) = &mut end
                && self.is_delivered(end, now)
            {
                return Ok(*end);
            }
            let due = planned.is_none_or(|span| now + LOOK >= begin + span);
            let look = if due || end.is_some() { LOOK_AT_END } else { LOOK };
            let mut until = tick.min(now + look);
            if let Some(at) = omit {
                until = until.min(at);
            }
            if let Some(event) = self.control.next_event(until)? {
                return Err(refusal(self.control.peer(), event));
            }
        }
    }

    /// Whether the bytes of a test by bytes have been sent and received.
    fn is_complete(&mut self) -> bool {
        let Some(budget) = self.request.byte_budget() else { return false };
        let received = match self.request.directions {
            TcpDirections::Up => true,
            _ => self.received(monotonic()) >= budget,
        };
        received && self.endpoint.has_sent()
    }

    /// Bytes that came from the server.
    fn received(&mut self, now: MonoTime) -> u64 {
        let samples = self.endpoint.sample(now);
        let down = samples.iter().filter(|sample| sample.direction == Direction::Down);
        down.map(|sample| sample.bytes).sum()
    }

    /// Whether what was sent has arrived and been read, or has had its time.
    fn is_delivered(&self, end: &mut Ending, now: MonoTime) -> bool {
        self.request.directions == TcpDirections::Down
            || end.look(now, self.endpoint.outstanding(), self.endpoint.has_sent())
            || now.since(end.stopped) >= DELIVERY_MAX
    }

    /// Receivers read until the server closes or nothing more comes.
    fn end_receivers(&mut self) {
        let begin = monotonic();
        let mut last = (0, begin);
        while !self.endpoint.is_done() {
            let now = monotonic();
            let bytes = self.endpoint.sample(now).iter().map(|sample| sample.bytes).sum();
            if bytes != last.0 {
                last = (bytes, now);
            }
            if now.since(last.1) >= QUIET_READING || now.since(begin) >= DELIVERY_MAX {
                break;
            }
            linerate_sys::clock::sleep(LOOK_AT_END);
        }
        leave(&self.endpoint);
    }

    fn sample(&mut self, now: MonoTime, account: &mut Account, context: &mut Context<'_>) {
        let acknowledged = self.endpoint.acknowledged(now, COOKIE_BYTES as u64);
        let samples = self.endpoint.sample(now);
        account.local_interval(samples, context.watch);
        account.remote_interval(acknowledged, context.watch);
    }

    fn next_event(
        &mut self,
        timeout: Duration,
        context: &Context<'_>,
    ) -> Result<ClientEvent, Failure> {
        let end = monotonic() + timeout;
        while monotonic() < end {
            if let Some(event) = self.control.next_event(end.min(monotonic() + LOOK))? {
                return Ok(event);
            }
            if context.stop.asked() && self.omitted.is_empty() && !self.endpoint.has_started() {
                break;
            }
        }
        let reason = "the server fell silent";
        Err(Failure::new(Fault::Unreachable, "hear from", self.control.peer(), reason)
            .advise("what was measured before is kept"))
    }
}

/// The bytes of a test rounded up to whole blocks, as iperf3 does: servers since 3.16 count those
/// alone.
fn in_whole_blocks(request: TcpTest) -> TcpTest {
    let block = u64::from(request.buffer_bytes.max(1));
    let finish = match request.finish {
        Finish::Bytes(bytes) => Finish::Bytes(bytes.div_ceil(block).saturating_mul(block)),
        other => other,
    };
    TcpTest { finish, ..request }
}

/// Ends every thread: receivers after what has arrived, senders where they are.
pub(super) fn leave(endpoint: &Endpoint) {
    endpoint.stop_receiving();
    let end = monotonic() + LEAVE_MAX;
    while !endpoint.is_done() && monotonic() < end {
        linerate_sys::clock::sleep(LOOK_AT_END);
    }
    endpoint.halt();
}

/// The side that the server has in a direction.
pub(super) const fn server_side(direction: Direction) -> Side {
    match client_side(direction) {
        Side::Sender => Side::Receiver,
        Side::Receiver => Side::Sender,
    }
}

/// This kernel's name when the server is reached at one of its own addresses: iperf3 does not tell
/// what host it runs on.
pub(super) fn same_host(control: &Control<ClientMachine>) -> Option<String> {
    let peer = control.stream().peer_addr().ok()?.ip();
    let local = control.stream().local_addr().ok()?.ip();
    (peer.is_loopback() || peer == local).then(linerate_sys::host::boot_id).flatten()
}

/// How connections reach the server.
pub(super) struct Way {
    pub(super) server: SocketAddr,
    pub(super) local: Option<IpAddr>,
    pub(super) cookie: Cookie,
    pub(super) timeout: Duration,
    /// Local port of the first stream; the control connection takes any.
    pub(super) local_port: Option<u16>,
    pub(super) device: Option<String>,
}

impl Way {
    pub(super) fn control(&self) -> Result<Control<ClientMachine>, Failure> {
        let options = TcpOptions { device: self.device.clone(), ..TcpOptions::default() };
        let stream = tcp::connect(self.server, self.local, &options, self.timeout)
            .map_err(|error| self.unreachable(&error))?;
        let mut control = Control::new(stream)?;
        control.send(&self.cookie.to_bytes())?;
        Ok(control)
    }

    /// Connects one data stream and gives it to `endpoint`.
    fn connect(
        &self,
        endpoint: &mut Endpoint,
        request: &TcpTest,
        (at, place): (usize, &Place),
    ) -> Result<StreamOpened, Failure> {
        let side = client_side(place.direction);
        let options = match side {
            Side::Sender => socket_options(request),
            Side::Receiver => TcpOptions { congestion_control: None, ..socket_options(request) },
        };
        let options =
            TcpOptions { local_port: self.port_of(at), device: self.device.clone(), ..options };
        let socket = tcp::connect(self.server, self.local, &options, self.timeout)
            .map_err(|error| self.unreachable(&error))?;
        let client_addr =
            socket.local_addr().map_or_else(|_| String::new(), |addr| addr.to_string());
        let socket = endpoint.add(socket, (place.direction, place.flow, side), client_addr.clone());
        (&mut &*socket).write_all(&self.cookie.to_bytes()).map_err(|error| {
            let server = self.server.to_string();
            Failure::new(Fault::Unreachable, "open data stream to", server, error)
        })?;
        Ok(opened(&socket, (place.direction, place.flow), &self.cookie))
    }

    /// The local port of the stream with this number, where the first one's was asked for.
    pub(super) fn port_of(&self, stream: usize) -> Option<u16> {
        self.local_port?.checked_add(u16::try_from(stream).ok()?)
    }

    fn unreachable(&self, error: &linerate_sys::Error) -> Failure {
        let failure = connect_failure(error);
        match error.source.kind() {
            std::io::ErrorKind::ConnectionRefused => {
                failure.advise("start `iperf3 -s` there, or name its port with -p")
            }
            _ => failure,
        }
    }
}
