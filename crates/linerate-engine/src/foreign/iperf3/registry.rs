//! Where data connections find the test that waits for them, by cookie.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_proto::iperf3::{COOKIE_BYTES, Cookie};

use crate::failure::words_of;
use crate::flow::tcp::control::{plain, read_exactly};

/// A client has this long for its cookie.
const COOKIE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection whose cookie has been read.
#[derive(Debug)]
pub struct Arrival {
    /// The connection.
    pub stream: TcpStream,
    /// Its other end.
    pub peer: SocketAddr,
    /// Its place in the order in which connections were accepted: the order gives streams their
    /// direction and number.
    pub serial: u64,
}

/// Shared between the listener and the tests that it runs.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// Running tests; those that have all their streams wait for no more.
    tests: Arc<Mutex<HashMap<Cookie, Option<Sender<Arrival>>>>>,
}

/// A running test's place in the registry, given up when dropped: nobody else has its cookie.
#[derive(Debug)]
pub(super) struct Registration {
    cookie: Cookie,
    registry: Registry,
    /// Data connections as they arrive.
    pub(super) arrivals: Receiver<Arrival>,
}

/// Reads the first bytes of a connection.
/// # Errors
/// When they are no cookie, or do not come in time.
pub fn read_cookie(stream: &TcpStream, peer: SocketAddr) -> Result<Cookie, Failure> {
    let fail =
        |reason: String| Failure::new(Fault::PeerMisbehaved, "cookie of", plain(peer), reason);
    let mut bytes = [0; COOKIE_BYTES];
    read_exactly(stream, &mut bytes, COOKIE_TIMEOUT).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => fail("it closed the connection without one".into()),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
            fail(format!("none came within {COOKIE_TIMEOUT:?}"))
        }
        _ => fail(words_of(&error)),
    })?;
    Cookie::parse(&bytes).map_err(|error| fail(error.to_string()))
}

impl Registry {
    /// Hands a connection to the test that waits for its cookie, or gives it back: it is then a
    /// control connection.
    /// # Errors
    /// The connection, when nobody waits for it.
    pub fn deliver(&self, cookie: &Cookie, arrival: Arrival) -> Result<(), Arrival> {
        match self.lock().get(cookie) {
            Some(Some(sender)) => sender.send(arrival).map_err(|unsent| unsent.0),
            Some(None) | None => Err(arrival),
        }
    }

    /// Waits for data connections that carry `cookie`; `None` when a test with it runs already.
    pub(super) fn register(&self, cookie: Cookie) -> Option<Registration> {
        let (sender, arrivals) = channel();
        let mut tests = self.lock();
        if tests.contains_key(&cookie) {
            return None;
        }
        tests.insert(cookie, Some(sender));
        Some(Registration { cookie, registry: self.clone(), arrivals })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Cookie, Option<Sender<Arrival>>>> {
        self.tests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registration {
    /// The test has all its streams.
    pub(super) fn complete(&self) {
        self.registry.lock().insert(self.cookie, None);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.cookie);
    }
}
