//! `linerate stamp`: delays in both directions to anything that reflects STAMP: routers, and
//! `linerate serve`.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::record::{Failure, PingPlan, PingTransport, STAMP_PORT, StampPlan};
use linerate_engine::rtt;
use linerate_proto::stamp::{Key, StampProbe};

use super::flags::nanos;
use super::ping::probe;
use super::round_trip_flags::ProberFlags;
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
    /// Probes per second, instead of an interval
    #[arg(long, value_name = "N", conflicts_with = "interval",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: Option<u32>,
    /// UDP payload in bytes, or a list of sizes to test in turn; from 72 (signed: 160) all
    /// extensions have room, 44 (112) is the bare packet [default: 72, signed 160]
    #[arg(short, long = "size", value_name = "BYTES", value_delimiter = ',')]
    sizes: Vec<u32>,
    /// Sign packets with the key in this file, hexadecimal digits of 16 bytes or more [default: the
    /// digits in the variable LINERATE_STAMP_KEY, else unsigned]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Ask the reflector to send its replies with this DSCP
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    reply_dscp: Option<u8>,
    #[command(flatten)]
    prober: ProberFlags,
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
    probe(&args.prober, |context| rtt::run_signed(&plan, key, context))
}

fn plan(args: &Args, key: Option<&Key>) -> Result<PingPlan, Failure> {
    let profile = Config::load()?.profile(&args.host.host, &KnownFlags::default());
    let authenticated = key.is_some();
    let usual = StampProbe::usual_bytes(authenticated) as u32;
    // The port in a profile is that of linerate serve.
    let port = args.host.port(args.port, STAMP_PORT)?;
    let plan = args.prober.plan(profile, PingTransport::Stamp, port);
    let interval_ns = |rate| nanos(Duration::from_secs(1) / rate);
    Ok(PingPlan {
        sizes_bytes: if args.sizes.is_empty() { vec![usual] } else { args.sizes.clone() },
        interval_ns: args.rate.map_or(plan.interval_ns, interval_ns),
        ttl: Some(TTL),
        stamp: Some(StampPlan { authenticated, reply_dscp: args.reply_dscp }),
        ..plan
    })
}
