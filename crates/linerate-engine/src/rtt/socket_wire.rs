//! The wire over a real socket: ICMP, UDP or STAMP, with or without kernel stamps.
//!
//! The plain path (no stamps, no TTL) is one send and one recv per probe. The other adds
//! control messages and, with stamps, one read of the error queue per probe, always after the
//! answer is in hand so that it lies outside the round trip.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::Ipv4HeaderSlice;
use linerate_core::record::{Failure, Fault, IpFamily};
use linerate_core::time::MonoTime;
use linerate_proto::echo::{IcmpProbe, PeerTimes, UdpProbe, class_of_question};
use linerate_proto::frame::icmp;
use linerate_proto::stamp::{ProbeOptions, Reflected, StampKey, StampProbe};
use linerate_sys::clock;
use linerate_sys::echo_socket::{EchoKind, EchoSocket};
use linerate_sys::timestamps::Notice;

use super::wire::{ProbeAnswer, SendStamp, Wire};
use crate::failure::words_of;

/// IPv4 allows 65535 bytes with header; a receive buffer of this size holds any answer.
const PACKET_BYTES_MAX: usize = 65_536;
/// Notices read in one go, so that a flood of them cannot hold up the probes.
const NOTICES_PER_LOOK: usize = 64;

/// The maker of probes, by their protocol.
#[derive(Debug)]
enum WireProbe {
    Icmp(IcmpProbe),
    Udp(UdpProbe),
    Stamp(StampProbe),
}

/// The session of STAMP that all runs of a measurement belong to: one identifier, and numbers that
/// go on, so that a follow-up never crosses sessions.
#[derive(Clone, Debug)]
pub(crate) struct StampSession {
    pub(crate) key: Option<StampKey>,
    pub(crate) ssid: u16,
    pub(crate) reply_dscp: Option<u8>,
    /// Number on the wire of the next run's first probe.
    pub(crate) next: u32,
}

impl StampSession {
    /// The packets of a size that has room for the base.
    fn stamp_probe(&self, bytes: usize) -> StampProbe {
        let options = ProbeOptions {
            bytes,
            ssid: self.ssid,
            key: self.key.clone(),
            error: super::civil_time::CivilTime::ask_clock_keepers().of_stamps(),
            first_sequence: self.next,
            reply_dscp: self.reply_dscp,
        };
        StampProbe::new(options).expect("sizes of the plan were checked")
    }
}

/// How to pass time while no answer is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerWaitMode {
    /// Ask again at once.
    Spin,
    /// Ask again at once for so many ns after the last send, then sleep.
    SpinThenSleep(u64),
    /// The thread sleeps at once.
    Sleep,
}

/// A probing socket with the probe that it sends.
#[derive(Debug)]
pub(crate) struct SocketWire {
    socket: EchoSocket,
    kind: EchoKind,
    peer: SocketAddr,
    family: IpFamily,
    waiting: AnswerWaitMode,
    /// Ask for control messages with each answer.
    notes: bool,
    stamps: bool,
    /// Among them those before the queueing discipline.
    queue_stamps: bool,
    /// Probes ask for the responder's times.
    peer_times: bool,
    /// Traffic class of the probes, which ask for it in answers, and for how it came there.
    class: Option<u8>,
    probe: WireProbe,
    buffer: Vec<u8>,
    /// The session of STAMP; none with other probes.
    session: Option<StampSession>,
    newest: u64,
    sent: bool,
    last_send: MonoTime,
    /// The probe that the kernel's stamp number 0 belongs to.
    stamp_origin: u64,
    send_stamps: Vec<(u64, SendStamp)>,
    /// Messages about packets that could not be delivered.
    troubles: Troubles,
}

/// Messages about undeliverable probes: the last one, and how many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Troubles {
    pub(crate) count: u64,
    pub(crate) last: Option<String>,
}

impl SocketWire {
    pub(crate) fn new(
        socket: EchoSocket,
        kind: EchoKind,
        peer: SocketAddr,
        waiting: AnswerWaitMode,
    ) -> Self {
        let family = if peer.is_ipv4() { IpFamily::V4 } else { IpFamily::V6 };
        Self {
            socket,
            kind,
            peer,
            family,
            waiting,
            notes: false,
            stamps: false,
            queue_stamps: false,
            peer_times: false,
            class: None,
            probe: WireProbe::Icmp(IcmpProbe::new(family, None, 0, 0)),
            buffer: vec![0; PACKET_BYTES_MAX],
            session: None,
            newest: 0,
            sent: false,
            last_send: MonoTime::default(),
            stamp_origin: 0,
            send_stamps: Vec::new(),
            troubles: Troubles::default(),
        }
    }

    /// Makes ready for a run: its size and a fresh name, so that stragglers of the run before do
    /// not match. Probe numbers start from 0.
    /// # Errors
    /// When the size has no room for what a UDP probe must carry, or stamps cannot be restarted.
    pub(crate) fn prepare_run(&mut self, payload_bytes: u32, cookie: u64) -> Result<(), Failure> {
        let len = payload_bytes as usize;
        if let Some(session) = self.session.as_mut().filter(|_| self.sent) {
            // The first run, a warm-up, leaves out a number: a reflector that counts itself does
            // not, and so is known from then on.
            let skipped = u32::from(session.next == 0);
            session.next = session.next.wrapping_add(self.newest as u32).wrapping_add(1 + skipped);
        }
        self.sent = false;
        self.probe = match (self.kind, &self.session) {
            (EchoKind::Udp, Some(session)) => WireProbe::Stamp(session.stamp_probe(len)),
            (EchoKind::Udp, None) if self.peer_times => {
                let probe = udp_probe(len, cookie)?.asking_times();
                WireProbe::Udp(match self.class {
                    Some(class) => probe.asking_class(class),
                    None => probe,
                })
            }
            (EchoKind::Udp, None) => WireProbe::Udp(udp_probe(len, cookie)?),
            (EchoKind::IcmpDatagram, _) => {
                WireProbe::Icmp(IcmpProbe::new(self.family, None, len, cookie))
            }
            (EchoKind::IcmpXdp, _) => {
                let identifier = (cookie >> 48) as u16;
                self.show_only(identifier)?;
                let probe = IcmpProbe::new(self.family, Some(identifier), len, cookie);
                let own = self.socket.local_address().unwrap_or_else(|| self.peer.ip());
                WireProbe::Icmp(probe.past_the_kernel(own, self.peer.ip()))
            }
            (EchoKind::IcmpRaw, _) => {
                let identifier = (cookie >> 48) as u16;
                self.show_only(identifier)?;
                WireProbe::Icmp(IcmpProbe::new(self.family, Some(identifier), len, cookie))
            }
        };
        self.newest = 0;
        if self.stamps { self.restart_stamps(0) } else { Ok(()) }
    }

    /// Makes it the wire of a STAMP session.
    pub(crate) fn speak_stamp(&mut self, session: StampSession) {
        self.session = Some(session);
    }

    /// Number on the wire of the run's first probe.
    pub(crate) fn first_on_wire(&self) -> Option<u32> {
        self.session.as_ref().map(|session| session.next)
    }

    fn show_only(&self, identifier: u16) -> Result<(), Failure> {
        self.socket.show_only(identifier).map_err(|error| {
            Failure::new(Fault::System, "set up socket for", self.peer.ip().to_string(), error)
        })
    }

    /// Sets whether answers come with their time to live.
    pub(crate) fn take_notes(&mut self, notes: bool) {
        self.notes = notes;
    }

    /// Sets whether probes ask for the responder's times, from the next run on.
    pub(crate) fn ask_peer_times(&mut self, peer_times: bool) {
        self.peer_times = peer_times;
    }

    /// Sends with this traffic class, both ways where the responder knows it; from the next run on.
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn use_class(&mut self, class: u8) -> Result<(), Failure> {
        self.class = Some(class);
        let set = self.socket.use_class(class);
        set.map_err(|error| crate::failure::system(&error))
    }

    /// Asks for kernel stamps, those before the queueing discipline on request.
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn start_stamps(&mut self, with_queue: bool) -> Result<(), Failure> {
        (self.stamps, self.queue_stamps) = (true, with_queue);
        self.restart_stamps(0)
    }

    pub(crate) fn stop_stamps(&mut self) {
        self.stamps = false;
        self.socket.stop_stamps();
    }

    pub(crate) const fn socket(&self) -> &EchoSocket {
        &self.socket
    }

    pub(crate) const fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    fn restart_stamps(&mut self, origin: u64) -> Result<(), Failure> {
        self.read_notices();
        self.send_stamps.clear();
        self.stamp_origin = origin;
        self.socket.start_stamps(self.queue_stamps).map_err(|error| {
            Failure::new(
                Fault::System,
                "ask for kernel timestamps",
                self.peer.ip().to_string(),
                error,
            )
            .advise("use --no-kernel-stamps")
        })
    }

    fn read_notices(&mut self) {
        for _ in 0..NOTICES_PER_LOOK {
            match self.socket.next_notice() {
                Some(Notice::Departed { key, at_ns }) => {
                    let sequence = self.stamp_origin + u64::from(key);
                    self.send_stamps.push((sequence, SendStamp::Left(at_ns)));
                }
                Some(Notice::Queued { key, at_ns }) => {
                    let sequence = self.stamp_origin + u64::from(key);
                    self.send_stamps.push((sequence, SendStamp::Queued(at_ns)));
                }
                Some(Notice::Undeliverable { errno, from, kind, code, .. }) => {
                    self.note_trouble(&describe(self.family, errno, from, kind, code));
                }
                None => return,
            }
        }
    }

    fn note_trouble(&mut self, text: &str) {
        self.troubles.count += 1;
        if self.troubles.last.as_deref() != Some(text) {
            self.troubles.last = Some(text.to_owned());
        }
    }

    /// The kernel told an error instead of taking or giving a packet. Errors of the network are
    /// noted and the run goes on, as a path may heal; others end it.
    fn network_error(&mut self, error: &io::Error) -> Result<(), Failure> {
        let known = self.troubles.count;
        self.read_notices();
        if !is_network_error(error) {
            return Err(self.failure(error));
        }
        if self.troubles.count == known {
            let words = format!("this host: {}", words_of(error));
            self.note_trouble(&words);
        }
        if error.kind() == io::ErrorKind::ConnectionRefused {
            return Err(self.failure(error));
        }
        Ok(())
    }

    fn failure(&self, error: &io::Error) -> Failure {
        let (fault, advice) = match (error.raw_os_error(), self.kind) {
            (Some(libc_errno::EMSGSIZE), _) => {
                (Fault::Usage, "ask for a smaller size, or allow fragments")
            }
            (Some(libc_errno::EPERM | libc_errno::EACCES), _) => {
                (Fault::System, "look for a firewall rule on output, or a broadcast address")
            }
            (_, EchoKind::Udp) if error.kind() == io::ErrorKind::ConnectionRefused => {
                match self.session {
                    None => (Fault::Unreachable, "start `linerate serve` there, or ping by ICMP"),
                    Some(_) => (Fault::Unreachable, "nothing reflects STAMP on that port; see -p"),
                }
            }
            _ => (Fault::System, "see ip(7) and the kernel log"),
        };
        let target = match self.kind {
            EchoKind::Udp => self.peer.to_string(),
            _ => self.peer.ip().to_string(),
        };
        Failure::new(fault, "probe", target, words_of(error)).advise(advice)
    }

    #[inline]
    fn parse(&self, len: usize) -> Option<Parsed> {
        let bytes = &self.buffer[..len];
        match (&self.probe, self.kind, self.family) {
            (WireProbe::Stamp(probe), ..) => {
                let now_ns = clock::realtime_ns();
                let (sequence, told) = probe.answered(bytes, self.newest, now_ns)?;
                Some((sequence, None, Some((told, now_ns))))
            }
            (WireProbe::Udp(probe), ..) => Some((probe.answered(bytes)?, None, None)),
            (WireProbe::Icmp(probe), EchoKind::IcmpRaw, IpFamily::V4) => {
                let header = Ipv4HeaderSlice::from_slice(bytes).ok()?;
                let message = &bytes[header.slice().len()..];
                Some((probe.answered(message, self.newest)?, Some(header.ttl()), None))
            }
            (WireProbe::Icmp(probe), ..) => Some((probe.answered(bytes, self.newest)?, None, None)),
        }
    }
}

/// Number, time to live, and what a reflector told with T4 by civil time.
type Parsed = (u64, Option<u8>, Option<(Reflected, u64)>);

impl Wire for SocketWire {
    #[inline]
    fn now(&self) -> MonoTime {
        clock::monotonic()
    }

    #[inline]
    fn send_probe(&mut self, sequence: u64) -> Result<Option<MonoTime>, Failure> {
        // A pending error of an earlier probe is told instead of sending; then send again. Two
        // may wait: one from the network, one from the error queue.
        for _ in 0..3 {
            let t1 = clock::monotonic();
            let packet = match &mut self.probe {
                WireProbe::Icmp(probe) => probe.request(sequence, t1.as_nanos()),
                WireProbe::Udp(probe) => probe.request(sequence, t1.as_nanos()),
                WireProbe::Stamp(probe) => probe.request(sequence, clock::realtime_ns()),
            };
            let Err(error) = self.socket.send_packet(packet) else {
                self.newest = sequence;
                self.sent = true;
                self.last_send = t1;
                return Ok(Some(t1));
            };
            if self.stamps {
                // The kernel may or may not have counted the failed send: number anew.
                self.restart_stamps(sequence)?;
            }
            if is_full(&error) {
                return Ok(None);
            }
            self.network_error(&error)?;
        }
        // No route now: the probe is lost, as one dropped further on would be.
        let t1 = clock::monotonic();
        self.newest = sequence;
        self.last_send = t1;
        Ok(Some(t1))
    }

    #[inline]
    fn receive(&mut self) -> Result<Option<ProbeAnswer>, Failure> {
        let taken = if self.notes {
            self.socket.receive_with_notes(&mut self.buffer)
        } else {
            self.socket.receive(&mut self.buffer)
        };
        let packet = match taken {
            Ok(Some(packet)) => packet,
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            Err(error) => return self.network_error(&error).map(|()| None),
        };
        let at = clock::monotonic();
        let answer = self.parse(packet.len);
        let bytes = &self.buffer[..packet.len];
        let class_there = self.class.and_then(|_| class_of_question(bytes));
        let peer = self.peer_times.then(|| PeerTimes::from_answer(bytes)).flatten();
        Ok(answer.map(|(sequence, ttl, reflected)| ProbeAnswer {
            sequence,
            at,
            ttl: packet.ttl.or(ttl),
            stamp_ns: packet.arrived_ns,
            peer,
            classes: [class_there, packet.class],
            reflected,
        }))
    }

    fn wait_until(&mut self, now: MonoTime, until: MonoTime) {
        let spin = match self.waiting {
            AnswerWaitMode::Spin => true,
            AnswerWaitMode::SpinThenSleep(span_ns) => now.nanos_since(self.last_send) < span_ns,
            AnswerWaitMode::Sleep => false,
        };
        if spin {
            std::hint::spin_loop();
            return;
        }
        let span = Duration::from_nanos(until.nanos_since(now));
        if self.socket.wait_for_packet(span).notices {
            // Unread notices would end every following wait at once.
            self.read_notices();
        }
    }

    fn stamps(&mut self, take: &mut dyn FnMut(u64, SendStamp)) {
        self.read_notices();
        for (sequence, stamp) in self.send_stamps.drain(..) {
            take(sequence, stamp);
        }
    }
}

/// errno(3) values of Linux that the standard library has no kind for; the same on all
/// architectures that Rust supports with this program.
mod libc_errno {
    pub(super) const EPERM: i32 = 1;
    pub(super) const EACCES: i32 = 13;
    pub(super) const EMSGSIZE: i32 = 90;
    pub(super) const ENOBUFS: i32 = 105;
    pub(super) const EHOSTDOWN: i32 = 112;
    pub(super) const EHOSTUNREACH: i32 = 113;
    pub(super) const EPROTO: i32 = 71;
    pub(super) const ENOPROTOOPT: i32 = 92;
}

fn udp_probe(len: usize, cookie: u64) -> Result<UdpProbe, Failure> {
    UdpProbe::new(len, cookie as u32).ok_or_else(|| {
        let reason = "a UDP probe carries at least 16 bytes";
        Failure::new(Fault::Usage, "make probe of", format!("{len} bytes"), reason)
            .advise("use -s 16 or more, or ping with ICMP")
    })
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(libc_errno::ENOBUFS)
}

/// Errors that the path may get over. EPROTO and ENOPROTOOPT are what the kernel makes of ICMP
/// parameter problems and protocol unreachable (Linux icmp_err_convert).
fn is_network_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable};
    let by_kind = matches!(
        error.kind(),
        ConnectionRefused | HostUnreachable | NetworkDown | NetworkUnreachable
    );
    by_kind
        || matches!(
            error.raw_os_error(),
            Some(libc_errno::EHOSTDOWN | libc_errno::EPROTO | libc_errno::ENOPROTOOPT)
        )
}

fn describe(family: IpFamily, errno: i32, from: Option<IpAddr>, kind: u8, code: u8) -> String {
    match from {
        Some(router) => format!("{router}: {}", icmp::reason(family, kind, code)),
        // No answer to ARP or to a neighbour solicitation; the kernel's words speak of routes.
        None if errno == libc_errno::EHOSTUNREACH => {
            "this host: nobody answers at that address on its link".to_owned()
        }
        None => format!("this host: {}", words_of(&io::Error::from_raw_os_error(errno))),
    }
}
