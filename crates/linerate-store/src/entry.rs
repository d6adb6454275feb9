//! What goes into the store and what lists come out of it.

use std::collections::BTreeMap;

use linerate_core::record::MeasurementEnd;
use linerate_core::study::StudyPlan;
use linerate_core::time::WallTime;
use serde::Serialize;

/// One line of a history: a record without its samples, or a study run as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The identifier of the record or of the run.
    pub id: String,
    /// The kind of the record's plan; for a study run `bench` or `study`.
    pub kind: String,
    /// Begin of the measurement, RFC 3339 in UTC.
    pub started_at: String,
    /// `ok`, `partial`, `error` or `interrupted`; of a run its [`StudyState`].
    pub status: String,
    /// A name given by the user.
    pub name: Option<String>,
    /// Labels given by the user.
    pub tags: BTreeMap<String, String>,
    /// The study that it belongs to.
    pub study: Option<String>,
    /// The run of that study; a run's own identifier.
    pub run: Option<String>,
    /// Identifier of the topology within the study.
    pub topology: Option<String>,
    /// Identifier of the test within the study.
    pub test: Option<String>,
    /// The value of the test's parameter.
    pub parameter: Option<u64>,
    /// Number of the repetition within the study, counted from 1.
    pub repetition: Option<u32>,
    /// The other end as its command named it.
    pub host: Option<String>,
}

impl HistoryEntry {
    /// True for a line of a study run, false for one of a single record.
    pub fn is_run(&self) -> bool {
        self.run.as_ref() == Some(&self.id)
    }
}

/// Filter of a history's lines; without any, all single results and study runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryFilter {
    /// Only records of this study.
    pub study: Option<String>,
    /// Only records of this run.
    pub run: Option<String>,
    /// Only of this kind: `tcp`, `udp`, `ping`, `bench`, `simulate` or `study`.
    pub kind: Option<String>,
    /// Only to or from this host, by name or address.
    pub host: Option<String>,
    /// Only of this name.
    pub name: Option<String>,
    /// Only with all of these labels.
    pub tags: Vec<(String, String)>,
    /// Only begun at this time or later.
    pub since: Option<WallTime>,
    /// Only begun before this time.
    pub until: Option<WallTime>,
    /// Only what did not end well.
    pub failed: bool,
    /// Every record of a study, in place of a line for each run; so is it with `study` and `run`.
    pub cells: bool,
}

impl HistoryFilter {
    /// The same with every record of a study in place of its runs.
    #[must_use]
    pub fn with_cells(self) -> Self {
        Self { cells: true, ..self }
    }
}

/// The record or study run that a name refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundResult {
    /// Identifier of the record or run, in full.
    pub id: String,
    /// True where the identifier is that of a study run, false for a record.
    pub is_run: bool,
}

/// A run of a study that begins.
#[derive(Clone, Debug, PartialEq)]
pub struct NewStudyRun {
    /// Its identifier, a record identifier of its own.
    pub id: String,
    /// The plan as it will be run: chosen topologies, chosen repetitions.
    pub plan: StudyPlan,
    /// Begin of the run: the wall time now.
    pub started_at: WallTime,
    /// This host, where it was asked.
    pub host: Option<MeasurementEnd>,
}

/// A run of a study that is in the store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StudyRun {
    /// Identifier of the run.
    pub id: String,
    /// Name of the study that the run follows.
    pub study: String,
    /// The plan that it follows.
    pub plan: StudyPlan,
    /// Begin of the run, RFC 3339 in UTC.
    pub started_at: String,
    /// End, RFC 3339; null while it runs, and after a kill.
    pub finished_at: Option<String>,
    /// Progress or outcome of the run.
    pub state: StudyState,
    /// The host, where it was asked.
    pub host: Option<MeasurementEnd>,
    /// Cells with a record, failed ones among them.
    pub stored: u64,
}

/// Progress of a study's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyState {
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

impl StudyState {
    /// The word in the store.
    pub const fn state_name(self) -> &'static str {
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
            .find(|state| state.state_name() == word)
    }
}
