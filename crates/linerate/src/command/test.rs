//! `linerate test`: surveys a path.

use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_core::explain::{RateGoal, add_figures, explain, twin};
use linerate_core::record::{
    DEFAULT_PORT, Direction, Failure, Fault, Finish, Record, RecordStatus, ServerPlan, TcpTest,
    TestPlan, Via,
};
use linerate_core::units::parse_span;
use linerate_engine::examine::{self, ExaminationEvent};

use super::access::AccessFlags;
use super::assert::AssertFlags;
use super::flags::{FamilyFlags, span_nanos};
use super::measure::{self, OutputFlags};
use super::probes::ProbeFlags;
use super::target::{HostAndPort, parse_port};
use crate::config::{Config, KnownFlags};
use crate::exit::Outcome;
use crate::{output, paths};

/// Nobody waits longer for a first look at a path.
const WITHIN: Duration = Duration::from_secs(35);
/// Nor for a quick one.
const QUICK: Duration = Duration::from_secs(12);

/// The time of a TCP test, as its plan wants it.
fn test_time(text: &str) -> Result<Duration, String> {
    let time = parse_span(text).map_err(|error| error.to_string())?;
    let test = TcpTest { finish: Finish::TimeNs(span_nanos(time)), ..TcpTest::default() };
    test.check().map(|()| time).map_err(|error| error.to_string())
}

/// Flags of `linerate test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Server: a host that runs linerate serve, as HOST or HOST:PORT
    host: HostAndPort,
    /// Server port [default: 5210, or the usual port of the --via program]
    #[arg(short, long, value_parser = parse_port)]
    port: Option<u16>,
    /// Test against a server of another program, without probe trains and path MTU: iperf3, iperf2,
    /// nuttcp, ttcp
    #[arg(long, value_name = "PROGRAM")]
    via: Option<Via>,
    /// Finish within 12 seconds: round trips, TCP both ways, and probe trains where they fit
    #[arg(long, conflicts_with_all = ["within", "time"])]
    quick: bool,
    /// Measured time of each TCP test, slow start excluded [default: 1s, or five round trips if
    /// longer]
    #[arg(short = 't', long, value_name = "TIME", value_parser = test_time)]
    time: Option<Duration>,
    /// Finish within this time; tests that do not fit are skipped and listed [default: 35s,
    /// unlimited with -t]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    within: Option<Duration>,
    /// Maximum probes per packet size; fewer if they do not fit in a second
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1000)]
    count: u64,
    /// Congestion control of the sender: cubic, reno, bbr, ... [default: the kernel's]
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// Say whether the path carries this rate over this round trip (RFC 8337): 1G@21ms
    #[arg(long, value_name = "RATE@RTT")]
    target: Option<RateGoal>,
    /// Write the path as it was probed to FILE, as TOML: linerate path run --plan FILE and lab
    /// emulate it
    #[arg(long, value_name = "FILE", conflicts_with = "via")]
    save_path: Option<PathBuf>,
    #[command(flatten)]
    family: FamilyFlags,
    #[command(flatten)]
    access: AccessFlags,
    #[command(flatten)]
    probes: ProbeFlags,
    #[command(flatten)]
    known: KnownFlags,
    #[command(flatten)]
    assert: AssertFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    let plan = plan(&args)?;
    let flags = &args.output;
    args.save_path.as_deref().map_or(Ok(()), paths::check_writable)?;
    let mut total = 0;
    let mut seen = |seen: &ExaminationEvent<'_>| match seen {
        ExaminationEvent::Planned(count, span) => {
            total = *count;
            if flags.shows_live_lines() {
                let seconds = span.as_secs_f64();
                let noun = if *count == 1 { "measurement" } else { "measurements" };
                output::print_note(&format!("{count} {noun} in about {seconds:.0} s"));
            }
        }
        ExaminationEvent::Done(count, part)
            if flags.shows_live_lines() && part.status != RecordStatus::Error =>
        {
            let line = linerate_report::examination::result_line(part);
            // More than was planned fit where the path was quicker than its first probes.
            let of = if *count <= total { format!("/{total}") } else { String::new() };
            output::print_note(&format!("{count}{of} {line}"));
        }
        ExaminationEvent::Tried(tried) if flags.shows_live_lines() => {
            output::print_note(&linerate_report::examination::tried_change_line(tried));
        }
        ExaminationEvent::Done(..) | ExaminationEvent::Tried(_) => {}
    };
    let record =
        measure::run(flags, |context| examine::run(&plan, context, &mut seen), &mut |_| {})?;
    if args.target.is_some() {
        let mut verdicts = explain(&record);
        add_figures(&record, &mut verdicts, args.target);
        let answers = verdicts.iter().filter_map(|it| Some((it.direction, it.goal.as_ref()?)));
        for (way, goal) in answers {
            let way = if way == Some(Direction::Down) { "down" } else { "up" };
            let lines = linerate_report::verdict::goal_lines(goal);
            lines.iter().for_each(|line| flags.remark_printer()(&format!("{way}: {line}")));
        }
    }
    if let Some(file) = &args.save_path {
        save_path(file, &record)?;
    }
    Ok(args.assert.judge_record(&record, record.exit_code(), flags.remark_printer()))
}

/// Writes the plan of the path that was probed.
fn save_path(file: &Path, record: &Record) -> Result<(), Failure> {
    let name = || file.display().to_string();
    let Some(path) = twin::path_of(record) else {
        let reason = "no train of probes arrived on it";
        let failure = Failure::new(Fault::Unreachable, "write the path to", name(), reason);
        return Err(failure.advise("linerate test without --quick leaves more time for trains"));
    };
    let host = record.plan.host_names().next().unwrap_or_default();
    let text = linerate_core::tree::to_toml(&path)
        .map_err(|error| Failure::new(Fault::System, "write the path to", name(), error))?;
    let head = "the client's packets go forward. Replay: linerate path run --plan";
    paths::write(file, &format!("# The path to {host} as probes saw it; {head}\n{text}"))
}

fn plan(args: &Args) -> Result<TestPlan, Failure> {
    let profile = Config::load()?.profile(&args.host.host, &args.known);
    let usual = args.via.map_or(DEFAULT_PORT, Via::default_port);
    // The file's port is that of linerate serve.
    let usual = profile.port.filter(|_| args.via.is_none()).unwrap_or(usual);
    let port = args.host.choose_port(args.port, usual)?;
    let most = if args.quick { QUICK } else { WITHIN };
    let within = args.within.or_else(|| args.time.is_none().then_some(most));
    let server = ServerPlan {
        family: args.family.family(),
        profile: profile.name,
        known: profile.known,
        token: args.access.read_access_token(args.via)?,
        ..ServerPlan::new(args.via, profile.host, port)
    };
    let probes = args.probes.probe_plan(&server, None, Finish::TimeNs(span_nanos(WITHIN)));
    Ok(TestPlan {
        server: ServerPlan { probes, ..server },
        tcp_time_ns: args.time.map(span_nanos),
        within_ns: within.map(span_nanos),
        congestion_control: args.congestion.clone(),
        ping_count: args.count,
        goal: args.target.map(RateGoal::goal_plan),
    })
}
