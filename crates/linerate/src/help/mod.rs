//! What `-h`, `--help` and man pages say: the flags of the program with the headings, examples and
//! references of [`all_pages`], and the exit codes of [`crate::codes`].
//!
//! `-h` fits a screen of 80 by 24: the flags most used, each with as much of its doc comment as
//! fits a line. `--help` has every flag with all of its comment, by headings. Both are laid out by
//! clap's short help, whose long one takes three lines a flag.

mod groups;
mod headings;
pub(crate) mod man;
mod mesh_pages;
mod nested_pages;
mod page;
mod pages;
mod topics;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::sync::OnceLock;

use clap::{Arg, Command};

use crate::codes::CODES;
pub(crate) use groups::GROUPS;
use headings::HEADINGS;
pub(crate) use page::HelpPage;
pub(crate) use topics::topic_page;

/// The pages of all commands.
pub(crate) fn all_pages() -> impl Iterator<Item = &'static HelpPage> {
    let mesh = if cfg!(feature = "web") { mesh_pages::MESH_PAGES } else { &[] };
    pages::PAGES.iter().chain(mesh)
}

/// Text that the program prints when it is called without arguments.
pub(crate) const BEGIN: &str = "\
linerate measures a network path or device and says what limits it. To begin:

  linerate serve          on the other host: what tests are made against
  linerate test HOST      survey the path to it: round-trip time, TCP, limits
  linerate tcp HOST       10 s of TCP to it; likewise udp
  linerate ping HOST      round-trip time to any host
  linerate bench --demo   no second host: benchmark a virtual router here

linerate -h lists the commands, linerate COMMAND -h its flags.";

/// Columns of the narrowest screen.
const COLUMNS: usize = 80;

/// Heading of flags that have none.
const OTHERS: &str = "Options";

/// The help for a command line, of `root` as parsed.
pub(crate) fn help_text(root: Command, words: &[OsString]) -> String {
    let asked_long = |word: &OsString| word == "--help" || word == "help";
    let long = words.iter().any(asked_long);
    let words: Vec<OsString> = words.iter().filter(|word| *word != "help").cloned().collect();
    let path = command_path(&root, &words);
    let mut root = root.disable_help_subcommand(true);
    root.build();
    let mut command = &root;
    for name in path.split(' ').skip(1) {
        command = command.find_subcommand(name).unwrap_or(command);
    }
    let (command, page) = (command.clone(), find_page(&path));
    match (path.contains(' '), long) {
        (false, _) => all_commands(&command, page, long),
        (true, true) => full_help(command, page),
        (true, false) => short_help(command, page),
    }
}

/// The command of a command line, with the program's name, for mistakes whose place clap does not
/// give.
pub(crate) fn command_path(command: &Command, words: &[OsString]) -> String {
    let (mut at, mut named) = (command, command.get_name().to_owned());
    for word in words.iter().skip(1) {
        let Some(next) = at.find_subcommand(word) else { break };
        named.push_str(&format!(" {}", next.get_name()));
        at = next;
    }
    named
}

/// True for a command that builds with fewer features lack: `bench` in a core build.
pub(crate) fn is_left_out(root: &Command, name: &str) -> bool {
    let is_command = GROUPS.iter().any(|(_, names)| names.contains(&name));
    is_command && root.find_subcommand(name).is_none()
}

/// All commands, for lines that name the one that was typed.
static COMMANDS: OnceLock<fn() -> Command> = OnceLock::new();

/// Keeps how the commands are described; made only where a line needs them.
pub(crate) fn keep_commands(commands: fn() -> Command) {
    COMMANDS.get_or_init(|| commands);
}

/// The command that this process was started with, by its full name.
pub(crate) fn command_typed() -> String {
    let words: Vec<OsString> = std::env::args_os().collect();
    COMMANDS
        .get()
        .map_or_else(|| "linerate".to_owned(), |commands| command_path(&commands(), &words))
}

/// The page of a command, by its full name.
pub(crate) fn find_page(path: &str) -> &'static HelpPage {
    let name = path.split_once(' ').map_or("", |(_, name)| name);
    all_pages().find(|page| page.command == name).unwrap_or(&HelpPage::NONE)
}

/// Gives each flag the heading of `--help` and man pages: its own, else that of the table.
pub(crate) fn under_headings(command: Command) -> Command {
    command.mut_args(|arg| {
        if arg.is_positional() || arg.get_help_heading().is_some() {
            return arg;
        }
        let long = arg.get_long().unwrap_or_default().to_owned();
        let heading = HEADINGS.iter().find(|(_, flags)| flags.contains(&long.as_str()));
        arg.help_heading(heading.map_or(OTHERS, |(heading, _)| *heading))
    })
}

/// The short help of `-h`: one screen.
fn short_help(command: Command, page: &HelpPage) -> String {
    let shown = |arg: &Arg| {
        arg.is_positional() || page.shown.iter().any(|name| arg.get_long() == Some(*name))
    };
    let all = page.shown.is_empty();
    // Those of every command are no news.
    let common = |arg: &Arg| arg.get_id() == "help" || arg.get_id() == "color";
    let hidden = |arg: &Arg| arg.is_hide_set() || common(arg) || !(all || shown(arg));
    let visible = || command.get_arguments().filter(|arg| !hidden(arg));
    let columns = [false, true].map(|positional| {
        let of_kind = visible().filter(|arg| arg.is_positional() == positional);
        // `  -t, --time <TIME>  `, `  <HOST>  `.
        let indent = if positional { 4 } else { 8 };
        indent + of_kind.map(|arg| arg.to_string().chars().count()).max().unwrap_or(0)
    });
    let known = |arg: &&Arg| !(arg.is_hide_set() || arg.is_positional() || common(arg));
    let flags = command.get_arguments().filter(known).count();
    let left = flags - visible().filter(known).count();
    let command = command.clone().mut_args(|arg| {
        let is_hidden = hidden(&arg);
        let room = COLUMNS.saturating_sub(columns[usize::from(arg.is_positional())]);
        let arg = arg.hide(is_hidden).help_heading(None::<&str>).hide_env(true);
        on_one_line(arg.hide_possible_values(true), room)
    });
    let name = command.get_bin_name().unwrap_or_default().to_owned();
    let mut template = "{about}\n{usage-heading} {usage}\n\n".to_owned();
    let positionals = command.get_positionals().any(|arg| !arg.is_hide_set());
    let options = command.get_arguments().any(|arg| !arg.is_positional() && !arg.is_hide_set());
    let commands = command.get_subcommands().any(|child| !child.is_hide_set());
    for (there, tag) in
        [(positionals, "{positionals}"), (commands, "{subcommands}"), (options, "{options}")]
    {
        if there {
            template.push_str(tag);
            template.push('\n');
        }
    }
    let more = match left {
        0 => format!("{name} --help explains them."),
        _ => format!("{name} --help explains all {flags} flags."),
    };
    let rows: Vec<_> = page.examples.iter().take(2).collect();
    let template = format!("{template}\n{}\n{more}\n", examples(rows.into_iter()));
    command.help_template(template).render_help().to_string()
}

/// A flag with as much of its text as fits `room`, and its default where that fits, too.
fn on_one_line(arg: Arg, room: usize) -> Arg {
    let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let text = beginning(&text, room);
    let default: Vec<_> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let taken = text.chars().count() + " [default: ]".len() + default.join(" ").chars().count();
    arg.help(text).hide_default_value(taken > room)
}

/// The longest beginning of a text that fits, up to the end of a clause, a member of a list or else
/// of a word; dots where more follows that belongs to it.
fn beginning(text: &str, room: usize) -> String {
    let ends = [("; ", ""), (". ", ""), (": ", ""), (" (", ""), (" [", ""), (", ", ", ...")];
    let cuts_at = |end: &str, dots: &'static str| {
        text.match_indices(end).map(|(at, _)| (at, dots)).collect::<Vec<_>>()
    };
    let fits = |at: usize, dots: &str| text[..at].chars().count() + dots.len() <= room;
    let closes_brackets = |at: usize| {
        let part = &text[..at];
        let closed = |open: char, close| part.matches(open).count() == part.matches(close).count();
        closed('(', ')') && closed('[', ']')
    };
    let clauses =
        ends.into_iter().flat_map(|(end, dots)| cuts_at(end, dots)).chain([(text.len(), "")]);
    let words = cuts_at(" ", " ...");
    let clauses = clauses.filter(|(at, dots)| fits(*at, dots) && closes_brackets(*at));
    let cut = clauses.max();
    let cut = cut.or_else(|| words.into_iter().filter(|(at, dots)| fits(*at, dots)).max());
    cut.map_or_else(|| text.to_owned(), |(at, dots)| format!("{}{dots}", &text[..at]))
}

/// The full help of `--help`.
fn full_help(command: Command, page: &HelpPage) -> String {
    let command = under_headings(command).mut_args(in_full);
    let name = command.get_bin_name().unwrap_or_default().to_owned();
    let after = format!(
        "Examples:\n{}\nExit status:\n{}\nman {} has files, environment and related pages.",
        examples(page.examples.iter()),
        exit_status(),
        name.replace(' ', "-")
    );
    command.after_help(after).render_help().to_string()
}

/// A flag with all of its comment, and its values with theirs, in one paragraph.
fn in_full(arg: Arg) -> Arg {
    let text = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string);
    let mut text = text.unwrap_or_default().replace("\n\n", ". ").replace('\n', " ");
    let values = arg.get_possible_values();
    let told: Vec<String> = values
        .iter()
        .filter(|value| !value.is_hide_set())
        .filter_map(|value| Some(format!("{} = {}", value.get_name(), value.get_help()?)))
        .collect();
    let listed_all = !told.is_empty();
    if listed_all {
        let _ = write!(text, ": {}", told.join("; "));
    }
    arg.help(text).hide_possible_values(listed_all)
}

/// The commands of the program, grouped by their purpose.
fn all_commands(root: &Command, page: &HelpPage, long: bool) -> String {
    let visible = || root.get_subcommands().filter(|child| !child.is_hide_set());
    let width = visible().map(|child| child.get_name().len()).max().unwrap_or(0);
    let line = |child: &Command| {
        let about = child.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {:width$}  {about}\n", child.get_name())
    };
    let mut text = format!(
        "{}\n{}Usage: linerate COMMAND [OPTIONS]\n",
        root.get_about().map(ToString::to_string).unwrap_or_default(),
        if long { "\n" } else { "" }
    );
    let named = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<&str> = visible().map(Command::get_name).filter(|name| !named(name)).collect();
    let groups = GROUPS.iter().copied().chain([("Others", others.as_slice())]);
    for (group, names) in groups.filter(|(_, names)| !names.is_empty()) {
        let children = names.iter().filter_map(|name| root.find_subcommand(name));
        if children.clone().next().is_none() {
            continue;
        }
        // Some groups take a line each, so that all fits a screen.
        if !long && groups::is_in_line(group) {
            let names: Vec<&str> = children.map(Command::get_name).collect();
            let _ = writeln!(text, "  {group}: {}", names.join(", "));
            continue;
        }
        if long {
            let _ = write!(text, "\n{group}:\n");
        }
        children.filter(|child| !child.is_hide_set()).for_each(|child| text.push_str(&line(child)));
    }
    if long {
        text.push_str("\nOptions of every command:\n");
        for arg in root.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:15}  {help}", arg.to_string());
        }
        let rows = examples(page.examples.iter());
        let _ = write!(text, "\nExamples:\n{rows}\nExit status:\n{}", exit_status());
        let _ =
            write!(text, "\nlinerate help {} shows a page of the manual.\n", topics::topic_names());
    }
    text.push_str("\nlinerate COMMAND -h shows its flags, linerate --version the version.\n");
    text
}

/// Examples with their explanations, in columns where they fit 80.
fn examples<'a>(rows: impl Iterator<Item = &'a (&'a str, &'a str)> + Clone) -> String {
    let width = rows.clone().map(|(line, _)| line.len()).max().unwrap_or(0);
    let example = |line: &str, what: &str| {
        let one = format!("  {line:width$}  # {what}");
        if one.len() <= COLUMNS { format!("{one}\n") } else { format!("  # {what}\n  {line}\n") }
    };
    rows.map(|(line, what)| example(line, what)).collect()
}

fn exit_status() -> String {
    let mut text = String::new();
    for (code, meaning, _) in CODES {
        let mut line = format!("  {code:>3} ");
        for word in meaning.split(' ') {
            if line.len() + 1 + word.len() > COLUMNS {
                let _ = writeln!(text, "{line}");
                line = " ".repeat(6);
            }
            let _ = write!(line, " {word}");
        }
        let _ = writeln!(text, "{line}");
    }
    text
}

#[cfg(test)]
mod tests;
