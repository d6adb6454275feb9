//! `linerate export`: stored records as they are, for other programs.

use std::path::PathBuf;

use linerate_core::record::Record;
use linerate_report::csv;

use super::history::Filters;
use crate::exit::Outcome;
use crate::{output, paths};

/// Flags of `linerate export`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filters: Filters,
    /// Export at most this many results, the newest
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
    /// json: one array of whole records; jsonl: one record per line; csv: one summary value per
    /// line
    #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Read this store instead of the default one
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Json,
    Jsonl,
    Csv,
}

/// Runs the command. Records of studies are exported each by itself, the oldest first.
pub(crate) fn run(args: Args) -> Outcome {
    let store = paths::filled(args.store.as_deref())?;
    let filter = args.filters.of(&store)?.with_cells();
    let entries = store.list(&filter, args.limit.unwrap_or(usize::MAX))?;
    let records = entries.iter().rev().map(|entry| store.record(&entry.id));
    let records: Vec<Record> = records.collect::<Result<_, _>>()?;
    let text = match args.format {
        Format::Json => serde_json::to_string_pretty(&records)? + "\n",
        Format::Jsonl => {
            let lines = records.iter().map(|record| Ok(paths::json(record)? + "\n"));
            lines.collect::<anyhow::Result<String>>()?
        }
        Format::Csv => csv::records(records.iter()),
    };
    match &args.output {
        Some(path) => {
            paths::write(path, &text)?;
            output::note(&format!("wrote {} records to {}", records.len(), path.display()));
        }
        None => output::text(&text),
    }
    Ok(0)
}
