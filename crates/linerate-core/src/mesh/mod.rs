//! Many hosts that measure each other: the plan, its calendar, and both ends of the talk between
//! an agent and its hub.
//!
//! Nothing here reads a clock or opens a socket. The calendar is a function of the plan alone, so
//! each agent computes the same one, without asking anybody, for as long as it has the plan.

mod adhoc;
mod bookable;
mod booking;
mod calendar;
mod incident;
mod link;
mod matrix;
mod message;
mod nat;
mod outcome;
mod plan;
mod planned;
mod psconfig;
mod roll;
mod rounds;
mod rules;

pub use adhoc::{Adhoc, AdhocCommand};
pub use bookable::Bookable;
pub use booking::{
    BookedRun, BookingWhy, HOUR_S, LEAD_S, Occupied, REFUSED, UNHEARD, WITHIN_S, Wish,
    admit_booking, is_plausible,
};
pub use calendar::{AgentCalendar, MeshCalendar, MeshRun, ROOM_S, TaskRounds};
pub use incident::{
    Hit, Incident, IncidentKind, Member, Moved, Pair, SharedElement, SharedKind, Survey, crosses,
    grouped, ordered_pair,
};
pub use link::{Ask, BEAT_S, HubLink};
pub use matrix::{AgentState, Cell, CellState, Cells, Matrix, Row, matrix};
pub use message::{
    Beat, BeatAnswer, Booking, Enrol, Enrolled, RESULTS_AT_ONCE, RunResult, RunResults, SignedPlan,
    Stored, VERSION,
};
pub use nat::MeetAt;
pub use outcome::{DISK_FULL, DOUBLE, RunOutcome, SET_BACK, SPOOL_FULL};
pub use plan::{AGENTS_MAX, Agent, Group, MeshPlan, MeshTask, PAIRS_MAX, Ways};
pub use planned::{NextRun, Planned};
pub use psconfig::{Imported, Lookup, TEMPLATE_MAX, from_psconfig};
pub use roll::{SILENT_S, Seen, Standing, judge_beat};
pub use rules::Rules;
