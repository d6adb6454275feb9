//! The flags of `linerate path simulate`, and what they ask for.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::path::{DirectionFacts, PathPlan};
use linerate_core::record::{Failure, Fault};
use linerate_core::simulate::{CongestionControl, Recovery, TcpModel};
use linerate_core::units::{Bytes, parse_span};

use super::flags::PathFlags;

/// IP and TCP headers with timestamps: 20 + 20 + 12 (RFC 9293, RFC 7323).
const HEADER_BYTES: u32 = 52;
/// Longest IP packet that TCP fills here.
const MTU_MAX: u32 = 65_535;
/// Virtual time after which transfers that have not ended are given up.
const TRANSFER_TIME_MAX: Duration = Duration::from_secs(86_400);
/// Virtual time of flows without an end.
const TIME: Duration = Duration::from_secs(30);

/// Flags of `linerate path simulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) path: PathFlags,
    /// How many flows
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, help_heading = "Flows",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) flows: u32,
    /// Virtual time [default: 30s, or until all flows have ended]
    #[arg(
        short = 't',
        long,
        value_name = "TIME",
        value_parser = parse_span,
        help_heading = "Flows"
    )]
    time: Option<Duration>,
    /// What each flow sends; without it flows have no end
    #[arg(long, value_name = "SIZE", help_heading = "Flows")]
    pub(super) bytes: Option<Bytes>,
    /// Flows begin at random times within this span [default: a round trip for several flows]
    #[arg(long, value_name = "TIME", value_parser = parse_span, help_heading = "Flows")]
    pub(super) start_spread: Option<Duration>,
    /// Whose TCP: of today (CUBIC, SACK, HyStart) or of 1999 (Reno, 2 MB window)
    #[arg(long, value_name = "WHEN", default_value = "today", help_heading = "TCP")]
    tcp: Stack,
    /// Congestion control
    #[arg(long, value_name = "NAME", help_heading = "TCP")]
    cc: Option<Control>,
    /// How losses are repaired
    #[arg(long, value_name = "HOW", help_heading = "TCP")]
    recovery: Option<Repair>,
    /// The receiver's window
    #[arg(long, value_name = "SIZE", help_heading = "TCP")]
    window: Option<Bytes>,
    /// Segments of the first flight
    #[arg(long, value_name = "N", help_heading = "TCP",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    initial_window: Option<u32>,
    /// Longest IP packet [default: that of the link]
    #[arg(long, value_name = "BYTES", conflicts_with = "mss", help_heading = "TCP")]
    mtu: Option<u32>,
    /// Payload of a full segment [default: MTU less 52]
    #[arg(long, value_name = "BYTES", help_heading = "TCP")]
    mss: Option<u32>,
    /// Slow start ends with the first loss only
    #[arg(long, help_heading = "TCP")]
    no_hystart: bool,
    /// Repeat with this many seeds, one above the other
    #[arg(long, value_name = "K", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) runs: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write diagrams of the first run into this directory
    #[arg(long, value_name = "DIR")]
    pub(super) svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Stack {
    Today,
    #[value(name = "1999")]
    Of1999,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Control {
    Reno,
    Cubic,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Repair {
    Reno,
    Newreno,
    Sack,
}

impl Args {
    /// The TCP of the flows over such a path.
    pub(super) fn tcp(&self, plan: &PathPlan) -> anyhow::Result<TcpModel> {
        let mut tcp = match self.tcp {
            Stack::Today => TcpModel::TODAY,
            Stack::Of1999 => TcpModel::OF_1999,
        };
        tcp.header_bytes = HEADER_BYTES;
        tcp.mss_bytes = match self.mss {
            Some(mss) => mss,
            None => self.mtu.unwrap_or_else(|| mtu_of(plan)).saturating_sub(HEADER_BYTES),
        };
        if tcp.mss_bytes == 0 || tcp.mss_bytes > MTU_MAX - HEADER_BYTES {
            let reason = format!("a packet has {HEADER_BYTES} to {MTU_MAX} bytes with its headers");
            let flag = if self.mss.is_some() { "--mss" } else { "--mtu" };
            return Err(usage("set", flag, reason).into());
        }
        if let Some(control) = self.cc {
            tcp.congestion_control = match control {
                Control::Reno => CongestionControl::RENO,
                Control::Cubic => CongestionControl::CUBIC,
            };
        }
        if let Some(recovery) = self.recovery {
            tcp.recovery = match recovery {
                Repair::Reno => Recovery::Reno,
                Repair::Newreno => Recovery::NewReno,
                Repair::Sack => Recovery::Sack,
            };
        }
        if let Some(window) = self.window {
            tcp.window_bytes = window.count();
        }
        tcp.initial_window = self.initial_window.unwrap_or(tcp.initial_window);
        // Linux has HyStart in CUBIC alone.
        let cubic = matches!(tcp.congestion_control, CongestionControl::Cubic { .. });
        tcp.hystart = tcp.hystart && cubic && !self.no_hystart;
        Ok(tcp)
    }

    /// The virtual time at which a run ends at the latest.
    pub(super) fn end(&self) -> Duration {
        let usual = if self.bytes.is_some() { TRANSFER_TIME_MAX } else { TIME };
        self.time.unwrap_or(usual)
    }
}

/// The longest packet that the path takes whole.
fn mtu_of(plan: &PathPlan) -> u32 {
    let of_link = plan.mtu_bytes_usual();
    plan.direction(false).mtu_bytes.map_or(of_link, |limit| of_link.min(limit))
}

/// A path on which a flow without an end would never let the clock go on.
pub(super) fn check_bounds(facts: &[DirectionFacts; 2], plan: &PathPlan) -> Result<(), Failure> {
    let bounded = |index: usize| {
        let direction = plan.direction(index == 1);
        facts[index].rate.is_some() || !facts[index].delay.is_zero() || direction.trace.is_some()
    };
    if bounded(0) || bounded(1) {
        return Ok(());
    }
    Err(usage("simulate", "a path without rate and delay", "everything takes no time on it")
        .advise("give it --rate or --link, and --delay"))
}

pub(super) fn usage(attempt: &str, object: &str, reason: impl std::fmt::Display) -> Failure {
    Failure::new(Fault::Usage, attempt, object, reason)
}
