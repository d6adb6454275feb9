//! `linerate doctor`.

use crate::exit::Outcome;

/// Flags of `linerate doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome {
    anyhow::bail!("linerate doctor is not built yet")
}
