//! Which points of a time-sequence diagram are kept: few far apart over the whole run, many close
//! together where something happens, and never more than a bound.
//!
//! Own rule. A long transfer's slow start is a fiftieth of it and its recoveries less; points that
//! are evenly spread would miss both.

use std::time::Duration;

use crate::time::MonoTime;

/// A point of the time-sequence diagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequencePoint {
    /// Time of the point.
    pub at: MonoTime,
    /// Payload that was acknowledged by then.
    pub acked_bytes: u64,
    /// Payload in the congestion window.
    pub cwnd_bytes: u64,
    /// Payload below which the window grows by slow start; absent before the first loss.
    pub ssthresh_bytes: Option<u64>,
}

/// Rule for the times at which points are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointsPlan {
    /// Time from point to point where nothing happens.
    pub every: Duration,
    /// Most such points. With one more, every second one goes, and from then on they are twice as
    /// far apart.
    pub most: usize,
    /// Time from point to point at the start and after each loss event.
    pub close: Duration,
    /// Time for which points are close at the start.
    pub at_start: Duration,
    /// Time for which points are close after a recovery or a time-out began.
    pub at_loss: Duration,
    /// Most close points; later events have no more.
    pub close_most: usize,
}

impl PointsPlan {
    /// Round trips of a start: the slow start of 1999 took twelve over an OC-12.
    const ROUNDS_AT_START: u32 = 24;
    /// Round trips after a loss with close points.
    const ROUNDS_AT_LOSS: u32 = 6;
    /// Points of a round trip, where they are close.
    const POINTS_A_ROUND: u32 = 16;

    /// A point each `every`, without a bound.
    pub const fn unbounded(every: Duration) -> Self {
        let none = Duration::ZERO;
        let (most, close_most) = (usize::MAX, 0);
        Self { every, most, close: none, at_start: none, at_loss: none, close_most }
    }

    /// At most 2000 points, those of round trips with events close together.
    pub fn bounded(every: Duration, rtt: Duration) -> Self {
        Self {
            every,
            most: 800,
            close: every.min(rtt / Self::POINTS_A_ROUND),
            at_start: rtt * Self::ROUNDS_AT_START,
            at_loss: rtt * Self::ROUNDS_AT_LOSS,
            close_most: 1200,
        }
    }
}

/// Keeps the points of one flow.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    plan: PointsPlan,
    every: Duration,
    due: MonoTime,
    /// Points are close until then.
    close_until: MonoTime,
    /// Kept points, each with whether it counts as a close one.
    kept: Vec<(SequencePoint, bool)>,
    close_count: usize,
}

impl Recorder {
    pub(super) fn new(plan: PointsPlan, start: MonoTime) -> Self {
        let close_until = start + plan.at_start;
        Self { plan, every: plan.every, due: start, close_until, kept: Vec::new(), close_count: 0 }
    }

    /// A recovery or a time-out begins.
    pub(super) fn loss_event(&mut self, now: MonoTime) {
        if self.close_count < self.plan.close_most {
            self.close_until = self.close_until.max(now + self.plan.at_loss);
            self.due = now;
        }
    }

    pub(super) fn is_due(&self, now: MonoTime) -> bool {
        self.due <= now
    }

    pub(super) fn keep_point(&mut self, point: SequencePoint) {
        let close = point.at < self.close_until && self.close_count < self.plan.close_most;
        if close {
            self.close_count += 1;
        } else if self.kept.len() - self.close_count >= self.plan.most {
            self.drop_every_second();
        }
        self.kept.push((point, close));
        self.due = point.at + if close { self.plan.close } else { self.every };
    }

    /// Drops every second point of those that are far apart.
    fn drop_every_second(&mut self) {
        let mut keep = false;
        self.kept.retain(|(_, close)| {
            keep ^= !close;
            *close || keep
        });
        self.every *= 2;
    }

    pub(super) fn points(&self) -> Vec<SequencePoint> {
        self.kept.iter().map(|(point, _)| *point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Offers a point each millisecond; times of those that were kept, in ms.
    fn kept_times_ms(plan: PointsPlan, span_ms: u64, losses_ms: &[u64]) -> Vec<u64> {
        let mut recorder = Recorder::new(plan, MonoTime::default());
        for ms in 0..span_ms {
            let at = MonoTime::from_nanos(ms * 1_000_000);
            if losses_ms.contains(&ms) {
                recorder.loss_event(at);
            }
            if recorder.is_due(at) {
                let (acked_bytes, cwnd_bytes, ssthresh_bytes) = (ms, 0, None);
                recorder.keep_point(SequencePoint { at, acked_bytes, cwnd_bytes, ssthresh_bytes });
            }
        }
        recorder.points().iter().map(|point| point.at.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn points_are_close_at_the_start_and_after_a_loss_and_far_apart_elsewhere() {
        let plan = PointsPlan {
            every: 100 * MS,
            most: 1000,
            close: 5 * MS,
            at_start: 20 * MS,
            at_loss: 10 * MS,
            close_most: 100,
        };
        let expected = [0, 5, 10, 15, 20, 120, 220, 250, 255, 260, 360];
        assert_eq!(kept_times_ms(plan, 400, &[250]), expected);
    }

    #[test]
    fn there_are_never_more_than_the_bounds_and_the_rest_stays_evenly_spread() {
        let plan = PointsPlan {
            every: MS,
            most: 64,
            close: MS,
            at_start: 10 * MS,
            at_loss: 10 * MS,
            close_most: 25,
        };
        let times = kept_times_ms(plan, 100_000, &[1000, 2000, 3000]);
        assert!(times.len() <= 64 + 25, "{}", times.len());
        // 10 at the start, 10 after the first loss, the last 5 after the second.
        let between = |from: u64, to: u64| times.iter().filter(move |at| (from..to).contains(*at));
        assert_eq!(between(1000, 1010).count(), 10);
        assert!(between(2000, 2005).count() == 5, "{times:?}");
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // 2^11 = 2048 ms apart fill 100 s with 49.
        assert!(gaps.iter().all(|gap| *gap <= 4096), "{gaps:?}");
    }

    #[test]
    fn all_points_are_kept_where_there_is_no_bound() {
        assert_eq!(kept_times_ms(PointsPlan::unbounded(MS), 5000, &[7]).len(), 5000);
    }
}
