//! The text form of OpenMetrics 1.0
//! (github.com/OpenObservability/OpenMetrics, specification/OpenMetrics.md).

use std::fmt::Write;

/// A document in the making: family after family.
#[derive(Debug, Default)]
pub(super) struct OpenMetrics(String);

/// A sample's labels, and its value.
pub(super) type Row = (String, f64);

impl OpenMetrics {
    /// A family of values that go up and down.
    pub(super) fn gauge(&mut self, name: &str, help: &str, rows: &[Row]) {
        self.family(name, ("gauge", ""), help, rows);
    }

    /// A family of counts that only grow; its samples have `_total` behind the name.
    pub(super) fn counter(&mut self, name: &str, help: &str, rows: &[Row]) {
        self.family(name, ("counter", "_total"), help, rows);
    }

    fn family(&mut self, name: &str, (kind, suffix): (&str, &str), help: &str, rows: &[Row]) {
        let _ = write!(self.0, "# TYPE {name} {kind}\n# HELP {name} {help}\n");
        for (labels, value) in rows {
            let _ = writeln!(self.0, "{name}{suffix}{labels} {value}");
        }
    }

    /// The whole.
    pub(super) fn end(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }
}

/// Labels with their values, in braces.
pub(super) fn labels(of: &[(&str, &str)]) -> String {
    let each: Vec<String> =
        of.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
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
        let first = name.bytes().next().is_some_and(|it| it.is_ascii_alphabetic() || it == b'_');
        first && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_' || it == b':')
    };
    let mut families: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let (mut family, mut kind, mut seen) = (String::new(), String::new(), BTreeSet::new());
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, is) = rest.split_once(' ').expect("a type");
            assert!(is_name(name) && ["gauge", "counter"].contains(&is), "{line}");
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
        let (head, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = match head.split_once('{') {
            Some((name, rest)) => (name, labels_of(rest)),
            None => (head, Vec::new()),
        };
        let suffix = if kind == "counter" { "_total" } else { "" };
        assert_eq!(name, format!("{family}{suffix}"), "{line}");
        let distinct: BTreeSet<&String> = labels.iter().map(|(name, _)| name).collect();
        assert_eq!(distinct.len(), labels.len(), "{line}");
        assert!(labels.iter().all(|(name, _)| is_name(name) && !name.contains(':')), "{line}");
        let number: f64 = value.parse().expect("a number");
        assert!(number.is_finite() && !value.contains(['N', 'i']), "{line}");
        assert!(kind == "gauge" || number >= 0.0, "{line}");
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

    #[test]
    fn what_is_written_is_read_back_and_what_breaks_a_rule_is_found() {
        let mut text = OpenMetrics::default();
        text.gauge("a_seconds", "How long.", &[(labels(&[("x", "q\"\\\n"), ("y", "")]), 1.5)]);
        text.counter("b", "How often.", &[(String::new(), 3.0)]);
        let text = text.end();
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
        ] {
            let wrong = text.replacen(from, to, 1);
            assert!(std::panic::catch_unwind(|| read(&wrong)).is_err(), "{wrong}");
        }
    }
}
