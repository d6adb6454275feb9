//! The program: flags in, plan, engine, record, report out.

mod columns;
mod command;
mod exit;
mod live;
mod output;
mod paths;
mod personality;

use personality::Personality;

use clap::{CommandFactory, Parser, Subcommand};

/// Measures a network path or device and says what limits it.
#[derive(Debug, Parser)]
#[command(
    name = "linerate",
    version,
    about,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is moved once")]
enum Command {
    /// Measure TCP throughput to a server
    Tcp(command::tcp::Args),
    /// Measure UDP throughput, loss and delay variation to a server
    Udp(command::udp::Args),
    /// Measure round-trip times
    Ping(command::ping::Args),
    /// Answer tests from other hosts
    Serve(command::serve::Args),
    /// Examine a path: round trips by size, TCP by window and streams, the ceiling
    Test(command::test::Args),
    /// Measure a router, switch or bridge by raw frames between two interfaces
    Bench(command::bench::Args),
    /// Hold a capture or live traffic to a contract: cells, token buckets, colours
    Conform(command::conform::Args),
    /// Compute what a path can carry at best, layer by layer, and what binds
    Ceiling(command::ceiling::Args),
    /// Build a laboratory of hosts, switches and routers on this machine
    Lab(command::lab::Args),
    /// Hold or simulate a path with a rate, a delay and losses of its own
    Path(command::path::Args),
    /// Run a study over the laboratory
    Study(command::study::Args),
    /// Show a stored result or a study's report
    Report(command::report::Args),
    /// List stored results
    History(command::history::Args),
    /// Be ttcp: its flags, its lines, its units; also by a link named ttcp
    Ttcp(personality::Words),
    /// Be iperf 2: its flags and its lines; also by a link named iperf
    Iperf(personality::Words),
    /// Be iperf3: its flags, its lines and its JSON; also by a link named iperf3
    Iperf3(personality::Words),
    /// Be nuttcp: its flags and its lines; also by a link named nuttcp
    Nuttcp(personality::Words),
    /// Check this host
    Doctor(command::doctor::Args),
    /// Make man pages, completions, schemas and tables from the code
    #[command(hide = true)]
    Generate(command::generate::Args),
}

fn main() -> std::process::ExitCode {
    let cli = match Cli::try_parse_from(personality::arguments(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error, &Cli::command()),
    };
    exit::code(match cli.command {
        Command::Tcp(args) => command::tcp::run(args),
        Command::Udp(args) => command::udp::run(args),
        Command::Ping(args) => command::ping::run(args),
        Command::Serve(args) => command::serve::run(args),
        Command::Test(args) => command::test::run(args),
        Command::Bench(args) => command::bench::run(args),
        Command::Conform(args) => command::conform::run(args),
        Command::Ceiling(args) => command::ceiling::run(args),
        Command::Lab(args) => command::lab::run(args),
        Command::Path(args) => command::path::run(args),
        Command::Study(args) => command::study::run(args),
        Command::Report(args) => command::report::run(args),
        Command::History(args) => command::history::run(args),
        Command::Ttcp(words) => Personality::Ttcp.run(words),
        Command::Iperf(words) => Personality::Iperf.run(words),
        Command::Iperf3(words) => Personality::Iperf3.run(words),
        Command::Nuttcp(words) => Personality::Nuttcp.run(words),
        Command::Doctor(args) => command::doctor::run(args),
        Command::Generate(args) => command::generate::run(args),
    })
}
