//! A request of OTLP over HTTP in its JSON form.
//!
//! # Source
//! OpenTelemetry Protocol 1 (opentelemetry.io/docs/specs/otlp, JSON Protobuf Encoding: integers of
//! 64 bits are strings, keys are in lowerCamelCase) and metrics.proto. Counters and histograms are
//! cumulative since the program began to hand them on.

use linerate_core::time::WallTime;
use serde_json::{Value, json};

use super::super::open_metrics::{
    Exemplar, Labels, MetricFamily, MetricFamilyKind, MetricSample, OpenMetrics,
};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE` of OTLP's metrics.proto: values count since the start.
const CUMULATIVE: u8 = 2;

/// The `ExportMetricsServiceRequest` for the figures of a time.
pub(super) fn request(found: &OpenMetrics, begun: WallTime, now: WallTime) -> Value {
    let (begun, now) = (nanos_text(begun), nanos_text(now));
    let metrics: Vec<Value> = found
        .0
        .iter()
        .filter(|family| !family.samples.is_empty())
        .map(|family| metric(family, &begun, &now))
        .collect();
    let version = env!("CARGO_PKG_VERSION");
    let name = vec![("service.name".to_owned(), "linerate".to_owned())];
    json!({ "resourceMetrics": [{
        "resource": { "attributes": attributes(&name) },
        "scopeMetrics": [{
            "scope": { "name": "linerate", "version": version },
            "metrics": metrics,
        }],
    }]})
}

fn nanos_text(time: WallTime) -> String {
    (u128::from(time.unix_millis()) * 1_000_000).to_string()
}

fn attributes(labels: &Labels) -> Value {
    let each = labels.iter().filter(|(_, value)| !value.is_empty());
    each.map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}

fn metric(family: &MetricFamily, begun: &str, now: &str) -> Value {
    let point = |sample: &MetricSample| {
        json!({
            "attributes": attributes(&sample.labels),
            "startTimeUnixNano": begun,
            "timeUnixNano": now,
            "asDouble": sample.value,
        })
    };
    let points = || family.samples.iter().map(point).collect::<Vec<_>>();
    let (key, data) = match family.kind {
        MetricFamilyKind::Gauge => ("gauge", json!({ "dataPoints": points() })),
        MetricFamilyKind::Counter => (
            "sum",
            json!({
                "dataPoints": points(),
                "aggregationTemporality": CUMULATIVE,
                "isMonotonic": true,
            }),
        ),
        MetricFamilyKind::Histogram => (
            "histogram",
            json!({
                "dataPoints": histograms(&family.samples, begun, now),
                "aggregationTemporality": CUMULATIVE,
            }),
        ),
    };
    json!({ "name": family.name, "description": family.help, key: data })
}

/// Buckets, count and sum of each histogram; the buckets of OTLP do not add up.
fn histograms(samples: &[MetricSample], begun: &str, now: &str) -> Vec<Value> {
    let ends = |sample: &&MetricSample| sample.suffix == "_sum";
    let each = samples.split_inclusive(|sample| ends(&sample));
    each.map(|of| {
        let buckets: Vec<&MetricSample> =
            of.iter().filter(|sample| sample.suffix == "_bucket").collect();
        let value =
            |suffix| of.iter().find(|row| row.suffix == suffix).map_or(0.0, |row| row.value);
        let before = std::iter::once(0.0).chain(buckets.iter().map(|bucket| bucket.value));
        let counts =
            buckets.iter().zip(before).map(|(row, before)| (row.value - before).to_string());
        let bound = |bucket: &&MetricSample| {
            let le = bucket.labels.iter().find(|(name, _)| name == "le")?;
            le.1.parse::<f64>().ok().filter(|bound| bound.is_finite())
        };
        let exemplars = buckets.iter().filter_map(|bucket| bucket.exemplar.as_ref()).map(exemplar);
        let labels = of.last().map_or(&[][..], |sample| &sample.labels);
        json!({
            "attributes": attributes(&labels.to_vec()),
            "startTimeUnixNano": begun,
            "timeUnixNano": now,
            "count": value("_count").to_string(),
            "sum": value("_sum"),
            "bucketCounts": counts.collect::<Vec<_>>(),
            "explicitBounds": buckets.iter().filter_map(bound).collect::<Vec<_>>(),
            "exemplars": exemplars.collect::<Vec<_>>(),
        })
    })
    .collect()
}

fn exemplar(of: &Exemplar) -> Value {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "since 1970")]
    let at_ms = (of.at_s * 1000.0).max(0.0) as u128;
    json!({
        "filteredAttributes": attributes(&of.labels),
        "timeUnixNano": (at_ms * 1_000_000).to_string(),
        "asDouble": of.value,
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::open_metrics::{Histogram, labels};
    use super::*;

    #[test]
    fn a_request_has_the_keys_and_the_forms_of_the_protocol() {
        let mut found = OpenMetrics::default();
        found.gauge("g", "Up and down.", &[(labels(&[("a", "b"), ("none", "")]), 0.5)]);
        found.counter("c", "Up.", &[(Labels::new(), 3.0)]);
        let exemplar = Exemplar { labels: labels(&[("record", "7")]), value: 0.25, at_s: 2.5 };
        let histogram = |name: &str| Histogram {
            labels: labels(&[("a", name)]),
            at_most: vec![(0.1, 1), (1.0, 4)],
            count: 6,
            sum: 9.5,
            exemplar: Some(exemplar.clone()),
        };
        found.histogram("h", "Spread.", &[histogram("x"), histogram("y")]);
        found.gauge("empty", "Nothing.", &[]);
        let at = |s: u128| WallTime::from_unix_nanos(s * 1_000_000_000);
        let request = request(&found, at(1), at(2));
        let of = |path: &str| request.pointer(&format!("/resourceMetrics/0/{path}")).cloned();
        let service = json!({"key": "service.name", "value": {"stringValue": "linerate"}});
        assert_eq!(of("resource/attributes/0"), Some(service));
        let metric = |path: &str| of(&format!("scopeMetrics/0/metrics/{path}"));
        let point = json!({
            "attributes": [{"key": "a", "value": {"stringValue": "b"}}],
            "startTimeUnixNano": "1000000000", "timeUnixNano": "2000000000", "asDouble": 0.5,
        });
        assert_eq!(metric("0/gauge/dataPoints/0"), Some(point));
        assert_eq!(metric("1/sum/isMonotonic"), Some(json!(true)));
        assert_eq!(metric("1/sum/aggregationTemporality"), Some(json!(2)));
        assert_eq!(
            metric("2/histogram/dataPoints").and_then(|points| points.as_array().map(Vec::len)),
            Some(2)
        );
        let second = json!({
            "attributes": [{"key": "a", "value": {"stringValue": "y"}}],
            "startTimeUnixNano": "1000000000", "timeUnixNano": "2000000000",
            "count": "6", "sum": 9.5,
            // Of 6 values 1 is at most 0.1, 3 more at most 1, and 2 above.
            "bucketCounts": ["1", "3", "2"], "explicitBounds": [0.1, 1.0],
            "exemplars": [{
                "filteredAttributes": [{"key": "record", "value": {"stringValue": "7"}}],
                "timeUnixNano": "2500000000", "asDouble": 0.25,
            }],
        });
        assert_eq!(metric("2/histogram/dataPoints/1"), Some(second));
        assert_eq!(metric("3"), None, "no samples, no metric");
    }
}
