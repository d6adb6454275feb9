//! The program: flags in, plan, engine, record, report out.
// The doc comments of flags are help texts, whose brackets are optional parts.
#![allow(rustdoc::broken_intra_doc_links)]

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
struct Cli {
    /// Use colours: auto = on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: clap::ColorChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is moved once")]
enum Command {
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
    /// Find the path to a host hop by hop: loss, queue, packet sizes
    ///
    /// Find the path to a host hop by hop: who is on it, where packets are lost, where the queue
    /// stands under load, what sizes and header fields survive.
    Trace(command::trace::Args),
    /// Run the server that other hosts test against
    Serve(command::serve::Args),
    /// Check and explain whom a server lets in; make tokens
    Policy(command::policy::Args),
    /// Survey a path: round-trip time, TCP by window and streams, limits
    ///
    /// Round-trip time by packet size, TCP by window and streams, the theoretical maximum.
    Test(command::test::Args),
    /// Measure delay while the line is full both ways (flent's RRUL)
    ///
    /// Realtime Response Under Load, as flent defines it: four TCP streams each way, of four
    /// classes of service, and probes by UDP and ICMP before and beside them.
    Rrul(command::rrul::Args),
    /// Compare targets, measured in turn: is the difference real?
    ///
    /// Compare the round-trip times or the TCP goodput of targets, or of ways to one target,
    /// measured in turn, and tell whether a difference is more than the measurement's own.
    Compare(command::compare::Args),
    /// Benchmark a router, switch or bridge with raw frames (RFC 2544 ...)
    ///
    /// Benchmark a router, switch or bridge with raw frames (RFC 2544, 2889, 9971).
    Bench(command::bench::Args),
    /// Check a capture or live traffic against a traffic contract
    Conform(command::conform::Args),
    /// Calculate the maximum throughput of a path and its bottleneck
    Ceiling(command::ceiling::Args),
    /// Build a virtual network of hosts, switches and routers here
    Lab(command::lab::Args),
    /// Emulate a path, live or in virtual time
    Path(command::path::Args),
    /// Run a study: a set of measurements over virtual networks
    Study(command::study::Args),
    /// Measure again and again by a plan; changes are found and explained
    Schedule(command::schedule::Args),
    /// Plan measurements between many hosts: check, sign, join, matrix
    #[cfg(feature = "web")]
    Mesh(command::mesh::Args),
    /// Measure as one host of a mesh
    #[cfg(feature = "web")]
    Agent(command::agent::Args),
    /// Show a stored result or the report of a study
    Report(command::report::Args),
    /// Say what limited a result, by which evidence, and the remedy
    Explain(command::explain::Args),
    /// List stored results, filtered by what they were
    History(command::history::Args),
    /// Compare two stored results, metric by metric
    Diff(command::diff::Args),
    /// Write stored results as JSON or CSV
    Export(command::export::Args),
    /// Emulate ttcp's command line and output (or link linerate as ttcp)
    Ttcp(personality::Words),
    /// Emulate iperf 2's command line and output (or link linerate as iperf)
    Iperf(personality::Words),
    /// Emulate iperf3's command line, output and JSON (or link linerate as iperf3)
    Iperf3(personality::Words),
    /// Emulate nuttcp's command line and output (or link linerate as nuttcp)
    Nuttcp(personality::Words),
    /// Check whether this host is fit to measure
    Doctor(command::doctor::Args),
    /// The former name of doctor clock
    #[command(hide = true)]
    Calibrate(command::doctor::CalibrateArgs),
    /// Print shell completions, man pages and schemas
    Generate(command::generate::Args),
}

fn main() -> std::process::ExitCode {
    let words = personality::arguments(std::env::args_os());
    // A question of every script that picks a program: not worth the tree of all commands.
    if matches!(&words[..], [_, only] if only == "--version" || only == "-V") {
        output::text(&format!("linerate {VERSION}\n"));
        return exit::code(Ok(0));
    }
    let asked = |words: &[OsString]| help::asked(&Cli::command(), words);
    let cli = match habits::read(words, |words| Cli::try_parse_from(words), asked) {
        Ok(cli) => cli,
        Err((error, hint)) => return exit::usage(&error, hint, command::generate::described()),
    };
    output::choose_colour(cli.color);
    help::keep_commands(command::generate::described);
    exit::code(match cli.command {
        Command::Tcp(args) => command::tcp::run(args),
        Command::Rrul(args) => command::rrul::run(args),
        Command::Udp(args) => command::udp::run(args),
        Command::Ping(args) => command::ping::run(args),
        Command::Stamp(args) => command::stamp::run(args),
        Command::Trace(args) => command::trace::run(args),
        Command::Serve(args) => command::serve::run(args),
        Command::Policy(args) => command::policy::run(args),
        Command::Test(args) => command::test::run(args),
        Command::Compare(args) => command::compare::run(args),
        Command::Bench(args) => command::bench::run(args),
        Command::Conform(args) => command::conform::run(args),
        Command::Ceiling(args) => command::ceiling::run(args),
        Command::Lab(args) => command::lab::run(args),
        Command::Path(args) => command::path::run(args),
        Command::Study(args) => command::study::run(args),
        Command::Schedule(args) => command::schedule::run(args),
        #[cfg(feature = "web")]
        Command::Mesh(args) => command::mesh::run(args),
        #[cfg(feature = "web")]
        Command::Agent(args) => command::agent::run(args),
        Command::Report(args) => command::report::run(args),
        Command::Explain(args) => command::explain::run(args),
        Command::History(args) => command::history::run(args),
        Command::Diff(args) => command::diff::run(args),
        Command::Export(args) => command::export::run(args),
        Command::Ttcp(words) => Personality::Ttcp.run(words),
        Command::Iperf(words) => Personality::Iperf.run(words),
        Command::Iperf3(words) => Personality::Iperf3.run(words),
        Command::Nuttcp(words) => Personality::Nuttcp.run(words),
        Command::Doctor(args) => command::doctor::run(args),
        Command::Calibrate(args) => command::doctor::calibrate(&args),
        Command::Generate(args) => command::generate::run(args),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> String {
        let words = std::iter::once("linerate").chain(words.iter().copied());
        format!("{:?}", Cli::try_parse_from(words).expect("the flags are accepted"))
    }

    /// A line of a page as a shell splits it: at spaces, but for those in single quotes.
    fn words(line: &str) -> Vec<String> {
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
            let error = Cli::try_parse_from(words(command)).err();
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
