//! What may be run beside the calendar of a mesh, and how much of it, as a plan says it: signed
//! with it, so that whoever books runs, or has taken over the hub, has these commands and this time
//! alone.

use serde::Deserialize;

use crate::schedule::{Class, Span};

/// Runs beside the calendar.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adhoc {
    /// Seconds of each hour that an agent may be booked for, at either end of a run.
    pub seconds_an_hour: u32,
    /// Commands beside those of the plan's tasks.
    #[serde(default, rename = "command")]
    pub commands: Vec<AdhocCommand>,
}

/// A command that may be booked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdhocCommand {
    /// Its name: results come as those of a task of this name.
    pub name: String,
    /// The command without `linerate`, word by word as it may be asked for: `tcp {to} -t5`.
    pub run: String,
    /// Length of its slot.
    #[serde(default)]
    pub takes: Option<Span>,
    /// What may run beside it.
    #[serde(default)]
    pub class: Option<Class>,
}
