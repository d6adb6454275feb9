//! The answer of a comparison: by how much each candidate differs from the first.

use linerate_core::comparison::{Compared, Comparison, Difference, Verdict};
use linerate_core::record::{MetricId, Record};

use crate::number::{self, NONE, or_dash, significant};

/// The unit in which all values of a comparison stand, and how many of what is measured it has.
#[derive(Clone, Copy)]
pub(crate) struct ComparedIn {
    /// As it is printed.
    pub(crate) name: &'static str,
    size: f64,
}

impl ComparedIn {
    /// Microseconds below a millisecond, milliseconds above; for rates the largest step.
    pub(crate) fn from_comparison(comparison: &Comparison) -> Self {
        let values = comparison.candidates.iter().filter_map(|candidate| candidate.value);
        let largest = values.fold(0.0, f64::max);
        let (name, size) = match comparison.metric {
            MetricId::Goodput if largest >= 1e9 => ("Gbit/s", 1e9),
            MetricId::Goodput => ("Mbit/s", 1e6),
            _ if largest < 1e6 => ("us", 1e3),
            _ => ("ms", 1e6),
        };
        Self { name, size }
    }

    /// Hundredths of microseconds are steps of 10 ns; those of ms and of Mbit/s are as fine as
    /// repeated measurements are.
    pub(crate) fn format_value(self, value: f64) -> String {
        match self.name {
            "us" | "ms" => format!("{:.2}", value / self.size),
            _ => significant(value / self.size, 4),
        }
    }

    pub(crate) fn signed(self, value: f64) -> String {
        let decimals = if self.name == "Gbit/s" { 3 } else { 2 };
        let text = format!("{:+.decimals$}", value / self.size);
        // A zero has no sign.
        if text.bytes().all(|byte| b"+-0.".contains(&byte)) { text[1..].to_owned() } else { text }
    }

    pub(crate) fn interval(self, difference: &Difference) -> String {
        difference.interval.map_or_else(
            || NONE.to_owned(),
            |interval| format!("{} to {}", self.signed(interval.low), self.signed(interval.high)),
        )
    }
}

pub(crate) const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Higher => "higher",
        Verdict::Lower => "lower",
        Verdict::NotDistinguishable => "not distinguishable",
        Verdict::NotKnown => "not known",
    }
}

/// The differences of the candidates from the first, or that there is none.
pub(super) fn result(record: &Record) -> String {
    let comparison = Comparison::from_record(record).filter(|comparison| comparison.rounds > 0);
    comparison.map_or_else(
        || "nothing was compared".to_owned(),
        |comparison| no_difference(&comparison).unwrap_or_else(|| differences(&comparison)),
    )
}

/// `no difference: both 20.18 ms (0.02 ms or 0.1 % would have shown)`, of two candidates of which
/// neither is higher.
fn no_difference(comparison: &Comparison) -> Option<String> {
    let unit = ComparedIn::from_comparison(comparison);
    let [first, other] = comparison.candidates.as_slice() else { return None };
    let values = (first.value?, other.value?);
    if other.verdict != Verdict::NotDistinguishable {
        return None;
    }
    let missed = would_have_shown(comparison, other, unit);
    let [one, two] = [values.0, values.1].map(|value| unit.format_value(value));
    Some(match one == two {
        true => format!("no difference: both {one} {}{missed}", unit.name),
        false => {
            let (a, b, name) = (&first.name, &other.name, unit.name);
            format!("no difference: {a} {one} {name}, {b} {two} {name}{missed}")
        }
    })
}

/// The least difference that this many rounds would have shown, in brackets; empty where it is not
/// known.
fn would_have_shown(comparison: &Comparison, other: &Compared, unit: ComparedIn) -> String {
    comparison.missed(other).map_or_else(String::new, |missed| {
        let share = number::percent(missed.share);
        let value = unit.signed(missed.value).replace('+', "");
        format!(" ({value} {} or {share} would have shown)", unit.name)
    })
}

/// `against a (6.25 us): b +2.70 us, c no different`
fn differences(comparison: &Comparison) -> String {
    let unit = ComparedIn::from_comparison(comparison);
    let Some((first, others)) = comparison.candidates.split_first() else { return String::new() };
    let others = others.iter().map(|other| match (other.verdict, other.difference) {
        (Verdict::Higher | Verdict::Lower, Some(difference)) => {
            format!("{} {} {}", other.name, unit.signed(difference.median), unit.name)
        }
        (Verdict::NotDistinguishable, _) => {
            let missed = would_have_shown(comparison, other, unit);
            format!("{} no different{missed}", other.name)
        }
        (found, _) => format!("{} {}", other.name, verdict(found)),
    });
    let others: Vec<String> = others.collect();
    let value = or_dash(first.value, |value| unit.format_value(value));
    format!("against {} ({value} {}): {}", first.name, unit.name, others.join(", "))
}
