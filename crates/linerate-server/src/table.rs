//! The connections that a server has open: so many at most, and those that have not said what they
//! are make room for new ones, the oldest first.
//!
//! A connection has said what it is when it asks for a test, or has shown the token or cookie of
//! one; until then it may be garbage, and garbage that comes in masses would else keep clients out.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_engine::flow::admission::{Admission, Allowed, Demand, Permit};
use linerate_proto::native::{Nonce, Proof, Refuse};
use linerate_sys::tcp;

use crate::admission::ServerLimits;

/// Descriptors of the process that are kept for other things than new connections: listeners,
/// files, and the streams of tests.
const DESCRIPTORS_KEPT: u64 = 64;

/// Count of open connections, within a limit.
#[derive(Debug)]
pub(crate) struct ConnectionTable {
    limit: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    serial: u64,
    open: usize,
    /// Second handles of those that have not said what they are, oldest first.
    strangers: BTreeMap<u64, TcpStream>,
}

/// A connection's place, given up when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot<'a> {
    table: &'a ConnectionTable,
    serial: u64,
}

impl ConnectionTable {
    /// A table for `limit` connections, or as many as the process may have descriptors for: two
    /// each while they are strangers, and as many again for what they open.
    pub(crate) fn new(limit: usize) -> Self {
        let files = linerate_sys::open_files::current_limit();
        let fitting = files.map(|files| files.saturating_sub(DESCRIPTORS_KEPT) / 4);
        let fitting =
            fitting.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        Self { limit: limit.min(fitting).max(1), inner: Mutex::default() }
    }

    /// The same limits, with half of the places left to clients that are not of one test.
    pub(crate) fn fitted(&self, limits: ServerLimits) -> ServerLimits {
        let most = u16::try_from(self.limit / 2).unwrap_or(u16::MAX).max(1);
        ServerLimits { streams: limits.streams.min(most), connections: self.limit, ..limits }
    }

    /// Most connections that may be open at once.
    pub(crate) const fn connection_limit(&self) -> usize {
        self.limit
    }

    /// True where no connection is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().open == 0
    }

    /// A place for a connection; where all are taken the oldest stranger goes. `None` where there
    /// is none to go, or too many are still going.
    pub(crate) fn take_slot(&self, stream: &TcpStream) -> Option<ConnectionSlot<'_>> {
        let mut inner = self.lock();
        if inner.open >= self.limit {
            let (_, oldest) = inner.strangers.pop_first()?;
            // Its thread reads an error or the end, and gives the place up.
            tcp::abort_connection(&oldest);
            if inner.open >= 2 * self.limit {
                return None;
            }
        }
        inner.open += 1;
        inner.serial += 1;
        let serial = inner.serial;
        // Without a second handle it cannot be sent away, and ends by its own time limits.
        if let Ok(handle) = stream.try_clone() {
            inner.strangers.insert(serial, handle);
        }
        Some(ConnectionSlot { table: self, serial })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot<'_> {
    /// The connection has said what it is, and stays.
    pub(crate) fn mark_identified(&self) {
        drop(self.table.lock().strangers.remove(&self.serial));
    }
}

impl Drop for ConnectionSlot<'_> {
    fn drop(&mut self) {
        let mut inner = self.table.lock();
        inner.open -= 1;
        drop(inner.strangers.remove(&self.serial));
    }
}

/// An admission that takes note of who asks: that connection is no stranger any more.
pub(crate) struct Knowing<'a> {
    /// The admission that decides.
    pub(crate) admission: &'a dyn Admission,
    /// The connection that asks.
    pub(crate) place: &'a ConnectionSlot<'a>,
}

impl Admission for Knowing<'_> {
    fn admit_test(&self, demand: &Demand, peer: SocketAddr) -> Result<Permit, Refuse> {
        self.place.mark_identified();
        decided(demand, peer, self.admission.admit_test(demand, peer))
    }

    fn admit_in_turn(&self, demand: &Demand, peer: SocketAddr) -> Result<Permit, Refuse> {
        self.place.mark_identified();
        decided(demand, peer, self.admission.admit_in_turn(demand, peer))
    }

    fn log_in(&self, challenge: Nonce, proof: &Proof) {
        self.admission.log_in(challenge, proof);
    }

    fn duration_max(&self) -> Duration {
        self.admission.duration_max()
    }

    fn allowed(&self) -> Allowed {
        self.admission.allowed()
    }

    fn overdue(&self) -> String {
        self.admission.overdue()
    }

    fn grace_period(&self) -> Duration {
        self.admission.grace_period()
    }

    fn patience(&self) -> Duration {
        self.admission.patience()
    }
}

/// Logs whether a client was admitted, and hands the decision on.
fn decided(
    demand: &Demand,
    peer: SocketAddr,
    decision: Result<Permit, Refuse>,
) -> Result<Permit, Refuse> {
    match &decision {
        Ok(_) => tracing::debug!(%peer, "admitted with {} streams", demand.streams),
        Err(refuse) => tracing::debug!(%peer, "refused: {}", refuse.reason),
    }
    decision
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    fn connections(count: usize) -> Vec<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let pair = |_| {
            let client = TcpStream::connect(address).expect("it listens");
            (client, listener.accept().expect("it came").0)
        };
        (0..count).map(pair).collect()
    }

    #[test]
    fn the_oldest_stranger_makes_room_and_those_that_are_known_stay() {
        let table = ConnectionTable::new(3);
        let mut pairs = connections(6);
        let first = table.take_slot(&pairs[0].1).expect("a place");
        let _second = table.take_slot(&pairs[1].1).expect("a place");
        let third = table.take_slot(&pairs[2].1).expect("a place");
        first.mark_identified();
        let fourth = table.take_slot(&pairs[3].1).expect("the second goes");
        assert!(!matches!(pairs[1].0.read(&mut [0]), Ok(1)), "it was closed");
        assert!(!matches!(pairs[1].1.read(&mut [0]), Ok(1)), "for the server, too");
        third.mark_identified();
        fourth.mark_identified();
        assert!(table.take_slot(&pairs[4].1).is_none(), "nobody is a stranger");
        drop(first);
        drop(fourth);
        assert!(table.take_slot(&pairs[5].1).is_some(), "places were given up");
        pairs[0].0.set_nonblocking(true).expect("ours");
        assert!(pairs[0].0.read(&mut [0]).is_err(), "it is open");
    }

    #[test]
    fn strangers_that_do_not_go_are_not_doubled_without_end() {
        let table = ConnectionTable::new(2);
        let pairs = connections(6);
        let places: Vec<_> = pairs.iter().map(|pair| table.take_slot(&pair.1)).collect();
        let there: Vec<bool> = places.iter().map(Option::is_some).collect();
        assert_eq!(there, [true, true, true, true, false, false]);
    }
}
