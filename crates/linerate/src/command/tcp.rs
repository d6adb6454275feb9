//! `linerate tcp`.

use crate::exit::Outcome;

/// Flags of `linerate tcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome {
    anyhow::bail!("linerate tcp is not built yet")
}
