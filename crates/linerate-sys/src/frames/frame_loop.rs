//! The send loop of every generator in user space: waits until frames are due, writes them, sends
//! them, counts them. The interfaces' send calls are in `frame_sender` and `xdp_socket`.
//!
//! Frame n is due n gaps after the start, in whole nanoseconds without accumulated rounding errors.
//! Frames due at the same time go in one call, so that batches grow only when the loop is late or
//! bursts are requested. A thread spins if the next frame is due within a millisecond: sleeps end
//! late by tens of microseconds, and real-time threads are stopped for 50 ms in each second.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_core::device::{
    FrameLoad, FramePace, SendCounts, SendTiming, SendWatch, WatchRule, WhenLate,
};
use linerate_core::time::MonoTime;

use crate::frame_writer::{FrameBuffer, FrameSet, Numbered};
use crate::sched::{Pinned, ShortSlack};
use crate::stop::Stop;
use crate::{Error, Result, clock};

/// Time to the next frame above which the thread sleeps.
const FAR_NS: u64 = 1_000_000;
/// Time before the next frame at which a sleep ends.
const EARLY_NS: u64 = 300_000;
/// Longest sleep, so that the stop flag is checked.
const SLEEP_MAX_NS: u64 = 50_000_000;
/// Smallest delay that counts as late, for any gap.
const LATE_MIN_NS: u64 = 10_000;

/// Send interface of a generator.
pub(crate) trait Outlet {
    /// Most frames of one call.
    fn batch_max(&self) -> usize;

    /// Waits until there is room for `count` frames; returns the room, or 0 once stopped.
    fn reserve(&mut self, count: usize, stop: &Stop) -> Result<usize>;

    /// Writes frame `index` of the next call; `write` returns its length.
    fn put_frame(&mut self, index: usize, write: impl FnOnce(&mut FrameBuffer<'_>) -> usize);

    /// Sends the first `count` frames.
    fn send_frames(&mut self, count: usize, stop: &Stop) -> Result<Handed>;

    /// Waits until the interface has sent all frames.
    fn finish(&mut self, stop: &Stop) -> Result<()>;
}

/// Counts of a call: frames and bytes sent, frames refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handed {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) refused: u64,
}

/// Counts of a generator so far, readable from other threads.
#[derive(Clone, Debug, Default)]
pub struct SendProgress {
    counts: Arc<SendProgressCounts>,
}

#[derive(Debug, Default)]
struct SendProgressCounts {
    frames: AtomicU64,
    refused: AtomicU64,
    late: AtomicU64,
}

impl SendProgress {
    /// Frames sent in the current or the last run.
    pub fn frames(&self) -> u64 {
        self.counts.frames.load(Ordering::Relaxed)
    }

    /// Frames that the interface refused.
    pub fn refused(&self) -> u64 {
        self.counts.refused.load(Ordering::Relaxed)
    }

    /// Frames that were sent late.
    pub fn late_frames(&self) -> u64 {
        self.counts.late.load(Ordering::Relaxed)
    }

    fn store_counts(&self, sent: &SendCounts) {
        self.counts.frames.store(sent.frames, Ordering::Relaxed);
        self.counts.refused.store(sent.refused, Ordering::Relaxed);
        self.counts.late.store(sent.late, Ordering::Relaxed);
    }
}

/// Start and end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Time of the first frame; at once when absent.
    pub start: Option<MonoTime>,
    /// Time from which no frame is sent, even if the load is not complete.
    pub deadline: Option<MonoTime>,
}

/// A run of a load.
pub(crate) struct FrameLoadRun<'a> {
    pub(crate) set: &'a FrameSet,
    pub(crate) load: &'a FrameLoad,
    /// Sequence of the first frame.
    pub(crate) first: u64,
    pub(crate) window: Window,
    pub(crate) cpu: Option<u32>,
    pub(crate) stop: &'a Stop,
    pub(crate) progress: &'a SendProgress,
}

impl FrameLoadRun<'_> {
    /// Sends the load on the calling thread.
    pub(crate) fn send_load(&self, outlet: &mut impl Outlet) -> Result<SendCounts> {
        self.check_load()?;
        let _pinned = self.cpu.map(pin_to_cpu).transpose()?;
        let _slack = ShortSlack::shorten_slack();
        let mut sent = SendCounts::default();
        self.progress.store_counts(&sent);
        let start = self.window.start.unwrap_or_else(clock::monotonic);
        let mut pacer = Pacer::new(self.load, start.as_nanos());
        let mut mix = TemplateCycle::from_number(&self.load.mix, self.first);
        let (mut left, mut next, mut batch) = (self.load.frames, self.first, 0);
        while left > 0 {
            let Some(now) = self.wait_until_due(pacer.due_ns) else { break };
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(outlet.batch_max());
            let room = outlet.reserve(most, self.stop)?;
            if room == 0 {
                break;
            }
            batch = pacer.take_due_frames(now, room, &mut sent);
            let stamp = now as u32;
            for index in 0..batch {
                let number = Numbered { sequence: next + index as u64, stamp };
                let template = mix.next();
                outlet.put_frame(index, |place| self.set.fill_frame(template, number, place));
            }
            let handed = outlet.send_frames(batch, self.stop)?;
            add_handed(&mut sent, handed, now);
            self.progress.store_counts(&sent);
            next += batch as u64;
            left -= batch as u64;
        }
        sent.timing = pacer.timing();
        outlet.finish(self.stop)?;
        if batch > 1 {
            // The last frame of a call is sent near the call's end.
            sent.last_ns = clock::monotonic().as_nanos();
        }
        Ok(sent)
    }

    /// Waits until `due_ns`, and returns the time; `None` at the deadline and once stopped.
    #[inline]
    fn wait_until_due(&self, due_ns: u64) -> Option<u64> {
        let deadline_ns = self.window.deadline.map_or(u64::MAX, MonoTime::as_nanos);
        loop {
            let now = clock::monotonic().as_nanos();
            if self.stop.is_requested() || now >= deadline_ns {
                return None;
            }
            if now >= due_ns {
                return Some(now);
            }
            let far = due_ns.min(deadline_ns) - now;
            if far > FAR_NS {
                let then = now + (far - EARLY_NS).min(SLEEP_MAX_NS);
                clock::sleep_until(MonoTime::from_nanos(then));
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn check_load(&self) -> Result<()> {
        let load = self.load;
        let text = match load.pace {
            FramePace::Rate { frames_per_sec: 0 } => "a rate of 0".to_owned(),
            _ if load.burst == 0 => "bursts of 0 frames".to_owned(),
            _ if load.mix.is_empty() => "a mix of no template".to_owned(),
            _ => match load
                .mix
                .iter()
                .find(|entry| usize::from(**entry) >= self.set.template_count())
            {
                Some(missing) => format!("template {missing} of {}", self.set.template_count()),
                None => return Ok(()),
            },
        };
        let source = io::Error::new(io::ErrorKind::InvalidInput, text);
        Err(Error::new("send", format!("{} frames", load.frames), source))
    }
}

fn pin_to_cpu(cpu: u32) -> Result<Pinned> {
    let pinned = Pinned::on_cpu(cpu);
    if pinned.is_pinned() {
        return Ok(pinned);
    }
    let source = io::Error::new(io::ErrorKind::InvalidInput, "not among the allowed CPUs");
    Err(Error::new("pin the generator to CPU", cpu, source))
}

fn add_handed(sent: &mut SendCounts, handed: Handed, now: u64) {
    if handed.frames > 0 {
        if sent.frames == 0 {
            sent.first_ns = now;
        }
        sent.last_ns = now;
    }
    sent.frames += handed.frames;
    sent.bytes += handed.bytes;
    sent.refused += handed.refused;
}

/// Iterator over the template of each frame.
struct TemplateCycle<'a> {
    entries: &'a [u8],
    at: usize,
}

impl<'a> TemplateCycle<'a> {
    /// The templates from frame `number` on. The mix is not empty.
    fn from_number(entries: &'a [u8], number: u64) -> Self {
        Self { entries, at: (number % entries.len() as u64) as usize }
    }

    #[inline]
    fn next(&mut self) -> u8 {
        let entry = self.entries[self.at];
        self.at += 1;
        if self.at == self.entries.len() {
            self.at = 0;
        }
        entry
    }
}

/// Schedule of the frames.
struct Pacer {
    /// Time of the next frame; 0 for at once.
    due_ns: u64,
    /// Fraction of that time below a nanosecond, in 1 / `frames_per_sec` ns.
    due_part: u64,
    /// Time between two frames; `None` for as fast as possible.
    step: Option<BurstSendInterval>,
    when_late: WhenLate,
    burst: u32,
    /// Frames of the burst that are still due at `due_ns`.
    left: u32,
    /// Frames sent so far.
    next: u64,
    watch: Option<(WatchRule, SendWatch)>,
}

/// Time between two bursts: whole nanoseconds, and the rest in 1 / `frames_per_sec` ns.
struct BurstSendInterval {
    ns: u64,
    part: u64,
    frames_per_sec: u64,
}

impl Pacer {
    fn new(load: &FrameLoad, start_ns: u64) -> Self {
        let step = match load.pace {
            FramePace::Flood => None,
            FramePace::Rate { frames_per_sec } => {
                let span = u64::from(load.burst) * 1_000_000_000;
                Some(BurstSendInterval {
                    ns: span / frames_per_sec,
                    part: span % frames_per_sec,
                    frames_per_sec,
                })
            }
        };
        let FrameLoad { when_late, burst, .. } = *load;
        let watch = WatchRule::from_load(load, 1).map(|rule| (rule, SendWatch::new(rule)));
        Self { due_ns: start_ns, due_part: 0, step, when_late, burst, left: burst, next: 0, watch }
    }

    /// Timing of all frames so far.
    fn timing(&self) -> SendTiming {
        self.watch.as_ref().map(|(_, watch)| watch.clone().finish()).unwrap_or_default()
    }

    /// Removes the frames that are due at `now`, at most `max`, from the schedule; counts the late
    /// ones.
    fn take_due_frames(&mut self, now: u64, max: usize, sent: &mut SendCounts) -> usize {
        let (Some(step), Some((rule, watch))) = (&self.step, &mut self.watch) else { return max };
        let late_ns = step.ns.max(LATE_MIN_NS);
        let mut taken = 0;
        while taken < max && self.due_ns <= now {
            let many = (max - taken).min(self.left as usize);
            taken += many;
            self.left -= many as u32;
            let behind = now - self.due_ns;
            for _ in 0..many {
                watch.add_departure(self.next, now, behind);
                self.next += 1;
            }
            if behind > late_ns {
                sent.late += many as u64;
                sent.worst_late_ns = sent.worst_late_ns.max(behind);
            }
            if self.left > 0 {
                break;
            }
            self.left = self.burst;
            self.due_ns += step.ns;
            self.due_part += step.part;
            if self.due_part >= step.frames_per_sec {
                self.due_part -= step.frames_per_sec;
                self.due_ns += 1;
            }
            if behind > 0 && behind >= self.when_late.moves_from_ns(rule.pause_ns) {
                self.due_ns += behind;
                break;
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_at_rate(frames_per_sec: u64, burst: u32, when_late: WhenLate) -> FrameLoad {
        let pace = FramePace::Rate { frames_per_sec };
        FrameLoad { frames: 100, pace, when_late, burst, mix: vec![0] }
    }

    #[test]
    fn due_times_add_up_without_a_rounding_error() {
        // 1,488,095 frames a second: a gap of 672.0001882 ns. Frame n is due floor(n 10^9 / rate).
        let mut pacer = Pacer::new(&load_at_rate(1_488_095, 1, WhenLate::KeepSchedule), 7);
        let mut sent = SendCounts::default();
        for number in 0..3_000_000_u64 {
            assert_eq!(pacer.due_ns, 7 + number * 1_000_000_000 / 1_488_095);
            assert_eq!(pacer.take_due_frames(pacer.due_ns, 64, &mut sent), 1);
        }
        assert_eq!((sent.late, sent.worst_late_ns), (0, 0));
    }

    #[test]
    fn what_is_late_leaves_at_once_and_the_schedule_stays() {
        // A gap of 100 us; 1 ms late: frames 0 to 10 are due, 0 to 8 by more than a gap.
        let mut pacer = Pacer::new(&load_at_rate(10_000, 1, WhenLate::KeepSchedule), 0);
        let mut sent = SendCounts::default();
        assert_eq!(pacer.take_due_frames(1_000_000, 64, &mut sent), 11);
        assert_eq!((sent.late, sent.worst_late_ns), (9, 1_000_000));
        assert_eq!(pacer.due_ns, 1_100_000);
    }

    #[test]
    fn a_steady_pace_makes_up_for_delays_but_not_for_pauses() {
        // A gap of 100 us: 90 us late is made up for, 400 us is let go.
        let mut pacer = Pacer::new(&load_at_rate(10_000, 1, WhenLate::Steady), 0);
        let mut sent = SendCounts::default();
        assert_eq!(pacer.take_due_frames(90_000, 64, &mut sent), 1);
        assert_eq!(pacer.due_ns, 100_000);
        assert_eq!(pacer.take_due_frames(500_000, 64, &mut sent), 1);
        assert_eq!(pacer.due_ns, 600_000);
        assert_eq!(pacer.take_due_frames(600_000, 64, &mut sent), 1);
        let watched = pacer.timing();
        assert_eq!((watched.could_lose, watched.away_ns), (0, 400_000));
    }

    #[test]
    fn what_leaves_at_once_after_a_delay_may_cost_a_device_frames() {
        let mut pacer = Pacer::new(&load_at_rate(10_000, 1, WhenLate::KeepSchedule), 0);
        let mut sent = SendCounts::default();
        assert_eq!(pacer.take_due_frames(0, 64, &mut sent), 1);
        // Frames 1 to 10: one finds room.
        assert_eq!(pacer.take_due_frames(1_000_000, 64, &mut sent), 10);
        let watched = pacer.timing();
        assert_eq!((watched.could_lose, watched.pauses.len()), (9, 1));
    }

    #[test]
    fn no_more_leave_at_once_than_fit() {
        let mut pacer = Pacer::new(&load_at_rate(10_000, 1, WhenLate::KeepSchedule), 0);
        let mut sent = SendCounts::default();
        assert_eq!(pacer.take_due_frames(1_000_000, 4, &mut sent), 4);
        assert_eq!(pacer.due_ns, 400_000);
    }

    #[test]
    fn a_kept_gap_moves_the_schedule() {
        let mut pacer = Pacer::new(&load_at_rate(10_000, 1, WhenLate::KeepGap), 0);
        let mut sent = SendCounts::default();
        assert_eq!(pacer.take_due_frames(1_000_000, 64, &mut sent), 1);
        assert_eq!(pacer.due_ns, 1_100_000);
        assert_eq!(pacer.take_due_frames(1_100_000, 64, &mut sent), 1);
        assert_eq!((sent.late, sent.worst_late_ns), (1, 1_000_000));
    }

    #[test]
    fn bursts_are_as_far_apart_as_their_frames_together() {
        // 16 frames of a mean gap of 100 us every 1.6 ms, in calls of at most 10.
        let mut pacer = Pacer::new(&load_at_rate(10_000, 16, WhenLate::KeepSchedule), 0);
        let mut sent = SendCounts::default();
        assert_eq!(pacer.take_due_frames(5, 10, &mut sent), 10);
        assert_eq!(pacer.due_ns, 0);
        assert_eq!(pacer.take_due_frames(9, 10, &mut sent), 6);
        assert_eq!(pacer.due_ns, 1_600_000);
        assert_eq!(sent.late, 0);
    }

    #[test]
    fn at_full_speed_every_call_is_full() {
        let flood =
            FrameLoad { pace: FramePace::Flood, ..load_at_rate(1, 1, WhenLate::KeepSchedule) };
        let mut pacer = Pacer::new(&flood, 0);
        assert_eq!(pacer.take_due_frames(123, 64, &mut SendCounts::default()), 64);
    }
}
