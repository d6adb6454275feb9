//! A trial at a constant load, and what became of it.
//!
//! Loads are whole frames per second, as a tester sets them. Loss is counted against the frames
//! that the trial was to send when the tester fell clearly short of them, and against those sent
//! otherwise (RFC 9971 "Measurer": severe shortfall becomes loss).

use serde::{Deserialize, Serialize};

/// Share of the asked frames that may be missing on the sending side without counting as loss.
///
/// Below the widths that searches use (0.5 %), so that a load is never taken for passed at which
/// another one was offered.
pub const SHORTFALL_MAX: f64 = 0.001;

/// Nanoseconds of a second.
pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// Trials at least this long may stop when their loss is decided, ns.
pub(super) const EARLY_STOP_MIN_NS: u64 = 2 * SECOND_NS;

/// A trial to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadTrial {
    /// Intended load, frames per second of each port.
    pub load_fps: u64,
    /// Planned time of sending, ns; waits come on top (RFC 2544 §23).
    pub duration_ns: u64,
    /// The trial may end as soon as so many frames are lost: its verdict is known then. Received
    /// frames must be counted while it runs, so it is a hint.
    pub stop_at_lost: Option<u64>,
    /// Index of the goal that it is for.
    pub goal: usize,
    /// Reason for this load.
    pub why: Why,
}

impl LoadTrial {
    /// Whole frames of the trial: load times duration.
    pub fn frames(&self) -> u64 {
        frames(self.load_fps, self.duration_ns)
    }
}

/// Whole frames of a load in a time.
pub(super) fn frames(load_fps: u64, duration_ns: u64) -> u64 {
    let frames = u128::from(load_fps) * u128::from(duration_ns) / u128::from(SECOND_NS);
    u64::try_from(frames).unwrap_or(u64::MAX)
}

/// Reason why a load was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Why {
    /// Fills caches and settles clocks; not counted.
    WarmUp,
    /// The largest load, which is tried first.
    Maximum,
    /// Rate that the device forwarded at a load that was too much.
    Forwarded {
        /// Load that was too much.
        at_fps: u64,
    },
    /// A load below the smallest that failed, further down each time.
    Lower {
        /// Smallest load that failed.
        than_fps: u64,
    },
    /// A load above the largest that passed, further up each time.
    Higher {
        /// Largest load that passed.
        than_fps: u64,
    },
    /// A load between one that passed and one that failed.
    Between {
        /// Passed, or the bottom of the range.
        lower_fps: u64,
        /// Load that failed, frames/s.
        upper_fps: u64,
    },
    /// A load without loss so far, but not for long enough.
    Verify,
    /// Not decided yet: the goal asks for more trials at this load.
    Repeat,
    /// The next of a fixed list of loads.
    Listed,
    /// A trial that the search did not ask for; it counts all the same.
    Unasked,
}

/// Reason why a trial says nothing about the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Invalid {
    /// A link was down before, while or after frames were sent.
    LinkDown,
    /// An interface went away.
    Unplugged,
    /// The receiver itself dropped frames: a full ring, a full queue.
    ReceiverDropped,
    /// The generator got no processor time and sent in bursts or late.
    GeneratorStarved,
    /// Frames arrived at the port that sent them.
    Loop,
    /// Frames of this size do not fit a link.
    FrameTooLong,
    /// More different frames arrived than were sent.
    MoreReceivedThanSent,
    /// Anything else, in one line.
    Other(String),
}

/// Outcome of a trial. A list of these is all that resuming needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialOutcome {
    /// Intended load, as asked, frames per second.
    pub load_fps: u64,
    /// Duration, as asked, ns.
    pub duration_ns: u64,
    /// Frames put on the wire. Over `elapsed_ns` it is the offered load (RFC 2285 §3.5.2).
    pub sent: u64,
    /// Different frames of the trial that arrived at the right port.
    pub received: u64,
    /// Time of sending, ns: less than the duration after an early stop.
    pub elapsed_ns: u64,
    /// Ended at the hint of [`LoadTrial::stop_at_lost`].
    pub stopped_early: bool,
    /// Runs of missing frames, where the counter knows them.
    pub loss_runs: Option<u64>,
    /// The reason why the outcome does not count; `None` when it does.
    pub invalid: Option<Invalid>,
}

impl TrialOutcome {
    /// A trial that ran to its end.
    pub const fn complete(trial: &LoadTrial, sent: u64, received: u64) -> Self {
        Self {
            load_fps: trial.load_fps,
            duration_ns: trial.duration_ns,
            sent,
            received,
            elapsed_ns: trial.duration_ns,
            stopped_early: false,
            loss_runs: None,
            invalid: None,
        }
    }

    /// The reason why the outcome does not count. More frames back than sent is never the device's
    /// doing.
    pub fn invalidity(&self) -> Option<Invalid> {
        let excess = (self.received > self.sent).then_some(Invalid::MoreReceivedThanSent);
        self.invalid.clone().or(excess)
    }

    /// Frames that were to be sent in the time that it ran.
    pub fn intended(&self) -> u64 {
        let time = if self.stopped_early { self.elapsed_ns } else { self.duration_ns };
        frames(self.load_fps, time)
    }

    /// Offered load, frames per second; `None` when no time passed.
    pub fn offered_fps(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.sent as f64 * 1e9 / self.elapsed_ns as f64)
    }

    /// Frames sent that were not received.
    pub const fn lost_frames(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// True when clearly fewer frames were sent than asked ([`SHORTFALL_MAX`]).
    pub fn is_short(&self) -> bool {
        let missing = self.intended().saturating_sub(self.sent);
        missing as f64 > SHORTFALL_MAX * self.intended() as f64
    }

    /// Lost share: of the intended frames when the tester fell short, else of those sent. 1
    /// when there was nothing to lose.
    pub fn loss_ratio(&self) -> f64 {
        let expected = if self.is_short() { self.intended() } else { self.sent };
        if expected == 0 {
            return 1.0;
        }
        expected.saturating_sub(self.received) as f64 / expected as f64
    }

    /// Trial forwarding rate: the load times the share received (RFC 9971), frames per second.
    pub fn forwarding_fps(&self) -> f64 {
        self.load_fps as f64 * (1.0 - self.loss_ratio())
    }
}

/// Class of a load for a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoadBound {
    /// The load reaches the goal.
    Lower,
    /// The load fails the goal.
    Upper,
    /// More trials could make it either.
    Undecided,
}

/// A trial with its outcome, for the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FinishedTrial {
    /// Trial that was asked for.
    pub trial: LoadTrial,
    /// Outcome of the trial.
    pub outcome: TrialOutcome,
    /// Class of its load for each goal after the trial; empty when it did not count.
    pub bounds: Vec<LoadBound>,
}

impl FinishedTrial {
    /// True when the trial counts for the search.
    pub fn counts(&self) -> bool {
        self.trial.why != Why::WarmUp && self.outcome.invalidity().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(load_fps: u64, sent: u64, received: u64) -> TrialOutcome {
        let trial = LoadTrial {
            load_fps,
            duration_ns: 2 * SECOND_NS,
            stop_at_lost: None,
            goal: 0,
            why: Why::Maximum,
        };
        TrialOutcome::complete(&trial, sent, received)
    }

    #[test]
    fn loss_is_counted_against_what_was_sent_unless_the_tester_fell_short() {
        // 1000 fps for 2 s: 2000 frames. 1999 of them is within 0.1 % and no loss.
        assert_eq!(outcome(1000, 1999, 1999).loss_ratio(), 0.0);
        // 1500 of 2000 is no rounding: a quarter was not offered.
        let short = outcome(1000, 1500, 1500);
        assert!(short.is_short());
        assert_eq!((short.loss_ratio(), short.lost_frames()), (0.25, 0));
        assert_eq!(short.offered_fps(), Some(750.0));
        assert_eq!(short.forwarding_fps(), 750.0);
        // 2000 sent and 1500 back: the device's.
        assert_eq!(outcome(1000, 2000, 1500).loss_ratio(), 0.25);
        assert_eq!(outcome(1000, 0, 0).loss_ratio(), 1.0);
    }

    #[test]
    fn more_frames_than_sent_make_a_trial_invalid() {
        assert_eq!(outcome(1000, 2000, 2001).invalidity(), Some(Invalid::MoreReceivedThanSent));
        assert_eq!(outcome(1000, 2000, 2000).invalidity(), None);
    }

    #[test]
    fn a_stopped_trial_is_judged_by_the_time_it_ran() {
        // Stopped after 0.5 s: 500 frames, 5 of them lost.
        let stopped = TrialOutcome {
            elapsed_ns: SECOND_NS / 2,
            stopped_early: true,
            ..outcome(1000, 500, 495)
        };
        assert_eq!(stopped.intended(), 500);
        assert!((stopped.loss_ratio() - 0.01).abs() < 1e-12);
    }

    #[test]
    fn frames_are_whole() {
        // 14,880,952 fps for 0.2 s are 2,976,190.4 frames.
        assert_eq!(frames(14_880_952, SECOND_NS / 5), 2_976_190);
    }
}
