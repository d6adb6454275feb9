//! `linerate study`.

use crate::exit::Outcome;

/// Flags of `linerate study`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome {
    anyhow::bail!("linerate study is not built yet")
}
