//! `linerate mesh`: the plan of a mesh: checked, signed, joined by agents, and how it stands.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_core::mesh::{Booking, BookingWhy, Imported, SignedPlan, WITHIN_S, from_psconfig};
use linerate_core::record::{Failure, Fault, IpFamily};
use linerate_core::schedule::{RunState, Span};
use linerate_mesh::{
    BookingRequest, Checked, JoinToken, SigningKey, What, book_run, load_mesh_matrix,
    parse_plan_text, signature_file, signed,
};
use linerate_report::Headline;
use linerate_report::mesh::{booked, calendar, document};
use linerate_store::{HubPlace, HubStore, default_path};
use linerate_sys::clock::{sleep, wall_time};
use linerate_sys::stop::Stop;

use super::mesh_archive;
use super::schedule::accept;
use crate::exit::Outcome;
use crate::{output, paths};

/// Flags of `linerate mesh`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write a day of a hub's store as one file of Parquet, MESH-DAY.parquet
    Archive(mesh_archive::Args),
    /// Check a plan: the slots of its calendar, beside the least possible
    Check {
        /// Plan file (TOML)
        #[arg(value_name = "PLAN")]
        plan: PathBuf,
        /// List the runs of a period
        #[arg(long)]
        all: bool,
        /// Print JSON, with every run of a period
        #[arg(long)]
        json: bool,
    },
    /// Turn a template of perfSONAR's psConfig into a plan, on standard output; what has no
    /// counterpart is said line by line
    Import {
        /// Template (JSON)
        #[arg(value_name = "FILE")]
        template: PathBuf,
        /// Name of the mesh [default: the file's]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Make the key that signs plans; keep it away from the hub
    Key {
        /// File to make
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Sign a plan, into PLAN.sig
    Sign {
        /// Plan file (TOML)
        #[arg(value_name = "PLAN")]
        plan: PathBuf,
        /// Key of linerate mesh key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
    /// Make the token by which one agent joins, once
    Token {
        /// Agent, by its name in the plan
        #[arg(value_name = "AGENT")]
        agent: String,
        /// Plan file (TOML), signed
        #[arg(long, value_name = "PLAN")]
        plan: PathBuf,
        /// Refuse the token after this long
        #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_plan_time)]
        within: Duration,
        /// Store of the hub: a file, or postgresql://... [default: as other commands]
        #[arg(long, value_name = "FILE|URL", env = "LINERATE_STORE", hide_env_values = true)]
        store: Option<String>,
    },
    /// Book one run beside the calendar, in its first gap
    Run {
        /// Command as the plan lets it be booked, to an agent by its name: 'tcp south -t5'
        #[arg(value_name = "COMMAND")]
        command: String,
        /// Agent that measures
        #[arg(long, value_name = "AGENT")]
        from: String,
        /// Mesh, by its name [default: the only one of the store]
        #[arg(long, value_name = "MESH")]
        mesh: Option<String>,
        /// Wait until it has ended, and print its result
        #[arg(long)]
        result: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Store of the hub: a file, or postgresql://... [default: as other commands]
        #[arg(long, value_name = "FILE|URL", env = "LINERATE_STORE", hide_env_values = true)]
        store: Option<String>,
    },
    /// Show the matrix of a mesh; exit code 1 when something is in alert
    Status {
        /// Mesh, by its name [default: the only one of the store]
        #[arg(value_name = "MESH")]
        mesh: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Store of the hub: a file, or postgresql://... [default: as other commands]
        #[arg(long, value_name = "FILE|URL", env = "LINERATE_STORE", hide_env_values = true)]
        store: Option<String>,
    },
}

/// How long after its end a booked run is waited for: an agent tells of it with its next words.
const HEARD_WITHIN_S: i64 = 60;

/// Runs `linerate mesh` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    match args.command {
        Command::Archive(args) => mesh_archive::run(&args),
        Command::Check { plan, all, json } => print_calendar(&plan, all, json),
        Command::Import { template, name } => import(&template, name.as_deref()),
        Command::Key { file } => {
            let key = SigningKey::create_key_file(&file)?;
            output::print_note(&format!("wrote {}; its public key:", file.display()));
            output::print_line(&key.public());
            Ok(0)
        }
        Command::Sign { plan, key } => sign_plan(&plan, &key),
        Command::Token { agent, plan, within, store } => {
            make_join_token(&agent, &plan, within, store.as_deref())
        }
        Command::Run { command, from, mesh, result, json, store } => {
            let (what, within_s) = (What::Line(command), WITHIN_S);
            let wanted =
                BookingRequest { from, what, why: BookingWhy::Adhoc, earliest_s: 0, within_s };
            book_one(&wanted, mesh.as_deref(), result, json, store.as_deref())
        }
        Command::Status { mesh, json, store } => status(mesh.as_deref(), json, store.as_deref()),
    }
}

/// A time as plans have it: `7d` too.
fn parse_plan_time(text: &str) -> Result<Duration, String> {
    Span::try_from(text.to_owned()).map(|span| span.0)
}

#[allow(clippy::cast_possible_wrap, reason = "seconds since 1970")]
fn now_s() -> i64 {
    (wall_time().unix_millis() / 1000) as i64
}

/// A plan whose commands this program knows.
fn read(path: &Path) -> Result<(String, Checked), Failure> {
    let text = paths::read(path)?;
    let checked = accepted(&text, &path.display().to_string())?;
    Ok((text, checked))
}

fn accepted(text: &str, file: &str) -> Result<Checked, Failure> {
    let checked = parse_plan_text(text, file)?;
    let plan = &checked.plan;
    let tasks =
        plan.tasks.iter().map(|task| (&task.name, plan.command_words(&task.name, &task.run, 0, 0)));
    let adhoc = plan.adhoc.iter().flat_map(|adhoc| &adhoc.commands);
    let adhoc =
        adhoc.map(|command| (&command.name, plan.command_words(&command.name, &command.run, 0, 0)));
    for (name, words) in tasks.chain(adhoc) {
        accept(&words).map_err(|reason| {
            let object = format!("{file}: task {name:?}");
            Failure::new(Fault::Usage, "read plan", object, reason)
                .advise("linerate help mesh-plan describes the file")
        })?;
    }
    Ok(checked)
}

fn import(path: &Path, name: Option<&str>) -> Outcome {
    let text = paths::read(path)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = name.map_or_else(|| stem.unwrap_or_default(), str::to_owned);
    let file = path.display().to_string();
    let Imported { plan, notes } = from_psconfig(&text, &name, &look_up).map_err(|reason| {
        Failure::new(Fault::Usage, "import template", &file, reason)
            .advise("linerate help mesh-plan says what is taken from a template")
    })?;
    notes.iter().for_each(|note| output::print_note(note));
    output::print_line(plan.trim_end());
    // What mesh check would say of it.
    accepted(&plan, &format!("the plan of {file}")).map(|_| 0).map_err(Into::into)
}

/// An address of a name, by the host's resolver.
fn look_up(host: &str, family: Option<IpFamily>) -> Option<IpAddr> {
    let fits = |address: &SocketAddr| match family {
        None => true,
        Some(IpFamily::V4) => address.is_ipv4(),
        Some(IpFamily::V6) => address.is_ipv6(),
    };
    (host, 0).to_socket_addrs().ok()?.find(fits).map(|address| address.ip())
}

fn print_calendar(path: &Path, all: bool, json: bool) -> Outcome {
    let (_, Checked { plan, calendar: placed }) = read(path)?;
    let rounds = placed.rounds(&plan);
    let mut runs: Vec<_> = placed.iter_runs().collect();
    runs.sort_by_key(|run| (run.task, run.offset_s, run.from, run.to));
    let name = |at: usize| plan.agents[at].name.as_str();
    if json {
        let run = |run: &linerate_core::mesh::MeshRun| {
            serde_json::json!({
                "task": plan.tasks[run.task].name,
                "from": name(run.from),
                "to": name(run.to),
                "offset_s": run.offset_s,
                "period_s": run.period_s,
                "takes_s": run.takes_s,
            })
        };
        let runs: Vec<_> = runs.iter().map(run).collect();
        let document = serde_json::json!({
            "mesh": plan.mesh,
            "revision": plan.revision,
            "runs": runs,
        });
        output::print_line(&linerate_core::tree::to_json_pretty(&document)?);
        return Ok(0);
    }
    output::document(&calendar(&plan.mesh, &rounds));
    for run in runs.iter().filter(|_| all) {
        let task = &plan.tasks[run.task].name;
        let (from, to) = (name(run.from), name(run.to));
        output::print_line(&format!("{task} +{} s: {from} to {to}", run.offset_s));
    }
    Ok(0)
}

fn sign_plan(path: &Path, key: &Path) -> Outcome {
    let (text, checked) = read(path)?;
    let SignedPlan { key, signature, .. } = SigningKey::read(key)?.sign_plan(&text);
    let beside = signature_file(path);
    paths::write(&beside, &format!("{key}\n{signature}\n"))?;
    output::print_note(&format!("wrote {}", beside.display()));
    let plan = checked.plan;
    if plan.revision > 1 && plan.from.is_none() {
        output::print_note(
            "this revision has no from: agents change to it one after another, and their runs may \
             meet for as long as the last has not",
        );
    }
    Ok(0)
}

fn make_join_token(agent: &str, path: &Path, within: Duration, store: Option<&str>) -> Outcome {
    let (plan, (_, Checked { plan: read, .. })) = (signed(path)?, read(path)?);
    if read.agent_index(agent).is_none() {
        let reason = format!("{} has no agent of that name", path.display());
        return Err(Failure::new(Fault::Usage, "make token for", agent, reason).into());
    }
    let token = JoinToken::generate_for_plan(&plan);
    let until_s = now_s() + i64::try_from(within.as_secs()).unwrap_or(i64::MAX / 4);
    let mut store = store_place(store)?.open_store()?;
    store.keep_token(&token.digest(), &read.mesh, agent, until_s)?;
    output::print_line(&token.encoded_text());
    Ok(0)
}

/// The hub's store that a flag names, else this user's.
fn store_place(flag: Option<&str>) -> Result<HubPlace, Failure> {
    let Some(text) = flag else { return Ok(HubPlace::File(default_path()?)) };
    // An address may have a password.
    let failed = |reason| Failure::new(Fault::Usage, "read", "--store", reason);
    HubPlace::parse(text).map_err(failed)
}

/// The same, of a hub that is there: a file that is not is not made.
pub(super) fn filled(flag: Option<&str>) -> Result<HubPlace, Failure> {
    let place = store_place(flag)?;
    match &place {
        HubPlace::File(path) => drop(paths::filled(flag.is_some().then_some(path))?),
        #[cfg(feature = "scale")]
        HubPlace::Database(_) => {}
    }
    Ok(place)
}

/// A mesh of a store: the one of a name, or the only one.
pub(super) fn find_mesh_name(
    store: &mut dyn HubStore,
    mesh: Option<&str>,
) -> Result<String, Failure> {
    let known = store.plan_names()?;
    match (mesh, known.as_slice()) {
        (Some(mesh), _) => Ok(mesh.to_owned()),
        (None, [one]) => Ok(one.clone()),
        (None, known) => {
            let reason = match known {
                [] => "it is no hub's: linerate serve --mesh PLAN is a hub".to_owned(),
                known => format!("name one of {}", known.join(", ")),
            };
            Err(Failure::new(Fault::Usage, "find the mesh of", store.location_name(), reason))
        }
    }
}

fn book_one(
    wanted: &BookingRequest,
    mesh: Option<&str>,
    result: bool,
    json: bool,
    store: Option<&str>,
) -> Outcome {
    let mut store = filled(store)?.open_store()?;
    let mesh = find_mesh_name(&mut *store, mesh)?;
    let now_s = now_s();
    let booking = book_run(&mut *store, &mesh, wanted, now_s)?;
    let end_s = booking.start_s + booking.takes_s;
    if json && !result {
        output::print_line(&linerate_core::tree::to_json_pretty(&booking)?);
    } else {
        let said = booked(&wanted.from, &booking, now_s);
        if json { output::print_note(&said) } else { output::print_line(&said) }
    }
    if result {
        wait_for_run(&mut *store, &mesh, &wanted.from, &booking, end_s, json)
    } else {
        Ok(0)
    }
}

/// Waits for a booked run's end, and prints it.
fn wait_for_run(
    store: &mut dyn HubStore,
    mesh: &str,
    agent: &str,
    booking: &Booking,
    end_s: i64,
    json: bool,
) -> Outcome {
    let stop = Stop::on_signals()?;
    let (task, start_s) = (Some(booking.task.as_str()), booking.start_s);
    while !stop.is_requested() && now_s() < end_s + HEARD_WITHIN_S {
        let mut runs = store.agent_runs(mesh, agent, task, start_s..start_s + 1)?;
        if let Some(run) = runs.pop() {
            let record = store.record(mesh, agent, &run)?;
            if json {
                output::print_line(&linerate_core::tree::to_json_pretty(&record)?);
            } else if let Some(record) = &record {
                output::print_line(&Headline::from_record(record).summary_line());
            }
            let why = run.reason.filter(|_| run.state != RunState::Ok);
            why.iter().for_each(|why| output::print_note(&format!("{}: {why}", run.state)));
            return Ok(if run.state == RunState::Ok { 0 } else { 3 });
        }
        sleep(Duration::from_secs(1));
    }
    output::print_note("nothing was heard of it; linerate mesh status shows it when it is");
    Ok(3)
}

fn status(mesh: Option<&str>, json: bool, store: Option<&str>) -> Outcome {
    let place = filled(store)?;
    let mesh = find_mesh_name(&mut *place.open_store()?, mesh)?;
    let matrix = load_mesh_matrix(&place, &mesh, now_s())?;
    if json {
        output::print_line(&linerate_core::tree::to_json_pretty(&matrix)?);
    } else {
        output::document(&document(&matrix));
    }
    Ok(u8::from(!matrix.alerts.is_empty()))
}
