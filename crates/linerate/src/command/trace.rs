//! `linerate trace`: the way to a host, hop by hop.

use std::time::Duration;

use linerate_core::record::{
    DEFAULT_PORT, Event, Failure, Finish, ServerPlan, TRACE_PORT, TcpDirections, TcpPlan, TcpTest,
    TracePlan, TraceProbes,
};
use linerate_core::units::{parse_dscp, parse_span};
use linerate_engine::trace;

use super::access::AccessFlags;
use super::flags::{FamilyFlags, span_nanos};
use super::measure::{self, OutputFlags};
use super::target::{HostAndPort, parse_port};
use crate::config::{Config, KnownFlags};
use crate::exit::Outcome;
use crate::output;

/// Flags of `linerate trace`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Target: host name or address; with --load also HOST:PORT
    host: HostAndPort,
    /// Rounds: each sends one probe to every hop
    #[arg(short, long, value_name = "N", default_value_t = TracePlan::default().count)]
    count: u32,
    /// Time between rounds
    #[arg(short, long, value_name = "TIME", default_value = "500ms", value_parser = parse_span)]
    interval: Duration,
    /// Wait this long for an answer
    #[arg(short = 'W', long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    timeout: Duration,
    /// Largest time to live (IPv6: hop limit)
    #[arg(short, long, value_name = "N", default_value_t = TracePlan::default().hops_max)]
    max_hops: u8,
    /// Load the path with TCP for a second series of rounds and find the hop of the queue; the
    /// target must run linerate serve
    #[arg(long)]
    load: bool,
    /// With --load: the target sends
    #[arg(short = 'R', long, requires = "load")]
    reverse: bool,
    /// With --load: streams
    #[arg(short = 'P', long, value_name = "N", default_value_t = 4, requires = "load")]
    parallel: u16,
    /// With --load: time of the load
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = parse_span)]
    time: Duration,
    /// Port of linerate serve at the target, for --load and --back [default: 5210]; asks for the
    /// path back too
    #[arg(short, long, value_name = "PORT", value_parser = parse_port)]
    port: Option<u16>,
    /// Probe with ICMP echo instead of UDP
    #[arg(long)]
    icmp: bool,
    /// Probe with the first segments of TCP connections to this port [default: 443]; takes
    /// CAP_NET_RAW
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true,
        default_missing_value = "443", conflicts_with_all = ["icmp", "probe_port"],
        value_parser = parse_port)]
    tcp: Option<u16>,
    /// Flows to measure in the rounds, each from a port of its own: names the router beside others
    /// whose flows lose
    #[arg(long, value_name = "N", default_value_t = TracePlan::default().flows,
        conflicts_with = "icmp")]
    flows: u16,
    /// Port that UDP probes go to, where nothing listens
    #[arg(long, value_name = "PORT", default_value_t = TRACE_PORT, value_parser = parse_port)]
    probe_port: u16,
    /// Differentiated services code point (DSCP) of the probes: 0 to 63, EF, AF41, CS1
    #[arg(long, value_name = "N", value_parser = parse_dscp)]
    dscp: Option<u8>,
    /// Source address or interface
    #[arg(short = 'I', long, visible_short_alias = 'B', value_name = "ADDRESS|INTERFACE")]
    bind: Option<String>,
    #[command(flatten)]
    family: FamilyFlags,
    /// Do not look for the routers that flows are spread over
    #[arg(long)]
    no_paths: bool,
    /// Ask the target for the path back: it must run linerate serve. Done without this flag with
    /// --port, with --load, and for hosts of the configuration file; others get probes only
    #[arg(long, conflicts_with = "no_back")]
    back: bool,
    /// Do not ask the target for the path back
    #[arg(long)]
    no_back: bool,
    /// Do not look for the largest packet
    #[arg(long)]
    no_mtu: bool,
    #[command(flatten)]
    access: AccessFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// Runs the command. 0 when the target answered, 1 when it did not.
pub(crate) fn run(args: Args) -> Outcome {
    let plan = trace_plan(&args)?;
    let mut live = |event: &Event| {
        if let Event::Connected(line) | Event::Note(line) = event {
            output::folded(line);
        }
    };
    let record = measure::run(&args.output, |context| trace::run(&plan, context), &mut live)?;
    let reached = record.trace.as_ref().is_some_and(|trace| trace.reached);
    Ok(match record.exit_code() {
        0 if !reached => 1,
        code => code,
    })
}

fn trace_plan(args: &Args) -> Result<TracePlan, Failure> {
    if !args.load {
        args.host.without_port("a trace")?;
    }
    let profile = Config::load()?.profile(&args.host.host, &KnownFlags::default());
    // At a host that nobody said to run linerate, a connection to its port is a scan: it is logged,
    // and some filters shut out who sends one.
    let known = args.back || args.load || args.port.is_some() || profile.name.is_some();
    let port = args.host.choose_port(args.port, profile.port.unwrap_or(DEFAULT_PORT))?;
    let token = args.access.read_access_token(None)?;
    let load = args.load.then(|| {
        let directions = if args.reverse { TcpDirections::Down } else { TcpDirections::Up };
        let finish = Finish::TimeNs(span_nanos(args.time));
        let test = TcpTest { directions, streams: args.parallel, finish, ..TcpTest::default() };
        let server = ServerPlan {
            family: args.family.family(),
            token: token.clone(),
            ..ServerPlan::new(None, profile.host.clone(), port)
        };
        Box::new(TcpPlan { server, test, fast: false })
    });
    Ok(TracePlan {
        host: profile.host,
        profile: profile.name,
        probes: match args.tcp {
            Some(_) => TraceProbes::Tcp,
            None if args.icmp => TraceProbes::Icmp,
            None => TraceProbes::Udp,
        },
        port: args.tcp.unwrap_or(args.probe_port),
        family: args.family.family(),
        bind: args.bind.clone(),
        dscp: args.dscp,
        count: args.count,
        flows: args.flows,
        interval_ns: span_nanos(args.interval),
        timeout_ns: span_nanos(args.timeout),
        hops_max: args.max_hops,
        paths: !args.no_paths,
        mtu: !args.no_mtu,
        load,
        back: (known && !args.no_back).then_some(port),
        token,
    })
}
