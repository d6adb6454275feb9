//! Measurement of send timing, frame by frame: frames so close together that even a device which
//! carries the load may lose some of them, and pauses of the sender.
//!
//! A device that carries the load takes no longer for a frame than the gap. An ideal one, which
//! takes just that long (less a slack) and has room for one frame, is played along with the sender:
//! what it loses is the most that any device with at least that rate and that room can lose,
//! because with less time for a frame or more room fewer are lost. Such a device loses the same
//! frames, or the one after each. Losses of others are the device's; where it is not known which
//! frames they are, what exceeds their number.

use super::blame::Pause;
use super::frames::{FrameLoad, FramePace};
use super::send_timing::{PAUSES_MAX, SUSPECTS_MAX, SendTiming};

/// Slack by which frames may be closer together than asked for before a loss is laid on the tester:
/// this part of the gap, and at least so many ns, the error of a clock that is read in a loop. A
/// device without room for a second frame is so measured at a load higher by that much: 0.4 %, and
/// 1 % at 600,000 frames/s.
const SLACK_PART: u64 = 256;
const SLACK_MIN_NS: u64 = 16;

/// A sender was away when it is so much behind with a frame, ns, and at least by a gap: a device
/// catches up with much then.
const PAUSE_MIN_NS: u64 = 50_000;

/// Thresholds of a run's send watch, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchRule {
    /// Service time of the ideal device for one frame.
    pub service_ns: u64,
    /// Backlog up to which the ideal device still has room for a frame.
    pub room_ns: u64,
    /// Delay of a frame from which on it counts as a pause of the sender.
    pub pause_ns: u64,
}

impl WatchRule {
    /// Thresholds for a load at a rate, of which `batch` frames are sent in one call; `None` for a
    /// flood, which no device is measured against.
    pub fn from_load(load: &FrameLoad, batch: u32) -> Option<Self> {
        let FramePace::Rate { frames_per_sec } = load.pace else { return None };
        let burst = u64::from(load.burst.max(1));
        let step_ns = burst * 1_000_000_000 / frames_per_sec.max(1);
        let fine_ns = (step_ns / SLACK_PART).max(SLACK_MIN_NS).min(step_ns / 2);
        let service_ns = (step_ns - fine_ns) / burst;
        // Frames that leave together need as much room, and as much again where a call is late.
        let batch = u64::from(batch);
        let places = if batch > burst { 2 * batch } else { burst };
        let room_ns = (places - 1) * service_ns;
        Some(Self { service_ns, room_ns, pause_ns: PAUSE_MIN_NS.max(step_ns) })
    }
}

/// Watches a run, frame by frame. The generator in the kernel does the same in its program.
#[derive(Clone, Debug)]
pub struct SendWatch {
    rule: WatchRule,
    /// Time at which the ideal device has served all that it has taken in.
    busy_until_ns: u64,
    /// Time and number of the first frame after the last pause.
    since: (u64, u64),
    /// Time and number of the last frame.
    last: Option<(u64, u64)>,
    watched: SendTiming,
}

impl SendWatch {
    /// A watch at the begin of a run.
    pub fn new(rule: WatchRule) -> Self {
        let watched = SendTiming::default();
        Self { rule, busy_until_ns: 0, since: (0, 0), last: None, watched }
    }

    /// Frame `sequence` left `now`, `late_ns` after it was due.
    pub fn add_departure(&mut self, sequence: u64, now_ns: u64, late_ns: u64) {
        if self.busy_until_ns > now_ns.saturating_add(self.rule.room_ns) {
            self.watched.could_lose += 1;
            self.suspect(sequence);
        } else {
            self.busy_until_ns = self.busy_until_ns.max(now_ns) + self.rule.service_ns;
        }
        match self.last {
            None => self.since = (now_ns, sequence),
            Some((last_ns, _)) => {
                // Those that leave at once after a pause are late of the same pause.
                let pause_ns = self.rule.pause_ns;
                if late_ns >= pause_ns && now_ns.saturating_sub(last_ns) >= pause_ns {
                    self.end_stretch();
                    self.since = (now_ns, sequence);
                    self.watched.away_ns += late_ns;
                    if self.watched.pauses.len() < PAUSES_MAX {
                        self.watched.pauses.push(Pause { sequence, late_ns });
                    }
                }
            }
        }
        self.last = Some((now_ns, sequence));
    }

    fn suspect(&mut self, sequence: u64) {
        let Ok(number) = usize::try_from(sequence) else { return };
        if number < SUSPECTS_MAX {
            let words = self.watched.suspects.len().max(number / 64 + 1);
            self.watched.suspects.resize(words, 0);
            self.watched.suspects[number / 64] |= 1 << (number % 64);
        }
    }

    fn end_stretch(&mut self) {
        let Some((last_ns, last)) = self.last else { return };
        let (from_ns, from) = self.since;
        if last_ns - from_ns > self.watched.steady_ns {
            self.watched.steady_ns = last_ns - from_ns;
            self.watched.steady_gaps = last - from;
        }
    }

    /// Ends the run and gives its send timing.
    pub fn finish(mut self) -> SendTiming {
        self.end_stretch();
        // Of what came after the last one it is known, too, that it could not be lost.
        if self.watched.could_lose > 0 {
            let sent = self.last.map_or(0, |(_, number)| number + 1);
            let words =
                usize::try_from(sent).unwrap_or(SUSPECTS_MAX).min(SUSPECTS_MAX).div_ceil(64);
            self.watched.suspects.resize(words, 0);
        }
        self.watched
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::WhenLate;
    use super::*;

    fn watch_rule(frames_per_sec: u64) -> WatchRule {
        let pace = FramePace::Rate { frames_per_sec };
        let load =
            FrameLoad { frames: 1, pace, when_late: WhenLate::Steady, burst: 1, mix: vec![0] };
        WatchRule::from_load(&load, 1).expect("a rate")
    }

    fn watched(rule: WatchRule, times: &[(u64, u64)]) -> SendTiming {
        let mut watch = SendWatch::new(rule);
        for (number, (now, late)) in (0_u64..).zip(times) {
            watch.add_departure(number, *now, *late);
        }
        watch.finish()
    }

    #[test]
    fn frames_on_time_cost_no_device_a_frame() {
        // 10,000 frames/s: 100 us apart, of which a 256th is 390 ns.
        assert_eq!(watch_rule(10_000).service_ns, 99_610);
        let times: Vec<_> = (0..1000).map(|number| (number * 100_000, 0)).collect();
        let found = watched(watch_rule(10_000), &times);
        assert_eq!((found.could_lose, found.away_ns), (0, 0));
        assert_eq!((found.steady_ns, found.steady_gaps), (99_900_000, 999));
        assert_eq!(found.steady_fps(), Some(10_000.0));
    }

    #[test]
    fn a_bunch_costs_an_ideal_device_all_but_one_of_it() {
        // Five at once after 400 us, then on time: the device takes one, is busy for 99.61 us.
        let times: Vec<_> = (0..20).map(|number: u64| (number.max(4) * 100_000, 0)).collect();
        let found = watched(watch_rule(10_000), &times);
        assert_eq!(found.could_lose, 4);
        // Of frames 1 to 4 and the one after them a loss is explained, of no other.
        let mut came = vec![true; 20];
        for lost in [1, 4, 5, 6, 19] {
            came[lost] = false;
        }
        assert_eq!(found.count_explained(&came, 10_000.0, false), 3);
        assert!(found.can_attribute_losses(20));
    }

    #[test]
    fn a_pause_ends_a_stretch_and_is_kept_with_its_frame() {
        // Frame 10 leaves 5 ms late, and the schedule moves with it.
        let at = |number: u64| (number * 100_000 + if number >= 10 { 5_000_000 } else { 0 }, 0);
        let mut times: Vec<_> = (0..30).map(at).collect();
        times[10].1 = 5_000_000;
        let found = watched(watch_rule(10_000), &times);
        assert_eq!(found.pauses, [Pause { sequence: 10, late_ns: 5_000_000 }]);
        assert_eq!((found.could_lose, found.away_ns), (0, 5_000_000));
        assert_eq!((found.steady_ns, found.steady_gaps), (1_900_000, 19));
    }

    #[test]
    fn frames_of_a_burst_or_of_one_call_are_granted_their_room() {
        let pace = FramePace::Rate { frames_per_sec: 10_000 };
        let load =
            FrameLoad { frames: 1, pace, when_late: WhenLate::Steady, burst: 4, mix: vec![0] };
        let rule = WatchRule::from_load(&load, 1).expect("a rate");
        let times: Vec<_> = (0..40).map(|number| (number / 4 * 400_000, 0)).collect();
        assert_eq!(watched(rule, &times).could_lose, 0);
        let flood = FrameLoad { pace: FramePace::Flood, ..load };
        assert_eq!(WatchRule::from_load(&flood, 64), None);
    }
}
