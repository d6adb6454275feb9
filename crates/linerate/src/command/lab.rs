//! `linerate lab`: builds a laboratory and holds it, runs commands in it, lets others in.

mod bank;
mod warden;

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::Context as _;
use linerate_core::lab::{LabPlan, Layout, map_lines};
use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::words_of;
use linerate_engine::lab::{
    self, Entry, EntrySocket, Lab, Running, enter_user_namespace_if_needed,
};
use linerate_sys::stop::Stop;
use linerate_sys::{child, clock};

use self::warden::Warden;
use crate::exit::Outcome;
use crate::output;

/// Longest plan; 64 nodes and 256 links fit many times.
const PLAN_BYTES_MAX: u64 = 1 << 20;

/// Plans that are part of the program.
pub(super) const SHIPPED: [(&str, &str); 9] = [
    ("cable", include_str!("../../../../studies/labs/cable.toml")),
    ("switch", include_str!("../../../../studies/labs/switch.toml")),
    ("router", include_str!("../../../../studies/labs/router.toml")),
    ("filters", include_str!("../../../../studies/labs/filters.toml")),
    ("oc3", include_str!("../../../../studies/labs/oc3.toml")),
    ("wan", include_str!("../../../../studies/labs/wan.toml")),
    ("oc12", include_str!("../../../../studies/labs/oc12.toml")),
    ("forwarder", include_str!("../../../../studies/labs/forwarder.toml")),
    ("planted", include_str!("../../../../studies/labs/planted.toml")),
];

/// Flags of `linerate lab`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Build a virtual network and keep it up until Ctrl-C or until the given command ends
    Run(RunArgs),
    /// Open a shell on a host of a running virtual network
    Shell(ShellArgs),
    /// Check a topology file and print its map without building it
    Check(PlanArgs),
    /// Measure paths with planted causes, and score what the diagnosis says of them
    Bank(bank::Args),
    /// Wait until standard input closes, then kill the processes in the given namespaces
    #[command(hide = true)]
    Warden(warden::Args),
}

#[derive(Debug, clap::Args)]
struct PlanArgs {
    /// Topology file in TOML, or a built-in topology: cable, switch, router, filters, oc3, wan,
    /// oc12, forwarder, planted
    #[arg(value_name = "FILE")]
    plan: String,
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    #[command(flatten)]
    plan: PlanArgs,
    /// Host to run the command on
    #[arg(long, value_name = "HOST", requires = "command")]
    on: Option<String>,
    /// Command to run; the network is removed when it ends, and its exit status is returned
    #[arg(last = true, value_name = "CMD", requires = "on")]
    command: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct ShellArgs {
    /// Host to enter
    #[arg(value_name = "HOST")]
    host: String,
    /// PID or name of the virtual network, if several are running
    #[arg(long, value_name = "PID|NAME")]
    lab: Option<String>,
    /// Command to run there [default: $SHELL]
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Runs `linerate lab` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    match args.action {
        Action::Run(args) => hold_lab(&args),
        Action::Shell(args) => open_shell(&args),
        Action::Check(args) => check_plan(&args.plan),
        Action::Bank(args) => bank::run(args),
        Action::Warden(args) => warden::wait_and_sweep(&args),
    }
}

fn check_plan(file: &str) -> Outcome {
    let plan = read_plan(file)?;
    let layout = Layout::from_plan(&plan).with_context(|| format!("check {file}"))?;
    print_map(&layout);
    let memory_bytes = lab::path_memory_bytes(&layout)?;
    if memory_bytes > 0 {
        output::print_line(&format!(
            "\nits paths take up to {} of memory",
            megabytes(memory_bytes)
        ));
    }
    Ok(0)
}

fn hold_lab(args: &RunArgs) -> Outcome {
    let plan = read_plan(&args.plan.plan)?;
    if let Some(host) = &args.on {
        find_host(&plan, host)?;
    }
    // Before anything that could start a thread.
    enter_user_namespace_if_needed()?;
    let built = Lab::build_from_plan(&plan)?;
    for note in built.build_notes() {
        output::print_note(&format!("note: {note}"));
    }
    let warden = Warden::start(&built)?;
    let entry_socket = EntrySocket::open(&built)?;
    let outcome = match &args.on {
        Some(host) => run_on(&built, host, &args.command),
        None => wait_for_stop(&built, &entry_socket),
    };
    warden.dismiss();
    outcome
}

fn wait_for_stop(built: &Lab, _open: &EntrySocket) -> Outcome {
    let stop = Stop::on_signals()?;
    output::print_line(&format!("laboratory {} (pid {})\n", built.name(), std::process::id()));
    print_map(built.layout());
    let host = &built.layout().nodes[0].name;
    output::print_line(&format!(
        "\nenter a host with `linerate lab shell {host}`; end with Ctrl-C"
    ));
    while !stop.is_requested() {
        clock::sleep(Duration::from_millis(200));
    }
    Ok(0)
}

fn run_on(built: &Lab, host: &str, command: &[String]) -> Outcome {
    let mut command = command_of(command);
    describe(&mut command, built.name(), host);
    let status = built.run_on(host, || child::run_to_end(&mut command, None))?;
    status_code(status)
}

fn open_shell(args: &ShellArgs) -> Outcome {
    let lab = choose(args.lab.as_deref())?;
    let entry = Entry::request_host(&lab, &args.host)?;
    entry.enter_namespaces()?;
    let interactive = args.command.is_empty();
    let shell = || std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let mut command = if interactive { Command::new(shell()) } else { command_of(&args.command) };
    describe(&mut command, &lab.name, &args.host);
    if interactive {
        output::print_note(&format!("on {} of {lab}; leave with exit", args.host));
    }
    status_code(child::run_to_end(&mut command, Some(entry.lifetime_fd())))
}

/// Tells a command where it runs.
fn describe(command: &mut Command, lab: &str, host: &str) {
    command.env("LINERATE_LAB", lab).env("LINERATE_HOST", host);
}

fn command_of(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// The exit code of a command as shells have it: 128 and the signal that ended it.
pub(crate) fn status_code(status: linerate_sys::Result<ExitStatus>) -> Outcome {
    use std::os::unix::process::ExitStatusExt;
    let status = status.map_err(|error| {
        Failure::new(Fault::Usage, "run", error.object, words_of(&error.source))
            .advise("check the command after --")
    })?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}

fn choose(wanted: Option<&str>) -> Result<Running, Failure> {
    let mut running = lab::running()?;
    let usage = |reason: String| Failure::new(Fault::Usage, "find", "laboratory", reason);
    if let Some(wanted) = wanted {
        running.retain(|lab| lab.name == wanted || lab.pid.to_string() == wanted);
    }
    match (running.len(), wanted) {
        (1, _) => Ok(running.remove(0)),
        (0, Some(wanted)) => Err(usage(format!("none of name or pid {wanted} runs here"))),
        (0, None) => Err(usage("none runs here".to_owned())
            .advise("start one in another terminal: linerate lab run router")),
        _ => {
            let names: Vec<String> = running.iter().map(Running::to_string).collect();
            Err(usage(format!("several run: {}", names.join(", "))).advise("name one with --lab"))
        }
    }
}

fn find_host(plan: &LabPlan, host: &str) -> Result<(), Failure> {
    let layout = Layout::from_plan(plan);
    if layout.is_ok_and(|layout| layout.node_index(host).is_some()) {
        return Ok(());
    }
    Err(Failure::new(Fault::Usage, "find host", host, "the plan has no such host")
        .advise("see its map: linerate lab check FILE"))
}

/// Reads the plan of a file; a name without a file is looked for among the shipped plans.
pub(super) fn read_plan(file: &str) -> Result<LabPlan, Failure> {
    let shipped = SHIPPED.iter().find(|(name, _)| *name == file);
    if let (Some((name, text)), false) = (shipped, Path::new(file).exists()) {
        return LabPlan::from_toml(text, &format!("{name}.toml"));
    }
    let failed = |reason: &dyn std::fmt::Display| {
        let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
        Failure::new(Fault::Usage, "read laboratory", file, reason)
            .advise(format!("give a TOML file, or one of {}", names.join(", ")))
    };
    let size = std::fs::metadata(file).map_err(|error| failed(&words_of(&error)))?.len();
    if size > PLAN_BYTES_MAX {
        return Err(failed(&format!("{size} bytes; at most {PLAN_BYTES_MAX} are read")));
    }
    let bytes = std::fs::read(file).map_err(|error| failed(&words_of(&error)))?;
    let text = String::from_utf8(bytes).map_err(|error| failed(&error))?;
    LabPlan::from_toml(&text, file)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn print_map(layout: &Layout) {
    for line in map_lines(layout) {
        output::print_line(&line);
    }
}
