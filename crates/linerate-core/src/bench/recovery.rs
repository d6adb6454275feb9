//! How long a device loses frames after an overload ends, and after a reset.
//!
//! Sources: RFC 2544 §26.5 (system recovery: from the drop of the load to the last lost frame),
//! RFC 6201 (reset time, by lost frames and by time stamps).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::LossPeriod;

/// Overload of RFC 2544 §26.5 as a share of the throughput.
pub const OVERLOAD_SHARE: f64 = 1.1;

/// Loads of a recovery trial, frames per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryLoads {
    /// First, for 60 s or more: 110 % of the throughput, or the largest load if that is less.
    pub overload_fps: u64,
    /// Then half of it.
    pub after_fps: u64,
    /// The overload is no more than the throughput: nothing to recover from.
    pub is_no_overload: bool,
}

impl RecoveryLoads {
    /// Loads for a device of such a throughput.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate that is not negative, and a cast keeps within the range of the type"
    )]
    pub fn new(throughput_fps: u64, max_fps: u64) -> Self {
        let overload = (throughput_fps as f64 * OVERLOAD_SHARE).round() as u64;
        let overload_fps = overload.min(max_fps);
        let is_no_overload = overload_fps <= throughput_fps;
        Self { overload_fps, after_fps: (overload_fps / 2).max(1), is_no_overload }
    }
}

/// When the load dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drop {
    /// Number of the first frame at the lower load.
    pub sequence: u64,
    /// The lower load, frames per second.
    pub fps: f64,
    /// Frames sent in all, both parts.
    pub sent: u64,
}

/// System recovery.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "recovery")]
pub enum Recovery {
    /// Nothing was lost in the overload: there was none.
    NoOverload,
    /// The last lost frame was sent so long after the drop; 0 when nothing was lost after it.
    Recovered {
        /// The time, s.
        seconds: f64,
        /// Frames lost after the drop.
        lost: u64,
    },
    /// Frames were lost to the end.
    NotRecovered {
        /// From the drop to the last frame, s: it takes longer.
        seconds: f64,
        /// Frames lost after the drop.
        lost: u64,
    },
}

/// Time from the drop of the load to the last lost frame, both when sent. `lost` are the runs of
/// missing frames in the order of sending. The device has not recovered when the last frame of all
/// is among them.
pub fn recovery(drop: &Drop, lost: &[LossPeriod]) -> Recovery {
    if lost.is_empty() {
        return Recovery::NoOverload;
    }
    let end = |run: &LossPeriod| run.first_sequence + run.length;
    let after = |run: &LossPeriod| end(run).saturating_sub(run.first_sequence.max(drop.sequence));
    let count = lost.iter().map(after).sum();
    let last = lost.iter().map(end).max().unwrap_or(0);
    let frames = last.saturating_sub(drop.sequence + 1);
    let seconds = if drop.fps > 0.0 { frames as f64 / drop.fps } else { 0.0 };
    if count > 0 && last >= drop.sent {
        return Recovery::NotRecovered { seconds, lost: count };
    }
    Recovery::Recovered { seconds, lost: count }
}

/// An outage as time stamps show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// Arrival of the last frame before it, ns.
    pub last_before_ns: u64,
    /// Arrival of the first frame after it, ns.
    pub first_after_ns: u64,
}

/// Reset time by both methods of RFC 6201.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResetTime {
    /// Lost frames over the offered load, s (the frame-loss method).
    pub by_loss_s: f64,
    /// Sum of the outages from last before to first after, s (the time-stamp method); `None` when
    /// time stamps were not kept.
    pub by_stamps_s: Option<f64>,
    /// Outages: more than one means that the device came back and went away again.
    pub outages: u64,
    /// The two methods differ by more than they can for an outage of all frames: the device
    /// forwarded part of the frames meanwhile.
    pub is_partial: bool,
}

impl ResetTime {
    /// Reset time at an offered load; `None` without load.
    ///
    /// 3,000 lost frames at 1,000 frames/s are 3 s; stamps of the frames around them are 3.001 s
    /// apart, one gap more.
    pub fn new(lost: u64, offered_fps: f64, outages: &[Outage]) -> Option<Self> {
        if !(offered_fps.is_finite() && offered_fps > 0.0) {
            return None;
        }
        let by_loss_s = lost as f64 / offered_fps;
        let span = |outage: &Outage| outage.first_after_ns.saturating_sub(outage.last_before_ns);
        let stamped = outages.iter().map(span).sum::<u64>() as f64 / 1e9;
        let by_stamps_s = (!outages.is_empty()).then_some(stamped);
        // Each outage is one gap longer by stamps; 1 % more for clocks and buffers.
        let most = 0.01 * by_loss_s + 2.0 * outages.len() as f64 / offered_fps;
        let is_partial = by_stamps_s.is_some_and(|stamped| (stamped - by_loss_s).abs() > most);
        Some(Self { by_loss_s, by_stamps_s, outages: outages.len() as u64, is_partial })
    }
}

/// Outages in arrivals (ns, rising): gaps longer than `longest_ns`, which is several times the
/// gap at the offered load.
pub fn outages(arrivals_ns: &[u64], longest_ns: u64) -> Vec<Outage> {
    let gaps = arrivals_ns.windows(2).filter(|pair| pair[1].saturating_sub(pair[0]) > longest_ns);
    gaps.map(|pair| Outage { last_before_ns: pair[0], first_after_ns: pair[1] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DROP: Drop = Drop { sequence: 1_000, fps: 500.0, sent: 6_000 };

    fn run(first_sequence: u64, length: u64) -> LossPeriod {
        LossPeriod { first_sequence, length }
    }

    #[test]
    fn recovery_is_from_the_drop_to_the_last_lost_frame() {
        // Frames 900 to 1009 and 1501: the last is 501 frames after the drop, at 500 a second.
        let lost = [run(900, 110), run(1_501, 1)];
        assert_eq!(recovery(&DROP, &lost), Recovery::Recovered { seconds: 1.002, lost: 11 });
        // Nothing after the drop: at once.
        let before = Recovery::Recovered { seconds: 0.0, lost: 0 };
        assert_eq!(recovery(&DROP, &[run(100, 50)]), before);
        assert_eq!(recovery(&DROP, &[]), Recovery::NoOverload);
        // To the last frame of all, 5999: (5999 - 1000) / 500.
        let never = Recovery::NotRecovered { seconds: 9.998, lost: 1_000 };
        assert_eq!(recovery(&DROP, &[run(5_000, 1_000)]), never);
    }

    #[test]
    fn the_overload_is_110_percent_or_the_maximum() {
        let loads = RecoveryLoads::new(100_000, 1_000_000);
        assert_eq!((loads.overload_fps, loads.after_fps), (110_000, 55_000));
        let loads = RecoveryLoads::new(100_000, 105_000);
        assert_eq!((loads.overload_fps, loads.is_no_overload), (105_000, false));
        assert!(RecoveryLoads::new(100_000, 100_000).is_no_overload);
    }

    #[test]
    fn reset_time_is_the_same_by_both_methods_when_nothing_passes() {
        // 1000 frames/s; frames 2000 to 4999 are lost: 3 s by loss, 3.001 s by stamps.
        let arrivals: Vec<u64> =
            (0..2_000).chain(5_000..6_000).map(|it: u64| it * 1_000_000).collect();
        let outages = outages(&arrivals, 5_000_000);
        let reset = ResetTime::new(3_000, 1_000.0, &outages).expect("a load");
        assert_eq!((reset.by_loss_s, reset.by_stamps_s), (3.0, Some(3.001)));
        assert_eq!((reset.outages, reset.is_partial), (1, false));
    }

    #[test]
    fn a_device_that_forwards_part_of_the_frames_is_noticed() {
        let outage = Outage { last_before_ns: 0, first_after_ns: 1_000_000_000 };
        let reset = ResetTime::new(3_000, 1_000.0, &[outage]).expect("a load");
        assert!(reset.is_partial);
        assert_eq!(ResetTime::new(3_000, 1_000.0, &[]).and_then(|it| it.by_stamps_s), None);
        assert_eq!(ResetTime::new(1, 0.0, &[]), None);
    }
}
