//! `linerate ping`.

use crate::exit::Outcome;

/// Flags of `linerate ping`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome {
    anyhow::bail!("linerate ping is not built yet")
}
