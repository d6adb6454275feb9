//! One connection over TLS, on a thread of its own: its handshake, then HTTP/1.1 or HTTP/2.
//!
//! Over HTTP/2 requests share the connection, and load of several is one flow (`Guest`). Windows
//! are as large as a long path needs (RFC 9113 §5.2), and what is not read stays within them.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use linerate_engine::http_load::Guest;
use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connection::{HEAD_WITHIN, HttpService, LIFE, RequestOrigin, respond};
use super::places::HttpConnectionSlot;
use super::store_visit;
use super::tls::{ACME, HTTP2};

/// Requests of one connection at once.
const REQUESTS: u32 = 64;
/// Bytes that a client may send before they are read (`WINDOW`), and bytes of one request's answer
/// that wait to be sent (`SEND_BUFFER`).
const WINDOW: u32 = 8 << 20;
const SEND_BUFFER: usize = 256 << 10;
/// A head of HTTP/2.
const HEAD_BYTES: u32 = 16 * 1024;
/// A peer that answers no ping is gone.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks whether the connection keeps a place for nothing, or the server ends.
const LOOK: Duration = Duration::from_millis(250);
/// Without any load a connection of HTTP/2 lives so long.
const PLAIN_LIFE: Duration = Duration::from_secs(60);
/// One that tested has this long once its end was said: a client that grants an answer no window
/// (RFC 9113 §5.2) would keep the place. Others may still read events, until the end of `LIFE`.
const LEAVE: Duration = Duration::from_secs(10);

/// Serves a connection to its end.
pub(crate) fn serve_tls(
    service: &HttpService,
    stream: TcpStream,
    peer: SocketAddr,
    tls: Arc<ServerConfig>,
    place: HttpConnectionSlot,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (runtime, wire) = match (runtime, stream.try_clone()) {
        (Ok(runtime), Ok(wire)) => (runtime, wire),
        (Err(error), _) | (_, Err(error)) => return tracing::warn!(%peer, "TLS: {error}"),
    };
    let guest = Guest::new(wire, peer);
    let talk = serve_tls_stream(service.clone(), stream, peer, tls, place, Arc::clone(&guest));
    runtime.block_on(async {
        if tokio::time::timeout(LIFE, talk).await.is_err() {
            tracing::debug!(%peer, "TLS: open for {} s", LIFE.as_secs());
        }
    });
    // With it go all requests of the connection.
    drop(runtime);
    if let Some(end) = Guest::leave_visit(guest) {
        let text = store_visit(service.shared_state(), end, peer);
        tracing::info!(%peer, "{}", text.line);
    }
}

async fn serve_tls_stream(
    service: HttpService,
    stream: TcpStream,
    peer: SocketAddr,
    tls: Arc<ServerConfig>,
    place: HttpConnectionSlot,
    guest: Arc<Guest>,
) {
    let stream = match tokio::net::TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%peer, "TLS: {error}"),
    };
    let asking = RequestOrigin::new(peer, stream.local_addr().ok(), place);
    let handshake = TlsAcceptor::from(tls).accept(stream);
    match tokio::time::timeout(HEAD_WITHIN, handshake).await {
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(HTTP2) => {
            let asking = asking.over_tls(Some(Arc::clone(&guest)));
            talk_http2(service, stream, asking, guest).await;
        }
        // An authority has seen what it asked for (RFC 8737 §3).
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(ACME) => {
            tracing::debug!(%peer, "TLS: asked for a proof of a name");
        }
        Ok(Ok(stream)) => service.serve_stream(stream, asking.over_tls(None)).await,
        Ok(Err(error)) => tracing::debug!(%peer, "TLS: {error}"),
        Err(_) => tracing::debug!(%peer, "TLS: no handshake in {HEAD_WITHIN:?}"),
    }
}

async fn talk_http2(
    service: HttpService,
    stream: TlsStream<tokio::net::TcpStream>,
    asking: RequestOrigin,
    guest: Arc<Guest>,
) {
    let peer = asking.peer.0;
    let router = service.router();
    let answer = move |request| respond(router.clone(), request, asking.clone());
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(REQUESTS)
        .max_header_list_size(HEAD_BYTES)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_WITHIN)
        .serve_connection(TokioIo::new(stream), hyper::service::service_fn(answer));
    let mut connection = std::pin::pin!(connection);
    let mut look = tokio::time::interval(LOOK);
    let mut life = std::pin::pin!(tokio::time::sleep(PLAIN_LIFE));
    let mut looks_to_leave = LEAVE.as_millis() / LOOK.as_millis();
    let mut is_ending = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%peer, "HTTP/2: {error}");
                }
                return;
            }
            () = life.as_mut(), if !life.is_elapsed() => {}
            _ = look.tick() => looks_to_leave -= u128::from(is_ending && guest.is_idle()),
        }
        if service.shared_state().ends.is_requested() || looks_to_leave == 0 || guest.is_overdue() {
            return;
        }
        if guest.is_idle() || (life.is_elapsed() && !guest.has_begun()) {
            is_ending = guest.has_begun();
            connection.as_mut().graceful_shutdown();
        }
    }
}
