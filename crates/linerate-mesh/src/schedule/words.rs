//! The words of runs: of their commands, and for whoever looks on.

use std::path::Path;

use linerate_core::record::Record;
use linerate_core::schedule::{Run, RunWhy, Why};
use linerate_report::Headline;
use linerate_store::{TAG_PLAN, TAG_SLOT, TAG_WHY};

/// The cause of a run, as it is kept.
pub(super) const fn why(why: Why) -> RunWhy {
    match why {
        Why::Calendar => RunWhy::Calendar,
        Why::Confirm => RunWhy::Confirm,
        Why::Survey => RunWhy::Survey,
        Why::Booked { .. } => RunWhy::Booked,
    }
}

/// The words of a run's command, with what the store finds its record by.
pub(super) fn command(mut words: Vec<String>, plan: &str, run: &Run, store: &Path) -> Vec<String> {
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
pub(super) fn line(task: &str, why: Why, good: Option<&Record>, reason: Option<&str>) -> String {
    let asked = match why {
        Why::Calendar => "",
        Why::Confirm => " (again, to be sure)",
        Why::Survey => " (survey)",
        Why::Booked { .. } => " (booked)",
    };
    let result = match (good, reason) {
        (Some(record), _) => Headline::of(record).line(),
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
        let told = line("wan", Why::Calendar, Some(&record), None);
        assert_eq!(told, format!("wan: {}", Headline::of(&record).line()));
    }
}
