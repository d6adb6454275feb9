//! Payload that streams of this process moved, by client: for servers that have budgets.
//!
//! Every stream of every protocol counts here when it ends, well or not.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes moved by client; nothing is counted until a server asks.
static MOVED: Mutex<Option<HashMap<IpAddr, u64>>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<HashMap<IpAddr, u64>>> {
    MOVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to count bytes by client.
pub fn start_counting() {
    lock().get_or_insert_default();
}

/// Bytes moved since the last call, by the client's address.
pub fn take_client_bytes() -> Vec<(IpAddr, u64)> {
    lock().as_mut().map(|moved| moved.drain().collect()).unwrap_or_default()
}

/// Counts what was moved with a client, whose address is as in records.
pub(crate) fn add_client_bytes(client_addr: &str, bytes: u64) {
    let Some(client) = client_addr.parse::<SocketAddr>().ok().filter(|_| bytes > 0) else { return };
    if let Some(moved) = lock().as_mut() {
        let count = moved.entry(client.ip()).or_default();
        *count = count.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_by_client_once_a_server_asks() {
        // No other test of this crate has clients of this network.
        let of = |moved: Vec<(IpAddr, u64)>| {
            let ours = IpAddr::from([203, 0, 113, 77]);
            moved.into_iter().find(|(client, _)| *client == ours).map(|(_, bytes)| bytes)
        };
        add_client_bytes("203.0.113.77:1", 5);
        start_counting();
        assert_eq!(of(take_client_bytes()), None, "nobody had asked");
        add_client_bytes("203.0.113.77:1", 5);
        add_client_bytes("203.0.113.77:2", 7);
        add_client_bytes("", 1);
        assert_eq!(of(take_client_bytes()), Some(12));
        assert_eq!(of(take_client_bytes()), None);
    }
}
