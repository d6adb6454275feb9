//! `linerate udp`: throughput, loss and delay variation of UDP to a server.

use linerate_core::record::{Failure, Fault, SearchPlan, ServerPlan, UdpPlan, UdpTest};
use linerate_core::units::{BitRate, Bytes};
use linerate_engine::throughput;

use super::flags::{FlowTestFlags, span_nanos};
use super::udp_search::SearchSetting;
use crate::exit::Outcome;
use crate::live::UdpLines;

/// Flags of `linerate udp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flow: FlowTestFlags,
    /// Pace each stream at this payload rate in bit/s (100M = 10^8; 0 = unlimited); with --search,
    /// maximum IP-layer rate to offer [default: 1M, with --search 100G]
    #[arg(short = 'b', long, value_name = "RATE")]
    bitrate: Option<BitRate>,
    /// Search for the IP-layer capacity (RFC 9097), adjusting the rate to loss and delay
    #[arg(long, conflicts_with_all = ["bytes", "blocks", "parallel", "bidir", "omit",
          "probes", "probe_dscp",
          "probe_ecn", "rpm"])]
    search: bool,
    /// Override search parameters: feedback=50ms low=30ms high=90ms errors=10 confirm=3 step=10
    /// delay=rtt|one-way; repeatable
    #[arg(long, value_name = "KEY=VALUE,...", requires = "search", value_delimiter = ',')]
    search_with: Vec<SearchSetting>,
    /// Datagram payload size, 16 to 65507 [default: fills a 1500-byte packet]
    #[arg(short = 'l', long, value_name = "SIZE")]
    length: Option<Bytes>,
    /// Disable UDP GSO and GRO at both ends: one datagram per system call
    #[arg(long)]
    no_join: bool,
    /// Disable UDP GRO at the receiver only
    #[arg(long)]
    take_singly: bool,
    /// Pin this end's data threads to consecutive CPUs from N
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
}

/// Runs `linerate udp` by its flags.
pub(crate) fn run(args: Args) -> Outcome {
    let plan = udp_plan(&args)?;
    let flow = &args.flow;
    let mut lines = match args.search {
        true => UdpLines::of_search(&flow.output),
        false => UdpLines::new(&flow.output, flow.parallel),
    };
    flow.run(|context| throughput::run_udp(&plan, context), &mut |event| lines.print_event(event))
}

fn udp_plan(args: &Args) -> Result<UdpPlan, Failure> {
    let flow = &args.flow;
    let length = args.length.map(|length| {
        u32::try_from(length.count()).map_err(|_| {
            let reason = "a datagram of 4 GiB or more";
            Failure::new(Fault::Usage, "use", "-l", reason).advise("at most 65507")
        })
    });
    let server = flow.server(sender_pace(args))?;
    // A search judges the path by round trips of its own.
    let probes = server.probes.filter(|_| !args.search);
    Ok(UdpPlan {
        server: ServerPlan { probes, ..server },
        test: UdpTest {
            directions: flow.directions(),
            streams: flow.parallel,
            finish: flow.finish(),
            omit_ns: span_nanos(flow.omit),
            interval_ns: span_nanos(flow.interval),
            size_bytes: length.transpose()?,
            pace: sender_pace(args),
            window_bytes: flow.window_bytes(),
            dscp: flow.dscp,
            joined: !args.no_join,
            search: args.search.then(|| search(args)),
            taken_singly: args.take_singly,
        },
        cpu: args.cpu,
    })
}

/// Pace of the sender; none for a search, or where the flag is zero.
fn sender_pace(args: &Args) -> Option<BitRate> {
    let usual = || UdpPlan::default().test.pace;
    let asked = args.bitrate.map_or_else(usual, Some);
    asked.filter(|rate| !args.search && rate.bits_per_sec() > 0)
}

/// The parameters of a search.
fn search(args: &Args) -> SearchPlan {
    let rate_max = args.bitrate.filter(|rate| rate.bits_per_sec() > 0);
    let plan = SearchPlan { rate_max, ..SearchPlan::default() };
    args.search_with.iter().fold(plan, |plan, setting| setting.apply_to(plan))
}
