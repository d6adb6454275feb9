//! `linerate udp`: throughput, loss and delay variation of UDP to a server.

use std::time::Duration;

use linerate_core::record::{
    DEFAULT_PORT, Event, Failure, Fault, SearchPlan, UdpPlan, UdpTest, Via,
};
use linerate_core::units::{BitRate, Bytes, parse_span};
use linerate_engine::flow::udp;

use crate::command::measure::{self, Output};
use crate::command::tcp::{directions, family, finish, nanos};
use crate::command::udp_search::SearchSetting;
use crate::exit::Outcome;
use crate::live::UdpLines;

/// Flags of `linerate udp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Server: host name or address; it runs linerate serve, or the program given by --via
    host: String,
    /// Server port [default: 5210, or the usual port of the --via program]
    #[arg(short, long)]
    port: Option<u16>,
    /// Test against a server of another program: iperf3, iperf2, nuttcp, ttcp
    #[arg(long, value_name = "PROGRAM")]
    via: Option<Via>,
    /// Pace each stream at this payload rate in bit/s (100M = 10^8; 0 = unlimited); with --search,
    /// maximum IP-layer rate to offer [default: 1M, with --search 100G]
    #[arg(short = 'b', long, value_name = "RATE")]
    bitrate: Option<BitRate>,
    /// Search for the IP-layer capacity (RFC 9097), adjusting the rate to loss and delay
    #[arg(long, conflicts_with_all = ["bytes", "blocks", "parallel", "bidir", "omit"])]
    search: bool,
    /// Override search parameters: feedback=50ms low=30ms high=90ms errors=10 confirm=3 step=10
    /// delay=rtt|one-way; repeatable
    #[arg(long, value_name = "KEY=VALUE,...", requires = "search", value_delimiter = ',')]
    search_with: Vec<SearchSetting>,
    /// Datagram payload size, 16 to 65507 [default: fills a 1500-byte packet]
    #[arg(short = 'l', long, value_name = "SIZE")]
    length: Option<Bytes>,
    /// Test duration
    #[arg(short = 't', long, value_name = "TIME", default_value = "10s", value_parser = parse_span,
          conflicts_with_all = ["bytes", "blocks"])]
    time: Duration,
    /// Send this many bytes per direction instead of for --time, in whole datagrams
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with = "blocks")]
    bytes: Option<Bytes>,
    /// Send this many datagrams per direction instead of for --time
    #[arg(short = 'k', long, value_name = "N")]
    blocks: Option<u64>,
    /// Socket buffer size at both ends [default: sender: the kernel's default; receiver: up to 32
    /// MiB]
    #[arg(short = 'w', long, value_name = "SIZE")]
    window: Option<Bytes>,
    /// Number of parallel streams per direction, one thread each
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1)]
    parallel: u16,
    /// Reverse: the server sends, the client receives
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    reverse: bool,
    /// Bidirectional: both ends send at the same time
    #[arg(long)]
    bidir: bool,
    /// Omit datagrams sent in this time at the start from the result
    #[arg(short = 'O', long, value_name = "TIME", default_value = "0s", value_parser = parse_span)]
    omit: Duration,
    /// Time between interval reports
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    interval: Duration,
    /// Use IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Local address to bind to
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// Differentiated services code point (DSCP), 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    dscp: Option<u8>,
    /// Disable UDP GSO and GRO at both ends: one datagram per system call
    #[arg(long)]
    no_join: bool,
    /// Disable UDP GRO at the receiver only
    #[arg(long)]
    take_singly: bool,
    /// Pin this end's data threads to consecutive CPUs from N
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    /// Give up connecting to the server after this long
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_span)]
    connect_timeout: Duration,
    /// Retry for this long while the server is busy
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_span)]
    wait: Duration,
    /// Show every stream even if there are more than 16
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    output: Output,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    let plan = plan(&args)?;
    let mut lines = match args.search {
        true => UdpLines::of_search(&args.output),
        false => UdpLines::new(&args.output, args.parallel, args.verbose),
    };
    let record = measure::run(
        &args.output,
        |context| measure::while_busy(context, args.wait, |context| udp::run(&plan, context)),
        &mut |event: &Event| lines.event(event),
    )?;
    Ok(record.exit_code())
}

fn plan(args: &Args) -> Result<UdpPlan, Failure> {
    let length = args.length.map(|length| {
        u32::try_from(length.count()).map_err(|_| {
            let reason = "a datagram of 4 GiB or more";
            Failure::new(Fault::Usage, "use", "-l", reason).advise("at most 65507")
        })
    });
    Ok(UdpPlan {
        via: args.via,
        host: args.host.clone(),
        port: args.port.unwrap_or_else(|| args.via.map_or(DEFAULT_PORT, Via::default_port)),
        family: family(args.ipv4, args.ipv6),
        bind: args.bind.clone(),
        cpu: args.cpu,
        connect_timeout_ns: nanos(args.connect_timeout),
        test: UdpTest {
            directions: directions(args.reverse, args.bidir),
            streams: args.parallel,
            finish: finish(args.bytes, args.blocks, args.time),
            omit_ns: nanos(args.omit),
            interval_ns: nanos(args.interval),
            size_bytes: length.transpose()?,
            pace: pace(args),
            search: args.search.then(|| search(args)),
            window_bytes: args.window.map(Bytes::count),
            dscp: args.dscp,
            joined: !args.no_join,
            taken_singly: args.take_singly,
        },
    })
}

/// The pace; none for a search, or where zero asks for none.
fn pace(args: &Args) -> Option<BitRate> {
    let usual = || UdpPlan::default().test.pace;
    let asked = args.bitrate.map_or_else(usual, Some);
    asked.filter(|rate| !args.search && rate.bits_per_sec() > 0)
}

/// The parameters of a search.
fn search(args: &Args) -> SearchPlan {
    let rate_max = args.bitrate.filter(|rate| rate.bits_per_sec() > 0);
    let plan = SearchPlan { rate_max, ..SearchPlan::default() };
    args.search_with.iter().fold(plan, |plan, setting| setting.set(plan))
}
