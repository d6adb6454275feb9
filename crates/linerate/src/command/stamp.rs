//! `linerate stamp`: delays in both directions to anything that reflects STAMP: routers, and
//! `linerate serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use linerate_core::record::{
    DEFAULT_PORT, Failure, MetWay, NatMeeting, PingPlan, PingTransport, STAMP_PORT, StampPlan,
};
use linerate_core::units::parse_dscp;
use linerate_engine::rtt;
use linerate_engine::rtt::meet::{self, Rendezvous};
use linerate_proto::meet::MeetRole;
use linerate_proto::stamp::{ReflectorOptions, StampKey, StampProbe};
use linerate_sys::stop::Stop;

use super::flags::span_nanos;
use super::ping::run_probes;
use super::round_trip_flags::ProberFlags;
use super::stamp_key;
use super::target::{HostAndPort, parse_port};
use crate::config::{Config, KnownFlags};
use crate::exit::Outcome;
use crate::output;

/// Flags of `linerate stamp`. Letters mean what they mean for `linerate ping`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Reflector: host name or address, or HOST:PORT
    #[arg(required_unless_present_any = ["meet", "reflect"])]
    host: Option<HostAndPort>,
    /// For two ends behind NAT: meet the other at this host's `linerate serve --meet`, punch a
    /// hole, or have it pass on the packets
    #[arg(long, value_name = "HOST", conflicts_with_all = ["host", "port"], requires = "word")]
    meet: Option<HostAndPort>,
    /// Name of the meeting: the same at both ends, and known to nobody else
    #[arg(long, value_name = "WORD", requires = "meet", conflicts_with = "host",
          value_parser = NonEmptyStringValueParser::new())]
    word: Option<String>,
    /// Be the end of --meet that reflects, until no probe has come for 10 s
    #[arg(long, requires = "meet", conflicts_with = "host")]
    reflect: bool,
    /// UDP port of the reflector [default: 862]
    #[arg(short, long, value_name = "PORT", value_parser = parse_port)]
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
    #[arg(long, value_name = "N", value_parser = parse_dscp)]
    reply_dscp: Option<u8>,
    #[command(flatten)]
    prober: ProberFlags,
}

/// Largest time to live, so that the reflector sees the hops (RFC 8762 §4.1).
const TTL: u8 = 255;
/// Time that each end of --meet waits for the other: the reflector is started first.
const PROBER_WAITS: Duration = Duration::from_secs(60);
const REFLECTOR_WAITS: Duration = Duration::from_secs(600);

/// Runs the command. As ping: 0 when anything was answered, 1 when nothing was.
pub(crate) fn run(args: Args) -> Outcome {
    let key = match &args.key {
        Some(path) => Some(stamp_key::read(path)?),
        None => stamp_key::from_environment()?,
    };
    let (host, met) = match (&args.host, &args.meet) {
        (Some(host), _) => (host.clone(), None),
        (None, Some(third)) => {
            let at = rendezvous(third, &args)?;
            let stop = Stop::on_signals()?;
            if args.reflect {
                return reflect(&at, key, &stop);
            }
            let Some(met) = meet::meet_peer(&at, MeetRole::Measures, &stop)? else { return Ok(1) };
            (HostAndPort::from(met.peer), Some(met.meeting))
        }
        (None, None) => return Ok(2),
    };
    let plan = stamp_plan(&args, &host, met, key.as_ref())?;
    run_probes(&args.prober, |context| rtt::run_signed(&plan, key, context))
}

fn rendezvous(third: &HostAndPort, args: &Args) -> Result<Rendezvous, Failure> {
    let profile = Config::load()?.profile(&third.host, &KnownFlags::default());
    let port = third.choose_port(None, profile.port.unwrap_or(DEFAULT_PORT))?;
    let word = args.word.as_deref().unwrap_or_default();
    let wait = if args.reflect { REFLECTOR_WAITS } else { PROBER_WAITS };
    Rendezvous::from_host_and_word(&profile.host, port, args.prober.round_trip.family(), word, wait)
}

/// Reflects the probes of the other host of the rendezvous; 1 where it was stopped before.
fn reflect(at: &Rendezvous, key: Option<StampKey>, stop: &Stop) -> Outcome {
    output::print_note(&format!("waits at {} for the one that measures", at.third));
    let options = ReflectorOptions { key, ..ReflectorOptions::default() };
    let Some(met) = meet::reflect(at, options, None, stop)? else { return Ok(1) };
    let peer = match met.meeting.way {
        MetWay::Hole => format!("{}, through a punched hole", met.peer),
        MetWay::Relay => format!("a host behind NAT, passed on by {}", met.meeting.at),
    };
    output::print_note(&format!("reflected for {peer}"));
    Ok(0)
}

fn stamp_plan(
    args: &Args,
    host: &HostAndPort,
    met: Option<NatMeeting>,
    key: Option<&StampKey>,
) -> Result<PingPlan, Failure> {
    let profile = Config::load()?.profile(&host.host, &KnownFlags::default());
    let authenticated = key.is_some();
    let usual = StampProbe::usual_bytes(authenticated) as u32;
    // The port in a profile is that of linerate serve.
    let port = host.choose_port(args.port, STAMP_PORT)?;
    let plan = args.prober.ping_plan(profile, PingTransport::Stamp, port);
    let interval_ns = |rate| span_nanos(Duration::from_secs(1) / rate);
    Ok(PingPlan {
        sizes_bytes: if args.sizes.is_empty() { vec![usual] } else { args.sizes.clone() },
        interval_ns: args.rate.map_or(plan.interval_ns, interval_ns),
        ttl: Some(TTL),
        stamp: Some(StampPlan { authenticated, reply_dscp: args.reply_dscp, met }),
        ..plan
    })
}
