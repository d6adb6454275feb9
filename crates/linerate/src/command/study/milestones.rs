//! `linerate study milestones`: the history of TCP throughput, with the reader's own results.

use std::path::PathBuf;

use linerate_core::record::{Failure, Fault, Record, RecordStatus};
use linerate_core::study::Milestone;
use linerate_engine::study::{HISTORY, TABLES};
use linerate_report::published::milestones::{csv, document, json, svg_files};
use linerate_store::{HistoryFilter, Store};
use linerate_sys::clock;

use super::own::{self, Addition};
use super::published::read;
use crate::exit::Outcome;
use crate::{output, paths};

/// Flags of `linerate study milestones`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Add a stored result (a unique prefix of its ID, last, @-1) or an external one:
    /// LABEL=RATE[,mtu=BYTES|,payload=BYTES][,year=YEAR]; repeatable
    #[arg(long, value_name = "ID|LABEL=RATE", value_parser = str::parse::<Addition>)]
    add: Vec<Addition>,
    /// Add the best or the newest stored TCP result
    #[arg(long, value_name = "WHICH", num_args = 0..=1, default_missing_value = "best")]
    mine: Option<Mine>,
    /// Write both charts to this directory
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Read this store instead of the default one
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

/// Which stored result `--mine` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Mine {
    /// The result with the highest goodput
    Best,
    /// The latest result
    Newest,
}

/// Runs `linerate study milestones` by its flags.
pub(super) fn run(args: &Args) -> Outcome {
    let mut milestones = shipped()?;
    milestones.extend(added_milestones(args)?);
    // A stable sort: within a year the order of the table stays, own results last.
    let year = |milestone: &Milestone| milestone.year.lower_end().unwrap_or(f64::MAX);
    milestones.sort_by(|a, b| year(a).total_cmp(&year(b)));
    if args.json {
        output::print_line(&linerate_core::tree::to_json_pretty(&json(&milestones))?);
    } else if args.csv {
        output::print_text(&csv(&milestones));
    } else {
        output::document(&document(&milestones));
    }
    if let Some(directory) = &args.svg {
        paths::make_folder(directory)?;
        for (name, svg) in svg_files(&milestones) {
            let path = directory.join(name);
            paths::write(&path, &svg)?;
            output::print_note(&format!("wrote {}", path.display()));
        }
    }
    Ok(0)
}

fn shipped() -> Result<Vec<Milestone>, Failure> {
    let tables = read(TABLES.iter().filter(|table| table.about.id == HISTORY))?;
    Ok(tables.iter().flat_map(|table| table.milestones()).cloned().collect())
}

/// The milestones that the flags add; the store is opened only when one of them names a result in
/// it.
fn added_milestones(args: &Args) -> Result<Vec<Milestone>, Failure> {
    let now = clock::wall_time().to_string();
    let in_store = |addition: &Addition| matches!(addition, Addition::Record(_));
    let needed = args.mine.is_some() || args.add.iter().any(in_store);
    let store = needed.then(|| paths::open_store(args.store.as_deref())).transpose()?;
    let mut added = Vec::new();
    for addition in &args.add {
        match (addition, &store) {
            (Addition::Given(given), _) => added.push(given.milestone(own::year_of(&now))?),
            (Addition::Record(name), Some(store)) => {
                added.push(own::of_record(&store.get(name)?)?);
            }
            (Addition::Record(_), None) => {}
        }
    }
    if let (Some(which), Some(store)) = (args.mine, &store) {
        added.push(own::of_record(&own_record(store, which)?)?);
    }
    Ok(added)
}

/// The stored TCP result that `--mine` means.
fn own_record(store: &Store, which: Mine) -> Result<Record, Failure> {
    let filter =
        HistoryFilter { kind: Some("tcp".to_owned()), cells: true, ..HistoryFilter::default() };
    let mut best: Option<(f64, Record)> = None;
    for entry in store.list_history(&filter, usize::MAX)? {
        let record = store.record(&entry.id)?;
        let Some((bps, _)) = own::goodput(&record).filter(|_| record.status == RecordStatus::Ok)
        else {
            continue;
        };
        if which == Mine::Newest {
            return Ok(record);
        }
        if best.as_ref().is_none_or(|(most, _)| bps > *most) {
            best = Some((bps, record));
        }
    }
    best.map(|(_, record)| record).ok_or_else(|| {
        let object = store.path().display().to_string();
        Failure::new(Fault::Usage, "find a TCP result in", object, "it has none that ended well")
            .advise("run linerate tcp HOST first")
    })
}
