//! `linerate path check`: the elements of emulated paths beside their closed forms.

use linerate_core::path::check::{Check, SCORE_MAX, checks};
use linerate_report::Align::{Left, Right};
use linerate_report::{Document, ReportTable};

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

/// Runs the command: 1 when an element is off by more than chance.
pub(super) fn run(args: &Args) -> Outcome {
    let all = checks(args.packets, args.seed);
    let names = ["element", "closed form", "expected", "measured", "score"];
    let table = ReportTable::from_columns(names.into_iter().zip([Left, Left, Right, Right, Right]));
    output::document(&Document::from_table(table.with_rows(all.iter().map(table_row))));
    let off = all.iter().filter(|check| !check.is_within_chance()).count();
    output::print_line(&format!(
        "{} packets each, seed {}; {off} of {} are off by more than {SCORE_MAX} standard errors",
        args.packets,
        args.seed,
        all.len()
    ));
    Ok(u8::from(off > 0))
}

fn table_row(check: &Check) -> [String; 5] {
    [
        check.name.to_owned(),
        check.closed_form.to_owned(),
        format!("{:.5}", check.expected),
        format!("{:.5}", check.measured),
        format!("{:+.2}", check.score),
    ]
}
