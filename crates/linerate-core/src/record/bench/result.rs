//! What a benchmark of a device found.

use serde::{Deserialize, Serialize};

use super::verdict::{ComparedParameter, Congestion, LatencyRepeats, Overload};
use super::{BenchTest, CounterKind, GeneratorKind, LatencyKind};
use crate::record::Distribution;

/// Results with frames of one length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchResult {
    /// Rate and latency of the tester alone, without the device.
    #[serde(default)]
    pub tester: Option<Tester>,
    /// Frame rate that the medium allows, frames per second of one port; null without a medium.
    #[serde(default)]
    #[serde(rename = "theoretical_frames_per_sec")]
    pub theoretical_fps: Option<f64>,
    /// Frames forwarded while all ports sent as fast as they could.
    #[serde(default)]
    pub flood: Option<LoadPoint>,
    /// Results of the plan's goals, in order.
    #[serde(default)]
    pub goals: Vec<GoalFound>,
    /// Events per second at which the device (or the tester's host) lost frames below the typical
    /// throughput, with its interval of 95 %: the reason for a strict result below the typical one.
    #[serde(default)]
    pub stalls_per_sec: Option<RateFound>,
    /// Loss at loads from the largest down.
    #[serde(default)]
    pub loss_curve: Vec<LoadPoint>,
    /// Latency at one or more loads; the first is the throughput.
    #[serde(default)]
    pub latency: Vec<BenchLatency>,
    /// Longest burst without loss.
    #[serde(default)]
    pub back_to_back: Option<BackToBack>,
    /// Time from overload back to no loss.
    #[serde(default)]
    pub recovery: Option<OverloadRecovery>,
    /// Time without forwarding after restarts.
    #[serde(default)]
    pub reset: Option<Reset>,
    /// Addresses that a bridge remembers.
    #[serde(default)]
    pub caching: Option<Caching>,
    /// Forwarding at loads beyond the throughput, rising.
    #[serde(default)]
    pub overload: Vec<LoadPoint>,
    /// Forwarding above the highest rate without loss, judged from all loads that were tried.
    #[serde(default)]
    pub overloaded: Option<Overload>,
    /// Head-of-line blocking: the share of its frames that the free output lost while the other was
    /// full, 0 … 1.
    #[serde(default)]
    pub blocking: Option<LoadPoint>,
    /// Presence of head-of-line blocking, and of back pressure on the senders.
    #[serde(default)]
    pub congestion: Option<Congestion>,
    /// Losses of the long run.
    #[serde(default)]
    pub soak: Option<Soak>,
    /// Policer or shaper that was found.
    #[serde(default)]
    pub contract: Option<ContractFound>,
    /// Every trial, in order.
    #[serde(default)]
    pub trials: Vec<BenchTrial>,
    /// Driver, speed and settings of each port when the benchmark began.
    #[serde(default)]
    pub ports: Vec<PortFacts>,
}

/// The tester without the device between its ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tester {
    /// Facility that sent the frames.
    pub generator: GeneratorKind,
    /// Facility that counted the frames.
    pub counter: CounterKind,
    /// Frames per second of one port that an independent counter took in whole.
    pub frames_per_sec: f64,
    /// It was measured over a cable of this program because the device is between the ports.
    pub over_own_cable: bool,
    /// Median delay of that cable with the counter, ns: it is printed beside the device's, and not
    /// taken off.
    #[serde(default)]
    pub latency_p50_ns: Option<f64>,
    /// Relative error of the mean rate at half the ceiling.
    #[serde(default)]
    pub rate_error: Option<f64>,
    /// Share of frames there that were late.
    #[serde(default)]
    pub late_share: Option<f64>,
}

/// A value with its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateFound {
    /// The estimated rate, per second.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Frames sent and forwarded at one load, all sending ports together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadPoint {
    /// Intended load, frames per second of all sending ports (Iload); null for all that they can.
    #[serde(default)]
    #[serde(rename = "intended_frames_per_sec")]
    pub intended_fps: Option<f64>,
    /// Rate at which they really sent (Oload).
    #[serde(rename = "offered_frames_per_sec")]
    pub offered_fps: f64,
    /// Rate at which frames were received from the device.
    #[serde(rename = "forwarded_frames_per_sec")]
    pub forwarded_fps: f64,
    /// Lost over sent, 0 … 1.
    pub loss_ratio: f64,
    /// Number of frames sent.
    pub sent: u64,
    /// Number of frames received.
    pub received: u64,
}

/// The highest load that a goal allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoalFound {
    /// Name of the search goal.
    pub goal: String,
    /// Largest load that reached it, frames per second of one sending port; null when none did.
    #[serde(default)]
    #[serde(rename = "lower_frames_per_sec")]
    pub lower_fps: Option<f64>,
    /// Smallest load that did not; null when every load did.
    #[serde(default)]
    #[serde(rename = "upper_frames_per_sec")]
    pub upper_fps: Option<f64>,
    /// Forwarding rate at the lower bound, by the trial at the goal's quantile.
    #[serde(default)]
    #[serde(rename = "conditional_frames_per_sec")]
    pub conditional_fps: Option<f64>,
    /// Trials that the goal needed.
    pub trials: u32,
    /// Time of these trials without waits.
    pub spent_ns: u64,
    /// It is within 10 % of the tester's own rate, or was ended by it.
    pub tester_limited: bool,
    /// Upper bound of the loss ratio with 95 % where nothing was lost: 3 over the frames sent.
    #[serde(default)]
    pub loss_ratio_below: Option<f64>,
    /// Frames that the device held when it lost the first of an overload; null where the buffer
    /// does not matter at this length of trials. Both bounds are corrected for these frames: less
    /// by them over the trial's time.
    #[serde(default)]
    pub held_frames: Option<f64>,
    /// Single frames are lost at every load: that is why the goal fails above the lower bound, and
    /// not the device's rate.
    #[serde(default)]
    pub scattered: Option<Scattered>,
    /// The reason for no result, or for a lower bound only.
    #[serde(default)]
    pub unfinished: Option<String>,
}

/// Single frames that are lost at every load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scattered {
    /// Lost frames over sent ones.
    pub loss_ratio: f64,
    /// Smallest with 95 %.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The largest load that lost no more than that, frames per second.
    #[serde(rename = "up_to_frames_per_sec")]
    pub up_to_fps: f64,
}

/// Delays at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchLatency {
    /// Definition of latency that was used.
    pub kind: LatencyKind,
    /// Frames per second of one sending port.
    #[serde(rename = "offered_frames_per_sec")]
    pub offered_fps: f64,
    /// Every frame of all repetitions, ns, the tester's own delay included.
    pub distribution: Distribution,
    /// Smallest delay of a frame.
    pub min_ns: u64,
    /// Mean delay of the frames.
    pub mean_ns: f64,
    /// Median delay of the frames.
    pub p50_ns: f64,
    /// 90th percentile of the delays.
    pub p90_ns: f64,
    /// 99th percentile of the delays.
    pub p99_ns: f64,
    /// 99.9th percentile of the delays.
    pub p999_ns: f64,
    /// Largest delay of a frame.
    pub max_ns: u64,
    /// 99.9th percentile less the smallest.
    pub pdv_ns: f64,
    /// Median over each repetition, smallest and largest of them.
    #[serde(default)]
    pub p50_range_ns: Option<(f64, f64)>,
    /// Figures of each repetition alone (RFC 8219 §7.2 and §7.3.1).
    #[serde(default)]
    pub repeated: Option<LatencyRepeats>,
    /// Number of frames with a delay.
    pub frames: u64,
}

/// The longest burst without loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackToBack {
    /// Length of each repetition, frames.
    pub runs: Vec<BurstRun>,
    /// Mean length of the bursts.
    pub mean_frames: f64,
    /// Length of the shortest burst.
    pub min_frames: u64,
    /// Length of the longest burst.
    pub max_frames: u64,
    /// Standard deviation (n - 1).
    pub stddev_frames: f64,
    /// Every burst up to the longest that was tried passed: there is no upper bound.
    pub unbounded: bool,
    /// Rate of frames within a burst, frames per second.
    #[serde(rename = "burst_frames_per_sec")]
    pub burst_fps: f64,
    /// Mean length over that rate (RFC 9004 §6.4).
    pub implied_buffer_ns: f64,
    /// Buffer time less the frames forwarded while the burst arrived.
    #[serde(default)]
    pub corrected_buffer_ns: Option<f64>,
    /// The corrected one at the throughput: frames that the buffer holds.
    #[serde(default)]
    pub buffer_frames: Option<f64>,
}

/// One search for the longest burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BurstRun {
    /// The longest without loss.
    pub frames: u64,
    /// Bursts that were tried.
    pub trials: u32,
}

/// Recovery from overload back to no loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverloadRecovery {
    /// Load before the drop, frames per second of one sending port.
    #[serde(rename = "overload_frames_per_sec")]
    pub overload_fps: f64,
    /// Load after the overload, frames/s.
    #[serde(rename = "after_frames_per_sec")]
    pub after_fps: f64,
    /// Times from the drop to the last frame that was lost, each repetition that recovered, ns; 0
    /// where nothing was lost after the drop.
    pub times_ns: Vec<u64>,
    /// Times of repetitions that lost frames to the end: recovery takes longer.
    #[serde(default)]
    pub not_recovered_ns: Vec<u64>,
    /// Repetitions in which nothing was lost at all: there was no overload to recover from.
    #[serde(default)]
    pub without_overload: u32,
}

/// Time without forwarding after restarts of the link or the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reset {
    /// The thing restarted: `link eth1`, or the command that the user gave.
    pub what: String,
    /// Frames lost over the rate (RFC 6201, frame-loss method), ns.
    pub by_loss_ns: Vec<u64>,
    /// Times from the last frame before to the first after (RFC 6201, time-stamp method), all
    /// outages of a repetition together, ns.
    pub by_stamps_ns: Vec<u64>,
    /// Outages of each repetition; where single frames are not distinguished, the longest alone.
    #[serde(default)]
    pub outages: Vec<u64>,
    /// Repetitions in which part of the frames was forwarded meanwhile: the methods differ.
    #[serde(default)]
    pub partial: u32,
}

/// Addresses that a bridge remembers, and its rate of learning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Caching {
    /// Most addresses that were all remembered (RFC 2889 §5.7).
    pub addresses: u64,
    /// Every number up to the largest that was tried was remembered.
    pub unbounded: bool,
    /// Fastest rate of new addresses at which all were learned (§5.8), frames per second.
    #[serde(default)]
    #[serde(rename = "learning_frames_per_sec")]
    pub learning_fps: Option<f64>,
}

/// A long run at one load, second by second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Soak {
    /// The load and its loss.
    pub point: LoadPoint,
    /// Length of the seconds that count, ns.
    pub duration_ns: u64,
    /// Seconds in which a frame was lost.
    pub errored_seconds: u64,
    /// Runs of lost frames.
    pub loss_runs: u64,
    /// The longest of them, frames.
    pub longest_loss_run: u64,
    /// The loss ratio may be as high as this, with 95 %.
    #[serde(default)]
    pub loss_ratio_high: Option<f64>,
    /// Runs of lost frames over time.
    #[serde(default)]
    pub loss_runs_per_sec: Option<RateFound>,
    /// The second that lost most; null when none lost anything.
    #[serde(default)]
    pub worst: Option<WorstSecond>,
    /// Seconds in which the tester sent clearly less than it was asked for.
    #[serde(default)]
    pub short_seconds: u64,
    /// Seconds that the tester disturbed, which are in none of the other figures.
    #[serde(default)]
    pub invalid_seconds: u64,
}

/// One second of a long run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorstSecond {
    /// Number of the second, from 0, with seconds that do not count.
    pub number: u64,
    /// Frames lost over frames sent.
    pub loss_ratio: f64,
}

/// The policer or shaper that was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContractFound {
    /// Sustained rate of frames, bit/s; null when no bucket was found that drops below it.
    #[serde(default)]
    pub cir_bps: Option<RateFound>,
    /// Bucket, bytes of frames.
    #[serde(default)]
    pub cbs_bytes: Option<RateFound>,
    /// Each parameter as ordered and as found, with its interval and its verdict.
    #[serde(default)]
    pub compared: Vec<ComparedParameter>,
    /// True when all is as ordered, within the intervals; null when nothing was ordered.
    #[serde(default)]
    pub as_ordered: Option<bool>,
    /// One line for each thing that was compared with the order.
    #[serde(default)]
    pub findings: Vec<String>,
    /// The steps of an activation test.
    #[serde(default)]
    pub steps: Vec<LoadPoint>,
}

/// One trial: its load, and the frames of each port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchTrial {
    /// The test that the trial belongs to.
    pub test: BenchTest,
    /// Start of the trial since that of the benchmark, ns.
    pub at_ns: u64,
    /// Planned time of sending, ns.
    pub duration_ns: u64,
    /// Intended load, frames per second of one sending port; null for all that it can.
    #[serde(default)]
    #[serde(rename = "intended_frames_per_sec")]
    pub intended_fps: Option<f64>,
    /// Counts of each sending port.
    pub ports: Vec<TrialPort>,
    /// CPU time that the host of a virtual machine took meanwhile, ns of all CPUs.
    #[serde(default)]
    pub stolen_ns: Option<u64>,
    /// PAUSE and priority flow control frames received at all ports; null when not counted. An
    /// interface that obeys them does not report them.
    #[serde(default)]
    pub pause_frames: Option<u64>,
    /// The reason why the trial says nothing about the device; null when it is valid.
    #[serde(default)]
    pub invalid: Option<InvalidTrialReason>,
    /// The reason of the search for making the trial, in words.
    #[serde(default)]
    pub why: Option<String>,
}

/// One sending port in one trial, with its counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialPort {
    /// Number of the sending port, from 0.
    pub port: u8,
    /// Number of frames sent.
    pub sent: u64,
    /// Rate from the first to the last frame, frames per second.
    #[serde(rename = "offered_frames_per_sec")]
    pub offered_fps: f64,
    /// Frames that left late.
    pub late: u64,
    /// The worst of them, ns.
    pub worst_late_ns: u64,
    /// Frames that a device which carries the load may have lost because they left nearer to each
    /// other than the rate asks, from the times at which they left. Where the counter reports each
    /// frame received, these are in `lost_explained`, and this is 0.
    #[serde(default)]
    pub could_lose: u64,
    /// Lost frames that the tester's send times explain one by one: sent too near to the one
    /// before, or near a pause, where the device runs on the tester's CPUs and may have paused
    /// with it. Counted against nobody.
    #[serde(default)]
    pub lost_explained: u64,
    /// Time in which the tester was away and sent nothing, ns.
    #[serde(default)]
    pub away_ns: u64,
    /// The longest time without such a pause, ns.
    #[serde(default)]
    pub steady_ns: u64,
    /// The rate in that time, frames per second; null for a flood and for too few frames.
    #[serde(default)]
    #[serde(rename = "steady_frames_per_sec")]
    pub steady_fps: Option<f64>,
    /// Frames that the driver refused. Over a veth from a program in the kernel these are frames
    /// for which the ring of its other end had no room: sent, and lost by the device.
    pub refused: u64,
    /// Different frames received at all other ports.
    pub received: u64,
    /// Received frames longer or shorter than any that was sent; null when not counted.
    #[serde(default)]
    pub other_length: Option<u64>,
    /// Copies of frames received before.
    #[serde(default)]
    pub duplicates: Option<u64>,
    /// Frames out of order.
    pub reordered: u64,
    /// Runs of missing frames at arrival.
    pub loss_runs: u64,
    /// Median delay of the frames, ns.
    #[serde(default)]
    pub latency_p50_ns: Option<u64>,
    /// Frames sent by the interface's own count, where it has one.
    #[serde(default)]
    pub interface_sent: Option<u64>,
    /// Frames received by the interfaces' own count, where they have one.
    #[serde(default)]
    pub interface_received: Option<u64>,
}

impl TrialPort {
    /// Frames that were not received; 0 when more were received than sent.
    pub const fn lost_frames(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Lost frames that may be the device's: those that send times explain are left out.
    pub const fn lost_elsewhere(&self) -> u64 {
        self.lost_frames().saturating_sub(self.lost_explained)
    }
}

/// The reason why a trial says nothing about the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum InvalidTrialReason {
    /// The generator sent less than it was asked for.
    GeneratorShort {
        /// The observation, with its figures.
        detail: String,
    },
    /// The counter's own ring or CPU dropped frames.
    CounterDrops {
        /// The observation, with its figures.
        detail: String,
    },
    /// A link was down, or went down.
    LinkDown {
        /// The observation, with its figures.
        detail: String,
    },
    /// More frames were received than sent, or a port received its own.
    Loop {
        /// The observation, with its figures.
        detail: String,
    },
    /// The host of the virtual machine took too much CPU time.
    StolenTime {
        /// The observation, with its figures.
        detail: String,
    },
    /// Counts of the program and of the interface do not agree.
    CountsDisagree {
        /// The observation, with its figures.
        detail: String,
    },
}

impl InvalidTrialReason {
    /// The observation that made the trial invalid, in words.
    pub fn detail(&self) -> &str {
        match self {
            Self::GeneratorShort { detail }
            | Self::CounterDrops { detail }
            | Self::LinkDown { detail }
            | Self::Loop { detail }
            | Self::StolenTime { detail }
            | Self::CountsDisagree { detail } => detail,
        }
    }
}

/// Driver, speed and settings of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortFacts {
    /// Name of the interface.
    pub interface: String,
    /// Driver, where the kernel names one.
    #[serde(default)]
    pub driver: Option<String>,
    /// Rate of its medium, bit/s.
    #[serde(default)]
    pub speed_bps: Option<u64>,
    /// Largest packet of the interface.
    pub mtu_bytes: u32,
    /// Hardware address of the interface.
    pub hardware_address: String,
    /// Notes on how its frames are sent and counted: placement, modes, settings asked for and
    /// refused.
    #[serde(default)]
    pub notes: Vec<String>,
}
