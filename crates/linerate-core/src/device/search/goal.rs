//! What a search is to find: the highest load at which trials of a length lose no more than a
//! share, but for a share of the time.
//!
//! Source: RFC 9971 "Goal Terms". Its conditions on the attributes are [`Goal::check_attributes`].

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::trial::SECOND_NS;
use crate::record::BenchGoal;

/// Relative width at which a search stops: 0.5 %, as FD.io's CSIT has it.
pub const WIDTH: f64 = 0.005;

/// Goal of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Goal {
    /// A short name for reports.
    pub name: String,
    /// Shortest trial that can make a load a lower bound, ns.
    pub final_duration_ns: u64,
    /// Seconds of trials after which a load is decided, ns.
    pub duration_sum_ns: u64,
    /// Largest loss of a good trial, 0 to below 1.
    pub loss_ratio: f64,
    /// Share of the time that trials at a lower bound may be bad, 0 to below 1.
    pub exceed_ratio: f64,
    /// Relative width (upper - lower) / upper at which the goal is reached.
    pub width: f64,
    /// Length of the first trial at a load, ns; at most the final one.
    pub initial_duration_ns: u64,
}

/// Reason why a goal cannot be searched for.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum GoalError {
    /// The list of goals is empty.
    #[error("a search needs a goal")]
    NoGoal,
    /// A time of 0.
    #[error("goal {name}: trials and their sum must last longer than 0 s")]
    NoTime {
        /// Name of the goal.
        name: String,
    },
    /// The sum is shorter than one trial.
    #[error("goal {name}: the duration sum is shorter than one trial")]
    SumTooShort {
        /// Name of the goal.
        name: String,
    },
    /// A ratio outside 0 to below 1.
    #[error("goal {name}: loss ratio and exceed ratio are from 0 to below 1")]
    Ratio {
        /// Name of the goal.
        name: String,
    },
    /// A width outside 0 to below 1.
    #[error("goal {name}: the width is above 0 and below 1, such as 0.005")]
    Width {
        /// Name of the goal.
        name: String,
    },
    /// Loads out of order.
    #[error("loads from {min_fps} to {max_fps} frames/s are no range above 0")]
    Range {
        /// Smallest load, frames per second.
        min_fps: u64,
        /// Largest load, frames per second.
        max_fps: u64,
    },
}

impl BenchGoal {
    /// The goal in the form that a search takes.
    pub fn search_goal(&self) -> Goal {
        Goal {
            name: self.name.clone(),
            final_duration_ns: self.final_trial_ns,
            duration_sum_ns: self.duration_sum_ns,
            loss_ratio: self.loss_ratio,
            exceed_ratio: self.exceed_ratio,
            width: self.width,
            initial_duration_ns: self.final_trial_ns,
        }
    }
}

impl Goal {
    fn from_seconds(
        name: &str,
        final_s: u64,
        sum_s: u64,
        loss_ratio: f64,
        exceed_ratio: f64,
    ) -> Self {
        Self {
            name: name.to_owned(),
            final_duration_ns: final_s * SECOND_NS,
            duration_sum_ns: sum_s * SECOND_NS,
            loss_ratio,
            exceed_ratio,
            width: WIDTH,
            initial_duration_ns: final_s * SECOND_NS,
        }
    }

    /// One trial of 60 s without loss: the throughput of RFC 1242 §3.17 and RFC 2544 §26.1.
    pub fn strict() -> Self {
        Self::from_seconds("strict", 60, 60, 0.0, 0.0)
    }

    /// A lossy trial of 60 s is repeated once: binary search with loss verification, ETSI GS
    /// NFV-TST 009 §12.3.3, with two trials at most.
    pub fn verified() -> Self {
        Self::from_seconds("verified", 60, 120, 0.0, 0.5)
    }

    /// Half of 21 trials of 1 s without loss: the rate of an undisturbed device (FD.io's CSIT for a
    /// ratio of 0).
    pub fn typical() -> Self {
        Self::from_seconds("typical", 1, 21, 0.0, 0.5)
    }

    /// The typical goal with 0.5 % of loss: the partial drop rate of FD.io's CSIT.
    pub fn partial_drop() -> Self {
        Self::from_seconds("partial drop", 1, 21, 0.005, 0.5)
    }

    /// The same goal with another length of trials, and the sum in proportion.
    #[must_use]
    pub fn with_trial_duration(self, final_duration_ns: u64) -> Self {
        let trials = self.duration_sum_ns.div_ceil(self.final_duration_ns.max(1));
        Self {
            final_duration_ns,
            initial_duration_ns: final_duration_ns,
            duration_sum_ns: final_duration_ns.saturating_mul(trials),
            ..self
        }
    }

    /// The same goal with another width.
    #[must_use]
    pub fn with_width(self, width: f64) -> Self {
        Self { width, ..self }
    }

    /// Checks that the attributes are possible.
    /// # Errors
    /// A time of 0, a sum below one trial, a ratio or width outside its range.
    pub fn check_attributes(&self) -> Result<(), GoalError> {
        let name = || self.name.clone();
        if self.final_duration_ns == 0 || self.initial_duration_ns == 0 {
            return Err(GoalError::NoTime { name: name() });
        }
        // RFC 9971 only advises against it; a load would be decided by less than one trial.
        if self.duration_sum_ns < self.final_duration_ns {
            return Err(GoalError::SumTooShort { name: name() });
        }
        if ![self.loss_ratio, self.exceed_ratio].iter().all(|ratio| (0.0..1.0).contains(ratio)) {
            return Err(GoalError::Ratio { name: name() });
        }
        if !(self.width > 0.0 && self.width < 1.0) {
            return Err(GoalError::Width { name: name() });
        }
        Ok(())
    }

    /// Most full-length trials that decide a load, when none is short.
    pub const fn trials_max(&self) -> u64 {
        self.duration_sum_ns.div_ceil(self.final_duration_ns)
    }

    /// True when two loads are within the goal's width.
    pub fn is_close(&self, lower_fps: u64, upper_fps: u64) -> bool {
        let gap = upper_fps.saturating_sub(lower_fps);
        gap <= 1 || gap as f64 <= self.width * upper_fps as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_goals_are_refused() {
        let good = Goal::strict();
        assert_eq!(good.check_attributes(), Ok(()));
        let bad = [
            Goal { final_duration_ns: 0, ..good.clone() },
            Goal { duration_sum_ns: SECOND_NS, ..good.clone() },
            Goal { loss_ratio: 1.0, ..good.clone() },
            Goal { exceed_ratio: -0.1, ..good.clone() },
            Goal { loss_ratio: f64::NAN, ..good.clone() },
            Goal { width: 0.0, ..good.clone() },
        ];
        for goal in bad {
            assert!(goal.check_attributes().is_err(), "{goal:?}");
        }
    }

    #[test]
    fn a_quick_goal_keeps_its_number_of_trials() {
        let quick = Goal::typical().with_trial_duration(SECOND_NS / 5);
        assert_eq!((quick.trials_max(), quick.duration_sum_ns), (21, 4_200_000_000));
    }
}
