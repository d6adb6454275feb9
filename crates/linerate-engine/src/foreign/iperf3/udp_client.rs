//! The client's side of a UDP test: measures with an iperf3 server.
//!
//! The server tells what arrived only at the end, so rows of a test that sends show what was sent.
//! What is on the way when the test ends counts nowhere at the server, so this end waits
//! [`ARRIVAL`] before it says so.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Failure, Fault, IntervalRow, Record, Side, StreamOpened, TcpDirections,
    UdpPlan, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_proto::iperf3::{
    CONNECT_REQUEST, ClientEvent, ClientMachine, Cookie, ServerOutput, State, frame,
    is_connect_reply,
};
use linerate_proto::native::Token;
use linerate_sys::clock::{monotonic, random_bytes, sleep};
use linerate_sys::datagram_socket::{DatagramSocket, any_local};
use linerate_sys::poll::readable;

use super::client::{Extras, Way, same_host, server_side};
use super::control::Control;
use super::datagrams::{Told, WIDE, told_sent, udp_params, udp_remote_reports, udp_results};
use super::fail::refusal;
use super::plan::burst_of;
use super::report::{Place, places};
use super::sent_rows::SentRows;
use super::silence::Silence;
use crate::context::Context;
use crate::datagram::account::Account;
use crate::datagram::client::{checked_request, run_by};
use crate::datagram::endpoint::{Endpoint, Place as StreamPlace, open_socket};
use crate::flow::Sample;
use crate::path::witness::Witness;
use crate::throughput::client::{bind_address, client_side};
use crate::throughput::session::LOOK_AT_END;

/// The server has this long for each step of the set-up and of the end.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// How often the client looks at its stop flag.
const LOOK: Duration = Duration::from_millis(50);
/// The last datagrams have this long to arrive before the server is told that the test is over.
const ARRIVAL: Duration = Duration::from_millis(100);
/// Where the number of datagrams ends a test and none comes for this long, the last were lost.
const DONE: Duration = Duration::from_secs(3);
/// A stream's first datagram is sent again after this: iperf3's own client sends it once.
const AGAIN: Duration = Duration::from_secs(1);
/// Times that it is sent.
const TRIES: u32 = 4;
/// Larger data that comes before the answer in a reverse test.
const STRAYS_MAX: u32 = 10_000;
/// Receivers leave by themselves within this.
const LEAVE_MAX: Duration = Duration::from_secs(3);

/// Measures with an iperf3 server at `server`; what was seen is in `account`.
pub(crate) fn measure_udp(
    plan: &UdpPlan,
    server: SocketAddr,
    request: &UdpTest,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    measure_udp_with(plan, server, request, (Extras::default(), context, account)).map(|_| ())
}

/// Measures with an iperf3 server over UDP, as `datagram::run` does, and gives what that printed
/// where it was wanted.
pub fn run_udp(
    plan: &UdpPlan,
    extras: Extras,
    context: &mut Context<'_>,
) -> (Record, Option<ServerOutput>) {
    let mut output = None;
    let record = run_by(plan, context, |plan, server, (context, account)| {
        let request = checked_request(plan)?;
        output = measure_udp_with(plan, server, &request, (extras, context, account))?;
        Ok(())
    });
    (record, output)
}

fn measure_udp_with(
    plan: &UdpPlan,
    server: SocketAddr,
    request: &UdpTest,
    (extras, context, account): (Extras, &mut Context<'_>, &mut Account),
) -> Result<Option<ServerOutput>, Failure> {
    let receive_max = extras.receive_max;
    let (local_port, device) = (extras.local_port, extras.device.clone());
    let params = extras.with(udp_params(plan, request.size_bytes)?)?;
    let local = bind_address(plan.bind.as_deref())?;
    account.ends.push(crate::environment::local_end(Some(server.ip())));
    account.witness = Some(Witness::begin(server.ip()));
    account.size_bytes = request.size_bytes;
    account.planned_ns = request.planned_span().map(|span| span.as_nanos() as u64);
    let cookie = Cookie::from_random(random_bytes());
    let timeout = Duration::from_nanos(plan.connect_timeout_ns);
    let way = Way { server, local, cookie, timeout, local_port, device };
    let control = way.control()?;
    account.server_host_id = same_host(&control);
    let places = places(request.each_direction(), request.streams);
    let endpoint = Endpoint::with_layout(request.clone(), WIDE, plan.cpu);
    let endpoint = endpoint.in_bursts(burst_of(&params));
    let burst = params.burst.unwrap_or(1);
    let request = request.clone();
    let (output, wants_output) = (None, params.get_server_output);
    let mut test =
        Test { control, endpoint, request, places, output, wants_output, receive_max, burst };
    let parameters = frame(&params.to_json());
    let result = test.run(&parameters, &way, context, account);
    if result.is_err() {
        test.endpoint.halt();
        let _ = test.control.send_state(State::ClientTerminate);
    }
    if account.local.is_empty() {
        account.local = test.endpoint.finish();
    }
    result?;
    account.stream_failure().map_or(Ok(test.output), Err)
}

struct Test {
    control: Control<ClientMachine>,
    endpoint: Endpoint,
    request: UdpTest,
    places: Vec<Place>,
    output: Option<ServerOutput>,
    /// It was asked for.
    wants_output: bool,
    receive_max: Option<Duration>,
    burst: u64,
}

impl Test {
    fn run(
        &mut self,
        parameters: &[u8],
        way: &Way,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        loop {
            match self.next_event(ANSWER_TIMEOUT)? {
                ClientEvent::SendParams => self.control.send(parameters)?,
                ClientEvent::CreateStreams => self.open_streams(way, context, account)?,
                // The server sends no data before this.
                ClientEvent::Starting => account.begin = monotonic(),
                ClientEvent::Running => break,
                event => return Err(refusal(self.control.peer(), event)),
            }
        }
        let started = self.endpoint.start_senders(account.begin);
        started.map_err(|error| crate::failure::system(&error))?;
        let (omitted, stopped) = self.follow(context, account)?;
        let received = self.endpoint.sample(monotonic());
        self.control.send_state(State::TestEnd)?;
        self.control.machine.ended();
        match self.next_event(ANSWER_TIMEOUT)? {
            ClientEvent::SendResults => {}
            event => return Err(refusal(self.control.peer(), event)),
        }
        // What the server sent before it read the end is on its way.
        sleep(ARRIVAL);
        let mut samples = self.endpoint.sample(monotonic());
        // What comes after the end does not count there.
        let receives = |it: &Sample| client_side(it.direction) == Side::Receiver;
        samples.retain(|it| !receives(it));
        samples.extend(received.into_iter().filter(receives));
        let sent = self.endpoint.sent().unwrap_or_default();
        let told = Told {
            side_of: client_side,
            omitted: &omitted,
            sent: &sent,
            omit_ns: self.request.omit_ns,
            end_ns: stopped.nanos_since(account.begin),
        };
        let own = udp_results(&self.places, &samples, self.request.size_bytes, &told);
        self.control.send(&frame(&own.to_json()))?;
        let results = match self.next_event(ANSWER_TIMEOUT)? {
            ClientEvent::Results(results) => *results,
            event => return Err(refusal(self.control.peer(), event)),
        };
        self.endpoint.told_sent(&told_sent(&self.places, &results, self.request.size_bytes));
        let end = monotonic() + LEAVE_MAX;
        while !self.endpoint.is_done() && monotonic() < end {
            sleep(LOOK_AT_END);
        }
        account.local_interval(self.endpoint.sample(monotonic()), context.watch);
        let empty = Endpoint::with_layout(self.request.clone(), WIDE, None);
        account.local = std::mem::replace(&mut self.endpoint, empty).finish();
        let (own, request) = (&account.local, &self.request);
        account.remote = udp_remote_reports(&self.places, &results, own, server_side, request);
        // A server of 3.12 and later goes on sending it once anybody has asked.
        self.output = results.server_output.filter(|_| self.wants_output);
        if let Ok(ClientEvent::Finished) = self.next_event(ANSWER_TIMEOUT) {
            let _ = self.control.send_state(State::IperfDone);
        }
        Ok(())
    }

    /// Opens a socket for each stream, one after the other: the server tells them apart by the
    /// order of their first datagrams.
    fn open_streams(
        &mut self,
        way: &Way,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        let (server, cookie) = (way.server, way.cookie);
        for (at, place) in self.places.clone().into_iter().enumerate() {
            let mut local =
                way.local.map_or_else(|| any_local(server), |ip| SocketAddr::new(ip, 0));
            local.set_port(way.port_of(at).unwrap_or(0));
            let socket = open_socket(&self.request, local).and_then(|socket| {
                way.device.as_ref().map_or(Ok(()), |device| socket.bind_device(device))?;
                socket.connect(server).map(|()| socket)
            });
            let socket = socket.map_err(|error| crate::failure::system(&error))?;
            self.greet(&socket, server)?;
            let client_addr =
                socket.local_address().map_or_else(String::new, |addr| addr.to_string());
            let (direction, flow) = (place.direction, place.flow);
            account.route_mtu_bytes = socket.mtu_bytes();
            account.connected(direction, flow, &client_addr, server);
            let (sndbuf_bytes, rcvbuf_bytes) = socket.buffers();
            (context.watch)(&Event::Stream(StreamOpened {
                direction,
                flow,
                local_addr: client_addr.clone(),
                remote_addr: server.to_string(),
                mss_bytes: None,
                sndbuf_bytes,
                rcvbuf_bytes,
                session: Some(cookie.text()),
            }));
            let side = client_side(direction);
            let place = StreamPlace { direction, flow, side, client_addr };
            self.endpoint.add(socket, place, Token([0; 16]));
        }
        let noun = if self.request.streams == 1 { "stream" } else { "streams" };
        let (streams, size) = (self.request.streams, self.request.size_bytes);
        let line = format!("{streams} UDP {noun} to {server}, iperf3, datagrams of {size} bytes");
        (context.watch)(&Event::Connected(line));
        let started = self.endpoint.start_receivers();
        started.map_err(|error| crate::failure::system(&error))
    }

    /// The first datagram of a stream, until it is answered.
    fn greet(&self, socket: &DatagramSocket, server: SocketAddr) -> Result<(), Failure> {
        let mut strays = 0;
        for _ in 0..TRIES {
            let until = monotonic() + AGAIN;
            // One that is lost or refused is sent again.
            let _ = socket.send(&CONNECT_REQUEST);
            while monotonic() < until {
                let ready = readable(socket, until.since(monotonic()).min(LOOK));
                if !ready.unwrap_or(false) {
                    continue;
                }
                let mut datagram = [0; 64];
                if let Ok(Some((len, _))) = socket.receive_from(&mut datagram) {
                    if is_connect_reply(&datagram[..len]) {
                        return Ok(());
                    }
                    strays += 1;
                    if strays > STRAYS_MAX {
                        break;
                    }
                }
            }
        }
        let reason = "no answer on its UDP port";
        Err(Failure::new(Fault::Unreachable, "open UDP stream to", server.to_string(), reason)
            .advise("a filter on the way may keep UDP back"))
    }

    /// Takes samples until the end; those of the end of the omitted span, and when it was over.
    fn follow(
        &mut self,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(Vec<Sample>, MonoTime), Failure> {
        let begin = account.begin;
        let planned = self.request.datagram_budget().is_none();
        let planned = self.request.planned_span().filter(|_| planned);
        let interval = Duration::from_nanos(self.request.interval_ns);
        let mut tick = begin + interval;
        let mut omit =
            (self.request.omit_ns > 0).then(|| begin + Duration::from_nanos(self.request.omit_ns));
        let (mut omitted, mut sent_rows) = (Vec::new(), SentRows::default());
        let mut ended: Option<MonoTime> = None;
        let mut silence = Silence::since(begin, self.receive_max);
        loop {
            let now = monotonic();
            let silent = match self.request.directions {
                TcpDirections::Up => Duration::ZERO,
                _ => silence.look(self.received(now), now),
            };
            silence.check(silent, self.control.peer())?;
            if now >= tick {
                self.tell(now, &mut sent_rows, (context, account));
                tick += interval;
            }
            if omit.is_some_and(|at| now >= at) {
                omit = None;
                omitted = self.endpoint.sample(now);
            }
            let over = planned.map_or_else(
                // The last datagram may be lost.
                || self.is_complete() || silent >= self.patience(),
                |span| now >= begin + span,
            );
            if (over || context.stop.asked()) && ended.is_none() {
                self.endpoint.stop_sending();
                ended = Some(now);
                // The rest after the last whole interval.
                self.tell(now, &mut sent_rows, (context, account));
            }
            let arrived = match self.request.directions {
                TcpDirections::Down => Duration::ZERO,
                _ => ARRIVAL,
            };
            if ended.is_some_and(|at| now.since(at) >= arrived) {
                return Ok((omitted, ended.unwrap_or(now)));
            }
            let due = planned.is_none_or(|span| now + LOOK >= begin + span);
            let look = if due || ended.is_some() { LOOK_AT_END } else { LOOK };
            let until = tick.min(now + look).min(omit.unwrap_or(tick));
            if let Some(event) = self.control.next_event(until)? {
                return Err(refusal(self.control.peer(), event));
            }
        }
    }

    /// Tells the rows of the interval that ends now; a short rest makes one only where it is all.
    fn tell(
        &self,
        now: MonoTime,
        sent_rows: &mut SentRows,
        (context, account): (&mut Context<'_>, &mut Account),
    ) {
        let samples = self.endpoint.sample(now);
        let about = (self.request.size_bytes, self.request.omit_ns);
        let least = account.row_ns_min;
        let counts = |row: &IntervalRow| row.start_ns == 0 || row.end_ns - row.start_ns >= least;
        let rows = sent_rows.next(&samples, Direction::Up, about).into_iter().filter(counts);
        rows.for_each(|row| (context.watch)(&Event::Interval(row)));
        account.local_interval(samples, context.watch);
        account.remote_interval(Vec::new(), context.watch);
    }

    /// Whether the datagrams of a test by their number have been sent and received.
    fn is_complete(&self) -> bool {
        let budget = self.request.datagram_budget().unwrap_or(0);
        let samples = self.endpoint.sample(monotonic());
        self.request.each_direction().iter().all(|direction| {
            let of_way = samples.iter().filter(|sample| sample.direction == *direction);
            of_way.map(|sample| sample.counts().next).sum::<u64>() >= budget
        })
    }

    /// Datagrams that came from the server.
    fn received(&self, now: MonoTime) -> u64 {
        let samples = self.endpoint.sample(now);
        let down = samples.iter().filter(|sample| sample.direction == Direction::Down);
        down.map(|sample| sample.counts().next).sum()
    }

    /// A server that sends datagrams by their number is done when none comes for this long: ten
    /// of its gaps, or two of its bursts, and [`DONE`].
    fn patience(&self) -> Duration {
        let bits = u64::from(self.request.size_bytes) * 8 * self.burst.max(5) * 2;
        let gaps = self.request.pace_bps.map(|bps| bits as f64 / bps.max(1) as f64);
        DONE + gaps.map_or(Duration::ZERO, |s| Duration::from_secs_f64(s.min(3600.0)))
    }

    fn next_event(&mut self, timeout: Duration) -> Result<ClientEvent, Failure> {
        if let Some(event) = self.control.next_event(monotonic() + timeout)? {
            return Ok(event);
        }
        let reason = "the server fell silent";
        Err(Failure::new(Fault::Unreachable, "hear from", self.control.peer(), reason)
            .advise("what was measured before is kept"))
    }
}
