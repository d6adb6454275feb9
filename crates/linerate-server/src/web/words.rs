//! A result in words: what limited it, how far to trust it, its caveats, the names of its figures.
//! Pages and lists show these and no codes.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State as Shared};
use linerate_core::record::Record;
use linerate_report::Headline;
use linerate_report::headline::{LimitedBy, Quality};
use linerate_store::{ResultLine, Store};
use serde::Serialize;

use super::error::ApiError;
use super::json::Json;
use super::state::State;
use super::stored::stored;

/// What limited a result, and how far to trust it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Judgement {
    /// What limited it, in words; null where nothing does: it is no rate.
    limit: Option<String>,
    /// `good`, or why it is in doubt.
    trust: String,
    /// Whether nothing speaks against it.
    is_good: bool,
}

impl Judgement {
    fn from_headline(headline: &Headline) -> Self {
        let Headline { limit, quality, doubt, .. } = headline;
        let is_limited = limit.by != LimitedBy::Nothing;
        let trust = match (quality, doubt.as_str()) {
            (Quality::Good, _) => quality.to_string(),
            (_, "") if limit.by.is_host() => format!("{quality}: {limit}"),
            (_, "") => quality.to_string(),
            (_, doubt) => format!("{quality}: {doubt}"),
        };
        Self {
            limit: is_limited.then(|| limit.to_string()),
            trust,
            is_good: *quality == Quality::Good,
        }
    }
}

/// A line of a list, with what its record says where that was asked for.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ResultRow"))]
pub(crate) struct ResultRow {
    #[serde(flatten)]
    line: ResultLine,
    /// The test of a browser that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    judgement: Option<Judgement>,
}

impl ResultRow {
    /// A row with the line alone: no run, no judgement.
    pub(crate) fn from_line(line: ResultLine) -> Self {
        Self { line, run: None, judgement: None }
    }

    /// A line with what its record says; alone where that cannot be read.
    pub(crate) fn from_record(line: ResultLine, store: &Store) -> Self {
        let Ok(Some(record)) = store.stored(&line.id) else { return Self::from_line(line) };
        let judgement = Some(Judgement::from_headline(&Headline::from_record(&record)));
        Self { line, run: record.tags.get("run").cloned(), judgement }
    }

    pub(crate) fn id(&self) -> &str {
        &self.line.id
    }
}

/// A result in words.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ResultWords"))]
pub(crate) struct Words {
    /// The answer in one line.
    headline: String,
    #[serde(flatten)]
    judgement: Judgement,
    /// What bears on the figures, a line each.
    caveats: Vec<String>,
    failure: Option<String>,
    /// Titles of its metrics, by their keys.
    names: BTreeMap<&'static str, &'static str>,
}

impl Words {
    fn from_record(record: &Record) -> Self {
        let headline = Headline::from_record(record);
        let summary = record.summary.iter().map(|row| row.metric);
        let metrics = summary.chain(record.series.iter().map(|series| series.metric));
        Self {
            headline: headline.summary_line(),
            judgement: Judgement::from_headline(&headline),
            caveats: record.caveats.iter().map(ToString::to_string).collect(),
            failure: record.failure.as_ref().map(ToString::to_string),
            names: metrics.map(|metric| (metric.key(), metric.table_row().title)).collect(),
        }
    }
}

/// `GET /api/v1/results/ID/words`: a result in sentences.
pub(crate) async fn get_words(
    Shared(state): Shared<Arc<State>>,
    Path(id): Path<String>,
) -> Result<Json<Words>, ApiError> {
    Ok(Json(Words::from_record(&stored(&state, &id).await?)))
}
