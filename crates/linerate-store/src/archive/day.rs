//! A day's runs as a store gives them: path by path, some at a time.

use linerate_core::record::{Failure, Fault};
use linerate_core::schedule::{RunState, RunWhy};
use linerate_core::time::WallTime;

const DAY_MS: u64 = 86_400_000;

/// Measurements of one task from one agent to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskPath<'a> {
    /// The agent that measures.
    pub agent: &'a str,
    /// The task of the plan.
    pub task: &'a str,
    /// The agent that is measured.
    pub peer: &'a str,
}

impl<'a> TaskPath<'a> {
    /// Path of an agent's task, whose name is `TASK/AGENT`: the agent after the slash is the peer.
    #[must_use]
    pub fn from_task(agent: &'a str, task: &'a str) -> Self {
        let (task, peer) = task.split_once('/').unwrap_or((task, ""));
        Self { agent, task, peer }
    }
}

/// A run as its day's file has it.
#[derive(Clone, Debug, PartialEq)]
pub struct DayRun {
    /// Its begin, seconds since 1970-01-01 UTC.
    pub start_s: i64,
    /// Its cause: the calendar or a booking.
    pub why: RunWhy,
    /// The run's final state.
    pub state: RunState,
    /// Why there is no result.
    pub reason: Option<String>,
    /// Metric and value that the matrix shows of the run, in the metric's unit.
    pub figure: Option<(String, f64)>,
    /// Identifier of the run's record; none without a result.
    pub record: Option<String>,
    /// The run's record as JSON; none without a result.
    pub doc: Option<String>,
}

/// Takes some runs of a path; whether it wants more.
pub type Takes<'a> = dyn FnMut(TaskPath<'_>, Vec<DayRun>) -> Result<bool, Failure> + 'a;

/// Runs that are given at once: their records are held meanwhile.
pub(crate) const AT_ONCE: usize = 200;

/// A day of UTC that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Day {
    pub(super) date: String,
    pub(super) begin_s: i64,
}

impl Day {
    /// Reads `2026-11-25`, or `yesterday`.
    /// # Errors
    /// One line where it is none, or not over yet.
    pub fn from_date_text(text: &str, now: WallTime) -> Result<Self, String> {
        let none = || format!("{text:?} is no day; write 2026-11-25 or yesterday, days in UTC");
        let at = WallTime::from_user_text(text, now).map_err(|_| none())?;
        let millis = at.unix_millis();
        let day = Self::containing(i64::try_from(millis / 1000).unwrap_or(0));
        if !at.to_string().starts_with(&format!("{}T00:00:00.000", day.date)) {
            return Err(none());
        }
        if millis + DAY_MS > now.unix_millis() {
            return Err(format!("{} is not over (UTC); its runs still come", day.date));
        }
        Ok(day)
    }

    /// The day of UTC that contains a time.
    pub(super) fn containing(at_s: i64) -> Self {
        let begin_s = at_s.div_euclid(86_400) * 86_400;
        let ns = u128::try_from(begin_s).unwrap_or(0) * 1_000_000_000;
        let date = WallTime::from_unix_nanos(ns).to_string();
        Self { date: date.chars().take("2026-11-25".len()).collect(), begin_s }
    }

    /// The day as text, `2026-11-25`.
    pub fn date(&self) -> &str {
        &self.date
    }

    /// Its begin and its end, seconds since 1970-01-01 UTC.
    pub fn span_seconds(&self) -> (i64, i64) {
        (self.begin_s, self.begin_s + 86_400)
    }
}

/// The failure of a store that has other runs of a day than were written.
pub(crate) fn differs(place: &str, day: &Day, stored: u64, written: u64) -> Failure {
    let reason = format!("it has {stored} runs of {}, the file {written}", day.date);
    Failure::new(Fault::System, "drop a day of", place, reason)
        .advise("others came meanwhile and nothing was dropped: remove the file, archive it again")
}
