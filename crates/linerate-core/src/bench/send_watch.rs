//! What the times at which frames left say of the sender: whether a device that carries the load
//! could have lost some of them by it, and when the sender was away.
//!
//! A device that carries the load takes no longer for a frame than the gap. An ideal one, which
//! takes just that long (less the slack that the pace allows) and has room for one frame, is played
//! along with the sender: what it loses is the most that any device with at least that rate and
//! that room can lose, because with less time for a frame or more room fewer are lost. Losses up
//! to that number are the sender's as likely as the device's; what exceeds it is the device's.

use super::blame;
use super::frames::{FrameLoad, Pace};

/// The slack of a pace: this part of the gap, and at least so many ns, which is what a clock that
/// is read in a loop is off by. A device without room for a second frame loses at the slack above
/// its rate what it would carry at an exact pace: 0.4 %, and 1 % at 600,000 frames/s.
const SLACK_PART: u64 = 256;
const SLACK_MIN_NS: u64 = 16;

/// A sender was away when it is so much behind with a frame, ns, and at least by a gap: a device
/// catches up with much then.
const PAUSE_MIN_NS: u64 = 50_000;

/// Pauses of one run that are kept one by one.
pub const PAUSES_MAX: usize = 256;

/// How a run is watched, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchRule {
    /// What frames may be nearer to each other than asked for.
    pub slack_ns: u64,
    /// What the ideal device takes for a frame.
    pub service_ns: u64,
    /// How far behind it may be and still have room for a frame.
    pub room_ns: u64,
    /// From this delay on the sender was away.
    pub pause_ns: u64,
}

impl WatchRule {
    /// For a load at a rate, of which `batch` frames are handed over together; none for a flood,
    /// which no device is held against.
    pub fn of(load: &FrameLoad, batch: u32) -> Option<Self> {
        let Pace::Rate { frames_per_sec } = load.pace else { return None };
        let burst = u64::from(load.burst.max(1));
        let step_ns = burst * 1_000_000_000 / frames_per_sec.max(1);
        let fine_ns = (step_ns / SLACK_PART).max(SLACK_MIN_NS).min(step_ns / 2);
        let service_ns = (step_ns - fine_ns) / burst;
        // Frames that leave together need as much room, and as much again where a call is late.
        let batch = u64::from(batch);
        let (slack_ns, places) =
            if batch > burst { (batch * step_ns, 2 * batch) } else { (fine_ns, burst) };
        let room_ns = (places - 1) * service_ns;
        Some(Self { slack_ns, service_ns, room_ns, pause_ns: PAUSE_MIN_NS.max(step_ns) })
    }
}

/// A time in which the sender was away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// The number of the frame after it.
    pub sequence: u64,
    /// How late that frame was.
    pub late_ns: u64,
}

/// What the send times of a run say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Frames that a device which carries the load may have lost.
    pub could_lose: u64,
    /// The first [`PAUSES_MAX`] pauses.
    pub pauses: Vec<Pause>,
    /// All of them, ns.
    pub away_ns: u64,
    /// The longest time without a pause, ns.
    pub steady_ns: u64,
    /// Gaps between frames in it.
    pub steady_gaps: u64,
}

impl Watched {
    /// The rate between pauses, frames per second; none where too few frames tell.
    pub fn steady_fps(&self) -> Option<f64> {
        let tells = self.steady_gaps > 0 && self.steady_ns > 0;
        tells.then(|| self.steady_gaps as f64 * 1e9 / self.steady_ns as f64)
    }

    /// Lost frames near pauses; see [`blame::lost_in_pauses`].
    pub fn lost_in_pauses(&self, came: &[bool], fps: f64) -> u64 {
        blame::lost_in_pauses(&self.pauses, came, fps)
    }

    /// Adds the run that followed on this one.
    pub fn join(&mut self, next: &Self) {
        self.could_lose += next.could_lose;
        self.away_ns += next.away_ns;
        let room = PAUSES_MAX.saturating_sub(self.pauses.len());
        self.pauses.extend(next.pauses.iter().take(room));
        if next.steady_ns > self.steady_ns {
            (self.steady_ns, self.steady_gaps) = (next.steady_ns, next.steady_gaps);
        }
    }
}

/// Watches a run, frame by frame. The generator in the kernel does the same in its program.
#[derive(Clone, Debug)]
pub struct SendWatch {
    rule: WatchRule,
    /// When the ideal device is through with what it has.
    busy_until_ns: u64,
    /// The stretch since the last pause: when and with which frame it began.
    since: (u64, u64),
    /// The last frame, when and which.
    last: Option<(u64, u64)>,
    watched: Watched,
}

impl SendWatch {
    /// From a run's begin on.
    pub fn new(rule: WatchRule) -> Self {
        let watched = Watched::default();
        Self { rule, busy_until_ns: 0, since: (0, 0), last: None, watched }
    }

    /// Frame `sequence` left `now`, `late_ns` after it was due.
    pub fn leaves(&mut self, sequence: u64, now_ns: u64, late_ns: u64) {
        if self.busy_until_ns > now_ns.saturating_add(self.rule.room_ns) {
            self.watched.could_lose += 1;
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

    fn end_stretch(&mut self) {
        let Some((last_ns, last)) = self.last else { return };
        let (from_ns, from) = self.since;
        if last_ns - from_ns > self.watched.steady_ns {
            self.watched.steady_ns = last_ns - from_ns;
            self.watched.steady_gaps = last - from;
        }
    }

    /// What was seen.
    pub fn end(mut self) -> Watched {
        self.end_stretch();
        self.watched
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::WhenLate;
    use super::*;

    fn rule(frames_per_sec: u64) -> WatchRule {
        let pace = Pace::Rate { frames_per_sec };
        let load =
            FrameLoad { frames: 1, pace, when_late: WhenLate::Steady, burst: 1, mix: vec![0] };
        WatchRule::of(&load, 1).expect("a rate")
    }

    fn watched(rule: WatchRule, times: &[(u64, u64)]) -> Watched {
        let mut watch = SendWatch::new(rule);
        for (number, (now, late)) in (0_u64..).zip(times) {
            watch.leaves(number, *now, *late);
        }
        watch.end()
    }

    #[test]
    fn frames_on_time_cost_no_device_a_frame() {
        // 10,000 frames/s: 100 us apart, 390 ns of slack.
        assert_eq!(rule(10_000).slack_ns, 390);
        let times: Vec<_> = (0..1000).map(|it| (it * 100_000, 0)).collect();
        let found = watched(rule(10_000), &times);
        assert_eq!((found.could_lose, found.away_ns), (0, 0));
        assert_eq!((found.steady_ns, found.steady_gaps), (99_900_000, 999));
        assert_eq!(found.steady_fps(), Some(10_000.0));
    }

    #[test]
    fn a_bunch_costs_an_ideal_device_all_but_one_of_it() {
        // Five at once after 400 us, then on time: the device takes one, is busy for 99.61 us.
        let times: Vec<_> = (0..20).map(|it: u64| (it.max(4) * 100_000, 0)).collect();
        let found = watched(rule(10_000), &times);
        assert_eq!(found.could_lose, 4);
    }

    #[test]
    fn a_pause_ends_a_stretch_and_is_kept_with_its_frame() {
        // Frame 10 leaves 5 ms late, and the schedule moves with it.
        let at = |it: u64| (it * 100_000 + if it >= 10 { 5_000_000 } else { 0 }, 0);
        let mut times: Vec<_> = (0..30).map(at).collect();
        times[10].1 = 5_000_000;
        let found = watched(rule(10_000), &times);
        assert_eq!(found.pauses, [Pause { sequence: 10, late_ns: 5_000_000 }]);
        assert_eq!((found.could_lose, found.away_ns), (0, 5_000_000));
        assert_eq!((found.steady_ns, found.steady_gaps), (1_900_000, 19));
    }

    #[test]
    fn frames_of_a_burst_or_of_one_call_are_granted_their_room() {
        let pace = Pace::Rate { frames_per_sec: 10_000 };
        let load =
            FrameLoad { frames: 1, pace, when_late: WhenLate::Steady, burst: 4, mix: vec![0] };
        let rule = WatchRule::of(&load, 1).expect("a rate");
        let times: Vec<_> = (0..40).map(|it| (it / 4 * 400_000, 0)).collect();
        assert_eq!(watched(rule, &times).could_lose, 0);
        let flood = FrameLoad { pace: Pace::Flood, ..load };
        assert_eq!(WatchRule::of(&flood, 64), None);
    }
}
