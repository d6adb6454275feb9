//! `linerate lab`.

use crate::exit::Outcome;

/// Flags of `linerate lab`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome {
    anyhow::bail!("linerate lab is not built yet")
}
