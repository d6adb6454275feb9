//! The flags that describe a path, for every command that takes one.

use std::path::{Path, PathBuf};

use linerate_core::lab::line_and_column;
use linerate_core::path::Trace;
use linerate_core::record::{Failure, Fault, JitterPlan, PathPlan, QueuePlan};
use linerate_engine::failure::words_of;

use crate::command::quantity::{queue_text, rate_text, time_text};
use crate::paths;

/// Longest plan; a trace of an hour at 100 Mbit/s fits.
const PLAN_BYTES_MAX: u64 = 64 << 20;

/// The flags of a path.
#[derive(Debug, clap::Args)]
pub(super) struct EmulatedPathFlags {
    /// Path file in TOML; flags override its keys
    #[arg(long, value_name = "FILE", help_heading = "Path")]
    plan: Option<PathBuf>,
    /// Rate of an Ethernet link: '1 Gbit/s', 1G
    #[arg(long, value_name = "RATE", conflicts_with = "link", help_heading = "Path",
          value_parser = rate_text)]
    rate: Option<String>,
    /// Link by name: 1g, ds3, oc12, oc12-atm, oc3-pos, ...
    #[arg(long, value_name = "LINK", help_heading = "Path", value_parser = rate_text)]
    link: Option<String>,
    /// Link-layer framing: ethernet, aal5-llcsnap, pos, ... [default: the usual one of the link]
    #[arg(long, value_name = "CARRIER", help_heading = "Path")]
    carrier: Option<String>,
    /// One-way propagation delay: 22.5ms
    #[arg(long, value_name = "TIME", help_heading = "Path", value_parser = time_text)]
    delay: Option<String>,
    /// Additional random delay, uniform between 0 and TIME
    #[arg(long, value_name = "TIME", help_heading = "Path", value_parser = time_text)]
    jitter: Option<String>,
    /// Random packet loss ratio in each direction: 1e-4, 0.01%
    #[arg(long, value_name = "SHARE", help_heading = "Path")]
    loss: Option<String>,
    /// Queue limit of the link: 250kB, '100 packets', 20ms, '1 BDP'
    #[arg(long, value_name = "SIZE", help_heading = "Path", value_parser = queue_text)]
    buffer: Option<String>,
    /// Queue discipline: tail (drop-tail FIFO), red, codel, fq-codel, cake (fair
    /// to hosts), dualpi2 (L4S)
    #[arg(long, value_name = "NAME", help_heading = "Path", value_parser = parse_queue)]
    queue: Option<QueuePlan>,
    /// Seed of the random generators [default: as in the path file, or 1]
    #[arg(long, value_name = "N", help_heading = "Path")]
    seed: Option<u64>,
}

fn parse_queue(name: &str) -> Result<QueuePlan, String> {
    let queue = linerate_core::tree::from_value(serde_json::Value::from(name));
    queue.map_err(|_| "it is one of tail, red, codel, fq-codel, cake and dualpi2".to_owned())
}

impl EmulatedPathFlags {
    /// The path that the plan and the flags describe.
    pub(super) fn path_plan(&self) -> Result<PathPlan, Failure> {
        let mut plan = match &self.plan {
            Some(file) => read_plan(file)?,
            None => PathPlan::default(),
        };
        if self.rate.is_some() || self.link.is_some() {
            (plan.rate, plan.link) = (self.rate.clone(), self.link.clone());
            (plan.trace, plan.trunk) = (None, Vec::new());
        }
        let flags = [
            (&mut plan.carrier, &self.carrier),
            (&mut plan.delay, &self.delay),
            (&mut plan.loss, &self.loss),
            (&mut plan.buffer, &self.buffer),
        ];
        for (key, flag) in flags {
            if flag.is_some() {
                key.clone_from(flag);
            }
        }
        if let Some(most) = &self.jitter {
            let most = Some(most.clone());
            plan.jitter = Some(JitterPlan { most, mean: None, reorder: false });
        }
        plan.queue = self.queue.or(plan.queue);
        plan.seed = Some(self.seed.or(plan.seed).unwrap_or(1));
        Ok(plan)
    }
}

fn read_plan(file: &Path) -> Result<PathPlan, Failure> {
    let failed =
        |object: String, reason: String| Failure::new(Fault::Usage, "read path", object, reason);
    let name = || file.display().to_string();
    let unreadable = |error: std::io::Error| paths::unreadable("read path", file, &error);
    let size = std::fs::metadata(file).map_err(unreadable)?.len();
    if size > PLAN_BYTES_MAX {
        return Err(failed(name(), format!("{size} bytes; at most {PLAN_BYTES_MAX} are read")));
    }
    let text = std::fs::read_to_string(file).map_err(unreadable)?;
    let mut plan: PathPlan = linerate_core::tree::from_toml(&text).map_err(|error| {
        let place = error.offset().map(|offset| line_and_column(&text, offset));
        let place = place.map_or_else(String::new, |(line, column)| format!(":{line}:{column}"));
        let message: Vec<&str> = error.message().lines().map(str::trim).collect();
        failed(format!("{}{place}", file.display()), message.join("; "))
    })?;
    read_traces(&mut plan, file.parent().unwrap_or_else(|| Path::new("")))?;
    Ok(plan)
}

/// Puts the text of each trace that a plan names by its file in the name's place: the plan of a
/// record holds all that the path was. A name is relative to the plan's folder.
fn read_traces(plan: &mut PathPlan, folder: &Path) -> Result<(), Failure> {
    if let Some(name) = plan.trace.as_deref().filter(|text| Trace::is_file_name(text)) {
        let file = folder.join(name.trim());
        let failed = |reason: String| {
            let failure =
                Failure::new(Fault::Usage, "read trace", file.display().to_string(), reason);
            failure.advise("a trace has a time in ms on each line, as Mahimahi's")
        };
        let size = std::fs::metadata(&file).map_err(|error| failed(words_of(&error)))?.len();
        if size > PLAN_BYTES_MAX {
            return Err(failed(format!("{size} bytes; at most {PLAN_BYTES_MAX} are read")));
        }
        let text = std::fs::read_to_string(&file).map_err(|error| failed(words_of(&error)))?;
        Trace::from_text(&text).map_err(|error| failed(error.to_string()))?;
        plan.trace = Some(text);
    }
    let ways = [&mut plan.forward, &mut plan.backward];
    ways.into_iter().flatten().try_for_each(|way| read_traces(way, folder))
}
