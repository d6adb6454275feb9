//! The program: flags in, plan, engine, record, report out.
// The doc comments of flags are help texts, whose brackets are optional parts.
#![allow(rustdoc::broken_intra_doc_links)]
#![cfg_attr(
    not(feature = "commands"),
    allow(dead_code, unused_imports, reason = "of commands that a core build leaves out")
)]

mod codes;
mod columns;
mod command;
mod config;
mod exit;
mod habits;
mod help;
mod live;
mod log;
mod manager;
mod output;
mod paths;
mod personality;

use personality::Personality;

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};

/// The version, in releases with the commit.
pub(crate) const VERSION: &str = env!("LINERATE_VERSION");

/// Measures a network path or device and says what limits it.
#[derive(Debug, Parser)]
#[command(
    name = "linerate",
    version = VERSION,
    about,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct LinerateCli {
    /// Use colours: auto = on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: clap::ColorChoice,
    #[command(subcommand)]
    command: LinerateCommand,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is moved once")]
enum LinerateCommand {
    /// Measure TCP throughput to a server
    Tcp(command::tcp::Args),
    /// Measure UDP throughput, loss and jitter to a server
    Udp(command::udp::Args),
    /// Measure round-trip time to any host
    Ping(command::ping::Args),
    /// Measure delay and loss of each direction to a STAMP reflector
    ///
    /// Measure delay, loss and jitter of each direction to a reflector of STAMP (RFC 8762): routers
    /// have one, and so has linerate serve.
    Stamp(command::stamp::Args),
    /// Run the server that other hosts test against
    Serve(command::serve::Args),
    /// Check and explain whom a server lets in; make tokens
    Policy(command::policy::Args),
    /// Survey a path: round-trip time, TCP by window and streams, limits
    ///
    /// Round-trip time by packet size, TCP by window and streams, the theoretical maximum.
    Test(command::test::Args),
    /// Say what limited a result, by which evidence, and the remedy
    Explain(command::explain::Args),
    /// Emulate ttcp's command line and output (or link linerate as ttcp)
    Ttcp(personality::ProgramArguments),
    /// Emulate iperf 2's command line and output (or link linerate as iperf)
    Iperf(personality::ProgramArguments),
    /// Emulate iperf3's command line, output and JSON (or link linerate as iperf3)
    Iperf3(personality::ProgramArguments),
    /// Emulate nuttcp's command line and output (or link linerate as nuttcp)
    Nuttcp(personality::ProgramArguments),
    #[cfg(feature = "commands")]
    #[command(flatten)]
    BeyondCore(command::beyond_core::BeyondCore),
}

/// The commands with the flags that other programs have and clap does not read.
pub(crate) fn described() -> clap::Command {
    LinerateCli::command().mut_subcommand("iperf3", personality::iperf3::described)
}

fn main() -> std::process::ExitCode {
    let words = personality::arguments(std::env::args_os());
    // A question of every script that picks a program: not worth the tree of all commands.
    if matches!(&words[..], [_, only] if only == "--version" || only == "-V") {
        output::print_text(&format!("linerate {VERSION}\n"));
        return exit::outcome_code(Ok(0));
    }
    let asked = |words: &[OsString]| help::command_path(&LinerateCli::command(), words);
    let cli = match habits::read(words, |words| LinerateCli::try_parse_from(words), asked) {
        Ok(cli) => cli,
        Err((error, hint)) => return exit::answer_clap_error(&error, hint, described()),
    };
    output::choose_colour(cli.color);
    help::keep_commands(described);
    exit::outcome_code(match cli.command {
        LinerateCommand::Tcp(args) => command::tcp::run(args),
        LinerateCommand::Udp(args) => command::udp::run(args),
        LinerateCommand::Ping(args) => command::ping::run(args),
        LinerateCommand::Stamp(args) => command::stamp::run(args),
        LinerateCommand::Serve(args) => command::serve::run(args),
        LinerateCommand::Policy(args) => command::policy::run(args),
        LinerateCommand::Test(args) => command::test::run(args),
        LinerateCommand::Explain(args) => command::explain::run(args),
        LinerateCommand::Ttcp(words) => Personality::Ttcp.run(words),
        LinerateCommand::Iperf(words) => Personality::Iperf.run(words),
        LinerateCommand::Iperf3(words) => Personality::Iperf3.run(words),
        LinerateCommand::Nuttcp(words) => Personality::Nuttcp.run(words),
        #[cfg(feature = "commands")]
        LinerateCommand::BeyondCore(command) => command.run(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> String {
        let words = std::iter::once("linerate").chain(words.iter().copied());
        format!("{:?}", LinerateCli::try_parse_from(words).expect("the flags are accepted"))
    }

    /// A line of a page as a shell splits it: at spaces, but for those in single quotes.
    fn shell_words(line: &str) -> Vec<String> {
        let parts = line.split('\'').enumerate();
        let split = parts.flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        split.collect()
    }

    #[test]
    fn every_command_of_the_page_of_tasks_is_accepted() {
        let page = include_str!("../../../docs/manual/tasks.md");
        let commands = page.lines().filter_map(|line| line.strip_prefix("    "));
        let commands: Vec<&str> = commands.collect();
        assert!(commands.len() > 20, "{commands:?}");
        assert_eq!(page.matches("\n## ... ").count(), 12, "each task has a heading");
        for command in commands {
            let error = LinerateCli::try_parse_from(shell_words(command)).err();
            assert!(error.is_none(), "{command}: {}", error.expect("just seen"));
        }
    }

    #[test]
    fn former_names_of_flags_are_accepted() {
        for (command, former, now) in [
            (&["ping", "h"][..], &["--wait", "spin"][..], &["--wait-mode", "spin"][..]),
            (&["bench", "a", "b"], &["--wait", "1s"], &["--drain", "1s"]),
            (&["bench", "a", "b"], &["-b", "9k"], &["--rate-max", "9k"]),
            (&["bench"], &["--plan", "bradner"], &["--study", "bradner"]),
            (&["path", "simulate"], &["--cc", "reno"], &["--congestion", "reno"]),
            (&["path", "simulate"], &["-n", "2"], &["--flows", "2"]),
            (&["ceiling", "--link", "1g"], &["--cc", "reno"], &["--congestion", "reno"]),
            (&["serve"], &["--queue", "9s"], &["--queue-time", "9s"]),
        ] {
            assert_eq!(parsed(&[command, former].concat()), parsed(&[command, now].concat()));
            assert_ne!(parsed(&[command, now].concat()), parsed(command), "{now:?} says something");
        }
    }
}
