//! The text form of OpenMetrics 1.0
//! (github.com/OpenObservability/OpenMetrics, specification/OpenMetrics.md).

use std::fmt::Write;

/// Labels of a sample: names and values.
pub(crate) type Labels = Vec<(String, String)>;

/// A sample's labels, and its value.
pub(super) type Row = (Labels, f64);

/// A document in the making: family after family.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OpenMetrics(pub(crate) Vec<MetricFamily>);

/// Samples of one name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetricFamily {
    pub(crate) name: String,
    pub(crate) kind: MetricFamilyKind,
    pub(crate) help: String,
    pub(crate) samples: Vec<MetricSample>,
}

/// Type of a metric family (OpenMetrics 1.0, "Metric Types").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricFamilyKind {
    Gauge,
    Counter,
    Histogram,
}

/// One sample of a family: labels and a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MetricSample {
    /// Suffix of the family's name, as `_total` or `_bucket`.
    pub(crate) suffix: &'static str,
    pub(crate) labels: Labels,
    pub(crate) value: f64,
    pub(crate) exemplar: Option<Exemplar>,
}

/// One of the values that a bucket counts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exemplar {
    pub(crate) labels: Labels,
    pub(crate) value: f64,
    /// Seconds since 1970-01-01 UTC.
    pub(crate) at_s: f64,
}

/// Counts of values by bucket, with their sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Histogram {
    pub(super) labels: Labels,
    /// Upper bounds, rising, with the values at or below each.
    pub(super) at_most: Vec<(f64, u64)>,
    pub(super) count: u64,
    pub(super) sum: f64,
    /// One of the values; it is shown at the first bucket that counts it.
    pub(super) exemplar: Option<Exemplar>,
}

impl OpenMetrics {
    /// A family of values that go up and down.
    pub(super) fn gauge(&mut self, name: &str, help: &str, rows: &[Row]) {
        self.family(
            name,
            MetricFamilyKind::Gauge,
            help,
            rows.iter().map(|row| plain_sample("", row)).collect(),
        );
    }

    /// A family of counts that only grow; its samples have `_total` behind the name.
    pub(super) fn counter(&mut self, name: &str, help: &str, rows: &[Row]) {
        let samples = rows.iter().map(|row| plain_sample("_total", row)).collect();
        self.family(name, MetricFamilyKind::Counter, help, samples);
    }

    /// A family of histograms.
    pub(super) fn histogram(&mut self, name: &str, help: &str, rows: &[Histogram]) {
        let samples = rows.iter().flat_map(Histogram::samples).collect();
        self.family(name, MetricFamilyKind::Histogram, help, samples);
    }

    fn family(
        &mut self,
        name: &str,
        kind: MetricFamilyKind,
        help: &str,
        samples: Vec<MetricSample>,
    ) {
        let (name, help) = (name.to_owned(), help.to_owned());
        self.0.push(MetricFamily { name, kind, help, samples });
    }

    /// The whole as text.
    pub(super) fn render_text(&self) -> String {
        let mut text = String::new();
        for MetricFamily { name, kind, help, samples } in &self.0 {
            let kind = kind.type_keyword();
            let _ = write!(text, "# TYPE {name} {kind}\n# HELP {name} {help}\n");
            for MetricSample { suffix, labels, value, exemplar } in samples {
                let _ = write!(text, "{name}{suffix}{} {value}", braces(labels, true));
                if let Some(Exemplar { labels, value, at_s }) = exemplar {
                    let _ = write!(text, " # {} {value} {at_s}", braces(labels, false));
                }
                text.push('\n');
            }
        }
        text.push_str("# EOF\n");
        text
    }
}

impl MetricFamilyKind {
    const fn type_keyword(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
        }
    }
}

fn plain_sample(suffix: &'static str, row: &Row) -> MetricSample {
    let (labels, value) = row;
    MetricSample { suffix, labels: labels.clone(), value: *value, exemplar: None }
}

impl Histogram {
    fn samples(&self) -> Vec<MetricSample> {
        let whole = (f64::INFINITY, self.count);
        let mut samples: Vec<MetricSample> = Vec::new();
        let mut exemplar = self.exemplar.clone();
        for (bound, count) in self.at_most.iter().copied().chain([whole]) {
            let le = if bound.is_finite() { format!("{bound:?}") } else { "+Inf".to_owned() };
            let mut labels = self.labels.clone();
            labels.push(("le".to_owned(), le));
            // A bucket without a value has none to show.
            let before = samples.last().map_or(0.0, |sample| sample.value);
            let value = count as f64;
            let shown = exemplar.take_if(|exemplar| exemplar.value <= bound && value > before);
            samples.push(MetricSample { suffix: "_bucket", labels, value, exemplar: shown });
        }
        samples.push(plain_sample("_count", &(self.labels.clone(), self.count as f64)));
        samples.push(plain_sample("_sum", &(self.labels.clone(), self.sum)));
        samples
    }
}

/// Labels with their values.
pub(super) fn labels(of: &[(&str, &str)]) -> Labels {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Labels in braces; none where a sample has none.
fn braces(labels: &Labels, may_be_none: bool) -> String {
    if labels.is_empty() && may_be_none {
        return String::new();
    }
    let each: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    format!("{{{}}}", each.join(","))
}

/// The value of a label (escaped-char).
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Names of families with their samples' names and labels, of a document that keeps to the grammar
/// and the rules of the standard; panics of one that does not.
#[cfg(test)]
pub(super) fn read(text: &str) -> std::collections::BTreeMap<String, Vec<(String, String)>> {
    use std::collections::{BTreeMap, BTreeSet};
    let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF");
    let is_name = |name: &str| {
        let first =
            name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        first
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':')
    };
    let mut families: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let (mut family, mut kind, mut seen) = (String::new(), String::new(), BTreeSet::new());
    let mut before: (Option<&str>, f64) = (None, 0.0);
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, is) = rest.split_once(' ').expect("a type");
            assert!(is_name(name) && ["gauge", "counter", "histogram"].contains(&is), "{line}");
            // Families do not interleave, and one comes once.
            assert!(families.insert(name.to_owned(), Vec::new()).is_none(), "{line}");
            // A counter's name has no _total of its own, a gauge's none either.
            assert!(!name.ends_with("_total"), "{line}");
            (family, kind) = (name.to_owned(), is.to_owned());
            continue;
        }
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a text");
            assert!(name == family && !help.is_empty() && !help.contains('\\'), "{line}");
            continue;
        }
        assert!(!line.starts_with('#') && !line.is_empty(), "{line:?}");
        let (line, exemplar) = match line.split_once(" # ") {
            Some((line, exemplar)) => (line, Some(exemplar)),
            None => (line, None),
        };
        let (head, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = match head.split_once('{') {
            Some((name, rest)) => (name, labels_of(rest)),
            None => (head, Vec::new()),
        };
        let suffixes: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        let suffix = name.strip_prefix(family.as_str()).expect("the family's name");
        assert!(suffixes.contains(&suffix), "{line}");
        let bound = labels.iter().find(|(name, _)| name == "le").map(|(_, value)| value.as_str());
        assert_eq!(bound.is_some(), suffix == "_bucket", "{line}");
        if let Some(exemplar) = exemplar {
            assert!(suffix == "_bucket" || suffix == "_total", "{line} # {exemplar}");
            let (labels, rest) = exemplar.rsplit_once("} ").expect("labels");
            let of = labels_of(&format!("{}}}", labels.strip_prefix('{').expect("a brace")));
            // At most 128 characters of names and values together.
            let length: usize = of.iter().map(|(a, b)| a.chars().count() + b.chars().count()).sum();
            assert!(length <= 128, "{exemplar}");
            let (value, at) = rest.split_once(' ').expect("a value and its time");
            let value: f64 = value.parse().expect("a number");
            assert!(at.parse::<f64>().is_ok_and(f64::is_finite), "{exemplar}");
            let bound = bound.map_or(f64::INFINITY, |bound| bound.parse().expect("a bound"));
            assert!(value <= bound, "{exemplar} is not of {line}");
        }
        let distinct: BTreeSet<&String> = labels.iter().map(|(name, _)| name).collect();
        assert_eq!(distinct.len(), labels.len(), "{line}");
        assert!(labels.iter().all(|(name, _)| is_name(name) && !name.contains(':')), "{line}");
        let number: f64 = value.parse().expect("a number");
        assert!(number.is_finite() && !value.contains(['N', 'i']), "{line}");
        assert!(kind == "gauge" || number >= 0.0, "{line}");
        if suffix == "_bucket" && before.0 == head.rsplit_once("le=").map(|label| label.0) {
            assert!(number >= before.1, "buckets add up: {line}");
        }
        before = (head.rsplit_once("le=").map(|label| label.0), number);
        assert!(seen.insert(head.to_owned()), "twice: {line}");
        families.get_mut(&family).expect("begun").push((name.to_owned(), head.to_owned()));
    }
    families
}

/// Labels behind an opening brace, unescaped.
#[cfg(test)]
fn labels_of(text: &str) -> Vec<(String, String)> {
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        let (name, behind) = rest.split_once("=\"").expect("a label");
        let (mut value, mut chars) = (String::new(), behind.char_indices());
        let end = loop {
            match chars.next().expect("the value ends") {
                (_, '\\') => match chars.next().expect("escaped").1 {
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    c => panic!("\\{c} is no escape"),
                },
                (at, '"') => break at + 1,
                (_, c) => value.push(c),
            }
        };
        found.push((name.to_owned(), value));
        match behind[end..].strip_prefix(',') {
            Some(more) => rest = more,
            None => {
                assert_eq!(&behind[end..], "}", "{text}");
                return found;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread() -> Histogram {
        let exemplar =
            Exemplar { labels: labels(&[("record", "01")]), value: 0.5, at_s: 1_795_478_400.25 };
        Histogram {
            labels: labels(&[("x", "y")]),
            at_most: vec![(0.001, 0), (1.0, 3)],
            count: 4,
            sum: 7.5,
            exemplar: Some(exemplar),
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_what_breaks_a_rule_is_found() {
        let mut text = OpenMetrics::default();
        text.gauge("a_seconds", "How long.", &[(labels(&[("x", "q\"\\\n"), ("y", "")]), 1.5)]);
        text.counter("b", "How often.", &[(Labels::new(), 3.0)]);
        text.histogram("c", "How spread.", &[spread()]);
        let text = text.render_text();
        let buckets = "c_bucket{x=\"y\",le=\"0.001\"} 0\nc_bucket{x=\"y\",le=\"1.0\"} 3 \
                       # {record=\"01\"} 0.5 1795478400.25\nc_bucket{x=\"y\",le=\"+Inf\"} 4\n\
                       c_count{x=\"y\"} 4\nc_sum{x=\"y\"} 7.5\n";
        assert!(text.contains(buckets), "{text}");
        // The standard's own form of a sample, by hand.
        assert!(text.contains("a_seconds{x=\"q\\\"\\\\\\n\",y=\"\"} 1.5\n"), "{text}");
        assert!(text.contains("# TYPE b counter\n# HELP b How often.\nb_total 3\n"), "{text}");
        let found = read(&text);
        assert_eq!(found["b"], [("b_total".to_owned(), "b_total".to_owned())]);
        assert_eq!(labels_of("x=\"q\\\"\\\\\\n\",y=\"\"}")[0].1, "q\"\\\n");
        for (from, to) in [
            ("# EOF\n", ""),
            ("b_total 3", "b 3"),
            ("b_total 3", "b_total -1"),
            ("b_total 3", "b_total 3\nb_total 3"),
            ("# TYPE b counter", "# TYPE a_seconds counter"),
            (" 1.5", " NaN"),
            ("\\\"", "\""),
            ("y=", "x="),
            ("} 4\nc_count", "} 2\nc_count"),
            ("} 0.5 1795478400.25", "} 1.5 1795478400.25"),
            ("c_count", "c"),
            ("record=\"01\"", &format!("record=\"{}\"", "0".repeat(123))),
        ] {
            let wrong = text.replacen(from, to, 1);
            assert!(std::panic::catch_unwind(|| read(&wrong)).is_err(), "{wrong}");
        }
    }
}
