//! `linerate explain`: what limited a stored result.

use std::path::{Path, PathBuf};

use linerate_core::explain::{Goal, add_figures, explain, foreign, judge, twin};
use linerate_core::record::{Failure, Fault, Record, Verdict};
use linerate_report::explain::document;

use crate::exit::Outcome;
use crate::{output, paths};

/// Flags of `linerate explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Result to explain: @-1 (the newest), @-2, ..., a name, a unique prefix of its ID, or a file:
    /// a record as JSON, a result of iperf3 -J or of ndt7, an output of ss -ti
    #[arg(value_name = "ID|FILE", default_value = "@-1")]
    result: String,
    /// Print the verdict of each direction as JSON
    #[arg(short = 'J', long)]
    json: bool,
    /// Say whether the path carries this rate over this round trip (RFC 8337): 1G@21ms
    #[arg(long, value_name = "RATE@RTT")]
    target: Option<Goal>,
    /// Read this store instead of the default one
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    let (verdicts, id) = verdicts(&args)?;
    if verdicts.is_empty() {
        let reason = "it is neither a TCP test nor a survey";
        let failure = Failure::new(Fault::Usage, "explain", args.result, reason);
        return Err(failure.advise("linerate tcp HOST measures; linerate history lists").into());
    }
    if args.json {
        output::line(&serde_json::to_string_pretty(&verdicts)?);
    } else {
        output::document(&document(&verdicts, &id));
    }
    Ok(0)
}

fn verdicts(args: &Args) -> Result<(Vec<Verdict>, String), Failure> {
    let file = Path::new(&args.result);
    if file.is_file() {
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::new(Fault::Usage, "read", file.display().to_string(), error.to_string())
        })?;
        if let Some((_, found)) = foreign(&text) {
            return Ok((found.iter().map(judge).collect(), String::new()));
        }
        let record = Record::from_json(&text).map_err(|error| {
            let reason = format!("neither a record nor a result of iperf3, ndt7 or ss: {error}");
            Failure::new(Fault::Usage, "read", file.display().to_string(), reason)
        })?;
        return Ok((of_record(&record, args.target), record.id.to_string()));
    }
    let record = paths::filled(args.store.as_deref())?.get(&args.result)?;
    Ok((of_record(&record, args.target), record.id.to_string()))
}

/// The verdicts, with their figures and what a model of the path says of causes and remedies.
pub(super) fn of_record(record: &Record, goal: Option<Goal>) -> Vec<Verdict> {
    let mut verdicts = explain(record);
    add_figures(record, &mut verdicts, goal);
    twin::try_changes(record, &mut verdicts);
    verdicts
}
