//! `linerate generate`: what is made from the flags and the types, so that nobody writes it twice.
//!
//! Man pages, shell completions, JSON schemas and the list of flags. Measuring commands do not come
//! here.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;

use super::complete;
use crate::exit::Outcome;
use crate::{help, output};

/// Flags of `linerate generate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: GenerateCommand,
}

/// The document to make.
#[derive(Debug, clap::Subcommand)]
enum GenerateCommand {
    /// Write one man page per command into a directory
    Man {
        /// Directory; created if absent
        directory: PathBuf,
    },
    /// Print a completion script
    Completions {
        /// Shell to generate for
        shell: clap_complete::Shell,
    },
    /// Print the JSON Schema of a stored document
    Schema {
        /// Document to print the schema of
        #[arg(value_enum, default_value_t = SchemaKind::Record)]
        document: SchemaKind,
    },
    /// Print every long flag, one a line, after its command
    Flags,
    /// Print what the scripts of completions offer: hosts, results, names, runs or studies
    #[command(hide = true)]
    Candidates {
        /// What to print
        what: complete::CandidateKind,
    },
}

/// A document with a schema.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum SchemaKind {
    /// One measurement
    Record,
    /// The plan of a study
    Study,
    /// The plan of a laboratory
    Lab,
    /// The result of linerate ceiling
    Ceiling,
    /// The tables of linerate ceiling --all-links
    FrameRates,
    /// The result of linerate path run
    Path,
    /// The result of linerate conform
    Conform,
}

/// Runs `linerate generate` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    match args.what {
        GenerateCommand::Man { directory } => write_man_pages(&directory)?,
        GenerateCommand::Completions { shell } => {
            output::print_text(&complete::script(shell, crate::described()))
        }
        GenerateCommand::Schema { document } => output::print_text(schema(document)),
        GenerateCommand::Flags => output::print_text(&flag_list()),
        GenerateCommand::Candidates { what } => output::print_text(&complete::candidates(what)),
    }
    Ok(0)
}

/// The command with its visible parts, each command with its full name.
fn visible() -> clap::Command {
    let mut root = crate::described().term_width(100).disable_help_subcommand(true);
    root.build();
    root
}

fn write_man_pages(directory: &Path) -> anyhow::Result<()> {
    let cannot = |error: std::io::Error, object: &Path| {
        let object = object.display().to_string();
        Failure::new(Fault::System, "write man page", object, words_of(&error))
            .advise("name a folder that this user may write")
    };
    std::fs::create_dir_all(directory).map_err(|error| cannot(error, directory))?;
    for (name, command) in commands(&visible()) {
        let file = directory.join(format!("{}.1", name.replace(' ', "-")));
        let mut page = Vec::new();
        help::man::write(&name, command, &mut page).map_err(|error| cannot(error, &file))?;
        std::fs::write(&file, page).map_err(|error| cannot(error, &file))?;
    }
    Ok(())
}

/// The root, its visible commands and theirs, each with its full name.
fn commands(root: &clap::Command) -> Vec<(String, clap::Command)> {
    let mut all = vec![(root.get_name().to_owned(), root.clone())];
    let mut at = 0;
    while let Some((name, command)) = all.get(at).cloned() {
        for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
            // What every command takes is on the page of the program.
            let child = child.clone().mut_arg("color", |flag| flag.hide(true));
            all.push((format!("{name} {}", child.get_name()), child));
        }
        at += 1;
    }
    all
}

/// The schema stored in spec/, which a test compares with the types: the code that makes schemas
/// stays out of the program.
const fn schema(document: SchemaKind) -> &'static str {
    match document {
        SchemaKind::Record => include_str!("../../../../spec/record.schema.json"),
        SchemaKind::Study => include_str!("../../../../spec/study.schema.json"),
        SchemaKind::Lab => include_str!("../../../../spec/lab.schema.json"),
        SchemaKind::Ceiling => include_str!("../../../../spec/ceiling.schema.json"),
        SchemaKind::FrameRates => include_str!("../../../../spec/frame-rates.schema.json"),
        SchemaKind::Path => include_str!("../../../../spec/path.schema.json"),
        SchemaKind::Conform => include_str!("../../../../spec/conform.schema.json"),
    }
}

/// `linerate tcp --time: End after this time`, a line for each flag that a user may see.
fn flag_list() -> String {
    let mut list = String::new();
    for (name, command) in commands(&visible()) {
        for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
            let Some(long) = flag.get_long().filter(|long| !matches!(*long, "help" | "version"))
            else {
                continue;
            };
            let help = flag.get_help().map_or_else(String::new, ToString::to_string);
            let _ = writeln!(list, "{name} --{long}: {help}");
        }
    }
    list
}
