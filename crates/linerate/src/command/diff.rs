//! `linerate diff`: two stored results, metric by metric.

use std::path::PathBuf;

use linerate_core::record::{Failure, Fault};
use linerate_report::Detail;
use linerate_report::diff::{differences, document};

use crate::exit::Outcome;
use crate::{output, paths};

/// Flags of `linerate diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// First result: @-1 (the newest), @-2, ..., a name, or a unique prefix of its ID
    #[arg(value_name = "FIRST", default_value = "@-2")]
    first: String,
    /// Second result, which is compared with the first
    #[arg(value_name = "SECOND", default_value = "@-1")]
    second: String,
    /// Print a JSON object: both IDs and a row for each metric
    #[arg(long)]
    json: bool,
    /// Also show caveats, and figures that one of the two alone has
    #[arg(short = 'v', long, conflicts_with = "json")]
    verbose: bool,
    /// Read this store instead of the default one
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

/// Runs `linerate diff` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    let stored = |name: &str| {
        paths::find_result("diff", name, args.store.as_deref(), |store| store.get(name))
    };
    let (first, second) = (stored(&args.first)?, stored(&args.second)?);
    let kinds = (first.plan.kind_name(), second.plan.kind_name());
    if kinds.0 != kinds.1 {
        let object = format!("{} and {}", args.first, args.second);
        let reason = format!("one is of kind {}, the other of kind {}", kinds.0, kinds.1);
        let failure = Failure::new(Fault::Usage, "compare", object, reason);
        return Err(failure.advise("linerate history lists kinds and IDs").into());
    }
    if args.json {
        let rows = differences(&first, &second);
        let ids = (first.id.to_string(), second.id.to_string());
        let whole = serde_json::json!({ "first": ids.0, "second": ids.1, "metrics": rows });
        output::print_line(&linerate_core::tree::to_json_pretty(&whole)?);
    } else {
        let detail = if args.verbose { Detail::Full } else { Detail::Brief };
        output::result(&document(&first, &second), detail);
    }
    Ok(0)
}
