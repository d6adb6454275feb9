//! Questions of a study, as data: figures by name, a condition on them, and the text of the answer.
//!
//! ```toml
//! [[question]]
//! ask = "Does one flow fill the link?"
//! figure.large = { topology = "wan", test = "window", value = 8388608 }
//! figure.share = { share_of_ceiling = "large" }
//! yes_when = "share >= 0.98"
//! answer = "{large}, {share} of the ceiling."
//! ```
//!
//! The values of figures are asked of whoever has the results ([`Figures`]); nothing here measures,
//! and how a figure is written is the report's.

mod answer;
mod check;
mod condition;
mod figure;
mod quantity;
mod template;

pub use answer::{
    Answer, CHANCE_RUNS_MIN, Evaluated, FigureSetting, Figures, Missing, QuestionVerdict,
};
pub use condition::FigureCondition;
pub use figure::{Figure, FigureKind, Measured, ValueName};
pub use quantity::{FigureStat, Quantity, Unit};
pub use template::{Part, Template};

pub(super) use check::check_questions;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One question of a study and how its answer follows from figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The question.
    pub ask: String,
    /// Figures by name.
    #[serde(rename = "figure", default)]
    pub figures: BTreeMap<String, Figure>,
    /// When the answer is yes; without it, the answer is its text alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yes_when: Option<FigureCondition>,
    /// The answer, with figures in braces.
    pub answer: Template,
    /// Conclusion where the answer is yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yes: Option<Template>,
    /// Conclusion where the answer is no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no: Option<Template>,
}

impl Question {
    /// The identifiers of the topologies that it has figures of.
    pub fn topologies(&self) -> impl Iterator<Item = &str> {
        self.figures.values().filter_map(|figure| match &figure.kind {
            FigureKind::Measured(measured) => Some(measured.topology.as_str()),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
