//! Where a connection is served: plain HTTP by a task of the runtime, TLS on a thread of its own.

use std::net::{SocketAddr, TcpStream};

use linerate_engine::http_load;

use super::Caller;
use super::connection::{HttpService, LIFE, RequestOrigin};
use super::places::{HttpConnectionSlot, HttpConnectionTable};
#[cfg(feature = "tls")]
use super::secure::serve_tls as serve_secure;
#[cfg(not(feature = "tls"))]
use super::tls::serve_tls as serve_secure;

const FULL: &str = "all connections, or those of your address, are taken; try again";

/// Serves a connection, if there is a place for it.
pub(crate) fn serve_connection(service: &HttpService, caller: Caller) {
    let Caller { stream, peer, tls } = caller;
    let Some(place) =
        HttpConnectionTable::take_slot(&service.shared_state().places, &stream, peer.ip())
    else {
        tracing::debug!(%peer, "no place for a connection of HTTP");
        if tls.is_some() {
            return;
        }
        let _ = stream.set_nonblocking(false);
        // Taking the rest of the request may take a moment, which nobody else is to wait for.
        tokio::task::spawn_blocking(move || {
            http_load::refuse(&stream, 503, "busy", FULL);
        });
        return;
    };
    let set = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
    if let Err(error) = set {
        return tracing::warn!(%peer, "HTTP: {error}");
    }
    let service = service.clone();
    let Some(tls) = tls else {
        return drop(tokio::spawn(serve_plain(service, stream, peer, place)));
    };
    // What it moves is not to wait for others: a cipher takes its time.
    let talk = move || serve_secure(&service, stream, peer, tls, place);
    let thread = std::thread::Builder::new().name("linerate-tls".to_owned());
    if let Err(error) = thread.spawn(talk) {
        tracing::warn!(%peer, "closed, no thread for it: {error}");
    }
}

async fn serve_plain(
    service: HttpService,
    stream: TcpStream,
    peer: SocketAddr,
    place: HttpConnectionSlot,
) {
    let stream = match tokio::net::TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%peer, "HTTP: {error}"),
    };
    let asking = RequestOrigin::new(peer, stream.local_addr().ok(), place);
    if tokio::time::timeout(LIFE, service.serve_stream(stream, asking)).await.is_err() {
        tracing::debug!(%peer, "HTTP: open for {} s", LIFE.as_secs());
    }
}
