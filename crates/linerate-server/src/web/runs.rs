//! `POST /api/v1/runs` and what belongs to a run: its end, and what the browser measured.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, Query, State as Shared};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use linerate_core::record::Direction;
use linerate_engine::flow::tcp::Demand;
use linerate_engine::http_load::LoadRun;
use linerate_proto::native::Token;
use linerate_sys::clock::{random_bytes, record_id};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::delays::Delays;
use super::error::ApiError;
use super::measure::start;
use super::request::{Peer, asked_host};
use super::run::{Asked, Run};
use super::state::State;

/// Streams of one direction.
pub(crate) const STREAMS_MAX: u16 = 32;
/// Seconds of one direction.
pub(crate) const SECONDS_MAX: u64 = 60;
/// Before its first stream, and between two directions, a run waits at most this long.
const PAUSE: Duration = Duration::from_secs(10);

/// What a browser asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default = "streams_usual")]
    streams: u16,
    #[serde(default = "seconds_usual")]
    seconds: u64,
    #[serde(default = "both")]
    directions: Vec<Direction>,
    ticket: Option<String>,
    name: Option<String>,
}

const fn streams_usual() -> u16 {
    4
}

const fn seconds_usual() -> u64 {
    8
}

fn both() -> Vec<Direction> {
    vec![Direction::Down, Direction::Up]
}

/// `POST /api/v1/runs`.
pub(crate) async fn begin(
    Shared(state): Shared<Arc<State>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let request: Request = read(&body)?;
    let ticket = request.ticket.as_deref().map(ticket_of).transpose()?;
    let asked = within_limits(request, &state, &headers)?;
    let demand = demand(&asked, state.limits.duration);
    let permit = state.gate.admit_by_ticket(&demand, ticket)?;
    let token = Token(random_bytes());
    let full = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "no token is free");
    let load = LoadRun::begin(&state.registry, token).ok_or_else(full)?;
    let id = record_id().to_string();
    let run = Arc::new(Run::new(id.clone(), token, asked.clone(), peer));
    state.runs.add(&run);
    if let Err(error) = start(&run, &state, load, permit) {
        state.runs.remove(&id);
        let say = format!("no thread for the run: {error}");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", say));
    }
    let token = token.to_hex();
    let answer = json!({
        "run": id,
        "token": token,
        "events": format!("/api/v1/runs/{id}/events"),
        "load": format!("/api/v1/load/{token}"),
        "streams": asked.streams,
        "seconds": asked.seconds,
        "directions": asked.directions,
    });
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

/// Reads a body of JSON.
pub(crate) fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, ApiError> {
    let text: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(text).map_err(|error| ApiError::bad(format!("read the body: {error}")))
}

fn ticket_of(text: &str) -> Result<u64, ApiError> {
    let bad = || ApiError::bad("a ticket is what this server gave, 16 hexadecimal digits");
    let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, 16).ok().filter(|_| digits).ok_or_else(bad)
}

/// What is asked, as far as any test may go.
fn within_limits(request: Request, state: &State, headers: &HeaderMap) -> Result<Asked, ApiError> {
    let Request { streams, seconds, directions, name, .. } = request;
    let limit = |say: String| ApiError::new(StatusCode::FORBIDDEN, "limit", say);
    let most = state.limits.streams.min(STREAMS_MAX);
    if !(1..=most).contains(&streams) {
        return Err(limit(format!("{streams} streams; a test has 1 to {most}")));
    }
    let longest = state.limits.duration.as_secs().min(SECONDS_MAX);
    if !(1..=longest).contains(&seconds) {
        return Err(limit(format!("{seconds} s each way; a test has 1 to {longest} s")));
    }
    if directions.is_empty() || directions.len() > 2 || directions.first() == directions.get(1) {
        return Err(ApiError::bad("directions: down, up, or both, each once"));
    }
    let name = name.map(|name| name.chars().filter(|it| !it.is_control()).take(100).collect());
    Ok(Asked { streams, seconds, directions, name, host: asked_host(headers) })
}

/// What a run takes of the gate: one direction at a time, and the pauses between. The limit is of
/// one direction's time, which fits it; for the rest the gate only tells others when to ask again.
fn demand(asked: &Asked, longest: Duration) -> Demand {
    let ways = u32::try_from(asked.directions.len()).unwrap_or(1);
    let planned = (Duration::from_secs(asked.seconds) + PAUSE / 4) * ways;
    Demand { streams: usize::from(asked.streams), planned: Some(planned.min(longest)) }
}

/// Who may end a run, or add to it.
#[derive(Debug, Deserialize)]
pub(crate) struct Shown {
    token: Option<String>,
}

impl Shown {
    fn check(&self, run: &Run) -> Result<(), ApiError> {
        let token = self.token.as_deref().and_then(Token::from_hex);
        let say = "the run's token is needed: ?token=…";
        (token == Some(run.token)).then_some(()).ok_or_else(|| ApiError::forbidden(say))
    }
}

/// `DELETE /api/v1/runs/UUID?token=…`.
pub(crate) async fn end(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
    Query(shown): Query<Shown>,
) -> Result<Json<Value>, ApiError> {
    let run = state.runs.get(&id)?;
    shown.check(&run)?;
    run.stop.ask();
    Ok(Json(json!({ "run": id, "ended": true })))
}

/// `POST /api/v1/runs/UUID/delays`.
pub(crate) async fn delays(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
    Query(shown): Query<Shown>,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let run = state.runs.get(&id)?;
    shown.check(&run)?;
    if run.is_over() {
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "over",
            "the records of this run are kept",
        ));
    }
    let delays: Delays = read(&body)?;
    delays.check().map_err(ApiError::bad)?;
    let count = delays.count();
    run.take_delays(delays);
    Ok(Json(json!({ "taken": count })))
}
