//! Apple's networkQuality and other clients of draft-ietf-ippm-responsiveness: where to test, one
//! byte, as many as are taken, and whatever is sent up. Over HTTP/2 and TLS 1.3, behind the same
//! gate and policy as every other test. The client computes its responsiveness; the record here
//! has what moved, each connection as one flow.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use linerate_core::policy::Program;
use linerate_core::record::Direction;
use linerate_engine::http_load::{Guest, Leg, VisitCaps, VisitServing};
use linerate_proto::native::{Refuse, RefuseCode};
use linerate_sys::clock::monotonic;
use serde_json::{Value, json};

use super::error::ApiError;
use super::json::Json;
use super::request::{OverTls, Peer, asked_host};
use super::state::State;
use crate::policy_guard::{ClientAllowance, PolicyClient};

const SMALL: &str = "/nq/small";
const LARGE: &str = "/nq/large";
const UPLOAD: &str = "/nq/upload";

/// An answer begins within 30 s, so that what is sent up is answered before.
const UP_MOST: Duration = Duration::from_secs(25);
const DOWN_MOST: Duration = Duration::from_secs(60);

/// `GET /.well-known/nq`: the addresses of a test, for Apple's networkQuality.
pub(crate) async fn config(
    Extension(OverTls(over_tls)): Extension<OverTls>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let host = asked_host(&headers).ok_or_else(|| ApiError::bad_request("Host is missing"))?;
    if !over_tls {
        let say = format!("networkQuality needs TLS: https://{host}/.well-known/nq");
        return Err(ApiError::new(StatusCode::CONFLICT, "limit", say));
    }
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((kind, Json(document(&host))).into_response())
}

/// The draft's names, and those of its first versions, which clients still read.
fn document(host: &str) -> Value {
    let [small, large, upload] = [SMALL, LARGE, UPLOAD].map(|path| format!("https://{host}{path}"));
    json!({
        "version": 1,
        "urls": {
            "small_download_url": small, "large_download_url": large, "upload_url": upload,
            "small_https_download_url": small, "large_https_download_url": large,
            "https_upload_url": upload,
        },
    })
}

/// `GET` of one byte, by which clients time the path.
pub(crate) async fn get_small() -> &'static str {
    "x"
}

/// `GET` of as much as is taken, within the time of a transfer.
pub(crate) async fn get_large(
    Shared(state): Shared<Arc<State>>,
    Extension(Peer(peer)): Extension<Peer>,
    guest: Option<Extension<Arc<Guest>>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let leg = begin_leg(&state, guest, Direction::Down, DOWN_MOST, &headers, peer.ip())?;
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"))];
    Ok((kind, Body::from_stream(futures_util::stream::unfold(leg, next_piece))).into_response())
}

/// The next bytes; none when the time or the budget is over.
async fn next_piece(leg: Leg) -> Option<(Result<Bytes, Infallible>, Leg)> {
    let bytes = leg.take_allowed_bytes();
    if bytes == 0 {
        return None;
    }
    sleep_for(leg.pacing_delay(bytes)).await;
    leg.count_moved_bytes(bytes);
    Some((Ok(Bytes::from_static(Leg::incompressible_bytes(bytes))), leg))
}

/// `POST` of any body: counts what is read, and drops it.
pub(crate) async fn upload(
    Shared(state): Shared<Arc<State>>,
    Extension(Peer(peer)): Extension<Peer>,
    guest: Option<Extension<Arc<Guest>>>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let leg = begin_leg(&state, guest, Direction::Up, UP_MOST, request.headers(), peer.ip())?;
    let left = leg.transfer_deadline().duration_since(monotonic());
    let body = request.into_body().into_data_stream();
    // Over before the body is: the answer says so, and the rest is not read.
    let _ = tokio::time::timeout(left, consume_body(body, &leg)).await;
    Ok(StatusCode::OK)
}

async fn consume_body(mut body: BodyDataStream, leg: &Leg) {
    while let Some(Ok(bytes)) = body.next().await {
        let mut left = bytes.len();
        while left > 0 {
            let drawn = leg.take_allowed_bytes();
            if drawn == 0 {
                return;
            }
            let count = drawn.min(left);
            leg.give_back(drawn - count);
            sleep_for(leg.pacing_delay(count)).await;
            leg.count_moved_bytes(count);
            left -= count;
        }
    }
}

async fn sleep_for(span: Duration) {
    if !span.is_zero() {
        tokio::time::sleep(span).await;
    }
}

fn begin_leg(
    state: &State,
    guest: Option<Extension<Arc<Guest>>>,
    direction: Direction,
    most: Duration,
    headers: &HeaderMap,
    client: std::net::IpAddr,
) -> Result<Leg, ApiError> {
    // Browsers say whose page asks (Fetch Metadata); other programs say nothing.
    let site = headers.get("sec-fetch-site").map_or(b"none".as_slice(), HeaderValue::as_bytes);
    if !matches!(site, b"none" | b"same-origin") {
        return Err(ApiError::forbidden("a page of another site may not load this host"));
    }
    let Some(Extension(guest)) = guest else {
        return Err(ApiError::bad_request("this test goes over HTTP/2 and TLS 1.3"));
    };
    let allowance =
        state.gate.policy_guard().allowance(&PolicyClient::without_token(Program::Http, client));
    let ClientAllowance { rate_bps, bytes, streams, .. } = allowance;
    let own = state.gate.by_address_of(Program::Http, client);
    let serving = VisitServing {
        admission: &own,
        caps: VisitCaps { rate_bps, bytes, streams },
        origins: &state.options.origins,
        visits: &state.visits,
        tool: &state.options.tool,
        stop: &state.ends,
    };
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    guest.begin_transfer(direction, most, agent, &serving).map_err(refused)
}

fn refused(refuse: Refuse) -> ApiError {
    let (status, error) = match refuse.code {
        RefuseCode::Busy => (StatusCode::TOO_MANY_REQUESTS, "busy"),
        RefuseCode::Policy => (StatusCode::FORBIDDEN, "policy"),
        _ => (StatusCode::FORBIDDEN, "limit"),
    };
    ApiError::new(status, error, refuse.reason).retry_after(refuse.retry_after_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_names_of_the_draft_and_of_its_first_versions() {
        let document = document("192.0.2.1:5210");
        assert_eq!(document["version"], 1);
        let urls = &document["urls"];
        for (new, old) in [
            ("small_download_url", "small_https_download_url"),
            ("large_download_url", "large_https_download_url"),
            ("upload_url", "https_upload_url"),
        ] {
            assert_eq!(urls[new], urls[old]);
            let url = urls[new].as_str().unwrap_or_default();
            assert!(url.starts_with("https://192.0.2.1:5210/nq/"), "{url}");
        }
    }
}
