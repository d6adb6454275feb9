//! `GET /metrics`: what is stored and what runs, in the text form of OpenMetrics 1.0. A scrape
//! never starts a test.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use linerate_core::record::Failure;

use super::error::ApiError;
use super::mesh::with_hub;
use super::mesh_metrics::{self, MeshState};
use super::open_metrics::{OpenMetrics, Row, labels};
use super::request::Peer;
use super::results::{near, with_store};
use super::state::State;
use crate::mesh::Hub;
use crate::store::{Line, LineFilter, SeriesValue, Store, TaskState};

/// The newest results that are looked at.
const LINES: usize = 1000;
/// Other ends that have figures of their own: what a scraper keeps of a label is for ever.
const PEERS_MAX: usize = 100;

/// Figures of the newest result of each kind and other end: name, help, value.
type Pick = fn(&Line) -> Option<f64>;
const FIGURES: [(&str, &str, Pick); 3] = [
    ("linerate_goodput_bits_per_second", "Payload rate of the newest result.", |line| {
        line.rate_bps
    }),
    ("linerate_loss_ratio", "Share of probes or datagrams lost in the newest result.", |line| {
        line.loss
    }),
    ("linerate_rtt_seconds", "Round-trip time of the newest result.", |line| {
        line.rtt_us.map(|us| us / 1e6)
    }),
];

pub(crate) async fn metrics(
    Shared(state): Shared<Arc<State>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    near(peer, &state, &headers)?;
    let stored = match state.options.store {
        Some(_) => with_store(&state, Stored::of).await?,
        None => Stored::default(),
    };
    let mesh = match state.mesh.get().cloned() {
        Some(hub) => Some(mesh_of(hub).await?),
        None => None,
    };
    let text = text(&stored, (state.gate.running(), state.gate.waiting()), mesh.as_ref());
    let mut response = text.into_response();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

async fn mesh_of(hub: Arc<Hub>) -> Result<MeshState, ApiError> {
    with_hub(hub, |hub| {
        let (matrix, (runs, waiting)) = (hub.matrix()?, hub.counts()?);
        Ok(MeshState { matrix, runs, waiting })
    })
    .await
}

/// What the store says.
#[derive(Default)]
struct Stored {
    lines: Vec<Line>,
    values: Vec<(String, SeriesValue)>,
    tasks: Vec<TaskState>,
}

impl Stored {
    fn of(store: &Store) -> Result<Self, Failure> {
        Ok(Self {
            lines: store.lines(&LineFilter::default(), LINES)?,
            values: store.newest_values()?,
            tasks: store.task_states()?,
        })
    }
}

/// Figures of each task of each schedule: name, help, value.
type PickTask = fn(&TaskState) -> Option<f64>;
#[allow(clippy::cast_precision_loss, reason = "seconds since 1970 fit 53 bits")]
const TASKS: [(&str, &str, PickTask); 4] = [
    ("linerate_schedule_last_run_timestamp_seconds", "Begin of the last run.", |task| {
        Some(task.last_s as f64)
    }),
    (
        "linerate_schedule_last_result_timestamp_seconds",
        "Begin of the last run with a result.",
        |task| task.good_s.map(|at_s| at_s as f64),
    ),
    ("linerate_schedule_no_data", "1: three runs or more without a result.", |task| {
        Some(f64::from(u8::from(task.no_data)))
    }),
    (
        "linerate_schedule_last_change_timestamp_seconds",
        "When the last lasting change was found.",
        |task| task.changed_s.map(|at_s| at_s as f64),
    ),
];

fn text(stored: &Stored, (running, waiting): (usize, usize), mesh: Option<&MeshState>) -> String {
    let mut text = OpenMetrics::default();
    let mut gauge = |name: &str, help: &str, rows: &[Row]| text.gauge(name, help, rows);
    gauge("linerate_tests_running", "Tests that run now.", &[(String::new(), running as f64)]);
    gauge("linerate_tests_waiting", "Clients that wait.", &[(String::new(), waiting as f64)]);
    let mut newest: BTreeMap<(&str, &str), &Line> = BTreeMap::new();
    for line in &stored.lines {
        let key = (line.kind.as_str(), line.peer.as_deref().unwrap_or(""));
        if newest.len() < PEERS_MAX || newest.contains_key(&key) {
            newest.entry(key).or_insert(line);
        }
    }
    for (name, help, pick) in FIGURES {
        let row = |((kind, peer), line): (&(&str, &str), &&Line)| {
            Some((labels(&[("kind", kind), ("peer", peer)]), pick(line)?))
        };
        let rows: Vec<_> = newest.iter().filter_map(row).collect();
        gauge(name, help, &rows);
    }
    let value = |(plan, value): &(String, SeriesValue)| {
        let of = [("plan", plan.as_str()), ("task", &value.task), ("metric", &value.metric)];
        (labels(&of), value.value)
    };
    let rows: Vec<_> = stored.values.iter().map(value).collect();
    gauge("linerate_schedule_value", "Newest value of a series, in its metric's unit.", &rows);
    for (name, help, pick) in TASKS {
        let row = |task: &TaskState| {
            Some((labels(&[("plan", &task.plan), ("task", &task.task)]), pick(task)?))
        };
        let rows: Vec<_> = stored.tasks.iter().filter_map(row).collect();
        gauge(name, help, &rows);
    }
    mesh.into_iter().for_each(|mesh| mesh_metrics::write(&mut text, mesh));
    text.end()
}

#[cfg(test)]
mod tests {
    use super::super::open_metrics;
    use super::*;

    #[test]
    fn the_newest_result_of_each_other_end_has_its_figures() {
        let line = |id: &str, peer: &str, rate: f64| Line {
            id: id.to_owned(),
            kind: "tcp".to_owned(),
            started_at: String::new(),
            peer: Some(peer.to_owned()),
            name: None,
            status: "ok".to_owned(),
            rate_bps: Some(rate),
            loss: None,
            rtt_us: Some(1500.0),
        };
        let lines = [line("3", "a", 3e6), line("2", "b\"", 2e6), line("1", "a", 1e6)];
        let value = SeriesValue {
            task: "home".to_owned(),
            metric: "goodput_bps/up".to_owned(),
            at_s: 7.0,
            value: 5e6,
            record: String::new(),
        };
        let task = TaskState {
            plan: "p".to_owned(),
            task: "home".to_owned(),
            last_s: 1_795_478_400,
            good_s: None,
            no_data: true,
            changed_s: None,
        };
        let stored = Stored {
            lines: lines.to_vec(),
            values: vec![("p".to_owned(), value)],
            tasks: vec![task],
        };
        let text = text(&stored, (1, 2), None);
        let labels = "{plan=\"p\",task=\"home\",metric=\"goodput_bps/up\"}";
        assert!(text.contains(&format!("linerate_schedule_value{labels} 5000000\n")), "{text}");
        let labels = "{plan=\"p\",task=\"home\"}";
        let run = "linerate_schedule_last_run_timestamp_seconds";
        assert!(text.contains(&format!("{run}{labels} 1795478400\n")), "{text}");
        assert!(text.contains(&format!("linerate_schedule_no_data{labels} 1\n")), "{text}");
        assert!(!text.contains("last_result_timestamp_seconds{"), "absent is not 0: {text}");
        assert!(text.contains("linerate_tests_waiting 2\n"), "{text}");
        let rate = "linerate_goodput_bits_per_second{kind=\"tcp\",peer=\"a\"} 3000000\n";
        assert!(text.contains(rate) && text.contains("peer=\"b\\\"\"} 2000000\n"), "{text}");
        assert!(text.contains("linerate_rtt_seconds{kind=\"tcp\",peer=\"a\"} 0.0015\n"), "{text}");
        assert!(!text.contains("linerate_loss_ratio{"), "absent is not 0: {text}");
        let families = open_metrics::read(&text);
        assert_eq!(families["linerate_goodput_bits_per_second"].len(), 2);
    }
}
