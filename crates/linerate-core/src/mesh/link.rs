//! What an agent asks its hub next, and when: beats, results in their order, a newer plan.
//!
//! One request is out at a time. One that fails is tried again later and later, up to a minute,
//! each agent at a second of its own, so that a hub that comes back is not met by all at once. A
//! result is dropped by whoever keeps the spool, and only when it is said to be stored.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Seconds between two beats.
pub const BEAT_S: f64 = 10.0;
/// The first wait after a failure, and the longest, seconds.
const WAIT_S: (f64, f64) = (1.0, 60.0);

/// What is asked of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Say that the agent is there.
    Beat,
    /// Get the plan.
    Plan,
    /// Give results.
    Results,
}

/// An agent's end of the talk.
#[derive(Debug)]
pub struct HubLink {
    draw: Xoshiro256PlusPlus,
    beat_s: f64,
    not_before_s: f64,
    failures: u32,
    revision: u64,
    offered: u64,
    declined: u64,
}

impl HubLink {
    /// One that has a plan of a revision, 0 for none; the first beat is due at once.
    pub fn new(seed: u64, revision: u64, now_s: f64) -> Self {
        Self {
            draw: Xoshiro256PlusPlus::seed_from_u64(seed),
            beat_s: now_s,
            not_before_s: now_s,
            failures: 0,
            revision,
            offered: revision,
            declined: revision,
        }
    }

    /// What to ask at a time of the monotonic clock, with results in the spool or none.
    pub fn next(&self, now_s: f64, unsent: bool) -> Option<Ask> {
        if now_s < self.not_before_s {
            return None;
        }
        if now_s >= self.beat_s {
            return Some(Ask::Beat);
        }
        if self.offered > self.revision.max(self.declined) {
            return Some(Ask::Plan);
        }
        unsent.then_some(Ask::Results)
    }

    /// When there is something to ask next, with results in the spool or none.
    pub fn due_s(&self, now_s: f64, unsent: bool) -> f64 {
        let more = unsent || self.offered > self.revision.max(self.declined);
        let wish = if more { now_s } else { self.beat_s };
        wish.max(self.not_before_s)
    }

    /// A beat was answered by a hub that has a plan of a revision.
    pub const fn beaten(&mut self, now_s: f64, offered: u64) {
        self.beat_s = now_s + BEAT_S;
        self.offered = offered;
        self.went_well(now_s);
    }

    /// Revision of the plan that it has.
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The plan that the hub offers is not taken, and not asked for again.
    pub const fn declines_plan(&mut self, now_s: f64) {
        self.declined = self.offered;
        self.went_well(now_s);
    }

    /// A plan was taken.
    pub const fn has_plan(&mut self, now_s: f64, revision: u64) {
        self.revision = revision;
        self.went_well(now_s);
    }

    /// Results were stored.
    pub const fn went_well(&mut self, now_s: f64) {
        self.failures = 0;
        self.not_before_s = now_s;
    }

    /// No answer came, or one that says that it did not work.
    pub fn failed(&mut self, now_s: f64) {
        let wait = (WAIT_S.0 * f64::from(1_u32 << self.failures.min(10))).min(WAIT_S.1);
        #[allow(clippy::cast_precision_loss, reason = "53 bits of chance")]
        let share = (self.draw.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        self.not_before_s = now_s + wait * (0.5 + share / 2.0);
        self.failures += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_comes_first_then_a_newer_plan_then_results() {
        let mut link = HubLink::new(1, 3, 100.0);
        assert_eq!(link.next(100.0, true), Some(Ask::Beat));
        link.beaten(100.0, 4);
        assert_eq!(link.next(100.0, true), Some(Ask::Plan));
        link.has_plan(100.0, 4);
        assert_eq!(link.next(100.0, true), Some(Ask::Results));
        link.went_well(100.5);
        assert_eq!((link.next(100.5, false), link.next(109.0, false)), (None, None));
        assert!((link.due_s(100.5, false) - 110.0).abs() < 1e-9);
        assert!((link.due_s(100.5, true) - 100.5).abs() < 1e-9);
        assert_eq!(link.next(110.0, true), Some(Ask::Beat));
        // A hub that was set back to an older plan offers nothing.
        link.beaten(110.0, 2);
        assert_eq!(link.next(110.0, false), None);
        // One that is no plan for this agent is not asked for again, the next one is.
        link.beaten(110.0, 5);
        assert_eq!(link.next(110.0, false), Some(Ask::Plan));
        link.declines_plan(110.0);
        assert_eq!(link.next(110.0, false), None);
        link.beaten(120.0, 6);
        assert_eq!((link.next(120.0, false), link.revision()), (Some(Ask::Plan), 4));
    }

    #[test]
    fn failures_wait_longer_and_longer_up_to_a_minute_and_apart_from_each_other() {
        let mut firsts = Vec::new();
        for seed in 0..100 {
            let mut link = HubLink::new(seed, 0, 0.0);
            let (mut now, mut waits) = (0.0, Vec::new());
            for _ in 0..9 {
                link.failed(now);
                let wait = link.not_before_s - now;
                assert_eq!(link.next(link.not_before_s - 1e-3, true), None);
                assert!((link.due_s(now, true) - link.not_before_s).abs() < 1e-9);
                now = link.not_before_s;
                assert_eq!(link.next(now, true), Some(Ask::Beat));
                waits.push(wait);
            }
            // 1, 2, 4, … 60 s, each from half to the whole.
            for (wait, most) in waits.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0])
            {
                assert!((most / 2.0..=most).contains(wait), "{waits:?}");
            }
            firsts.push(waits[8]);
        }
        firsts.sort_by(f64::total_cmp);
        assert!(firsts[99] - firsts[0] > 20.0, "spread over half a minute: {firsts:?}");
        assert!(firsts.windows(2).all(|two| two[1] - two[0] < 5.0), "{firsts:?}");
    }
}
