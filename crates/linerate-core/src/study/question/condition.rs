//! When an answer is yes: comparisons of figures and numbers, all of which must hold.
//!
//! `NAME|number  < <= > >=  NAME|number`, joined by ` and `; a number may have a unit. Left out:
//! `or`, brackets and sums, which figures of their own say better.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::quantity::{Quantity, Unit};
use super::template::is_name;

/// A condition on figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct FigureCondition {
    text: String,
    comparisons: Vec<FigureComparison>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FigureComparison {
    pub(super) left: ComparisonTerm,
    pub(super) operator: Operator,
    pub(super) right: ComparisonTerm,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ComparisonTerm {
    Figure(String),
    Constant(String, Quantity),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Less,
    LessOrSame,
    More,
    MoreOrSame,
}

/// Operators as written, the longer ones first.
const OPERATORS: [(&str, Operator); 4] = [
    ("<=", Operator::LessOrSame),
    (">=", Operator::MoreOrSame),
    ("<", Operator::Less),
    (">", Operator::More),
];

impl FigureCondition {
    pub(super) fn comparisons(&self) -> &[FigureComparison] {
        &self.comparisons
    }

    /// The figures that it names.
    pub fn figure_names(&self) -> impl Iterator<Item = &str> {
        let terms = self.comparisons.iter().flat_map(|one| [&one.left, &one.right]);
        terms.filter_map(|term| match term {
            ComparisonTerm::Figure(name) => Some(name.as_str()),
            ComparisonTerm::Constant(..) => None,
        })
    }
}

impl FigureComparison {
    /// Truth of the condition; `None` where ranges leave it open.
    pub(super) fn holds_for(&self, left: &Quantity, right: &Quantity) -> Option<bool> {
        let (small, large, or_same) = match self.operator {
            Operator::Less => (left, right, false),
            Operator::LessOrSame => (left, right, true),
            Operator::More => (right, left, false),
            Operator::MoreOrSame => (right, left, true),
        };
        let before = |a: f64, b: f64| a < b || (or_same && a == b);
        if before(small.high, large.low) {
            Some(true)
        } else if before(small.low, large.high) {
            None
        } else {
            Some(false)
        }
    }
}

impl fmt::Display for FigureComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = OPERATORS.iter().find(|(_, operator)| *operator == self.operator);
        let operator = operator.map_or("", |(text, _)| text);
        write!(f, "{} {operator} {}", self.left, self.right)
    }
}

impl fmt::Display for ComparisonTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Figure(text) | Self::Constant(text, _) => f.write_str(text),
        }
    }
}

impl TryFrom<String> for FigureCondition {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let comparisons = text.split(" and ").map(comparison).collect::<Result<_, _>>()?;
        Ok(Self { text, comparisons })
    }
}

impl From<FigureCondition> for String {
    fn from(condition: FigureCondition) -> Self {
        condition.text
    }
}

impl fmt::Display for FigureCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn comparison(text: &str) -> Result<FigureComparison, String> {
    let found = OPERATORS.iter().find_map(|(sign, operator)| {
        let (left, right) = text.split_once(sign)?;
        Some((left, *operator, right))
    });
    let Some((left, operator, right)) = found else {
        return Err(format!("'{text}' compares nothing; write for example share >= 0.98"));
    };
    Ok(FigureComparison { left: parse_term(left)?, operator, right: parse_term(right)? })
}

fn parse_term(text: &str) -> Result<ComparisonTerm, String> {
    let text = text.trim();
    if is_name(text) {
        return Ok(ComparisonTerm::Figure(text.to_owned()));
    }
    let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c)));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let wrong = || format!("'{text}' is neither a figure's name nor a number");
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let (unit, factor) = Unit::from_symbol(unit);
    if let Unit::Count(unit) = unit {
        return Err(format!("'{text}': no unit is called '{unit}'; counts have none here"));
    }
    Ok(ComparisonTerm::Constant(text.to_owned(), Quantity::from_value(number * factor, unit)))
}
