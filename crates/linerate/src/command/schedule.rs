//! `linerate schedule`: a plan of measurements for months: its calendar, its keeper, its state.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use linerate_core::mesh::{MeshCalendar, MeshPlan};
use linerate_core::record::{Failure, Fault};
use linerate_core::schedule::{Calendar, SchedulePlan, Span};
use linerate_mesh::alert;
use linerate_mesh::schedule::{Desk, Keeper, KeeperOptions, load_time_zone, schedule_view};
use linerate_report::Document;
use linerate_report::schedule::{CalendarEntry, ScheduleView, calendar, document, plan_page};
use linerate_store::{Store, default_path};
use linerate_sys::clock::wall_time;
use linerate_sys::stop::Stop;

use crate::exit::Outcome;
use crate::{LinerateCli, manager, output, paths};

/// The file of an agent's results, beside the default store.
pub(crate) const AGENT_STORE: &str = "agent.db";
/// A day in seconds.
const DAY_S: i64 = 86_400;

/// Flags of `linerate schedule`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ScheduleCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ScheduleCommand {
    /// Check a plan: its calendar of a day, and what it moves in a month
    Check {
        /// Plan file (TOML)
        #[arg(value_name = "PLAN")]
        plan: PathBuf,
        /// List each run of the day, however many
        #[arg(long)]
        all: bool,
        /// Print the runs of the day as JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a plan until Ctrl-C or SIGTERM: measure, look for changes, hand alerts on
    Run {
        /// Plan file (TOML)
        #[arg(value_name = "PLAN")]
        plan: PathBuf,
        /// End after this long
        #[arg(long = "for", value_name = "TIME", value_parser = parse_plan_time)]
        for_: Option<Duration>,
        /// Use this store instead of the default one
        #[arg(long, value_name = "FILE", env = "LINERATE_STORE", hide_env_values = true)]
        store: Option<PathBuf>,
    },
    /// Show the state of a plan: series, gaps, changes; exit code 1 when something is in alert
    Status {
        /// Plan file (TOML), or the name of a plan that was run
        #[arg(value_name = "PLAN")]
        plan: String,
        /// Show this much time before now
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_plan_time)]
        last: Duration,
        /// Print JSON, with every value
        #[arg(long)]
        json: bool,
        /// Write an HTML page with the series on one time axis
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// Read this store instead of the default one
        #[arg(long, value_name = "FILE", env = "LINERATE_STORE", hide_env_values = true)]
        store: Option<PathBuf>,
    },
}

/// Runs `linerate schedule` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    match args.command {
        ScheduleCommand::Check { plan, all, json } => check_plan(&plan, all, json),
        ScheduleCommand::Run { plan, for_, store } => run_schedule(&plan, for_, store.as_deref()),
        ScheduleCommand::Status { plan, last, json, html, store } => {
            let view = state_view(&plan, last, store.as_deref())?;
            print_state(&view, json, html.as_deref())
        }
    }
}

/// A plan that can be run: read, with commands that this program knows, and placed.
struct RunnableSchedule {
    text: String,
    plan: SchedulePlan,
    calendar: Calendar,
}

fn parse_schedule(text: String, file: &str) -> Result<RunnableSchedule, Failure> {
    let refused = |object: String, reason: String| {
        Failure::new(Fault::Usage, "read plan", object, reason)
            .advise("linerate help schedule-plan describes the file")
    };
    let plan = SchedulePlan::from_toml(&text).map_err(|error| {
        let object = match error.place {
            Some((line, column)) => format!("{file}:{line}:{column}"),
            None => file.to_owned(),
        };
        refused(object, error.reason)
    })?;
    for task in &plan.tasks {
        let survey = task.survey_words();
        for words in [task.command_words().ok(), survey].into_iter().flatten() {
            accept(&words)
                .map_err(|reason| refused(format!("{file}: task {:?}", task.name), reason))?;
        }
    }
    let outputs = plan.alert.as_ref().map_or(Ok(()), alert::check_outputs);
    outputs.map_err(|reason| refused(format!("{file}: alert"), reason))?;
    let zone = load_time_zone(&plan.zone).map_err(|reason| refused(file.to_owned(), reason))?;
    let calendar =
        Calendar::from_plan(&plan, zone).map_err(|reason| refused(file.to_owned(), reason))?;
    Ok(RunnableSchedule { text, plan, calendar })
}

/// Checks that the words of a run are a command of linerate, and leave the flags that the schedule
/// adds to it free.
/// # Errors
/// The first line of what is wrong with them.
pub(crate) fn accept(words: &[String]) -> Result<(), String> {
    let own = ["--tag", "schedule=p", "--name", "t", "--store", "s", "--json"];
    let all = ["linerate"].into_iter().chain(words.iter().map(String::as_str)).chain(own);
    let Err(error) = LinerateCli::try_parse_from(all) else { return Ok(()) };
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let taken = ["--name", "--store", "--json"].iter().any(|flag| line.contains(*flag));
    let hint = if taken { "; the schedule gives --name, --store and --json itself" } else { "" };
    Err(format!("linerate {}: {line}{hint}", words.join(" ")))
}

fn read(path: &Path) -> Result<RunnableSchedule, Failure> {
    parse_schedule(paths::read(path)?, &path.display().to_string())
}

#[allow(clippy::cast_possible_wrap, reason = "seconds since 1970")]
fn now_s() -> i64 {
    (wall_time().unix_millis() / 1000) as i64
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes")]
const fn whole_bytes(bytes: f64) -> u64 {
    bytes as u64
}

fn check_plan(path: &Path, all: bool, json: bool) -> Outcome {
    let RunnableSchedule { plan, calendar: placed, .. } = read(path)?;
    let now = now_s();
    let entry = |slot: &linerate_core::schedule::Slot| {
        let task = &plan.tasks[slot.task];
        CalendarEntry {
            start_s: slot.start_s,
            until_s: slot.until_s,
            task: task.name.clone(),
            run: task.run.clone(),
            bytes: task.bytes_a_run(None).map(whole_bytes),
        }
    };
    let entries: Vec<CalendarEntry> =
        placed.slots_between(now, now + DAY_S).iter().map(entry).collect();
    if json {
        let document = serde_json::json!({
            "plan": plan.name,
            "from_s": now,
            "runs": entries,
            "bytes_in_31_days": plan.bytes_in_a_month(),
        });
        output::print_line(&linerate_core::tree::to_json_pretty(&document)?);
    } else {
        let month = plan.bytes_in_a_month();
        output::document(&calendar(&plan.name, &entries, month, all));
    }
    Ok(0)
}

fn run_schedule(path: &Path, for_: Option<Duration>, store: Option<&Path>) -> Outcome {
    let RunnableSchedule { text, plan, calendar } = read(path)?;
    let store = paths::open_store(store)?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(Fault::System, "find", "this program", error.to_string()))?;
    let stop = Stop::on_signals()?;
    let name = plan.name.clone();
    let (say, desk) = (output::print_note, Desk::default());
    let options = KeeperOptions { program, text, plan, calendar, for_, say, rein: None, desk };
    let keeper = Keeper::new(options, store, stop.clone())?;
    manager::tell_of_begin_and_end(&stop);
    output::print_note(&format!("schedule {name} runs; Ctrl-C ends it"));
    let ended = keeper.run();
    manager::report_stopping(&stop);
    let ended = ended?;
    output::print_note(&format!(
        "schedule {name} ended: {} results, {} runs without one, {} lasting changes",
        ended.good, ended.without, ended.changes
    ));
    Ok(0)
}

/// A time as plans have it: `90d` too.
fn parse_plan_time(text: &str) -> Result<Duration, String> {
    Span::try_from(text.to_owned()).map(|span| span.0)
}

fn state_view(plan: &str, last: Duration, store: Option<&Path>) -> Result<ScheduleView, Failure> {
    let store = match agents_store(plan, store)? {
        Some(agents) => agents,
        None => paths::filled(store)?,
    };
    let path = Path::new(plan);
    let placed = if path.is_file() { read(path)? } else { stored(&store, plan)? };
    let span_s = i64::try_from(last.as_secs()).unwrap_or(DAY_S).max(60);
    schedule_view(&store, &placed.plan, Some(&placed.calendar), now_s(), span_s)
}

/// The store of this user's agent of a mesh, where it runs the plan of this name: `campus/north`.
fn agents_store(plan: &str, flag: Option<&Path>) -> Result<Option<Store>, Failure> {
    let path = default_path()?.with_file_name(AGENT_STORE);
    if flag.is_some() || !plan.contains('/') || !path.exists() {
        return Ok(None);
    }
    let store = Store::open_existing(&path)?;
    let runs = store.schedules()?.iter().any(|known| known.plan == plan);
    Ok(runs.then_some(store))
}

/// The schedule of one agent (`MESH/AGENT`) by the plan of its mesh.
fn of_agent(text: &str, name: &str) -> Option<RunnableSchedule> {
    let (_, agent) = name.rsplit_once('/')?;
    let plan = MeshPlan::from_toml(text).ok()?;
    let place = plan.agent_index(agent)?;
    let mine = MeshCalendar::from_plan(&plan).ok()?.of_agent(&plan, place);
    Some(RunnableSchedule { text: text.to_owned(), plan: mine.plan, calendar: mine.calendar })
}

/// A plan as it was last run.
fn stored(store: &Store, name: &str) -> Result<RunnableSchedule, Failure> {
    let known = store.schedules()?;
    match known.iter().find(|known| known.plan == name) {
        Some(known) => match of_agent(&known.text, name) {
            Some(placed) => Ok(placed),
            None => parse_schedule(known.text.clone(), name),
        },
        None => {
            let names: Vec<&str> = known.iter().map(|known| known.plan.as_str()).collect();
            let reason = match names.as_slice() {
                [] => "no such file, and no plan was run on this store".to_owned(),
                names => format!("no such file, and the plans that ran are {}", names.join(", ")),
            };
            Err(Failure::new(Fault::Usage, "find plan", name, reason))
        }
    }
}

fn print_state(view: &ScheduleView, json: bool, html: Option<&Path>) -> Outcome {
    if let Some(path) = html {
        let document: Document = plan_page(view);
        paths::write(path, &document.html())?;
        output::print_note(&format!("wrote {}", path.display()));
    }
    if json {
        output::print_line(&linerate_core::tree::to_json_pretty(view)?);
    } else if html.is_none() {
        output::document(&document(view, output::output_columns()));
    }
    Ok(u8::from(!view.alerts.is_empty()))
}
