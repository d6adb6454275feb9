//! `GET /api/v1/published`: figures of old studies that come with the program, in the units of
//! metrics, so that a stored result can stand beside them.
//!
//! Left out: rows of devices, whose figures depend on a length of frames, and figures of a text
//! that are no rate and no round trip.

use axum::extract::Path;
use linerate_core::record::MetricId;
use linerate_core::study::{Printed, PublishedRows, PublishedTable, TableAbout};
use linerate_engine::study::TABLES;
use serde::Serialize;

use super::error::ApiError;
use super::json::Json;

/// The tables that have such figures, by year.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PublishedTables"))]
pub(crate) struct Tables {
    tables: Vec<PublishedAboutJson>,
}

/// What a table is.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PublishedAbout"))]
struct PublishedAboutJson {
    id: &'static str,
    title: &'static str,
    study: &'static str,
    year: u16,
    source: &'static str,
}

impl From<TableAbout> for PublishedAboutJson {
    fn from(about: TableAbout) -> Self {
        let TableAbout { id, title, study, year, source } = about;
        Self { id, title, study, year, source }
    }
}

/// A table with its figures.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PublishedFigures"))]
pub(crate) struct PublishedTableJson {
    about: PublishedAboutJson,
    figures: Vec<PublishedFigureJson>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PublishedFigure"))]
struct PublishedFigureJson {
    /// Its number in the table, from 0.
    number: usize,
    /// What it is of.
    name: String,
    /// The metric that it is one of, with its unit at the end.
    metric: &'static str,
    /// In that unit; both ends of a range, which are equal for a single figure.
    low: f64,
    high: f64,
    /// As it was printed.
    printed: String,
}

/// Mbit/s and ms in the units of metrics.
const MBIT_BPS: f64 = 1e6;
const MS_NS: f64 = 1e6;

/// `GET /api/v1/published`: the published tables that come with linerate.
pub(crate) async fn get_published() -> Json<Tables> {
    let read = TABLES.iter().filter_map(|table| table.read().ok());
    let tables = read.filter(|table| !figures(table).is_empty());
    Json(Tables { tables: tables.map(|table| table.about.into()).collect() })
}

/// `GET /api/v1/published/TABLE`: one table with its figures.
pub(crate) async fn get_published_table(
    Path(id): Path<String>,
) -> Result<Json<PublishedTableJson>, ApiError> {
    let found = TABLES.iter().find(|table| table.about.id == id);
    let none = || ApiError::not_found(format!("{id}: no table of this name comes with linerate"));
    let table = found.and_then(|table| table.read().ok()).ok_or_else(none)?;
    let figures = figures(&table);
    Ok(Json(PublishedTableJson { about: table.about.into(), figures }))
}

fn figures(table: &PublishedTable) -> Vec<PublishedFigureJson> {
    let single =
        |value: Option<f64>, unit: &str| value.map(|mbit| ((mbit, mbit), format!("{mbit} {unit}")));
    let goodput = |name: String, mbit: Option<f64>| {
        single(mbit, "Mbit/s").map(|figure| (name, MetricId::Goodput, MBIT_BPS, figure))
    };
    // Name, metric, printed unit in that of the metric, both ends, and the text as printed.
    let found: Vec<_> = match &table.rows {
        PublishedRows::Ping(rows) => {
            let row = |of: &linerate_core::study::PublishedPing| {
                let name = format!("{} {}, {} bytes", of.test, of.topology, of.payload_bytes);
                single(of.rtt_avg_ms, "ms").map(|figure| (name, MetricId::Rtt, MS_NS, figure))
            };
            rows.iter().map(row).collect()
        }
        PublishedRows::Tcp(rows) => {
            let row = |of: &linerate_core::study::PublishedTcp| {
                let (mtu, kib) = (of.mtu_bytes, of.window_bytes / 1024);
                let name = format!("{} {}, MTU {mtu}, window {kib} KiB", of.test, of.topology);
                goodput(name, of.throughput_mbit_s)
            };
            rows.iter().map(row).collect()
        }
        PublishedRows::Items(rows) => {
            let row = |of: &linerate_core::study::PublishedItem| {
                let (metric, unit) = match of.unit.as_str() {
                    "Mbit/s" => (MetricId::Goodput, MBIT_BPS),
                    "ms" => (MetricId::Rtt, MS_NS),
                    _ => return None,
                };
                let note = of.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
                let name = format!("{}{note}", of.item.replace('_', " "));
                let value = printed_range(of.value.as_ref()?, &of.unit)?;
                Some((name, metric, unit, value))
            };
            rows.iter().map(row).collect()
        }
        PublishedRows::Milestones(rows) => {
            let row = |of: &linerate_core::study::Milestone| {
                let name = format!("{} {}, {}", of.year.source_text(), of.label, of.network);
                Some((name, MetricId::Goodput, MBIT_BPS, printed_range(&of.rate_mbit_s, "Mbit/s")?))
            };
            rows.iter().map(row).collect()
        }
        PublishedRows::Routers(_) => Vec::new(),
    };
    let numbered = found.into_iter().enumerate().filter_map(|(number, row)| Some((number, row?)));
    let figures = numbered.map(|(number, (name, metric, unit, ((low, high), printed)))| {
        PublishedFigureJson {
            number,
            name,
            metric: metric.key(),
            low: low * unit,
            high: high * unit,
            printed,
        }
    });
    figures.collect()
}

/// Both ends of what was printed; none of one that is open.
fn printed_range(of: &Printed, unit: &str) -> Option<((f64, f64), String)> {
    Some(((of.lower_end()?, of.upper_end()?), format!("{} {unit}", of.source_text())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures_of_table(id: &str) -> Vec<PublishedFigureJson> {
        let table = TABLES.iter().find(|table| table.about.id == id).expect("it ships");
        figures(&table.read().expect("a sound table"))
    }

    /// Beside studies/data: row 1 of pren-2000-ttcp.csv is 587 Mbit/s at a window of 16384.
    #[test]
    fn figures_are_in_the_units_of_metrics() {
        let tcp = figures_of_table("pren-2000-ttcp");
        assert_eq!(tcp.len(), 48);
        assert_eq!(tcp[0].name, "c.1 localhost, MTU 1500, window 16 KiB");
        assert_eq!((tcp[0].metric, tcp[0].low, tcp[0].high), ("goodput_bps", 587e6, 587e6));
        let ping = figures_of_table("pren-2000-ping");
        let (metric, low) = (ping[0].metric, ping[0].low);
        assert_eq!((metric, low.round()), ("rtt_ns", 11_000.0), "0.011 ms");
        let items = figures_of_table("gigasunet-2004");
        let names: Vec<&str> = items.iter().map(|figure| figure.name.as_str()).collect();
        assert!(names[0].starts_with("rtt (about 1000 km"), "{names:?}");
        assert!(names.iter().all(|name| !name.contains("window gain")), "{names:?}");
        let range = figures_of_table("nap-1995")
            .into_iter()
            .find(|figure| figure.printed.starts_with("40-41"));
        assert_eq!(range.map(|figure| (figure.low, figure.high)), Some((40e6, 41e6)));
        assert!(figures_of_table("bradner-1990-routers").is_empty());
    }
}
