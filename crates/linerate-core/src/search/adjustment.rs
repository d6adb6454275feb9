//! The load rate adjustment: from a status to the next row of the table.
//!
//! RFC 9097 appendix A, with the names of its variables beside ours: `Rx` is the row, `seqErr` and
//! `delay` come with a status, `slowAdjCount` counts bad statuses. Where its text and its code
//! differ, the code holds: the text wants the bad statuses one after another, the code starts the
//! count anew at a fast step only, so that a pause between two thresholds does not hide them.
//! Two details are those of the reference implementation (obudpst 8), where the memo is silent: a
//! fast step ends at the row of 1 Gbit/s, and a status without a delay holds the rate.

use super::rates::{HIGH_ROW, ROW_MAX, last_row_within, rate_of_row};
use crate::record::{SearchPlan, SearchStep};
use crate::units::BitRate;

/// Fast steps that are taken back when congestion is confirmed (RFC 9097 §8.1, table 1).
const BACK_STEPS: u16 = 3;

/// Losses and delay since the status before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Numbers lost, reordered or duplicate.
    pub sequence_errors: u64,
    /// Delay above the smallest of the test; none where nothing arrived.
    pub delay_ns: Option<u64>,
}

/// The state of a search.
#[derive(Clone, Debug)]
pub struct Adjustment {
    plan: SearchPlan,
    row: u16,
    row_max: u16,
    bad: u32,
    confirmed: bool,
}

impl Adjustment {
    /// A search at row 0.
    pub fn new(plan: SearchPlan) -> Self {
        let row_max = plan.rate_max.map_or(ROW_MAX, last_row_within);
        Self { plan, row: 0, row_max, bad: 0, confirmed: false }
    }

    /// Number of the present row of the table.
    pub const fn table_row(&self) -> u16 {
        self.row
    }

    /// Rate of the present row.
    pub fn row_rate(&self) -> BitRate {
        rate_of_row(self.row)
    }

    /// True when congestion was confirmed once.
    pub const fn is_congested(&self) -> bool {
        self.confirmed
    }

    /// True when the table, or the limit of the plan, allows no higher row.
    pub const fn is_at_most(&self) -> bool {
        self.row >= self.row_max
    }

    /// Takes a status and moves to the next row.
    pub fn apply_status(&mut self, feedback: Feedback) -> SearchStep {
        let errors = feedback.sequence_errors > u64::from(self.plan.sequence_errors_max);
        let delay = feedback.delay_ns;
        if !errors && delay.is_some_and(|delay| delay < self.plan.delay_low_ns) {
            self.raise_rate()
        } else if errors || delay.is_some_and(|delay| delay > self.plan.delay_high_ns) {
            self.lower_rate()
        } else {
            SearchStep::Hold
        }
    }

    fn raise_rate(&mut self) -> SearchStep {
        if self.row < HIGH_ROW && self.bad < self.plan.congested_after {
            self.bad = 0;
            let row = self.row.saturating_add(self.plan.fast_rows);
            self.row = row.min(HIGH_ROW).min(self.row_max);
            return SearchStep::Fast;
        }
        self.row = self.row.saturating_add(1).min(self.row_max);
        SearchStep::Up
    }

    fn lower_rate(&mut self) -> SearchStep {
        self.bad = self.bad.saturating_add(1);
        self.confirmed |= self.bad >= self.plan.congested_after;
        if self.row < HIGH_ROW && self.bad == self.plan.congested_after {
            let rows = self.plan.fast_rows.saturating_mul(BACK_STEPS);
            self.row = self.row.saturating_sub(rows);
            return SearchStep::Back;
        }
        self.row = self.row.saturating_sub(1);
        SearchStep::Down
    }
}
