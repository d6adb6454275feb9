//! Flags of `linerate bench`.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::record::{BenchProtocol, BenchTest, CounterKind, GeneratorKind};
use linerate_core::units::{BitRate, FrameLen, PacketRate, parse_span};

use super::contract::Contract;
use super::device::Device;
use super::goal::Goals;
use super::mix::MixArg;
use super::port::PortArg;
use crate::command::measure::Output;

/// Flags of `linerate bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Interfaces of this host at the device, two or more; frames go from the first to the second.
    /// gateway= is the device's address there (routers), address= the tester's own
    #[arg(value_name = "INTERFACE[,address=IP][,gateway=IP]")]
    pub(super) ports: Vec<PortArg>,
    #[command(flatten)]
    pub(super) made: Made,
    #[command(flatten)]
    pub(super) what: What,
    #[command(flatten)]
    pub(super) frames: Frames,
    #[command(flatten)]
    pub(super) tester: Tester,
    /// Go on with the last unfinished run of the same plan, or with RUN
    #[arg(long, value_name = "RUN", num_args = 0..=1)]
    pub(super) resume: Option<Option<String>>,
    /// Only show what would be measured and how long it takes
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Write the report into this directory [default: reports/STUDY-RUN beside the store]
    #[arg(long, value_name = "DIR")]
    pub(super) report: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: Output,
}

/// What a study's plan says itself.
const OF_PLANS: [&str; 35] = [
    "ports",
    "port_count",
    "device",
    "filters",
    "placement",
    "tests",
    "goals",
    "quick",
    "rfc2544",
    "trial_time",
    "soak_time",
    "before",
    "wait",
    "settle",
    "repeat",
    "reset_command",
    "contract",
    "sizes",
    "imix",
    "mix",
    "protocol",
    "vlan",
    "dscp",
    "flows",
    "many_hosts",
    "shuffle",
    "burst",
    "dual",
    "mesh",
    "generator",
    "counter",
    "line_rate",
    "rate_max",
    "seed",
    "force_interface",
];

/// A device that is made on this machine, or a study of devices.
#[derive(Debug, clap::Args)]
pub(super) struct Made {
    /// Make the device on this machine: cable, bridge, router, xdp-router, forwarder, or
    /// planted:frames_per_sec=N,buffer_frames=N,latency=TIME,loss=SHARE,stall=EVERY/LENGTH
    #[arg(long, help_heading = "Device", conflicts_with = "ports")]
    pub(super) device: Option<Device>,
    /// Filter rules of the router, each number a device of its own: 0,1,10,100,1000
    #[arg(long, value_name = "N,...", help_heading = "Device", value_delimiter = ',')]
    pub(super) filters: Vec<u32>,
    /// Ports of a bridge or router made here, 3 to 8: for --mesh [default there: 4] and the tests
    /// addresses and blocking [default there: 3]
    #[arg(long = "ports", value_name = "N", help_heading = "Device", requires = "device",
          value_parser = clap::value_parser!(u8).range(3..=8))]
    pub(super) port_count: Option<u8>,
    /// Where the device runs: inline, on the processor of whoever sends, or threaded, on its own
    #[arg(long, value_name = "WHERE", help_heading = "Device", requires = "device")]
    pub(super) placement: Option<Placed>,
    /// Show this command in under a minute: the study bench-demo
    #[arg(long, help_heading = "Device", conflicts_with_all = OF_PLANS)]
    pub(super) demo: bool,
    /// Run a study of devices: bradner, or any that linerate study lists
    #[arg(long, value_name = "STUDY", help_heading = "Device",
          conflicts_with_all = OF_PLANS, conflicts_with = "demo")]
    pub(super) plan: Option<String>,
}

/// Where a device that is made here runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Placed {
    /// Within the sender's call
    Inline,
    /// On kernel threads of its own
    Threaded,
}

/// What is measured, how long, how often.
#[derive(Debug, clap::Args)]
pub(super) struct What {
    /// flood, throughput, loss-curve, latency, back-to-back, recovery, reset, addresses, overload,
    /// blocking, soak, contract [default: flood,throughput,latency]
    #[arg(long, value_name = "TEST,...", help_heading = "Tests", value_delimiter = ',')]
    pub(super) tests: Vec<BenchTest>,
    /// What the throughput is searched by: strict (60 s without loss), typical (half of 21 trials
    /// of 1 s), verified, NAME:final=1s,sum=21s,loss=0,exceed=50%,width=0.5%
    #[arg(long, value_name = "GOAL,...", help_heading = "Tests", default_value = "strict,typical")]
    pub(super) goals: Goals,
    /// Trials of a tenth and less of their length: a look, no result
    #[arg(long, help_heading = "Tests", conflicts_with = "rfc2544")]
    pub(super) quick: bool,
    /// The tests, lengths, waits and repetitions of RFC 2544
    #[arg(long, help_heading = "Tests")]
    pub(super) rfc2544: bool,
    /// Length of trials that no goal gives one
    #[arg(long, value_name = "TIME", help_heading = "Tests", value_parser = parse_span)]
    pub(super) trial_time: Option<Duration>,
    /// Length of a soak
    #[arg(long, value_name = "TIME", help_heading = "Tests", value_parser = parse_span)]
    pub(super) soak_time: Option<Duration>,
    /// Wait before each trial, after the frames by which a device learns (RFC 2544 has 2s)
    #[arg(long, value_name = "TIME", help_heading = "Tests", value_parser = parse_span)]
    pub(super) before: Option<Duration>,
    /// Wait after each trial for frames on their way (2s)
    #[arg(long, value_name = "TIME", help_heading = "Tests", value_parser = parse_span)]
    pub(super) wait: Option<Duration>,
    /// Wait after that for the device to come to rest (5s)
    #[arg(long, value_name = "TIME", help_heading = "Tests", value_parser = parse_span)]
    pub(super) settle: Option<Duration>,
    /// Repetitions of latency and bursts
    #[arg(long, value_name = "N", help_heading = "Tests",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repeat: Option<u32>,
    /// Command that restarts the device, for the test reset; without it the tester's own link goes
    /// down and up
    #[arg(long, value_name = "COMMAND", help_heading = "Tests")]
    pub(super) reset_command: Option<String>,
    /// What was ordered of the device: cir=RATE,cbs=SIZE[,eir=RATE,ebs=SIZE], or in cells, frames
    /// of one length: pcr=CELLS/S[,cdvt=TIME],scr=CELLS/S,mbs=CELLS[,cell=BYTES]; adds the test
    /// contract
    #[arg(long, value_name = "CONTRACT", help_heading = "Tests")]
    pub(super) contract: Option<Contract>,
}

/// Which frames, between which ports.
#[derive(Debug, clap::Args)]
pub(super) struct Frames {
    /// Lengths of frames with FCS [default: 64,128,256,512,1024,1280,1518]
    #[arg(long, value_name = "BYTES,...", help_heading = "Frames", value_delimiter = ',',
          conflicts_with_all = ["imix", "mix"])]
    pub(super) sizes: Vec<FrameLen>,
    /// Frames of 64, 594 and 1518 bytes as 7 to 4 to 1
    #[arg(long, help_heading = "Frames", conflicts_with = "mix")]
    pub(super) imix: bool,
    /// A mix of lengths with their shares, 64:7,594:4,1518:1, or letters of RFC 6985
    #[arg(long, value_name = "BYTES:SHARE,...", help_heading = "Frames")]
    pub(super) mix: Option<MixArg>,
    /// What frames carry: udp4, udp6, tcp4, tcp6, ethernet, decnet, appletalk, ipx
    #[arg(long, help_heading = "Frames", default_value = "udp4")]
    pub(super) protocol: BenchProtocol,
    /// VLAN tags, the outer first, two at most
    #[arg(long, value_name = "ID,...", help_heading = "Frames", value_delimiter = ',',
          value_parser = clap::value_parser!(u16).range(1..=4094))]
    pub(super) vlan: Vec<u16>,
    /// Differentiated services code point, 0 to 63
    #[arg(long, value_name = "N", help_heading = "Frames", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..64))]
    pub(super) dscp: u8,
    /// Different flows, up to a million
    #[arg(long, value_name = "N", help_heading = "Frames", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) flows: u32,
    /// Flows differ by addresses too, not by ports alone
    #[arg(long, help_heading = "Frames")]
    pub(super) many_hosts: bool,
    /// Flows come in an order that looks random (RFC 4814)
    #[arg(long, help_heading = "Frames")]
    pub(super) shuffle: bool,
    /// Frames back to back at a time (RFC 2544 section 21: 16, 64, 256, 1024)
    #[arg(long, value_name = "N", help_heading = "Frames", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) burst: u32,
    /// Two ports send to each other, both at the searched rate
    #[arg(long, help_heading = "Frames", conflicts_with = "mesh")]
    pub(super) dual: bool,
    /// Every port sends to every other in turn
    #[arg(long, help_heading = "Frames")]
    pub(super) mesh: bool,
}

/// How the tester works.
#[derive(Debug, clap::Args)]
pub(super) struct Tester {
    /// How frames are sent: live, xdp, packet [default: the fastest that a probe shows to work]
    #[arg(long, value_name = "HOW", help_heading = "Tester", value_parser = generator)]
    pub(super) generator: Option<GeneratorKind>,
    /// How frames are counted: xdp, packet [default: the fastest that a probe shows to work]
    #[arg(long, value_name = "HOW", help_heading = "Tester", value_parser = counter)]
    pub(super) counter: Option<CounterKind>,
    /// Rate of the medium, where the interfaces tell none or a wrong one
    #[arg(long, value_name = "RATE", help_heading = "Tester")]
    pub(super) line_rate: Option<BitRate>,
    /// No load above this, frames per second of each sending port
    #[arg(short = 'b', long, value_name = "FRAMES/S", help_heading = "Tester")]
    pub(super) rate_max: Option<PacketRate>,
    /// Of everything random
    #[arg(long, value_name = "N", help_heading = "Tester", default_value_t = 1)]
    pub(super) seed: u64,
    /// Use an interface also where this host's default route leaves by it. Other traffic of the
    /// host then meets the test, and the test meets whoever is there
    #[arg(long, help_heading = "Tester")]
    pub(super) force_interface: bool,
}

fn generator(name: &str) -> Result<GeneratorKind, String> {
    serde_json::from_value(name.into()).map_err(|_| "one of live, xdp, packet".to_owned())
}

fn counter(name: &str) -> Result<CounterKind, String> {
    serde_json::from_value(name.into()).map_err(|_| "one of xdp, packet".to_owned())
}
