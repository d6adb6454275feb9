//! One connection of HTTP on the runtime: its limits, and what every answer carries.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Extensions, HeaderName, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use linerate_engine::http_load::Guest;
use tokio::io::{AsyncRead, AsyncWrite};
use tower::ServiceExt;

use super::content_policy::CONTENT_POLICY;
use super::error::{ApiError, in_one_shape};
use super::places::HttpConnectionSlot;
use super::request::{Local, OverTls, Peer};
use super::state::State;

/// A request has this long for its head, and an answer to begin.
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// No connection lives longer, whatever it does.
pub(crate) const LIFE: Duration = Duration::from_secs(900);
/// A head, and what is read at once of a body.
const BUFFER_BYTES: usize = 16 * 1024;

/// Header fields of every answer: browsers guess no type, frame the page nowhere and fetch nothing
/// from elsewhere for it, and give it their finest clocks (cross-origin isolation).
const FIELDS: [(&str, &str); 8] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-robots-tag", "noindex, nofollow"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];

/// Origin of a request: the client's address, the connection's place and whether it is over TLS.
/// Handlers find the parts among the request's extensions.
#[derive(Clone)]
pub(crate) struct RequestOrigin {
    pub(crate) peer: Peer,
    local: Local,
    place: HttpConnectionSlot,
    over_tls: OverTls,
    guest: Option<Arc<Guest>>,
}

impl RequestOrigin {
    pub(crate) const fn new(
        peer: SocketAddr,
        local: Option<SocketAddr>,
        place: HttpConnectionSlot,
    ) -> Self {
        let (peer, local, over_tls) = (Peer(peer), Local(local), OverTls(false));
        Self { peer, local, place, over_tls, guest: None }
    }

    #[cfg(feature = "tls")]
    /// The same over TLS; over HTTP/2, too, with what accounts for the connection.
    pub(crate) fn over_tls(self, guest: Option<Arc<Guest>>) -> Self {
        Self { over_tls: OverTls(true), guest, ..self }
    }

    fn beside(self, extensions: &mut Extensions) {
        extensions.insert(self.peer);
        extensions.insert(self.local);
        extensions.insert(self.over_tls);
        extensions.insert(self.place);
        self.guest.map(|guest| extensions.insert(guest));
    }
}

/// Serves connections of HTTP/1.1 by the server's routes.
#[derive(Clone)]
pub(crate) struct HttpService {
    state: Arc<State>,
    router: Router,
}

impl HttpService {
    pub(crate) fn new(state: Arc<State>) -> Self {
        let router = super::api::router(Arc::clone(&state));
        Self { state, router }
    }

    /// One request and its answer, and what becomes of the connection after an upgrade.
    pub(crate) async fn serve_stream<S>(self, stream: S, asking: RequestOrigin)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let peer = asking.peer.0;
        let router = self.router;
        let answer = move |request| respond(router.clone(), request, asking.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_WITHIN)
            .keep_alive(false)
            .max_buf_size(BUFFER_BYTES)
            .serve_connection(TokioIo::new(stream), hyper::service::service_fn(answer))
            .with_upgrades();
        if let Err(error) = connection.await {
            tracing::debug!(%peer, "HTTP: {error}");
        }
    }

    #[cfg(feature = "tls")]
    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    pub(crate) fn shared_state(&self) -> &State {
        &self.state
    }
}

/// One request and its answer.
pub(crate) async fn respond(
    router: Router,
    request: Request<hyper::body::Incoming>,
    asking: RequestOrigin,
) -> Result<Response, std::convert::Infallible> {
    let mut request = request.map(Body::new);
    let path = request.uri().path().to_owned();
    let peer = asking.peer.0;
    // HTTP/2 has the host in the target (RFC 9113 section 8.3.1).
    let authority =
        request.uri().authority().map(|authority| HeaderValue::from_str(authority.as_str()));
    if let Some(Ok(host)) = authority {
        request.headers_mut().entry(header::HOST).or_insert(host);
    }
    asking.beside(request.extensions_mut());
    let response = match tokio::time::timeout(ANSWER_WITHIN, router.oneshot(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => {
            let say = format!("no whole request within {} s", ANSWER_WITHIN.as_secs());
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "bad_request", say).into_response()
        }
    };
    let response = in_one_shape(response);
    tracing::debug!(%peer, "HTTP {} {path}", response.status().as_u16());
    Ok(with_fields(response))
}

fn with_fields(mut response: Response) -> Response {
    let fields = response.headers_mut();
    for (name, value) in FIELDS {
        fields.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    fields
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(CONTENT_POLICY));
    fields.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
