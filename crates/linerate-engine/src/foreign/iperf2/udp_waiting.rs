//! Datagrams that wait while the UDP port gives one client its socket: until that is connected, the
//! kernel hands it what is sent to the port by anybody, for as long as a busy host keeps the port's
//! thread from going on.

use std::collections::VecDeque;
use std::net::SocketAddr;

use linerate_core::time::MonoTime;

use super::udp_arrivals::BUFFER_BYTES_MAX;

/// Datagrams that a full buffer holds at most: the kernel charges 768 bytes for the smallest (a
/// struct sk_buff of 256 with 512 for its data), and doubles what is asked for (socket(7)).
pub(super) const BUFFERED_MAX: usize = 2 * BUFFER_BYTES_MAX as usize / 768;
/// Payload that waits at most: what one such buffer holds.
const BYTES_MAX: usize = BUFFER_BYTES_MAX as usize;

/// One datagram that waits.
#[derive(Debug)]
pub(super) struct QueuedDatagram {
    pub(super) from: SocketAddr,
    pub(super) bytes: Vec<u8>,
    /// When it came, by the kernel where it tells.
    pub(super) at: MonoTime,
}

/// Datagrams of other clients, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct DatagramQueue {
    datagrams: VecDeque<QueuedDatagram>,
    bytes: usize,
}

impl DatagramQueue {
    /// Has one wait, where there is room.
    pub(super) fn add(&mut self, from: SocketAddr, bytes: &[u8], at: MonoTime) {
        let all = self.bytes + bytes.len();
        if self.datagrams.len() < BUFFERED_MAX && all <= BYTES_MAX {
            self.bytes = all;
            self.datagrams.push_back(QueuedDatagram { from, bytes: bytes.to_vec(), at });
        }
    }

    /// The one that waits longest.
    pub(super) fn next(&mut self) -> Option<QueuedDatagram> {
        let datagram = self.datagrams.pop_front()?;
        self.bytes -= datagram.bytes.len();
        Some(datagram)
    }

    /// Takes all datagrams of one client, which has a socket now.
    pub(super) fn take_of(&mut self, peer: SocketAddr) -> VecDeque<QueuedDatagram> {
        let all = std::mem::take(&mut self.datagrams);
        let (own, others) = all.into_iter().partition(|datagram| canonical(datagram.from) == peer);
        self.datagrams = others;
        self.bytes = self.datagrams.iter().map(|datagram| datagram.bytes.len()).sum();
        own
    }
}

/// A client's address in its own family, whatever that of the socket.
pub(super) fn canonical(from: SocketAddr) -> SocketAddr {
    SocketAddr::new(from.ip().to_canonical(), from.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_half_a_second_at_100_mbit_s_is_lost_while_a_client_gets_its_socket() {
        let client = |port: u16| SocketAddr::from(([192, 0, 2, 1], port));
        let (mut waiting, now) = (DatagramQueue::default(), MonoTime::default());
        // Eight streams, together 8,500 datagrams of 1,470 bytes a second.
        (0..4250_u16).for_each(|number| waiting.add(client(number % 8), &[0; 1470], now));
        let own = waiting.take_of(client(3)).len();
        let others = std::iter::from_fn(|| waiting.next()).count();
        assert_eq!((own, others, waiting.bytes), (531, 3719, 0));
    }

    #[test]
    fn what_waits_has_a_most_in_datagrams_and_in_bytes() {
        let from = SocketAddr::from(([192, 0, 2, 1], 5001));
        let (mut waiting, now) = (DatagramQueue::default(), MonoTime::default());
        (0..30_000).for_each(|_| waiting.add(from, &[1], now));
        assert_eq!(waiting.take_of(from).len(), BUFFERED_MAX);
        (0..300).for_each(|_| waiting.add(from, &[0; 65_507], now));
        assert_eq!(waiting.take_of(from).len(), BYTES_MAX / 65_507);
        assert_eq!(waiting.bytes, 0);
    }
}
