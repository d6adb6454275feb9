//! `GET /api/v1/results` and what is made of one record: diagnosis, page, drawings, table.
//!
//! A list names hosts, so it is for clients of private networks; a single result is found by
//! whoever has its identifier, 74 bits of which are random (RFC 9562 §5.7).

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use linerate_core::policy::{Act, is_private};
use linerate_core::record::RecordId;
use linerate_report::{csv, record};
use linerate_store::LineFilter;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::{ApiError, Readable};
use super::json::Json;
use super::measure::verdicts_said;
use super::request::{Peer, client_of};
use super::state::State;
use super::stored::{stored, with_store};
use super::words::ResultRow;

/// Lines of one page of a list.
const LINES_USUAL: usize = 50;
const LINES_MAX: usize = 500;
/// Lines whose records are read for what they say.
const JUDGED_MAX: usize = 100;
/// A stored page has styles of its own, and nothing else that would run.
pub(crate) const REPORT_POLICY: &str =
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

/// Times of lists (RFC 3339, in UTC), with 0 for any digit.
const TIME: &str = "0000-00-00T00:00:00.000Z";

/// Which results a client wants to see.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ResultsQuery"))]
pub(crate) struct ResultsQuery {
    kind: Option<String>,
    peer: Option<String>,
    name: Option<String>,
    since: Option<String>,
    until: Option<String>,
    before: Option<String>,
    limit: Option<usize>,
    /// Those of one test of a browser, by its identifier.
    run: Option<String>,
    /// With what limited each, and how far to trust it.
    #[serde(default)]
    judged: bool,
}

/// A page of a list.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Results"))]
pub(crate) struct ResultsPage {
    results: Vec<ResultRow>,
    /// What `before` is for the next page.
    next: Option<String>,
}

/// Refuses a list of results to a client that may not have one: by the policy, or, without one, to
/// clients that are not of a private network.
pub(crate) fn check_list_allowed(
    Peer(peer): Peer,
    state: &State,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    let client = client_of(peer, headers)?;
    if let Some(allowed) = state.gate.policy_guard().allows(Act::Results, &client) {
        return allowed.map_err(ApiError::forbidden);
    }
    let say = "lists of results are for clients of private networks; a single one is found by its \
               identifier";
    is_private(peer.ip()).then_some(()).ok_or_else(|| ApiError::forbidden(say))
}

/// `GET /api/v1/results`: a page of the list of results, the newest first.
pub(crate) async fn get_results(
    Shared(state): Shared<Arc<State>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Readable(asked): Readable<ResultsQuery>,
) -> Result<Json<ResultsPage>, ApiError> {
    let most = if asked.judged { JUDGED_MAX } else { LINES_MAX };
    let limit = asked.limit.unwrap_or(LINES_USUAL).clamp(1, most);
    let run = asked.run.as_deref().map(|run| run.parse::<RecordId>());
    let run =
        run.transpose().map_err(|_| ApiError::bad_request("run: the identifier of a test"))?;
    // Whoever has the identifier of a test finds it, as a result by its own.
    if run.is_none() {
        check_list_allowed(peer, &state, &headers)?;
    }
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    for (name, time) in [("since", &asked.since), ("until", &asked.until)] {
        check_time(name, time.as_deref().unwrap_or_default())?;
    }
    let filter = LineFilter {
        kind: some(asked.kind),
        peer: some(asked.peer),
        name: some(asked.name),
        since: some(asked.since),
        until: some(asked.until),
        before: some(asked.before),
        run: run.map(|run| run.to_string()),
    };
    // One more than asked tells whether there is a next page.
    let judged = asked.judged;
    let found = with_store(&state, move |store| {
        let mut lines = store.result_lines(&filter, limit + 1)?;
        let more = lines.len() > limit;
        lines.truncate(limit);
        let row = |line| match judged {
            true => ResultRow::from_record(line, store),
            false => ResultRow::from_line(line),
        };
        Ok((lines.into_iter().map(row).collect::<Vec<_>>(), more))
    });
    let (results, more) = found.await?;
    let next = results.last().filter(|_| more).map(|row| row.id().to_owned());
    Ok(Json(ResultsPage { results, next }))
}

/// # Errors
/// Where a text is not the beginning of a time as lists have it.
fn check_time(name: &str, text: &str) -> Result<(), ApiError> {
    let fits = |byte: u8, form: u8| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
    let mut pairs = text.bytes().zip(TIME.bytes());
    let is_time = text.len() <= TIME.len() && pairs.all(|(byte, form)| fits(byte, form));
    let say = || format!("{name}: a time is as 2026-01-31T12:00:00.000Z, or the beginning of one");
    is_time.then_some(()).ok_or_else(|| ApiError::bad_request(say()))
}

/// `GET /api/v1/results/ID`, and `ID.csv`.
pub(crate) async fn get_result(
    Shared(state): Shared<Arc<State>>,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    let Some(id) = name.strip_suffix(".csv") else {
        return Ok(Json(stored(&state, &name).await?).into_response());
    };
    let text = csv::record(&stored(&state, id).await?);
    Ok(text_response(text, "text/csv; charset=utf-8"))
}

/// `GET /api/v1/results/ID/explain`: the verdict of a result.
pub(crate) async fn explained(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let record = stored(&state, &id).await?;
    let none = || ApiError::not_found(format!("{id}: there is no diagnosis of this kind of test"));
    Ok(Json(verdicts_said(std::slice::from_ref(&record), None).ok_or_else(none)?))
}

/// `GET /api/v1/results/ID/report`: a result's report, a page of HTML.
pub(crate) async fn report(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let page = record::document(&stored(&state, &id).await?).html();
    let mut response = text_response(page, "text/html; charset=utf-8");
    let policy = HeaderValue::from_static(REPORT_POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// `GET /api/v1/results/ID/figures`: the figures of a result's report, SVG.
pub(crate) async fn figures(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let figures = record::document(&stored(&state, &id).await?).svg_files();
    let figures = figures.into_iter().map(|(name, svg)| json!({ "name": name, "svg": svg }));
    Ok(Json(figures.collect()))
}

pub(crate) fn text_response(text: String, kind: &'static str) -> Response {
    let mut response = text.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
