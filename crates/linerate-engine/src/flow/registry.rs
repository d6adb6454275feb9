//! Where data connections find the test that waits for them, by what they say of it first.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Running tests; those that have all their streams wait for no more.
type Tests<K, V> = Arc<Mutex<HashMap<K, Option<Sender<V>>>>>;

/// Shared between the listener and the tests that it runs.
#[derive(Debug)]
pub struct Registry<K, V> {
    tests: Tests<K, V>,
}

/// A running test's place in the registry, given up when dropped: nobody else has its key.
#[derive(Debug)]
pub(crate) struct Registration<K: Eq + Hash, V> {
    key: K,
    tests: Tests<K, V>,
    /// Data connections as they arrive.
    pub(crate) arrivals: Receiver<V>,
}

impl<K, V> Default for Registry<K, V> {
    fn default() -> Self {
        Self { tests: Arc::default() }
    }
}

impl<K: Eq + Hash + Copy, V> Registry<K, V> {
    /// Hands a connection to the test that waits for it, or gives it back.
    /// # Errors
    /// The connection, when nobody waits for it.
    pub fn deliver(&self, key: &K, arrival: V) -> Result<(), V> {
        match lock(&self.tests).get(key) {
            Some(Some(sender)) => sender.send(arrival).map_err(|unsent| unsent.0),
            Some(None) | None => Err(arrival),
        }
    }

    /// Waits for data connections with `key`; `None` when a test with it runs already.
    pub(crate) fn register(&self, key: K) -> Option<Registration<K, V>> {
        let (sender, arrivals) = channel();
        let mut tests = lock(&self.tests);
        if tests.contains_key(&key) {
            return None;
        }
        tests.insert(key, Some(sender));
        Some(Registration { key, tests: Arc::clone(&self.tests), arrivals })
    }
}

impl<K: Eq + Hash + Copy, V> Registration<K, V> {
    /// The test has all its streams.
    pub(crate) fn complete(&self) {
        lock(&self.tests).insert(self.key, None);
    }
}

impl<K: Eq + Hash, V> Drop for Registration<K, V> {
    fn drop(&mut self) {
        lock(&self.tests).remove(&self.key);
    }
}

fn lock<T>(tests: &Mutex<T>) -> MutexGuard<'_, T> {
    tests.lock().unwrap_or_else(PoisonError::into_inner)
}
