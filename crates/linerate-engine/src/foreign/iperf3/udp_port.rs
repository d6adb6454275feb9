//! The UDP port of a server, where each stream announces itself by one datagram.
//!
//! A stream is then given a socket of its own on the same port, connected to the client, so that
//! its datagrams come there and not here. Only addresses of clients that are opening streams are
//! heard, and each announcement is answered by as many bytes.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_core::record::UdpTest;
use linerate_proto::iperf3::{CONNECT_BYTES, CONNECT_REPLY, CONNECT_REQUESTS};
use linerate_sys::datagram_socket::DatagramSocket;

use crate::flow::udp::endpoint::open_socket_at;

/// Announcements of one address that are kept.
const WAITING_MAX: usize = 256;
/// Datagrams that are looked at in one turn.
const TURN_MAX: usize = 1024;

/// The port that all clients share.
#[derive(Debug)]
pub struct Iperf3UdpPort {
    socket: DatagramSocket,
    local: SocketAddr,
    /// Clients that are opening streams, and the addresses that announced themselves.
    waiting: Mutex<HashMap<IpAddr, VecDeque<SocketAddr>>>,
}

/// A client's turn at the port, over when dropped.
pub(super) struct PortTurn<'a> {
    udp_port: &'a Iperf3UdpPort,
    client: IpAddr,
}

impl Iperf3UdpPort {
    /// Opens the UDP port of the address.
    /// # Errors
    /// When it is taken or not this host's.
    pub fn open(local: SocketAddr) -> linerate_sys::Result<Self> {
        let socket = DatagramSocket::open_shared(local)?;
        let local = socket.local_address().unwrap_or(local);
        // Garbage that waits here would leave no room for announcements, which some clients make
        // once. Without the filter it is dropped when its turn comes.
        let _ = socket.show_words(&CONNECT_REQUESTS);
        Ok(Self { socket, local, waiting: Mutex::default() })
    }

    /// The address that the port is bound to.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// A client begins to open streams; `None` while another test of its address does.
    pub(super) fn turn_of(&self, client: IpAddr) -> Option<PortTurn<'_>> {
        let client = client.to_canonical();
        let mut waiting = self.lock_waiting();
        if waiting.contains_key(&client) {
            return None;
        }
        // What came from there before was not for this test.
        self.sort_announcements(&mut waiting, &self.socket);
        waiting.insert(client, VecDeque::new());
        Some(PortTurn { udp_port: self, client })
    }

    /// Sorts what came to the clients that wait.
    fn sort_announcements(
        &self,
        waiting: &mut HashMap<IpAddr, VecDeque<SocketAddr>>,
        socket: &DatagramSocket,
    ) {
        let mut datagram = [0; CONNECT_BYTES + 1];
        for _ in 0..TURN_MAX {
            match socket.receive_from(&mut datagram) {
                Ok(Some((CONNECT_BYTES, peer)))
                    if CONNECT_REQUESTS.iter().any(|word| datagram.starts_with(word)) =>
                {
                    let places = waiting.get_mut(&peer.ip().to_canonical());
                    let places = places.filter(|places| places.len() < WAITING_MAX);
                    // One that asks again has its place.
                    if let Some(places) = places.filter(|places| !places.contains(&peer)) {
                        places.push_back(peer);
                    }
                }
                Ok(Some(_)) | Err(_) => {}
                Ok(None) => return,
            }
        }
    }

    fn lock_waiting(&self) -> MutexGuard<'_, HashMap<IpAddr, VecDeque<SocketAddr>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PortTurn<'_> {
    /// The socket of the client's next stream and its address, once it has announced itself.
    pub(super) fn next(
        &self,
        request: &UdpTest,
        own: IpAddr,
    ) -> linerate_sys::Result<Option<(DatagramSocket, SocketAddr)>> {
        let mut waiting = self.udp_port.lock_waiting();
        self.udp_port.sort_announcements(&mut waiting, &self.udp_port.socket);
        let next = waiting.get_mut(&self.client).and_then(VecDeque::pop_front);
        let Some(announced) = next else { return Ok(None) };
        let peer = SocketAddr::new(announced.ip().to_canonical(), announced.port());
        let local = SocketAddr::new(own.to_canonical(), self.udp_port.local.port());
        // Until it is connected the new socket gets what was for others, too.
        let socket = open_socket_at(request, local)?;
        socket.connect(peer)?;
        self.udp_port.sort_announcements(&mut waiting, &socket);
        // A client that misses it asks again, or gives up.
        let _ = socket.send(&CONNECT_REPLY);
        Ok(Some((socket, peer)))
    }
}

impl Drop for PortTurn<'_> {
    fn drop(&mut self) {
        self.udp_port.lock_waiting().remove(&self.client);
    }
}
