//! The server's side of a UDP test: marks, data, interval lines, the summary.
//!
//! A receiver counts in this thread; a transmitter has one of its own. Left out: several streams
//! from here to the client, which reads them in turn and waits for each.

use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::record::{
    Direction, Failure, Fault, Finish, FlowEnd, Side, TcpDirections, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::native::Token;
use linerate_proto::nuttcp::{
    Arrivals, BEGIN_PAUSE_MS, END_PAUSE_MS, END_REPEAT_MS, FORMAT_PARSE, IN_ORDER, Interval,
    Parameters, Report, Role, ServerMachine, Timed, UNTIL_TIMEOUT, UdpMark, UdpReceiver,
    report_lines, sent_us,
};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::datagram_socket::{DatagramSocket, ReceiveBatch, any_local};
use linerate_sys::poll::{any_readable, readable};
use linerate_sys::tcp;
use linerate_sys::thread::{ThreadCost, cost};

use super::data_ports::{DataPorts, Stream, UdpTurn};
use super::layout::{NATIVE, wall_us};
use super::server::{STREAMS, Session};
use crate::flow::tcp::session::LOOK_AT_END;
use crate::flow::tcp::{Demand, cost_since};
use crate::flow::udp::endpoint::{Endpoint, Place, open_socket};
use crate::foreign::serve::{IDLE, Serving};

/// A client that has its answer opens its port within this time.
const CLIENT_OPENS: Duration = Duration::from_millis(50);
/// Once the end was announced the data is over after this, whatever else comes.
const END_MAX: Duration = Duration::from_secs(2);
/// How often waits look around.
const LOOK: Duration = Duration::from_millis(20);
/// Intervals that are no shorter than this are told.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Longest datagram, and the shortest that is no mark.
const SIZE_MAX: u32 = 65_507;
const SIZE_MIN: u32 = 5;

impl Session {
    /// Serves a test over UDP; the line is for the log.
    pub(super) fn test_udp(
        &mut self,
        parameters: &Parameters,
        ports: &DataPorts,
        serving: &mut Serving<'_>,
    ) -> Result<String, Failure> {
        self.check(parameters)?;
        if !(SIZE_MIN..=SIZE_MAX).contains(&parameters.buflen) {
            let reason = format!("datagrams of {} bytes are not served", parameters.buflen);
            return Err(self.refuse(reason));
        }
        let request = udp_request(parameters);
        let planned = request.planned_span().filter(|_| request.pace.is_some());
        let demand = Demand { streams: parameters.nstream.into(), planned };
        if parameters.client_sends {
            let _permit = self.permit(&demand, serving)?;
            return self.receive(parameters, &request, ports, serving);
        }
        if parameters.nstream > 1 {
            return Err(
                self.refuse("UDP to the client in several streams is not served".to_owned())
            );
        }
        request.check().map_err(|error| self.refuse(error.to_string()))?;
        let _permit = self.permit(&demand, serving)?;
        self.transmit(parameters, &request, serving)
    }

    /// Data from the client.
    fn receive(
        &mut self,
        parameters: &Parameters,
        request: &UdpTest,
        ports: &DataPorts,
        serving: &Serving<'_>,
    ) -> Result<String, Failure> {
        let local = self.control.stream().local_addr().map_err(|error| self.lost(&error))?;
        let ends = (local.ip().to_canonical(), self.peer()?.ip());
        let first = (parameters.port, parameters.nstream);
        let turn = ports.listen_udp(ends, first, (request, STREAMS))?;
        let mut turn = Some(turn.ok_or_else(|| self.taken(parameters))?);
        self.control.send(&ServerMachine::accept())?;
        let before = cost();
        let mut receiving = Receiving::new(parameters, monotonic());
        while !receiving.is_over(monotonic(), serving) {
            self.gather_udp(&mut turn, &mut receiving, request)?;
            receiving.take_all().map_err(|error| self.lost(&error))?;
            if let Some(line) = receiving.interval(monotonic()) {
                self.control.send(&line)?;
            }
            if tcp::peer_has_closed(self.control.stream()) {
                // A client closes its half once it has sent the last mark: all is there.
                self.gather_udp(&mut turn, &mut receiving, request)?;
                while receiving.take_all().map_err(|error| self.lost(&error))? {}
                if receiving.count.begin.is_none() {
                    return Err(self.control.closed());
                }
                break;
            }
        }
        let report = receiving.report(parameters, cost_since(before));
        let done = if parameters.interval_s > 0.0 { "DONE\n" } else { "" };
        let summary = report_lines(Role::Receiver, parameters, &report);
        self.control.send(&format!("{done}{summary}"))?;
        Ok(receiving.said())
    }

    /// Takes streams that have announced themselves; the port is the next test's once all have.
    fn gather_udp(
        &self,
        turn: &mut Option<UdpTurn<'_>>,
        receiving: &mut Receiving,
        request: &UdpTest,
    ) -> Result<(), Failure> {
        let Some(open) = turn else { return Ok(()) };
        let streams = open.arrivals(request).map_err(|error| crate::failure::system(&error))?;
        let none = streams.is_empty() && receiving.streams.is_empty();
        streams.into_iter().for_each(|stream| receiving.add(stream));
        if open.is_complete() {
            *turn = None;
        }
        if none {
            sleep(LOOK_AT_END);
        }
        Ok(())
    }

    /// Data to the client.
    fn transmit(
        &mut self,
        parameters: &Parameters,
        request: &UdpTest,
        serving: &Serving<'_>,
    ) -> Result<String, Failure> {
        let peer = std::net::SocketAddr::new(self.peer()?.ip(), parameters.port);
        let system = |error: linerate_sys::Error| crate::failure::system(&error);
        let socket = open_socket(request, any_local(peer)).map_err(system)?;
        socket.connect(peer).map_err(system)?;
        self.control.send(&ServerMachine::accept())?;
        sleep(CLIENT_OPENS);
        mark(&socket, UdpMark::Ready);
        sleep(Duration::from_millis(BEGIN_PAUSE_MS));
        mark(&socket, UdpMark::Begin);
        let mut endpoint = Endpoint::with_layout(request.clone(), NATIVE, None);
        let (direction, side, client_addr) = (Direction::Down, Side::Sender, peer.to_string());
        endpoint.add(socket, Place { direction, flow: 0, side, client_addr }, Token([0; 16]));
        let begin = monotonic();
        endpoint.start_senders(begin).map_err(system)?;
        let latest = begin + serving.admission.duration_max();
        while !endpoint.is_done() {
            if monotonic() >= latest || serving.stop.asked() {
                endpoint.stop_sending();
            }
            // A client that has had enough closes, or says so out of band.
            if tcp::peer_has_closed(self.control.stream()) {
                return Err(self.control.closed());
            }
            sleep(LOOK_AT_END);
        }
        for count in 0..5 {
            endpoint.sockets().for_each(|socket| mark(socket, UdpMark::End(count)));
            let pause = if count == 0 { END_PAUSE_MS } else { END_REPEAT_MS };
            sleep(Duration::from_millis(pause));
        }
        let reports = endpoint.finish();
        let end = reports.first().map(|report| report.end.clone()).unwrap_or_default();
        let summary = report_lines(Role::Transmitter, parameters, &transmitted(parameters, &end));
        self.control.send(&summary)?;
        if let Some(reason) = reports.into_iter().find_map(|report| report.failure) {
            return Err(Failure::new(
                Fault::Unreachable,
                "move data with",
                peer.to_string(),
                reason,
            ));
        }
        let count = end.sent_datagrams.as_ref().map_or(0, |sent| sent.count);
        Ok(line_of(("sent", count), end.bytes, end.span_ns, None))
    }
}

/// The test as the loops of datagrams know it.
fn udp_request(parameters: &Parameters) -> UdpTest {
    let finish = match parameters.nbuf {
        UNTIL_TIMEOUT => Finish::TimeNs((parameters.timeout_s * 1e9) as u64),
        count => Finish::Buffers(count),
    };
    UdpTest {
        directions: match parameters.client_sends {
            true => TcpDirections::Up,
            false => TcpDirections::Down,
        },
        streams: 1,
        finish,
        omit_ns: 0,
        interval_ns: 1_000_000_000,
        size_bytes: parameters.buflen,
        pace: parameters.pace_bps().map(BitRate::from_bits_per_sec),
        window_bytes: Some(parameters.window).filter(|window| *window > 0),
        dscp: Some(parameters.tos >> 2).filter(|dscp| *dscp > 0),
        // Whoever asks for jitter wants to see each datagram leave at its own time.
        joined: parameters.jitter == 0,
        search: None,
        taken_singly: false,
    }
}

/// An error is that of a mark before: it is told once, and this one leaves.
fn mark(socket: &DatagramSocket, mark: UdpMark) {
    if socket.send_when_room(&mark.to_bytes()).is_err() {
        let _ = socket.send_when_room(&mark.to_bytes());
    }
}

/// The streams of a test and what came on them.
struct Receiving {
    streams: Vec<DatagramSocket>,
    batch: ReceiveBatch,
    calls: u64,
    interval: Option<Duration>,
    parse: bool,
    count: Count,
}

/// What came.
struct Count {
    receiver: UdpReceiver,
    size_bytes: u32,
    /// Datagrams say what was sent only in tests with intervals.
    numbered: bool,
    /// When anything came last, or was first waited for.
    heard: MonoTime,
    begin: Option<MonoTime>,
    /// When data came last, and when the end was announced.
    last: MonoTime,
    end: Option<MonoTime>,
    over: bool,
    /// Times of arrivals, for a client that asks for them: jitter and one-way delay, each with
    /// what is to be shown of it.
    arrivals: Option<Arrivals>,
    shown: (u8, u8),
    /// Time, bytes and announced bytes at the end of the last interval.
    told: Option<(MonoTime, u64, u64)>,
}

impl Receiving {
    fn new(parameters: &Parameters, now: MonoTime) -> Self {
        let interval = Duration::try_from_secs_f64(parameters.interval_s).unwrap_or_default();
        Self {
            streams: Vec::new(),
            batch: ReceiveBatch::new(),
            calls: 0,
            interval: (interval >= INTERVAL_MIN).then_some(interval),
            parse: parameters.format & FORMAT_PARSE != 0,
            count: Count {
                receiver: UdpReceiver::default(),
                size_bytes: parameters.buflen,
                numbered: parameters.interval_s > 0.0,
                heard: now,
                begin: None,
                last: now,
                end: None,
                over: false,
                arrivals: (parameters.jitter > 0 || parameters.delay > 0)
                    .then(|| Arrivals::paced(parameters.gap_ms())),
                shown: (parameters.jitter, parameters.delay),
                told: None,
            },
        }
    }

    fn add(&mut self, stream: Stream) {
        match self.count.arrivals {
            // Each has a time of its own then.
            Some(_) => stream.socket.note_arrivals(),
            None => drop(stream.socket.join_receives()),
        }
        let now = monotonic();
        let now = (now, wall_us(now) * 1000);
        stream.first.iter().for_each(|datagram| self.count.take(datagram, now));
        self.streams.push(stream.socket);
    }

    /// Takes what is there on every stream, or waits a moment for it; whether anything was.
    fn take_all(&mut self) -> std::io::Result<bool> {
        let told = self.count.told.filter(|_| self.count.end.is_none());
        let tick = self.interval.zip(told).map(|(interval, told)| told.0 + interval);
        let until_tick = tick.map_or(LOOK, |tick| tick.since(monotonic()));
        let fds: Vec<_> = self.streams.iter().map(AsFd::as_fd).collect();
        if fds.is_empty() || !any_readable(&fds, LOOK.min(until_tick))? {
            return Ok(false);
        }
        for stream in &self.streams {
            // An error is that of something that was sent: nothing is.
            if !readable(stream, Duration::ZERO)? || self.batch.receive(stream).is_err() {
                continue;
            }
            let now = monotonic();
            self.calls += 1;
            for arrived in self.batch.arrived() {
                let size = arrived.joined_bytes.unwrap_or(arrived.bytes.len()).max(1);
                let wall_ns = arrived.arrived_ns.unwrap_or_else(|| wall_us(now) * 1000);
                let at = (now, wall_ns);
                arrived.bytes.chunks(size).for_each(|datagram| self.count.take(datagram, at));
            }
        }
        Ok(true)
    }

    fn is_over(&self, now: MonoTime, serving: &Serving<'_>) -> bool {
        let count = &self.count;
        count.over
            || serving.stop.asked()
            || now.since(count.heard) >= IDLE
            || now.since(count.begin.unwrap_or(now)) >= serving.admission.duration_max()
            || count.end.is_some_and(|end| now.since(end) >= END_MAX)
    }

    /// The line of an interval that has ended. A stall makes one long interval.
    fn interval(&mut self, now: MonoTime) -> Option<String> {
        let (interval, told) = self.interval.zip(self.count.told)?;
        if self.count.end.is_some() || now.since(told.0) < interval {
            return None;
        }
        let row = self.count.interval(told, now).to_line(self.parse);
        Some(format!("{row}{}\n", self.count.times(self.parse)))
    }

    fn report(&self, parameters: &Parameters, cost: ThreadCost) -> Report {
        let mut about = vec![parameters.about()];
        if let Some(interval) = self.interval {
            let seconds = interval.as_secs_f64();
            about.push(match self.parse {
                false => format!("interval reporting every {seconds:.2} seconds"),
                true => format!("reporting_interval={seconds:.2}"),
            });
        }
        Report {
            about,
            bytes: self.count.receiver.bytes,
            seconds: self.count.span_ns() as f64 / 1e9,
            cpu_s: cpu_seconds(cost.user_ns, cost.system_ns),
            calls: self.calls,
            retransmits: None,
            arrivals: self.count.arrivals,
        }
    }

    fn said(&self) -> String {
        let receiver = &self.count.receiver;
        let lost = receiver.lost(self.count.size_bytes);
        let counts = ("received", receiver.datagrams);
        let mut line = line_of(counts, receiver.bytes, self.count.span_ns(), lost);
        if !self.count.over {
            line += ", without an end";
        }
        line
    }
}

impl Count {
    /// Takes a datagram that came at this time of the monotonic clock and the wall clock.
    fn take(&mut self, datagram: &[u8], (now, wall_ns): (MonoTime, u64)) {
        self.heard = now;
        let announced = self.receiver.announced;
        let head = if self.numbered { datagram } else { &datagram[..datagram.len().min(4)] };
        match self.receiver.take(head, datagram.len()) {
            // A mark that comes again starts nothing anew once data is there.
            Some(UdpMark::Begin) if self.receiver.datagrams == 0 => self.start(now),
            Some(UdpMark::Ready | UdpMark::Begin) => {}
            Some(UdpMark::End(0)) => drop(self.end.get_or_insert(now)),
            Some(UdpMark::End(_)) => self.over = true,
            None => {
                if self.begin.is_none() {
                    self.start(now);
                }
                self.last = now;
                self.time(datagram, announced, wall_ns);
            }
        }
    }

    /// Notes when a datagram came; `announced` is what was before it.
    fn time(&mut self, datagram: &[u8], announced: Option<u64>, wall_ns: u64) {
        let Some(arrivals) = &mut self.arrivals else { return };
        let next = announced.map(|bytes| bytes + datagram.len() as u64);
        let in_order = next.is_none() || next == self.receiver.announced;
        let neighbour = in_order || self.shown.0 & IN_ORDER == 0;
        let sent_us = sent_us(datagram).filter(|_| self.shown.1 > 0);
        arrivals.take(wall_ns, neighbour, sent_us);
    }

    /// What a row of an interval says of times.
    fn times(&mut self, parse: bool) -> String {
        let Some(arrivals) = &mut self.arrivals else { return String::new() };
        let (jitter, delay) =
            (std::mem::take(&mut arrivals.jitter_row), std::mem::take(&mut arrivals.delay_row));
        let columns = jitter.columns(Timed::Jitter, self.shown.0, parse);
        columns + &delay.columns(Timed::Delay, self.shown.1, parse)
    }

    fn start(&mut self, now: MonoTime) {
        self.begin = Some(now);
        self.told = Some((now, 0, 0));
    }

    /// What came since the last interval ended.
    fn interval(&mut self, told: (MonoTime, u64, u64), now: MonoTime) -> Interval {
        let (bytes, announced) = (self.receiver.bytes, self.receiver.announced);
        let size = i64::from(self.size_bytes.max(1));
        let came = bytes.saturating_sub(told.1);
        let datagrams = announced.map(|announced| {
            let all = announced.saturating_sub(told.2).cast_signed() / size;
            (all - came.cast_signed() / size, all)
        });
        self.told = Some((now, bytes, announced.unwrap_or(0)));
        Interval { datagrams, ..Interval::of(came, now.since(told.0).as_secs_f64()) }
    }

    /// From the begin to the announced end, or the last data.
    fn span_ns(&self) -> u64 {
        let end = self.end.unwrap_or(self.last).max(self.last);
        self.begin.map_or(0, |begin| end.nanos_since(begin))
    }
}

fn cpu_seconds(user_ns: Option<u64>, system_ns: Option<u64>) -> (f64, f64) {
    let seconds = |ns: Option<u64>| ns.unwrap_or(0) as f64 / 1e9;
    (seconds(user_ns), seconds(system_ns))
}

/// What a transmitter tells of itself.
fn transmitted(parameters: &Parameters, end: &FlowEnd) -> Report {
    Report {
        about: vec![parameters.about()],
        bytes: end.bytes,
        seconds: end.span_ns as f64 / 1e9,
        cpu_s: cpu_seconds(end.cpu_user_ns, end.cpu_system_ns),
        calls: end.io_calls,
        retransmits: None,
        arrivals: None,
    }
}

/// `UDP: 12345 bytes in 1.000 s, 98.8 kbit/s, 12 datagrams received, 0 lost`, for the log.
fn line_of((verb, count): (&str, u64), bytes: u64, span_ns: u64, lost: Option<u64>) -> String {
    let seconds = span_ns as f64 / 1e9;
    let rate = if span_ns == 0 { 0.0 } else { bytes as f64 * 8.0 / seconds };
    let rate = BitRate::from_bits_per_sec(rate as u64);
    let lost = lost.map_or_else(String::new, |lost| format!(", {lost} lost"));
    format!("UDP: {bytes} bytes in {seconds:.3} s, {rate}, {count} datagrams {verb}{lost}")
}
