//! `linerate history`: what the store has, the newest first.

use std::path::{Path, PathBuf};

use linerate_report::Align::{Left, Right};
use linerate_report::{Document, Table};
use linerate_server::store::{Entry, Filter};

use crate::columns::short_id_len;
use crate::exit::Outcome;
use crate::{output, paths};

/// Flags of `linerate history`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List at most this many results
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// List only results of this study
    #[arg(long, value_name = "NAME")]
    study: Option<String>,
    /// List only results of this run (a unique prefix of its ID is enough)
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// List only results of this kind
    #[arg(long, value_parser = ["tcp", "udp", "ping", "bench", "simulate"])]
    kind: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    /// Read this store instead of the default one
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    let store = match paths::stored(args.store.as_deref())? {
        Ok(store) => store,
        Err(path) => {
            if args.json {
                output::line("[]");
            } else {
                output::note(&nothing_in(&path));
            }
            return Ok(0);
        }
    };
    let run = args.run.map(|name| store.run(&name).map(|run| run.id)).transpose()?;
    let filter = Filter { study: args.study, run, kind: args.kind };
    let entries = store.list(&filter, args.limit)?;
    if args.json {
        output::line(&serde_json::to_string_pretty(&entries)?);
    } else if entries.is_empty() {
        output::note(&nothing_in(store.path()));
    } else {
        output::document(&Document::list(table(&entries)));
    }
    Ok(0)
}

fn nothing_in(store: &Path) -> String {
    format!("no results in {}", store.display())
}

fn table(entries: &[Entry]) -> Table {
    let names = ["id", "started", "kind", "status", "study", "topology", "value", "no.", "name"];
    let aligns = [Left, Left, Left, Left, Left, Left, Right, Right, Left];
    let dash = || "-".to_owned();
    let id_len = short_id_len(entries.iter().map(|entry| entry.id.as_str()));
    let rows = entries.iter().map(|entry| {
        [
            entry.id.chars().take(id_len).collect(),
            to_the_second(&entry.started_at),
            entry.kind.clone(),
            entry.status.clone(),
            entry.study.clone().unwrap_or_else(dash),
            entry.topology.clone().unwrap_or_else(dash),
            entry.parameter.map_or_else(dash, |value| value.to_string()),
            entry.repetition.map_or_else(dash, |value| value.to_string()),
            entry.name.clone().unwrap_or_else(dash),
        ]
    });
    // Narrow terminals lose repetition, value, topology, study, kind and status, in this order.
    Table::of(names.into_iter().zip(aligns)).rows(rows).dropping(&[7, 6, 5, 4, 2, 3])
}

/// `2000-07-01T12:00:00.123Z` without its fraction.
pub(super) fn to_the_second(rfc3339: &str) -> String {
    match rfc3339.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => rfc3339.to_owned(),
    }
}
