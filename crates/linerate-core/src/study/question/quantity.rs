//! A figure with its unit: one value, or the two ends of a printed range.
//!
//! Sums over ranges take their ends (Moore, Interval Analysis, 1966); what a range leaves open is
//! not decided.

use serde::{Deserialize, Serialize};

use crate::stats::{Moments, median};
use crate::study::Printed;

/// Quantity that a figure counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second.
    Rate,
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// A part of a whole: 1 is all of it.
    Share,
    /// How many times one figure is another.
    Times,
    /// A number without a unit.
    Number,
    /// Anything that is counted: `segments`, `packets/s`.
    Count(String),
}

/// Units as they are written, with the unit that they are kept in and the factor to it.
const WRITTEN: [(&str, Unit, f64); 17] = [
    ("", Unit::Number, 1.0),
    ("bit/s", Unit::Rate, 1.0),
    ("kbit/s", Unit::Rate, 1e3),
    ("Mbit/s", Unit::Rate, 1e6),
    ("Gbit/s", Unit::Rate, 1e9),
    ("Tbit/s", Unit::Rate, 1e12),
    ("ns", Unit::Time, 1.0),
    ("us", Unit::Time, 1e3),
    ("ms", Unit::Time, 1e6),
    ("s", Unit::Time, 1e9),
    ("bytes", Unit::Bytes, 1.0),
    ("KiB", Unit::Bytes, 1024.0),
    ("MiB", Unit::Bytes, 1_048_576.0),
    ("%", Unit::Share, 0.01),
    ("percent", Unit::Share, 0.01),
    ("fraction", Unit::Share, 1.0),
    ("times", Unit::Times, 1.0),
];

impl Unit {
    /// The unit that a text names, and the factor from a number in it to what is kept.
    pub fn from_symbol(text: &str) -> (Self, f64) {
        let text = text.trim();
        let known = WRITTEN.iter().find(|(name, ..)| *name == text);
        known.map_or_else(
            || (Self::Count(text.to_owned()), 1.0),
            |(_, unit, factor)| (unit.clone(), *factor),
        )
    }

    /// The unit of a metric, whose table has `1` for ratios.
    pub(super) fn of_metric(unit: &str) -> Self {
        if unit == "1" { Self::Share } else { Self::from_symbol(unit).0 }
    }

    /// True for two figures that can be compared. A number without a unit fits ratios
    /// and counts.
    pub fn is_comparable_to(&self, other: &Self) -> bool {
        let bare = |unit: &Self| matches!(unit, Self::Share | Self::Times | Self::Number);
        let counted = |unit: &Self| matches!(unit, Self::Count(_));
        self == other
            || (bare(self) && bare(other))
            || (*self == Self::Number && counted(other))
            || (counted(self) && *other == Self::Number)
    }

    /// In words: `bit/s`, `a share`.
    pub fn in_words(&self) -> &str {
        match self {
            Self::Rate => "bit/s",
            Self::Time => "a time",
            Self::Bytes => "bytes",
            Self::Share => "a share",
            Self::Times => "a ratio",
            Self::Number => "a bare number",
            Self::Count(unit) => unit,
        }
    }
}

/// A figure. Both ends are the same but for a printed range or bound; an end that was not printed
/// is infinite.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Unit that both are in.
    pub unit: Unit,
}

impl Quantity {
    /// One value.
    pub const fn from_value(value: f64, unit: Unit) -> Self {
        Self { low: value, high: value, unit }
    }

    /// Printed number, in the unit that was printed beside it.
    pub fn printed(printed: &Printed, unit: &str) -> Self {
        let (unit, factor) = Unit::from_symbol(unit);
        Self {
            low: printed.lower_end().map_or(f64::NEG_INFINITY, |low| low * factor),
            high: printed.upper_end().map_or(f64::INFINITY, |high| high * factor),
            unit,
        }
    }

    /// The value; `None` for a range.
    pub fn single_value(&self) -> Option<f64> {
        (self.low == self.high).then_some(self.low)
    }

    /// `self` over `other`; `None` where that divides by 0.
    pub(super) fn divided_by(&self, other: &Self, unit: Unit) -> Option<Self> {
        if other.low <= 0.0 && other.high >= 0.0 {
            return None;
        }
        let ends = [self.low, self.high].map(|one| [one / other.low, one / other.high]);
        let ends = ends.into_iter().flatten();
        let low = ends.clone().fold(f64::INFINITY, f64::min);
        let high = ends.fold(f64::NEG_INFINITY, f64::max);
        Some(Self { low, high, unit })
    }

    /// `self` less `other`.
    pub(super) fn subtract(&self, other: &Self) -> Self {
        let unit = self.unit.clone();
        Self { low: self.low - other.high, high: self.high - other.low, unit }
    }

    /// The middle, to put figures in order.
    pub(super) const fn middle(&self) -> f64 {
        f64::midpoint(self.low, self.high)
    }
}

/// Statistic of the repetitions of one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FigureStat {
    /// The middle one.
    #[default]
    Median,
    /// The largest where more is better, else the smallest.
    Best,
    /// The opposite.
    Worst,
    /// The arithmetic mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The sample standard deviation; two repetitions are needed.
    Std,
}

impl FigureStat {
    /// Statistic of the runs; `more_is_better` tells the best from the worst. `None` without
    /// runs, and of one run for the deviation.
    pub fn evaluate(self, runs: &[f64], more_is_better: bool) -> Option<f64> {
        let mut moments = Moments::default();
        runs.iter().for_each(|run| moments.record(*run));
        let largest = || runs.iter().copied().reduce(f64::max);
        let smallest = || runs.iter().copied().reduce(f64::min);
        match self {
            Self::Median => median(runs),
            Self::Mean => moments.mean(),
            Self::Std => moments.stddev(),
            Self::Max => largest(),
            Self::Min => smallest(),
            Self::Best => {
                if more_is_better {
                    largest()
                } else {
                    smallest()
                }
            }
            Self::Worst => {
                if more_is_better {
                    smallest()
                } else {
                    largest()
                }
            }
        }
    }
}
