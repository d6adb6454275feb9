//! How the clocks of two hosts agree, which decides what can be said of delays in one direction.

use serde::{Deserialize, Serialize};

/// State of the offset between two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClockState {
    /// Both clocks are kept right by something, or are one clock, and the packets do not contradict
    /// it.
    Synchronised,
    /// Not synchronised, but of a constant offset or drift. It was estimated from the smallest
    /// delays of both directions and subtracted, as if these were equal.
    OffsetEstimated,
    /// Not even that: only differences of delays within one direction mean something.
    Unsynchronised,
}

/// The program that reports the error of this host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClockKeeper {
    /// The kernel itself (adjtimex(2)).
    Kernel,
    /// The chrony daemon, chronyd.
    Chronyd,
    /// The PTP daemon, ptp4l.
    Ptp4l,
}

/// Cause of a lasting change of the smallest delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeCause {
    /// A path became longer or shorter, for good or while packets queued on it.
    Path,
    /// A step of this host's clock, as its monotonic clock shows.
    LocalClock,
    /// The remote clock: both directions changed by as much in opposite directions, so it was set,
    /// or runs at another rate since then.
    RemoteClock,
}

/// A lasting change of the smallest delays, found without any clock that is right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayChange {
    /// The first probe after it, from 0.
    pub probe: u64,
    /// Time at which that probe was sent, in ns since 1970 by this host's clock.
    pub at_unix_ns: u64,
    /// The path or the clock that changed.
    pub cause: ChangeCause,
    /// Growth of the delay there; 0 where no growth was found.
    pub there_ns: i64,
    /// Growth of the delay back; 0 where no growth was found.
    pub back_ns: i64,
}

/// The clocks of both ends during the probes of one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockAgreement {
    /// The size of the probes.
    pub payload_bytes: u32,
    /// State of the offset between both clocks.
    pub state: ClockState,
    /// Largest error of one-way delays; null where there are none.
    pub error_ns: Option<u64>,
    /// Remote clock less local clock at the first probe, as it was subtracted; null where nothing
    /// was.
    pub offset_ns: Option<i64>,
    /// Growth of the offset that was subtracted too, in ns per second, until the remote clock first
    /// changed; null without one.
    pub drift_ns_per_s: Option<f64>,
    /// Error that both ends claim for their clocks together; null where one claims nothing.
    pub claimed_error_ns: Option<u64>,
    /// The program that reports the error of this host's clock; null where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_by: Option<ClockKeeper>,
    /// The packets prove that claim wrong.
    pub claim_refuted: bool,
    /// Probes and answers are timed by this host's kernel, not by the program.
    pub kernel_stamps: bool,
    /// The next answer brought the time at which each answer really left.
    pub follow_up: bool,
    /// The reflector counts its answers itself, so that losses of both directions can be kept
    /// apart.
    pub stateful: bool,
    /// The reflector began its count anew so many times: it was started again, or took the probes
    /// for those of another session. Losses across that have no direction and are in none.
    #[serde(default)]
    pub restarts: u64,
    /// Probes with all four times.
    pub samples: u64,
    /// Lasting changes of the delays, in order; at most 64 of each cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<DelayChange>,
}

/// Least delay in errors of the offset for it to be known. An estimated offset makes the smallest
/// delays of both directions half of the smallest round trip, with that half as their error; larger
/// delays, as behind a standing queue, are more than that.
const ERRORS_MIN: f64 = 4.0;

impl ClockAgreement {
    /// True when one-way delays are known, and this one is more than the error of the clocks'
    /// offset.
    pub fn resolves_delay(&self, delay_ns: f64) -> bool {
        match (self.state, self.error_ns) {
            (ClockState::Synchronised, _) => true,
            (ClockState::OffsetEstimated, Some(error_ns)) => {
                delay_ns >= ERRORS_MIN * error_ns as f64
            }
            (ClockState::OffsetEstimated, None) | (ClockState::Unsynchronised, _) => false,
        }
    }
}
