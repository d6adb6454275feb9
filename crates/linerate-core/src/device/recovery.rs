//! How long a device loses frames after an overload ends, and after a reset.
//!
//! Sources: RFC 2544 §26.5 (system recovery: from the drop of the load to the last lost frame),
//! RFC 6201 (reset time, by lost frames and by time stamps).

use crate::stats::LossPeriod;

/// Overload of RFC 2544 §26.5 as a share of the throughput.
const OVERLOAD_SHARE: f64 = 1.1;

/// Loads of a recovery trial, frames per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryLoads {
    /// First, for 60 s or more: 110 % of the throughput, or the largest load if that is less.
    pub overload_fps: u64,
    /// Then half of it.
    pub after_fps: u64,
}

impl RecoveryLoads {
    /// Loads for a device of such a throughput.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate that is not negative, and a cast keeps within the range of the type"
    )]
    pub fn new(throughput_fps: f64, max_fps: u64) -> Self {
        let overload = (throughput_fps * OVERLOAD_SHARE).round() as u64;
        let overload_fps = overload.min(max_fps).max(2);
        Self { overload_fps, after_fps: overload_fps / 2 }
    }
}

/// Drop of the load in a recovery trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadDrop {
    /// Number of the first frame at the lower load.
    pub sequence: u64,
    /// The lower load, frames per second.
    pub fps: u64,
    /// Frames sent in all, both parts.
    pub sent: u64,
}

/// System recovery, in the order from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recovery {
    /// No frame was lost at all: there was no overload.
    NoOverload,
    /// The last lost frame was sent so many ns after the drop; 0 when nothing was lost after it.
    Recovered(u64),
    /// Frames were lost to the end, so many ns after the drop: it takes longer.
    NotRecovered(u64),
}

/// Time from the drop of the load to the last lost frame, both when sent. `lost` are the runs of
/// missing frames in the order of sending. The device has not recovered when the last frame of all
/// is among them.
pub fn measure_recovery(drop: &LoadDrop, lost: &[LossPeriod]) -> Recovery {
    let ends = lost.iter().map(|run| run.first_sequence + run.length);
    let Some(last) = ends.max() else { return Recovery::NoOverload };
    let frames = last.saturating_sub(drop.sequence + 1);
    let ns = ns_of(frames, drop.fps as f64);
    if last > drop.sequence && last >= drop.sent {
        return Recovery::NotRecovered(ns);
    }
    Recovery::Recovered(ns)
}

/// Runs of frames that did not arrive, of times of arrival by number.
pub fn missing_runs(arrivals: &[Option<u64>]) -> Vec<LossPeriod> {
    let mut runs: Vec<LossPeriod> = Vec::new();
    let lost = arrivals.iter().enumerate().filter(|(_, came)| came.is_none());
    for (number, _) in lost {
        let sequence = number as u64;
        match runs.last_mut() {
            Some(run) if run.first_sequence + run.length == sequence => run.length += 1,
            _ => runs.push(LossPeriod { first_sequence: sequence, length: 1 }),
        }
    }
    runs
}

/// Reset time by both methods of RFC 6201.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetTime {
    /// Lost frames over the offered load, ns (the frame-loss method).
    pub by_loss_ns: u64,
    /// Sum of the outages from the last frame before to the first after, ns (the time-stamp
    /// method); `None` without an outage.
    pub by_stamps_ns: Option<u64>,
    /// Number of outages: more than one means that the device came back and went away again.
    pub outages: u64,
    /// The two methods differ by more than they can for outages of all frames: the device
    /// forwarded part of the frames meanwhile.
    pub is_partial: bool,
}

impl ResetTime {
    /// Reset time at an offered load, of the lengths of the outages; `None` without load.
    ///
    /// 3,000 lost frames at 1,000 frames/s are 3 s; stamps of the frames around them are 3.001 s
    /// apart, one gap more.
    pub fn new(lost: u64, offered_fps: f64, outages_ns: &[u64]) -> Option<Self> {
        if !(offered_fps.is_finite() && offered_fps > 0.0) {
            return None;
        }
        let by_loss_ns = ns_of(lost, offered_fps);
        let outages = outages_ns.len() as u64;
        let by_stamps_ns = (outages > 0).then(|| outages_ns.iter().sum::<u64>());
        // Each outage is one gap longer by stamps; 1 % more for clocks and buffers.
        let most = by_loss_ns / 100 + ns_of(2 * outages, offered_fps);
        let is_partial = by_stamps_ns.is_some_and(|stamped| stamped.abs_diff(by_loss_ns) > most);
        Some(Self { by_loss_ns, by_stamps_ns, outages, is_partial })
    }
}

/// Lengths of the outages in times of arrival by number, ns: from the last frame before missing
/// ones to the first after them. What is missing at either end has no such length.
pub fn outages_ns(arrivals: &[Option<u64>]) -> Vec<u64> {
    let came = arrivals.iter().enumerate().filter_map(|(number, came)| Some((number, (*came)?)));
    let came: Vec<(usize, u64)> = came.collect();
    let gaps = came.windows(2).filter(|pair| pair[1].0 > pair[0].0 + 1);
    gaps.map(|pair| pair[1].1.saturating_sub(pair[0].1)).collect()
}

/// Time of so many frames at a load.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times that are not negative; a cast keeps within the range of the type"
)]
fn ns_of(frames: u64, fps: f64) -> u64 {
    if fps > 0.0 { (frames as f64 * 1e9 / fps).round() as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DROP: LoadDrop = LoadDrop { sequence: 1_000, fps: 500, sent: 6_000 };

    fn run(first_sequence: u64, length: u64) -> LossPeriod {
        LossPeriod { first_sequence, length }
    }

    #[test]
    fn recovery_is_from_the_drop_to_the_last_lost_frame() {
        // Frames 900 to 1009 and 1501: the last is 501 frames after the drop, at 500 a second.
        let lost = [run(900, 110), run(1_501, 1)];
        assert_eq!(measure_recovery(&DROP, &lost), Recovery::Recovered(1_002_000_000));
        // Nothing after the drop: at once.
        assert_eq!(measure_recovery(&DROP, &[run(100, 50)]), Recovery::Recovered(0));
        assert_eq!(measure_recovery(&DROP, &[]), Recovery::NoOverload);
        // To the last frame of all, 5999: (5999 - 1000) / 500.
        let never = Recovery::NotRecovered(9_998_000_000);
        assert_eq!(measure_recovery(&DROP, &[run(5_000, 1_000)]), never);
        assert!(never > Recovery::Recovered(u64::MAX));
    }

    #[test]
    fn the_overload_is_110_percent_or_the_maximum() {
        let loads = RecoveryLoads::new(100_000.0, 1_000_000);
        assert_eq!((loads.overload_fps, loads.after_fps), (110_000, 55_000));
        assert_eq!(RecoveryLoads::new(100_000.0, 105_000).overload_fps, 105_000);
    }

    #[test]
    fn missing_frames_are_runs() {
        let arrivals = [None, Some(1), None, None, Some(4), None];
        assert_eq!(missing_runs(&arrivals), [run(0, 1), run(2, 2), run(5, 1)]);
        // 2 and 3 are between 1 and 4; the ends have no frame on one side.
        assert_eq!(outages_ns(&arrivals), [3]);
        assert!(missing_runs(&[]).is_empty() && outages_ns(&[Some(1), Some(9)]).is_empty());
    }

    #[test]
    fn reset_time_is_the_same_by_both_methods_when_nothing_passes() {
        // 1000 frames/s; frames 2000 to 4999 are lost: 3 s by loss, 3.001 s by stamps.
        let lost = 2_000..5_000;
        let at = |number: u64| (!lost.contains(&number)).then_some(number * 1_000_000);
        let arrivals: Vec<Option<u64>> = (0..6_000).map(at).collect();
        let reset = ResetTime::new(3_000, 1_000.0, &outages_ns(&arrivals)).expect("a load");
        assert_eq!((reset.by_loss_ns, reset.by_stamps_ns), (3_000_000_000, Some(3_001_000_000)));
        assert_eq!((reset.outages, reset.is_partial), (1, false));
    }

    #[test]
    fn a_device_that_forwards_part_of_the_frames_is_noticed() {
        let reset = ResetTime::new(3_000, 1_000.0, &[1_000_000_000]).expect("a load");
        assert!(reset.is_partial);
        assert_eq!(ResetTime::new(3_000, 1_000.0, &[]).and_then(|reset| reset.by_stamps_ns), None);
        assert_eq!(ResetTime::new(1, 0.0, &[]), None);
    }
}
