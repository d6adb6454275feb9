//! `linerate history`: what the store has, the newest first.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use linerate_core::record::{Failure, Plan};
use linerate_core::time::WallTime;
use linerate_report::Document;
use linerate_report::history::{HistoryLine, comma_separated, terminal_table};
use linerate_store::{HistoryEntry, HistoryFilter, Store};

use super::measure::parse_tag;
use crate::columns::short_id_len;
use crate::exit::Outcome;
use crate::{output, paths};

/// Flags of `linerate history`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List at most this many results
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    filters: Filters,
    /// Print a JSON array
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values, with the fields of --json
    #[arg(long)]
    csv: bool,
    /// Keep this result whatever a policy says of old ones (linerate policy): an ID, a name, @-1
    #[arg(long, value_name = "RESULT", conflicts_with_all = ["json", "csv", "unkeep"])]
    keep: Option<String>,
    /// Let this result go with the others again
    #[arg(long, value_name = "RESULT", conflicts_with_all = ["json", "csv"])]
    unkeep: Option<String>,
    /// Read this store instead of the default one
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

/// Which stored results a command is about.
#[derive(Debug, clap::Args)]
pub(super) struct Filters {
    /// Only results of this kind; study and bench are whole runs
    #[arg(long, value_parser = kind_parser())]
    kind: Option<String>,
    /// Only results to or from this host: its name as given, or an address of either end
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only results of this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only results with this label; repeatable, all must be there
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_tag)]
    tags: Vec<(String, String)>,
    /// Only results begun at this time or later: 2h (ago), 3d, today, yesterday, a date, RFC 3339;
    /// days are in UTC
    #[arg(long, value_name = "TIME", value_parser = named_time)]
    since: Option<WallTime>,
    /// Only results begun before this time
    #[arg(long, value_name = "TIME", value_parser = named_time)]
    until: Option<WallTime>,
    /// Only results that did not end well
    #[arg(long)]
    failed: bool,
    /// Each measurement of this study instead of a line for each run
    #[arg(long, value_name = "NAME")]
    study: Option<String>,
    /// Each measurement of this run (a unique prefix of its ID is enough)
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Each measurement of all studies and benchmarks instead of a line for each run
    #[arg(long)]
    all: bool,
}

/// Reads a kind of results: that of a plan, or a whole run.
fn kind_parser() -> impl TypedValueParser<Value = String> {
    let all = Plan::KINDS.into_iter().chain([RUN]).map(PossibleValue::new);
    let others = OF_OTHER_KIND.map(|(command, _)| PossibleValue::new(command).hide(true));
    PossibleValuesParser::new(all.chain(others)).try_map(|text| {
        match OF_OTHER_KIND.iter().find(|(command, _)| *command == text) {
            Some((command, kind)) => {
                Err(format!("results of linerate {command} are of kind {kind}"))
            }
            None => Ok(text),
        }
    })
}

/// A run of a study.
const RUN: &str = "study";

/// Commands whose results are of another one's kind.
const OF_OTHER_KIND: [(&str, &str); 2] = [("stamp", "ping"), ("rrul", "tcp")];

fn named_time(text: &str) -> Result<WallTime, String> {
    WallTime::from_user_text(text, linerate_sys::clock::wall_time())
}

impl Filters {
    /// The filter that the flags describe.
    pub(super) fn store_filter(&self, store: &Store) -> Result<HistoryFilter, Failure> {
        let run = self.run.as_ref().map(|name| store.run(name).map(|run| run.id)).transpose()?;
        Ok(HistoryFilter {
            study: self.study.clone(),
            run,
            kind: self.kind.clone(),
            host: self.host.clone(),
            name: self.name.clone(),
            tags: self.tags.clone(),
            since: self.since,
            until: self.until,
            failed: self.failed,
            cells: self.all,
        })
    }
}

/// Runs `linerate history` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    if let Some(name) = args.keep.as_ref().or(args.unkeep.as_ref()) {
        let stays = args.keep.is_some();
        let mark = |store: &mut Store| store.mark_kept(name, stays);
        let id = paths::find_result("history", name, args.store.as_deref(), mark)?;
        let what = if stays { "stays" } else { "goes with the others" };
        output::print_line(&format!("{id} {what}"));
        return Ok(0);
    }
    let (lines, place) = match paths::stored(args.store.as_deref())? {
        Ok(store) => {
            let entries = store.list_history(&args.filters.store_filter(&store)?, args.limit)?;
            let lines = entries.iter().map(|entry| history_line(&store, entry)).collect();
            (lines, store.path().to_owned())
        }
        Err(path) => (Vec::new(), path),
    };
    print_results(&args, &lines, &place)?;
    Ok(0)
}

fn print_results(args: &Args, lines: &[HistoryLine], place: &Path) -> anyhow::Result<()> {
    if args.json {
        output::print_line(&linerate_core::tree::to_json_pretty(lines)?);
    } else if args.csv {
        output::print_text(&comma_separated(lines));
    } else if lines.is_empty() {
        output::print_note(&format!("no results in {}", place.display()));
    } else {
        let id_len = short_id_len(lines.iter().map(|line| line.id.as_str()));
        output::document(&Document::from_table(terminal_table(
            lines,
            output::output_columns(),
            id_len,
        )));
    }
    Ok(())
}

/// A line of the list. A record that cannot be read keeps its line, which says so.
fn history_line(store: &Store, entry: &HistoryEntry) -> HistoryLine {
    let bare = |verdict: String, measurements| HistoryLine {
        id: entry.id.clone(),
        started_at: entry.started_at.clone(),
        kind: entry.kind.clone(),
        measurements,
        status: entry.status.clone(),
        verdict,
        name: entry.name.clone(),
        tags: entry.tags.clone(),
        study: entry.study.clone(),
        run: entry.run.clone(),
        topology: entry.topology.clone(),
        test: entry.test.clone(),
        parameter: entry.parameter,
        repetition: entry.repetition,
        ..HistoryLine::default()
    };
    if entry.is_run() {
        let stored = store.run(&entry.id).map(|run| run.stored).ok();
        return bare(entry.status.clone(), stored);
    }
    match store.record(&entry.id) {
        Ok(record) => HistoryLine::from_record(&record),
        Err(failure) => bare(failure.reason, None),
    }
}
