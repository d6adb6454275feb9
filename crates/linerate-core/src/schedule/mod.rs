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
pub(crate) use calendar::{Repeated, hash};
pub use change::{CHANGED, Change, FURTHER_RUNS, Finding, Point, SUSPECT, Watch};
pub use event::EventKind;
pub use further::{confirms, own_difference};
pub use plan::{Class, SchedulePlan, Span, TASKS_MAX, Task};
pub(crate) use plan::{least_change, read, usual};
pub use run::{Run, RunState, RunWhy};
pub use runner::{GRACE_S, Reason, Runner, Step, Why};
pub use series::{Followed, followed, sketched};
