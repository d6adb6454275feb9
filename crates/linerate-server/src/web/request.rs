//! What every request has beside it: who asks, and the place of its connection.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, header};
use tokio::sync::OwnedSemaphorePermit;

/// Who asks: beside each request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// A connection's place, as long as anybody holds it.
#[derive(Clone, Debug)]
pub(crate) struct Place(#[expect(dead_code, reason = "held")] pub(crate) Arc<OwnedSemaphorePermit>);

/// The host that a client asked for, as it may stand in a command line.
pub(crate) fn asked_host(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]%".contains(&byte);
    (!host.is_empty() && host.len() <= 255 && host.bytes().all(plain)).then(|| host.to_owned())
}
