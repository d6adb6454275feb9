//! `GET /api/v1/series`: what schedules follow, and what happened to it.
//!
//! Names of tasks say what is measured, so it is for clients of private networks, as lists are.

use std::sync::Arc;

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{ApiError, Readable};
use super::request::Peer;
use super::results::{near, with_store};
use super::state::State;
use crate::store::{ScheduleEvent, SeriesValue};

/// Values of each figure of each task.
const VALUES_USUAL: usize = 1000;
const VALUES_MAX: usize = 10_000;

/// Which values a client wants to see.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "SeriesQuery")]
pub(crate) struct Asked {
    plan: Option<String>,
    task: Option<String>,
    metric: Option<String>,
    since_s: Option<i64>,
    limit: Option<usize>,
}

fn value(value: &SeriesValue) -> Value {
    json!({
        "task": value.task,
        "metric": value.metric,
        "at_s": value.at_s,
        "value": value.value,
        "record": value.record,
    })
}

fn event(event: &ScheduleEvent) -> Value {
    json!({
        "task": event.task,
        "at_s": event.at_s,
        "kind": event.kind,
        "detail": event.detail,
        "told_s": event.told_s,
    })
}

/// The newest value of each series; with `plan` the values of that one and its events.
pub(crate) async fn series(
    Shared(state): Shared<Arc<State>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Readable(asked): Readable<Asked>,
) -> Result<Json<Value>, ApiError> {
    near(peer, &state, &headers)?;
    let Some(plan) = asked.plan.clone() else {
        let newest = with_store(&state, |store| store.newest_values()).await?;
        let each = newest.iter().map(|(plan, of)| {
            let mut shown = value(of);
            shown["plan"] = json!(plan);
            shown
        });
        return Ok(Json(json!({ "series": each.collect::<Vec<_>>() })));
    };
    let limit = asked.limit.unwrap_or(VALUES_USUAL).clamp(1, VALUES_MAX);
    let since_s = asked.since_s.unwrap_or(0);
    let name = plan.clone();
    let found = with_store(&state, move |store| {
        if !store.knows_schedules()? || store.schedules()?.iter().all(|it| it.plan != name) {
            return Ok(None);
        }
        #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 fit 53 bits")]
        let values = store.series(&name, since_s as f64, limit)?;
        Ok(Some((values, store.events(&name, since_s)?)))
    });
    let unknown = || ApiError::not_found(format!("{plan}: no such plan was run on this store"));
    let (values, events) = found.await?.ok_or_else(unknown)?;
    let wanted = |asked: &Option<String>, is: &str| asked.as_ref().is_none_or(|name| name == is);
    let values = values
        .iter()
        .filter(|it| wanted(&asked.task, &it.task) && wanted(&asked.metric, &it.metric));
    let events = events.iter().filter(|it| it.task.is_empty() || wanted(&asked.task, &it.task));
    Ok(Json(json!({
        "plan": plan,
        "values": values.map(value).collect::<Vec<_>>(),
        "events": events.map(event).collect::<Vec<_>>(),
    })))
}
