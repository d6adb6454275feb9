//! The real network of a trace: a UDP or raw TCP socket for each flow, an ICMP socket for echoes,
//! and where this process may have one, a raw socket that hears routers whole.
//!
//! The round trip is the kernel's from hand-over to the driver to arrival where both stamps came
//! and lie within what the program saw itself, else the program's own.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use linerate_core::record::{ArrivedMarks, Failure, Fault, IpFamily, MplsLabel, TraceProbes};
use linerate_proto::echo::{SegmentAddresses, SynProbe};
use linerate_proto::frame::checksum::Sum;
use linerate_proto::frame::icmp::{Echo, echo_request};
use linerate_proto::icmp_error::{ErrorKind, IcmpError, ProbeMark, Quote, labels};
use linerate_sys::echo_socket::{EchoKind, OpenError, ProbeBindSource};
use linerate_sys::stop::Stop;
use linerate_sys::trace_socket::{ErrorListener, ProbeIcmpError, Told, TraceSocket};
use linerate_sys::{clock, poll, timestamps};

use super::network::{Network, Said, TraceAnswer, TraceProbe};
use crate::failure::{system, words_of};

/// A flow has a socket; so many are enough for 16 next hops at one distance.
pub(super) const FLOWS_MAX: u16 = 96;
/// Octets behind the transport header of the smallest probe: the mark and as much again, so that
/// a quote that is cut a little still has it.
const PAYLOAD_BYTES: usize = 12;
/// Larger than any MTU of a link that probes may fill.
const BUFFER_BYTES: usize = 65_536;
/// Taken from one socket in one go, so that a flood of messages cannot hold up the probes.
const TAKEN_MAX: usize = 64;

/// Where probes go, and from where.
#[derive(Clone, Debug)]
pub(super) struct TraceCourse {
    pub(super) peer: SocketAddr,
    pub(super) source: Option<ProbeBindSource>,
    pub(super) probes: TraceProbes,
}

/// The protocol of a socket's probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TraceCarrier {
    Udp,
    Tcp,
    /// Echo requests; received packets start with the IP header.
    EchoRaw,
    /// Echo requests of an unprivileged ICMP socket.
    Echo,
}

impl TraceCarrier {
    const fn is_echo(self) -> bool {
        matches!(self, Self::Echo | Self::EchoRaw)
    }
}

#[derive(Debug)]
struct TracePort {
    socket: TraceSocket,
    flow: u16,
    local: SocketAddr,
    carrier: TraceCarrier,
    /// The probe of each send that the kernel counted.
    counted: Vec<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    flow: u16,
    echo: bool,
    mono_ns: u64,
    departed_ns: Option<u64>,
    checksum: u16,
}

/// The sockets of a trace.
pub(super) struct Live {
    course: TraceCourse,
    family: IpFamily,
    ports: Vec<TracePort>,
    echo: Option<TracePort>,
    listener: Option<ErrorListener>,
    sent: HashMap<u16, Sent>,
    cookie: u32,
    syn: SynProbe,
    buffer: Vec<u8>,
    stop: Stop,
    link_mtu: u32,
}

impl Live {
    /// Opens the sockets that this process may have.
    /// # Errors
    /// When there is none for the probes that were asked for, or no route.
    pub(super) fn open(course: TraceCourse, link_mtu: u32, stop: Stop) -> Result<Self, Failure> {
        let family = if course.peer.is_ipv4() { IpFamily::V4 } else { IpFamily::V6 };
        let echo = open_echo(&course);
        let mut live = Self {
            family,
            ports: Vec::new(),
            echo: None,
            listener: ErrorListener::open(family).ok(),
            sent: HashMap::new(),
            cookie: u32::from_ne_bytes(clock::random_bytes()),
            syn: SynProbe::new(u16::from_ne_bytes(clock::random_bytes())),
            buffer: vec![0; BUFFER_BYTES],
            stop,
            link_mtu,
            course,
        };
        match live.course.probes {
            TraceProbes::Icmp => live.echo = Some(echo?),
            TraceProbes::Udp => {
                live.echo = echo.ok();
                live.port_for_flow(0)?;
            }
            TraceProbes::Tcp => drop(live.port_for_flow(0)?),
        }
        clock::sleep(timestamps::START_DELAY);
        Ok(live)
    }

    /// The address that probes leave from.
    pub(super) fn local_address(&self) -> Option<IpAddr> {
        self.ports.first().or(self.echo.as_ref()).map(|port| port.local.ip())
    }

    fn port_for_flow(&mut self, flow: u16) -> Result<usize, Failure> {
        if let Some(index) = self.ports.iter().position(|port| port.flow == flow) {
            return Ok(index);
        }
        let carrier = match self.course.probes {
            TraceProbes::Tcp => TraceCarrier::Tcp,
            TraceProbes::Udp | TraceProbes::Icmp => TraceCarrier::Udp,
        };
        let port = open_port(carrier, &self.course, flow)
            .map_err(|failed| explain(&failed, &self.course))?;
        self.ports.push(port);
        Ok(self.ports.len() - 1)
    }

    /// The octets behind the IP header, of UDP behind its own, and for UDP the checksum that they
    /// will have.
    fn packet(&self, probe: &TraceProbe, echo: bool, local: SocketAddr) -> (Vec<u8>, u16) {
        if !echo && self.course.probes == TraceProbes::Tcp {
            let ends = SegmentAddresses { source: local, destination: self.course.peer };
            return (self.syn.segment(probe.number, ends, probe.bytes as usize), 0);
        }
        let header = if self.family == IpFamily::V4 { 20 } else { 40 };
        let payload = (probe.bytes as usize).saturating_sub(header + 8).max(PAYLOAD_BYTES);
        if echo {
            let mut message = vec![0; 8 + payload];
            message[0] = echo_request(self.family);
            message[4..6].copy_from_slice(&local.port().to_be_bytes());
            message[6..8].copy_from_slice(&probe.number.to_be_bytes());
            // Number and complement sum to nothing, so all probes have one checksum and are one
            // flow to a balancer that hashes it.
            message[8..10].copy_from_slice(&(!probe.number).to_be_bytes());
            if self.family == IpFamily::V4 {
                let checksum = Sum::from_bytes(&message).checksum();
                message[2..4].copy_from_slice(&checksum.to_be_bytes());
            }
            return (message, 0);
        }
        let mark = ProbeMark { cookie: self.cookie, number: probe.number };
        let mut octets = mark.octets().to_vec();
        octets.resize(payload, 0);
        let checksum = udp_checksum(local, self.course.peer, &octets);
        (octets, checksum)
    }

    /// Reads the messages of routers from the raw socket.
    fn read_icmp_errors(&mut self, answers: &mut Vec<TraceAnswer>) {
        for _ in 0..TAKEN_MAX {
            let Some(listener) = &self.listener else { return };
            let Some((len, from, stamp)) = listener.receive(&mut self.buffer) else { return };
            let now_ns = clock::monotonic().as_nanos();
            let octets = &self.buffer[..len];
            let header = match self.family {
                IpFamily::V4 => octets.first().map_or(0, |first| usize::from(first & 15) * 4),
                IpFamily::V6 => 0,
            };
            let Some(error) =
                octets.get(header..).and_then(|octets| IcmpError::parse(self.family, octets))
            else {
                continue;
            };
            let Some(quote) = Quote::parse(self.family, error.original) else { continue };
            let Some(number) = self.number_of(&quote) else { continue };
            let said = said_of(error.kind);
            let arrived = self.arrived(number, &quote);
            let stack = labels(error.extension);
            let at = AnswerArrival { from, stamp, now_ns };
            answers.extend(self.answer(number, said, at, Some(arrived), stack));
        }
    }

    fn number_of(&self, quote: &Quote<'_>) -> Option<u16> {
        if let Some((identifier, number)) = quote.quoted_echo() {
            let ours = self.echo.as_ref().is_some_and(|port| port.local.port() == identifier);
            return (ours && self.sent.get(&number)?.echo).then_some(number);
        }
        let (_, port) = quote.quoted_ports()?;
        if let Some(sequence) = quote.tcp_sequence() {
            let number = self.syn.quoted(sequence)?;
            return (port == self.course.peer.port()).then_some(number);
        }
        if let Some(mark) = ProbeMark::read(quote.udp_payload()) {
            return (mark.cookie == self.cookie).then_some(mark.number);
        }
        let octets = quote.transport.get(6..8)?;
        let checksum = u16::from_be_bytes([octets[0], octets[1]]);
        let ours = |sent: &Sent| !sent.echo && sent.checksum == checksum;
        let found = self.sent.iter().find(|(_, sent)| ours(sent)).map(|(number, _)| *number);
        found.filter(|_| port == self.course.peer.port())
    }

    fn arrived(&self, number: u16, quote: &Quote<'_>) -> ArrivedMarks {
        let flow = self.sent.get(&number).map(|sent| sent.flow);
        let port =
            self.ports.iter().find(|port| Some(port.flow) == flow && !port.carrier.is_echo());
        let source = port.map_or_else(|| self.local_address(), |port| Some(port.local.ip()));
        let ports = quote.quoted_ports().zip(port).is_some_and(|((from, to), port)| {
            from != port.local.port() || to != self.course.peer.port()
        });
        let addresses = source.is_some_and(|address| address != quote.source)
            || quote.destination != self.course.peer.ip();
        ArrivedMarks { dscp: quote.dscp, ecn: quote.ecn, translated: ports || addresses }
    }

    /// Reads one socket: stamps, messages where no raw socket hears them, replies.
    fn read_port(&mut self, port: &mut TracePort, answers: &mut Vec<TraceAnswer>) {
        for _ in 0..TAKEN_MAX {
            match port.socket.next_told(&mut self.buffer) {
                Some(Told::Departed(key, at_ns)) => {
                    let number = port.counted.get(key as usize);
                    if let Some(sent) = number.and_then(|number| self.sent.get_mut(number)) {
                        sent.departed_ns = Some(at_ns);
                    }
                }
                Some(Told::Message(message)) if self.listener.is_none() => {
                    let now_ns = clock::monotonic().as_nanos();
                    answers.extend(self.message(port, &message, now_ns));
                }
                Some(Told::Message(_) | Told::Nothing) => {}
                None => break,
            }
        }
        for _ in 0..TAKEN_MAX {
            match port.socket.receive(&mut self.buffer) {
                Ok(Some((len, stamp))) => {
                    let now_ns = clock::monotonic().as_nanos();
                    answers.extend(self.answer_from_reply(port, len, stamp, now_ns));
                }
                // An error of an earlier probe, which the queue has too.
                Err(_) => {}
                Ok(None) => return,
            }
        }
    }

    fn message(
        &mut self,
        port: &TracePort,
        message: &ProbeIcmpError,
        now_ns: u64,
    ) -> Option<TraceAnswer> {
        let kind =
            ErrorKind::from_type_and_code(self.family, message.kind, message.code, message.info)?;
        let from = message.from?;
        let quote = &self.buffer[..message.len];
        let number = if port.carrier.is_echo() {
            let octets = quote.first_chunk::<8>()?;
            let identifier = u16::from_be_bytes([octets[4], octets[5]]);
            let number = u16::from_be_bytes([octets[6], octets[7]]);
            (identifier == port.local.port()).then_some(number)?
        } else if let Some(mark) = ProbeMark::read(quote) {
            (mark.cookie == self.cookie).then_some(mark.number)?
        } else {
            self.only_one_of(port.flow)?
        };
        let extension = message.extension_at.and_then(|at| quote.get(at..)).unwrap_or(&[]);
        let stack = labels(extension);
        let at = AnswerArrival { from, stamp: message.arrived_ns, now_ns };
        self.answer(number, said_of(kind), at, None, stack)
    }

    /// A router that quotes no payload can mean the one probe of a flow that is open, no other.
    fn only_one_of(&self, flow: u16) -> Option<u16> {
        let mut open = self.sent.iter().filter(|(_, sent)| !sent.echo && sent.flow == flow);
        let (number, _) = open.next()?;
        open.next().is_none().then_some(*number)
    }

    fn answer_from_reply(
        &mut self,
        port: &TracePort,
        len: usize,
        stamp: Option<u64>,
        now: u64,
    ) -> Option<TraceAnswer> {
        let octets = &self.buffer[..len];
        let raw = matches!(port.carrier, TraceCarrier::EchoRaw | TraceCarrier::Tcp);
        let raw_v4 = raw && self.family == IpFamily::V4;
        let header = if raw_v4 { usize::from(octets.first()? & 15) * 4 } else { 0 };
        let octets = octets.get(header..)?;
        let number = match port.carrier {
            TraceCarrier::Udp => return None,
            TraceCarrier::Tcp => self.syn.answered(octets)?,
            TraceCarrier::Echo | TraceCarrier::EchoRaw => {
                Echo::parse_reply(self.family, octets)?.sequence
            }
        };
        let at = AnswerArrival { from: self.course.peer.ip(), stamp, now_ns: now };
        self.answer(number, Said::Reached, at, None, Vec::new())
    }

    fn answer(
        &mut self,
        number: u16,
        said: Said,
        came: AnswerArrival,
        arrived: Option<ArrivedMarks>,
        labels: Vec<MplsLabel>,
    ) -> Option<TraceAnswer> {
        let sent = self.sent.remove(&number)?;
        let seen_ns = came.now_ns.saturating_sub(sent.mono_ns);
        let kernel = came.stamp.zip(sent.departed_ns).and_then(|(to, from)| to.checked_sub(from));
        let rtt_ns = kernel.filter(|ns| *ns <= seen_ns).unwrap_or(seen_ns);
        Some(TraceAnswer { number, from: came.from, said, rtt_ns, arrived, labels })
    }

    fn read_answers(&mut self) -> Vec<TraceAnswer> {
        let mut answers = Vec::new();
        let mut ports = std::mem::take(&mut self.ports);
        let mut echo = self.echo.take();
        // Stamps of departure lie in the queues of the sockets, so these are read first.
        for port in ports.iter_mut().chain(echo.as_mut()) {
            self.read_port(port, &mut answers);
        }
        (self.ports, self.echo) = (ports, echo);
        self.read_icmp_errors(&mut answers);
        answers
    }
}

/// The source of an answer, and its times by the kernel and by the program.
#[derive(Clone, Copy)]
struct AnswerArrival {
    from: IpAddr,
    stamp: Option<u64>,
    now_ns: u64,
}

impl Network for Live {
    fn now_ns(&self) -> u64 {
        clock::monotonic().as_nanos()
    }

    fn send_probe(&mut self, probe: &TraceProbe) -> Result<bool, Failure> {
        let echo = probe.echo || self.course.probes == TraceProbes::Icmp;
        let index = if echo { 0 } else { self.port_for_flow(probe.flow)? };
        let Some(local) =
            (if echo { self.echo.as_ref() } else { self.ports.get(index) }).map(|port| port.local)
        else {
            return Ok(false);
        };
        let (octets, checksum) = self.packet(probe, echo, local);
        let port = if echo { self.echo.as_mut() } else { self.ports.get_mut(index) };
        let Some(port) = port else { return Ok(false) };
        let mono_ns = clock::monotonic().as_nanos();
        let sent = Sent { flow: probe.flow, echo, mono_ns, departed_ns: None, checksum };
        self.sent.insert(probe.number, sent);
        // An error of an earlier probe may come in between: then send again.
        let mut refused = None;
        for _ in 0..3 {
            match port.socket.send_probe(&octets, probe.ttl, probe.tos) {
                Ok(()) => {
                    port.counted.push(probe.number);
                    return Ok(true);
                }
                Err(error) => {
                    // The kernel may or may not have counted it: number anew.
                    port.counted.clear();
                    let _ = port.socket.start_stamps();
                    refused = Some(error);
                }
            }
        }
        self.sent.remove(&probe.number);
        match refused {
            Some(error) if is_own(&error) => Err(Failure::new(
                Fault::System,
                "probe",
                self.course.peer.ip().to_string(),
                words_of(&error),
            )
            .advise("look for a firewall rule on output")),
            // Too long for this host's link, or no buffer or route just now.
            _ => Ok(false),
        }
    }

    fn answers(&mut self, until_ns: u64) -> Vec<TraceAnswer> {
        let answers = self.read_answers();
        let left = until_ns.saturating_sub(self.now_ns());
        if !answers.is_empty() || left == 0 {
            return answers;
        }
        let fds: Vec<BorrowedFd<'_>> = self
            .ports
            .iter()
            .chain(&self.echo)
            .map(|port| port.socket.as_fd())
            .chain(self.listener.as_ref().map(AsFd::as_fd))
            .collect();
        // Looks at the stop flag a few times a second.
        let span = Duration::from_nanos(left).min(Duration::from_millis(200));
        let _ = poll::any_readable(&fds, span);
        self.read_answers()
    }

    fn stopped(&self) -> bool {
        self.stop.is_requested()
    }

    fn source_port(&mut self, flow: u16) -> Option<u16> {
        let index = self.port_for_flow(flow).ok()?;
        Some(self.ports[index].local.port())
    }

    fn reads_quotes(&self) -> bool {
        self.listener.is_some()
    }

    fn has_echo(&self) -> bool {
        self.echo.is_some()
    }

    fn link_mtu(&self) -> u32 {
        self.link_mtu
    }
}

/// EPERM and EACCES: a rule of this host.
fn is_own(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied
}

fn said_of(kind: ErrorKind) -> Said {
    match kind {
        ErrorKind::Exceeded => Said::Exceeded,
        ErrorKind::TooBig(mtu) => Said::TooBig(mtu),
        ErrorKind::PortUnreachable => Said::Reached,
        ErrorKind::Unreachable(code) => Said::Refused(code),
    }
}

fn open_port(
    carrier: TraceCarrier,
    course: &TraceCourse,
    flow: u16,
) -> Result<TracePort, OpenError> {
    let (peer, source) = (course.peer, course.source.clone());
    let socket = match carrier {
        TraceCarrier::Udp => TraceSocket::open(EchoKind::Udp, peer, source)?,
        TraceCarrier::Tcp => TraceSocket::open_tcp(peer, source)?,
        TraceCarrier::Echo => TraceSocket::open(EchoKind::IcmpDatagram, peer, source)?,
        TraceCarrier::EchoRaw => TraceSocket::open(EchoKind::IcmpRaw, peer, source)?,
    };
    // Without stamps the program's own times serve.
    let _ = socket.start_stamps();
    let local = socket.local_address().unwrap_or(course.peer);
    Ok(TracePort { socket, flow, local, carrier, counted: Vec::new() })
}

/// ICMP without privilege where this host allows it, else raw.
fn open_echo(course: &TraceCourse) -> Result<TracePort, Failure> {
    if let Ok(port) = open_port(TraceCarrier::Echo, course, 0) {
        return Ok(port);
    }
    let mut port =
        open_port(TraceCarrier::EchoRaw, course, 0).map_err(|failed| explain(&failed, course))?;
    let identifier = u16::from_ne_bytes(clock::random_bytes());
    port.socket.show_only(identifier).map_err(|error| system(&error))?;
    port.local.set_port(identifier);
    Ok(port)
}

fn explain(failed: &OpenError, course: &TraceCourse) -> Failure {
    let error = &failed.error;
    let words = words_of(&error.source);
    match error.source.kind() {
        std::io::ErrorKind::NetworkUnreachable | std::io::ErrorKind::HostUnreachable => {
            Failure::new(Fault::Unreachable, "reach", course.peer.ip().to_string(), words)
                .advise("`ip route get` shows the way to it")
        }
        std::io::ErrorKind::PermissionDenied => {
            let advice = match course.probes {
                TraceProbes::Tcp => "TCP probes take CAP_NET_RAW: run as root, or leave --tcp out",
                _ => "probe by UDP, or see net.ipv4.ping_group_range",
            };
            Failure::new(Fault::System, error.call, &error.object, words).advise(advice)
        }
        _ => Failure::new(Fault::Usage, error.call, &error.object, words)
            .advise("see `ip address` and `ip route`"),
    }
}

/// The checksum of a UDP packet (RFC 768, RFC 8200 §8.1).
fn udp_checksum(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> u16 {
    let address = |it: IpAddr| match it {
        IpAddr::V4(it) => Sum::from_bytes(&it.octets()),
        IpAddr::V6(it) => Sum::from_bytes(&it.octets()),
    };
    let len = (8 + payload.len()) as u16;
    let sum = address(from.ip())
        .add_sum(address(to.ip()))
        .add_sum(Sum::of_u16(17))
        .add_sum(Sum::of_u16(len))
        .add_sum(Sum::of_u16(from.port()))
        .add_sum(Sum::of_u16(to.port()))
        .add_sum(Sum::of_u16(len))
        .add_sum(Sum::from_bytes(payload));
    match sum.checksum() {
        0 => 0xFFFF,
        checksum => checksum,
    }
}
