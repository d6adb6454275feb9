//! `linerate serve`: the other end of a test.

use std::net::{IpAddr, SocketAddr};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_core::record::{DEFAULT_PORT, Via};
use linerate_core::units::parse_span;
use linerate_engine::foreign::iperf2::{AddressValidation, TrustedNetwork};
use linerate_server::admission::Limits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{Ending, LogEntry, ServeOptions, Server};
use linerate_sys::stop::Stop;
use linerate_sys::tcp;
use tracing::level_filters::LevelFilter;

use crate::exit::Outcome;
use crate::personality::iperf3::GuardFlags;
use crate::{log, output};

/// Flags of `linerate serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Port to listen on, TCP and UDP
    #[arg(short, long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Address to listen on [default: all]
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Maximum concurrent tests; concurrent tests disturb each other
    #[arg(long, value_name = "N", default_value_t = Limits::default().tests)]
    max_tests: usize,
    /// Maximum streams per test, both directions together
    #[arg(long, value_name = "N", default_value_t = Limits::default().streams)]
    max_streams: u16,
    /// Maximum duration of a test
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_span)]
    max_duration: std::time::Duration,
    /// Also serve clients of these programs, as PROGRAM[:PORT],...: iperf3, iperf2 (includes ttcp),
    /// nuttcp; none disables all [default: all, each on its usual port if that is free]
    #[arg(long, value_name = "LIST", value_parser = parse_foreign)]
    foreign: Option<Foreign>,
    /// Allow iperf 2's UDP -R to clients in NETWORK, at most RATE (default 10M) to all of them
    /// together, although their source address is unverified: 192.168.0.0/16=500M
    #[arg(long, value_name = "NETWORK[=RATE]")]
    udp_reverse_to: Vec<TrustedNetwork>,
    /// Queue iperf3 clients for this long before refusing them as busy (nuttcp clients always queue
    /// 30 s; linerate clients retry with --wait)
    #[arg(long = "queue-time", alias = "queue", value_name = "TIME", default_value = "0s",
          value_parser = parse_span)]
    queue: std::time::Duration,
    /// Exit after one test
    #[arg(short = '1', long)]
    one_off: bool,
    /// Minimum level of log lines: error, warn (clients without a result), info (tests), debug
    /// (connections, decisions) or trace (first messages)
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = log_level())]
    log_level: LevelFilter,
    #[command(flatten)]
    guard: GuardFlags,
}

fn log_level() -> impl TypedValueParser<Value = LevelFilter> {
    PossibleValuesParser::new(log::LEVELS).try_map(|level| level.parse::<LevelFilter>())
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    log::begin(args.log_level);
    let stop = Stop::on_signals()?;
    linerate_sys::open_files::raise_limit();
    let guard = args.guard.guard()?;
    let limits = Limits {
        tests: args.max_tests,
        streams: args.max_streams,
        duration: args.max_duration,
        queue: args.queue,
        ..Limits::default()
    };
    let address = args.bind.unwrap_or_else(tcp::any_address_here);
    let foreign = args.foreign.unwrap_or(Foreign::Usual);
    let local = SocketAddr::new(address, args.port);
    let mut server = Server::bind(&ServeOptions { local, limits, foreign })?;
    let (local, limits) = (server.local_addr()?, server.limits());
    let echo = if server.echoes() { "TCP tests and UDP echo" } else { "TCP tests" };
    output::note(&format!("linerate: serving on {local}, {echo}"));
    if !server.echoes() {
        output::note("linerate: no UDP echo: another program has that UDP port");
    }
    let others: Vec<_> =
        server.foreign().map(|(via, port)| format!("{via} on port {port}")).collect();
    if !others.is_empty() {
        output::note(&format!("linerate: answers {} too", others.join(", ")));
    }
    output::note(&format!(
        "linerate: from another host: linerate tcp HOST -p {port}, linerate ping --udp HOST",
        port = local.port()
    ));
    output::note(&format!(
        "linerate: limits: {} at once, {} streams, {} s a test, {} connections; Ctrl-C ends",
        if limits.tests == 1 { "1 test".to_owned() } else { format!("{} tests", limits.tests) },
        limits.streams,
        limits.duration.as_secs(),
        limits.connections
    ));
    server.trust_udp(AddressValidation::default().and(&args.udp_reverse_to));
    if let Some(guard) = guard {
        server.guard_iperf3(guard);
        output::note("linerate: asks clients of iperf3 who they are, those of others do not say");
    }
    let one_off = args.one_off.then(|| stop.clone());
    let on_client = move |entry: &LogEntry<'_>| {
        let LogEntry { peer, line, .. } = entry;
        if let Ending::Failed(_) = entry.ending {
            tracing::warn!(%peer, "{line}");
            return;
        }
        tracing::info!(%peer, "{line}");
        one_off.iter().for_each(Stop::ask);
    };
    server.run(&stop, &on_client);
    Ok(0)
}

/// `iperf2,nuttcp:6000`, or `none`.
fn parse_foreign(text: &str) -> Result<Foreign, String> {
    if text == "none" {
        return Ok(Foreign::none());
    }
    let one = |item: &str| {
        let (name, port) =
            item.split_once(':').map_or((item, None), |(name, port)| (name, Some(port)));
        let via: Via = name.parse()?;
        // Both use one port and are told apart by their first bytes.
        let via = if via == Via::Ttcp { Via::Iperf2 } else { via };
        let port = port.map_or_else(|| Ok(via.default_port()), str::parse);
        Ok((via, port.map_err(|_| format!("{item}: a port is 0 to 65535"))?))
    };
    text.split(',').map(one).collect::<Result<_, String>>().map(Foreign::These)
}
