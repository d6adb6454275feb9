//! `linerate export`: stored records as they are, for other programs.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use linerate_core::record::{Failure, Fault, Record};
use linerate_report::{csv, flent};

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
    /// line; flent: one file per result for flent, in the directory of -o
    #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
    format: ExportFormat,
    /// Write to this file instead of standard output; a directory for flent
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Read this store instead of the default one
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    Json,
    Jsonl,
    Csv,
    Flent,
}

/// Runs the command. Records of studies are exported each by itself, the oldest first.
pub(crate) fn run(args: Args) -> Outcome {
    let store = paths::filled(args.store.as_deref())?;
    let filter = args.filters.store_filter(&store)?.with_cells();
    let entries = store.list_history(&filter, args.limit.unwrap_or(usize::MAX))?;
    let records = entries.iter().rev().map(|entry| store.record(&entry.id));
    let records: Vec<Record> = records.collect::<Result<_, _>>()?;
    let text = match args.format {
        ExportFormat::Json => linerate_core::tree::to_json_pretty(&records)? + "\n",
        ExportFormat::Jsonl => {
            let lines = records.iter().map(|record| Ok(paths::record_json(record)? + "\n"));
            lines.collect::<anyhow::Result<String>>()?
        }
        ExportFormat::Csv => csv::records(records.iter()),
        ExportFormat::Flent => return all_for_flent(&records, args.output.as_deref()),
    };
    match &args.output {
        Some(path) => {
            paths::write(path, &text)?;
            output::print_note(&format!("wrote {} records to {}", records.len(), path.display()));
        }
        None => output::print_text(&text),
    }
    Ok(0)
}

/// One file for each record with series that flent plots, in a directory.
fn all_for_flent(records: &[Record], directory: Option<&Path>) -> Outcome {
    directory.map_or(Ok(()), paths::make_folder)?;
    let directory = directory.unwrap_or_else(|| Path::new("."));
    let records = records.iter().filter(|record| flent::document(record).is_some());
    for record in records {
        let id = record.id.to_string();
        write_flent(&directory.join(format!("{}-{id}.flent.gz", record.plan.kind_name())), record)?;
    }
    Ok(0)
}

/// Writes a record as a file of flent.
/// # Errors
/// When it has no probes beside a load, or cannot be written.
pub(super) fn write_flent(path: &Path, record: &Record) -> Result<(), Failure> {
    let name = path.display().to_string();
    let Some(document) = flent::document(record) else {
        let reason = "it has no TCP streams with probes beside them";
        return Err(Failure::new(Fault::Usage, "write for flent", record.id.to_string(), reason)
            .advise("take a result of linerate rrul, tcp or test with answered probes"));
    };
    let fail =
        |error: &dyn std::fmt::Display| Failure::new(Fault::System, "write", name.clone(), error);
    let text = linerate_core::tree::to_json(&document).map_err(|error| fail(&error))?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text.as_bytes()).map_err(|error| fail(&error))?;
    let packed = packed.finish().map_err(|error| fail(&error))?;
    paths::write_bytes(path, &packed)?;
    output::print_note(&format!("wrote {name}"));
    Ok(())
}
