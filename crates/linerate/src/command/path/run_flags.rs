//! The flags of `linerate path run` beside those of the path.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::units::{Bytes, parse_span};

use super::flags::PathFlags;
use super::run_ends::{Address, Ends};

/// Flags of `linerate path run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) path: PathFlags,
    /// Devices to make, each in a namespace: . is here, new is one made for it, or a name of ip
    /// netns, a process number, a file
    #[arg(
        long,
        value_name = "NETNS:DEV,NETNS:DEV",
        default_value = ".:path0,new:path1",
        help_heading = "Ends"
    )]
    pub(super) ends: Ends,
    /// Address of the left device [default: 198.18.0.1/30 where an end is new]
    #[arg(long, value_name = "ADDRESS/LENGTH", help_heading = "Ends")]
    pub(super) left_address: Vec<Address>,
    /// Address of the right device [default: 198.18.0.2/30 where an end is new]
    #[arg(long, value_name = "ADDRESS/LENGTH", help_heading = "Ends")]
    pub(super) right_address: Vec<Address>,
    /// Longest IP packet of the devices [default: what is usual on the link]
    #[arg(long, value_name = "BYTES", help_heading = "Ends",
          value_parser = clap::value_parser!(u32).range(68..=65_535))]
    pub(super) mtu: Option<u32>,
    /// Make Ethernet devices, for bridges, instead of such that carry IP packets
    #[arg(long, help_heading = "Ends")]
    pub(super) tap: bool,
    /// Hold the path for this time [default: until Ctrl-C]
    #[arg(short = 't', long, value_name = "TIME", value_parser = parse_span,
          conflicts_with = "command")]
    pub(super) time: Option<Duration>,
    /// Refuse a path that needs more memory than this
    #[arg(long, value_name = "SIZE", default_value = "1 GiB")]
    pub(super) memory: Bytes,
    /// Print the result as JSON
    #[arg(short = 'J', long)]
    pub(super) json: bool,
    /// Print the result alone
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,
    /// Capture the left end into this file: pcap with times in ns
    #[arg(long, value_name = "FILE")]
    pub(super) pcap: Option<PathBuf>,
    /// Capture the right end instead
    #[arg(long, requires = "pcap")]
    pub(super) pcap_right: bool,
    /// Draw the queues over time into this file
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// A command to run at the right end; the path ends with it
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<String>,
}
