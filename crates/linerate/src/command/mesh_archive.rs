//! `linerate mesh archive`: a day of a hub's store as a file of Parquet.

use std::path::PathBuf;

use crate::exit::Outcome;

/// Flags of `linerate mesh archive`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Day in UTC that is over: 2026-11-25, or yesterday
    #[arg(value_name = "DAY")]
    day: String,
    /// Directory of the file, MESH-DAY.parquet
    #[arg(long, value_name = "DIRECTORY")]
    into: PathBuf,
    /// Mesh, by its name [default: the only one of the store]
    #[arg(long, value_name = "NAME")]
    mesh: Option<String>,
    /// Then take the day out of the store, once the file was read back
    #[arg(long)]
    drop: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Store of the hub: a file, or postgresql://... [default: as other commands]
    #[arg(long, value_name = "FILE|URL", env = "LINERATE_STORE", hide_env_values = true)]
    store: Option<String>,
}

#[cfg(not(feature = "scale"))]
pub(super) fn run(args: &Args) -> Outcome {
    use linerate_core::record::{BuildPart, Failure};
    let Args { day, into, mesh, drop, json, store } = args;
    tracing::debug!(?into, ?mesh, drop, json, store = store.is_some(), "asked");
    Err(Failure::not_built("archive", day, BuildPart::Scale).into())
}

#[cfg(feature = "scale")]
pub(super) use written::run;

#[cfg(feature = "scale")]
mod written {
    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
    use linerate_core::record::{Failure, Fault};
    use linerate_store::{Archived, Day, ToArchive, archive};
    use linerate_sys::clock::wall_time;
    use linerate_sys::stop::Stop;

    use super::super::mesh::{filled, find_mesh_name};
    use super::{Args, Outcome};
    use crate::output;

    /// Exit code of an interrupted run, as in the table of the manual.
    const INTERRUPTED: u8 = 130;

    pub(in super::super) fn run(args: &Args) -> Outcome {
        let usage = |object: &str, reason| Failure::new(Fault::Usage, "archive", object, reason);
        let day =
            Day::from_date_text(&args.day, wall_time()).map_err(|reason| usage("DAY", reason))?;
        let mut store = filled(args.store.as_deref())?.open_store()?;
        let mesh = find_mesh_name(&mut *store, args.mesh.as_deref())?;
        let known = store.plan_names()?;
        if !known.contains(&mesh) {
            let reason =
                format!("{} has {} and no such mesh", store.location_name(), known.join(", "));
            return Err(usage(&mesh, reason).into());
        }
        let stop = Stop::on_signals()?;
        let what = ToArchive { mesh: &mesh, day: &day, into: &args.into, drops: args.drop };
        let bar = progress();
        let done = archive(&mut *store, what, &mut |runs| {
            bar.set_position(runs);
            !stop.is_requested()
        });
        bar.finish_and_clear();
        let Some(written) = done? else {
            output::print_note("interrupted: no file was written, and nothing was dropped");
            return Ok(INTERRUPTED);
        };
        if args.json {
            output::print_line(&linerate_core::tree::to_json_pretty(&written)?);
        } else {
            output::print_line(&archived_line(&written));
        }
        Ok(0)
    }

    /// Runs so far, on a terminal.
    fn progress() -> ProgressBar {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{pos} runs written, {elapsed}") {
            bar.set_style(style);
        }
        bar
    }

    fn archived_line(written: &Archived) -> String {
        let Archived { file, runs, bytes, dropped, .. } = written;
        let file = file.display();
        let gone = if *dropped { "; the store has them no more" } else { "" };
        format!("wrote {file}: {runs} runs, {bytes} bytes{gone}")
    }
}
