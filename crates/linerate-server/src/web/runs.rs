//! `POST /api/v1/runs` and what belongs to a run: its end, and what the browser measured.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use linerate_core::policy::TestKind;
use linerate_core::record::Direction;
use linerate_engine::flow::admission::Demand;
use linerate_engine::http_load::LoadRun;
use linerate_proto::native::Token;
use linerate_sys::clock::{random_bytes, record_id};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::datagrams::port::WebTransportAddress;
use super::delays::Delays;
use super::error::{ApiError, Readable, in_plain_words};
use super::families;
use super::json::Json;
use super::measure::start_run_thread;
use super::request::{Local, OverTls, Peer, asked_host, client_of};
use super::run::{BrowserRun, BrowserTestOptions};
use super::state::State;
use crate::policy_guard::PolicyClient;

/// Streams of one direction.
const STREAMS_MAX: u16 = 32;
/// Seconds of one direction.
const SECONDS_MAX: u64 = 60;
/// Before its first stream, and between two directions, a run waits at most this long.
const PAUSE: Duration = Duration::from_secs(10);

/// What a browser asks for.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "TestRequest"))]
pub(crate) struct BrowserTestRequest {
    #[serde(default = "streams_usual")]
    streams: u16,
    #[serde(default = "seconds_usual")]
    seconds: u64,
    #[serde(default = "both_directions")]
    directions: Vec<Direction>,
    ticket: Option<String>,
    name: Option<String>,
}

/// A test that was let in.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Test"))]
pub(crate) struct BrowserTestBegun {
    run: String,
    token: String,
    /// Path of its events.
    events: String,
    /// Path that its streams begin with.
    load: String,
    streams: u16,
    seconds: u64,
    directions: Vec<Direction>,
    /// This host over IPv4 and over IPv6, as `ADDRESS:PORT`; empty unless it answers over both.
    families: Vec<String>,
    /// Where its datagrams go; none where the server answers none.
    datagrams: Option<WebTransportAddress>,
}

const fn streams_usual() -> u16 {
    4
}

const fn seconds_usual() -> u64 {
    8
}

fn both_directions() -> Vec<Direction> {
    vec![Direction::Down, Direction::Up]
}

/// `POST /api/v1/runs`: begins a test of a browser.
pub(crate) async fn post_run(
    Shared(state): Shared<Arc<State>>,
    Extension(Peer(peer)): Extension<Peer>,
    Extension(Local(local)): Extension<Local>,
    Extension(OverTls(over_tls)): Extension<OverTls>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let request: BrowserTestRequest = read(&body)?;
    if over_tls && !request.directions.is_empty() {
        return Err(not_over_tls(&headers));
    }
    let ticket = request.ticket.as_deref().map(ticket_of).transpose()?;
    let client = client_of(peer, &headers)?;
    let asked = within_limits(request, &state, &headers, &client)?;
    let by_rule = state.gate.policy_guard().allowance(&client).time.unwrap_or(Duration::MAX);
    let demand = demand(&asked, state.limits.duration.min(by_rule));
    let permit = state.gate.admit_by_ticket(&demand, ticket, &client)?;
    let token = Token(random_bytes());
    let full = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "no token is free");
    let load = LoadRun::register_token(&state.registry, token).ok_or_else(full)?;
    let id = record_id().to_string();
    let run = Arc::new(BrowserRun::new(id.clone(), token, asked.clone(), peer));
    state.runs.add(&run);
    if let Err(error) = start_run_thread(&run, &state, load, permit) {
        state.runs.remove(&id);
        let say = format!("no thread for the run: {error}");
        return Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", say));
    }
    let datagrams = state.datagrams.get().map(|port| port.session_address(&run));
    let token = token.to_hex();
    let answer = BrowserTestBegun {
        events: format!("/api/v1/runs/{id}/events"),
        run: id,
        load: format!("/api/v1/load/{token}"),
        token,
        streams: asked.streams,
        seconds: asked.seconds,
        directions: asked.directions,
        families: local.map_or_else(Vec::new, |local| {
            families::dual_stack_addresses(local, state.server_facts().every_address)
        }),
        datagrams,
    };
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

/// Load is of plain HTTP: over TLS the cipher of both ends would be measured with the path.
fn not_over_tls(headers: &HeaderMap) -> ApiError {
    let host = asked_host(headers).unwrap_or_else(|| "HOST:PORT".to_owned());
    let say =
        format!("a speed test does not go over TLS, whose cost would bend it: open http://{host}/");
    ApiError::new(StatusCode::CONFLICT, "limit", say)
}

/// Reads a body of JSON.
pub(crate) fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, ApiError> {
    let text: &[u8] = if body.is_empty() { b"{}" } else { body };
    linerate_core::tree::from_json_bytes(text)
        .map_err(|error| ApiError::bad_request(in_plain_words(&error.to_string())))
}

pub(crate) fn ticket_of(text: &str) -> Result<u64, ApiError> {
    let bad = || ApiError::bad_request("a ticket is what this server gave, 16 hexadecimal digits");
    let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, 16).ok().filter(|_| digits).ok_or_else(bad)
}

/// The test as it was asked for, checked against the limits of the server and of the client's rule.
fn within_limits(
    request: BrowserTestRequest,
    state: &State,
    headers: &HeaderMap,
    client: &PolicyClient,
) -> Result<BrowserTestOptions, ApiError> {
    let allowance = state.gate.policy_guard().allowance(client);
    let BrowserTestRequest { streams, seconds, directions, name, .. } = request;
    let limit = |say: String| ApiError::new(StatusCode::FORBIDDEN, "limit", say);
    let most = most_streams(state, allowance.streams);
    if !(1..=most).contains(&streams) {
        return Err(limit(format!("{streams} streams; a test has 1 to {most}")));
    }
    let longest = most_seconds(state, allowance.time);
    if !(1..=longest).contains(&seconds) {
        return Err(limit(format!("{seconds} s each way; a test has 1 to {longest} s")));
    }
    if directions.is_empty() && state.datagrams.get().is_none() {
        let say = "no directions is for datagrams alone, which this server does not take";
        return Err(ApiError::bad_request(say));
    }
    if directions.len() > 2
        || directions.first().is_some_and(|direction| directions.get(1) == Some(direction))
    {
        return Err(ApiError::bad_request("directions: down, up, or both, each once"));
    }
    let name = name
        .map(|name| name.chars().filter(|character| !character.is_control()).take(100).collect());
    let rate_bps = allowance.rate_bps;
    Ok(BrowserTestOptions {
        streams,
        seconds,
        directions,
        name,
        host: asked_host(headers),
        rate_bps,
    })
}

/// Streams of one direction that any client, and this one by its rule, may have.
pub(crate) fn most_streams(state: &State, by_rule: Option<u16>) -> u16 {
    state.limits.streams.min(STREAMS_MAX).min(by_rule.unwrap_or(u16::MAX))
}

/// Seconds of one direction.
pub(crate) fn most_seconds(state: &State, by_rule: Option<Duration>) -> u64 {
    let by_rule = by_rule.unwrap_or(Duration::MAX);
    state.limits.duration.min(by_rule).as_secs().min(SECONDS_MAX)
}

/// Time, rate and streams that a run asks of the gate: one direction at a time, and the pauses
/// between. `longest` limits one direction's time, and each direction keeps to it; the time for all
/// only tells other clients when to ask again.
fn demand(asked: &BrowserTestOptions, longest: Duration) -> Demand {
    let ways = u32::try_from(asked.directions.len()).unwrap_or(1).max(1);
    let planned = (Duration::from_secs(asked.seconds) + PAUSE / 4) * ways;
    // Load is kept to the rate at this end, either way.
    Demand {
        planned: Some(planned.min(longest)),
        rate_bps: asked.rate_bps,
        ..Demand::new(TestKind::Tcp, usize::from(asked.streams))
    }
}

/// Token of a run, which a client shows to end the run or to add to it.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Shown {
    token: Option<String>,
}

impl Shown {
    fn check_token(&self, run: &BrowserRun) -> Result<(), ApiError> {
        let token = self.token.as_deref().and_then(Token::from_hex);
        let say = "the run's token is needed: ?token=…";
        (token == Some(run.token)).then_some(()).ok_or_else(|| ApiError::forbidden(say))
    }
}

/// `DELETE /api/v1/runs/UUID?token=…`: ends a test of a browser.
pub(crate) async fn delete_run(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
    Readable(shown): Readable<Shown>,
) -> Result<Json<Value>, ApiError> {
    let run = state.runs.get(&id)?;
    shown.check_token(&run)?;
    run.stop.request_stop();
    Ok(Json(json!({ "run": id, "ended": true })))
}

/// `POST /api/v1/runs/UUID/delays`: takes the delays that the browser measured.
pub(crate) async fn delays(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
    Readable(shown): Readable<Shown>,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let run = state.runs.get(&id)?;
    shown.check_token(&run)?;
    if run.is_over() {
        return Err(ApiError::new(
            StatusCode::NOT_FOUND,
            "over",
            "the records of this run are kept",
        ));
    }
    let delays: Delays = read(&body)?;
    delays.check_ranges().map_err(ApiError::bad_request)?;
    let count = delays.sample_count();
    run.take_delays(delays);
    Ok(Json(json!({ "taken": count })))
}
