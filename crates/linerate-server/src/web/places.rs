//! Places of HTTP connections: so many in all, and so many of one client's network.
//!
//! A full table makes room: the connection that has been silent for longest goes, one of the
//! network that has the most. A client that opens hundreds and leaves them idle loses its own, and
//! keeps nobody out. A network is an IPv4 address or the /64 of an IPv6 one (RFC 4291 §2.5.4).

use std::collections::BTreeMap;
use std::net::{IpAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_sys::tcp;

/// A browser's tests say something ten times a second.
const IN_USE: Duration = Duration::from_secs(1);

/// Open connections of HTTP, within a limit for all and one for each network of clients.
#[derive(Debug)]
pub(crate) struct HttpConnectionTable {
    limit: usize,
    /// Most connections of one network of clients.
    share: usize,
    /// A connection that is silent for less is in use: its own network cannot push it out.
    in_use: Duration,
    inner: Mutex<HttpTableInner>,
}

#[derive(Debug, Default)]
struct HttpTableInner {
    serial: u64,
    /// With those that were sent away and are still ending.
    open: usize,
    connections: BTreeMap<u64, HttpConnection>,
}

#[derive(Debug)]
struct HttpConnection {
    network: Network,
    /// A second handle, by which it is sent away.
    handle: TcpStream,
}

/// An IPv4 address, or the upper half of an IPv6 one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Network(IpAddr);

impl Network {
    fn of_client(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(it) => IpAddr::V6((u128::from(it) >> 64 << 64).into()),
            other => other,
        })
    }
}

/// A connection's place, as long as anybody holds it.
#[derive(Clone, Debug)]
pub(crate) struct HttpConnectionSlot(
    #[expect(dead_code, reason = "kept until it drops")] Arc<HttpSlotGuard>,
);

#[derive(Debug)]
struct HttpSlotGuard {
    places: Arc<HttpConnectionTable>,
    serial: u64,
}

impl HttpConnectionTable {
    /// Places for `limit` connections, three quarters of them at most for one network: a test over
    /// TLS and an office behind one address fit.
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        Self { limit, share: limit - limit / 4, in_use: IN_USE, inner: Mutex::default() }
    }

    /// A place for a connection; where there is none the most silent of the fullest network goes.
    /// `None` where all of those are in use, or too many are still ending.
    pub(crate) fn take_slot(
        places: &Arc<Self>,
        stream: &TcpStream,
        client: IpAddr,
    ) -> Option<HttpConnectionSlot> {
        let network = Network::of_client(client);
        let handle = stream.try_clone().ok()?;
        let mut inner = places.lock();
        if inner.network_count(network) >= places.share {
            inner.send_away(network, places.in_use)?;
        } else if inner.connections.len() >= places.limit {
            let fullest = inner.fullest()?;
            // One with no more than the newcomer's would have, and in use, owes it nothing.
            let has_more = inner.network_count(fullest) > inner.network_count(network) + 1;
            let least = if has_more { Duration::ZERO } else { places.in_use };
            inner.send_away(fullest, least)?;
        }
        if inner.open >= 2 * places.limit {
            return None;
        }
        inner.open += 1;
        inner.serial += 1;
        let serial = inner.serial;
        inner.connections.insert(serial, HttpConnection { network, handle });
        Some(HttpConnectionSlot(Arc::new(HttpSlotGuard { places: Arc::clone(places), serial })))
    }

    fn lock(&self) -> MutexGuard<'_, HttpTableInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpTableInner {
    fn network_count(&self, network: Network) -> usize {
        self.connections.values().filter(|connection| connection.network == network).count()
    }

    /// The network with the most connections.
    fn fullest(&self) -> Option<Network> {
        let mut counts = BTreeMap::<Network, usize>::new();
        for connection in self.connections.values() {
            *counts.entry(connection.network).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(network, _)| network)
    }

    /// Ends a network's connection of the longest silence, if that is as long; of two that are as
    /// silent the older.
    fn send_away(&mut self, network: Network, least: Duration) -> Option<()> {
        let own = self.connections.iter().filter(|(_, it)| it.network == network);
        // One without an account is gone already.
        let silences = own.map(|(serial, it)| {
            (tcp::silence(it.handle.as_fd()).unwrap_or(Duration::MAX), u64::MAX - serial)
        });
        let (silence, inverse) = silences.max()?;
        if silence < least {
            return None;
        }
        let oldest = self.connections.remove(&(u64::MAX - inverse))?;
        // Its task reads an error or the end, and drops the place.
        tcp::abort_connection(&oldest.handle);
        Some(())
    }
}

impl Drop for HttpSlotGuard {
    fn drop(&mut self) {
        let mut inner = self.places.lock();
        inner.open -= 1;
        drop(inner.connections.remove(&self.serial));
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};
    use std::net::TcpListener;

    use super::*;

    fn connections(count: usize) -> Vec<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let pair = |_| {
            let client = TcpStream::connect(address).expect("it listens");
            (client, listener.accept().expect("a connection").0)
        };
        (0..count).map(pair).collect()
    }

    fn parse_ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn all_addresses_of_an_ipv6_client_are_one_network() {
        let network = |text| Network::of_client(parse_ip(text));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:0:0:9"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:192.0.2.1"), network("192.0.2.1"));
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }

    /// Places where a connection is in use for so long after it said something.
    fn places(limit: usize, in_use_s: u64) -> Arc<HttpConnectionTable> {
        Arc::new(HttpConnectionTable {
            in_use: Duration::from_secs(in_use_s),
            ..HttpConnectionTable::new(limit)
        })
    }

    fn is_closed((client, _): &mut (TcpStream, TcpStream)) -> bool {
        client.set_nonblocking(true).expect("ours");
        let open = client.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        !open
    }

    #[test]
    fn the_fullest_network_makes_room_for_one_that_has_less() {
        let (places, mut pairs) = (places(4, 3600), connections(8));
        let enter = |at: usize, from: &str, pairs: &[(TcpStream, TcpStream)]| {
            HttpConnectionTable::take_slot(&places, &pairs[at].1, parse_ip(from))
        };
        let first = [(0, "192.0.2.1"), (1, "192.0.2.1"), (2, "192.0.2.2"), (3, "192.0.2.3")];
        let mut entered: Vec<_> = first.map(|(at, from)| enter(at, from, &pairs)).into();
        assert!(entered.iter().all(Option::is_some), "four places");
        assert!(enter(4, "192.0.2.1", &pairs).is_none(), "it has the most, and uses them");
        entered.push(enter(5, "192.0.2.4", &pairs));
        assert!(entered[4].is_some(), "it had none, the first two");
        let closed: Vec<bool> = pairs[..4].iter_mut().map(is_closed).collect();
        assert_eq!(closed, [true, false, false, false], "the older of the first's");
        assert!(enter(6, "192.0.2.5", &pairs).is_none(), "each has one, and uses it");
        entered.remove(1);
        assert!(enter(7, "192.0.2.5", &pairs).is_some(), "a place was given up");
    }

    #[test]
    fn the_oldest_idle_connection_of_a_network_makes_room_for_its_next() {
        let (places, mut pairs) = (places(4, 0), connections(4));
        let entered: Vec<_> = pairs
            .iter()
            .map(|pair| HttpConnectionTable::take_slot(&places, &pair.1, parse_ip("192.0.2.1")))
            .collect();
        assert!(entered.iter().all(Option::is_some), "three of four, and one for the oldest");
        let closed: Vec<bool> = pairs.iter_mut().map(is_closed).collect();
        assert_eq!(closed, [true, false, false, false]);
    }
}
