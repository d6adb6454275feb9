//! The flags of `linerate ceiling`, in groups: the path, the flow, bounds that are known, what is
//! asked, where the answer goes.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::theory::carrier::Carrier;
use linerate_core::theory::encapsulation::Encapsulation;
use linerate_core::theory::link::LinkTechnology;
use linerate_core::units::{BitRate, Bytes, Distance, Fraction, PacketRate, parse_span};

use crate::command::quantity::{rate_text, rate_with_unit, time_with_unit};

/// Flags that the tables of all links have no use for.
const ASKS_ABOUT_ONE_PATH: [&str; 28] = [
    "link",
    "carrier",
    "encap",
    "mtu",
    "rtt",
    "distance",
    "ipv6",
    "udp",
    "no_timestamps",
    "parallel",
    "window",
    "window_scale",
    "sndbuf",
    "congestion",
    "initial_window",
    "growth",
    "loss",
    "capacity",
    "sustained",
    "pps",
    "pace",
    "sender_rate",
    "receiver_rate",
    "reverse_link",
    "transfer",
    "time",
    "flows",
    "measured",
];

/// Flags of `linerate ceiling`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) path: PathFlags,
    #[command(flatten)]
    pub(super) flow: FlowFlags,
    #[command(flatten)]
    pub(super) bounds: BoundFlags,
    #[command(flatten)]
    pub(super) wanted: WantedFlags,
    /// Print the maximum frame rates of all Ethernet speeds and packet and cell rates of all
    /// SONET/SDH lines
    #[arg(long, conflicts_with_all = ASKS_ABOUT_ONE_PATH, help_heading = "Output")]
    pub(super) all_links: bool,
    /// Print the result as JSON
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
    /// Print the tables of --all-links as CSV
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub(super) csv: bool,
    /// Write plots of the rate by window, round-trip time and loss to this directory
    #[arg(long, value_name = "DIR", requires = "rtt", conflicts_with_all = ["udp", "all_links"],
          help_heading = "Output")]
    pub(super) svg: Option<PathBuf>,
}

/// The link and what packets are wrapped in.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Path")]
pub(super) struct PathFlags {
    /// Link of the sender: oc12, oc12-atm, 10g, ds3, vdsl2:50m, ... or any Ethernet rate
    #[arg(long, value_name = "LINK", required_unless_present = "all_links")]
    #[arg(value_parser = link_and_carrier)]
    pub(super) link: Option<(LinkTechnology, Option<Carrier>)>,
    /// Link-layer framing: aal5-llcsnap, aal5-vcmux, pos, pos-stuffed, pppoa-vcmux, ... [default:
    /// the usual one of the link]
    #[arg(long, value_name = "NAME", visible_alias = "atm")]
    pub(super) carrier: Option<Carrier>,
    /// Encapsulations, outermost first: vlan, qinq, mpls:2, pppoe, gre, vxlan, wireguard, esp-gcm,
    /// ...
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(super) encap: Vec<Encapsulation>,
    /// MTU of the link in bytes [default: the usual one of link and framing]
    #[arg(long, value_name = "BYTES")]
    pub(super) mtu: Option<u32>,
    /// Base round-trip time, without queueing
    #[arg(long, value_name = "TIME", value_parser = time_with_unit)]
    pub(super) rtt: Option<Duration>,
    /// One-way path length, to compare the round-trip time with that of light in fiber
    #[arg(long, value_name = "LENGTH", requires = "rtt")]
    pub(super) distance: Option<Distance>,
}

/// The flow and its ends.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Flow")]
pub(super) struct FlowFlags {
    /// Use IPv6 instead of IPv4
    #[arg(short = '6', long)]
    pub(super) ipv6: bool,
    /// Use UDP instead of TCP
    #[arg(long)]
    pub(super) udp: bool,
    /// Without TCP timestamps
    #[arg(long, conflicts_with = "udp")]
    pub(super) no_timestamps: bool,
    /// Number of parallel connections
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1)]
    pub(super) parallel: u32,
    /// Maximum advertised receive window per connection
    #[arg(short = 'w', long, value_name = "SIZE", requires = "rtt", conflicts_with = "udp")]
    pub(super) window: Option<Bytes>,
    /// Window scale in the SYN; without --window, use the largest window it allows
    #[arg(long, value_name = "N", requires = "rtt", conflicts_with = "udp")]
    pub(super) window_scale: Option<u8>,
    /// Kernel send buffer limit per connection; 0.6 of it holds data
    #[arg(long, value_name = "SIZE", requires = "rtt", conflicts_with = "udp")]
    pub(super) sndbuf: Option<Bytes>,
    /// Congestion control of the sender
    #[arg(short = 'C', long, value_name = "NAME", visible_alias = "cc", value_enum,
          default_value_t = CongestionArg::Cubic, conflicts_with = "udp")]
    pub(super) congestion: CongestionArg,
    /// Initial window in segments
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with = "udp")]
    pub(super) initial_window: u32,
    /// Window growth factor per round trip in slow start; 1.5 for stacks without byte counting
    /// (RFC 3465)
    #[arg(long, value_name = "FACTOR", default_value_t = 2.0, conflicts_with = "udp")]
    pub(super) growth: f64,
}

/// Bounds that are known from elsewhere.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Known bounds")]
pub(super) struct BoundFlags {
    /// Loss event rate per packet: 1e-4, 0.01%, 1/10000
    #[arg(long, value_name = "SHARE", requires = "rtt", conflicts_with = "udp")]
    pub(super) loss: Option<Fraction>,
    /// IP-layer capacity of the narrow link, in bit/s
    #[arg(long, value_name = "RATE", value_parser = rate_with_unit)]
    pub(super) capacity: Option<BitRate>,
    /// Sustained IP-layer rate of a policer or shaper, in bit/s
    #[arg(long, value_name = "RATE", value_parser = rate_with_unit)]
    pub(super) sustained: Option<BitRate>,
    /// Forwarding rate of the slowest device, in packets per second
    #[arg(long, value_name = "RATE")]
    pub(super) pps: Option<PacketRate>,
    /// Payload rate of the application per connection, in bit/s
    #[arg(long, value_name = "RATE", value_parser = rate_with_unit)]
    pub(super) pace: Option<BitRate>,
    /// Maximum payload rate of the sending host, in bit/s
    #[arg(long, value_name = "RATE", value_parser = rate_with_unit)]
    pub(super) sender_rate: Option<BitRate>,
    /// Maximum payload rate of the receiving host, in bit/s
    #[arg(long, value_name = "RATE", value_parser = rate_with_unit)]
    pub(super) receiver_rate: Option<BitRate>,
    /// Link of the reverse path, which carries the ACKs: 1m, adsl:1m, oc3, ...
    #[arg(long, value_name = "LINK", visible_alias = "reverse-rate", conflicts_with = "udp",
          value_parser = parse_link)]
    pub(super) reverse_link: Option<LinkTechnology>,
    /// Segments per ACK
    #[arg(long, value_name = "N", default_value_t = 2, requires = "reverse_link")]
    pub(super) ack_every: u32,
}

/// Transfer, flows and measured rate to compare with the ceiling.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Questions")]
pub(super) struct WantedFlags {
    /// Calculate the transfer time of this much payload (10GB = 10^10, 10G = 10 x 2^30) [default:
    /// 100 MB, 1 GB and 10 GB]
    #[arg(long, value_name = "SIZE", conflicts_with = "time")]
    pub(super) transfer: Option<Bytes>,
    /// Calculate the mean rate of a test of this duration, slow start included
    #[arg(short = 't', long, value_name = "TIME", requires = "rtt", conflicts_with = "udp",
          value_parser = parse_span)]
    pub(super) time: Option<Duration>,
    /// Number of flows at the bottleneck, to size its buffer
    #[arg(long, value_name = "N", requires = "rtt")]
    pub(super) flows: Option<u64>,
    /// Measured payload rate, to compare with the maximum and explain the difference
    #[arg(long, value_name = "RATE", value_parser = rate_with_unit)]
    pub(super) measured: Option<BitRate>,
}

/// A congestion control whose answer to loss is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum CongestionArg {
    /// RFC 5681
    Reno,
    /// RFC 9438
    Cubic,
    /// Version 1, as in Linux
    Bbr,
}

/// Reads a link whose name may end in a carrier, as `oc12-atm`.
fn link_and_carrier(text: &str) -> Result<(LinkTechnology, Option<Carrier>), String> {
    rate_text(text)?;
    linerate_core::path::link_and_carrier(text)
        .map_or_else(|| parse_link(text).map(|link| (link, None)), Ok)
}

/// Reads a link; a wrong name is answered with those that are near.
fn parse_link(text: &str) -> Result<LinkTechnology, String> {
    rate_text(text)?;
    text.parse::<LinkTechnology>().map_err(|error| {
        let names = linerate_core::similar_names(
            text,
            LinkTechnology::NAMED.iter().map(|known| known.name),
        );
        match names.as_slice() {
            [] => error.to_string(),
            names => format!("{text:?} is not a link; near it: {}", names.join(", ")),
        }
    })
}
