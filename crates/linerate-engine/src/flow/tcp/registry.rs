//! Where data connections find the test that waits for them, by token.

use std::collections::HashMap;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_proto::native::{DataHello, Token};

type Arrivals = Sender<(DataHello, TcpStream)>;

/// Shared between the listener and the tests that it runs.
#[derive(Clone, Debug, Default)]
pub struct DataRegistry {
    waiting: Arc<Mutex<HashMap<Token, Arrivals>>>,
}

/// A test's place in the registry, given up when dropped.
#[derive(Debug)]
pub struct Registration {
    token: Token,
    registry: DataRegistry,
    /// Data connections as they arrive.
    pub(super) arrivals: Receiver<(DataHello, TcpStream)>,
}

impl DataRegistry {
    /// Waits for data connections that carry `token`.
    pub fn register(&self, token: Token) -> Registration {
        let (sender, arrivals) = channel();
        self.lock().insert(token, sender);
        Registration { token, registry: self.clone(), arrivals }
    }

    /// Hands a data connection to its test; drops it when nobody waits.
    pub fn deliver(&self, hello: DataHello, stream: TcpStream) {
        if let Some(sender) = self.lock().get(&hello.token) {
            let _ = sender.send((hello, stream));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Token, Arrivals>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.token);
    }
}
