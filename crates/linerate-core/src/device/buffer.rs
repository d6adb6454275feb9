//! A device's buffer, measured by an overload, and the part of a trial's rate that is that buffer.
//!
//! A device of rate D with room for B frames that is sent r > D loses its first frame when B are
//! inside: frame f with f (1 - D / r) = B. From then on it loses the share 1 - D / r. So B is f
//! times the share that is lost from there on, whatever D is. In a trial of t seconds without loss
//! it may have taken in B more than it forwarded: D is at least r - B / t, and less than r - B / t
//! at a load r that lost. Where the sender paused, the same follows from its send times.

use super::blame::Pause;

/// Frames that the device buffers at its first loss, from a trial's frames in the order of sending:
/// which of them arrived. `None` without loss.
pub fn buffer_frames_from_arrivals(arrived: &[bool]) -> Option<f64> {
    let first = arrived.iter().position(|arrived| !arrived)?;
    let after = &arrived[first..];
    let lost = after.iter().filter(|arrived| !**arrived).count();
    Some(first as f64 * lost as f64 / after.len() as f64)
}

/// Jitter of a frame between the tester's stamp and the device's input, ns: not measured, assumed.
const INPUT_JITTER_NS: f64 = 1000.0;
/// Jitter matters from this share of the gap between two frames on.
const JITTER_GAP_SHARE: f64 = 0.01;
/// Measured buffer, in frames, from which on a second frame has room.
const TWO_FRAMES_MIN: f64 = 1.75;

/// True for a device with a buffer of one frame, at a rate high enough for jitter at its input to
/// decide whether that buffer is free when the next frame comes.
pub fn lacks_room_for_second_frame(buffer_frames: f64, fps: f64) -> bool {
    buffer_frames < TWO_FRAMES_MIN && fps * INPUT_JITTER_NS / 1e9 > JITTER_GAP_SHARE
}

/// Depth of a device's buffer in frames, measured in several trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BufferDepth {
    /// Median of the trials' depths.
    pub frames_median: f64,
    /// Smallest of the trials' depths.
    pub frames_min: f64,
    /// Largest of the trials' depths.
    pub frames_max: f64,
}

impl BufferDepth {
    /// Depth from each trial's [`buffer_frames_from_arrivals`]; `None` without a trial.
    pub fn from_trials(mut trials: Vec<f64>) -> Option<Self> {
        trials.sort_by(f64::total_cmp);
        let frames_median = *trials.get(trials.len() / 2)?;
        Some(Self { frames_median, frames_min: trials[0], frames_max: trials[trials.len() - 1] })
    }
}

/// Frames offered to the device in one trial (offered load, RFC 2285 §3.5.2), with the pauses of
/// the sender; each pause delays all later frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfferedLoad {
    /// Rate between pauses, frames per second.
    pub fps: f64,
    /// Frames sent in the trial.
    pub frames: u64,
    /// Pauses of the sender, in the order of sending.
    pub pauses: Vec<Pause>,
}

/// Halvings of a rate: beyond the precision of a double.
const HALVINGS: u32 = 60;

impl OfferedLoad {
    /// Slowest service rate, frames per second, at which a device with this buffer loses none of
    /// the load. A device that lost nothing is at least as fast; one that lost is slower.
    pub fn min_service_fps(&self, buffer_frames: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.fps);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.queue_frames_max(middle) > buffer_frames {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// Longest queue, in frames, in a device of this service rate: it grows between pauses and
    /// drains in them.
    fn queue_frames_max(&self, device_fps: f64) -> f64 {
        let grows = 1.0 - device_fps / self.fps.max(1e-9);
        let (mut queue, mut longest, mut sequence) = (0.0_f64, 0.0_f64, 0);
        for pause in &self.pauses {
            queue += pause.sequence.saturating_sub(sequence) as f64 * grows;
            longest = longest.max(queue);
            queue = (queue - device_fps * pause.late_ns as f64 / 1e9).max(0.0);
            sequence = pause.sequence;
        }
        longest.max(queue + self.frames.saturating_sub(sequence) as f64 * grows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames, sent one a time unit, that pass a device which serves one in `service` units and
    /// has a buffer of `places`.
    fn simulate_arrivals(count: u64, service: f64, places: usize) -> Vec<bool> {
        let mut leave = std::collections::VecDeque::new();
        let pass = |at: u64| {
            let at = at as f64;
            while leave.front().is_some_and(|left| *left <= at) {
                leave.pop_front();
            }
            let is_queued = leave.len() < places;
            if is_queued {
                let from = leave.back().map_or(at, |last: &f64| last.max(at));
                leave.push_back(from + service);
            }
            is_queued
        };
        (0..count).map(pass).collect()
    }

    #[test]
    fn the_buffer_shows_in_the_first_loss_whatever_the_rate() {
        for (service, places) in [(2.0, 200), (1.5, 64), (3.17, 7), (2.0, 1), (1.9, 1000)] {
            let arrived = simulate_arrivals(8000, service, places);
            let depth = buffer_frames_from_arrivals(&arrived).expect("lost");
            assert!((depth - places as f64).abs() <= 2.0, "{service} {places}: {depth}");
        }
        assert_eq!(buffer_frames_from_arrivals(&simulate_arrivals(100, 0.5, 1)), None);
        // 1 us of 13.7 us, and of 297 us.
        assert!(lacks_room_for_second_frame(0.5, 73_000.0));
        assert!(!lacks_room_for_second_frame(0.5, 3370.0));
        assert!(!lacks_room_for_second_frame(2.0, 333_000.0));
    }

    #[test]
    fn a_short_trial_is_told_from_a_rate() {
        let depth = BufferDepth::from_trials(vec![200.0, 199.0, 214.0]).expect("three");
        assert_eq!(
            (depth.frames_median, depth.frames_min, depth.frames_max),
            (200.0, 199.0, 214.0)
        );
        assert_eq!(BufferDepth::from_trials(Vec::new()), None);
        // 3,370 frames/s with 200: in 0.1 s 337 + 200 pass, which looks like 5,370.
        let short = OfferedLoad { fps: 5370.0, frames: 537, pauses: Vec::new() };
        assert!((short.min_service_fps(200.0) - 3370.0).abs() < 1e-6);
        // The sender was away for 10 ms in the middle: 337 + 33.7 + 200 pass in 0.11 s.
        let pauses = vec![Pause { sequence: 285, late_ns: 10_000_000 }];
        let paused = OfferedLoad { fps: 5707.0, frames: 571, pauses };
        assert!(
            (paused.min_service_fps(200.0) - 3370.0).abs() < 5.0,
            "{}",
            paused.min_service_fps(200.0)
        );
        // Away for so long that the queue runs empty: each half is a trial by itself.
        let pauses = vec![Pause { sequence: 500, late_ns: 1_000_000_000 }];
        let two = OfferedLoad { fps: 5000.0, frames: 1000, pauses };
        assert!((two.min_service_fps(200.0) - 3000.0).abs() < 1e-6);
    }
}
