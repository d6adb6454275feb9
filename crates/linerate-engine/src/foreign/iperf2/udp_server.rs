//! The UDP port of iperf 2 and ttcp: sorts datagrams to their clients, each of which gets a socket
//! of its own on the same port, connected to it, and a thread (`udp_session`), once it has proved
//! its address or gone on as a test does (`udp_candidates`).
//!
//! Until the kernel knows that socket, a client's datagrams come to the port and are passed on in
//! their order; so do those of a client that has another of this host's addresses in mind.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::thread::Scope;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::iperf2::{UdpOpening, UdpTally};
use linerate_sys::clock::{monotonic, realtime_offset_ns};
use linerate_sys::datagram_socket::{DatagramOptions, DatagramSocket, Noted};
use linerate_sys::poll::readable;

use super::address_validation::AddressProof;
use super::udp_arrivals::BUFFER_BYTES_MAX;
use super::udp_candidates::{Candidates, ReadySource};
use super::udp_layout::{arrived_at, wall_us};
use super::udp_session::{ClientPlace, Iperf2UdpClient, UdpSeen, UdpServing};
use super::udp_waiting::{BUFFERED_MAX, DatagramQueue, QueuedDatagram, canonical};
use crate::flow::admission::Permit;

/// Most clients at once.
const CLIENTS_MAX: usize = 512;
/// A client that was refused is not asked again for this long.
const REFUSED_MAX: Duration = Duration::from_secs(5);
/// A test that has just ended gives its place back within this; those that go on wait for it.
const HANDOVER: Duration = Duration::from_secs(1);
/// How often what is over is swept.
const LOOK: Duration = Duration::from_millis(100);
/// Datagrams that are taken between two looks at the clock's other duties.
const TAKEN_MAX: usize = 4096;

/// The UDP port of a server.
#[derive(Debug)]
pub struct UdpPort {
    socket: DatagramSocket,
}

impl UdpPort {
    /// Binds the port.
    /// # Errors
    /// When it is taken.
    pub fn bind(local: SocketAddr, window_bytes: Option<u64>) -> Result<Self, Failure> {
        let options = DatagramOptions {
            local,
            window_bytes,
            buffer_bytes_max: BUFFER_BYTES_MAX,
            dscp: None,
            // A port that another program has must not be shared with it.
            shared: false,
        };
        let socket = DatagramSocket::open(&options)
            .and_then(|socket| socket.allow_port_sharing().map(|()| socket))
            .map_err(|error| crate::failure::system(&error))?;
        socket.note_arrivals();
        Ok(Self { socket })
    }

    /// The address that the port is bound to.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_address()
    }

    /// The buffer for what arrives, as the kernel granted it.
    pub fn buffer_bytes(&self) -> Option<u64> {
        self.socket.buffers().1
    }

    /// Serves until `serving.stop` is asked.
    pub fn run(&self, serving: &UdpServing<'_>) {
        std::thread::scope(|scope| {
            let mut listener_state = UdpListener {
                listener: self,
                serving,
                scope,
                clients: HashMap::new(),
                candidates: Candidates::default(),
                refused: HashMap::new(),
                waiting: DatagramQueue::default(),
            };
            let mut buffer = vec![0; 1 << 16];
            while !serving.stop.is_requested() {
                // A failed wait is a look without datagrams.
                let _ = readable(&self.socket, LOOK);
                listener_state.take_datagrams(&mut buffer);
                listener_state.forget_finished(monotonic());
            }
            listener_state.clients.values().for_each(|client| client.stop_test());
        });
    }
}

struct UdpListener<'scope, 'env> {
    listener: &'env UdpPort,
    serving: &'env UdpServing<'env>,
    scope: &'scope Scope<'scope, 'env>,
    clients: HashMap<SocketAddr, Arc<Iperf2UdpClient>>,
    candidates: Candidates,
    refused: HashMap<SocketAddr, MonoTime>,
    waiting: DatagramQueue,
}

impl UdpListener<'_, '_> {
    /// Takes what came to the port.
    fn take_datagrams(&mut self, buffer: &mut [u8]) {
        for _ in 0..TAKEN_MAX {
            // An error is that of an earlier answer: its address is gone.
            let Ok(Some(noted)) = self.listener.socket.receive_noted(buffer) else { return };
            self.deliver(noted.from, &buffer[..noted.len], read_at(&noted));
            while let Some(QueuedDatagram { from, bytes, at }) = self.waiting.next() {
                self.deliver(from, &bytes, at);
            }
        }
    }

    /// Gives a datagram that came `at` a time to its client, who may be new.
    fn deliver(&mut self, from: SocketAddr, datagram: &[u8], at: MonoTime) {
        let peer = canonical(from);
        if (self.serving.aside)(peer, datagram) {
            return;
        }
        if let Some(client) = self.clients.get(&peer).filter(|client| !client.is_over()) {
            if let Some(answer) = client.take_datagram(datagram, at) {
                // The end comes again where the answer is lost or finds no room.
                let _ = self.listener.socket.send_to(&answer, from);
            }
            return;
        }
        if self.refused.contains_key(&peer) {
            return;
        }
        let Some((ready, proven)) = self.ready_source(peer, from, datagram, at) else { return };
        if let Err(failure) = self.open_client(peer, proven, ready, datagram, at) {
            // Beyond them nobody is told, else each forged source would be a line of the log.
            if self.refused.len() < CLIENTS_MAX {
                self.refused.insert(peer, monotonic());
                (self.serving.watch)(peer, &UdpSeen::Failed(&failure));
            }
        }
    }

    /// The datagrams that came from a source before this one, and whether its address is proven,
    /// once it is to be a client.
    fn ready_source(
        &mut self,
        peer: SocketAddr,
        from: SocketAddr,
        datagram: &[u8],
        at: MonoTime,
    ) -> Option<(ReadySource, bool)> {
        let first =
            || ReadySource { tally: UdpTally::from_first_datagram(datagram, at), since: at };
        match self.serving.trust.check_proof(peer.ip(), datagram, monotonic()) {
            AddressProof::Ask(answer) => {
                // The client asks again where it is lost or finds no room.
                let _ = self.listener.socket.send_to(&answer, from);
                None
            }
            AddressProof::Given => Some((first(), true)),
            // It is sent nothing unless its network is trusted, or else refused.
            AddressProof::None if UdpOpening::asks_to_receive(datagram) => Some((first(), false)),
            AddressProof::None => {
                self.candidates.take_datagram(peer, datagram, at).map(|ready| (ready, false))
            }
        }
    }

    /// A new client, by the datagram that makes it one.
    fn open_client(
        &mut self,
        peer: SocketAddr,
        proven: bool,
        mut ready: ReadySource,
        datagram: &[u8],
        at: MonoTime,
    ) -> Result<(), Failure> {
        if self.clients.len() >= CLIENTS_MAX {
            let reason = format!("{CLIENTS_MAX} clients are there");
            return Err(Failure::new(Fault::PeerRefused, "serve UDP of", peer.to_string(), reason));
        }
        let answer = ready.tally.count_datagram(datagram, at, wall_us(at));
        let place = match ClientPlace::ask_admission(&ready.tally, peer, proven, self.serving) {
            Ok(place) => place,
            Err(refused)
                if refused.is_busy && !proven && at.duration_since(ready.since) < HANDOVER =>
            {
                self.candidates.put_back(peer, ready);
                return Ok(());
            }
            Err(refused) => return Err(*refused.failure),
        };
        let (client, permit) =
            Iperf2UdpClient::open_with_place(ready.tally, peer, place, self.local_for(peer))?;
        let client = Arc::new(client);
        // The end comes again where the answer is lost or finds no room.
        answer.iter().for_each(|answer| drop(client.socket().send(answer)));
        self.clients.insert(peer, Arc::clone(&client));
        self.sort_datagrams(&client, peer);
        self.start_client(client, permit)
    }

    /// The port at the address that is bound, in the family of the peer.
    fn local_for(&self, peer: SocketAddr) -> SocketAddr {
        let bound = self.listener.local_address().unwrap_or(peer);
        let address = match (bound.ip().to_canonical(), peer.is_ipv4()) {
            (address, _) if !address.is_unspecified() => address,
            (_, true) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            (_, false) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        SocketAddr::new(address, bound.port())
    }

    /// Sorts the waiting datagrams: what came to the port before the client's socket was connected
    /// goes to its client first, then what came to that socket meanwhile; others' wait.
    fn sort_datagrams(&mut self, client: &Iperf2UdpClient, peer: SocketAddr) {
        let give = |datagram: &[u8], at: MonoTime| {
            if let Some(answer) = client.take_datagram(datagram, at) {
                let _ = client.socket().send(&answer);
            }
        };
        self.waiting.take_of(peer).iter().for_each(|datagram| give(&datagram.bytes, datagram.at));
        let mut buffer = vec![0; 1 << 16];
        let sockets = [(&self.listener.socket, TAKEN_MAX), (client.socket(), BUFFERED_MAX)];
        for (socket, most) in sockets {
            for _ in 0..most {
                let Ok(taken) = socket.receive_noted(&mut buffer) else {
                    // That of an earlier answer: its address is gone.
                    continue;
                };
                let Some(noted) = taken else { break };
                let (datagram, at) = (&buffer[..noted.len], read_at(&noted));
                if canonical(noted.from) == peer {
                    give(datagram, at);
                } else {
                    self.waiting.add(noted.from, datagram, at);
                }
            }
        }
    }

    fn start_client(
        &mut self,
        client: Arc<Iperf2UdpClient>,
        permit: Permit,
    ) -> Result<(), Failure> {
        let serving = self.serving;
        let run = move || client.run(permit, serving);
        let spawned = std::thread::Builder::new().name("linerate-udp".to_owned());
        spawned.spawn_scoped(self.scope, run).map(|_| ()).map_err(|error| {
            Failure::new(Fault::System, "start a thread for", "a UDP client", error)
        })
    }

    fn forget_finished(&mut self, now: MonoTime) {
        self.refused.retain(|_, since| now.duration_since(*since) < REFUSED_MAX);
        self.clients.retain(|_, client| !client.is_over());
        self.candidates.forget_silent(now);
    }
}

/// When a datagram that is read now came.
fn read_at(noted: &Noted) -> MonoTime {
    arrived_at(noted.arrived_ns, realtime_offset_ns(), monotonic())
}
