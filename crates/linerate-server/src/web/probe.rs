//! `GET /probe?target=HOST&module=icmp`: a light test to an allowed target, within three seconds,
//! as Prometheus' blackbox exporter does (its `probe_success`, `probe_duration_seconds`).
//!
//! It takes no place at the gate, for some probes disturb no test; four run at once. Nothing is
//! stored.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use linerate_core::record::{MetricId, PingPlan, Record, Stat};
use linerate_engine::context::Context;
use linerate_engine::rtt;
use linerate_sys::clock::monotonic;
use linerate_sys::stop::Stop;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::error::{ApiError, Readable};
use super::from_here::{MeasureKind, MeasureTarget};
use super::request::{Peer, client_of};
use super::state::State;

/// Probes of all clients at once.
static AT_ONCE: Semaphore = Semaphore::const_new(4);
/// Most time that a probe may take in all.
const WITHIN: Duration = Duration::from_secs(3);
/// Five probes take 0.8 s, and the last of them has a second for its answer.
const PINGS: u64 = 5;
const PING_EVERY_NS: u64 = 200_000_000;
const PING_TIMEOUT_NS: u64 = 1_000_000_000;

/// Target and kind of a probe that a scraper asks for.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ProbeQuery"))]
pub(crate) struct ProbeQuery {
    /// HOST, with `tcp` HOST:PORT.
    target: String,
    #[serde(default)]
    module: Module,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum Module {
    /// Five ICMP echo requests.
    #[default]
    Icmp,
    /// The handshake of a TCP connection, which is closed at once.
    Tcp,
}

/// Result of one probe for a scraper.
#[derive(Debug, Default, PartialEq)]
struct Found {
    success: bool,
    loss: Option<f64>,
    /// Round trips in seconds, each with its statistic's name.
    rtt: Vec<(&'static str, f64)>,
}

pub(crate) async fn get_probe(
    Shared(state): Shared<Arc<State>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    Readable(asked): Readable<ProbeQuery>,
) -> Result<Response, ApiError> {
    not_of_another_page(&headers)?;
    let client = client_of(peer, &headers)?;
    let kind = if asked.module == Module::Icmp { MeasureKind::Ping } else { MeasureKind::Tcp };
    let target = MeasureTarget::find_any_port(&asked.target, kind, &state, &client).await?;
    let busy = || {
        let say = "four probes run already; ask again";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", say)
    };
    let _place = AT_ONCE.try_acquire().map_err(|_| busy())?;
    let begin = monotonic();
    let found = match asked.module {
        Module::Tcp => handshake(&target).await,
        Module::Icmp => ping_target(&target, &state).await,
    };
    let text = metrics_text(&found, monotonic().duration_since(begin), target.address().is_ipv6());
    let mut response = text.into_response();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

/// It is a GET that does something: pages of other sites have no use for it (Fetch Metadata, W3C).
fn not_of_another_page(headers: &HeaderMap) -> Result<(), ApiError> {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let own = site.is_none_or(|site| matches!(site, b"same-origin" | b"none"));
    own.then_some(()).ok_or_else(|| ApiError::forbidden("a page of another site may not ask this"))
}

async fn handshake(target: &MeasureTarget) -> Found {
    let begin = monotonic();
    let connect = tokio::net::TcpStream::connect((target.address(), target.port()));
    let done = tokio::time::timeout(WITHIN, connect).await;
    let took = monotonic().duration_since(begin).as_secs_f64();
    match done {
        Ok(Ok(_)) => Found { success: true, loss: None, rtt: vec![("connect", took)] },
        _ => Found::default(),
    }
}

async fn ping_target(target: &MeasureTarget, state: &State) -> Found {
    let plan = PingPlan {
        host: target.address().to_string(),
        count: Some(PINGS),
        interval_ns: PING_EVERY_NS,
        timeout_ns: PING_TIMEOUT_NS,
        warmup: 0,
        ..PingPlan::default()
    };
    let tool = state.options.tool.clone();
    let stop = Stop::new();
    let ends = stop.clone();
    let work = tokio::task::spawn_blocking(move || {
        let mut watch = |_: &linerate_core::record::Event| {};
        rtt::run(&plan, &mut Context { tool, stop, watch: &mut watch })
    });
    let record = tokio::time::timeout(WITHIN, work).await;
    ends.request_stop();
    record.ok().and_then(Result::ok).map(|record| probe_result(&record)).unwrap_or_default()
}

fn probe_result(record: &Record) -> Found {
    let value = |metric: MetricId, stat: Stat| {
        let is = |row: &&linerate_core::record::Summary| row.metric == metric && row.stat == stat;
        record.summary.iter().find(is).map(|row| row.value)
    };
    let stats = [("min", Stat::Min), ("p50", Stat::P50), ("max", Stat::Max)];
    let rtt = stats
        .into_iter()
        .filter_map(|(name, stat)| Some((name, value(MetricId::Rtt, stat)? / 1e9)));
    Found {
        success: value(MetricId::Received, Stat::Value).is_some_and(|count| count > 0.0),
        loss: value(MetricId::LossRatio, Stat::Value),
        rtt: rtt.collect(),
    }
}

fn metrics_text(found: &Found, took: Duration, ipv6: bool) -> String {
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, rows: &[(String, f64)]| {
        let _ = write!(text, "# TYPE {name} gauge\n# HELP {name} {help}\n");
        for (labels, value) in rows {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let plain = |value: f64| vec![(String::new(), value)];
    gauge("probe_success", "1: the target answered.", &plain(f64::from(u8::from(found.success))));
    gauge("probe_duration_seconds", "Time of the whole probe.", &plain(took.as_secs_f64()));
    gauge("probe_ip_protocol", "4 or 6.", &plain(if ipv6 { 6.0 } else { 4.0 }));
    let loss: Vec<_> = found.loss.into_iter().map(|loss| (String::new(), loss)).collect();
    gauge("linerate_probe_loss_ratio", "Share of probes without an answer.", &loss);
    let label = |name: &str| format!("{{stat=\"{name}\"}}");
    let rtt: Vec<_> = found.rtt.iter().map(|(name, seconds)| (label(name), *seconds)).collect();
    gauge("linerate_probe_rtt_seconds", "Round trips, or the time of the handshake.", &rtt);
    text.push_str("# EOF\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_has_no_value() {
        let silent = metrics_text(&Found::default(), Duration::from_millis(1500), false);
        assert!(silent.contains("probe_success 0\n") && silent.contains("probe_ip_protocol 4\n"));
        assert!(silent.contains("probe_duration_seconds 1.5\n") && silent.ends_with("# EOF\n"));
        assert!(!silent.contains("rtt_seconds{") && !silent.contains("loss_ratio 0"), "{silent}");
        let rtt = vec![("connect", 0.25)];
        let there = metrics_text(&Found { success: true, loss: None, rtt }, WITHIN, true);
        assert!(there.contains("linerate_probe_rtt_seconds{stat=\"connect\"} 0.25\n"), "{there}");
    }

    #[test]
    fn a_page_of_another_site_cannot_send_probes() {
        let with = |site: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("sec-fetch-site", HeaderValue::from_static(site));
            not_of_another_page(&headers).is_ok()
        };
        assert!(not_of_another_page(&HeaderMap::new()).is_ok() && with("same-origin"));
        assert!(!with("cross-site") && !with("same-site"));
    }
}
