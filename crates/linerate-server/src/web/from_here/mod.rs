//! `POST /api/v1/measure`: from this server to another host, where the policy says so.
//!
//! The target's name is looked up once, and the address that the policy allowed is measured to:
//! a name that says something else later changes nothing. The place at the gate is that of every
//! test, and so are events, end and result.

mod kind;
mod plan;
mod target;
mod work;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use linerate_core::record::Direction;
use linerate_engine::flow::admission::Demand;
use linerate_proto::native::Token;
use linerate_sys::clock::{random_bytes, record_id};
use serde::{Deserialize, Serialize};

use super::error::ApiError;
use super::json::Json;
use super::request::{Peer, asked_host, client_of};
use super::run::{BrowserRun, BrowserTestOptions};
use super::runs::{most_seconds, most_streams, read, ticket_of};
use super::state::State;
use crate::policy_guard::ClientAllowance;
pub(crate) use kind::MeasureKind;
use plan::Wanted;
pub(crate) use target::MeasureTarget;
use work::Job;

/// What a client asks for.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "MeasureRequest"))]
pub(crate) struct MeasureRequest {
    kind: MeasureKind,
    target: String,
    seconds: Option<u64>,
    direction: Option<Direction>,
    streams: Option<u16>,
    rate_bps: Option<u64>,
    ticket: Option<String>,
}

/// A measurement that was let in.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Measurement"))]
pub(crate) struct Begun {
    run: String,
    token: String,
    /// Path of its events.
    events: String,
    kind: MeasureKind,
    /// The address that is measured to.
    target: IpAddr,
    seconds: u64,
    /// Of a sweep; else none.
    windows_bytes: &'static [u64],
}

/// `POST /api/v1/measure`: begins a measurement from this server to a target.
pub(crate) async fn post_measure(
    Shared(state): Shared<Arc<State>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let request: MeasureRequest = read(&body)?;
    let ticket = request.ticket.as_deref().map(ticket_of).transpose()?;
    let client = client_of(peer, &headers)?;
    let target =
        MeasureTarget::resolve_allowed(&request.target, request.kind, &state, &client).await?;
    let allowance = state.gate.policy_guard().allowance(&client);
    let wanted = within_limits(&request, &state, allowance)?;
    let permit = state.gate.admit_by_ticket(&demand(&wanted), ticket, &client)?;
    let token = Token(random_bytes());
    let id = record_id().to_string();
    let asked = BrowserTestOptions {
        streams: wanted.streams,
        seconds: wanted.seconds,
        directions: vec![wanted.direction],
        name: None,
        host: asked_host(&headers),
        rate_bps: wanted.rate_bps,
    };
    let run = Arc::new(BrowserRun::new(id.clone(), token, asked, peer));
    state.runs.add(&run);
    let answer = Begun {
        events: format!("/api/v1/runs/{id}/events"),
        run: id.clone(),
        token: token.to_hex(),
        kind: wanted.kind,
        target: target.address,
        seconds: wanted.seconds,
        windows_bytes: wanted.windows(),
    };
    tracing::info!(%peer, "http: {} to {} ({})", wanted.kind.name(), target.address, target.name);
    if let Err(error) =
        work::start_measurement(&run, &state, Job { target, wanted, client }, permit)
    {
        state.runs.remove(&id);
        let say = format!("no thread for the measurement: {error}");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", say));
    }
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

/// The measurement as it was asked for, checked against the limits of the server and of the
/// client's rule.
fn within_limits(
    request: &MeasureRequest,
    state: &State,
    allowance: ClientAllowance,
) -> Result<Wanted, ApiError> {
    let limit = |say: String| ApiError::new(StatusCode::FORBIDDEN, "limit", say);
    let kind = request.kind;
    let longest = most_seconds(state, allowance.time) / kind.test_count();
    let usual = kind.seconds_usual().min(longest).max(1);
    let seconds = request.seconds.unwrap_or(usual);
    let least = kind.seconds_least();
    if longest < least {
        let (name, needed) = (kind.name(), least * kind.test_count());
        return Err(limit(format!("{name} needs {needed} s, and a test here has less")));
    }
    if !(least..=longest).contains(&seconds) {
        let name = kind.name();
        return Err(limit(format!("{seconds} s of {name}; it has {least} to {longest} s here")));
    }
    let streams = request.streams.unwrap_or(1);
    let most = most_streams(state, allowance.streams);
    if !(1..=most).contains(&streams) {
        return Err(limit(format!("{streams} streams; a test has 1 to {most}")));
    }
    if request.rate_bps == Some(0) {
        return Err(ApiError::bad_request("rate_bps: a rate is above 0"));
    }
    // What the rule allows is what is sent where nobody asks for less.
    let rate_bps = kind.effective_rate(request.rate_bps, allowance.rate_bps);
    let direction = request.direction.unwrap_or(Direction::Up);
    Ok(Wanted { kind, seconds, direction, streams, rate_bps })
}

/// Time, rate and streams that the measurement asks of the gate.
fn demand(wanted: &Wanted) -> Demand {
    Demand {
        planned: Some(Duration::from_secs(wanted.seconds * wanted.kind.test_count())),
        rate_bps: wanted.rate_bps,
        ..Demand::new(wanted.kind.policy_test_kind(), usize::from(wanted.streams))
    }
}
