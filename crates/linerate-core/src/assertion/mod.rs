//! Assertions over a result: `goodput >= 0.9 * ceiling and loaded_rtt.p95 <= 50 ms`.
//!
//! ```text
//! any   = all ("or" all)*          sum  = term (("+" | "-") term)*
//! all   = test ("and" test)*       term = part (("*" | "/") part)*
//! test  = sum [compare sum]        part = number [unit] | name | "(" any ")" | "-" part
//!                                  name = metric ("." word)*
//! ```
//! A name is a metric's key, with or without the unit at its end, or `ceiling`; the words behind
//! its points are a direction (`up`, `down`) and a statistic (`p95`, `max`). Quantities have units,
//! so that 10 and 10 ms are not mixed up; a mistake is found before anything is measured.
//! Left out: functions, names of streams.

mod evaluate;
mod parse;

pub use evaluate::{Judged, Side};

use std::fmt;
use std::str::FromStr;

use crate::record::{Direction, MetricId, Stat};

/// An assertion that can be held against a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    text: String,
    root: Condition,
}

/// A piece of an assertion.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Number(f64),
    Name(Name),
    Negated(Box<Self>),
    Sum(Box<Self>, char, Box<Self>),
    Compared(Box<Self>, Compare, Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
}

/// A figure of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    what: AssertedValue,
    direction: Option<Direction>,
    stat: Option<Stat>,
    /// Text of the name as it was written.
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AssertedValue {
    /// The first of these that the record has.
    Metric(Vec<MetricId>),
    /// The most that theory allows.
    Ceiling,
}

/// Comparison operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Least,
    Most,
    Above,
    Below,
    Equal,
    Other,
}

impl Compare {
    const ALL: [(&'static str, Self); 6] = [
        (">=", Self::Least),
        ("<=", Self::Most),
        ("==", Self::Equal),
        ("!=", Self::Other),
        (">", Self::Above),
        ("<", Self::Below),
    ];

    fn comparison_sign(self) -> &'static str {
        Self::ALL.iter().find(|(_, compare)| *compare == self).map_or("", |(sign, _)| sign)
    }

    fn is_satisfied(self, left: f64, right: f64) -> bool {
        match self {
            Self::Least => left >= right,
            Self::Most => left <= right,
            Self::Above => left > right,
            Self::Below => left < right,
            Self::Equal => left == right,
            Self::Other => left != right,
        }
    }
}

/// Dimension of a quantity: the unit in which it is stored. Counts and shares have none.
const NONE: &str = "";

/// The dimension of a metric's unit.
fn dimension(unit: &'static str) -> &'static str {
    match unit {
        "bit/s" | "ns" | "bytes" | "frames/s" | "s/GB" => unit,
        _ => NONE,
    }
}

impl FromStr for Assertion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.trim().to_owned(), root: parse::parse(text)? })
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[cfg(test)]
mod tests;
