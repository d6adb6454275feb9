//! A run from the store to the terminal and to files.

use std::path::Path;

use linerate_core::record::Failure;
use linerate_report::device;
use linerate_report::study::{self, StudyResults};
use linerate_store::Store;

use super::plan;
use crate::columns::short_id;
use crate::{output, paths};

/// A run's plan, records and published figures, from the store.
pub(crate) fn results(store: &Store, run: &str) -> Result<StudyResults, Failure> {
    let run = store.run(run)?;
    let published = plan::published(&run.plan)?;
    let records = store.run_records(&run.id)?;
    Ok(StudyResults { plan: run.plan, run: run.id, records, published })
}

/// Prints what a reader looks for first of a run and writes its report into `directory`; ends with
/// the answers, the report's path and one sentence.
pub(super) fn run(store: &Store, run: &str, directory: &Path) -> Result<(), Failure> {
    let results = results(store, run)?;
    let (sentence, tables) =
        study::document(&results).keep_leading_sections().apart_from_sentence();
    output::document(&tables);
    write(&results, directory)?;
    output::print_line(&format!("\nall tables: {}", directory.join("report.md").display()));
    output::print_line(&format!("report: {}", directory.join("index.html").display()));
    output::document(&sentence);
    Ok(())
}

/// Prints a run and writes its report into `directory`, where there is one.
pub(crate) fn show_results(
    results: &StudyResults,
    directory: Option<&Path>,
) -> Result<(), Failure> {
    let document = study::document(results);
    let Some(directory) = directory else {
        output::document(&document);
        return Ok(());
    };
    let (sentence, tables) = document.apart_from_sentence();
    output::document(&tables);
    write(results, directory)?;
    let page = directory.join("index.html");
    output::print_line(&format!("\nrun {}, report: {}", short_id(&results.run), page.display()));
    output::document(&sentence);
    Ok(())
}

/// Writes the report of a run in every form.
pub(crate) fn write(results: &StudyResults, directory: &Path) -> Result<(), Failure> {
    let document = study::document(results);
    paths::make_folder(directory)?;
    paths::write(&directory.join("index.html"), &document.html())?;
    paths::write(&directory.join("report.md"), &document.markdown())?;
    paths::write(&directory.join("results.csv"), &study::csv(results))?;
    if results.records.iter().any(device::is_bench) {
        paths::write(&directory.join("trials.csv"), &device::trials_csv(&results.records))?;
    }
    for (name, svg) in document.svg_files() {
        paths::write(&directory.join(name), &svg)?;
    }
    paths::write(&directory.join("records.jsonl"), &record_lines(results)?)
}

/// The records of a run as JSON, one a line.
pub(crate) fn record_lines(results: &StudyResults) -> Result<String, Failure> {
    let mut out = String::new();
    for record in &results.records {
        out.push_str(&paths::record_json(record)?);
        out.push('\n');
    }
    Ok(out)
}
