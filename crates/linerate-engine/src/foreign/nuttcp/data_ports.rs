//! Where data streams of tests arrive: the client names the port, so tests take turns at it.
//!
//! A port where this program listens anyway hands its connections over; any other is opened for
//! the moment in which the streams of one test connect. Connections from another address than the
//! test's are closed. Over UDP it is the first mark that is handed over: the stream then gets a
//! socket of its own at that port, connected to the client.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_core::record::{Failure, Fault, UdpTest};
use linerate_proto::nuttcp::{Parameters, UdpMark};
use linerate_sys::datagram_socket::{BUFFER_BYTES, DatagramSocket};
use linerate_sys::poll::readable;
use linerate_sys::tcp::{self, TcpOptions};

use crate::flow::udp::endpoint::open_socket_at;

/// Datagrams of others that are dropped in one look.
const STRAYS_MAX: u32 = 256;

/// Shared by the tests of a server and its listeners.
#[derive(Debug, Default)]
pub struct DataPorts {
    /// Ports where this program listens, whatever for.
    own: Vec<u16>,
    /// Ports of `own` where it takes UDP, too, and hands first marks over.
    heard: Vec<u16>,
    turns: Mutex<HashMap<u16, Arc<()>>>,
    waiting: Mutex<HashMap<(u16, IpAddr), Sender<TcpStream>>>,
    udp_turns: Mutex<HashMap<u16, Arc<()>>>,
    udp_waiting: Mutex<HashMap<(u16, IpAddr), Option<SocketAddr>>>,
}

/// The ports of one test; the next test has its turn when this is dropped.
pub(super) struct TestPorts<'a> {
    ports: &'a DataPorts,
    peer: IpAddr,
    first: u16,
    /// The source of each stream's connection: its listener, or what another listener hands over.
    places: Vec<StreamSource>,
    _taken: Vec<Arc<()>>,
}

enum StreamSource {
    Listener(TcpListener),
    HandedOver(Receiver<TcpStream>),
}

impl DataPorts {
    /// The data ports of a server that listens on these ports itself.
    pub fn beside(own: Vec<u16>) -> Self {
        Self { own, ..Self::default() }
    }

    /// The same for a server that takes UDP at these of its ports and hands first marks over by
    /// [`Self::deliver_mark`].
    #[must_use]
    pub fn hearing(self, heard: Vec<u16>) -> Self {
        Self { heard, ..self }
    }

    /// Takes a datagram that came to an own port if it is a mark: that of a test that waits for its
    /// begin, or one of an end that comes after all. False for anything else.
    pub fn deliver_mark(&self, port: u16, peer: SocketAddr, datagram: &[u8]) -> bool {
        let Some(mark) = UdpMark::parse(datagram) else { return false };
        let begins = matches!(mark, UdpMark::Ready | UdpMark::Begin);
        let mut waiting = lock(&self.udp_waiting);
        let place = waiting.get_mut(&(port, peer.ip().to_canonical()));
        if let Some(place) = place.filter(|_| begins) {
            place.get_or_insert(peer);
        }
        true
    }

    /// A turn at these UDP ports; none while another test has one of them.
    pub(super) fn listen_udp(
        &self,
        local: IpAddr,
        peer: IpAddr,
        ports: RangeInclusive<u16>,
        request: &UdpTest,
    ) -> Result<Option<UdpTurn<'_>>, Failure> {
        let Some(taken) = claim_ports(&self.udp_turns, ports.clone()) else { return Ok(None) };
        let mut turn = UdpTurn {
            ports: self,
            peer,
            places: Vec::new(),
            handed_over: Vec::new(),
            _taken: taken,
        };
        for port in ports {
            let at = SocketAddr::new(local, port);
            let place = if self.heard.contains(&port) {
                lock(&self.udp_waiting).insert((port, peer), None);
                turn.handed_over.push(port);
                UdpPlace::HandedOver(at)
            } else if self.own.contains(&port) {
                let reason = "another program's UDP comes to this port";
                return Err(Failure::new(Fault::PeerRefused, "open", at.to_string(), reason));
            } else {
                let socket = open_socket_at(request, at);
                let socket = socket.map_err(|error| crate::failure::system(&error))?;
                // Without the filter strangers are dropped one by one.
                let _ = socket.show_source(peer);
                UdpPlace::Open(socket)
            };
            turn.places.push(place);
        }
        Ok(Some(turn))
    }

    /// Hands a connection to the test that waits for it; gives it back when none does.
    /// # Errors
    /// The connection, where it is nobody's data.
    pub fn deliver(&self, port: u16, peer: IpAddr, stream: TcpStream) -> Result<(), TcpStream> {
        match lock(&self.waiting).get(&(port, peer)) {
            Some(sender) => sender.send(stream).map_err(|refused| refused.0),
            None => Err(stream),
        }
    }

    /// A turn at these ports, listening there; none while another test has one of them.
    pub(super) fn listen(
        &self,
        local: IpAddr,
        peer: IpAddr,
        ports: RangeInclusive<u16>,
        options: &TcpOptions,
    ) -> Result<Option<TestPorts<'_>>, Failure> {
        let Some(taken) = claim_ports(&self.turns, ports.clone()) else { return Ok(None) };
        let mut turn = TestPorts {
            ports: self,
            peer,
            first: *ports.start(),
            places: Vec::new(),
            _taken: taken,
        };
        for port in ports {
            let place = if self.own.contains(&port) {
                let (sender, arrivals) = channel();
                lock(&self.waiting).insert((port, peer), sender);
                StreamSource::HandedOver(arrivals)
            } else {
                let options = TcpOptions { congestion_control: None, ..options.clone() };
                let listener = tcp::listen(SocketAddr::new(local, port), &options);
                StreamSource::Listener(listener.map_err(|error| crate::failure::system(&error))?)
            };
            turn.places.push(place);
        }
        Ok(Some(turn))
    }
}

/// The ports of the data streams that a client's parameters ask for.
pub(super) const fn data_port_range(parameters: &Parameters) -> RangeInclusive<u16> {
    parameters.port..=parameters.port.saturating_add(parameters.nstream - 1)
}

/// Claims all ports at once; none where another test has one of them.
fn claim_ports(
    turns: &Mutex<HashMap<u16, Arc<()>>>,
    ports: impl Iterator<Item = u16> + Clone,
) -> Option<Vec<Arc<()>>> {
    let mut turns = lock(turns);
    turns.retain(|_, holder| Arc::strong_count(holder) > 1);
    if ports.clone().any(|port| turns.contains_key(&port)) {
        return None;
    }
    let take = |port| Arc::clone(turns.entry(port).or_default());
    Some(ports.map(take).collect())
}

/// The UDP ports of one test, until every stream has a socket that is connected to the client.
pub(super) struct UdpTurn<'a> {
    ports: &'a DataPorts,
    peer: IpAddr,
    places: Vec<UdpPlace>,
    /// Ports whose marks are handed over to this test.
    handed_over: Vec<u16>,
    _taken: Vec<Arc<()>>,
}

enum UdpPlace {
    /// A socket that hears everybody.
    Open(DatagramSocket),
    /// An own port, whose marks are handed over.
    HandedOver(SocketAddr),
    /// A stream whose socket has been given away.
    Given,
}

impl UdpTurn<'_> {
    /// The streams that have announced themselves since the last look.
    pub(super) fn arrivals(
        &mut self,
        request: &UdpTest,
    ) -> linerate_sys::Result<Vec<AnnouncedStream>> {
        let mut streams = Vec::new();
        for place in &mut self.places {
            let found = match place {
                UdpPlace::Given => None,
                UdpPlace::Open(socket) => announced(socket, self.peer),
                UdpPlace::HandedOver(at) => {
                    let waiting = lock(&self.ports.udp_waiting);
                    let peer = waiting.get(&(at.port(), self.peer)).copied().flatten();
                    peer.map(|peer| (peer, None))
                }
            };
            let Some((peer, announced)) = found else { continue };
            let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
            let socket = match std::mem::replace(place, UdpPlace::Given) {
                UdpPlace::Open(socket) => socket,
                UdpPlace::HandedOver(at) => open_socket_at(request, at)?,
                UdpPlace::Given => continue,
            };
            socket.connect(peer)?;
            let first = announced.into_iter().chain(early_datagrams(&socket, peer)).collect();
            streams.push(AnnouncedStream { socket, first });
        }
        Ok(streams)
    }

    /// True where every stream has its socket.
    pub(super) fn is_complete(&self) -> bool {
        self.places.iter().all(|place| matches!(place, UdpPlace::Given))
    }
}

/// A stream over UDP that has announced itself.
pub(super) struct AnnouncedStream {
    /// Connected to the client.
    pub(super) socket: DatagramSocket,
    /// Datagrams that came before it was connected, where they were not handed over as a mark.
    pub(super) first: Vec<Vec<u8>>,
}

/// The first datagram of an address, and where it came from; those of others are dropped.
fn announced(socket: &DatagramSocket, peer: IpAddr) -> Option<(SocketAddr, Option<Vec<u8>>)> {
    let mut bytes = vec![0; BUFFER_BYTES];
    for _ in 0..STRAYS_MAX {
        let (length, from) = socket.receive_from(&mut bytes).ok().flatten()?;
        if from.ip().to_canonical() == peer {
            bytes.truncate(length);
            return Some((from, Some(bytes)));
        }
    }
    None
}

/// Datagrams that reached a socket before it was connected to `peer`, without those of others.
fn early_datagrams(socket: &DatagramSocket, peer: SocketAddr) -> Vec<Vec<u8>> {
    let mut bytes = vec![0; BUFFER_BYTES];
    let mut all = Vec::new();
    for _ in 0..STRAYS_MAX {
        let Ok(Some((length, from))) = socket.receive_from(&mut bytes) else { break };
        if SocketAddr::new(from.ip().to_canonical(), from.port()) == peer {
            all.push(bytes[..length].to_vec());
        }
    }
    all
}

impl Drop for UdpTurn<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.ports.udp_waiting);
        waiting
            .retain(|(port, address), _| *address != self.peer || !self.handed_over.contains(port));
    }
}

impl TestPorts<'_> {
    /// A stream that has come to some place.
    pub(super) fn arrival(&self) -> Option<(u16, TcpStream)> {
        self.places.iter().zip(0_u16..).find_map(|(place, flow)| {
            let stream = match place {
                StreamSource::HandedOver(arrivals) => arrivals.try_recv().ok()?,
                StreamSource::Listener(listener) => self.accept(listener)?,
            };
            Some((flow, stream))
        })
    }

    fn accept(&self, listener: &TcpListener) -> Option<TcpStream> {
        readable(listener, Duration::ZERO).ok().filter(|ready| *ready)?;
        let (stream, peer) = listener.accept().ok()?;
        (peer.ip().to_canonical() == self.peer).then_some(stream)
    }
}

impl Drop for TestPorts<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.ports.waiting);
        for (_, port) in self.places.iter().zip(self.first..) {
            waiting.remove(&(port, self.peer));
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn datagrams_of_strangers_take_no_room_at_a_data_port() {
        let ports = DataPorts::default();
        let bind = |host: [u8; 4]| UdpSocket::bind((IpAddr::from(host), 0)).expect("a free port");
        let free = bind([127, 0, 0, 1]).local_addr().expect("bound").port();
        let request = UdpTest::<Option<u32>>::default().with_size(1000);
        let turn = ports.listen_udp(HERE, HERE, free..=free, &request).expect("a free port");
        let mut turn = turn.expect("nobody has it");
        let (stranger, client) = (bind([127, 9, 9, 9]), bind([127, 0, 0, 1]));
        // More than a receive buffer of 32 MiB has room for, and than one look passes over.
        for _ in 0..50_000 {
            let _ = stranger.send_to(&[7; 1400], (HERE, free));
        }
        client.send_to(&UdpMark::Ready.to_bytes(), (HERE, free)).expect("sent");
        let streams = turn.arrivals(&request).expect("sockets");
        assert_eq!(streams.len(), 1, "the client has announced itself");
        assert_eq!(streams[0].socket.peer_address(), client.local_addr().ok());
    }

    fn test_ports(ports: &DataPorts, first: u16, count: u16) -> Option<TestPorts<'_>> {
        let options = TcpOptions::default();
        ports.listen(HERE, HERE, first..=first + (count - 1), &options).expect("free ports")
    }

    #[test]
    fn tests_take_turns_at_a_port_and_at_any_of_several() {
        // Own ports need no listener, so that the test needs no free ones.
        let ports = DataPorts::beside((40_000..40_010).collect());
        let first = test_ports(&ports, 40_000, 3);
        assert!(first.is_some());
        assert!(test_ports(&ports, 40_002, 1).is_none(), "the first test has it");
        let beside = test_ports(&ports, 40_003, 2);
        assert!(beside.is_some());
        drop(first);
        assert!(test_ports(&ports, 40_002, 1).is_some());
        assert!(test_ports(&ports, 40_002, 2).is_none(), "40003 is still another's");
    }

    #[test]
    fn a_connection_goes_to_the_test_of_its_port_and_address_alone() {
        let ports = DataPorts::beside(vec![40_000]);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let connect = || {
            let address = listener.local_addr().expect("bound");
            let stream = TcpStream::connect(address).expect("loopback");
            drop(listener.accept());
            stream
        };
        assert!(ports.deliver(40_000, HERE, connect()).is_err(), "nobody waits");
        let turn = test_ports(&ports, 40_000, 1).expect("free");
        let elsewhere = IpAddr::from([192, 0, 2, 1]);
        assert!(ports.deliver(40_000, elsewhere, connect()).is_err());
        assert!(ports.deliver(40_000, HERE, connect()).is_ok());
        assert_eq!(turn.arrival().map(|(flow, _)| flow), Some(0));
        drop(turn);
        assert!(ports.deliver(40_000, HERE, connect()).is_err(), "its turn is over");
    }
}
