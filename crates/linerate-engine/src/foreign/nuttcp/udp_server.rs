//! The datagrams of a test at the server: a thread that counts what comes, or senders.
//!
//! Left out: several streams from here to the client, which reads them in turn and waits for each.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_core::record::{
    DatagramsSent, Direction, Failure, Fault, Finish, FlowSide, TcpDirections, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::native::Token;
use linerate_proto::nuttcp::{
    BEGIN_MARKS, END_MARKS, IN_ORDER, NuttcpArrivals, NuttcpInterval, NuttcpServerMachine,
    NuttcpServerReport, NuttcpUdpReceiver, Parameters, Timed, UNTIL_TIMEOUT, UdpMark, sent_us,
};
use linerate_proto::ttcp::TtcpMarks;
use linerate_sys::clock::monotonic;
use linerate_sys::datagram_socket::{DatagramSocket, ReceiveBatch, any_local};
use linerate_sys::poll::{any_readable, readable};
use linerate_sys::thread::{ThreadCost, current_cost};

use super::data_ports::{AnnouncedStream, UdpTurn, data_port_range};
use super::layout::{NATIVE, wall_us};
use super::served::{NuttcpContext, Served};
use crate::failure::words_of;
use crate::flow::admission::Demand;
use crate::flow::contradiction::{left_out, of_jump, of_sender};
use crate::flow::endpoint::Switches;
use crate::flow::tcp::cost_since;
use crate::flow::udp::endpoint::{Endpoint, StreamId, open_socket};
use crate::foreign::marked_stream::send_due;
use crate::foreign::serve::failure_of;
use crate::served::{DirectionTotals, LogText, format_transfer};

/// A client that has its answer opens its port within this time.
const CLIENT_OPENS: Duration = Duration::from_millis(50);
/// How often the receiving thread looks around.
const LOOK: Duration = Duration::from_millis(20);
/// Longest datagram, and the shortest that is no mark.
const SIZE_MAX: u32 = 65_507;
const SIZE_MIN: u32 = 5;

/// The test as the loops of datagrams know it, and what it takes of the server.
fn udp_request(
    parameters: &Parameters,
    about: &NuttcpContext<'_, '_, '_>,
) -> Result<(Demand, UdpTest), Failure> {
    if !(SIZE_MIN..=SIZE_MAX).contains(&parameters.buflen) {
        let reason = format!("datagrams of {} bytes are not served", parameters.buflen);
        return Err(about.refuse(reason));
    }
    let finish = match parameters.nbuf {
        UNTIL_TIMEOUT => Finish::TimeNs((parameters.timeout_s * 1e9) as u64),
        count => Finish::Buffers(count),
    };
    let request = UdpTest {
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
    };
    let planned = request.planned_span().filter(|_| request.pace.is_some());
    let streams = parameters.nstream.into();
    // Its bytes follow from rate and time.
    let demand = Demand { streams, planned, bytes: None, ..Demand::of_udp(&request) };
    Ok((demand, request))
}

/// Data from the client.
pub(super) struct UdpReceiving<'a> {
    parameters: Parameters,
    request: UdpTest,
    /// The ports of the test, until every stream has announced itself.
    turn: Option<UdpTurn<'a>>,
    /// Streams for the thread, which ends when it is told to or the end has come.
    streams: Option<mpsc::Sender<AnnouncedStream>>,
    switches: Arc<Switches>,
    count: Arc<Mutex<ArrivalCount>>,
    thread: Option<JoinHandle<Result<(ThreadCost, u64), String>>>,
}

impl<'a> UdpReceiving<'a> {
    /// The demand of a test on the server, and the test.
    pub(super) fn new(
        parameters: &Parameters,
        about: &NuttcpContext<'a, '_, '_>,
    ) -> Result<(Demand, Self), Failure> {
        let (demand, request) = udp_request(parameters, about)?;
        let test = Self {
            parameters: parameters.clone(),
            turn: None,
            streams: None,
            switches: Arc::default(),
            count: Arc::new(Mutex::new(ArrivalCount::new(parameters, &request))),
            thread: None,
            request,
        };
        Ok((demand, test))
    }

    /// Starts the receiving thread.
    fn start_thread(&mut self) -> Result<(), Failure> {
        lock(&self.count).since = monotonic();
        let (streams, arriving) = mpsc::channel();
        let thread = Thread {
            arriving,
            switches: Arc::clone(&self.switches),
            count: Arc::clone(&self.count),
            sockets: Vec::new(),
            batch: ReceiveBatch::new(),
            calls: 0,
        };
        let named = std::thread::Builder::new().name("linerate-data".to_owned());
        let thread = named.spawn(move || thread.run()).map_err(|error| {
            Failure::new(Fault::System, "start", "a data thread", words_of(&error))
        })?;
        (self.streams, self.thread) = (Some(streams), Some(thread));
        Ok(())
    }

    /// Takes streams that have announced themselves; the ports are the next test's once all have.
    fn gather(&mut self) -> Result<(), Failure> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        let streams = turn.arrivals(&self.request);
        for stream in streams.map_err(|error| crate::failure::system(&error))? {
            match self.parameters.jitter > 0 || self.parameters.delay > 0 {
                // Each has a time of its own then.
                true => stream.socket.note_arrivals(),
                false => drop(stream.socket.join_receives()),
            }
            let (now, wall_ns) = arrival(monotonic(), None);
            let mut count = lock(&self.count);
            stream.first.iter().for_each(|datagram| count.take_datagram(datagram, now, wall_ns));
            // A thread that has ended wants none.
            let _ = self.streams.as_ref().map(|streams| streams.send(stream));
        }
        if turn.is_complete() {
            self.turn = None;
        }
        Ok(())
    }
}

impl<'a> Served<'a> for UdpReceiving<'a> {
    fn is_ready(&mut self, about: &NuttcpContext<'a, '_, '_>) -> Result<bool, Failure> {
        let ports = data_port_range(&self.parameters);
        self.turn = about.ports.listen_udp(about.local_ip, about.peer_ip, ports, &self.request)?;
        if self.turn.is_some() {
            self.start_thread()?;
        }
        Ok(self.turn.is_some())
    }

    /// A test begins with its first stream: the others may have nothing to announce.
    fn open_streams(
        &mut self,
        _: MonoTime,
        _: &mut NuttcpContext<'_, '_, '_>,
    ) -> Result<bool, Failure> {
        self.gather()?;
        Ok(lock(&self.count).begin.is_some())
    }

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NuttcpServerMachine>,
        _: &mut NuttcpContext<'_, '_, '_>,
    ) -> Result<Option<String>, Failure> {
        match output {
            Output::Sample => {
                self.gather()?;
                let asked = self.parameters.interval();
                let parse = self.parameters.parses();
                return Ok(
                    asked.and_then(|asked| lock(&self.count).interval_line(now, asked, parse))
                );
            }
            Output::Halt => self.switches.halt.store(true, Ordering::Relaxed),
            _ => {}
        }
        Ok(None)
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        // What cannot be opened now may be later; the count says what came.
        let _ = self.gather();
        let count = lock(&self.count);
        FlowState {
            moved: count.receiver.bytes,
            complete: count.end.is_some(),
            done: self.thread.as_ref().is_none_or(JoinHandle::is_finished),
            ..FlowState::default()
        }
    }

    fn end_streams(
        &mut self,
        about: &mut NuttcpContext<'_, '_, '_>,
    ) -> (NuttcpServerReport, Result<LogText, Failure>) {
        self.switches.halt.store(true, Ordering::Relaxed);
        let ended = match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            _ => Err("the data thread ended by a panic".to_owned()),
        };
        let (cost, calls) = ended.clone().unwrap_or_default();
        let count = lock(&self.count);
        let mut lines = vec![self.parameters.about_line()];
        let interval = self.parameters.interval().map(|interval| interval.as_secs_f64());
        lines.extend(interval.map(|seconds| match self.parameters.parses() {
            false => format!("interval reporting every {seconds:.2} seconds"),
            true => format!("reporting_interval={seconds:.2}"),
        }));
        let report = NuttcpServerReport {
            about: lines,
            bytes: count.receiver.bytes,
            seconds: count.span_ns() as f64 / 1e9,
            cpu_s: cpu_seconds(cost.user_ns, cost.system_ns),
            calls,
            arrivals: count.arrivals,
            ..NuttcpServerReport::default()
        };
        let failed =
            |reason| Failure::new(Fault::Unreachable, "move data with", &about.peer, reason);
        (report, ended.map(|_| count.log_text()).map_err(failed))
    }
}

impl Drop for UdpReceiving<'_> {
    /// A test that is given up takes its thread along.
    fn drop(&mut self) {
        self.switches.halt.store(true, Ordering::Relaxed);
    }
}

/// Takes the datagrams of all streams of a test.
struct Thread {
    arriving: mpsc::Receiver<AnnouncedStream>,
    switches: Arc<Switches>,
    count: Arc<Mutex<ArrivalCount>>,
    sockets: Vec<DatagramSocket>,
    batch: ReceiveBatch,
    calls: u64,
}

impl Thread {
    /// Until the end has come or was asked for; what it cost, and how many calls.
    fn run(mut self) -> Result<(ThreadCost, u64), String> {
        let before = current_cost();
        while !self.switches.halted() && !lock(&self.count).over {
            let wait = if self.sockets.is_empty() { LOOK } else { Duration::ZERO };
            match self.arriving.recv_timeout(wait) {
                Ok(stream) => self.sockets.push(stream.socket),
                Err(RecvTimeoutError::Timeout) => {
                    self.take_all().map_err(|error| words_of(&error))?;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok((cost_since(before), self.calls))
    }

    /// Takes what is there on every stream, or waits a moment for it.
    fn take_all(&mut self) -> std::io::Result<()> {
        let fds: Vec<_> = self.sockets.iter().map(AsFd::as_fd).collect();
        if fds.is_empty() || !any_readable(&fds, LOOK)? {
            return Ok(());
        }
        for socket in &self.sockets {
            // An error is that of something that was sent: nothing is.
            if !readable(socket, Duration::ZERO)? || self.batch.receive(socket).is_err() {
                continue;
            }
            let now = monotonic();
            self.calls += 1;
            let mut count = lock(&self.count);
            for arrived in self.batch.arrived() {
                let size = arrived.joined_bytes.unwrap_or(arrived.bytes.len()).max(1);
                let (at, wall_ns) = arrival(now, arrived.arrived_ns);
                for datagram in arrived.bytes.chunks(size) {
                    count.take_datagram(datagram, at, wall_ns);
                }
            }
        }
        Ok(())
    }
}

/// A time of the monotonic clock and the wall clock, as far as the kernel tells that.
fn arrival(now: MonoTime, wall_ns: Option<u64>) -> (MonoTime, u64) {
    (now, wall_ns.unwrap_or_else(|| wall_us(now) * 1000))
}

fn lock(count: &Mutex<ArrivalCount>) -> MutexGuard<'_, ArrivalCount> {
    count.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The count of the datagrams that came.
struct ArrivalCount {
    receiver: NuttcpUdpReceiver,
    request: UdpTest,
    size_bytes: u32,
    /// When the ports were open: nothing was sent before.
    since: MonoTime,
    /// Why the transmitter cannot have sent what a datagram announced; that one counts as no more
    /// than itself.
    contradiction: Option<String>,
    /// Datagrams say what was sent only in tests with intervals.
    numbered: bool,
    begin: Option<MonoTime>,
    /// When data came last, and when the end was announced.
    last: MonoTime,
    end: Option<MonoTime>,
    over: bool,
    /// Times of arrivals, for a client that asks for them: jitter and one-way delay, each with
    /// what is to be shown of it.
    arrivals: Option<NuttcpArrivals>,
    shown: (u8, u8),
    /// Time, bytes and announced bytes at the end of the last interval.
    told: Option<(MonoTime, u64, u64)>,
}

impl ArrivalCount {
    fn new(parameters: &Parameters, request: &UdpTest) -> Self {
        let timed = parameters.jitter > 0 || parameters.delay > 0;
        Self {
            receiver: NuttcpUdpReceiver::default(),
            request: request.clone(),
            size_bytes: parameters.buflen,
            since: monotonic(),
            contradiction: None,
            numbered: parameters.interval_s > 0.0,
            begin: None,
            last: MonoTime::default(),
            end: None,
            over: false,
            arrivals: timed.then(|| NuttcpArrivals::from_gap_ms(parameters.gap_ms())),
            shown: (parameters.jitter, parameters.delay),
            told: None,
        }
    }

    /// The line of the interval that ends now: a whole one, where a stall makes a long one, or what
    /// came after the last of them.
    fn interval_line(&mut self, now: MonoTime, asked: Duration, parse: bool) -> Option<String> {
        let (bytes, announced) = (self.receiver.bytes, self.receiver.announced);
        let told = self.told.filter(|told| match self.end {
            None => now.duration_since(told.0) * 2 >= asked,
            Some(_) => self.begin != Some(told.0) && bytes > told.1,
        })?;
        // What came before a late line and was read after it has the time of that.
        let end = self.end.map_or(now, |end| end.max(self.last));
        let now = if end > told.0 { end } else { now };
        let size = i64::from(self.size_bytes.max(1));
        let came = bytes.saturating_sub(told.1);
        let datagrams = announced.map(|announced| {
            let all = announced.saturating_sub(told.2).cast_signed() / size;
            (all - came.cast_signed() / size, all)
        });
        self.told = Some((now, bytes, announced.unwrap_or(0)));
        let seconds = now.duration_since(told.0).as_secs_f64();
        let line = NuttcpInterval { datagrams, ..NuttcpInterval::from_bytes(came, seconds) }
            .to_line(parse);
        let Some(arrivals) = &mut self.arrivals else { return Some(line) };
        let jitter = std::mem::take(&mut arrivals.jitter_row);
        let delay = std::mem::take(&mut arrivals.delay_row);
        let columns = jitter.columns(Timed::Jitter, self.shown.0, parse);
        Some(line + &columns + &delay.columns(Timed::Delay, self.shown.1, parse))
    }

    /// The log line, with the totals of the direction.
    fn log_text(&self) -> LogText {
        if self.begin.is_none() {
            return "UDP: no datagram came".to_owned().into();
        }
        let lost = self.receiver.lost_datagrams(self.size_bytes);
        let (bytes, datagrams) = (self.receiver.bytes, self.receiver.datagrams);
        let line = line_of("received", datagrams, bytes, self.span_ns(), lost);
        let up = DirectionTotals {
            datagrams_received: Some(datagrams),
            datagrams_lost: lost,
            ..DirectionTotals::from_transfer(Direction::Up, 1, bytes, self.span_ns())
        };
        let line = line + if self.over { "" } else { ", without an end" };
        let line = match &self.contradiction {
            Some(reason) => format!("{line}; {}", left_out(reason)),
            None => line,
        };
        LogText { line, ways: vec![up] }
    }

    /// Takes a datagram that came at this time of the monotonic clock and the wall clock.
    fn take_datagram(&mut self, datagram: &[u8], now: MonoTime, wall_ns: u64) {
        let announced = self.receiver.announced;
        let head = if self.numbered { datagram } else { &datagram[..datagram.len().min(4)] };
        match self.receiver.count_datagram(head, datagram.len()) {
            // A mark that comes again starts nothing anew once data is there.
            Some(UdpMark::Begin) if self.receiver.datagrams == 0 => self.begin_count(now),
            Some(UdpMark::Ready | UdpMark::Begin) => {}
            Some(UdpMark::End(0)) => drop(self.end.get_or_insert(now)),
            Some(UdpMark::End(_)) => self.over = true,
            None => {
                if self.begin.is_none() {
                    self.begin_count(now);
                }
                let before = std::mem::replace(&mut self.last, now);
                let silent_ns = now.nanos_since(before.max(self.since));
                self.check_announced(announced, now, silent_ns);
                self.note_arrival_time(datagram, announced, wall_ns);
            }
        }
    }

    /// Takes back what the last datagram announced, where that is more than can have been sent;
    /// `before` is what was known until then, `silent_ns` after the one before it.
    fn check_announced(&mut self, before: Option<u64>, now: MonoTime, silent_ns: u64) {
        let Some(bytes) = self.receiver.announced else { return };
        let size = u64::from(self.size_bytes);
        if bytes <= before.unwrap_or(0).saturating_add(size) {
            return;
        }
        let (direction, flow, datagrams) = (Direction::Up, 0, bytes / size.max(1));
        let told = DatagramsSent { direction, flow, datagrams, measured: 0, span_ns: 0 };
        let wrong = of_sender(&self.request, &told, now.nanos_since(self.since));
        let came = before.unwrap_or(0) / size.max(1);
        let wrong = wrong.or_else(|| of_jump(datagrams, came, silent_ns));
        if let Some(reason) = wrong {
            self.receiver.announced = before;
            self.contradiction.get_or_insert(reason);
        }
    }

    /// Notes when a datagram came; `announced` is what was before it.
    fn note_arrival_time(&mut self, datagram: &[u8], announced: Option<u64>, wall_ns: u64) {
        let Some(arrivals) = &mut self.arrivals else { return };
        let next = announced.map(|bytes| bytes + datagram.len() as u64);
        let in_order = next.is_none() || next == self.receiver.announced;
        let neighbour = in_order || self.shown.0 & IN_ORDER == 0;
        let sent_us = sent_us(datagram).filter(|_| self.shown.1 > 0);
        arrivals.record(wall_ns, neighbour, sent_us);
    }

    fn begin_count(&mut self, now: MonoTime) {
        self.begin = Some(now);
        self.told = Some((now, 0, 0));
    }

    /// From the begin to the announced end, or the last data.
    fn span_ns(&self) -> u64 {
        let end = self.end.unwrap_or(self.last).max(self.last);
        self.begin.map_or(0, |begin| end.nanos_since(begin))
    }
}

/// Data to the client.
pub(super) struct UdpTransmitting {
    parameters: Parameters,
    request: UdpTest,
    endpoint: Endpoint,
    /// The marks that are on their way: those of the begin, then those of the end.
    marks: Option<TtcpMarks>,
}

impl UdpTransmitting {
    /// The demand of a test on the server, and the test.
    pub(super) fn new(
        parameters: &Parameters,
        about: &NuttcpContext<'_, '_, '_>,
    ) -> Result<(Demand, Self), Failure> {
        let (demand, request) = udp_request(parameters, about)?;
        if parameters.nstream > 1 {
            return Err(about.refuse("UDP to the client in several streams is not served"));
        }
        request.check().map_err(|error| about.refuse(error.to_string()))?;
        let peer = SocketAddr::new(about.peer_ip, parameters.port);
        let socket = open_socket(&request, any_local(peer))
            .and_then(|socket| socket.connect(peer).map(|()| socket))
            .map_err(|error| crate::failure::system(&error))?;
        let mut endpoint = Endpoint::with_layout(request.clone(), NATIVE, None);
        let (direction, side, client_addr) = (Direction::Down, FlowSide::Sender, peer.to_string());
        endpoint.add(socket, StreamId { direction, flow: 0, side, client_addr }, Token([0; 16]));
        Ok((demand, Self { parameters: parameters.clone(), request, endpoint, marks: None }))
    }

    /// Sends the mark that is due; whether all are sent.
    fn send_due_mark(&mut self, now: MonoTime) -> bool {
        let Some(marks) = &mut self.marks else { return false };
        send_due(marks, now, &self.endpoint);
        marks.is_over()
    }
}

impl Served<'_> for UdpTransmitting {
    fn open_streams(
        &mut self,
        now: MonoTime,
        _: &mut NuttcpContext<'_, '_, '_>,
    ) -> Result<bool, Failure> {
        self.marks.get_or_insert_with(|| TtcpMarks::new(now + CLIENT_OPENS, BEGIN_MARKS));
        let open = self.send_due_mark(now);
        self.marks = self.marks.filter(|_| !open);
        Ok(open)
    }

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NuttcpServerMachine>,
        _: &mut NuttcpContext<'_, '_, '_>,
    ) -> Result<Option<String>, Failure> {
        match output {
            Output::Start => {
                let started = self.endpoint.start_senders(now);
                started.map_err(|error| crate::failure::system(&error))?;
            }
            Output::Halt => self.endpoint.stop_sending(),
            Output::Settle => self.marks = Some(TtcpMarks::new(now, END_MARKS)),
            _ => {}
        }
        Ok(None)
    }

    fn flow_state(&mut self, now: MonoTime) -> FlowState {
        let complete = self.endpoint.has_started() && self.endpoint.is_done();
        let done = complete && self.send_due_mark(now);
        FlowState { complete, done, ..FlowState::default() }
    }

    fn end_streams(
        &mut self,
        _: &mut NuttcpContext<'_, '_, '_>,
    ) -> (NuttcpServerReport, Result<LogText, Failure>) {
        let none = Endpoint::with_layout(self.request.clone(), NATIVE, None);
        let reports = std::mem::replace(&mut self.endpoint, none).finish();
        let end = reports.first().map(|report| report.end.clone()).unwrap_or_default();
        let report = NuttcpServerReport {
            about: vec![self.parameters.about_line()],
            bytes: end.bytes,
            seconds: end.span_ns as f64 / 1e9,
            cpu_s: cpu_seconds(end.cpu_user_ns, end.cpu_system_ns),
            calls: end.io_calls,
            ..NuttcpServerReport::default()
        };
        let count = end.sent_datagrams.as_ref().map_or(0, |sent| sent.count);
        let line = line_of("sent", count, end.bytes, end.span_ns, None);
        let told = LogText::from_reports(line, &reports);
        (report, failure_of(&reports).map_or(Ok(told), Err))
    }
}

fn cpu_seconds(user_ns: Option<u64>, system_ns: Option<u64>) -> (f64, f64) {
    let seconds = |ns: Option<u64>| ns.unwrap_or(0) as f64 / 1e9;
    (seconds(user_ns), seconds(system_ns))
}

/// `UDP: 12.35 kB in 1.000 s, 98.8 kbit/s, 12 datagrams received, 0 lost`, for the log.
fn line_of(verb: &str, count: u64, bytes: u64, span_ns: u64, lost: Option<u64>) -> String {
    let lost = lost.map_or_else(String::new, |lost| format!(", {lost} lost"));
    format!("UDP: {}, {count} datagrams {verb}{lost}", format_transfer(bytes, span_ns))
}
