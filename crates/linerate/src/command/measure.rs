//! What the measuring commands share: output flags, the context, printing and keeping the record.

use std::path::{Path, PathBuf};

use linerate_core::record::{Event, Failure, FailureCode, Fault, Record, RecordStatus, Tool};
use linerate_engine::context::Context;
use linerate_report::Detail;
use linerate_store::check_place;
use linerate_sys::stop::Stop;
use serde::Serialize;

use crate::config::Config;
use crate::{help, output, paths};

/// Output flags of a measuring command.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct OutputFlags {
    /// Print the record as one JSON document
    #[arg(short = 'J', long, conflicts_with = "jsonl")]
    pub(crate) json: bool,
    /// Print one JSON object per line: events as they happen, then the record
    #[arg(long)]
    pub(crate) jsonl: bool,
    /// Write the record to FILE as JSON
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) amount: DetailFlags,
    /// Name the result
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Label the result; repeatable
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = parse_tag)]
    pub(crate) tags: Vec<(String, String)>,
    /// Do not store the result
    #[arg(long)]
    pub(crate) no_save: bool,
    /// Use this store instead of the default one
    #[arg(long, value_name = "FILE", env = "LINERATE_STORE", hide_env_values = true)]
    pub(crate) store: Option<PathBuf>,
}

/// Detail of a result that is printed.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct DetailFlags {
    /// Print only the result, in one line
    #[arg(short = 'q', long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print everything that is known of the result, and every stream as it runs
    #[arg(short = 'v', long)]
    pub(crate) verbose: bool,
}

impl DetailFlags {
    /// The same for a document.
    pub(crate) const fn detail(self) -> Detail {
        match (self.quiet, self.verbose) {
            (true, _) => Detail::Answer,
            (_, true) => Detail::Full,
            _ => Detail::Brief,
        }
    }
}

impl OutputFlags {
    /// Tries the file of `-o`, and the place of the store, before anything is measured.
    /// # Errors
    /// When the file cannot be written, or the store's directory is not there.
    pub(crate) fn check_files(&self) -> Result<(), Failure> {
        self.output.as_deref().map_or(Ok(()), paths::check_writable)?;
        match self.store.as_deref().filter(|_| !self.no_save) {
            Some(named) => check_place(named),
            None => Ok(()),
        }
    }

    /// The stream for remarks beside the result: programs have standard output to themselves.
    pub(crate) fn remark_printer(&self) -> fn(&str) {
        if self.json || self.jsonl { output::print_note } else { output::print_line }
    }

    /// True when live lines are printed.
    pub(crate) const fn shows_live_lines(&self) -> bool {
        !(self.json || self.jsonl || self.amount.quiet)
    }

    /// Puts the user's name and labels on a record, those of the configuration file first.
    pub(crate) fn label_record(&self, record: &mut Record) {
        record.name.clone_from(&self.name);
        // A mistake in the file was told before anything was measured.
        let config = Config::load().unwrap_or_default();
        record.tags.extend(config.result_tags(record.plan.host_names().next()));
        record.tags.extend(self.tags.iter().cloned());
    }

    /// Keeps a record in the store; true when it is there now. A result that cannot be kept is
    /// shown all the same: a line gives the reason, and the result is not changed.
    pub(crate) fn keep_record(&self, record: &Record) -> bool {
        if self.no_save || is_mistake(record) {
            return false;
        }
        let kept =
            paths::open_store(self.store.as_deref()).and_then(|mut store| store.put_record(record));
        if let Err(failure) = &kept {
            output::error_line(&format!("not kept: {failure}; --no-save leaves it out"));
        }
        kept.is_ok()
    }
}

/// A command that could not be carried out as it was typed has no result: nothing was sent. That a
/// name has no address may be the network's fault, and is one.
fn is_mistake(record: &Record) -> bool {
    let mistake = |failure: &Failure| {
        failure.fault == Fault::Usage && failure.code != Some(FailureCode::Connect)
    };
    record.status == RecordStatus::Error && record.failure.as_ref().is_some_and(mistake)
}

/// A mistake that names no way out is one of flags: the help of the command has them.
fn advise_help(record: &mut Record) {
    if is_mistake(record)
        && let Some(failure) = &mut record.failure
    {
        let see = || format!("see '{} --help'", help::command_typed());
        failure.next_step.get_or_insert_with(see);
    }
}

/// A label in the form KEY=VALUE.
pub(super) fn parse_tag(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| "a tag is KEY=VALUE".to_owned())?;
    Ok((key.to_owned(), value.to_owned()))
}

/// This program, for records.
pub(crate) fn this_tool() -> Tool {
    Tool { name: "linerate".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

/// Measures, prints, keeps; the exit code is for the command to make of the record.
pub(crate) fn run(
    flags: &OutputFlags,
    measure: impl FnOnce(&mut Context<'_>) -> Record,
    live: &mut dyn FnMut(&Event),
) -> Result<Record, anyhow::Error> {
    flags.check_files()?;
    let stop = Stop::on_signals()?;
    let without_reader = stop.clone();
    let mut watch = |event: &Event| {
        if flags.jsonl {
            output::print_line(&event_line(event));
        } else if flags.shows_live_lines() {
            live(event);
        }
        if output::reader_left() {
            without_reader.request_stop();
        }
    };
    let mut context = Context { tool: this_tool(), stop, watch: &mut watch };
    let mut record = measure(&mut context);
    advise_help(&mut record);
    flags.label_record(&mut record);
    let kept = flags.keep_record(&record);
    print_record(flags, &record, kept);
    if let Some(path) = &flags.output {
        write_json(path, &record)?;
    }
    Ok(record)
}

/// Keeps and prints the records of several targets: as JSON one array.
pub(crate) fn print_all(flags: &OutputFlags, records: &[Record]) {
    let kept: Vec<bool> = records.iter().map(|record| flags.keep_record(record)).collect();
    if flags.json {
        output::print_line(&linerate_core::tree::to_json_pretty(records).unwrap_or_default());
    }
    for (record, kept) in records.iter().zip(kept) {
        match flags.json {
            true => {
                let failure = record.failure.iter();
                failure.for_each(|failure| output::error_line(&failure.to_string()));
            }
            false => print_record(flags, record, kept),
        }
    }
}

/// A run that measured nothing has no figures to show: people get the line of its failure alone.
fn print_record(flags: &OutputFlags, record: &Record, kept: bool) {
    if flags.json {
        output::print_line(&linerate_core::tree::to_json_pretty(record).unwrap_or_default());
    } else if flags.jsonl {
        output::print_line(&record_line(record));
    } else if record.status != RecordStatus::Error {
        let document = linerate_report::record::document(record);
        let document = if kept { document } else { document.not_kept() };
        output::result(&document, flags.amount.detail());
    }
    if let Some(failure) = &record.failure {
        output::error_line(&failure.to_string());
    }
}

/// An event as a line of `--jsonl`.
pub(crate) fn event_line(event: &Event) -> String {
    linerate_core::tree::to_json(event).unwrap_or_default()
}

/// The same of one of several targets, which is named.
pub(crate) fn event_line_of(target: &str, event: &Event) -> String {
    let mut line = linerate_core::tree::to_value(event).unwrap_or_default();
    line["target"] = target.into();
    line.to_string()
}

/// A record as the last line of `--jsonl`.
pub(crate) fn record_line(record: &Record) -> String {
    serde_json::json!({ "event": "record", "data": record }).to_string()
}

/// Writes a document for `-o`.
pub(crate) fn write_json(path: &Path, document: &impl Serialize) -> Result<(), Failure> {
    let fail = |error: &dyn std::fmt::Display| {
        Failure::new(Fault::System, "write record to", path.display().to_string(), error)
    };
    let text = linerate_core::tree::to_json_pretty(document).map_err(|error| fail(&error))?;
    paths::write(path, &(text + "\n"))
}
