//! `linerate ceiling`: what a path can carry at best, layer by layer, and what binds.
//!
//! Nothing is measured and nothing is sent: flags in, arithmetic of `linerate_core::theory`, text,
//! JSON or plots out.

mod flags;
mod question;

use std::path::Path;

use linerate_core::record::{Failure, Fault};
use linerate_core::theory::ladder::{self, CeilingFacts, FrameRates, LadderError, PathCeiling};

pub(crate) use flags::Args;

use crate::exit::Outcome;
use crate::{output, paths};

/// Runs `linerate ceiling` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    if args.all_links {
        return all_links(&args);
    }
    if args.csv {
        let reason = "one path has layers and bounds, not a table";
        return Err(Failure::new(Fault::Usage, "use", "--csv", reason)
            .advise("use --json, or --all-links")
            .into());
    }
    let asked = question::CeilingQuestion::from_flags(&args)?;
    let ceiling = ladder::answer(&asked.question()).map_err(|error| refused(&error))?;
    print_ceiling(&args, &ceiling)?;
    if let Some(directory) = &args.svg {
        write_plots(directory, &asked.facts)?;
    }
    Ok(0)
}

/// The one line of an input that no path has.
fn refused(error: &LadderError) -> Failure {
    Failure::new(Fault::Usage, "compute", "the ceiling", error)
}

fn print_ceiling(args: &Args, ceiling: &PathCeiling) -> anyhow::Result<()> {
    if args.json {
        output::print_line(&linerate_core::tree::to_json_pretty(ceiling)?);
    } else {
        output::document(&linerate_report::path_ceiling::document(ceiling));
    }
    Ok(())
}

fn write_plots(directory: &Path, facts: &CeilingFacts) -> Result<(), Failure> {
    let files = linerate_report::path_ceiling::svg_files(facts).map_err(|error| refused(&error))?;
    paths::make_folder(directory)?;
    for (name, svg) in files {
        let path = directory.join(name);
        paths::write(&path, &svg)?;
        output::print_note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

fn all_links(args: &Args) -> Outcome {
    let rates: FrameRates = ladder::frame_rates()?;
    if args.json {
        output::print_line(&linerate_core::tree::to_json_pretty(&rates)?);
    } else if args.csv {
        output::print_text(&linerate_report::path_ceiling::frame_rates_csv(&rates));
    } else {
        output::document(&linerate_report::path_ceiling::frame_rates(&rates));
    }
    Ok(0)
}
