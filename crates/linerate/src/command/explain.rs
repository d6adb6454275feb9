//! `linerate explain`: what limited a stored result.

use std::io::Read;
use std::path::{Path, PathBuf};

use linerate_core::explain::{
    Decision, RateGoal, ResultSource, add_figures, decide, decode, judge_direction, read_source,
    twin,
};
use linerate_core::record::{Failure, FailureCode, Fault, LimitVerdict, Record};
use linerate_engine::failure::words_of;
use linerate_report::Document;
use linerate_report::explain::{foreign_document, of_several};
use linerate_report::verdict::VerdictJson;

use crate::exit::Outcome;
use crate::{output, paths};

/// Flags of `linerate explain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Result to explain: @-1 (the newest), @-2, ..., a name, a unique prefix of its ID, or a file
    /// (- for standard input): a record as JSON, output of iperf3 (-J, --json-stream, text),
    /// iperf 2, nuttcp or ss -tin, a result of ndt7
    #[arg(value_name = "ID|FILE", default_value = "@-1")]
    result: String,
    /// Print the verdict of each direction as JSON
    #[arg(short = 'J', long)]
    json: bool,
    /// Say whether the path carries this rate over this round trip (RFC 8337): 1G@21ms
    #[arg(long, value_name = "RATE@RTT")]
    target: Option<RateGoal>,
    /// Read this store instead of the default one
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

/// Most bytes of a file that are read: an hour of iperf3 -J with 128 streams has 150 MB.
const BYTES_MAX: u64 = 256 << 20;

/// Verdicts of a result, and how they are shown.
struct Explained {
    verdicts: Vec<LimitVerdict>,
    document: Document,
}

/// Runs `linerate explain` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    let found = explained(&args)?;
    if found.verdicts.is_empty() {
        let reason = "it is neither a TCP test nor a survey";
        let failure = Failure::new(Fault::Usage, "explain", args.result, reason);
        return Err(failure.advise("linerate tcp HOST measures; linerate history lists").into());
    }
    if args.json {
        let verdicts: Vec<VerdictJson<'_>> = found.verdicts.iter().map(VerdictJson::from).collect();
        output::print_line(&linerate_core::tree::to_json_pretty(&verdicts)?);
        return Ok(0);
    }
    output::document(&found.document);
    Ok(0)
}

fn explained(args: &Args) -> Result<Explained, Failure> {
    if let Some(bytes) = read_bytes(&args.result)? {
        return explain_bytes(&bytes, args);
    }
    let found = paths::filled(args.store.as_deref()).and_then(|store| store.get(&args.result));
    let record = found.map_err(|failure| match failure.code {
        Some(FailureCode::NoResult) if !is_of_store(&args.result) => {
            paths::no_file("explain", &args.result)
        }
        _ => failure,
    })?;
    Ok(explain_record(&record, args.target))
}

fn explain_record(record: &Record, target: Option<RateGoal>) -> Explained {
    let decision = of_record(record, target);
    let document = of_several(record, &decision, &decision.verdicts);
    Explained { verdicts: decision.verdicts, document }
}

/// A name that only a stored result can have: `last`, or one that begins with `@`.
fn is_of_store(name: &str) -> bool {
    name.starts_with('@') || name == "last"
}

/// The bytes of a file, a pipe or standard input; `None` for a name of no file.
fn read_bytes(name: &str) -> Result<Option<Vec<u8>>, Failure> {
    let failed = |reason: String| Failure::new(Fault::Usage, "explain", name, reason);
    let file = Path::new(name);
    let mut bytes = Vec::new();
    let read = if name == "-" {
        std::io::stdin().lock().take(BYTES_MAX + 1).read_to_end(&mut bytes)
    } else if file.is_dir() {
        return Err(failed("it is a folder".to_owned()).advise("name a file in it"));
    } else if file.exists() {
        // Not only regular files: <(ss -tin) of a shell is a pipe.
        let opened = std::fs::File::open(file);
        opened.and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes))
    } else {
        return Ok(None);
    };
    read.map_err(|error| failed(words_of(&error)))?;
    if bytes.len() as u64 > BYTES_MAX {
        let reason = format!("it is longer than {} MB", BYTES_MAX >> 20);
        return Err(failed(reason).advise("give the result of one test"));
    }
    Ok(Some(bytes))
}

fn explain_bytes(bytes: &[u8], args: &Args) -> Result<Explained, Failure> {
    let source = decode(bytes).and_then(|text| read_source(&text)).map_err(|error| {
        let failure = Failure::new(Fault::Usage, "explain", &*args.result, error.to_string());
        failure.advise(error.advice())
    })?;
    let records = match source {
        ResultSource::Foreign(found) => {
            let verdicts: Vec<LimitVerdict> = found.evidence.iter().map(judge_direction).collect();
            let verdicts = Decision::from_verdicts(&verdicts).verdicts;
            let document = foreign_document(&verdicts, found.main);
            return Ok(Explained { verdicts, document });
        }
        ResultSource::Records(records) => records,
    };
    let read = |text: &String| {
        Record::from_json(text).map_err(|error| {
            let reason = format!("the record cannot be read: {error}");
            Failure::new(Fault::Usage, "explain", &*args.result, reason)
                .advise("linerate export writes records of any age anew")
        })
    };
    let records = records.iter().map(read).collect::<Result<Vec<Record>, Failure>>()?;
    if let [record] = records.as_slice() {
        return Ok(explain_record(record, args.target));
    }
    let decided = records.iter().map(|record| (record, of_record(record, args.target)));
    Ok(explain_records(&decided.collect::<Vec<_>>()))
}

/// Several records of one file, under the answer of the last.
fn explain_records(decided: &[(&Record, Decision)]) -> Explained {
    let count = decided.len();
    let numbered = decided.iter().enumerate().flat_map(|(index, (_, decision))| {
        let connection = Some(format!("result {} of {count}", index + 1));
        let verdicts = decision.verdicts.iter().cloned();
        verdicts.map(move |verdict| LimitVerdict { connection: connection.clone(), ..verdict })
    });
    let verdicts: Vec<LimitVerdict> = numbered.collect();
    let last = decided.last();
    let document = last.map(|(record, decision)| of_several(record, decision, &verdicts));
    Explained { verdicts, document: document.unwrap_or_default() }
}

/// The decision about a record, with figures and with the causes and remedies tried on a model of
/// the path.
pub(super) fn of_record(record: &Record, goal: Option<RateGoal>) -> Decision {
    let mut decision = decide(record);
    add_figures(record, &mut decision.verdicts, goal);
    twin::try_changes(record, &mut decision.verdicts);
    decision
}
