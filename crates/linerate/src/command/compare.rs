//! `linerate compare`: several targets, or one target in several ways, measured in turn; or results
//! that were stored.

mod laboratory;
mod stored;

use std::sync::Arc;
use std::time::Duration;

use linerate_core::comparison::ROUNDS_MIN;
use linerate_core::record::{
    ComparePlan, ComparisonCandidate, DEFAULT_PORT, Failure, Fault, Finish, IpFamily, PingMode,
    PingPlan, PingTransport, Plan, ServerPlan, TcpDirections, TcpPlan, TcpTest,
};
use linerate_core::units::{Bytes, parse_dscp, parse_span};
use linerate_engine::compare::{self, Sites};
use linerate_engine::lab::enter_user_namespace_if_needed;

use super::access::AccessFlags;
use super::flags::span_nanos;
use super::measure::{self, OutputFlags};
use super::round_trip_flags::RoundTripFlags;
use super::study::answer::serve_until_stop;
use super::target::HostAndPort;
use crate::config::{Config, KnownFlags, Profile};
use crate::exit::Outcome;
use crate::{output, paths};

/// Shortest TCP test of a round: slow start on a path of some 20 ms is over by then.
const TCP_MIN: Duration = Duration::from_millis(300);
const TCP_MAX: Duration = Duration::from_secs(1);
/// Shortest time for the probes of a round.
const PROBES_MIN: Duration = Duration::from_millis(20);

/// Flags that have no effect on a TCP test.
const PROBES_ONLY: [&str; 6] =
    ["timeout", "wait", "no_kernel_stamps", "samples", "ecn", "real_time"];

/// Flags of `linerate compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to compare with the first: HOST or HOST:PORT, followed by ,KEY=VALUE for all that
    /// differs: dscp, family (4 or 6), size, ttl; with --tcp dscp, family, cc, streams, window. Or
    /// stored results: @-2 (the newest but one), @ID, @NAME
    #[arg(value_name = "TARGET", num_args = 2.., required = true)]
    candidates: Vec<String>,
    /// Compare virtual networks on this machine: each TARGET is a topology of `linerate lab`, a
    /// TOML file or a built-in one, with the keys above and filters (rules of its routers), client,
    /// server (hosts)
    #[arg(long)]
    lab: bool,
    /// Compare the goodput of TCP tests instead of round-trip times; the targets must run linerate
    /// serve
    #[arg(long, conflicts_with_all = PROBES_ONLY)]
    tcp: bool,
    /// With --tcp: the server sends
    #[arg(short = 'R', long, requires = "tcp")]
    reverse: bool,
    /// Probe with UDP instead of ICMP; the targets must run linerate serve
    #[arg(long, conflicts_with = "tcp")]
    udp: bool,
    /// Rounds: each measures every target once, the first one twice, in a new order
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(i64::from(ROUNDS_MIN)..))]
    rounds: u32,
    /// Maximum probes per target and round
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1000)]
    count: u64,
    /// Payload size of the probes in bytes
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 56)]
    size: u32,
    /// Finish in about this time
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_span)]
    within: Duration,
    /// Seed of the order in each round
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    access: AccessFlags,
    #[command(flatten)]
    round_trip: RoundTripFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// Runs `linerate compare` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    if args.candidates.iter().any(|text| text.starts_with('@')) {
        return stored::run(&args);
    }
    let plan = plan_comparison(&args)?;
    let rounds = plan.rounds;
    if args.lab {
        // Before anything that could start a thread.
        enter_user_namespace_if_needed()?;
    }
    let sites = Sites::build_from_plan(&plan, &(Arc::new(serve_until_stop) as _))?;
    let live = args.output.shows_live_lines();
    let mut seen = |round: u32| {
        if live && round.is_multiple_of(rounds.div_ceil(4)) && round < rounds {
            output::print_note(&format!("round {round} of {rounds}"));
        }
    };
    let record = measure::run(
        &args.output,
        |show| compare::run(&plan, &sites, show, &mut seen),
        &mut |_| {},
    )?;
    Ok(record.exit_code())
}

fn plan_comparison(args: &Args) -> Result<ComparePlan, Failure> {
    let config = Config::load()?;
    let parts = args.rounds.saturating_mul(args.candidates.len() as u32 + 1);
    let each = args.within / parts.max(1);
    let token = match (args.tcp, args.lab) {
        (true, false) => args.access.read_access_token(None)?,
        _ => args.access.unused("only servers of TCP tests ask for one").map(|()| None)?,
    };
    let mut candidates = Vec::new();
    for text in &args.candidates {
        let candidate = candidate(args, &config, text, each);
        let mut candidate = candidate.map_err(|reason| {
            let failure = Failure::new(Fault::Usage, "compare", text, reason);
            failure.advise("linerate compare --help has examples")
        })?;
        if let Plan::Tcp(plan) = &mut candidate.plan {
            plan.server.token.clone_from(&token);
        }
        candidates.push(candidate);
    }
    Ok(ComparePlan { candidates, rounds: args.rounds, seed: args.seed })
}

/// A candidate as the user names it.
fn candidate(
    args: &Args,
    config: &Config,
    text: &str,
    each: Duration,
) -> Result<ComparisonCandidate, String> {
    let mut words = text.split(',');
    let target = words.next().unwrap_or_default();
    let keys =
        words.map(|word| word.split_once('=').ok_or_else(|| format!("{word:?} is no KEY=VALUE")));
    let mut keys: Vec<(&str, &str)> = keys.collect::<Result<_, _>>()?;
    if args.lab {
        let topology = laboratory::topology(text, target, &mut keys)?;
        let profile = Profile { host: topology.server.clone(), ..Profile::default() };
        let plan = plan_of(args, profile, DEFAULT_PORT, each, &keys)?;
        return Ok(ComparisonCandidate {
            topology: Some(Box::new(topology)),
            ..ComparisonCandidate::new(text, plan)
        });
    }
    if !target.contains("://") && paths::is_like_file(target) {
        return Err("it is a file, not a host; stored results are @ID, @NAME and @-1".to_owned());
    }
    let target: HostAndPort = target.parse()?;
    let profile = config.profile(&target.host, &KnownFlags::default());
    let usual = profile.port.unwrap_or(DEFAULT_PORT);
    if !args.tcp && !args.udp {
        target.without_port("ICMP").map_err(|failure| failure.reason)?;
    }
    let port = target.choose_port(None, usual).map_err(|failure| failure.reason)?;
    Ok(ComparisonCandidate::new(text, plan_of(args, profile, port, each, &keys)?))
}

/// Plan of the measurement of a host in each round.
fn plan_of(
    args: &Args,
    host: Profile,
    port: u16,
    each: Duration,
    keys: &[(&str, &str)],
) -> Result<Plan, String> {
    if args.tcp {
        let mut plan = tcp_plan(args, host, port, each);
        keys.iter().try_for_each(|(key, value)| set_tcp(&mut plan, key, value))?;
        return Ok(Plan::Tcp(plan));
    }
    let transport = if args.udp { PingTransport::Udp } else { PingTransport::Icmp };
    let mut plan = PingPlan {
        sizes_bytes: vec![args.size],
        count: Some(args.count),
        mode: PingMode::Flood,
        deadline_ns: Some(span_nanos(each.max(PROBES_MIN))),
        ..args.round_trip.ping_plan(host, transport, port)
    };
    keys.iter().try_for_each(|(key, value)| set_ping(&mut plan, key, value))?;
    Ok(Plan::Ping(plan))
}

fn tcp_plan(args: &Args, host: Profile, port: u16, each: Duration) -> TcpPlan {
    TcpPlan {
        server: ServerPlan {
            profile: host.name,
            known: host.known,
            family: args.round_trip.family.family(),
            bind: args.round_trip.bind.clone(),
            ..ServerPlan::new(None, host.host, port)
        },
        test: TcpTest {
            directions: if args.reverse { TcpDirections::Down } else { TcpDirections::Up },
            finish: Finish::TimeNs(span_nanos(each.clamp(TCP_MIN, TCP_MAX))),
            dscp: args.round_trip.dscp,
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    }
}

fn set_ping(plan: &mut PingPlan, key: &str, value: &str) -> Result<(), String> {
    match key {
        "dscp" => plan.dscp = Some(parse_dscp(value)?),
        "family" => plan.family = Some(family(value)?),
        "size" => plan.sizes_bytes = vec![number(key, value)?],
        "ttl" => plan.ttl = Some(number(key, value)?),
        _ => return Err(format!("{key:?} is none of dscp, family, size, ttl")),
    }
    Ok(())
}

fn set_tcp(plan: &mut TcpPlan, key: &str, value: &str) -> Result<(), String> {
    match key {
        "dscp" => plan.test.dscp = Some(parse_dscp(value)?),
        "family" => plan.server.family = Some(family(value)?),
        "cc" => plan.test.congestion_control = Some(value.to_owned()),
        "streams" => plan.test.streams = number(key, value)?,
        "window" => {
            let window: Bytes = value.parse().map_err(|_| format!("{value:?} is no size"))?;
            plan.test.window_bytes = Some(window.count());
        }
        _ => return Err(format!("{key:?} is none of dscp, family, cc, streams, window")),
    }
    Ok(())
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{value:?} is no {key}"))
}

fn family(value: &str) -> Result<IpFamily, String> {
    match value {
        "4" => Ok(IpFamily::V4),
        "6" => Ok(IpFamily::V6),
        _ => Err(format!("family {value:?} is neither 4 nor 6")),
    }
}
