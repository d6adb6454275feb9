//! The words of runs: of their commands, and for whoever looks on.

use std::path::Path;

use linerate_core::record::Record;
use linerate_core::schedule::{RunCause, RunWhy, ScheduleRun};
use linerate_report::Headline;
use linerate_store::{TAG_PLAN, TAG_SLOT, TAG_WHY};

/// The cause of a run, as it is kept.
pub(super) const fn stored_cause(why: RunCause) -> RunWhy {
    match why {
        RunCause::Calendar => RunWhy::Calendar,
        RunCause::Confirm => RunWhy::Confirm,
        RunCause::Survey => RunWhy::Survey,
        RunCause::Booked { .. } => RunWhy::Booked,
    }
}

/// The words of a run's command, with what the store finds its record by.
pub(super) fn command(
    mut words: Vec<String>,
    plan: &str,
    run: &ScheduleRun,
    store: &Path,
) -> Vec<String> {
    let mut tag = |key: &str, value: &str| {
        words.extend(["--tag".to_owned(), format!("{key}={value}")]);
    };
    tag(TAG_PLAN, plan);
    tag(TAG_SLOT, &run.start_s.to_string());
    if run.why != RunWhy::Calendar {
        tag(TAG_WHY, run.why.name());
    }
    let store = store.display().to_string();
    words.extend(["--name", &run.task, "--store", &store, "--json"].map(str::to_owned));
    words
}

/// A run in one line.
pub(super) fn run_line(
    task: &str,
    why: RunCause,
    good: Option<&Record>,
    reason: Option<&str>,
) -> String {
    let asked = match why {
        RunCause::Calendar => "",
        RunCause::Confirm => " (again, to be sure)",
        RunCause::Survey => " (survey)",
        RunCause::Booked { .. } => " (booked)",
    };
    let result = match (good, reason) {
        (Some(record), _) => Headline::from_record(record).summary_line(),
        (None, Some(reason)) => format!("no result: {reason}"),
        (None, None) => "no result".to_owned(),
    };
    format!("{task}{asked}: {result}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_by_the_headline_of_its_record() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/explain/records/rmem.json");
        let text = std::fs::read_to_string(path).expect("text");
        let record = Record::from_json(&text).expect("a record");
        let told = run_line("wan", RunCause::Calendar, Some(&record), None);
        assert_eq!(told, format!("wan: {}", Headline::from_record(&record).summary_line()));
    }
}
