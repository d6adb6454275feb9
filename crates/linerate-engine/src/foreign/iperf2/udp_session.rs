//! One client of the UDP port, on a socket and a thread of its own: takes what it sends in joined
//! buffers (UDP_GRO, recvmmsg), and sends what it asked for.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::iperf2::{ClientHeader, Mode};
use linerate_sys::clock::monotonic;
use linerate_sys::datagram_socket::{DatagramOptions, DatagramSocket, ReceiveBatch};
use linerate_sys::stop::Stop;

use super::address_validation::{AddressValidation, SendLimit};
use super::udp_back::{Back, UdpSentBack};
use super::udp_layout::{sending, wall_us};
use super::udp_tally::{Tally, UdpCounted};
use crate::flow::tcp::{Admission, Demand, Permit};

/// Room for what arrives while the thread does something else.
pub(super) const BUFFER_BYTES_MAX: u64 = 8 << 20;
/// Blocking calls come back this often to look at everything else.
const CALL_TIMEOUT: Duration = Duration::from_millis(10);
/// A sender that is silent for this long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// A client whose test has ended is answered again until it was silent for this long.
const ENDED_MAX: Duration = Duration::from_secs(1);
/// A client whose port refuses so many datagrams, one after the other, is gone.
const REFUSALS_MAX: u32 = 3;

/// What the UDP side of a server is given.
pub struct UdpServing<'a> {
    /// Decides which tests run.
    pub admission: &'a dyn Admission,
    /// Set when the server is to end.
    pub stop: &'a Stop,
    /// Told of what is seen.
    pub watch: UdpWatch<'a>,
    /// Takes what another protocol sends to this port; true when it did.
    pub aside: UdpAside<'a>,
    /// Time between two looks of the watcher; none for no looks.
    pub interval: Option<Duration>,
    /// Who is sent what it asks for, although the address of a datagram is easily forged.
    pub trust: &'a AddressValidation,
    /// Clients that prove no address and are not trusted are sent in proportion to what comes from
    /// them, wherever they are. Otherwise only to private addresses.
    pub sends_anywhere: bool,
}

/// Looks at a datagram, of a client or not yet of one, by the address that it came from.
pub type UdpAside<'a> = &'a (dyn Fn(SocketAddr, &[u8]) -> bool + Sync);

/// Told of every client, by its address.
pub type UdpWatch<'a> = &'a (dyn Fn(SocketAddr, &UdpSeen<'_>) + Sync);

/// What a server sees of a client over UDP.
#[derive(Debug)]
pub enum UdpSeen<'a> {
    /// It is there: the server's own address, and its header.
    Begin(Option<SocketAddr>, Option<&'a ClientHeader>),
    /// What was moved until now, since its first datagram.
    Interval(&'a UdpMoved),
    /// What was moved in all.
    Done(&'a UdpMoved),
    /// It was not served, or not to its end.
    Failed(&'a Failure),
}

/// What was moved of one client.
#[derive(Clone, Copy, Debug)]
pub struct UdpMoved {
    /// What it sent; absent where the server alone sends.
    pub received: Option<UdpCounted>,
    /// What was sent to it.
    pub sent: Option<UdpSentBack>,
    /// Time since its first datagram, or from that to the last one.
    pub span_ns: u64,
    /// It said that it was done.
    pub ended: bool,
    /// Buffers that the client's socket here had no room for.
    pub dropped: Option<u32>,
}

/// `iperf UDP: 52920 bytes in 0.500 s, 847 kbit/s, 0 of 36 datagrams lost, ...`, for the log.
impl std::fmt::Display for UdpMoved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.received {
            Some(UdpCounted::Iperf(counts)) => {
                write!(f, "iperf UDP: {}", moved_in(counts.bytes, self.span_ns))?;
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
                let moved = moved_in(bytes, self.span_ns);
                write!(f, "ttcp UDP: {moved}, {datagrams} datagrams")?;
            }
            None => write!(f, "iperf UDP")?,
        }
        let Some(sent) = self.sent else { return Ok(()) };
        let before = if self.received.is_some() { "; sent " } else { ": sent " };
        let (moved, datagrams) = (moved_in(sent.bytes, sent.span_ns), sent.datagrams);
        write!(f, "{before}{moved}, {datagrams} datagrams")?;
        match sent.report {
            Some(report) => write!(f, ", {} of {} lost", report.lost, report.datagrams),
            None => Ok(()),
        }
    }
}

fn moved_in(bytes: u64, span_ns: u64) -> String {
    let seconds = span_ns as f64 / 1e9;
    let bps = if span_ns > 0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let rate = BitRate::from_bits_per_sec(bps as u64);
    format!("{bytes} bytes in {seconds:.3} s, {rate}")
}

/// A client.
pub(super) struct Session {
    tally: Mutex<Tally>,
    socket: DatagramSocket,
    peer: SocketAddr,
    /// How much it may be sent.
    send_limit: SendLimit,
    over: AtomicBool,
}

/// A client's first datagram.
pub(super) struct First<'a> {
    pub(super) datagram: &'a [u8],
    pub(super) peer: SocketAddr,
    /// The address is true.
    pub(super) proven: bool,
    pub(super) at: MonoTime,
}

impl Session {
    /// A new client, by its first datagram; the place among the tests goes to its thread.
    pub(super) fn open(
        first: &First<'_>,
        local: SocketAddr,
        serving: &UdpServing<'_>,
    ) -> Result<(Self, Permit), Failure> {
        let (peer, now) = (first.peer, first.at);
        let mut tally = Tally::of(first.datagram, now);
        tally.take(first.datagram, now, wall_us(now));
        let fail = |reason: String| {
            Failure::new(Fault::PeerRefused, "serve UDP of", peer.to_string(), reason)
        };
        let mut demand = Demand { streams: 1, planned: None };
        let mut send_limit = SendLimit::Whole;
        if let Some(header) = tally.header().filter(|header| header.mode != Mode::Forward) {
            let request = sending(&header)?;
            if !first.proven {
                let bps = request.pace.map_or(u64::MAX, BitRate::bits_per_sec);
                send_limit = send_limit_of(peer, &header, bps, serving)?;
            }
            demand.planned = request.planned_span();
            demand.streams = if header.mode == Mode::Reverse { 1 } else { 2 };
        }
        let permit =
            serving.admission.admit(&demand, peer).map_err(|refuse| fail(refuse.reason))?;
        let dscp = tally.header().map(|it| it.service_type >> 2).filter(|dscp| *dscp > 0);
        let options = DatagramOptions {
            local,
            window_bytes: None,
            buffer_bytes_max: BUFFER_BYTES_MAX,
            dscp,
            shared: true,
        };
        let socket = DatagramSocket::open(&options)
            .and_then(|socket| socket.set_call_timeout(CALL_TIMEOUT).map(|()| socket))
            .and_then(|socket| socket.connect(peer).map(|()| socket))
            .map_err(|error| crate::failure::system(&error))?;
        let over = AtomicBool::new(false);
        Ok((Self { tally: Mutex::new(tally), socket, peer, send_limit, over }, permit))
    }

    /// The client's own socket.
    pub(super) const fn socket(&self) -> &DatagramSocket {
        &self.socket
    }

    /// Takes a datagram that came to another socket; the answer, where it ends the test.
    pub(super) fn take(&self, datagram: &[u8], now: MonoTime) -> Option<Vec<u8>> {
        self.lock().take(datagram, now, wall_us(now))
    }

    /// Whether the thread has left.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Serves the client to its end.
    pub(super) fn run<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        permit: Permit,
        serving: &'env UdpServing<'env>,
    ) {
        let header = self.lock().header();
        let local = self.socket.local_address();
        (serving.watch)(self.peer, &UdpSeen::Begin(local, header.as_ref()));
        self.socket.note_arrivals();
        // Where the kernel joins nothing they come one by one.
        let _ = self.socket.join_receives();
        let mut turn = Turn {
            session: self,
            scope,
            serving,
            header: header.filter(|header| header.mode != Mode::Forward),
            back: Sending::Not,
            refusals: 0,
            tick: serving.interval.map(|interval| self.lock().begin + interval),
        };
        let result = turn.until_done();
        drop(permit);
        match result {
            Ok(sent) => (serving.watch)(self.peer, &UdpSeen::Done(&self.moved(&turn, sent))),
            Err(failure) => (serving.watch)(self.peer, &UdpSeen::Failed(&failure)),
        }
        turn.linger();
        self.over.store(true, Ordering::Release);
    }

    fn moved(&self, turn: &Turn<'_, '_, '_>, sent: Option<UdpSentBack>) -> UdpMoved {
        let tally = self.lock();
        let receives = turn.header.is_none_or(|header| header.mode != Mode::Reverse);
        UdpMoved {
            received: receives.then(|| tally.counted()),
            sent,
            span_ns: tally.last.nanos_since(tally.begin),
            ended: tally.ended(),
            dropped: self.socket.drops(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a client was sent, once all of it was.
type Sent = Result<UdpSentBack, Failure>;

/// How far the server is with what it sends.
enum Sending<'scope> {
    Not,
    /// A client that may not listen yet is asked, while data comes from it.
    Opening(ScopedJoinHandle<'scope, Result<Back, Failure>>),
    Now(Box<Back>),
    /// The client's report is waited for.
    Ending(ScopedJoinHandle<'scope, Sent>),
    Done(UdpSentBack),
}

/// The thread of one client.
struct Turn<'a, 'scope, 'env> {
    session: &'a Session,
    scope: &'scope Scope<'scope, 'env>,
    serving: &'env UdpServing<'env>,
    /// Of a client that wants data.
    header: Option<ClientHeader>,
    back: Sending<'scope>,
    refusals: u32,
    tick: Option<MonoTime>,
}

impl<'scope> Turn<'_, 'scope, '_> {
    /// Takes and sends until both are over; what was sent.
    fn until_done(&mut self) -> Result<Option<UdpSentBack>, Failure> {
        let mut batch = ReceiveBatch::new();
        loop {
            self.receive(&mut batch);
            let now = monotonic();
            // Looked at first: what waits for the client's end begins with it.
            let over = self.receiving_is_over(now);
            self.send()?;
            self.look(now);
            match &self.back {
                Sending::Not if over => return Ok(None),
                Sending::Done(sent) if over => return Ok(Some(*sent)),
                Sending::Now(back) if self.serving.stop.asked() => back.stop(),
                _ => {}
            }
        }
    }

    /// Takes what is there; waits for it for a moment.
    fn receive(&mut self, batch: &mut ReceiveBatch) {
        let result = batch.receive(&self.session.socket);
        let now = monotonic();
        if let Err(error) = result {
            let refused = error.kind() == std::io::ErrorKind::ConnectionRefused;
            self.refusals += u32::from(refused);
            return;
        }
        let mut tally = self.session.lock();
        for arrived in batch.arrived() {
            let wall_us = arrived.arrived_ns.map_or_else(|| wall_us(now), |ns| ns / 1000);
            let size = arrived.joined_bytes.unwrap_or(arrived.bytes.len()).max(1);
            for datagram in arrived.bytes.chunks(size) {
                if let Some(report) = tally.take(datagram, now, wall_us) {
                    // The end comes again where the report is lost or finds no room.
                    let _ = self.session.socket.send(&report);
                }
            }
        }
        self.refusals = 0;
    }

    /// Nothing more comes from the client.
    fn receiving_is_over(&self, now: MonoTime) -> bool {
        if self.header.is_some_and(|header| header.mode == Mode::Reverse) {
            return true;
        }
        let tally = self.session.lock();
        tally.ended() || now.since(tally.last) >= SILENCE_MAX || self.serving.stop.asked()
    }

    /// A client that sends, too, fell silent before it was done.
    fn is_gone(&self) -> bool {
        let sends = self.header.is_some_and(|header| header.mode != Mode::Reverse);
        let tally = self.session.lock();
        sends && !tally.ended() && monotonic().since(tally.last) >= SILENCE_MAX
    }

    /// Begins, follows and ends what is sent.
    fn send(&mut self) -> Result<(), Failure> {
        let back = std::mem::replace(&mut self.back, Sending::Not);
        self.back = match back {
            Sending::Not => self.begin()?,
            Sending::Opening(thread) if thread.is_finished() => {
                let gone = || Failure::new(Fault::System, "send UDP to", "a client", "a panic");
                Sending::Now(Box::new(thread.join().unwrap_or_else(|_| Err(gone()))?))
            }
            Sending::Now(back) if back.is_done() => {
                Sending::Ending(self.scope.spawn(move || (*back).finish()))
            }
            Sending::Now(mut back) => {
                let came = self.session.lock().came(monotonic());
                let size = back.size_bytes().into();
                self.session
                    .send_limit
                    .granted(came, size)
                    .into_iter()
                    .for_each(|all| back.grant(all));
                if self.refusals >= REFUSALS_MAX || self.is_gone() {
                    back.stop();
                }
                Sending::Now(back)
            }
            Sending::Ending(thread) if thread.is_finished() => {
                Sending::Done(thread.join().unwrap_or_else(|_| Ok(UdpSentBack::default()))?)
            }
            other => other,
        };
        Ok(())
    }

    /// Begins to send where it is time for that.
    fn begin(&self) -> Result<Sending<'scope>, Failure> {
        let Some(header) = &self.header else { return Ok(Sending::Not) };
        let session = self.session;
        let came = session.lock().came(monotonic());
        if header.mode == Mode::TradeOff && !came.ended {
            return Ok(Sending::Not);
        }
        let size = sending(header)?.size_bytes;
        let Some(bounds) = session.send_limit.bounds(came, size.into()) else {
            return Ok(Sending::Not);
        };
        match header.mode {
            Mode::Reverse | Mode::FullDuplex => {
                let own = session.socket.try_clone();
                let own = own.map_err(|error| crate::failure::system(&error))?;
                Back::on(own, header, bounds).map(|back| Sending::Now(Box::new(back)))
            }
            Mode::Dual | Mode::TradeOff => {
                let (peer, header) = (session.peer, *header);
                Ok(Sending::Opening(self.scope.spawn(move || Back::to(peer, &header, bounds))))
            }
            Mode::Forward => Ok(Sending::Not),
        }
    }

    /// The end of an interval.
    fn look(&mut self, now: MonoTime) {
        let (Some(tick), Some(interval)) = (self.tick, self.serving.interval) else { return };
        if now < tick {
            return;
        }
        self.tick = Some(tick + interval);
        let sent = match &self.back {
            Sending::Now(back) => Some(back.so_far()),
            Sending::Done(sent) => Some(*sent),
            Sending::Not | Sending::Opening(_) | Sending::Ending(_) => None,
        };
        let span_ns = now.nanos_since(self.session.lock().begin);
        let moved = UdpMoved { span_ns, ..self.session.moved(self, sent) };
        (self.serving.watch)(self.session.peer, &UdpSeen::Interval(&moved));
    }

    /// Answers ends that come again, because the report was lost.
    fn linger(&mut self) {
        let mut batch = ReceiveBatch::new();
        let leaves = monotonic() + SILENCE_MAX;
        while !self.serving.stop.asked() && monotonic() < leaves {
            self.receive(&mut batch);
            if monotonic().since(self.session.lock().last) >= ENDED_MAX {
                return;
            }
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
    if let Some(send_limit) = serving.trust.of(peer.ip(), bps, header.threads) {
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

/// Whether an address is of the loopback, a private network (RFC 1918, RFC 4193), the link
/// (RFC 3927, RFC 4291) or a provider's own (RFC 6598).
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
        fn admit(
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
        let trust =
            AddressValidation::default().and(&["203.0.113.0/24=1M".parse().expect("a network")]);
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
            let header = ClientHeader::new(mode, linerate_proto::iperf2::Amount::Bytes(1));
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
