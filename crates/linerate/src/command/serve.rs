//! `linerate serve`: the other end of a test.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use linerate_core::record::DEFAULT_PORT;
use linerate_core::units::parse_span;
use linerate_server::admission::Limits;
use linerate_server::listen::{LogEntry, ServeOptions, Server};
use linerate_sys::stop::Stop;

use crate::exit::Outcome;
use crate::output;

/// Flags of `linerate serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Port for TCP tests and UDP echo
    #[arg(short, long, default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Address to answer on; all addresses of the host by default
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Tests at once; one keeps results clean
    #[arg(long, value_name = "N", default_value_t = Limits::default().tests)]
    max_tests: usize,
    /// Streams of one test, both directions together
    #[arg(long, value_name = "N", default_value_t = Limits::default().streams)]
    max_streams: u16,
    /// Longest test
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_span)]
    max_duration: std::time::Duration,
    /// End after the first test
    #[arg(short = '1', long)]
    one_off: bool,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    let stop = Stop::on_signals()?;
    let limits = Limits {
        tests: args.max_tests,
        streams: args.max_streams,
        duration: args.max_duration,
        ..Limits::default()
    };
    let address = args.bind.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    let server = bind(SocketAddr::new(address, args.port), limits, args.bind.is_none())?;
    let local = server.local_addr()?;
    let echo = if server.echoes() { "TCP tests and UDP echo" } else { "TCP tests" };
    output::note(&format!("linerate: serving on {local}, {echo}"));
    if !server.echoes() {
        output::note("linerate: no UDP echo: another program has that UDP port");
    }
    output::note(&format!(
        "linerate: from another host: linerate tcp HOST -p {port}, linerate ping --udp HOST",
        port = local.port()
    ));
    output::note(&format!(
        "linerate: limits: {} at once, {} streams, {} s a test; Ctrl-C ends",
        if limits.tests == 1 { "1 test".to_owned() } else { format!("{} tests", limits.tests) },
        limits.streams,
        limits.duration.as_secs()
    ));
    let one_off = args.one_off.then(|| stop.clone());
    let log = move |entry: &LogEntry<'_>| {
        let peer = entry.peer.map_or_else(String::new, |peer| format!("{peer}: "));
        output::note(&format!("{peer}{}", entry.line));
        if let Some(stop) = one_off.as_ref().filter(|_| entry.tested) {
            stop.ask();
        }
    };
    server.run(&stop, &log);
    Ok(0)
}

/// Binds both families at once, or IPv4 alone on a host without IPv6.
fn bind(
    local: SocketAddr,
    limits: Limits,
    any: bool,
) -> Result<Server, linerate_core::record::Failure> {
    match Server::bind(&ServeOptions { local, limits }) {
        Err(failure) if any && failure.attempt.starts_with("open TCP socket") => {
            let local = SocketAddr::new(linerate_sys::tcp::any_address(false), local.port());
            Server::bind(&ServeOptions { local, limits })
        }
        result => result,
    }
}
