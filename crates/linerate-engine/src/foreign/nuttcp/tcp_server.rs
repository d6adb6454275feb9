//! The TCP streams of a test at the server.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::record::{
    Direction, EndReport, Failure, Fault, Finish, FlowEnd, FlowSide, TcpDirections, TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::nuttcp::{
    NuttcpInterval, NuttcpServerMachine, NuttcpServerReport, Parameters, UNTIL_TIMEOUT,
};
use linerate_sys::clock::monotonic;
use linerate_sys::tcp;

use super::RULES;
use super::data_ports::{TestPorts, data_port_range};
use super::served::{NuttcpContext, STREAMS, Served};
use crate::failure::words_of;
use crate::flow::admission::Demand;
use crate::flow::tcp::endpoint::{Endpoint, StreamId, socket_options};
use crate::foreign::serve::{ServedEvent, UNTIL_CLOSED, failure_of, request};
use crate::foreign::test::VANISHED;
use crate::served::{self, LogText};

/// A client that has its answer listens within this time.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(1);

/// A test that was let in.
pub(super) struct NuttcpTcpServer<'a> {
    parameters: Parameters,
    request: TcpTest,
    endpoint: Endpoint,
    /// The ports where the client connects, until its streams are there.
    turn: Option<TestPorts<'a>>,
    streams: Vec<(u16, TcpStream)>,
    /// Until when the client may refuse a stream, where this end connects.
    listens: Option<MonoTime>,
    /// How the streams came to be, for the summary.
    about: String,
    /// Time and bytes at the end of the last interval.
    told: (u64, u64),
}

impl<'a> NuttcpTcpServer<'a> {
    /// The demand of a test on the server, and the test.
    pub(super) fn new(
        parameters: &Parameters,
        about: &NuttcpContext<'a, '_, '_>,
    ) -> Result<(Demand, Self), Failure> {
        let (directions, finish) = match (parameters.client_sends, parameters.nbuf) {
            (true, _) => (TcpDirections::Up, UNTIL_CLOSED),
            (false, UNTIL_TIMEOUT) => {
                (TcpDirections::Down, Finish::TimeNs((parameters.timeout_s * 1e9) as u64))
            }
            (false, count) => (TcpDirections::Down, Finish::Buffers(count)),
        };
        let request = TcpTest {
            streams: parameters.nstream,
            buffer_bytes: parameters.buflen,
            window_bytes: Some(parameters.window).filter(|window| *window > 0),
            mss_bytes: Some(parameters.mss).filter(|mss| *mss > 0),
            nodelay: parameters.nodelay,
            pace: parameters.pace_bps().map(BitRate::from_bits_per_sec),
            dscp: Some(parameters.tos >> 2).filter(|dscp| *dscp > 0),
            ..request(directions, finish)
        };
        request.check().map_err(|error| about.refuse(error.to_string()))?;
        let test = Self {
            parameters: parameters.clone(),
            endpoint: Endpoint::with_rules(request.clone(), RULES),
            turn: None,
            streams: Vec::new(),
            listens: None,
            about: String::new(),
            told: (0, 0),
            request,
        };
        // A client that sends does not say how much, so a pace does not tell for how long.
        let known = test.request.finish != UNTIL_CLOSED;
        let demand = Demand::from_tcp_test(&test.request);
        let (bytes, planned) = (demand.bytes.filter(|_| known), demand.planned.filter(|_| known));
        Ok((Demand { bytes, planned, ..demand }, test))
    }

    /// The receiver listens, unless it was told to connect.
    const fn connects(&self) -> bool {
        self.parameters.client_sends == self.parameters.flip
    }

    /// Takes the streams that have come; whether all have, each once.
    fn gather(&mut self, about: &mut NuttcpContext<'_, '_, '_>) -> bool {
        let Some(turn) = &self.turn else { return false };
        while let Some((flow, stream)) = turn.arrival() {
            if self.streams.iter().all(|(other, _)| *other != flow) {
                self.streams.push((flow, stream));
            }
        }
        if self.streams.len() < usize::from(self.parameters.nstream) {
            return false;
        }
        self.turn = None;
        self.streams.sort_by_key(|(flow, _)| *flow);
        for (flow, stream) in std::mem::take(&mut self.streams) {
            self.add(stream, flow, about);
        }
        self.about = format!("accept from {}", about.peer_ip);
        true
    }

    /// Connects the streams to the client, which listens only once it has its answer; whether all
    /// are there. The segment size and round trip are for the summary.
    fn connect(
        &mut self,
        now: MonoTime,
        about: &mut NuttcpContext<'_, '_, '_>,
    ) -> Result<bool, Failure> {
        let until = *self.listens.get_or_insert(now + LISTEN_TIMEOUT);
        for flow in (0..self.parameters.nstream).skip(self.endpoint.streams.len()) {
            let to = SocketAddr::new(about.peer_ip, self.parameters.port + flow);
            let socket = match tcp::connect(to, None, &socket_options(&self.request), STREAMS) {
                Ok(socket) => socket,
                Err(error)
                    if error.source.kind() == ErrorKind::ConnectionRefused && now < until =>
                {
                    return Ok(false);
                }
                Err(error) => {
                    let words = words_of(&error.source);
                    let failure =
                        Failure::new(Fault::Unreachable, "connect to", to.to_string(), words);
                    return Err(failure.advise("nuttcp's -F lets the client connect"));
                }
            };
            self.about = format!("connect to {}", about.peer_ip);
            if let Some(info) = tcp::tcp_info(socket.as_fd()) {
                let rtt_ms = f64::from(info.rtt_us.unwrap_or(0)) / 1000.0;
                let mss = info.snd_mss_bytes.unwrap_or(0);
                self.about += &format!(" with mss={mss}, RTT={rtt_ms:.3} ms");
            }
            self.add(socket, flow, about);
        }
        Ok(true)
    }

    fn add(&mut self, socket: TcpStream, flow: u16, about: &mut NuttcpContext<'_, '_, '_>) {
        tcp::notice_vanished_peer(&socket, VANISHED);
        let (direction, side) = match self.parameters.client_sends {
            true => (Direction::Up, FlowSide::Receiver),
            false => (Direction::Down, FlowSide::Sender),
        };
        (about.serving.watch)(&ServedEvent::Stream(&socket, direction, flow));
        let client_addr =
            socket.peer_addr().map_or_else(|_| String::new(), |peer| peer.to_string());
        self.endpoint.add(socket, StreamId { direction, flow, side, client_addr });
    }

    /// The line of the interval that ends now: a whole one, or what came after the last of them.
    fn sample(&mut self, now: MonoTime, about: &mut NuttcpContext<'_, '_, '_>) -> Option<String> {
        let samples = self.endpoint.sample(now);
        (about.serving.watch)(&ServedEvent::Interval(&samples));
        let asked = self.parameters.interval()?;
        let now = (samples.first()?.t_ns, samples.iter().map(|sample| sample.bytes).sum::<u64>());
        let span_ns = now.0.saturating_sub(self.told.0);
        let is_rest = self.endpoint.is_done() && self.told.0 > 0 && now.1 > self.told.1;
        if u128::from(span_ns) * 2 < asked.as_nanos() && !is_rest {
            return None;
        }
        let (_, bytes) = std::mem::replace(&mut self.told, now);
        let interval =
            NuttcpInterval::from_bytes(now.1.saturating_sub(bytes), span_ns as f64 / 1e9);
        Some(interval.to_line(self.parameters.parses()))
    }
}

impl<'a> Served<'a> for NuttcpTcpServer<'a> {
    fn is_ready(&mut self, about: &NuttcpContext<'a, '_, '_>) -> Result<bool, Failure> {
        if self.connects() {
            return Ok(true);
        }
        // A client sends as soon as the kernel has its streams, and may do so before they are
        // taken: what waits when the test begins came after this.
        self.endpoint.set_open_since(monotonic());
        let ports = data_port_range(&self.parameters);
        let options = socket_options(&self.request);
        self.turn = about.ports.listen(about.local_ip, about.peer_ip, ports, &options)?;
        Ok(self.turn.is_some())
    }

    fn open_streams(
        &mut self,
        now: MonoTime,
        about: &mut NuttcpContext<'_, '_, '_>,
    ) -> Result<bool, Failure> {
        let open = if self.connects() { self.connect(now, about)? } else { self.gather(about) };
        if open {
            self.endpoint.prepare().map_err(|error| crate::failure::system(&error))?;
        }
        Ok(open)
    }

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NuttcpServerMachine>,
        about: &mut NuttcpContext<'_, '_, '_>,
    ) -> Result<Option<String>, Failure> {
        match output {
            Output::Start => {
                let started = self.endpoint.start_streams(now);
                started.map_err(|error| crate::failure::system(&error))?;
            }
            Output::Sample => return Ok(self.sample(now, about)),
            Output::Halt => self.endpoint.halt_streams(),
            _ => {}
        }
        Ok(None)
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        let started = self.endpoint.has_started();
        FlowState {
            moved: self.endpoint.moved_bytes(),
            done: started && self.endpoint.is_done(),
            ..FlowState::default()
        }
    }

    fn end_streams(
        &mut self,
        about: &mut NuttcpContext<'_, '_, '_>,
    ) -> (NuttcpServerReport, Result<LogText, Failure>) {
        let none = Endpoint::with_rules(self.request.clone(), RULES);
        let reports = std::mem::replace(&mut self.endpoint, none).finish();
        (about.serving.watch)(&ServedEvent::Done(&reports));
        let lines = vec![self.parameters.about_line(), std::mem::take(&mut self.about)];
        let report = report(lines, &reports, !self.parameters.client_sends);
        let told = LogText::from_reports(served::log_line(&reports), &reports);
        (report, failure_of(&reports).map_or(Ok(told), Err))
    }
}

/// The figures of a summary: all streams, from the first's begin to the last's end.
fn report(about: Vec<String>, reports: &[EndReport], transmits: bool) -> NuttcpServerReport {
    let ends: Vec<&FlowEnd> = reports.iter().map(|report| &report.end).collect();
    let first = ends.iter().map(|end| end.span_start_ns).min().unwrap_or(0);
    let last = ends.iter().map(|end| end.span_start_ns + end.span_ns).max().unwrap_or(0);
    let cpu = |pick: fn(&FlowEnd) -> Option<u64>| -> f64 {
        ends.iter().filter_map(|end| pick(end)).sum::<u64>() as f64 / 1e9
    };
    let retransmits = ends.iter().map(|end| end.tcp_info?.total_retrans.map(u64::from)).sum();
    NuttcpServerReport {
        about,
        bytes: ends.iter().map(|end| end.bytes).sum(),
        seconds: last.saturating_sub(first) as f64 / 1e9,
        cpu_s: (cpu(|end| end.cpu_user_ns), cpu(|end| end.cpu_system_ns)),
        calls: ends.iter().map(|end| end.io_calls).sum(),
        retransmits: if transmits { retransmits } else { None },
        ..NuttcpServerReport::default()
    }
}
