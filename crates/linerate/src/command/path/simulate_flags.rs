//! The flags of `linerate path simulate`, and what they ask for.

use std::path::PathBuf;
use std::time::Duration;

use linerate_core::record::{
    ControlName, Failure, Fault, Finish, LossRecovery, PathPlan, SimulatePlan, SimulatedTcp,
};
use linerate_core::simulate::{ScenarioError, Stack, TcpChoice, TcpModel, mtu_bytes};
use linerate_core::units::{Bytes, parse_span};

use super::flags::EmulatedPathFlags;
use crate::command::flags::span_nanos;
use crate::command::measure::DetailFlags;

/// Virtual time after which transfers that have not ended are given up.
const TRANSFER_TIME_MAX: Duration = Duration::from_secs(86_400);
/// Virtual time of flows without an end.
const TIME: Duration = Duration::from_secs(30);

/// Reads an amount above 0.
fn some_bytes(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if bytes.count() > 0 { Ok(bytes) } else { Err("there is nothing to send".to_owned()) }
}

/// Flags of `linerate path simulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    path: EmulatedPathFlags,
    /// Number of flows
    #[arg(long, short_alias = 'n', value_name = "N", default_value_t = 1, help_heading = "Flows",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    flows: u32,
    /// Simulated time [default: 30s, or with --bytes until all flows are complete]
    #[arg(
        short = 't',
        long,
        value_name = "TIME",
        value_parser = parse_span,
        help_heading = "Flows"
    )]
    time: Option<Duration>,
    /// Bytes to send per flow [default: unlimited]
    #[arg(long, value_name = "SIZE", help_heading = "Flows", value_parser = some_bytes)]
    bytes: Option<Bytes>,
    /// Start flows at random times within this span [default: one round trip if there are several
    /// flows]
    #[arg(long, value_name = "TIME", value_parser = parse_span, help_heading = "Flows")]
    start_spread: Option<Duration>,
    /// TCP stack: today (CUBIC, RACK, HyStart) or 1999 (Reno, 2 MB window)
    #[arg(long, value_name = "WHEN", default_value = "today", help_heading = "TCP")]
    tcp: StackEra,
    /// Congestion control: reno, cubic, bbr [default: that of the TCP stack]
    #[arg(
        short = 'C',
        long = "congestion",
        visible_alias = "cc",
        value_name = "NAME",
        help_heading = "TCP"
    )]
    cc: Option<ControlName>,
    /// Loss recovery: reno, newreno, sack, rack [default: that of the TCP stack]
    #[arg(long, value_name = "HOW", help_heading = "TCP")]
    recovery: Option<LossRecovery>,
    /// Receive window [default: that of the TCP stack]
    #[arg(long, value_name = "SIZE", help_heading = "TCP")]
    window: Option<Bytes>,
    /// Initial window in segments [default: that of the TCP stack]
    #[arg(long, value_name = "N", help_heading = "TCP",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    initial_window: Option<u32>,
    /// MTU in bytes [default: that of the link]
    #[arg(long, value_name = "BYTES", conflicts_with = "mss", help_heading = "TCP")]
    mtu: Option<u32>,
    /// TCP maximum segment size in bytes [default: MTU - 52]
    #[arg(long, value_name = "BYTES", help_heading = "TCP")]
    mss: Option<u32>,
    /// Disable HyStart: slow start ends at the first loss
    #[arg(long, help_heading = "TCP")]
    no_hystart: bool,
    /// Repeat with this many consecutive seeds
    #[arg(long, value_name = "K", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(super) runs: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) amount: DetailFlags,
    /// Write diagrams of the first run to this directory
    #[arg(long, value_name = "DIR")]
    pub(super) svg: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum StackEra {
    Today,
    #[value(name = "1999")]
    Of1999,
}

impl Args {
    /// Plan of the simulation, which is run once with each seed.
    pub(super) fn simulation(&self) -> anyhow::Result<SimulatePlan> {
        let path = self.path.path_plan()?;
        let tcp = self.tcp_model(&path)?;
        let flows = u64::from(self.flows);
        let finish = match (self.bytes, self.time) {
            (Some(bytes), _) => Finish::Bytes(bytes.count().saturating_mul(flows)),
            (None, time) => Finish::TimeNs(span_nanos(time.unwrap_or(TIME))),
        };
        let mut plan = SimulatePlan {
            path: Box::new(path),
            place: None,
            tcp: SimulatedTcp::from(&tcp),
            streams: self.flows,
            finish,
            omit_ns: 0,
            start_spread_ns: 0,
            time_max_ns: span_nanos(self.time.unwrap_or(TRANSFER_TIME_MAX)),
            background: None,
        };
        let facts = plan.direction_facts().map_err(refused)?;
        let rtt = facts[0].delay + facts[1].delay;
        let several = if self.flows > 1 { rtt } else { Duration::ZERO };
        plan.start_spread_ns = span_nanos(self.start_spread.unwrap_or(several));
        Ok(plan)
    }

    /// The TCP of the flows over such a path.
    fn tcp_model(&self, path: &PathPlan) -> Result<TcpModel, Failure> {
        let choice = TcpChoice {
            stack: match self.tcp {
                StackEra::Today => Stack::Today,
                StackEra::Of1999 => Stack::Of1999,
            },
            congestion_control: self.cc,
            recovery: self.recovery,
            window_bytes: self.window.map(Bytes::count),
            initial_window: self.initial_window,
            mss_bytes: self.mss,
            without_hystart: self.no_hystart,
        };
        let flag = if self.mss.is_some() { "--mss" } else { "--mtu" };
        let mtu_bytes = self.mtu.unwrap_or_else(|| mtu_bytes(path));
        choice.model_for_mtu(mtu_bytes).map_err(|error| usage_failure("set", flag, error))
    }
}

pub(super) fn refused(error: ScenarioError) -> Failure {
    match error {
        ScenarioError::Timeless => usage_failure(
            "simulate",
            "a path without rate and delay",
            "everything takes no time on it",
        )
        .advise("give it --rate or --link, and --delay"),
        error => usage_failure("simulate", "the path", error),
    }
}

fn usage_failure(attempt: &str, object: &str, reason: impl std::fmt::Display) -> Failure {
    Failure::new(Fault::Usage, attempt, object, reason)
}
