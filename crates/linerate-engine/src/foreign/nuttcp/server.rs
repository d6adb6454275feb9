//! The server's side of a test: the lines of the control connection, the streams, the summary.
//!
//! A client waits for its answer, so a client that comes while others measure waits for its place,
//! for [`QUEUE`] at most. Left out: a third party, multicast, traceroute.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{
    Direction, EndReport, Failure, Fault, Finish, FlowEnd, Side, TcpDirections, TcpTest,
};
use linerate_core::units::BitRate;
use linerate_proto::native::RefuseCode;
use linerate_proto::nuttcp::{
    FORMAT_PARSE, Interval, Parameters, Report, Role, ServerEvent, ServerMachine, UNTIL_TIMEOUT,
    report_lines,
};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::tcp::{self, TcpOptions};

use super::MANNER;
use super::control::{Control, Heard};
use super::data_ports::{DataPorts, Turn};
use crate::failure::words_of;
use crate::flow::tcp::endpoint::{Endpoint, socket_options};
use crate::flow::tcp::{Demand, Permit};
use crate::foreign::serve::{
    FIRST_BYTES, Seen, Serving, UNTIL_CLOSED, failure_of, follow, request, said,
};
use crate::foreign::test::VANISHED;

/// A client that comes while others measure waits this long for its place.
const QUEUE: Duration = Duration::from_secs(30);
/// The streams of a test have this long to connect.
pub(super) const STREAMS: Duration = Duration::from_secs(5);
/// A client that has its answer listens within this time.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(1);
/// How often waits look around.
const LOOK: Duration = Duration::from_millis(20);
/// Ports below are not a user's to name.
const PORT_MIN: u16 = 1024;

/// Serves one control connection; returns what the log should say.
/// # Errors
/// Why it did not end well.
pub fn serve(
    stream: TcpStream,
    ports: &DataPorts,
    serving: &mut Serving<'_>,
) -> Result<String, Failure> {
    tcp::notice_vanished_peer(&stream, VANISHED);
    let mut session = Session { control: Control::new(stream) };
    let parameters = session.await_parameters(serving)?;
    let version = parameters.version;
    let served = match parameters.udp {
        false => session.test(&parameters, ports, serving).map(|reports| said(&reports)),
        true => session.test_udp(&parameters, ports, serving),
    };
    match served {
        Ok(line) => Ok(format!("nuttcp {version}: {line}")),
        Err(failure) => {
            // The client reads this where it waits for its answer; elsewhere it is a line more.
            let _ = session.control.send(&ServerMachine::refuse(&failure.reason));
            Err(failure)
        }
    }
}

pub(super) struct Session {
    pub(super) control: Control,
}

impl Session {
    /// The greeting and the parameters.
    fn await_parameters(&mut self, serving: &Serving<'_>) -> Result<Parameters, Failure> {
        let mut machine = ServerMachine::default();
        let deadline = monotonic() + FIRST_BYTES;
        while monotonic() < deadline && !serving.stop.asked() {
            match self.control.hear(deadline.min(monotonic() + LOOK))? {
                Heard::Line(line) => {
                    let event = machine.handle(&line);
                    match event.map_err(|error| self.control.misbehaved(&error))? {
                        ServerEvent::Answer(line) => self.control.send(&line)?,
                        ServerEvent::Requested(parameters) => return Ok(*parameters),
                    }
                }
                Heard::Closed => return Err(self.control.closed()),
                Heard::Nothing => {}
            }
        }
        Err(self.control.silent("parameters"))
    }

    fn test(
        &mut self,
        parameters: &Parameters,
        ports: &DataPorts,
        serving: &mut Serving<'_>,
    ) -> Result<Vec<EndReport>, Failure> {
        let request = self.request(parameters)?;
        let _permit = self.permit(&Demand::of(&request), serving)?;
        let mut endpoint = Endpoint::in_manner(request.clone(), MANNER);
        let mut about = vec![parameters.about()];
        // The receiver listens, unless it was told to connect.
        let receives = parameters.client_sends;
        if receives != parameters.flip {
            self.accept_streams(&mut endpoint, (parameters, &request), ports, serving)?;
            about.push(format!("accept from {}", self.peer()?.ip()));
        } else {
            self.control.send(&ServerMachine::accept())?;
            let rtt = self.connect_streams(&mut endpoint, (parameters, &request), serving)?;
            about.push(format!("connect to {}{rtt}", self.peer()?.ip()));
        }
        self.run(&mut endpoint, parameters, serving)?;
        let reports = endpoint.finish();
        (serving.watch)(&Seen::Done(&reports));
        let role = if receives { Role::Receiver } else { Role::Transmitter };
        let summary = report_lines(role, parameters, &report(about, &reports, role));
        let done = if parameters.interval_s > 0.0 { "DONE\n" } else { "" };
        let sent = self.control.send(&format!("{done}{summary}"));
        failure_of(&reports).map_or(Ok(()), Err)?;
        sent.map(|()| reports)
    }

    /// The test that the parameters ask for.
    fn request(&self, parameters: &Parameters) -> Result<TcpTest, Failure> {
        self.check(parameters)?;
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
        request.check().map_err(|error| self.refuse(error.to_string()))?;
        Ok(request)
    }

    /// What no test may ask for.
    pub(super) fn check(&self, parameters: &Parameters) -> Result<(), Failure> {
        if let Some(name) = parameters.beyond {
            return Err(self.refuse(format!("{name} is not served")));
        }
        if parameters.port < PORT_MIN {
            let reason = format!("data port {} is below {PORT_MIN}", parameters.port);
            return Err(self.refuse(reason));
        }
        Ok(())
    }

    /// The failure of a test that is not served.
    pub(super) fn refuse(&self, reason: String) -> Failure {
        Failure::new(Fault::PeerRefused, "serve", self.control.peer(), reason)
    }

    /// A place among the running tests, waiting for one while the client does.
    pub(super) fn permit(
        &mut self,
        demand: &Demand,
        serving: &Serving<'_>,
    ) -> Result<Permit, Failure> {
        let peer = self.peer()?;
        let deadline = monotonic() + QUEUE;
        loop {
            match serving.admission.admit_in_turn(demand, peer) {
                Ok(permit) => return Ok(permit),
                Err(refuse) if refuse.code == RefuseCode::Busy && monotonic() < deadline => {}
                Err(refuse) => return Err(self.refuse(refuse.reason)),
            }
            self.look_at_client(serving)?;
            sleep(LOOK);
        }
    }

    /// Notices a client that leaves while the server waits for something else.
    pub(super) fn look_at_client(&mut self, serving: &Serving<'_>) -> Result<(), Failure> {
        if serving.stop.asked() || tcp::peer_has_closed(self.control.stream()) {
            return Err(self.control.closed());
        }
        Ok(())
    }

    /// Listens, lets the client begin, and takes its streams.
    fn accept_streams(
        &mut self,
        endpoint: &mut Endpoint,
        (parameters, request): (&Parameters, &TcpTest),
        ports: &DataPorts,
        serving: &mut Serving<'_>,
    ) -> Result<(), Failure> {
        let local = self.control.stream().local_addr().map_err(|error| self.lost(&error))?;
        let first = (parameters.port, parameters.nstream);
        let options = socket_options(request);
        let turn = ports.listen(local.ip(), self.peer()?.ip(), first, (&options, STREAMS))?;
        let turn = turn.ok_or_else(|| self.taken(parameters))?;
        self.control.send(&ServerMachine::accept())?;
        let mut streams = self.gather(&turn, parameters.nstream, serving)?;
        streams.sort_by_key(|(flow, _)| *flow);
        for (flow, stream) in streams {
            add(endpoint, stream, (parameters, flow), serving);
        }
        Ok(())
    }

    /// Nobody gave up the port in time.
    pub(super) fn taken(&self, parameters: &Parameters) -> Failure {
        self.refuse(format!("data port {} is another test's", parameters.port))
    }

    /// Every stream, each once.
    fn gather(
        &mut self,
        turn: &Turn<'_>,
        count: u16,
        serving: &Serving<'_>,
    ) -> Result<Vec<(u16, TcpStream)>, Failure> {
        let deadline = monotonic() + STREAMS;
        let mut streams: Vec<(u16, TcpStream)> = Vec::new();
        while streams.len() < usize::from(count) {
            self.look_at_client(serving)?;
            if monotonic() >= deadline {
                return Err(self.control.silent("data stream"));
            }
            let Some((flow, stream)) = turn.arrival() else { continue };
            if streams.iter().all(|(other, _)| *other != flow) {
                streams.push((flow, stream));
            }
        }
        Ok(streams)
    }

    /// Connects the streams to the client; the segment size and round trip for the summary.
    fn connect_streams(
        &mut self,
        endpoint: &mut Endpoint,
        (parameters, request): (&Parameters, &TcpTest),
        serving: &mut Serving<'_>,
    ) -> Result<String, Failure> {
        let (peer, options) = (self.peer()?, socket_options(request));
        let mut about = String::new();
        for flow in 0..parameters.nstream {
            let to = SocketAddr::new(peer.ip(), parameters.port + flow);
            let socket = self.connect(to, &options, serving)?;
            if let Some(info) = tcp::tcp_info(std::os::fd::AsFd::as_fd(&socket)) {
                let rtt_ms = f64::from(info.rtt_us.unwrap_or(0)) / 1000.0;
                let mss = info.snd_mss_bytes.unwrap_or(0);
                about = format!(" with mss={mss}, RTT={rtt_ms:.3} ms");
            }
            add(endpoint, socket, (parameters, flow), serving);
        }
        Ok(about)
    }

    /// Connects a stream. The client listens only once it has its answer.
    fn connect(
        &mut self,
        to: SocketAddr,
        options: &TcpOptions,
        serving: &Serving<'_>,
    ) -> Result<TcpStream, Failure> {
        let deadline = monotonic() + LISTEN_TIMEOUT;
        loop {
            match tcp::connect(to, None, options, STREAMS) {
                Ok(socket) => return Ok(socket),
                Err(error)
                    if error.source.kind() == ErrorKind::ConnectionRefused
                        && monotonic() < deadline => {}
                Err(error) => {
                    let words = words_of(&error.source);
                    let failure =
                        Failure::new(Fault::Unreachable, "connect to", to.to_string(), words);
                    return Err(failure.advise("nuttcp's -F lets the client connect"));
                }
            }
            self.look_at_client(serving)?;
            sleep(LOOK / 4);
        }
    }

    /// Runs the streams, with an interval line every so often, until all are done.
    fn run(
        &mut self,
        endpoint: &mut Endpoint,
        parameters: &Parameters,
        serving: &mut Serving<'_>,
    ) -> Result<(), Failure> {
        let asked = Duration::try_from_secs_f64(parameters.interval_s).unwrap_or_default();
        let lines = asked >= Duration::from_millis(10);
        let parse = parameters.format & FORMAT_PARSE != 0;
        let watch = &mut *serving.watch;
        let mut serving = Serving {
            admission: serving.admission,
            stop: serving.stop,
            interval: if lines { asked } else { serving.interval },
            watch,
        };
        let mut before = (0, 0);
        follow(endpoint, &mut serving, &mut |samples| {
            if tcp::peer_has_closed(self.control.stream()) {
                return Err(self.control.closed());
            }
            let Some(first) = samples.first().filter(|_| lines) else { return Ok(()) };
            let now = (first.t_ns, samples.iter().map(|sample| sample.bytes).sum::<u64>());
            // The rest after the last whole interval is too short for a line.
            if u128::from(now.0.saturating_sub(before.0)) * 2 < asked.as_nanos() {
                return Ok(());
            }
            let (t_ns, bytes) = std::mem::replace(&mut before, now);
            let seconds = now.0.saturating_sub(t_ns) as f64 / 1e9;
            let line = Interval::of(now.1.saturating_sub(bytes), seconds).to_line(parse);
            self.control.send(&format!("{line}\n"))
        })
    }

    pub(super) fn peer(&self) -> Result<SocketAddr, Failure> {
        let peer = self.control.stream().peer_addr().map_err(|error| self.lost(&error))?;
        Ok(SocketAddr::new(peer.ip().to_canonical(), peer.port()))
    }

    pub(super) fn lost(&self, error: &std::io::Error) -> Failure {
        Failure::new(Fault::Unreachable, "serve", self.control.peer(), words_of(error))
    }
}

fn add(
    endpoint: &mut Endpoint,
    socket: TcpStream,
    (parameters, flow): (&Parameters, u16),
    serving: &mut Serving<'_>,
) {
    tcp::notice_vanished_peer(&socket, VANISHED);
    let place = match parameters.client_sends {
        true => (Direction::Up, flow, Side::Receiver),
        false => (Direction::Down, flow, Side::Sender),
    };
    (serving.watch)(&Seen::Stream(&socket, place.0, place.1));
    let client = socket.peer_addr().map_or_else(|_| String::new(), |peer| peer.to_string());
    endpoint.add(socket, place, client);
}

/// The figures of a summary: all streams, from the first's begin to the last's end.
fn report(about: Vec<String>, reports: &[EndReport], role: Role) -> Report {
    let ends: Vec<&FlowEnd> = reports.iter().map(|report| &report.end).collect();
    let first = ends.iter().map(|end| end.span_start_ns).min().unwrap_or(0);
    let last = ends.iter().map(|end| end.span_start_ns + end.span_ns).max().unwrap_or(0);
    let cpu = |pick: fn(&FlowEnd) -> Option<u64>| -> f64 {
        ends.iter().filter_map(|end| pick(end)).sum::<u64>() as f64 / 1e9
    };
    let retransmits = ends.iter().map(|end| end.tcp_info?.total_retrans.map(u64::from)).sum();
    Report {
        about,
        bytes: ends.iter().map(|end| end.bytes).sum(),
        seconds: last.saturating_sub(first) as f64 / 1e9,
        cpu_s: (cpu(|end| end.cpu_user_ns), cpu(|end| end.cpu_system_ns)),
        calls: ends.iter().map(|end| end.io_calls).sum(),
        retransmits: if role == Role::Transmitter { retransmits } else { None },
        arrivals: None,
    }
}
