//! One figure of a question: measured, published, or made from other figures of the question.
//!
//! In the file a figure is a table whose first key says what it is; the flat table here lists all
//! keys once, so that a misspelt one is told by its name.

use serde::{Deserialize, Serialize};

use super::quantity::{FigureStat, Quantity, Unit};
use crate::record::{METRICS, MetricId};
use crate::study::{Test, Value};

/// A figure of a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "FigureTable", into = "FigureTable")]
pub struct Figure {
    /// Name in texts and tables; its place where absent.
    pub title: Option<String>,
    /// Where its value is from.
    pub kind: FigureKind,
}

/// Where a figure's value is from. Names are those of other figures of the question.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureKind {
    /// Measured by this run.
    Measured(Measured),
    /// A single figure that the study published, by its name in the table.
    Published(String),
    /// Published figure of the study, beside a measured one.
    PublishedOf(String),
    /// The ceiling of a measured goodput.
    CeilingOf(String),
    /// A measured goodput over its ceiling.
    ShareOfCeiling(String),
    /// The least of the ceiling and window/RTT of a measured goodput.
    BoundOf(String),
    /// A measured goodput over that.
    ShareOfBound(String),
    /// How many times the second the first is.
    Ratio([String; 2]),
    /// The first as a part of the second.
    Share([String; 2]),
    /// The first less the second.
    Difference([String; 2]),
    /// The largest of several.
    Largest(Vec<String>),
    /// The smallest of several.
    Smallest(Vec<String>),
    /// A number, with its unit as it is written.
    Number(f64, Option<String>),
}

/// A figure of this run: a metric of one value of a test on a topology, over the repetitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Identifier of the topology.
    pub topology: String,
    /// Identifier of the test.
    pub test: String,
    /// The value of the test's parameter; its only one where absent.
    pub value: Option<ValueName>,
    /// The metric; goodput where absent, and the round-trip time of a ping test.
    pub metric: Option<MetricId>,
    /// Statistic of the repetitions.
    pub stat: FigureStat,
}

/// A value of a test's parameter: its number, its choice, or its label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ValueName {
    /// The number in the plan's list.
    Number(u64),
    /// On or off.
    Choice(bool),
    /// As headings have it: `cubic`, `auto`, `8 MiB`.
    Label(String),
}

impl ValueName {
    /// The value of a test that it names.
    pub(super) fn find_in_test(&self, test: &Test) -> Option<Value> {
        let is_it = |value: &Value| match self {
            Self::Number(number) => value.number == *number,
            Self::Choice(on) => value.label == if *on { "on" } else { "off" },
            Self::Label(label) => value.label == *label,
        };
        test.values().into_iter().find(is_it)
    }
}

impl FigureKind {
    /// The figures that it is made from.
    pub fn sources(&self) -> Vec<&str> {
        match self {
            Self::Measured(_) | Self::Published(_) | Self::Number(..) => Vec::new(),
            Self::PublishedOf(name)
            | Self::CeilingOf(name)
            | Self::ShareOfCeiling(name)
            | Self::BoundOf(name)
            | Self::ShareOfBound(name) => vec![name],
            Self::Ratio(names) | Self::Share(names) | Self::Difference(names) => {
                names.iter().map(String::as_str).collect()
            }
            Self::Largest(names) | Self::Smallest(names) => {
                names.iter().map(String::as_str).collect()
            }
        }
    }

    /// True for a figure that the rebuilt study published.
    pub const fn is_published(&self) -> bool {
        matches!(self, Self::Published(_) | Self::PublishedOf(_))
    }
}

/// A figure as its table in the file has it: one of the keys that say what it is, and what belongs
/// to that key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
struct FigureTable {
    /// Name in texts and tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Measured on this topology, by `test` at `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    topology: Option<String>,
    /// Identifier of the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<String>,
    /// Value of the test's parameter: a number of its list, true or false, or its label.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<ValueName>,
    /// Key of a metric, with or without its unit: `goodput`, `retransmits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<String>,
    /// Statistic of the repetitions; the median when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    stat: Option<FigureStat>,
    /// An item of the study's published table of single figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<String>,
    /// The published figure beside a measured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    published_of: Option<String>,
    /// The ceiling of a measured goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    ceiling_of: Option<String>,
    /// A measured goodput over its ceiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    share_of_ceiling: Option<String>,
    /// The least of the ceiling and window/RTT of a measured goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound_of: Option<String>,
    /// A measured goodput over that.
    #[serde(skip_serializing_if = "Option::is_none")]
    share_of_bound: Option<String>,
    /// How many times the second figure the first is.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<[String; 2]>,
    /// The first figure as a part of the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<[String; 2]>,
    /// The first figure less the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<[String; 2]>,
    /// The largest of several figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    largest: Option<Vec<String>>,
    /// The smallest of several figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    smallest: Option<Vec<String>>,
    /// A number.
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<f64>,
    /// Unit of the number: `Mbit/s`, `ms`, `bytes`, `percent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
}

impl TryFrom<FigureTable> for Figure {
    type Error = String;

    fn try_from(mut table: FigureTable) -> Result<Self, String> {
        let said = table.given_keys();
        let [only] = said.as_slice() else {
            return Err(match said.as_slice() {
                [] => "a figure has one of the keys topology, published, published_of, \
                       ceiling_of, share_of_ceiling, bound_of, share_of_bound, ratio, share, \
                       difference, largest, smallest and number"
                    .to_owned(),
                [first, second, ..] => format!("a figure has either `{first}` or `{second}`"),
                [_] => String::new(),
            });
        };
        let only = *only;
        table.foreign(only)?;
        let title = table.title.take();
        Ok(Self { title, kind: table.figure_kind()? })
    }
}

impl FigureTable {
    /// The keys that say what it is.
    fn given_keys(&self) -> Vec<&'static str> {
        let keys = [
            ("topology", self.topology.is_some()),
            ("published", self.published.is_some()),
            ("published_of", self.published_of.is_some()),
            ("ceiling_of", self.ceiling_of.is_some()),
            ("share_of_ceiling", self.share_of_ceiling.is_some()),
            ("bound_of", self.bound_of.is_some()),
            ("share_of_bound", self.share_of_bound.is_some()),
            ("ratio", self.ratio.is_some()),
            ("share", self.share.is_some()),
            ("difference", self.difference.is_some()),
            ("largest", self.largest.is_some()),
            ("smallest", self.smallest.is_some()),
            ("number", self.number.is_some()),
        ];
        keys.into_iter().filter(|(_, there)| *there).map(|(key, _)| key).collect()
    }

    /// Keys that belong to another kind of figure.
    fn foreign(&self, kind: &str) -> Result<(), String> {
        let keys = [
            ("test", "topology", self.test.is_some()),
            ("value", "topology", self.value.is_some()),
            ("metric", "topology", self.metric.is_some()),
            ("stat", "topology", self.stat.is_some()),
            ("unit", "number", self.unit.is_some()),
        ];
        match keys.iter().find(|(_, of, there)| *there && *of != kind) {
            Some((key, ..)) => Err(format!("a figure with `{kind}` has no key `{key}`")),
            None => Ok(()),
        }
    }

    /// The figure, once one key alone says what it is.
    fn figure_kind(self) -> Result<FigureKind, String> {
        if let Some(topology) = self.topology {
            let test = self.test.ok_or("a figure with `topology` lacks the key `test`")?;
            let metric = self.metric.as_deref().map(metric_of).transpose()?;
            let stat = self.stat.unwrap_or_default();
            let measured = Measured { topology, test, value: self.value, metric, stat };
            return Ok(FigureKind::Measured(measured));
        }
        if let Some(number) = self.number {
            return match number.is_finite() {
                true => Ok(FigureKind::Number(number, self.unit)),
                false => Err(format!("number is {number}")),
            };
        }
        let several = |names: Vec<String>, make: fn(Vec<String>) -> FigureKind| match names.len() {
            0 | 1 => Err("largest and smallest are of two figures or more".to_owned()),
            _ => Ok(make(names)),
        };
        let kinds = [
            self.published.map(|item| Ok(FigureKind::Published(item))),
            self.published_of.map(|name| Ok(FigureKind::PublishedOf(name))),
            self.ceiling_of.map(|name| Ok(FigureKind::CeilingOf(name))),
            self.share_of_ceiling.map(|name| Ok(FigureKind::ShareOfCeiling(name))),
            self.bound_of.map(|name| Ok(FigureKind::BoundOf(name))),
            self.share_of_bound.map(|name| Ok(FigureKind::ShareOfBound(name))),
            self.ratio.map(|pair| Ok(FigureKind::Ratio(pair))),
            self.share.map(|pair| Ok(FigureKind::Share(pair))),
            self.difference.map(|pair| Ok(FigureKind::Difference(pair))),
            self.largest.map(|names| several(names, FigureKind::Largest)),
            self.smallest.map(|names| several(names, FigureKind::Smallest)),
        ];
        let kind = kinds.into_iter().flatten().next();
        kind.unwrap_or_else(|| Err("a figure says what it is".to_owned()))
    }
}

impl From<Figure> for FigureTable {
    fn from(figure: Figure) -> Self {
        let table = Self { title: figure.title, ..Self::default() };
        match figure.kind {
            FigureKind::Measured(of) => Self {
                topology: Some(of.topology),
                test: Some(of.test),
                value: of.value,
                metric: of.metric.map(|metric| metric.key().to_owned()),
                stat: (of.stat != FigureStat::default()).then_some(of.stat),
                ..table
            },
            FigureKind::Published(item) => Self { published: Some(item), ..table },
            FigureKind::PublishedOf(name) => Self { published_of: Some(name), ..table },
            FigureKind::CeilingOf(name) => Self { ceiling_of: Some(name), ..table },
            FigureKind::ShareOfCeiling(name) => Self { share_of_ceiling: Some(name), ..table },
            FigureKind::BoundOf(name) => Self { bound_of: Some(name), ..table },
            FigureKind::ShareOfBound(name) => Self { share_of_bound: Some(name), ..table },
            FigureKind::Ratio(pair) => Self { ratio: Some(pair), ..table },
            FigureKind::Share(pair) => Self { share: Some(pair), ..table },
            FigureKind::Difference(pair) => Self { difference: Some(pair), ..table },
            FigureKind::Largest(names) => Self { largest: Some(names), ..table },
            FigureKind::Smallest(names) => Self { smallest: Some(names), ..table },
            FigureKind::Number(number, unit) => Self { number: Some(number), unit, ..table },
        }
    }
}

/// The metric of a key, or of a key without the unit that it ends in.
fn metric_of(text: &str) -> Result<MetricId, String> {
    let ends = ["_bps", "_ns", "_bytes", "_ratio", "_s_per_gb"];
    let short = |key: &str| ends.iter().any(|end| key.strip_suffix(end) == Some(text));
    let exact = METRICS.iter().find(|row| row.id.key() == text);
    let mut shorts = METRICS.iter().filter(|row| short(row.id.key()));
    match (exact, shorts.next(), shorts.next()) {
        (Some(row), ..) | (None, Some(row), None) => Ok(row.id),
        (None, Some(first), Some(second)) => {
            Err(format!("metric '{text}' is either {} or {}", first.id, second.id))
        }
        (None, None, _) => Err(format!(
            "no metric is called '{text}'; `goodput_bps` is one, linerate help metrics has all"
        )),
    }
}

/// A number with its unit.
pub(super) fn constant(number: f64, unit: Option<&str>) -> Quantity {
    let (unit, factor) = Unit::from_symbol(unit.unwrap_or_default());
    Quantity::from_value(number * factor, unit)
}
