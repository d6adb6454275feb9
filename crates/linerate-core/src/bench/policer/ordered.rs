//! What was found against what was ordered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a parameter compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// What was ordered, within the tolerance, is among what fits.
    Kept,
    /// The device grants less: it drops what the order allows.
    Less,
    /// The device grants more than was ordered.
    More,
}

/// A parameter that was ordered and found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Its name: `cir`, `cbs`, `pcr`, `cdvt`, `scr`, `mbs`.
    pub parameter: String,
    /// Its unit.
    pub unit: String,
    /// What was ordered.
    pub ordered: f64,
    /// What was found.
    pub found: f64,
    /// Smallest that fits.
    pub low: f64,
    /// Largest that fits.
    pub high: f64,
    /// The verdict.
    pub holds: Holds,
}

impl Compared {
    /// Names the parameter.
    #[must_use]
    pub fn of(self, parameter: &str, unit: &str) -> Self {
        Self { parameter: parameter.to_owned(), unit: unit.to_owned(), ..self }
    }
}

/// Compares a found value and its interval with an order; `tolerance` is a share of the order
/// (0.01 for 1 %).
pub fn compare(ordered: f64, (low, found, high): (f64, f64, f64), tolerance: f64) -> Compared {
    let holds = if high < ordered * (1.0 - tolerance) {
        Holds::Less
    } else if low > ordered * (1.0 + tolerance) {
        Holds::More
    } else {
        Holds::Kept
    };
    let (parameter, unit) = (String::new(), String::new());
    Compared { parameter, unit, ordered, found, low, high, holds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_within_the_interval_is_kept() {
        let holds = |ordered, low, high| compare(ordered, (low, low, high), 0.01).holds;
        assert_eq!(holds(100.0, 99.5, 100.5), Holds::Kept);
        assert_eq!(holds(100.0, 90.0, 98.9), Holds::Less);
        assert_eq!(holds(100.0, 90.0, 99.1), Holds::Kept);
        assert_eq!(holds(100.0, 101.1, 110.0), Holds::More);
        let compared = compare(32.0, (15.0, 16.0, 16.0), 0.0).of("mbs", "cells");
        assert_eq!((compared.parameter.as_str(), compared.holds), ("mbs", Holds::Less));
    }
}
