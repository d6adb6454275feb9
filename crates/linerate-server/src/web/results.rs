//! `GET /api/v1/results` and what is made of one record: diagnosis, page, drawings, table.
//!
//! A list names hosts, so it is for clients of private networks; a single result is found by
//! whoever has its identifier, 74 bits of which are random (RFC 9562 §5.7).

use std::sync::Arc;

use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use linerate_core::policy::{Act, is_private};
use linerate_core::record::{Failure, Record, RecordId};
use linerate_report::{csv, record};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::{ApiError, Readable};
use super::measure::{telling, verdict_said};
use super::request::{Peer, client_of};
use super::state::{State, with_hub};
use crate::store::{Line, LineFilter, Store};

/// Lines of one page of a list.
const LINES_USUAL: usize = 50;
const LINES_MAX: usize = 500;
/// A stored page has styles of its own, and nothing else that would run.
pub(crate) const REPORT_POLICY: &str =
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

/// Which results a client wants to see.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "ResultsQuery")]
pub(crate) struct Asked {
    kind: Option<String>,
    peer: Option<String>,
    name: Option<String>,
    since: Option<String>,
    until: Option<String>,
    before: Option<String>,
    limit: Option<usize>,
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Results")]
pub(crate) struct List {
    results: Vec<Line>,
    /// What `before` is for the next page.
    next: Option<String>,
}

/// Does something with the store, on a thread that may wait for it.
pub(crate) async fn with_store<T: Send + 'static>(
    state: &State,
    work: impl FnOnce(&Store) -> Result<T, Failure> + Send + 'static,
) -> Result<T, ApiError> {
    let none = || ApiError::not_found("this server keeps no results");
    let path = state.options.store.clone().ok_or_else(none)?;
    let done = tokio::task::spawn_blocking(move || Store::look(&path).and_then(|it| work(&it)));
    let failed = |say: String| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "system", say);
    let done = done.await.map_err(|error| failed(error.to_string()))?;
    done.map_err(|failure| failed(failure.to_string()))
}

/// Whether a client may have a list: as the policy says; without one, those of private networks.
pub(crate) fn near(Peer(peer): Peer, state: &State, headers: &HeaderMap) -> Result<(), ApiError> {
    let client = client_of(peer, headers)?;
    if let Some(allowed) = state.gate.guard().allows(Act::Results, &client) {
        return allowed.map_err(ApiError::forbidden);
    }
    let say = "lists of results are for clients of private networks; a single one is found by its \
               identifier";
    is_private(peer.ip()).then_some(()).ok_or_else(|| ApiError::forbidden(say))
}

/// `GET /api/v1/results`.
pub(crate) async fn list(
    Shared(state): Shared<Arc<State>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Readable(asked): Readable<Asked>,
) -> Result<Json<List>, ApiError> {
    near(peer, &state, &headers)?;
    let limit = asked.limit.unwrap_or(LINES_USUAL).clamp(1, LINES_MAX);
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    let filter = LineFilter {
        kind: some(asked.kind),
        peer: some(asked.peer),
        name: some(asked.name),
        since: some(asked.since),
        until: some(asked.until),
        before: some(asked.before),
    };
    // One more than asked tells whether there is a next page.
    let mut lines = with_store(&state, move |store| store.lines(&filter, limit + 1)).await?;
    let more = lines.len() > limit;
    lines.truncate(limit);
    let next = lines.last().filter(|_| more).map(|line| line.id.clone());
    Ok(Json(List { results: lines, next }))
}

async fn stored(state: &State, id: &str) -> Result<Record, ApiError> {
    let unknown = ApiError::not_found(format!("{id}: there is no such result"));
    let Ok(whole) = id.parse::<RecordId>() else { return Err(unknown) };
    let id = whole.to_string();
    let hub = state.mesh.get().filter(|hub| hub.has_database());
    let found = match (&state.options.store, hub) {
        (None, Some(_)) => None,
        _ => with_store(state, move |store| store.stored(&id)).await?,
    };
    let found = match (found, hub) {
        (None, Some(hub)) => with_hub(Arc::clone(hub), move |hub| hub.record_named(whole)).await?,
        (found, _) => found,
    };
    found.ok_or(unknown)
}

/// `GET /api/v1/results/ID`, and `ID.csv`.
pub(crate) async fn one(
    Shared(state): Shared<Arc<State>>,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    let Some(id) = name.strip_suffix(".csv") else {
        return Ok(Json(stored(&state, &name).await?).into_response());
    };
    let text = csv::record(&stored(&state, id).await?);
    Ok(typed(text, "text/csv; charset=utf-8"))
}

/// `GET /api/v1/results/ID/explain`.
pub(crate) async fn explained(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let record = stored(&state, &id).await?;
    let none = || ApiError::not_found(format!("{id}: there is no diagnosis of this kind of test"));
    let verdict = telling(std::slice::from_ref(&record)).ok_or_else(none)?;
    Ok(Json(verdict_said(&verdict, None)))
}

/// `GET /api/v1/results/ID/report`.
pub(crate) async fn report(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let page = record::document(&stored(&state, &id).await?).html();
    let mut response = typed(page, "text/html; charset=utf-8");
    let policy = HeaderValue::from_static(REPORT_POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// `GET /api/v1/results/ID/figures`.
pub(crate) async fn figures(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let figures = record::document(&stored(&state, &id).await?).svgs();
    let figures = figures.into_iter().map(|(name, svg)| json!({ "name": name, "svg": svg }));
    Ok(Json(figures.collect()))
}

pub(crate) fn typed(text: String, kind: &'static str) -> Response {
    let mut response = text.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
