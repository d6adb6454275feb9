//! `linerate rrul`: the Realtime Response Under Load test: four TCP streams each way, each of
//! another class of service, and probes of several classes before and beside them. It is a TCP test
//! both ways with its probes; only the defaults are its own.
//!
//! # Source
//! flent 2.3.0, `rrul`: streams BE, BK (CS1), CS5 and EF each way; probes by UDP of BE, BK and EF
//! and by ICMP; 60 s of load after 5 s without.

use linerate_engine::throughput;
use std::path::PathBuf;
use std::time::Duration;

use linerate_core::record::{
    DEFAULT_PORT, Event, Failure, Finish, PingTransport, ProbeKind, ProbePlan, RecordStatus,
    ServerPlan, TcpDirections, TcpPlan, TcpTest,
};
use linerate_core::units::parse_span;

use super::access::AccessFlags;
use super::assert::AssertFlags;
use super::export::write_flent;
use super::flags::{FamilyFlags, span_nanos};
use super::measure::{self, OutputFlags};
use super::target::{HostAndPort, parse_port};
use crate::config::{Config, KnownFlags};
use crate::exit::Outcome;
use crate::{output, paths};

/// The classes of the streams: best effort, CS1 for background (RFC 3662), CS5, EF (RFC 3246).
const STREAMS: [u8; 4] = [0, 8, 40, 46];
/// Interval of the rows: flent's STEP_SIZE.
const INTERVAL: Duration = Duration::from_millis(200);

/// Flags of `linerate rrul`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Server: a host that runs linerate serve, as HOST or HOST:PORT
    host: HostAndPort,
    /// Server port [default: 5210]
    #[arg(short, long, value_parser = parse_port)]
    port: Option<u16>,
    /// Duration of the load
    #[arg(short = 't', long, value_name = "TIME", default_value = "60s", value_parser = parse_span)]
    time: Duration,
    /// Probe the path without load for this long first
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_span)]
    idle: Duration,
    /// Probes per second of each of the four kinds, 1 to 250
    #[arg(long, value_name = "RATE", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=250))]
    probes: u32,
    /// Congestion control of the senders: cubic, reno, bbr, ... [default: each host's]
    #[arg(short = 'C', long, value_name = "NAME")]
    congestion: Option<String>,
    /// Write the result for flent: FILE.flent.gz
    #[arg(long, value_name = "FILE")]
    flent: Option<PathBuf>,
    #[command(flatten)]
    family: FamilyFlags,
    #[command(flatten)]
    access: AccessFlags,
    #[command(flatten)]
    known: KnownFlags,
    #[command(flatten)]
    assert: AssertFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// Runs `linerate rrul` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    let plan = tcp_plan(&args)?;
    let flags = &args.output;
    args.flent.as_deref().map_or(Ok(()), paths::check_writable)?;
    let begin = |event: &Event| match event {
        Event::Note(line) => output::print_note(line),
        Event::Connected(_) => {
            let seconds = args.time.as_secs_f64();
            output::print_note(&format!("loading the path both ways for {seconds} s"));
        }
        _ => {}
    };
    let record =
        measure::run(flags, |context| throughput::run_tcp(&plan, context), &mut { begin })?;
    // A test that did not begin has its own line.
    if let Some(path) = args.flent.as_ref().filter(|_| record.status != RecordStatus::Error) {
        write_flent(path, &record)?;
    }
    Ok(args.assert.judge_record(&record, record.exit_code(), flags.remark_printer()))
}

fn tcp_plan(args: &Args) -> Result<TcpPlan, Failure> {
    let profile = Config::load()?.profile(&args.host.host, &args.known);
    let port = args.host.choose_port(args.port, profile.port.unwrap_or(DEFAULT_PORT))?;
    let interval_ns = 1_000_000_000 / u64::from(args.probes);
    let udp = |dscp| ProbeKind { transport: Some(PingTransport::Udp), dscp: Some(dscp), ecn: None };
    let icmp = ProbeKind { transport: Some(PingTransport::Icmp), dscp: Some(0), ecn: None };
    let probes = ProbePlan {
        interval_ns,
        idle_count: u32::try_from(span_nanos(args.idle) / interval_ns).unwrap_or(u32::MAX).max(1),
        idle_interval_ns: Some(interval_ns),
        dscp: Some(0),
        ecn: None,
        beside: vec![udp(8), udp(46), icmp],
    };
    let server = ServerPlan {
        family: args.family.family(),
        profile: profile.name,
        known: profile.known,
        probes: Some(probes),
        token: args.access.read_access_token(None)?,
        ..ServerPlan::new(None, profile.host, port)
    };
    let test = TcpTest {
        directions: TcpDirections::Both,
        streams: STREAMS.len() as u16,
        dscps: STREAMS.to_vec(),
        finish: Finish::TimeNs(span_nanos(args.time)),
        interval_ns: span_nanos(INTERVAL),
        congestion_control: args.congestion.clone(),
        ..TcpTest::default()
    };
    Ok(TcpPlan { server, test, fast: false })
}
