//! The answer of a comparison: by how much each candidate differs from the first.

use linerate_core::comparison::{Comparison, Difference, ROUNDS_MIN, Verdict};
use linerate_core::record::{MetricId, Plan, Record};

use super::{Headline, Limit, LimitedBy, Quality, short_id};
use crate::number::{NONE, or_dash, significant};
use crate::words;

/// The unit in which all values of a comparison stand, and how many of what is measured it has.
#[derive(Clone, Copy)]
pub(crate) struct ComparedIn {
    /// As it is printed.
    pub(crate) name: &'static str,
    size: f64,
}

impl ComparedIn {
    /// Microseconds below a millisecond, milliseconds above; for rates the largest step.
    pub(crate) fn of(comparison: &Comparison) -> Self {
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
    pub(crate) fn value(self, value: f64) -> String {
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
            |it| format!("{} to {}", self.signed(it.low), self.signed(it.high)),
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

/// The answer in one line.
pub(super) fn of(record: &Record) -> Headline {
    let id = short_id(&record.id.to_string()).to_owned();
    let comparison = Comparison::of(record).filter(|comparison| comparison.rounds > 0);
    let (result, quality, doubt) = match (&comparison, &record.failure) {
        (Some(comparison), failure) => {
            let (quality, doubt) = trust(comparison, in_turn(record));
            let doubt = failure.as_ref().map_or(doubt, |it| format!("ended early: {}", it.reason));
            let quality = if failure.is_some() { Quality::Doubtful } else { quality };
            (result(comparison), quality, doubt)
        }
        (None, Some(failure)) => {
            ("nothing was compared".to_owned(), Quality::Bad, failure.to_string())
        }
        (None, None) => ("nothing was compared".to_owned(), Quality::Bad, String::new()),
    };
    let limit = Limit::new(LimitedBy::Nothing, "");
    Headline { result, share: None, ceiling: String::new(), limit, quality, doubt, id }
}

/// `against a (6.25 us): b +2.70 us, c not distinguishable`
fn result(comparison: &Comparison) -> String {
    let unit = ComparedIn::of(comparison);
    let Some((first, others)) = comparison.candidates.split_first() else { return String::new() };
    let others = others.iter().map(|it| match (it.verdict, it.difference) {
        (Verdict::Higher | Verdict::Lower, Some(difference)) => {
            format!("{} {} {}", it.name, unit.signed(difference.median), unit.name)
        }
        (other, _) => format!("{} {}", it.name, verdict(other)),
    });
    let others: Vec<String> = others.collect();
    let value = or_dash(first.value, |value| unit.value(value));
    format!("against {} ({value} {}): {}", first.name, unit.name, others.join(", "))
}

/// Whether all was measured for the comparison, and not before.
fn in_turn(record: &Record) -> bool {
    let Plan::Compare(plan) = &record.plan else { return true };
    plan.candidates.iter().all(|candidate| candidate.result.is_none())
}

/// Too few rounds, a first candidate that differs from itself, and results of different times are
/// reasons to doubt.
fn trust(comparison: &Comparison, in_turn: bool) -> (Quality, String) {
    if comparison.rounds < ROUNDS_MIN as usize {
        let rounds = words::counted(comparison.rounds as u64, "round");
        return (Quality::Doubtful, format!("{rounds} of the {ROUNDS_MIN} that an interval takes"));
    }
    let first = comparison.candidates.first();
    let itself = first.and_then(|first| Some((first, first.difference?.interval?)));
    match itself {
        Some((first, interval)) if interval.low > 0.0 || interval.high < 0.0 => {
            (Quality::Doubtful, format!("{} differs from itself", first.name))
        }
        _ if !in_turn => (Quality::Doubtful, "not measured in turn".to_owned()),
        _ => (Quality::Good, String::new()),
    }
}
