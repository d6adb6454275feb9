//! What a device holds back, from an overload, and what of a rate is that buffer alone.
//!
//! A device of rate D with room for B frames that is sent r > D loses its first frame when B are
//! inside: frame f with f (1 - D / r) = B. From then on it loses the share 1 - D / r. So B is f
//! times the share that is lost from there on, whatever D is. In a trial of t seconds without loss
//! it may have taken in B more than it forwarded: D is at least r - B / t, and less than r - B / t
//! at a load r that lost. Where the sender paused, the same follows from its send times.

use super::blame::Pause;

/// Frames that a device held when it lost its first one, by the numbers of a trial; none without
/// loss.
pub fn held_frames(came: &[bool]) -> Option<f64> {
    let first = came.iter().position(|came| !came)?;
    let after = &came[first..];
    let lost = after.iter().filter(|came| !**came).count();
    Some(first as f64 * lost as f64 / after.len() as f64)
}

/// Frames that come to a device differ in their time on the way by so many ns, without anything
/// that tells it; a hundredth of the gap is enough to matter.
const JITTER_NS: f64 = 1000.0;
const OF_A_GAP: f64 = 0.01;
const ROOM_FOR_TWO: f64 = 1.75;

/// Whether a device that holds so many frames has no room for a second one, at a rate at which the
/// time that frames take on their way decides whether the one before has left.
pub fn holds_one_of_near(held_frames: f64, fps: f64) -> bool {
    held_frames < ROOM_FOR_TWO && fps * JITTER_NS / 1e9 > OF_A_GAP
}

/// What several trials say: the middle, smallest and largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// The median.
    pub frames: f64,
    /// Smallest.
    pub least: f64,
    /// Largest.
    pub most: f64,
}

impl Held {
    /// Of at least one trial.
    pub fn of(mut trials: Vec<f64>) -> Option<Self> {
        trials.sort_by(f64::total_cmp);
        let (least, most) = (*trials.first()?, *trials.last()?);
        Some(Self { frames: trials[trials.len() / 2], least, most })
    }
}

/// What was sent in a trial at a load: frames, and pauses of the sender, each of which put off all
/// that followed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// Frames per second between pauses.
    pub fps: f64,
    /// Frames in all.
    pub frames: u64,
    /// When the sender was away.
    pub pauses: Vec<Pause>,
}

/// Halvings of a rate: more than a double can tell apart.
const HALVINGS: u32 = 60;

impl Load {
    /// The rate, frames per second, at which a device with room for `held` frames just carries
    /// this: one without loss is at least as fast, one that lost is slower.
    pub fn carried_by(&self, held: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.fps);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if self.queue_max(middle) > held {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// Most frames that wait in a device of this rate: more between pauses, fewer in them.
    fn queue_max(&self, device_fps: f64) -> f64 {
        let grows = 1.0 - device_fps / self.fps.max(1e-9);
        let (mut queue, mut most, mut at) = (0.0_f64, 0.0_f64, 0);
        for pause in &self.pauses {
            queue += pause.sequence.saturating_sub(at) as f64 * grows;
            most = most.max(queue);
            queue = (queue - device_fps * pause.late_ns as f64 / 1e9).max(0.0);
            at = pause.sequence;
        }
        most.max(queue + self.frames.saturating_sub(at) as f64 * grows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of `count` frames pass a device of `service` time units a frame, `places` deep, sent
    /// one a unit.
    fn came(count: u64, service: f64, places: usize) -> Vec<bool> {
        let mut leave = std::collections::VecDeque::new();
        let pass = |at: u64| {
            let at = at as f64;
            while leave.front().is_some_and(|it| *it <= at) {
                leave.pop_front();
            }
            let is_taken = leave.len() < places;
            if is_taken {
                let from = leave.back().map_or(at, |last: &f64| last.max(at));
                leave.push_back(from + service);
            }
            is_taken
        };
        (0..count).map(pass).collect()
    }

    #[test]
    fn the_buffer_shows_in_the_first_loss_whatever_the_rate() {
        for (service, places) in [(2.0, 200), (1.5, 64), (3.17, 7), (2.0, 1), (1.9, 1000)] {
            let held = held_frames(&came(8000, service, places)).expect("lost");
            assert!((held - places as f64).abs() <= 2.0, "{service} {places}: {held}");
        }
        assert_eq!(held_frames(&came(100, 0.5, 1)), None);
        // 1 us of 13.7 us, and of 297 us.
        assert!(holds_one_of_near(0.5, 73_000.0) && !holds_one_of_near(0.5, 3370.0));
        assert!(!holds_one_of_near(2.0, 333_000.0));
    }

    #[test]
    fn a_short_trial_is_told_from_a_rate() {
        let held = Held::of(vec![200.0, 199.0, 214.0]).expect("three");
        assert_eq!((held.frames, held.least, held.most), (200.0, 199.0, 214.0));
        // 3,370 frames/s with 200: in 0.1 s 337 + 200 pass, which looks like 5,370.
        let short = Load { fps: 5370.0, frames: 537, pauses: Vec::new() };
        assert!((short.carried_by(200.0) - 3370.0).abs() < 1e-6);
        // The sender was away for 10 ms in the middle: 337 + 33.7 + 200 pass in 0.11 s.
        let pauses = vec![Pause { sequence: 285, late_ns: 10_000_000 }];
        let paused = Load { fps: 5707.0, frames: 571, pauses };
        assert!((paused.carried_by(200.0) - 3370.0).abs() < 5.0, "{}", paused.carried_by(200.0));
        // Away for so long that the queue runs empty: each half is a trial by itself.
        let pauses = vec![Pause { sequence: 500, late_ns: 1_000_000_000 }];
        let two = Load { fps: 5000.0, frames: 1000, pauses };
        assert!((two.carried_by(200.0) - 3000.0).abs() < 1e-6);
    }
}
