//! What was measured, as the flags ask for it: text, JSON, files.

use std::path::Path;

use linerate_core::record::{Failure, Record, Status};
use linerate_report::study::{self, Results};

use super::flags::Args;
use crate::columns::short_id;
use crate::command::measure::record_line;
use crate::command::study::{lines, show, write};
use crate::{output, paths};

/// Prints the run and writes the files that were asked for.
pub(super) fn print_results(args: &Args, results: &Results) -> Result<(), Failure> {
    let flags = &args.output;
    if flags.json {
        output::line(&array(&results.records)?);
    } else if flags.jsonl {
        results.records.iter().for_each(|record| output::line(&record_line(record)));
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
        show(results, directory.as_deref())?;
        stopped(&results.records);
    }
    match &flags.output {
        Some(path) => file(path, results),
        None => Ok(()),
    }
}

/// Prints the trials of benchmarks that the user stopped, which are in no table of the run.
fn stopped(records: &[Record]) {
    let has_trials =
        |record: &&Record| record.bench.as_ref().is_some_and(|bench| !bench.trials.is_empty());
    let stopped = records.iter().filter(|record| record.status == Status::Interrupted);
    for record in stopped.filter(has_trials) {
        output::line("\nInterrupted:");
        output::document(&linerate_report::record::document(record));
    }
}

/// One file, in the form that its name ends with.
fn file(path: &Path, results: &Results) -> Result<(), Failure> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let text = match ending {
        "csv" => study::csv(results),
        "md" => study::document(results).markdown(),
        "html" => study::document(results).html(),
        "txt" => study::document(results).text(None),
        "jsonl" => lines(results)?,
        _ => array(&results.records)? + "\n",
    };
    paths::write(path, &text)?;
    output::note(&format!("wrote {}", path.display()));
    Ok(())
}

/// Records as one JSON document.
fn array(records: &[Record]) -> Result<String, Failure> {
    let records: Vec<String> = records.iter().map(paths::json).collect::<Result<_, _>>()?;
    Ok(format!("[{}]", records.join(",\n")))
}
