//! `linerate generate`: what is made from the flags and the types, so that nobody writes it twice.
//!
//! Man pages, shell completions, JSON schemas and the list of flags. Measuring commands do not come
//! here.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{CommandFactory, ValueHint};
use linerate_core::record::{Failure, Fault, ReceiveWith, SendWith, Via};
use linerate_engine::study::SHIPPED;

use crate::exit::Outcome;
use crate::{help, output};

/// Flags of `linerate generate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

/// What to make.
#[derive(Debug, clap::Subcommand)]
enum What {
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
        #[arg(value_enum, default_value_t = Document::Record)]
        document: Document,
    },
    /// Print every long flag, one a line, after its command
    Flags,
}

/// A document with a schema.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Document {
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

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    match args.what {
        What::Man { directory } => write_man_pages(&directory)?,
        What::Completions { shell } => output::text(&completions(shell)),
        What::Schema { document } => output::text(schema(document)),
        What::Flags => output::text(&flag_list()),
    }
    Ok(0)
}

/// The command with the flags that other programs have and clap does not read.
pub(crate) fn described() -> clap::Command {
    crate::Cli::command().mut_subcommand("iperf3", crate::personality::iperf3::described)
}

/// The command as a user sees it: without the hidden parts, each command with its full name.
fn visible() -> clap::Command {
    let mut root = described().term_width(100).disable_help_subcommand(true);
    root.build();
    root
}

fn write_man_pages(directory: &Path) -> anyhow::Result<()> {
    let cannot = |error: std::io::Error, object: &Path| {
        Failure::new(Fault::System, "write man page", object.display().to_string(), error)
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

fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut with_values(described(), ""), "linerate", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The command with the values that a shell may offer where the program itself takes more: names
/// beside files, records that are counted from the newest. Hosts are those that the shell knows.
fn with_values(command: clap::Command, path: &str) -> clap::Command {
    let own = path.to_owned();
    let command = command.mut_args(|arg| {
        let id = arg.get_id().as_str().to_owned();
        if matches!((own.as_str(), id.as_str()), ("tcp" | "udp" | "ping" | "test", "host")) {
            return arg.value_parser(clap::value_parser!(String)).value_hint(ValueHint::Hostname);
        }
        match values(&own, &id) {
            Some(values) => arg.value_parser(PossibleValuesParser::new(values)),
            None => arg,
        }
    });
    let children: Vec<String> =
        command.get_subcommands().map(|child| child.get_name().to_owned()).collect();
    children.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}").trim_start().to_owned();
        command.mut_subcommand(name, |child| with_values(child, &path))
    })
}

/// The values of an argument by the name of its command and its own.
fn values(command: &str, argument: &str) -> Option<Vec<&'static str>> {
    let vias = [Via::Iperf3, Via::Iperf2, Via::Nuttcp, Via::Ttcp].map(Via::name);
    Some(match (command, argument) {
        ("tcp" | "udp", "via") => vias.to_vec(),
        ("tcp", "send_with") => SendWith::ALL.iter().map(|it| it.name()).collect(),
        ("tcp", "receive_with") => ReceiveWith::ALL.iter().map(|it| it.name()).collect(),
        ("tcp" | "test", "congestion") => vec!["bbr", "cubic", "reno"],
        ("study run" | "study show", "study" | "name")
        | ("bench" | "history", "plan" | "study") => {
            SHIPPED.iter().map(|study| study.name).collect()
        }
        ("lab run" | "lab check", "plan") => super::lab::SHIPPED.map(|(name, _)| name).to_vec(),
        ("report" | "diff", "id" | "first" | "second") => NEWEST.to_vec(),
        _ => return None,
    })
}

/// The newest results, as `report` and `diff` name them.
const NEWEST: [&str; 6] = ["last", "@-1", "@-2", "@-3", "@-4", "@-5"];

/// The schema as it stands in spec/, which a test holds to the types: the code that makes schemas
/// stays out of the program.
const fn schema(document: Document) -> &'static str {
    match document {
        Document::Record => include_str!("../../../../spec/record.schema.json"),
        Document::Study => include_str!("../../../../spec/study.schema.json"),
        Document::Lab => include_str!("../../../../spec/lab.schema.json"),
        Document::Ceiling => include_str!("../../../../spec/ceiling.schema.json"),
        Document::FrameRates => include_str!("../../../../spec/frame-rates.schema.json"),
        Document::Path => include_str!("../../../../spec/path.schema.json"),
        Document::Conform => include_str!("../../../../spec/conform.schema.json"),
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
