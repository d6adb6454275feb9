//! The flags of `linerate path run` beside those of the path.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::units::{Bytes, parse_span};

use super::flags::EmulatedPathFlags;
use super::run_ends::{EndPair, PrefixedAddress};

/// Flags of `linerate path run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) path: EmulatedPathFlags,
    /// Interfaces to create, each in a network namespace: . (the current one), new (a new one), a
    /// name of ip netns, a PID or a file
    #[arg(
        long,
        value_name = "NETNS:DEV,NETNS:DEV",
        default_value = ".:path0,new:path1",
        help_heading = "Ends"
    )]
    pub(super) ends: EndPair,
    /// Address of the left interface [default: 198.18.0.1/30 if an end is new]
    #[arg(long, value_name = "ADDRESS/LENGTH", help_heading = "Ends")]
    pub(super) left_address: Vec<PrefixedAddress>,
    /// Address of the right interface [default: 198.18.0.2/30 if an end is new]
    #[arg(long, value_name = "ADDRESS/LENGTH", help_heading = "Ends")]
    pub(super) right_address: Vec<PrefixedAddress>,
    /// MTU of the interfaces in bytes [default: the usual one of the link]
    #[arg(long, value_name = "BYTES", help_heading = "Ends",
          value_parser = clap::value_parser!(u32).range(68..=65_535))]
    pub(super) mtu: Option<u32>,
    /// Create Ethernet interfaces (tap), for bridging, instead of IP interfaces (tun)
    #[arg(long, help_heading = "Ends")]
    pub(super) tap: bool,
    /// Stop after this time [default: until Ctrl-C]
    #[arg(short = 't', long, value_name = "TIME", value_parser = parse_span,
          conflicts_with = "command")]
    pub(super) time: Option<Duration>,
    /// Maximum memory; a path that needs more is refused
    #[arg(long, value_name = "SIZE", default_value = "1 GiB")]
    pub(super) memory: Bytes,
    /// Print the result as JSON
    #[arg(short = 'J', long)]
    pub(super) json: bool,
    /// Print only the result
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
    /// Capture packets at the left end to this pcap file, with nanosecond timestamps
    #[arg(long, value_name = "FILE")]
    pub(super) pcap: Option<PathBuf>,
    /// Capture at the right end instead
    #[arg(long, requires = "pcap")]
    pub(super) pcap_right: bool,
    /// Write a plot of the queues over time to this file
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Command to run at the right end; the path is removed when it ends
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
}
