//! Where data streams of tests arrive: the client names the port, so tests take turns at it.
//!
//! A port where this program listens anyway hands its connections over; any other is opened for
//! the moment in which the streams of one test connect. Connections from another address than the
//! test's are closed.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_core::record::Failure;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::poll::any_readable;
use linerate_sys::tcp::{self, TcpOptions};

/// Shared by the tests of a server and its listeners.
#[derive(Debug, Default)]
pub struct DataPorts {
    /// Ports where this program listens, whatever for.
    own: Vec<u16>,
    turns: Mutex<HashMap<u16, Arc<()>>>,
    waiting: Mutex<HashMap<(u16, IpAddr), Sender<TcpStream>>>,
}

/// The ports of one test; the next test has its turn when this is dropped.
pub(super) struct Turn<'a> {
    ports: &'a DataPorts,
    peer: IpAddr,
    first: u16,
    /// One for each stream: its listener, or what another listener hands over.
    places: Vec<Place>,
    _taken: Vec<Arc<()>>,
}

enum Place {
    Listener(TcpListener),
    HandedOver(Receiver<TcpStream>),
}

/// How often arrivals and turns are looked for.
const LOOK: Duration = Duration::from_millis(2);

impl DataPorts {
    /// Of a server that listens on these ports itself.
    pub fn beside(own: Vec<u16>) -> Self {
        Self { own, ..Self::default() }
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

    /// Waits for a turn at `count` ports from `first` on, and listens there; none when nobody
    /// gives them up for `patience`.
    pub(super) fn listen(
        &self,
        local: IpAddr,
        peer: IpAddr,
        (first, count): (u16, u16),
        (options, patience): (&TcpOptions, Duration),
    ) -> Result<Option<Turn<'_>>, Failure> {
        let deadline = monotonic() + patience;
        let ports = first..=first.saturating_add(count - 1);
        let taken = loop {
            if let Some(taken) = self.take(ports.clone()) {
                break taken;
            }
            if monotonic() >= deadline {
                return Ok(None);
            }
            sleep(LOOK);
        };
        let mut turn = Turn { ports: self, peer, first, places: Vec::new(), _taken: taken };
        for port in ports {
            let place = if self.own.contains(&port) {
                let (sender, arrivals) = channel();
                lock(&self.waiting).insert((port, peer), sender);
                Place::HandedOver(arrivals)
            } else {
                let options = TcpOptions { congestion_control: None, ..options.clone() };
                let listener = tcp::listen(SocketAddr::new(local, port), &options);
                Place::Listener(listener.map_err(|error| crate::failure::system(&error))?)
            };
            turn.places.push(place);
        }
        Ok(Some(turn))
    }

    /// All ports at once, or none.
    fn take(&self, ports: impl Iterator<Item = u16> + Clone) -> Option<Vec<Arc<()>>> {
        let mut turns = lock(&self.turns);
        turns.retain(|_, holder| Arc::strong_count(holder) > 1);
        if ports.clone().any(|port| turns.contains_key(&port)) {
            return None;
        }
        let take = |port| Arc::clone(turns.entry(port).or_default());
        Some(ports.map(take).collect())
    }
}

impl Turn<'_> {
    /// The stream that has come to some place, if one has within a look.
    pub(super) fn arrival(&self) -> Option<(u16, TcpStream)> {
        let listeners: Vec<_> = self
            .places
            .iter()
            .filter_map(|place| match place {
                Place::Listener(listener) => Some(std::os::fd::AsFd::as_fd(listener)),
                Place::HandedOver(_) => None,
            })
            .collect();
        if listeners.is_empty() {
            sleep(LOOK);
        } else {
            // A failed wait is a look without an arrival.
            let _ = any_readable(&listeners, LOOK);
        }
        self.places.iter().zip(0_u16..).find_map(|(place, flow)| {
            let stream = match place {
                Place::HandedOver(arrivals) => arrivals.try_recv().ok()?,
                Place::Listener(listener) => self.accept(listener)?,
            };
            Some((flow, stream))
        })
    }

    fn accept(&self, listener: &TcpListener) -> Option<TcpStream> {
        linerate_sys::poll::readable(listener, Duration::ZERO).ok().filter(|ready| *ready)?;
        let (stream, peer) = listener.accept().ok()?;
        (peer.ip().to_canonical() == self.peer).then_some(stream)
    }
}

impl Drop for Turn<'_> {
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
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn turn(ports: &DataPorts, first: u16, count: u16) -> Option<Turn<'_>> {
        let how = (&TcpOptions::default(), Duration::ZERO);
        ports.listen(HERE, HERE, (first, count), how).expect("free ports")
    }

    #[test]
    fn tests_take_turns_at_a_port_and_at_any_of_several() {
        // Own ports need no listener, so that the test needs no free ones.
        let ports = DataPorts::beside((40_000..40_010).collect());
        let first = turn(&ports, 40_000, 3);
        assert!(first.is_some());
        assert!(turn(&ports, 40_002, 1).is_none(), "the first test has it");
        let beside = turn(&ports, 40_003, 2);
        assert!(beside.is_some());
        drop(first);
        assert!(turn(&ports, 40_002, 1).is_some());
        assert!(turn(&ports, 40_002, 2).is_none(), "40003 is still another's");
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
        let turn = turn(&ports, 40_000, 1).expect("free");
        let elsewhere = IpAddr::from([192, 0, 2, 1]);
        assert!(ports.deliver(40_000, elsewhere, connect()).is_err());
        assert!(ports.deliver(40_000, HERE, connect()).is_ok());
        assert_eq!(turn.arrival().map(|(flow, _)| flow), Some(0));
        drop(turn);
        assert!(ports.deliver(40_000, HERE, connect()).is_err(), "its turn is over");
    }
}
