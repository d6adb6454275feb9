//! `linerate path check`: the elements of emulated paths beside their closed forms.

use linerate_core::path::check::{Check, SCORE_MAX, checks};

use crate::columns::{Stand, lay_out};
use crate::exit::Outcome;
use crate::output;

/// Flags of `linerate path check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Packets per check
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u64).range(10_000..=1_000_000_000))]
    packets: u64,
    /// Seed of the random generators
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

const HEAD: [(&str, Stand); 5] = [
    ("element", Stand::Left),
    ("closed form", Stand::Left),
    ("expected", Stand::Right),
    ("measured", Stand::Right),
    ("score", Stand::Right),
];

/// Runs the command: 1 when an element is off by more than chance.
pub(super) fn run(args: &Args) -> Outcome {
    let all = checks(args.packets, args.seed);
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    output::text(&lay_out(&HEAD, &rows));
    let off = all.iter().filter(|check| !check.holds()).count();
    output::line(&format!(
        "{} packets each, seed {}; {off} of {} are off by more than {SCORE_MAX} standard errors",
        args.packets,
        args.seed,
        all.len()
    ));
    Ok(u8::from(off > 0))
}

fn row(check: &Check) -> Vec<String> {
    vec![
        check.name.to_owned(),
        check.closed_form.to_owned(),
        format!("{:.5}", check.expected),
        format!("{:.5}", check.measured),
        format!("{:+.2}", check.score),
    ]
}
