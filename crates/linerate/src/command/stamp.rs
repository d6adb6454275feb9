//! `linerate stamp`: delays in both directions to anything that reflects STAMP: routers, and
//! `linerate serve`.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::record::{
    Failure, PingMode, PingPlan, PingTransport, STAMP_PORT, StampPlan, WaitMode,
};
use linerate_core::units::parse_span;
use linerate_engine::rtt;
use linerate_proto::stamp::{Key, StampProbe};
use linerate_sys::clock;

use super::assert::AssertFlags;
use super::flags::{FamilyFlags, nanos};
use super::measure::{self, Output};
use super::ping::{Lines, exit_code};
use super::stamp_key;
use super::target::Target;
use crate::config::{Config, KnownFlags};
use crate::exit::Outcome;

/// Flags of `linerate stamp`. Letters mean what they mean for `linerate ping`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Reflector: host name or address, or HOST:PORT
    host: Target,
    /// UDP port of the reflector [default: 862]
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// Probes to send per size [default: until Ctrl-C]
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Time between probes
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    interval: Duration,
    /// Probes per second, instead of an interval
    #[arg(long, value_name = "N", conflicts_with = "interval",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: Option<u32>,
    /// Send at random times, with the interval as mean (Poisson)
    #[arg(long)]
    poisson: bool,
    /// UDP payload in bytes, or a list of sizes to test in turn; from 72 (signed: 160) all
    /// extensions have room, 44 (112) is the bare packet [default: 72, signed 160]
    #[arg(short, long = "size", value_name = "BYTES", value_delimiter = ',')]
    sizes: Vec<u32>,
    /// Sign packets with the key in this file, hexadecimal digits of 16 bytes or more [default: the
    /// digits in the variable LINERATE_STAMP_KEY, else unsigned]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Wait this long for a reply; later it is lost
    #[arg(short = 'W', long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    timeout: Duration,
    /// Stop testing each size after this long
    #[arg(short = 'w', long, value_name = "TIME", value_parser = parse_span)]
    deadline: Option<Duration>,
    /// Source address or interface
    #[arg(short = 'I', long, visible_short_alias = 'B', value_name = "ADDRESS|INTERFACE")]
    bind: Option<String>,
    /// Differentiated services code point (DSCP) of the probes, 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    dscp: Option<u8>,
    /// Ask the reflector to send its replies with this DSCP
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    reply_dscp: Option<u8>,
    #[command(flatten)]
    family: FamilyFlags,
    /// Wait for replies by busy polling (spin) or sleeping (block)
    #[arg(long = "wait-mode", value_name = "MODE", default_value = "auto")]
    wait: WaitMode,
    /// Do not use kernel timestamps
    #[arg(long)]
    no_kernel_stamps: bool,
    /// Store every sample in order in the record
    #[arg(long)]
    samples: bool,
    #[command(flatten)]
    assert: AssertFlags,
    #[command(flatten)]
    output: Output,
}

/// Largest time to live, so that the reflector sees the hops (RFC 8762 §4.1).
const TTL: u8 = 255;

/// Runs the command. As ping: 0 when anything was answered, 1 when nothing was.
pub(crate) fn run(args: Args) -> Outcome {
    let key = match &args.key {
        Some(path) => Some(stamp_key::read(path)?),
        None => stamp_key::from_environment()?,
    };
    let plan = plan(&args, key.as_ref())?;
    let mut lines = Lines::new();
    let record =
        measure::run(&args.output, |context| rtt::run_signed(&plan, key, context), &mut |event| {
            lines.event(event)
        })?;
    Ok(args.assert.judge(&record, exit_code(&record), args.output.say()))
}

fn plan(args: &Args, key: Option<&Key>) -> Result<PingPlan, Failure> {
    let profile = Config::load()?.profile(&args.host.host, &KnownFlags::default());
    let authenticated = key.is_some();
    let usual = StampProbe::usual_bytes(authenticated) as u32;
    let interval = args.rate.map_or(args.interval, |rate| Duration::from_secs(1) / rate);
    let seed = || u64::from_ne_bytes(clock::random_bytes());
    Ok(PingPlan {
        host: profile.host,
        profile: profile.name,
        transport: PingTransport::Stamp,
        // The port in a profile is that of linerate serve.
        port: args.host.port(args.port, STAMP_PORT)?,
        family: args.family.family(),
        bind: args.bind.clone(),
        sizes_bytes: if args.sizes.is_empty() { vec![usual] } else { args.sizes.clone() },
        count: args.count,
        interval_ns: nanos(interval),
        mode: PingMode::Paced,
        timeout_ns: nanos(args.timeout),
        deadline_ns: args.deadline.map(nanos),
        wait: args.wait,
        kernel_stamps: !args.no_kernel_stamps,
        ttl: Some(TTL),
        dscp: args.dscp,
        keep_samples: args.samples,
        stamp: Some(StampPlan {
            authenticated,
            poisson_seed: args.poisson.then(seed),
            reply_dscp: args.reply_dscp,
        }),
        ..PingPlan::default()
    })
}
