//! `linerate study`: plans, their runs, running them, and what was published before.

pub(super) mod answer;
mod list;
mod milestones;
mod own;
pub(super) mod plan;
mod progress;
mod published;
mod render;
mod run;
pub(super) mod session;
mod show;

pub(crate) use answer::serve_until_stop;
pub(crate) use render::{record_lines, results, show_results, write};
pub(crate) use run::study_state as run_state;

use std::path::PathBuf;

use crate::exit::Outcome;

/// Flags of `linerate study`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: StudyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum StudyCommand {
    /// List the built-in studies and the stored runs
    List {
        /// Read this store instead of the default one
        #[arg(long, value_name = "FILE")]
        store: Option<PathBuf>,
    },
    /// Show the measurements of a study and its duration
    Show {
        /// Built-in study or file
        #[arg(value_name = "NAME|FILE")]
        study: String,
        /// Print the plan as JSON
        #[arg(long, conflicts_with = "toml")]
        json: bool,
        /// Print the study file
        #[arg(long)]
        toml: bool,
    },
    /// Check a study file
    Check {
        /// Study file
        #[arg(value_name = "FILE")]
        study: PathBuf,
    },
    /// Run a study, or resume a run
    Run(session::Args),
    /// List the tables of published results, or compare one with theory
    Published {
        /// Table, or study for all of its tables
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// Print JSON
        #[arg(long, conflicts_with = "csv")]
        json: bool,
        /// Print comma-separated values
        #[arg(long, requires = "name")]
        csv: bool,
    },
    /// Chart published TCP throughput and packets per second by year, next to your own results
    Milestones(milestones::Args),
}

/// Runs `linerate study` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    match args.command {
        StudyCommand::List { store } => list::run(store.as_deref()),
        StudyCommand::Show { study, json, toml } => show::run(&study, json, toml),
        StudyCommand::Check { study } => show::check_file(&study),
        StudyCommand::Run(args) => run::run(args),
        StudyCommand::Published { name, json, csv } => published::run(name.as_deref(), json, csv),
        StudyCommand::Milestones(args) => milestones::run(&args),
    }
}
