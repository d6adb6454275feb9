//! `linerate history`.

use crate::exit::Outcome;

/// Flags of `linerate history`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome {
    anyhow::bail!("linerate history is not built yet")
}
