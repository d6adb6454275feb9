//! One client of the UDP port, on a socket and a thread of its own, which runs the machine of its
//! test, takes what it sends (`udp_arrivals`), and sends what it asked for (`udp_back`).

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use linerate_core::policy::TestKind;
use linerate_core::record::{Direction, Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::iperf2::{
    ClientHeader, Mode, UDP_SILENCE_MAX, UdpBack, UdpCounted, UdpReport, UdpServer, UdpServerNews,
    UdpTally, UdpTerms,
};
use linerate_proto::native::RefuseCode;
use linerate_sys::clock::{monotonic, realtime_offset_ns};
use linerate_sys::datagram_socket::{DatagramOptions, DatagramSocket, any_local};
use linerate_sys::stop::Stop;

use super::address_validation::{AddressValidation, SendBounds, SendLimit};
use super::udp_arrivals::{BUFFER_BYTES_MAX, Iperf2Arrivals, SocketBack, locked, state_of};
use super::udp_back::{ReverseStream, UdpSentBack};
use super::udp_layout::{sending, wall_us};
use crate::flow::admission::{Admission, Demand, Permit};
use crate::flow::udp::endpoint::open_socket;
use crate::flow::{self, Flows, FlowsAnswer, TestSession};
use crate::served::{DirectionTotals, format_transfer};

/// A client whose port refuses so many datagrams, one after the other, is gone.
const REFUSALS_MAX: u32 = 3;

/// The settings of the UDP side of a server.
pub struct UdpServing<'a> {
    /// Decides which tests run.
    pub admission: &'a dyn Admission,
    /// Set when the server is to end.
    pub stop: &'a Stop,
    /// Observer of the clients.
    pub watch: UdpWatch<'a>,
    /// Takes what another protocol sends to this port; true when it did.
    pub aside: UdpAside<'a>,
    /// Time between two looks of the watcher; none for no looks.
    pub interval: Option<Duration>,
    /// Decides which clients are sent what they ask for, although the address of a datagram is
    /// easily forged.
    pub trust: &'a AddressValidation,
    /// Clients that prove no address and are not trusted are sent in proportion to what comes from
    /// them, wherever they are. Otherwise only to private addresses.
    pub sends_anywhere: bool,
}

/// Looks at a datagram, of a client or not yet of one, by the address that it came from.
pub type UdpAside<'a> = &'a (dyn Fn(SocketAddr, &[u8]) -> bool + Sync);

/// Observer of every client, by its address.
pub type UdpWatch<'a> = &'a (dyn Fn(SocketAddr, &UdpSeen<'_>) + Sync);

/// An event of a client over UDP.
#[derive(Debug)]
pub enum UdpSeen<'a> {
    /// A client is there: the server's own address, and the client's header.
    Begin(Option<SocketAddr>, Option<&'a ClientHeader>),
    /// The amounts until now, since its first datagram.
    Interval(&'a UdpMoved),
    /// The amounts of the whole test.
    Done(&'a UdpMoved),
    /// A client was not served, or not to its end.
    Failed(&'a Failure),
}

/// The amounts that were moved for one client.
#[derive(Clone, Copy, Debug)]
pub struct UdpMoved {
    /// Datagrams that the client sent; absent where the server alone sends.
    pub received: Option<UdpCounted>,
    /// Datagrams that were sent to the client.
    pub sent: Option<UdpSentBack>,
    /// Time since its first datagram, or from that to the last one.
    pub span_ns: u64,
    /// True where the client said that it was done.
    pub ended: bool,
    /// Buffers that the client's socket here had no room for.
    pub dropped: Option<u32>,
}

impl UdpMoved {
    /// The same for programs.
    pub fn direction_totals(&self) -> Vec<DirectionTotals> {
        let up = self.received.map(|received| match received {
            UdpCounted::Iperf(counts) => DirectionTotals {
                datagrams_received: counts.datagrams.checked_sub(counts.lost),
                datagrams_lost: Some(counts.lost),
                ..DirectionTotals::from_transfer(Direction::Up, 1, counts.bytes, self.span_ns)
            },
            UdpCounted::Ttcp { bytes, datagrams } => DirectionTotals {
                datagrams_received: Some(datagrams),
                ..DirectionTotals::from_transfer(Direction::Up, 1, bytes, self.span_ns)
            },
        });
        let down = self.sent.map(|sent| DirectionTotals {
            datagrams_sent: Some(sent.datagrams),
            ..DirectionTotals::from_transfer(Direction::Down, 1, sent.bytes, sent.span_ns)
        });
        up.into_iter().chain(down).collect()
    }
}

/// `iperf UDP: 52.92 kB in 0.500 s, 847 kbit/s, 0 of 36 datagrams lost, ...`, for the log.
impl std::fmt::Display for UdpMoved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.received {
            Some(UdpCounted::Iperf(counts)) => {
                write!(f, "iperf UDP: {}", format_transfer(counts.bytes, self.span_ns))?;
                let (lost, all, late) = (counts.lost, counts.datagrams, counts.out_of_order);
                write!(f, ", {lost} of {all} datagrams lost, {late} out of order")?;
                write!(f, ", jitter {} us", counts.jitter_us)?;
                if let Some(transit) = counts.transit {
                    let (min, max) = (transit.min_us, transit.max_us);
                    write!(f, ", one-way {min} to {max} us, {:.0} in the mean", transit.mean_us)?;
                }
                if let Some(dropped) = self.dropped.filter(|dropped| *dropped > 0) {
                    write!(f, ", {dropped} buffers dropped by this host")?;
                }
                if !self.ended {
                    write!(f, ", without an end")?;
                }
            }
            Some(UdpCounted::Ttcp { bytes, datagrams }) => {
                let moved = format_transfer(bytes, self.span_ns);
                write!(f, "ttcp UDP: {moved}, {datagrams} datagrams")?;
            }
            None => write!(f, "iperf UDP")?,
        }
        let Some(sent) = self.sent else { return Ok(()) };
        let before = if self.received.is_some() { "; sent " } else { ": sent " };
        let (moved, datagrams) = (format_transfer(sent.bytes, sent.span_ns), sent.datagrams);
        write!(f, "{before}{moved}, {datagrams} datagrams")?;
        match sent.report {
            Some(report) => write!(f, ", {} of {} lost", report.lost, report.datagrams),
            None if sent.contradicted => {
                f.write_str("; the client's report contradicts this and is left out")
            }
            None => Ok(()),
        }
    }
}

/// One client over UDP.
pub(super) struct Iperf2UdpClient {
    tally: Mutex<UdpTally>,
    socket: DatagramSocket,
    peer: SocketAddr,
    /// How much it may be sent.
    send_limit: SendLimit,
    /// Requested where the server ends, or the client's place is another's.
    stop: Stop,
    over: AtomicBool,
}

/// A client's place among the tests.
pub(super) struct ClientPlace {
    permit: Permit,
    /// Requested once the place is another's.
    stop: Stop,
    send_limit: SendLimit,
}

/// Why a client has none.
pub(super) struct Refused {
    pub(super) failure: Box<Failure>,
    /// True where all places are taken.
    pub(super) is_busy: bool,
}

impl ClientPlace {
    /// Asks for the place of a client, by what came from it until now; `proven` tells whether its
    /// address is.
    pub(super) fn ask_admission(
        tally: &UdpTally,
        peer: SocketAddr,
        proven: bool,
        serving: &UdpServing<'_>,
    ) -> Result<Self, Refused> {
        let never = |failure| Refused { failure: Box::new(failure), is_busy: false };
        let mut demand = Demand::new(TestKind::Udp, 1);
        let mut send_limit = SendLimit::Whole;
        if let Some(header) = tally.header().filter(|header| header.mode != Mode::Forward) {
            let request = sending(&header).map_err(never)?;
            if !proven {
                let bps = request.pace.map_or(u64::MAX, BitRate::bits_per_sec);
                send_limit = send_limit_of(peer, &header, bps, serving).map_err(never)?;
            }
            demand.planned = request.planned_span();
            demand.rate_bps = request.pace.map(BitRate::bits_per_sec);
            demand.streams = if header.mode == Mode::Reverse { 1 } else { 2 };
        }
        let admission = serving.admission;
        let admitted = if proven || matches!(send_limit, SendLimit::Capped(_)) {
            admission.admit_test(&demand, peer).map(|permit| (permit, Stop::new()))
        } else {
            admission.admit_unproven(&demand, peer)
        };
        let (permit, stop) = admitted.map_err(|refuse| Refused {
            is_busy: refuse.code == RefuseCode::Busy,
            failure: Box::new(Failure::new(
                Fault::PeerRefused,
                "serve UDP of",
                peer.to_string(),
                refuse.reason,
            )),
        })?;
        Ok(Self { permit, stop, send_limit })
    }
}

impl Iperf2UdpClient {
    /// A new client with its place, which goes to its thread.
    pub(super) fn open_with_place(
        tally: UdpTally,
        peer: SocketAddr,
        place: ClientPlace,
        local: SocketAddr,
    ) -> Result<(Self, Permit), Failure> {
        let ClientPlace { permit, stop, send_limit } = place;
        let dscp = tally.header().map(|header| header.service_type >> 2).filter(|dscp| *dscp > 0);
        let options = DatagramOptions {
            local,
            window_bytes: None,
            buffer_bytes_max: BUFFER_BYTES_MAX,
            dscp,
            shared: true,
        };
        let socket = DatagramSocket::open(&options)
            .and_then(|socket| socket.connect(peer).map(|()| socket))
            .map_err(|error| crate::failure::system(&error))?;
        socket.note_arrivals();
        let over = AtomicBool::new(false);
        Ok((Self { tally: Mutex::new(tally), socket, peer, send_limit, stop, over }, permit))
    }

    /// The client's own socket.
    pub(super) const fn socket(&self) -> &DatagramSocket {
        &self.socket
    }

    /// Takes a datagram that came to another socket; the answer, where it ends the test.
    pub(super) fn take_datagram(&self, datagram: &[u8], now: MonoTime) -> Option<Vec<u8>> {
        self.lock_tally().count_datagram(datagram, now, wall_us(now))
    }

    /// Ends the client's test.
    pub(super) fn stop_test(&self) {
        self.stop.request_stop();
    }

    /// True where the client's thread has left.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Serves the client to its end.
    pub(super) fn run(&self, permit: Permit, serving: &UdpServing<'_>) {
        let header = self.lock_tally().header();
        let local = self.socket.local_address();
        (serving.watch)(self.peer, &UdpSeen::Begin(local, header.as_ref()));
        let mut arrivals = Iperf2Arrivals::from_socket(&self.socket, &self.tally);
        let terms = UdpTerms {
            mode: header.map_or(Mode::Forward, |header| header.mode),
            silence_max: UDP_SILENCE_MAX,
            interval: serving.interval,
            back: self.wanted_stream(header),
        };
        let streams = ClientStreams {
            client: self,
            serving,
            back: terms.back,
            opening: false,
            sending: SendingStage::Not,
            report: None,
            socket: Rc::clone(&arrivals.back),
            refusals: Rc::clone(&arrivals.refusals),
        };
        let begin = self.lock_tally().begin;
        let mut session = TestSession::new(UdpServer::new(begin, terms), streams);
        let result = flow::run(&mut session, &mut arrivals, &self.stop);
        let streams = session.flows;
        drop(permit);
        let result =
            result.and_then(|()| match self.stop.is_requested() && !serving.stop.is_requested() {
                true => Err(self.gave_way()),
                false => Ok(()),
            });
        match result {
            Ok(()) => (serving.watch)(self.peer, &UdpSeen::Done(&streams.moved_so_far())),
            Err(failure) => (serving.watch)(self.peer, &UdpSeen::Failed(&failure)),
        }
        let machine = UdpServer::lingering(monotonic(), &self.lock_tally());
        // It waits for nothing that could fail.
        let _ = flow::run(&mut TestSession::new(machine, streams), &mut arrivals, &self.stop);
        self.over.store(true, Ordering::Release);
    }

    fn gave_way(&self) -> Failure {
        let reason = "a client that proved its address has its place";
        Failure::new(Fault::PeerRefused, "serve UDP of", self.peer.to_string(), reason)
    }

    /// The stream that the client is sent, where it wants data.
    fn wanted_stream(&self, header: Option<ClientHeader>) -> Option<UdpBack> {
        let header = header.filter(|header| header.mode != Mode::Forward)?;
        let size_bytes = sending(&header).ok()?.size_bytes as usize;
        let most = self.send_limit.beside_max();
        Some(UdpBack { header, size_bytes, most, wall_offset_ns: realtime_offset_ns() })
    }

    fn lock_tally(&self) -> MutexGuard<'_, UdpTally> {
        locked(&self.tally)
    }
}

/// How far the server is with what it sends.
enum SendingStage {
    Not,
    /// The socket is there, and it is known what it may send for now.
    Opened(SendBounds),
    Now(Box<ReverseStream>),
    Done(UdpSentBack),
}

/// The streams of one client.
struct ClientStreams<'a> {
    client: &'a Iperf2UdpClient,
    serving: &'a UdpServing<'a>,
    /// The stream to the client, where it wants data.
    back: Option<UdpBack>,
    /// True when it is time to begin that stream.
    opening: bool,
    sending: SendingStage,
    /// The client's report of what it received.
    report: Option<UdpReport>,
    socket: Rc<SocketBack>,
    refusals: Rc<Cell<u32>>,
}

impl Flows for ClientStreams<'_> {
    type Machine = UdpServer;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<UdpServer>,
    ) -> Result<Option<FlowsAnswer<UdpServer>>, Failure> {
        match output {
            Output::Open => {
                self.opening = true;
                return self.answer(now);
            }
            Output::Start => self.start_sending(now)?,
            Output::Sample => {
                let span_ns = now.nanos_since(self.client.lock_tally().begin);
                let moved = UdpMoved { span_ns, ..self.moved_so_far() };
                (self.serving.watch)(self.client.peer, &UdpSeen::Interval(&moved));
            }
            Output::StopSending => {
                if let SendingStage::Now(back) = &self.sending {
                    back.stop_sending();
                }
            }
            Output::Peer(report) => self.report = Some(*report),
            Output::Ended => {
                let sending = std::mem::replace(&mut self.sending, SendingStage::Not);
                self.sending = match sending {
                    SendingStage::Now(back) => SendingStage::Done(back.finish(self.report)?),
                    other => other,
                };
            }
            _ => {}
        }
        Ok(None)
    }

    /// Opens what is sent, once so much has come that it may be, and follows it.
    fn answer(&mut self, now: MonoTime) -> Result<Option<FlowsAnswer<UdpServer>>, Failure> {
        if self.opening {
            self.opening = !self.open_send_socket(now)?;
            return Ok((!self.opening).then_some(FlowsAnswer::Opened));
        }
        let mut news = Vec::new();
        if self.socket.refused.take() {
            news.push(UdpServerNews::Refused);
        }
        if let SendingStage::Now(back) = &mut self.sending {
            let came = self.client.lock_tally().arrivals(now);
            let granted = self.client.send_limit.granted(came, back.size_bytes().into());
            granted.into_iter().for_each(|all| back.grant_datagrams(all));
            if self.refusals.get() >= REFUSALS_MAX {
                back.stop_sending();
            }
            news.extend(back.all_sent().map(UdpServerNews::Sent));
        }
        Ok((!news.is_empty()).then_some(FlowsAnswer::Tell(news)))
    }

    fn flow_state(&mut self, now: MonoTime) -> FlowState {
        state_of(&self.client.lock_tally(), now)
    }

    fn peer_name(&self) -> String {
        self.client.peer.to_string()
    }
}

impl ClientStreams<'_> {
    /// Opens the socket of what is sent, where it may begin.
    fn open_send_socket(&mut self, now: MonoTime) -> Result<bool, Failure> {
        let Some(back) = &self.back else { return Ok(false) };
        let client = self.client;
        let came = client.lock_tally().arrivals(now);
        let Some(bounds) = client.send_limit.bounds(came, back.size_bytes as u64) else {
            return Ok(false);
        };
        let socket = if back.has_own_stream() {
            let to = SocketAddr::new(client.peer.ip(), back.header.listen_port);
            open_socket(&sending(&back.header)?, any_local(to))
                .and_then(|socket| socket.connect(to).map(|()| socket))
        } else {
            client.socket.try_clone()
        };
        let socket = socket.map_err(|error| crate::failure::system(&error))?;
        // It is opened once.
        let _ = self.socket.socket.set(socket);
        self.sending = SendingStage::Opened(bounds);
        Ok(true)
    }

    fn start_sending(&mut self, now: MonoTime) -> Result<(), Failure> {
        let opened = (&self.sending, &self.back, self.socket.socket.get());
        if let (SendingStage::Opened(bounds), Some(back), Some(socket)) = opened {
            self.sending = SendingStage::Now(Box::new(ReverseStream::start_sending(
                socket, back, *bounds, now,
            )?));
        }
        Ok(())
    }

    /// The amounts moved until now.
    fn moved_so_far(&self) -> UdpMoved {
        let tally = self.client.lock_tally();
        let receives = self.back.is_none_or(|back| back.header.mode != Mode::Reverse);
        UdpMoved {
            received: receives.then(|| tally.counted()),
            sent: match &self.sending {
                SendingStage::Now(back) => Some(back.so_far()),
                SendingStage::Done(sent) => Some(*sent),
                SendingStage::Not | SendingStage::Opened(_) => None,
            },
            span_ns: tally.last.nanos_since(tally.begin),
            ended: tally.has_ended(),
            dropped: self.client.socket.dropped_buffers(),
        }
    }
}

/// How much a client may be sent that proves no address and asks for `bps`.
fn send_limit_of(
    peer: SocketAddr,
    header: &ClientHeader,
    bps: u64,
    serving: &UdpServing<'_>,
) -> Result<SendLimit, Failure> {
    if let Some(send_limit) = serving.trust.send_limit(peer.ip(), bps, header.threads) {
        return Ok(send_limit);
    }
    let fail = |reason: &str| {
        let failure = Failure::new(Fault::PeerRefused, "send UDP to", peer.to_string(), reason);
        failure.advise(
            "allow its network with --udp-reverse-to; linerate's own client needs no \
                        permission",
        )
    };
    if header.mode == Mode::Reverse {
        return Err(fail(
            "one datagram of iperf's -R does not prove the address, and no --udp-reverse-to covers \
             it",
        ));
    }
    if !serving.sends_anywhere && !is_near(peer.ip()) {
        return Err(fail("iperf 2's UDP proves no address, so data goes to private ones alone"));
    }
    Ok(SendLimit::Mirrored)
}

/// True where an address is of the loopback, a private network (RFC 1918, RFC 4193), the link (RFC
/// 3927, RFC 4291) or a provider's own (RFC 6598).
fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            let shared = first == 100 && second & 0xc0 == 64;
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || shared
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Everybody;

    impl Admission for Everybody {
        fn admit_test(
            &self,
            _: &Demand,
            _: SocketAddr,
        ) -> Result<Permit, linerate_proto::native::Refuse> {
            Ok(Permit(Box::new(())))
        }

        fn duration_max(&self) -> Duration {
            Duration::from_secs(1)
        }
    }

    #[test]
    fn without_proof_private_addresses_get_what_they_bring_and_strangers_nothing() {
        let stop = Stop::new();
        let trust = AddressValidation::default()
            .with_networks(&["203.0.113.0/24=1M".parse().expect("a network")]);
        let send_limit = |peer: &str, mode, sends_anywhere| {
            let serving = UdpServing {
                admission: &Everybody,
                stop: &stop,
                watch: &|_, _| {},
                aside: &|_, _| false,
                interval: None,
                trust: &trust,
                sends_anywhere,
            };
            let header = ClientHeader::new(mode, linerate_proto::iperf2::Iperf2Amount::Bytes(1));
            let peer = SocketAddr::new(peer.parse().expect("an address"), 5001);
            match send_limit_of(peer, &header, 5_000, &serving) {
                Ok(SendLimit::Whole) => "whole",
                Ok(SendLimit::Mirrored) => "mirrored",
                Ok(SendLimit::Capped(_)) => "capped",
                Err(_) => "refused",
            }
        };
        for (peer, mode, anywhere, expected) in [
            ("192.168.1.1", Mode::FullDuplex, false, "mirrored"),
            ("192.168.1.1", Mode::Dual, false, "mirrored"),
            ("192.168.1.1", Mode::Reverse, false, "refused"),
            ("192.168.1.1", Mode::Reverse, true, "refused"),
            ("198.51.100.7", Mode::FullDuplex, false, "refused"),
            ("198.51.100.7", Mode::Dual, false, "refused"),
            ("198.51.100.7", Mode::FullDuplex, true, "mirrored"),
            ("198.51.100.7", Mode::Reverse, true, "refused"),
            ("203.0.113.9", Mode::Reverse, false, "capped"),
            ("203.0.113.9", Mode::Dual, false, "capped"),
            ("127.0.0.1", Mode::Reverse, false, "whole"),
        ] {
            assert_eq!(send_limit(peer, mode, anywhere), expected, "{peer} {mode:?} {anywhere}");
        }
    }

    #[test]
    fn private_addresses_are_near_and_public_ones_are_not() {
        for (address, near) in [
            ("127.0.0.1", true),
            ("10.1.2.3", true),
            ("172.31.255.255", true),
            ("172.32.0.0", false),
            ("192.168.0.1", true),
            ("169.254.1.1", true),
            ("100.64.0.1", true),
            ("100.128.0.1", false),
            ("198.51.100.7", false),
            ("::1", true),
            ("::ffff:10.0.0.1", true),
            ("fe80::1", true),
            ("fd00::1", true),
            ("2001:db8::1", false),
        ] {
            assert_eq!(is_near(address.parse().expect("an address")), near, "{address}");
        }
    }
}
