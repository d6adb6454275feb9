//! Flags of `linerate bench`.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::record::{BenchProtocol, BenchTest, CounterKind, GeneratorKind};
use linerate_core::units::{BitRate, FrameLen, PacketRate, parse_dscp, parse_span};

use super::contract::ContractArg;
use super::device::DeviceArg;
use super::goal::Goals;
use super::mix::MixArg;
use super::port::PortArg;
use crate::command::measure::OutputFlags;
use crate::config::KnownFlags;

/// Flags of `linerate bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Interfaces connected to the device under test, two or more; frames go from the first to the
    /// second. gateway= is the address of the device (routers), address= that of the tester
    #[arg(value_name = "INTERFACE[,address=IP][,gateway=IP]")]
    pub(super) ports: Vec<PortArg>,
    #[command(flatten)]
    pub(super) made: DeviceFlags,
    #[command(flatten)]
    pub(super) what: TestFlags,
    #[command(flatten)]
    pub(super) frames: Frames,
    #[command(flatten)]
    pub(super) tester: TesterFlags,
    /// Resume RUN, or the last unfinished run of the same plan
    #[arg(long, value_name = "RUN", num_args = 0..=1)]
    pub(super) resume: Option<Option<String>>,
    /// Print the plan and its duration without measuring
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Write the report to this directory [default: reports/STUDY-RUN next to the store]
    #[arg(long, value_name = "DIR")]
    pub(super) report: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: OutputFlags,
}

/// Flags whose values a study's plan has itself.
const OF_PLANS: [&str; 37] = [
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
    "link",
    "capacity",
    "rate_max",
    "seed",
    "force_interface",
];

/// A device that is made on this machine, or a study of devices.
#[derive(Debug, clap::Args)]
pub(super) struct DeviceFlags {
    /// Test a virtual device on this machine: cable, bridge, router, xdp-router, forwarder, or one
    /// with known properties:
    /// planted:frames_per_sec=N,buffer_frames=N,latency=TIME,loss=RATIO,stall=PERIOD/LENGTH
    #[arg(long, help_heading = "Device", conflicts_with = "ports")]
    pub(super) device: Option<DeviceArg>,
    /// Number of filter rules in the virtual router; a list tests each in turn: 0,1,10,100,1000
    #[arg(long, value_name = "N,...", help_heading = "Device", value_delimiter = ',')]
    pub(super) filters: Vec<u32>,
    /// Number of ports of the virtual device, 3 to 8, for --mesh [default: 4] and the tests
    /// addresses and blocking [default: 3]
    #[arg(long = "ports", value_name = "N", help_heading = "Device", requires = "device",
          value_parser = clap::value_parser!(u8).range(3..=8))]
    pub(super) port_count: Option<u8>,
    /// Run the virtual device inline (on the sender's CPU) or threaded (on CPUs of its own)
    #[arg(long, value_name = "WHERE", help_heading = "Device", requires = "device")]
    pub(super) placement: Option<DeviceContext>,
    /// Run a one-minute demonstration on a virtual router (study bench-demo)
    #[arg(long, help_heading = "Device", conflicts_with_all = OF_PLANS)]
    pub(super) demo: bool,
    /// Run a device study: bradner, or another from linerate study list
    #[arg(long = "study", alias = "plan", value_name = "STUDY", help_heading = "Device",
          conflicts_with_all = OF_PLANS, conflicts_with = "demo")]
    pub(super) plan: Option<String>,
}

/// Context in which a device that is made here runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum DeviceContext {
    /// In the sender's system call, on its CPU
    Inline,
    /// In separate kernel threads
    Threaded,
}

/// Tests of a benchmark, their length and their number.
#[derive(Debug, clap::Args)]
pub(super) struct TestFlags {
    /// Tests to run: flood, throughput, loss-curve, latency, back-to-back, recovery, reset,
    /// addresses, overload, blocking, soak, contract [default: flood,throughput,latency]
    #[arg(long, value_name = "TEST,...", help_heading = "Tests", value_delimiter = ',')]
    pub(super) tests: Vec<BenchTest>,
    /// Search goals of the throughput test (RFC 9971): strict (no loss in 60 s), typical (no loss
    /// in half of 21 trials of 1 s), verified, or
    /// NAME:final=1s,sum=21s,loss=0,exceed=50%,width=0.5%
    #[arg(long, value_name = "GOAL,...", help_heading = "Tests", default_value = "strict,typical")]
    pub(super) goals: Goals,
    /// Shorten trials to a tenth or less, for a rough estimate
    #[arg(long, help_heading = "Tests", conflicts_with = "rfc2544")]
    pub(super) quick: bool,
    /// Use the tests, frame sizes, waits and repetitions of RFC 2544
    #[arg(long, help_heading = "Tests")]
    pub(super) rfc2544: bool,
    /// Trial duration of tests other than the throughput search
    #[arg(long, value_name = "TIME", help_heading = "Tests", value_parser = parse_span)]
    pub(super) trial_time: Option<Duration>,
    /// Duration of the soak test
    #[arg(long, value_name = "TIME", help_heading = "Tests", value_parser = parse_span)]
    pub(super) soak_time: Option<Duration>,
    /// Wait before each trial, after the learning frames (RFC 2544: 2s)
    #[arg(long, value_name = "TIME", help_heading = "Tests", value_parser = parse_span)]
    pub(super) before: Option<Duration>,
    /// Wait after each trial for residual frames (RFC 2544: 2s)
    #[arg(long = "drain", alias = "wait", value_name = "TIME", help_heading = "Tests",
          value_parser = parse_span)]
    pub(super) wait: Option<Duration>,
    /// Wait after that for the device to restabilize (RFC 2544: 5s)
    #[arg(long, value_name = "TIME", help_heading = "Tests", value_parser = parse_span)]
    pub(super) settle: Option<Duration>,
    /// Repetitions of the latency and back-to-back tests
    #[arg(long, value_name = "N", help_heading = "Tests",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) repeat: Option<u32>,
    /// Command that restarts the device, for the reset test [default: set the tester's link down
    /// and up]
    #[arg(long, value_name = "COMMAND", help_heading = "Tests")]
    pub(super) reset_command: Option<String>,
    /// Traffic contract to test the policer or shaper against:
    /// cir=RATE,cbs=SIZE[,eir=RATE,ebs=SIZE], or for cells (frames of one size):
    /// pcr=CELLS/S[,cdvt=TIME],scr=CELLS/S,mbs=CELLS[,cell=BYTES]; adds the contract test
    #[arg(long, value_name = "CONTRACT", help_heading = "Tests")]
    pub(super) contract: Option<ContractArg>,
}

/// Frames, and the ports between which they go.
#[derive(Debug, clap::Args)]
pub(super) struct Frames {
    /// Frame sizes in bytes, including FCS [default: 64,128,256,512,1024,1280,1518]
    #[arg(long, value_name = "BYTES,...", help_heading = "Frames", value_delimiter = ',',
          conflicts_with_all = ["imix", "mix"])]
    pub(super) sizes: Vec<FrameLen>,
    /// Send simple IMIX: frames of 64, 594 and 1518 bytes in the ratio 7:4:1
    #[arg(long, help_heading = "Frames", conflicts_with = "mix")]
    pub(super) imix: bool,
    /// Send a mix of frame sizes, as SIZE:WEIGHT (64:7,594:4,1518:1) or in letters of RFC 6985
    #[arg(long, value_name = "BYTES:SHARE,...", help_heading = "Frames")]
    pub(super) mix: Option<MixArg>,
    /// Protocol in the frames: udp4, udp6, tcp4, tcp6, ethernet, decnet, appletalk, ipx
    #[arg(long, help_heading = "Frames", default_value = "udp4")]
    pub(super) protocol: BenchProtocol,
    /// VLAN IDs, outer tag first, at most two
    #[arg(long, value_name = "ID,...", help_heading = "Frames", value_delimiter = ',',
          value_parser = clap::value_parser!(u16).range(1..=4094))]
    pub(super) vlan: Vec<u16>,
    /// Differentiated services code point (DSCP): 0 to 63, EF, AF41, CS1
    #[arg(long, value_name = "N", help_heading = "Frames", default_value_t = 0,
          value_parser = parse_dscp)]
    pub(super) dscp: u8,
    /// Number of flows, up to a million
    #[arg(long, value_name = "N", help_heading = "Frames", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) flows: u32,
    /// Vary IP addresses as well as ports between flows
    #[arg(long, help_heading = "Frames")]
    pub(super) many_hosts: bool,
    /// Send flows in pseudorandom order (RFC 4814)
    #[arg(long, help_heading = "Frames")]
    pub(super) shuffle: bool,
    /// Send bursts of N back-to-back frames (RFC 2544 section 21: 16, 64, 256, 1024)
    #[arg(long, value_name = "N", help_heading = "Frames", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) burst: u32,
    /// Bidirectional: both ports send, each at the offered load
    #[arg(long, help_heading = "Frames", conflicts_with = "mesh")]
    pub(super) dual: bool,
    /// Fully meshed: every port sends to every other in turn (RFC 2889)
    #[arg(long, help_heading = "Frames")]
    pub(super) mesh: bool,
}

/// Facilities and checks of the tester.
#[derive(Debug, clap::Args)]
pub(super) struct TesterFlags {
    /// Frame generator: live, xdp, packet [default: the fastest that works]
    #[arg(long, value_name = "HOW", help_heading = "Tester", value_parser = generator)]
    pub(super) generator: Option<GeneratorKind>,
    /// Frame counter: xdp, packet [default: the fastest that works]
    #[arg(long, value_name = "HOW", help_heading = "Tester", value_parser = counter)]
    pub(super) counter: Option<CounterKind>,
    /// Line rate in bit/s, if the interfaces report none or a wrong one
    #[arg(long, value_name = "RATE", help_heading = "Tester")]
    pub(super) line_rate: Option<BitRate>,
    #[command(flatten)]
    pub(super) known: KnownFlags,
    /// Maximum offered load in frames per second per sending port
    #[arg(long, short_alias = 'b', value_name = "FRAMES/S", help_heading = "Tester")]
    pub(super) rate_max: Option<PacketRate>,
    /// Seed of the random generators
    #[arg(long, value_name = "N", help_heading = "Tester", default_value_t = 1)]
    pub(super) seed: u64,
    /// Allow an interface that carries this host's default route. The test then mixes with other
    /// traffic and floods that network
    #[arg(long, help_heading = "Tester")]
    pub(super) force_interface: bool,
}

fn generator(name: &str) -> Result<GeneratorKind, String> {
    linerate_core::tree::from_value(name.into()).map_err(|_| "one of live, xdp, packet".to_owned())
}

fn counter(name: &str) -> Result<CounterKind, String> {
    linerate_core::tree::from_value(name.into()).map_err(|_| "one of xdp, packet".to_owned())
}
