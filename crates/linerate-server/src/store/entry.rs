//! What goes into the store and what lists come out of it.

use linerate_core::record::End;
use linerate_core::study::StudyPlan;
use linerate_core::time::WallTime;
use serde::Serialize;

/// One line of a history: a record without its samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The record's identifier.
    pub id: String,
    /// `tcp`, `ping` or `simulate`.
    pub kind: String,
    /// Start, RFC 3339.
    pub started_at: String,
    /// `ok`, `partial`, `error` or `interrupted`.
    pub status: String,
    /// A name given by the user.
    pub name: Option<String>,
    /// The study that it belongs to.
    pub study: Option<String>,
    /// The run of that study.
    pub run: Option<String>,
    /// Identifier of the topology within the study.
    pub topology: Option<String>,
    /// Identifier of the test within the study.
    pub test: Option<String>,
    /// The value of the test's parameter.
    pub parameter: Option<u64>,
    /// Counted from 1.
    pub repetition: Option<u32>,
}

/// Which records a list is of; all when nothing is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only of this study.
    pub study: Option<String>,
    /// Only of this run.
    pub run: Option<String>,
    /// Only of this kind: `tcp`, `udp`, `ping`, `bench` or `simulate`.
    pub kind: Option<String>,
}

/// A run that begins.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    /// Its identifier, a record identifier of its own.
    pub id: String,
    /// The plan as it will be run: chosen topologies, chosen repetitions.
    pub plan: StudyPlan,
    /// Now.
    pub started_at: WallTime,
    /// This host, where it was asked.
    pub host: Option<End>,
}

/// A run that is in the store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Its identifier.
    pub id: String,
    /// The study's name.
    pub study: String,
    /// The plan that it follows.
    pub plan: StudyPlan,
    /// Start, RFC 3339.
    pub started_at: String,
    /// End, RFC 3339; null while it runs, and after a kill.
    pub finished_at: Option<String>,
    /// How far it came.
    pub state: RunState,
    /// The host, where it was asked.
    pub host: Option<End>,
    /// Cells with a record, failed ones among them.
    pub stored: u64,
}

/// How far a run came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Begun and not ended: still at work, or killed.
    Running,
    /// Every cell was measured.
    Finished,
    /// Came to its end, and some cells failed.
    Partial,
    /// The user stopped it.
    Interrupted,
    /// It could not go on: no laboratory, or no room for records.
    Failed,
}

impl RunState {
    /// The word in the store.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Partial => "partial",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }

    /// The state of a word in the store.
    pub(super) fn from_word(word: &str) -> Option<Self> {
        [Self::Running, Self::Finished, Self::Partial, Self::Interrupted, Self::Failed]
            .into_iter()
            .find(|state| state.word() == word)
    }
}
