//! `GET /api/v1/series`: what schedules follow, and what happened to it.
//!
//! Names of tasks say what is measured, so it is for clients of private networks, as lists are.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use linerate_core::stats::Sketch;
use linerate_report::schedule::SampleSpread;
use linerate_store::{DAY_S, HOUR_S, ScheduleEvent, SeriesValue, Sketched};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::{ApiError, Readable};
use super::json::Json;
use super::request::Peer;
use super::results::check_list_allowed;
use super::state::{State, with_hub};
use super::stored::with_store;

/// Values of each figure of each task.
const VALUES_USUAL: usize = 1000;
const VALUES_MAX: usize = 10_000;

/// Which values a client wants to see.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "SeriesQuery"))]
pub(crate) struct SeriesQuery {
    plan: Option<String>,
    task: Option<String>,
    metric: Option<String>,
    since_s: Option<i64>,
    limit: Option<usize>,
    /// Spans that all samples are added up over, beside the values: `hour` or `day`.
    by: Option<By>,
    /// Adds up those of tasks with the same name before the slash: the pairs of an agent.
    #[serde(default)]
    merge: bool,
}

/// Spans of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum By {
    Hour,
    Day,
}

impl By {
    const fn step_s(self) -> i64 {
        match self {
            Self::Hour => HOUR_S,
            Self::Day => DAY_S,
        }
    }
}

/// Spreads that a client gets at most: 35 days by the hour of ten figures.
const SPREADS_MAX: usize = 8400;

/// Percentiles of all samples, one row for each span.
fn spreads(of: Vec<Sketched>, asked: &SeriesQuery) -> Vec<Value> {
    let mut merged: BTreeMap<(i64, String, String), Sketch> = BTreeMap::new();
    for Sketched { task, metric, at_s, sketch } in of {
        if asked.metric.as_ref().is_some_and(|wanted| *wanted != metric) {
            continue;
        }
        let short = task.split('/').next().unwrap_or(&task).to_owned();
        let task = if asked.merge { short } else { task };
        if asked.task.as_ref().is_some_and(|wanted| *wanted != task) {
            continue;
        }
        merged.entry((at_s, task, metric)).or_default().merge(&sketch);
    }
    let newest = merged.len().saturating_sub(SPREADS_MAX);
    let shown = merged.iter().skip(newest).filter_map(|((at_s, task, metric), sketch)| {
        let mut shown = json!(SampleSpread::from_sketch(metric, *at_s, sketch)?);
        shown["task"] = json!(task);
        Some(shown)
    });
    shown.collect()
}

fn value_json(value: &SeriesValue) -> Value {
    json!({
        "task": value.task,
        "metric": value.metric,
        "at_s": value.at_s,
        "value": value.value,
        "record": value.record,
    })
}

fn event_json(event: &ScheduleEvent) -> Value {
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
    Readable(asked): Readable<SeriesQuery>,
) -> Result<Json<Value>, ApiError> {
    check_list_allowed(peer, &state, &headers)?;
    let Some(plan) = asked.plan.clone() else {
        let newest = with_store(&state, |store| store.newest_values()).await?;
        let each = newest.iter().map(|(plan, of)| {
            let mut shown = value_json(of);
            shown["plan"] = json!(plan);
            shown
        });
        return Ok(Json(json!({ "series": each.collect::<Vec<_>>() })));
    };
    let limit = asked.limit.unwrap_or(VALUES_USUAL).clamp(1, VALUES_MAX);
    let since_s = asked.since_s.unwrap_or(0);
    let (name, by) = (plan.clone(), asked.by);
    if let Some(hub) = state.mesh.get().filter(|hub| hub.has_series(&plan)) {
        let say = "task: which, of an agent of a mesh whose store is a database";
        let task = asked.task.clone().ok_or_else(|| ApiError::bad_request(say))?;
        let merge = asked.merge;
        let found = with_hub(Arc::clone(hub), move |hub| {
            let spreads = by.map(|by| hub.spreads(&name, &task, merge, by.step_s(), since_s));
            let (values, events) = hub.series(&name, &task, since_s, limit)?;
            let sketches = spreads.transpose()?.unwrap_or_default();
            Ok(PlanSeries { values, events, sketches })
        });
        return Ok(Json(series_json(&asked, &plan, found.await?)));
    }
    let found = with_store(&state, move |store| {
        if !store.knows_schedules()?
            || store.schedules()?.iter().all(|schedule| schedule.plan != name)
        {
            return Ok(None);
        }
        #[allow(clippy::cast_precision_loss, reason = "seconds since 1970 fit 53 bits")]
        let values = store.series(&name, since_s as f64, limit)?;
        let sketches = by.map(|by| store.sketches(&name, by.step_s(), since_s)).transpose()?;
        let (events, sketches) = (store.events(&name, since_s)?, sketches.unwrap_or_default());
        Ok(Some(PlanSeries { values, events, sketches }))
    });
    let unknown = || ApiError::not_found(format!("{plan}: no such plan was run on this store"));
    Ok(Json(series_json(&asked, &plan, found.await?.ok_or_else(unknown)?)))
}

/// Values, events and sketches of a plan, as the store has them.
struct PlanSeries {
    values: Vec<SeriesValue>,
    events: Vec<ScheduleEvent>,
    sketches: Vec<Sketched>,
}

/// The values, events and sketches that the query selects, as JSON.
fn series_json(asked: &SeriesQuery, plan: &str, series: PlanSeries) -> Value {
    let PlanSeries { values, events, sketches } = series;
    let wanted = |asked: &Option<String>, is: &str| asked.as_ref().is_none_or(|name| name == is);
    let values = values
        .iter()
        .filter(|value| wanted(&asked.task, &value.task) && wanted(&asked.metric, &value.metric));
    let events =
        events.iter().filter(|event| event.task.is_empty() || wanted(&asked.task, &event.task));
    let mut answer = json!({
        "plan": plan,
        "values": values.map(value_json).collect::<Vec<_>>(),
        "events": events.map(event_json).collect::<Vec<_>>(),
    });
    if asked.by.is_some() {
        answer["spreads"] = json!(spreads(sketches, asked));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_added_up_and_not_averaged() {
        let of = |task: &str, samples: &[u64]| Sketched {
            task: task.to_owned(),
            metric: "rtt_ns".to_owned(),
            at_s: 3600,
            sketch: samples.iter().copied().collect(),
        };
        // Nine samples of 10 ns to one agent and one of 200 ns to another: the median of all is 10,
        // the mean of both medians 105.
        let all = || vec![of("delay/b", &[10; 9]), of("delay/c", &[200]), of("rate/b", &[5])];
        let asked =
            SeriesQuery { merge: true, task: Some("delay".to_owned()), ..SeriesQuery::default() };
        let merged = spreads(all(), &asked);
        assert_eq!(merged.len(), 1);
        let of = |key: &str| merged[0][key].as_u64();
        assert_eq!((of("n"), of("p50"), of("p99")), (Some(10), Some(10), Some(200)));
        assert_eq!((of("from_s"), merged[0]["task"].as_str()), (Some(3600), Some("delay")));
        let apart = spreads(
            all(),
            &SeriesQuery { task: Some("delay/c".to_owned()), ..SeriesQuery::default() },
        );
        assert_eq!((apart.len(), apart[0]["p50"].as_u64()), (1, Some(200)));
    }
}
