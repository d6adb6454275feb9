//! The flags of commands that measure round-trip times, and what they fill in of a plan.

use std::time::Duration;

use linerate_core::record::{EcnCodepoint, IpFamily, PingPlan, PingTransport, WaitMode};
use linerate_core::units::{parse_dscp, parse_span};
use linerate_sys::clock;

use super::assert::AssertFlags;
use super::flags::{FamilyFlags, span_nanos};
use super::measure::OutputFlags;
use crate::config::Profile;

/// A mode of waiting by its name.
fn parse_wait(text: &str) -> Result<WaitMode, String> {
    if text == "poll" { Ok(WaitMode::Block) } else { text.parse() }
}

/// Number of probes to send.
fn parse_probe_count(text: &str) -> Result<u64, String> {
    let count = text.parse().map_err(|_| "it is a number from 1".to_owned())?;
    if count == 0 {
        return Err("there is nothing to send; leave it out to send until Ctrl-C".to_owned());
    }
    Ok(count)
}

/// Reads an IPv6 flow label: `74565` or `0x12345`.
fn parse_flow_label(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.ok().filter(|label| *label < 1 << 20).ok_or_else(|| "a label is 0 to 0xfffff".to_owned())
}

/// Sending of one probe and waiting for its reply: flags of `ping`, `stamp` and `compare`.
#[derive(Debug, clap::Args)]
pub(super) struct RoundTripFlags {
    /// Wait this long for a reply; later it is lost
    #[arg(short = 'W', long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    timeout: Duration,
    /// Source address or interface
    #[arg(short = 'I', long, visible_short_alias = 'B', value_name = "ADDRESS|INTERFACE")]
    pub(super) bind: Option<String>,
    /// Differentiated services code point (DSCP): 0 to 63, EF, AF41, CS1, LE, VA
    #[arg(long, value_name = "N", value_parser = parse_dscp)]
    pub(super) dscp: Option<u8>,
    /// ECN bits of the probes: ect0 (classic) or ect1 (L4S); replies marked CE are counted
    #[arg(long, value_name = "ect0|ect1")]
    ecn: Option<EcnCodepoint>,
    /// Flow label of IPv6 probes, 20 bits: load balancing may choose the path by it
    #[arg(long, value_name = "N", value_parser = parse_flow_label)]
    flow_label: Option<u32>,
    #[command(flatten)]
    pub(super) family: FamilyFlags,
    /// Wait for replies by busy polling (spin) or sleeping (block, poll: both in poll(2)); auto =
    /// spin for floods, block otherwise
    #[arg(long = "wait-mode", alias = "wait", value_name = "MODE", default_value = "auto",
          value_parser = parse_wait)]
    wait: WaitMode,
    /// Run the prober with real-time priority (SCHED_FIFO); needs CAP_SYS_NICE
    #[arg(long)]
    real_time: bool,
    /// Do not use kernel timestamps
    #[arg(long)]
    pub(super) no_kernel_stamps: bool,
    /// Store every sample in order in the record
    #[arg(long)]
    samples: bool,
}

impl RoundTripFlags {
    /// The address family that was asked for.
    pub(super) fn family(&self) -> Option<IpFamily> {
        self.family.family()
    }

    /// A plan for a host with these flags, and defaults for the rest.
    pub(super) fn ping_plan(&self, host: Profile, transport: PingTransport, port: u16) -> PingPlan {
        PingPlan {
            host: host.host,
            profile: host.name,
            transport,
            port,
            family: self.family.family(),
            bind: self.bind.clone(),
            timeout_ns: span_nanos(self.timeout),
            wait: self.wait,
            kernel_stamps: !self.no_kernel_stamps,
            dscp: self.dscp,
            ecn: self.ecn,
            flow_label: self.flow_label,
            real_time: self.real_time,
            keep_samples: self.samples,
            ..PingPlan::default()
        }
    }
}

/// Flags of commands that probe one host until they have enough: `ping` and `stamp`.
#[derive(Debug, clap::Args)]
pub(super) struct ProberFlags {
    /// Probes to send per size [default: until Ctrl-C]
    #[arg(short, long, value_name = "N", value_parser = parse_probe_count)]
    count: Option<u64>,
    /// Time between probes
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    interval: Duration,
    /// Send at random times, with the interval as mean (Poisson)
    #[arg(long)]
    poisson: bool,
    /// Stop testing each size after this long
    #[arg(short = 'w', long, value_name = "TIME", value_parser = parse_span)]
    deadline: Option<Duration>,
    #[command(flatten)]
    pub(super) round_trip: RoundTripFlags,
    #[command(flatten)]
    pub(super) assert: AssertFlags,
    #[command(flatten)]
    pub(super) output: OutputFlags,
}

impl ProberFlags {
    /// A plan for a host with these flags, and defaults for the rest.
    pub(super) fn ping_plan(&self, host: Profile, transport: PingTransport, port: u16) -> PingPlan {
        PingPlan {
            count: self.count,
            poisson_seed: self.poisson.then(|| u64::from_ne_bytes(clock::random_bytes())),
            interval_ns: span_nanos(self.interval),
            deadline_ns: self.deadline.map(span_nanos),
            ..self.round_trip.ping_plan(host, transport, port)
        }
    }
}
