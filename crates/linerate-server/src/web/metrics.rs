//! `GET /metrics`: what is stored and what runs, in the text form of OpenMetrics 1.0. A scrape
//! never starts a test.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use linerate_core::record::Failure;
use linerate_mesh::Hub;
use linerate_store::{LineFilter, ResultLine, SeriesValue, Sketched, Store, TaskState};

use super::error::ApiError;
use super::mesh_metrics::{self, MeshState};
use super::open_metrics::{Exemplar, Histogram, Labels, OpenMetrics, Row, labels};
use super::request::Peer;
use super::results::check_list_allowed;
use super::state::{State, with_hub};
use super::stored::with_store;
use crate::admission::Gate;

/// The newest results that are looked at.
const LINES: usize = 1000;
/// Other ends that have figures of their own: what a scraper keeps of a label is for ever.
const PEERS_MAX: usize = 100;
/// Figures that have histograms, of some twenty series each.
const HISTOGRAMS_MAX: usize = 300;

/// Figures of the newest result of each kind and other end: name, help, value.
type Pick = fn(&ResultLine) -> Option<f64>;
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
    check_list_allowed(peer, &state, &headers)?;
    let stored = match state.options.store {
        Some(_) => with_store(&state, StoredMetrics::from_store).await?,
        None => StoredMetrics::default(),
    };
    let mesh = match state.mesh.get().cloned() {
        Some(hub) => Some(with_hub(hub, |hub| Ok(MeshState::from_hub(hub)?)).await?),
        None => None,
    };
    let (running, waiting) = (state.gate.running(), state.gate.waiting());
    let document = document(&stored, running, waiting, mesh.as_ref());
    let mut response = document.render_text().into_response();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

/// The same, for who may wait.
/// # Errors
/// When the store cannot be read.
pub(crate) fn collect_metrics(
    store: Option<&Path>,
    gate: &Gate,
    hub: Option<&Hub>,
) -> Result<OpenMetrics, Failure> {
    let stored = match store {
        Some(path) => StoredMetrics::from_store(&Store::open_for_lookup(path)?)?,
        None => StoredMetrics::default(),
    };
    let mesh = hub.map(MeshState::from_hub).transpose()?;
    Ok(document(&stored, gate.running(), gate.waiting(), mesh.as_ref()))
}

/// Results and series of the store that `/metrics` shows.
#[derive(Default)]
struct StoredMetrics {
    lines: Vec<ResultLine>,
    values: Vec<(String, SeriesValue)>,
    tasks: Vec<TaskState>,
    /// All samples of each figure of a plan, and how many figures there are.
    whole: (Vec<(String, Sketched)>, usize),
}

impl StoredMetrics {
    fn from_store(store: &Store) -> Result<Self, Failure> {
        Ok(Self {
            lines: store.result_lines(&LineFilter::default(), LINES)?,
            values: store.newest_values()?,
            tasks: store.task_states()?,
            whole: store.whole_sketches(HISTOGRAMS_MAX)?,
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

/// Upper bounds of buckets in each factor of ten, and the powers of ten of the least bound of each
/// unit: 10 us to 10 s, 100 kbit/s to 100 Gbit/s.
const IN_TEN: [u64; 3] = [1, 2, 5];
const DELAY_NS: std::ops::Range<u32> = 4..10;
const RATE_BPS: std::ops::Range<u32> = 5..11;

/// All samples of a figure by bucket, in its base unit.
fn histogram(
    plan: &str,
    sketched: &Sketched,
    powers: std::ops::Range<u32>,
    unit: f64,
    newest: Option<&SeriesValue>,
) -> Histogram {
    let Sketched { task, metric, sketch, .. } = sketched;
    let last = 10_u64.pow(powers.end);
    let each = powers.flat_map(|power| IN_TEN.map(|digit| digit * 10_u64.pow(power)));
    let at_most = |bound: u64| (bound as f64 / unit, sketch.at_most(bound));
    let exemplar = newest.map(|newest| Exemplar {
        labels: labels(&[("record", &newest.record)]),
        value: newest.value / unit,
        at_s: newest.at_s,
    });
    Histogram {
        labels: labels(&[("plan", plan), ("task", task), ("metric", metric)]),
        at_most: each.chain([last]).map(at_most).collect(),
        count: sketch.count(),
        sum: sketch.sum() / unit,
        exemplar,
    }
}

fn histograms(document: &mut OpenMetrics, stored: &StoredMetrics) {
    let newest = |plan: &str, of: &Sketched| {
        let found = stored.values.iter().find(|(name, value)| {
            name == plan && value.task == of.task && value.metric == of.metric
        });
        found.map(|(_, value)| value)
    };
    let (whole, count) = &stored.whole;
    for (name, help, ends, powers, unit) in [
        ("linerate_schedule_delay_seconds", "Delays of all probes.", "_ns", DELAY_NS, 1e9),
        ("linerate_schedule_rate_bits_per_second", "Rates of all runs.", "_bps", RATE_BPS, 1.0),
    ] {
        let mine = whole.iter().filter(|(_, sketched)| {
            sketched.metric.split('/').next().is_some_and(|metric| metric.ends_with(ends))
        });
        let rows = mine.map(|(plan, sketched)| {
            histogram(plan, sketched, powers.clone(), unit, newest(plan, sketched))
        });
        let rows: Vec<Histogram> = rows.collect();
        document.histogram(name, help, &rows);
    }
    let left = (count - whole.len()) as f64;
    let help = "Figures beyond the bound of histograms.";
    document.gauge("linerate_schedule_histograms_left_out", help, &[(Labels::new(), left)]);
}

fn document(
    stored: &StoredMetrics,
    running: usize,
    waiting: usize,
    mesh: Option<&MeshState>,
) -> OpenMetrics {
    let mut text = OpenMetrics::default();
    let mut gauge = |name: &str, help: &str, rows: &[Row]| text.gauge(name, help, rows);
    gauge("linerate_tests_running", "Tests that run now.", &[(Labels::new(), running as f64)]);
    gauge("linerate_tests_waiting", "Clients that wait.", &[(Labels::new(), waiting as f64)]);
    let mut newest: BTreeMap<(&str, &str), &ResultLine> = BTreeMap::new();
    for line in &stored.lines {
        let key = (line.kind.as_str(), line.peer.as_deref().unwrap_or(""));
        if newest.len() < PEERS_MAX || newest.contains_key(&key) {
            newest.entry(key).or_insert(line);
        }
    }
    for (name, help, pick) in FIGURES {
        let rows = newest.iter().filter_map(|((kind, peer), line)| {
            Some((labels(&[("kind", kind), ("peer", peer)]), pick(line)?))
        });
        let rows: Vec<_> = rows.collect();
        gauge(name, help, &rows);
    }
    let values = stored.values.iter().map(|(plan, value)| {
        let of = [("plan", plan.as_str()), ("task", &value.task), ("metric", &value.metric)];
        (labels(&of), value.value)
    });
    let rows: Vec<_> = values.collect();
    gauge("linerate_schedule_value", "Newest value of a series, in its metric's unit.", &rows);
    for (name, help, pick) in TASKS {
        let row = |task: &TaskState| {
            Some((labels(&[("plan", &task.plan), ("task", &task.task)]), pick(task)?))
        };
        let rows: Vec<_> = stored.tasks.iter().filter_map(row).collect();
        gauge(name, help, &rows);
    }
    histograms(&mut text, stored);
    mesh.into_iter().for_each(|mesh| mesh_metrics::write(&mut text, mesh));
    text
}

#[cfg(test)]
mod tests {
    use super::super::open_metrics;
    use super::*;

    #[test]
    fn the_newest_result_of_each_other_end_has_its_figures() {
        let line = |id: &str, peer: &str, rate: f64| ResultLine {
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
            record: "r7".to_owned(),
        };
        let task = TaskState {
            plan: "p".to_owned(),
            task: "home".to_owned(),
            last_s: 1_795_478_400,
            good_s: None,
            no_data: true,
            changed_s: None,
        };
        let sketched = |metric: &str, samples: &[u64]| {
            let sketch = samples.iter().copied().collect();
            let (task, metric) = ("home".to_owned(), metric.to_owned());
            ("p".to_owned(), Sketched { task, metric, at_s: 0, sketch })
        };
        // Two runs of 5 and 40 Mbit/s; three probes, one of 3 ms and two of 30 ms.
        let whole = [
            sketched("goodput_bps/up", &[5_000_000, 40_000_000]),
            sketched("rtt_ns", &[3_000_000, 30_000_000, 30_000_000]),
        ];
        let stored = StoredMetrics {
            lines: lines.to_vec(),
            values: vec![("p".to_owned(), value)],
            tasks: vec![task],
            whole: (whole.to_vec(), 3),
        };
        let text = document(&stored, 1, 2, None).render_text();
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
        let bucket = |family: &str, metric: &str, rest: &str| {
            let labels = format!("{{plan=\"p\",task=\"home\",metric=\"{metric}\",le=");
            let line = format!("{family}_bucket{labels}{rest}\n");
            assert!(text.contains(&line), "{line} is not in {text}");
        };
        let rate = "linerate_schedule_rate_bits_per_second";
        bucket(rate, "goodput_bps/up", "\"5000000.0\"} 0");
        // 5 Mbit/s lies in a bin that ends above it, so it is counted from the next bound on.
        bucket(rate, "goodput_bps/up", "\"10000000.0\"} 1 # {record=\"r7\"} 5000000 7");
        bucket(rate, "goodput_bps/up", "\"50000000.0\"} 2");
        let delay = "linerate_schedule_delay_seconds";
        bucket(delay, "rtt_ns", "\"0.002\"} 0");
        bucket(delay, "rtt_ns", "\"0.005\"} 1");
        bucket(delay, "rtt_ns", "\"0.05\"} 3");
        bucket(delay, "rtt_ns", "\"+Inf\"} 3");
        assert!(text.contains("linerate_schedule_histograms_left_out 1\n"), "{text}");
        let families = open_metrics::read(&text);
        assert_eq!(families[delay].len(), 19 + 3);
        assert_eq!(families["linerate_goodput_bits_per_second"].len(), 2);
    }
}
