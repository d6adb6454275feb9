//! From the end of a command to the exit code of the process.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;

use crate::help::{self, command_path};
use crate::output;

/// Exit code of a command, or a failure to print.
pub(crate) type Outcome = Result<u8, anyhow::Error>;

/// Prints the failure, if any, as one line and returns its exit code.
pub(crate) fn outcome_code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(code) => ExitCode::from(written(code)),
        Err(error) => {
            output::error_line(&format!("{error:#}"));
            let code = error.downcast_ref::<Failure>().map_or(2, Failure::exit_code);
            ExitCode::from(code)
        }
    }
}

/// The code of a run that went well, unless its results could not be written.
fn written(code: u8) -> u8 {
    let Some(error) = output::trouble() else { return code };
    let failure = Failure::new(Fault::System, "write", "standard output", words_of(error))
        .advise("free some space; linerate report shows a stored result again");
    output::error_line(&failure.to_string());
    if code == 0 { failure.exit_code() } else { code }
}

/// The advice to a word that is no command: mostly somebody types a host.
const TO_BEGIN: &str = "to measure to a host: linerate test HOST, linerate tcp HOST";

/// Ends a command line that clap did not turn into flags: help and version go out as asked, a
/// mistake is one line: `hint` where there is one, else clap's, with the nearest name.
pub(crate) fn answer_clap_error(
    error: &clap::Error,
    hint: Option<String>,
    command: clap::Command,
) -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(page) = help::topic_page(&words) {
        output::print_text(page);
        return ExitCode::SUCCESS;
    }
    match error.kind() {
        ErrorKind::DisplayHelp => output::print_text(&help::help_text(command, &words)),
        ErrorKind::DisplayVersion => output::print_text(&error.render().to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if words.len() < 2 => {
            output::print_note(help::BEGIN);
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::print_note(help::help_text(command, &words).trim_end());
        }
        _ => {
            let line = || {
                let line = mistake(&error.render().to_string(), &command_path(&command, &words));
                let unknown =
                    error.kind() == ErrorKind::InvalidSubcommand && !line.contains("similar");
                match words.get(1).and_then(|word| word.to_str()) {
                    Some(name) if unknown && help::is_left_out(&command, name) => {
                        format!(
                            "linerate {name} is not in this build; ./dev build makes one with it"
                        )
                    }
                    _ if unknown => format!("{line}; {TO_BEGIN}"),
                    _ => line,
                }
            };
            output::error_line(&hint.unwrap_or_else(line));
        }
    }
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

/// Clap's paragraphs as one line: the mistake, its tips, the help to read. `asked` is the
/// command where clap's usage line does not name it.
fn mistake(text: &str, asked: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    let mut what: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    if let Some(first) = what.first_mut() {
        *first = first.trim_start_matches("error: ");
    }
    let mut said = what.join(" ");
    let mut command = asked.to_owned();
    for line in lines {
        // That a flag may be a value after -- is no help to whom it is a flag.
        let tip = line.strip_prefix("tip: ").filter(|tip| !tip.starts_with("to pass '"));
        if let Some(tip) = tip {
            said.push_str(&format!("; {tip}"));
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            let words = usage.split(' ').take_while(|word| !word.starts_with(['[', '<', '-']));
            command = words.collect::<Vec<_>>().join(" ");
        }
    }
    let negative =
        said.strip_prefix("unexpected argument '").and_then(|rest| rest.split_once('\''));
    if let Some((number, _)) = negative.filter(|(text, _)| text.parse::<f64>().is_ok()) {
        said = format!("no flag here takes the negative number {number}");
    }
    let said = PLAIN_WORDS.iter().fold(said, |said, (parser, plain)| said.replace(parser, plain));
    format!("{said}; see '{command} --help'")
}

/// Parsers' words for a bad number, and the same for people.
const PLAIN_WORDS: [(&str, &str); 7] = [
    ("invalid digit found in string", "it is no whole number"),
    ("number too large to fit in target type", "it is too large"),
    ("number too small to fit in target type", "it is too small"),
    ("cannot parse integer from empty string", "it is empty"),
    ("cannot parse float from empty string", "it is empty"),
    ("invalid float literal", "it is no number"),
    ("..=", " to "),
];

#[cfg(test)]
mod tests {
    use super::mistake;
    use crate::help::command_path;

    #[test]
    fn a_bad_value_points_at_the_help_of_its_own_command() {
        let lab = clap::Command::new("lab").subcommand(clap::Command::new("run"));
        let all = clap::Command::new("linerate").subcommand(lab);
        let words = ["linerate", "lab", "run", "lab", "-x"].map(Into::into);
        assert_eq!(command_path(&all, &words), "linerate lab run");
        // As clap 4.6 prints it: without a usage.
        let text = "error: invalid value '1X' for '--window <SIZE>': no size\n\nFor more \
                    information, try '--help'.\n";
        let line = mistake(text, "linerate tcp");
        assert!(line.ends_with("; see 'linerate tcp --help'"), "{line}");
    }

    #[test]
    fn a_mistake_in_several_paragraphs_becomes_one_line() {
        // As clap 4.6 prints it.
        let text = "error: unexpected argument '--jsn' found\n\n  tip: a similar argument exists: \
                    '--json'\n\nUsage: linerate tcp --json <HOST>\n\nFor more information, try \
                    '--help'.\n";
        assert_eq!(
            mistake(text, "linerate"),
            "unexpected argument '--jsn' found; a similar argument exists: '--json'; see \
             'linerate tcp --help'"
        );
    }

    #[test]
    fn missing_arguments_are_listed_on_the_same_line() {
        let text = "error: the following required arguments were not provided:\n  <HOST>\n\n\
                    Usage: linerate tcp <HOST>\n\nFor more information, try '--help'.\n";
        assert_eq!(
            mistake(text, "linerate"),
            "the following required arguments were not provided: <HOST>; see 'linerate tcp --help'"
        );
    }
}
