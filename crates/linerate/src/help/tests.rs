//! The table of pages against the real parser, and help against a screen.

use clap::{CommandFactory, Parser};

use super::*;
use crate::LinerateCli;

/// As a shell takes a line apart: at blanks outside single quotes, up to a pipe.
fn words(line: &str) -> Vec<OsString> {
    let parts = line.split('\'').enumerate().flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    parts.take_while(|word| !matches!(*word, "|" | ">")).map(OsString::from).collect()
}

/// The full names of all visible commands.
fn names(command: &Command, path: &str, into: &mut Vec<String>) {
    into.push(path.to_owned());
    for child in command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help")
    {
        names(child, format!("{path} {}", child.get_name()).trim(), into);
    }
}

fn all_names() -> Vec<String> {
    let mut all = Vec::new();
    names(&LinerateCli::command(), "", &mut all);
    all
}

#[test]
fn every_example_is_accepted_and_every_command_has_two() {
    let mut wrong = Vec::new();
    for page in all_pages() {
        for (line, what) in page.examples {
            let own = format!("linerate {}", page.command);
            assert!(page.command.is_empty() || line.starts_with(&own), "{line} is of another");
            if let Err(error) = LinerateCli::try_parse_from(words(line)) {
                wrong.push(format!("{line}: {error}"));
            }
            let first = what.chars().next().expect("an example says what it does");
            assert!(!what.ends_with('.') && !first.is_whitespace(), "{line}: {what}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for name in all_names() {
        let page = all_pages().find(|page| page.command == name);
        let count = page.map_or(0, |page| page.examples.len());
        assert!(count >= 2, "{name:?} has {count} examples in help/pages.rs");
    }
}

#[test]
fn the_tables_name_commands_and_flags_that_are_there() {
    let all = all_names();
    let root = LinerateCli::command();
    for page in all_pages() {
        assert!(all.iter().any(|name| name == page.command), "no command {}", page.command);
        for name in page.see.iter().filter(|name| !name.ends_with(')')) {
            assert!(all.iter().any(|known| known == name), "{}: no page {name}", page.command);
        }
        let mut command = &root;
        for name in page.command.split(' ').filter(|name| !name.is_empty()) {
            command = command.find_subcommand(name).expect("a command");
        }
        for flag in page.shown {
            let has = command.get_arguments().any(|arg| arg.get_long() == Some(*flag));
            assert!(has, "{} has no --{flag}", page.command);
        }
    }
}

#[test]
fn short_help_of_every_command_fits_a_screen_of_80_by_24() {
    let own = ["iperf3", "iperf", "nuttcp", "ttcp"];
    let mut wrong = Vec::new();
    for name in all_names().iter().filter(|name| !own.contains(&name.as_str())) {
        let asked = words(format!("linerate {name}").trim());
        let asked = asked.into_iter().chain(["-h".into()]).collect::<Vec<_>>();
        let text = help_text(LinerateCli::command().term_width(80), &asked);
        // A line is left for the prompt.
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let lines = text.lines().count();
        if lines > 23 || widest > COLUMNS {
            wrong.push(format!("{name}: {lines} lines of {widest}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(BEGIN.lines().count() <= 9 && BEGIN.lines().all(|line| line.len() <= 80));
}

#[test]
fn a_text_is_cut_where_a_clause_ends() {
    let text = "Socket buffer size at both ends [default: TCP: kernel autotuning]";
    assert_eq!(beginning(text, 52), "Socket buffer size at both ends");
    assert_eq!(beginning("Time (64K = 65,536) to wait", 20), "Time");
    assert_eq!(beginning("Of iperf3, iperf2, nuttcp", 20), "Of iperf3, ...");
    assert_eq!(beginning("Set it here and do not do it there", 20), "Set it here and ...");
    assert_eq!(beginning(text, 80), text);
    assert_eq!(beginning("Nowhere to cut", 3), "Nowhere to cut");
}

#[test]
fn long_help_has_every_flag_examples_and_exit_codes() {
    for name in all_names() {
        let mut asked = words(format!("linerate {name}").trim());
        asked.push("--help".into());
        let text = help_text(LinerateCli::command().term_width(80), &asked);
        assert!(text.contains("Examples:\n") && text.contains("130  Interrupted"), "{text}");
        let mut command = &LinerateCli::command();
        for part in name.split(' ').filter(|part| !part.is_empty()) {
            command = command.find_subcommand(part).expect("a command");
        }
        for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
            let long = flag.get_long().map(|long| format!("--{long}"));
            assert!(
                long.is_none_or(|long| text.contains(&long)),
                "{name} {:?}\n{text}",
                flag.get_id()
            );
        }
    }
}

#[test]
fn help_of_a_command_that_is_asked_for_by_the_word_help_is_its_own() {
    let of = |line: &str| help_text(LinerateCli::command(), &words(line));
    assert_eq!(of("linerate help path run"), of("linerate path run --help"));
    assert_ne!(of("linerate path run --help"), of("linerate path run -h"));
    assert!(of("linerate --help").contains("Between two hosts:"));
}
