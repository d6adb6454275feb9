//! The server's side of one test, from the cookie to the end.
//!
//! Everything a client does or leaves out costs a bounded amount: each wait has a deadline, streams
//! and time are limited by the admission, a client whose host vanished is noticed by keep-alives,
//! and whatever ends the session takes its data threads along.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{
    Direction, EndReport, Event, Failure, Fault, Plan, Record, Side, TcpTest, Tool,
};
use linerate_core::time::MonoTime;
use linerate_proto::iperf3::{
    Cookie, ErrorCode, Params, Protocol, Results, ServerEvent, ServerMachine, ServerOutput, State,
    frame, server_error,
};
use linerate_proto::native::RefuseCode;
use linerate_sys::clock::{monotonic, record_id, wall};
use linerate_sys::stop::Stop;
use linerate_sys::tcp;

use super::client::{leave, server_side};
use super::control::Control;
use super::door::Door;
use super::gather::{opened, take_streams};
use super::login::Guard;
use super::plan::{burst_of, plan_of, request_of};
use super::registry::{Arrival, Registration, Registry};
use super::report::{
    Other, Place, amounts, count_between, in_one_span, is_of, places, remote_reports, results,
};
use crate::flow::Sample;
use crate::foreign::test::VANISHED;
use crate::throughput::account::Account;
use crate::throughput::client::client_side;
use crate::throughput::control::plain;
use crate::throughput::endpoint::Endpoint;
use crate::throughput::fold::fold;
use crate::throughput::session::{HANDOVER, LOOK_AT_END};
use crate::throughput::{Admission, Demand, Permit};

/// A client has this long for each step of the set-up and of the end.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// After its planned end a test may take this much longer: the client's clock started later, and
/// what is in its buffers has to arrive.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// How often waits look at the stop flag and for arrived streams.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// What is on the way when the client ends has this long to arrive.
const DRAIN_MAX: Duration = Duration::from_secs(4);
/// Where the client does not tell how much it sent, the end is when nothing came for this long.
const QUIET: Duration = Duration::from_millis(100);

/// What every session of a server shares.
pub struct House<'a> {
    /// Where data connections come from.
    pub registry: &'a Registry,
    /// Where UDP streams announce themselves; none where another program has that port.
    pub door: Option<&'a Door>,
    /// Who may run.
    pub admission: &'a dyn Admission,
    /// Asks clients who they are; none lets everybody in.
    pub guard: Option<&'a Guard>,
    /// The server is being stopped.
    pub stop: &'a Stop,
    /// This program, for the record.
    pub tool: Tool,
    /// Time between rows.
    pub interval: Duration,
}

/// Told of a session as it goes on.
pub trait Observer {
    /// A connection, a stream, a row.
    fn event(&mut self, event: &Event);

    /// The parameters, once they are accepted.
    fn accepted(&mut self, params: &Params, peer: SocketAddr, cookie: &Cookie);

    /// The text or document that the client wants to have of this end.
    fn output(&mut self, record: &Record) -> Option<ServerOutput>;

    /// The end: everything that was seen.
    fn ended(&mut self, record: &Record);
}

/// Nobody.
#[derive(Debug)]
pub struct Silent;

impl Observer for Silent {
    fn event(&mut self, _: &Event) {}

    fn accepted(&mut self, _: &Params, _: SocketAddr, _: &Cookie) {}

    fn output(&mut self, _: &Record) -> Option<ServerOutput> {
        None
    }

    fn ended(&mut self, _: &Record) {}
}

/// Runs one test over a control connection whose cookie has been read; returns what the log should
/// say.
/// # Errors
/// Why the test did not end well.
pub fn serve(
    arrival: Arrival,
    cookie: Cookie,
    house: &House<'_>,
    observer: &mut dyn Observer,
) -> Result<String, Failure> {
    tcp::notice_vanished_peer(&arrival.stream, VANISHED);
    let control = Control::new(arrival.stream)?;
    let mut session =
        Session { control, cookie, peer: arrival.peer, house, code: ErrorCode::MESSAGE };
    let result = session.run(observer);
    if let Err(failure) = &result
        && failure.fault != Fault::Unreachable
    {
        let _ = session.control.send(&server_error(session.code, 0));
    }
    result
}

pub(super) struct Session<'a> {
    pub(super) control: Control<ServerMachine>,
    pub(super) cookie: Cookie,
    pub(super) peer: SocketAddr,
    pub(super) house: &'a House<'a>,
    /// iperf3's number for the failure that may come next.
    pub(super) code: ErrorCode,
}

/// A test that was let in.
struct Running {
    params: Params,
    request: TcpTest,
    places: Vec<Place>,
    endpoint: Endpoint,
    account: Account,
    record: Record,
    /// What each stream had received, or had acknowledged, when the omitted span ended.
    omitted: Vec<Sample>,
    /// The same when the client said that the test was over.
    ended: Vec<Sample>,
    registration: Registration,
    _permit: Permit,
}

impl Session<'_> {
    fn run(&mut self, observer: &mut dyn Observer) -> Result<String, Failure> {
        let begin = monotonic();
        self.control.send_state(State::ParamExchange)?;
        self.code = ErrorCode::RECEIVE_PARAMS;
        let params = match self.next_event(STEP_TIMEOUT, "the parameters")? {
            ServerEvent::Params(params) => *params,
            _ => return Err(self.left_early()),
        };
        self.check(&params)?;
        if params.protocol == Protocol::Udp {
            return self.run_udp(params, observer);
        }
        let request = request_of(&params, self.house.interval);
        let streams = usize::from(request.streams) * request.each_direction().len();
        let planned =
            (params.time_s > 0).then(|| Duration::from_secs(params.time_s + params.omit_s));
        let permit = match self.admit(&params, streams, planned)? {
            Ok(permit) => permit,
            Err(line) => return Ok(line),
        };
        let registration = self.register()?;
        observer.accepted(&params, self.peer, &self.cookie);
        let plan = plan_of(&params, &request, self.peer);
        observer.event(&Event::Plan(Plan::Tcp(plan.clone())));
        let tool = self.house.tool.clone();
        let mut running = Running {
            places: places(request.each_direction(), request.streams),
            endpoint: Endpoint::of_iperf3(request.clone())
                .in_bursts(burst_of(&params))
                .paced_by_kernel(params.fq_rate_bps),
            account: Account {
                row_ns_min: request.interval_ns / 4,
                omit_ns: request.omit_ns,
                ..Account::default()
            },
            record: Record::begin(record_id(), tool, Plan::Tcp(plan), wall()),
            omitted: Vec::new(),
            ended: Vec::new(),
            params,
            request,
            registration,
            _permit: permit,
        };
        let measured = self.measure(&mut running, observer);
        running.record.duration_ns = monotonic().nanos_since(begin);
        if let Err(failure) = &measured {
            running.endpoint.halt();
            running.record.failure = Some(failure.clone());
        }
        observer.ended(&running.record);
        measured.map(|()| said(&running))
    }

    /// What this end does not do, and what nobody does.
    fn check(&mut self, params: &Params) -> Result<(), Failure> {
        let fail = |reason: String| {
            Err(Failure::new(Fault::PeerMisbehaved, "serve", plain(self.peer), reason))
        };
        if let Some(guard) = self.house.guard
            && let Err(reason) = guard.admit(params.auth_token.as_deref())
        {
            self.code = ErrorCode::AUTHENTICATION;
            return fail(reason);
        }
        if params.protocol == Protocol::Sctp {
            self.code = ErrorCode::UNIMPLEMENTED;
            return fail(format!("it asks for {:?}", params.protocol));
        }
        if let Err(error) = params.check() {
            self.code = error.code;
            return fail(error.to_string());
        }
        Ok(())
    }

    /// A place, or the line for the log when there is none. The client's clock ends the test; bytes
    /// and blocks take as long as they take.
    pub(super) fn admit(
        &mut self,
        params: &Params,
        streams: usize,
        planned: Option<Duration>,
    ) -> Result<Result<Permit, String>, Failure> {
        let demand = Demand { streams, planned };
        let admission = self.house.admission;
        let deadline = monotonic() + admission.patience().max(HANDOVER);
        let refuse = loop {
            let answer = match admission.patience() {
                Duration::ZERO => admission.admit(&demand, self.peer),
                _ => admission.admit_in_turn(&demand, self.peer),
            };
            match answer {
                Ok(permit) => return Ok(Ok(permit)),
                Err(refuse) if refuse.code == RefuseCode::Busy && monotonic() < deadline => {}
                Err(refuse) => break refuse,
            }
            self.look_at_client()?;
            linerate_sys::clock::sleep(LOOK_AT_END);
        };
        let line = format!("iperf3: refused: {}", refuse.reason);
        let too_long = planned.is_some_and(|planned| planned > admission.duration_max());
        match (refuse.code, too_long) {
            (RefuseCode::Busy, _) => self.control.send_state(State::AccessDenied)?,
            (_, true) => self.control.send(&server_error(params.too_long(), 0))?,
            (_, false) => self.control.send(&server_error(ErrorCode::STREAMS, 0))?,
        }
        Ok(Err(line))
    }

    /// The test's place among those that run.
    pub(super) fn register(&mut self) -> Result<Registration, Failure> {
        self.code = ErrorCode::CREATE_STREAM;
        let registration = self.house.registry.register(self.cookie);
        registration.ok_or_else(|| self.failed("its cookie is that of a running test"))
    }

    /// The longest that a test may send.
    pub(super) fn planned_max(&self, params: &Params) -> Duration {
        let duration_max = self.house.admission.duration_max();
        match params.time_s {
            0 => duration_max,
            time_s => Duration::from_secs(time_s + params.omit_s).min(duration_max),
        }
    }

    /// The client broke the rules of the test.
    pub(super) fn failed(&self, reason: &str) -> Failure {
        Failure::new(Fault::PeerMisbehaved, "serve", plain(self.peer), reason)
    }

    /// From `create streams` to `iperf done`.
    fn measure(
        &mut self,
        running: &mut Running,
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        self.open_streams(running, observer)?;
        self.code = ErrorCode::EXPIRED;
        let ended = self.follow(running, observer)?;
        running.endpoint.stop_sending();
        self.code = ErrorCode::MESSAGE;
        let by_time = running.params.bytes == 0 && running.params.blocks == 0;
        let as_it_ended = by_time && !running.params.is_own();
        running.ended = counts(&mut running.endpoint, ended);
        let ended_ns = ended.nanos_since(running.account.begin);
        self.control.send_state(State::ExchangeResults)?;
        let event = self.next_event(STEP_TIMEOUT, "the results")?;
        let ServerEvent::Results(of_client) = event else { return Err(self.left_early()) };
        if as_it_ended {
            leave(&running.endpoint);
        } else {
            drain(running, &of_client);
        }
        sample(running, monotonic(), observer);
        let request = running.request.clone();
        let done = std::mem::replace(&mut running.endpoint, Endpoint::new(request));
        running.account.remote = done.finish();
        let omit_ns = running.request.omit_ns;
        let other = Other { side_of: client_side, omit_ns, delivered_ns: None, ended_ns };
        running.account.local = remote_reports(&running.places, &of_client, &other);
        count(running, as_it_ended, ended_ns);
        fold(&mut running.record, &running.account);
        let mut own = results(&running.places, &running.account.remote, server_side);
        if running.params.get_server_output {
            own.server_output = observer.output(&running.record);
        }
        self.control.send(&frame(&own.to_json()))?;
        self.control.send_state(State::DisplayResults)?;
        // The client has its result; whether it says so changes nothing.
        let _ = self.next_event(STEP_TIMEOUT, "iperf done");
        Ok(())
    }

    /// Gathers the data streams and starts them.
    fn open_streams(
        &mut self,
        running: &mut Running,
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        let registration = &running.registration;
        running.account.ends.push(crate::environment::local_end(Some(self.peer.ip())));
        self.control.machine.accepted();
        self.control.send_state(State::CreateStreams)?;
        let deadline = monotonic() + STEP_TIMEOUT;
        let mut arrivals: Vec<Arrival> = Vec::new();
        while arrivals.len() < running.places.len() {
            match registration.arrivals.recv_timeout(LOOK) {
                Ok(arrival) => arrivals.push(arrival),
                Err(_) if monotonic() >= deadline => return Err(self.too_slow("the streams")),
                Err(_) => self.look_at_client()?,
            }
        }
        registration.complete();
        arrivals.sort_by_key(|arrival| arrival.serial);
        for (place, arrival) in running.places.iter().zip(&arrivals) {
            let (direction, flow) = (place.direction, place.flow);
            let opened = opened(&arrival.stream, (direction, flow), &self.cookie);
            if let Ok(local) = arrival.stream.local_addr() {
                running.account.connected(direction, flow, &opened.remote_addr, local);
            }
            observer.event(&Event::Stream(opened));
        }
        if running.params.congestion.is_some() {
            self.code = ErrorCode::CONGESTION;
        }
        take_streams(&mut running.endpoint, &running.request, &running.places, arrivals)?;
        let prepared = running.endpoint.prepare();
        prepared.map_err(|error| crate::failure::system(&error))?;
        self.control.send_state(State::TestStart)?;
        self.control.machine.running();
        running.account.begin = monotonic();
        let started = running.endpoint.start(running.account.begin);
        started.map_err(|error| crate::failure::system(&error))?;
        self.control.send_state(State::TestRunning)
    }

    /// Takes samples until the client ends the test; when that was.
    fn follow(
        &mut self,
        running: &mut Running,
        observer: &mut dyn Observer,
    ) -> Result<MonoTime, Failure> {
        let begin = running.account.begin;
        let planned = self.planned_max(&running.params);
        let end = begin + planned + GRACE;
        let interval = Duration::from_nanos(running.request.interval_ns);
        let mut tick = begin + interval;
        let omit_ns = running.request.omit_ns;
        let mut omit = (omit_ns > 0).then(|| begin + Duration::from_nanos(omit_ns));
        loop {
            let now = monotonic();
            if now >= tick {
                sample(running, now, observer);
                tick += interval;
            }
            if omit.is_some_and(|at| now >= at) {
                omit = None;
                running.omitted = counts(&mut running.endpoint, now);
            }
            if now >= end {
                return Err(self.failed("the client did not end the test in time"));
            }
            self.look_at_stop()?;
            let until = tick.min(omit.unwrap_or(tick)).min(now + LOOK).min(end);
            match self.control.next_event(until)? {
                Some(ServerEvent::Ended) => return Ok(monotonic()),
                Some(_) => return Err(self.left_early()),
                None => {}
            }
        }
    }

    pub(super) fn next_event(
        &mut self,
        timeout: Duration,
        what: &str,
    ) -> Result<ServerEvent, Failure> {
        let end = monotonic() + timeout;
        while monotonic() < end {
            if let Some(event) = self.control.next_event(end.min(monotonic() + LOOK))? {
                return Ok(event);
            }
            self.look_at_stop()?;
        }
        Err(self.too_slow(what))
    }

    /// Notices a client that leaves while the server waits for something else.
    pub(super) fn look_at_client(&mut self) -> Result<(), Failure> {
        self.look_at_stop()?;
        match self.control.next_event(monotonic())? {
            None => Ok(()),
            Some(_) => Err(self.left_early()),
        }
    }

    /// A server that is stopped tells its clients.
    pub(super) fn look_at_stop(&mut self) -> Result<(), Failure> {
        if !self.house.stop.asked() {
            return Ok(());
        }
        let _ = self.control.send_state(State::ServerTerminate);
        let reason = "the server is being stopped";
        Err(Failure::new(Fault::Unreachable, "serve", plain(self.peer), reason))
    }

    pub(super) fn too_slow(&self, what: &str) -> Failure {
        let attempt = format!("wait for {what} from");
        let reason = format!("nothing came within {STEP_TIMEOUT:?}");
        Failure::new(Fault::PeerMisbehaved, attempt, plain(self.peer), reason)
    }

    pub(super) fn left_early(&self) -> Failure {
        let reason = "the client gave the test up";
        Failure::new(Fault::Unreachable, "serve", plain(self.peer), reason)
    }
}

/// What every stream has received, or has had acknowledged.
fn counts(endpoint: &mut Endpoint, now: MonoTime) -> Vec<Sample> {
    let received = endpoint.sample(now).into_iter();
    let received = received.filter(|it| server_side(it.direction) == Side::Receiver);
    received.chain(endpoint.acknowledged(now, 0)).collect()
}

/// Which bytes count, and over which time. Of a test by time, as at iperf3's own server, what had
/// come when the test ended, and of what this end sent what had arrived; both over the time until
/// then. A test by bytes or blocks, or of a client of this program, which waits until all has come,
/// counts what was received whole, over the time until the last byte.
fn count(running: &mut Running, as_it_ended: bool, ended_ns: u64) {
    let Account { remote, local, .. } = &mut running.account;
    let counts = |it: &&Sample| as_it_ended || it.direction == Direction::Down;
    let until: Vec<Sample> = running.ended.iter().filter(counts).cloned().collect();
    count_between(remote, (&running.omitted, &until), ended_ns);
    if !as_it_ended {
        in_one_span(remote, Direction::Up, running.request.omit_ns);
    }
    // An acknowledgement may be on the way of what the client has read.
    for sent in remote.iter_mut().filter(|report| report.direction == Direction::Down) {
        let same = |it: &&EndReport| (it.direction, it.flow) == (sent.direction, sent.flow);
        let read = local.iter().find(same).map_or(0, |report| report.end.bytes_measured);
        sent.end.bytes_measured = sent.end.bytes_measured.max(read);
    }
}

/// Takes what is on the way: until every stream has what the client says that it sent, or nothing
/// more comes.
fn drain(running: &mut Running, of_client: &Results) {
    let begin = monotonic();
    let mut last = (0, begin);
    let expects = |place: &Place| of_client.stream(place.id).map(|stream| stream.bytes);
    while !running.endpoint.is_done() {
        let now = monotonic();
        let samples = running.endpoint.sample(now);
        let received = |place: &&Place| {
            let same = samples.iter().find(|sample| is_of(place, sample.direction, sample.flow));
            let bytes = same.map_or(0, |sample| sample.bytes);
            expects(place).is_some_and(|sent| running.request.omit_ns == 0 && bytes >= sent)
        };
        let mut up = running.places.iter().filter(|place| place.direction == Direction::Up);
        let has_all = up.all(|place| received(&place));
        let moved = samples.iter().map(|sample| sample.bytes).sum();
        if moved != last.0 {
            last = (moved, now);
        }
        // Receivers that wait for a processor are silent, too, so what is told counts more.
        let tells = running.request.omit_ns == 0
            && running.request.each_direction().contains(&Direction::Up)
            && running.places.iter().all(|place| expects(place).is_some());
        let quiet = !tells && now.since(last.1) >= QUIET;
        if (has_all && running.endpoint.has_sent()) || quiet || now.since(begin) >= DRAIN_MAX {
            break;
        }
        linerate_sys::clock::sleep(LOOK_AT_END);
    }
    leave(&running.endpoint);
}

fn sample(running: &mut Running, now: MonoTime, observer: &mut dyn Observer) {
    let acknowledged = running.endpoint.acknowledged(now, 0);
    let samples = running.endpoint.sample(now);
    let mut watch = |event: &Event| observer.event(event);
    running.account.remote_interval(samples, &mut watch);
    running.account.local_interval(acknowledged, &mut watch);
}

/// `iperf3: 2 streams, 12345 bytes up in 1.000 s, 98.8 kbit/s`.
fn said(running: &Running) -> String {
    let noun = if running.request.streams == 1 { "stream" } else { "streams" };
    let amounts = amounts(&running.account.remote);
    format!("iperf3: {} {noun}{amounts}", running.request.streams)
}
