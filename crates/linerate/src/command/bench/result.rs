//! What was measured, as the flags ask for it: text, JSON, files.

use std::path::Path;

use linerate_core::record::{Failure, Record, RecordStatus};
use linerate_report::study::{self, StudyResults};

use super::flags::Args;
use crate::columns::short_id;
use crate::command::measure::record_line;
use crate::command::study::{record_lines, show_results, write};
use crate::{output, paths};

/// Prints the run and writes the files that were asked for.
pub(super) fn print_results(args: &Args, results: &StudyResults) -> Result<(), Failure> {
    let flags = &args.output;
    if flags.json {
        output::print_line(&json_array(&results.records)?);
    } else if flags.jsonl {
        results.records.iter().for_each(|record| output::print_line(&record_line(record)));
    }
    let directory = match &args.report {
        Some(directory) => Some(directory.clone()),
        None if flags.no_save => None,
        None => {
            let name = format!("{}-{}", results.plan.name, short_id(&results.run));
            Some(paths::report_of(&name, flags.store.as_deref())?)
        }
    };
    if flags.json || flags.jsonl {
        directory.as_deref().map_or(Ok(()), |directory| write(results, directory))?;
    } else {
        show_results(results, directory.as_deref())?;
        stopped(&results.records);
    }
    match &flags.output {
        Some(path) => write_file(path, results),
        None => Ok(()),
    }
}

/// Prints the trials of benchmarks that the user stopped, which are in no table of the run.
fn stopped(records: &[Record]) {
    let has_trials =
        |record: &&Record| record.bench.as_ref().is_some_and(|bench| !bench.trials.is_empty());
    let stopped = records.iter().filter(|record| record.status == RecordStatus::Interrupted);
    for record in stopped.filter(has_trials) {
        output::print_line("\nInterrupted:");
        output::document(&linerate_report::record::document(record));
    }
}

/// One file, in the form that its name ends with.
fn write_file(path: &Path, results: &StudyResults) -> Result<(), Failure> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let text = match ending {
        "csv" => study::csv(results),
        "md" => study::document(results).markdown(),
        "html" => study::document(results).html(),
        "txt" => study::document(results).text(None),
        "jsonl" => record_lines(results)?,
        _ => json_array(&results.records)? + "\n",
    };
    paths::write(path, &text)?;
    output::print_note(&format!("wrote {}", path.display()));
    Ok(())
}

/// Records as one JSON document.
fn json_array(records: &[Record]) -> Result<String, Failure> {
    let records: Vec<String> = records.iter().map(paths::record_json).collect::<Result<_, _>>()?;
    Ok(format!("[{}]", records.join(",\n")))
}
