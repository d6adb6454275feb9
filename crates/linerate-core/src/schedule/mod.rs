//! Measuring for months: the calendar of a plan, and what its series say.
//!
//! Nothing here reads a clock: the calendar is a function of the plan and of a span of time, so
//! that each program that has the plan computes the same one.

mod alert;
mod calendar;
mod change;
mod event;
mod further;
mod plan;
mod run;
mod runner;
mod series;

pub use alert::Alert;
pub use calendar::{Calendar, LATE_S_MAX, MARGIN_S, Slot, Zone};
pub(crate) use calendar::{RepeatedRun, hash};
pub use change::{CHANGED, FURTHER_RUNS, LevelChange, Point, SUSPECT, SeriesFinding, Watch};
pub use event::EventKind;
pub use further::{confirms, own_difference};
pub use plan::{Class, SchedulePlan, ScheduleTask, Span, TASKS_MAX};
pub(crate) use plan::{least_change, read, usual_time_and_class};
pub use run::{RunState, RunWhy, ScheduleRun};
pub use runner::{GRACE_S, Reason, RunCause, Runner, RunnerAction};
pub use series::{Followed, followed, sketched};
