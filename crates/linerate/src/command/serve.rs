//! `linerate serve`.

use crate::exit::Outcome;

/// Flags of `linerate serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome {
    anyhow::bail!("linerate serve is not built yet")
}
