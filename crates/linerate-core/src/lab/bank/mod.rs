//! A bank of paths with planted causes: recipes as data, the scenarios drawn from them, and how a
//! diagnosis of their records scores.
//!
//! Left out: building a scenario and measuring it, which needs a laboratory.

mod baseline;
mod case;
mod half;
mod recipe;
mod scenario;
mod setting;
mod tally;

pub use baseline::{BASELINES, Baseline};
pub use case::{Case, CaseLabels, Reach, Validity};
pub use half::Half;
pub use recipe::{Family, Recipe};
pub use scenario::Scenario;
pub use setting::{Access, BUSY_CPU, CpuShare, HostCommand, Place, Rival, Setting, TestKeys};
pub use tally::{Score, Tally};

use serde::{Deserialize, Serialize};

use crate::record::{Cause, LimitVerdict, Outcome};

/// Labels without a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoCause {
    /// The result is the ceiling of its path: nothing is to be accused.
    AtCeiling,
    /// Several causes agree with the evidence.
    Undetermined,
    /// The tester spoilt the measurement.
    NoVerdict,
}

/// A cause, or the reason why none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// One cause of the limit.
    Cause(Cause),
    /// No cause, by reason.
    None(NoCause),
}

impl Label {
    /// The label of a path at its ceiling.
    pub const AT_CEILING: Self = Self::None(NoCause::AtCeiling);

    /// Label of a verdict. A result that the rate of a link limits is at its ceiling.
    pub const fn from_verdict(verdict: &LimitVerdict) -> Self {
        match (verdict.outcome, verdict.cause) {
            (Outcome::Limited, Some(Cause::Link)) => Self::AT_CEILING,
            (Outcome::Limited, Some(cause)) => Self::Cause(cause),
            (Outcome::AtCeiling, _) => Self::AT_CEILING,
            (Outcome::NoVerdict, _) => Self::None(NoCause::NoVerdict),
            (Outcome::Undetermined | Outcome::Limited, _) => Self::None(NoCause::Undetermined),
        }
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = crate::tree::to_value(self).unwrap_or_default();
        f.pad(&name.as_str().unwrap_or_default().replace('_', " "))
    }
}
