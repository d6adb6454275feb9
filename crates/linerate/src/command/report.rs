//! `linerate report`.

use crate::exit::Outcome;

/// Flags of `linerate report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome {
    anyhow::bail!("linerate report is not built yet")
}
