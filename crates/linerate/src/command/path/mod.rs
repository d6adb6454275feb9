//! `linerate path`: paths with a rate, a delay and losses of their own.

mod flags;
mod run;
mod run_ends;
mod run_flags;
mod simulate;
mod simulate_check;
mod simulate_flags;

use crate::exit::Outcome;

/// Flags of `linerate path`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: PathCommand,
}

#[derive(Debug, clap::Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one, and it is moved once")]
enum PathCommand {
    /// Emulate a path live, between two virtual interfaces of this host
    Run(run_flags::Args),
    /// Simulate TCP flows over a path in virtual time
    Simulate(simulate_flags::Args),
    /// Verify the path emulator against closed-form results, in virtual time
    Check(simulate_check::Args),
}

/// Runs `linerate path` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    match args.action {
        PathCommand::Run(args) => run::run(&args),
        PathCommand::Simulate(args) => simulate::run(&args),
        PathCommand::Check(args) => simulate_check::run(&args),
    }
}
