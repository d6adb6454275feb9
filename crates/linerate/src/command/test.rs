//! `linerate test`.

use crate::exit::Outcome;

/// Flags of `linerate test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome {
    anyhow::bail!("linerate test is not built yet")
}
