//! `linerate udp`: throughput, loss and delay variation of UDP to a server.

use std::time::Duration;

use linerate_core::record::{
    DEFAULT_PORT, Event, Failure, Fault, Finish, SearchPlan, TcpDirections, UdpPlan, Via,
};
use linerate_core::units::{BitRate, Bytes, parse_span};
use linerate_engine::datagram;

use crate::command::measure::{self, Output};
use crate::command::tcp::{family, nanos};
use crate::command::udp_search::SearchSetting;
use crate::exit::Outcome;
use crate::live::UdpLines;

/// Flags of `linerate udp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name or address of a host that runs linerate serve
    host: String,
    /// Port of the server: 5210, or the usual one of the program that --via names
    #[arg(short, long)]
    port: Option<u16>,
    /// Whose protocol the server speaks: iperf3, iperf2, nuttcp, ttcp
    #[arg(long, value_name = "PROGRAM")]
    via: Option<Via>,
    /// Payload bit/s of each stream (100M is 100,000,000 bit/s); 0 is as fast as possible; with
    /// --search the most that is offered, in bit/s of IP packets [default: 1M, a search: 100G]
    #[arg(short = 'b', long, value_name = "RATE")]
    bitrate: Option<BitRate>,
    /// Search for the capacity at the IP layer (RFC 9097): the rate follows losses and delay
    #[arg(long, conflicts_with_all = ["bytes", "blocks", "parallel", "bidir", "omit"])]
    search: bool,
    /// Other parameters of the search: feedback=50ms low=30ms high=90ms errors=10 confirm=3
    /// step=10 delay=rtt or one-way; may be repeated
    #[arg(long, value_name = "KEY=VALUE,...", requires = "search", value_delimiter = ',')]
    search_with: Vec<SearchSetting>,
    /// Payload of a datagram, 16 to 65507 [default: the most of a packet of 1500 bytes]
    #[arg(short = 'l', long, value_name = "SIZE")]
    length: Option<Bytes>,
    /// Send for this long
    #[arg(short = 't', long, value_name = "TIME", default_value = "10s", value_parser = parse_span,
          conflicts_with_all = ["bytes", "blocks"])]
    time: Duration,
    /// Send this many bytes in each direction instead, in whole datagrams
    #[arg(short = 'n', long, value_name = "SIZE", conflicts_with = "blocks")]
    bytes: Option<Bytes>,
    /// Send this many datagrams in each direction instead
    #[arg(short = 'k', long, value_name = "N")]
    blocks: Option<u64>,
    /// Socket buffers at both ends; when absent the receiver has as much as its host gives, up to
    /// 32 MiB, and the sender its kernel's default
    #[arg(short = 'w', long, value_name = "SIZE")]
    window: Option<Bytes>,
    /// Streams in each direction, each on a thread of its own
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1)]
    parallel: u16,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    reverse: bool,
    /// Both ends send at once
    #[arg(long)]
    bidir: bool,
    /// Leave out what is sent this long at the start
    #[arg(short = 'O', long, value_name = "TIME", default_value = "0s", value_parser = parse_span)]
    omit: Duration,
    /// Time between lines
    #[arg(short = 'i', long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    interval: Duration,
    /// Use IPv4
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Local address to send from
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// Differentiated services code point, 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    dscp: Option<u8>,
    /// Hand each datagram to the kernel, and take it, by itself (no UDP_SEGMENT, no UDP_GRO)
    #[arg(long)]
    no_join: bool,
    /// The receiver takes each datagram by itself (no UDP_GRO), also those that are sent joined
    #[arg(long)]
    take_singly: bool,
    /// Hold this end's first data thread to this processor, the others to those after it
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    /// How long to wait for the server to answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_span)]
    connect_timeout: Duration,
    /// When the server is busy, go on asking for this long
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_span)]
    wait: Duration,
    /// Show every stream, also when there are more than 16
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
    let until = linerate_sys::clock::monotonic() + args.wait;
    let record = measure::run(
        &args.output,
        |context| {
            loop {
                let record = datagram::run(&plan, context);
                let busy = record.failure.as_ref().is_some_and(Failure::is_busy);
                if !busy || context.stop.asked() || linerate_sys::clock::monotonic() >= until {
                    return record;
                }
                linerate_sys::clock::sleep(Duration::from_millis(500));
            }
        },
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
    let finish = match (args.bytes, args.blocks) {
        (Some(bytes), _) => Finish::Bytes(bytes.count()),
        (None, Some(count)) => Finish::Buffers(count),
        (None, None) => Finish::TimeNs(nanos(args.time)),
    };
    Ok(UdpPlan {
        via: args.via,
        host: args.host.clone(),
        port: args.port.unwrap_or_else(|| args.via.map_or(DEFAULT_PORT, Via::default_port)),
        family: family(args.ipv4, args.ipv6),
        bind: args.bind.clone(),
        directions: match (args.reverse, args.bidir) {
            (true, _) => TcpDirections::Down,
            (_, true) => TcpDirections::Both,
            _ => TcpDirections::Up,
        },
        streams: args.parallel,
        finish,
        omit_ns: nanos(args.omit),
        interval_ns: nanos(args.interval),
        size_bytes: length.transpose()?,
        pace: pace(args),
        search: args.search.then(|| search(args)),
        window_bytes: args.window.map(Bytes::count),
        dscp: args.dscp,
        joined: !args.no_join,
        taken_singly: args.take_singly,
        cpu: args.cpu,
        connect_timeout_ns: nanos(args.connect_timeout),
    })
}

/// The pace; none for a search, or where zero asks for none.
fn pace(args: &Args) -> Option<BitRate> {
    let usual = || UdpPlan::default().pace;
    let asked = args.bitrate.map_or_else(usual, Some);
    asked.filter(|rate| !args.search && rate.bits_per_sec() > 0)
}

/// The parameters of a search.
fn search(args: &Args) -> SearchPlan {
    let rate_max = args.bitrate.filter(|rate| rate.bits_per_sec() > 0);
    let plan = SearchPlan { rate_max, ..SearchPlan::default() };
    args.search_with.iter().fold(plan, |plan, setting| setting.set(plan))
}
