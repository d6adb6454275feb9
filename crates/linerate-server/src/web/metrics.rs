//! `GET /metrics`: what is stored and what runs, in the text form of OpenMetrics 1.0. A scrape
//! never starts a test.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::error::ApiError;
use super::request::Peer;
use super::results::{near, with_store};
use super::state::State;
use crate::store::{Line, LineFilter};

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
    let lines = match state.options.store {
        Some(_) => with_store(&state, |store| store.lines(&LineFilter::default(), LINES)).await?,
        None => Vec::new(),
    };
    let text = text(&lines, state.gate.running(), state.gate.waiting());
    let mut response = text.into_response();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

fn text(lines: &[Line], running: usize, waiting: usize) -> String {
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, rows: &[(String, f64)]| {
        let _ = write!(text, "# TYPE {name} gauge\n# HELP {name} {help}\n");
        for (labels, value) in rows {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    gauge("linerate_tests_running", "Tests that run now.", &[(String::new(), running as f64)]);
    gauge("linerate_tests_waiting", "Clients that wait.", &[(String::new(), waiting as f64)]);
    let mut newest: BTreeMap<(&str, &str), &Line> = BTreeMap::new();
    for line in lines {
        let key = (line.kind.as_str(), line.peer.as_deref().unwrap_or(""));
        if newest.len() < PEERS_MAX || newest.contains_key(&key) {
            newest.entry(key).or_insert(line);
        }
    }
    for (name, help, pick) in FIGURES {
        let row = |((kind, peer), line): (&(&str, &str), &&Line)| {
            let labels = format!("{{kind=\"{}\",peer=\"{}\"}}", escaped(kind), escaped(peer));
            Some((labels, pick(line)?))
        };
        let rows: Vec<_> = newest.iter().filter_map(row).collect();
        gauge(name, help, &rows);
    }
    text.push_str("# EOF\n");
    text
}

/// The value of a label (OpenMetrics 1.0, escaped-char).
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
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
        let text = text(&lines, 1, 2);
        assert!(text.contains("linerate_tests_waiting 2\n"), "{text}");
        let rate = "linerate_goodput_bits_per_second{kind=\"tcp\",peer=\"a\"} 3000000\n";
        assert!(text.contains(rate) && text.contains("peer=\"b\\\"\"} 2000000\n"), "{text}");
        assert!(text.contains("linerate_rtt_seconds{kind=\"tcp\",peer=\"a\"} 0.0015\n"), "{text}");
        assert!(!text.contains("linerate_loss_ratio{"), "absent is not 0: {text}");
        assert!(text.ends_with("# EOF\n"));
    }
}
