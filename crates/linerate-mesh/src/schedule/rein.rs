//! What holds a keeper whose runs are part of a greater calendar: another plan that comes into
//! force, a clock that is wrong, another program that does the same; and what is booked for it
//! beside that calendar.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use linerate_core::mesh::{Booking, DOUBLE};
use linerate_core::schedule::Class;

/// State that holds a plan's runs back, shared by the keeper of the plan and the exchange with the
/// hub.
#[derive(Debug)]
pub struct Rein {
    until_s: AtomicI64,
    double: AtomicBool,
    clock: Mutex<Option<String>>,
    steps: AtomicU64,
    away: Mutex<Option<Away>>,
    given: Mutex<Vec<Booking>>,
}

/// Span in which nothing could run, with the reason; seconds since 1970-01-01 UTC.
#[derive(Clone, Debug)]
struct Away {
    reason: String,
    from_s: i64,
    until_s: i64,
}

/// Answer to a run that is about to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hindered {
    /// Nothing keeps the run from its begin.
    No,
    /// The run belongs to another plan and is left out without a note.
    Silently,
    /// The run is missed, for this reason.
    By(String),
}

impl Default for Rein {
    fn default() -> Self {
        let (double, clock) = (AtomicBool::new(false), Mutex::new(None));
        let (away, given) = (Mutex::new(None), Mutex::default());
        let steps = AtomicU64::new(0);
        Self { until_s: AtomicI64::new(i64::MAX), double, clock, steps, away, given }
    }
}

impl Rein {
    /// The plan is in force until told otherwise.
    pub fn loosen(&self) {
        self.until_s.store(i64::MAX, Ordering::SeqCst);
    }

    /// Another plan is in force from then on, seconds since 1970-01-01 UTC.
    pub fn ends_at(&self, until_s: i64) {
        self.until_s.fetch_min(until_s, Ordering::SeqCst);
    }

    /// Time until which the plan is in force, seconds since 1970-01-01 UTC.
    pub fn until_s(&self) -> i64 {
        self.until_s.load(Ordering::SeqCst)
    }

    /// Sets that another program runs the same plan as the same agent, or no longer.
    pub fn double(&self, is: bool) {
        self.double.store(is, Ordering::SeqCst);
    }

    /// True while another program runs the same plan as the same agent.
    pub fn is_double(&self) -> bool {
        self.double.load(Ordering::SeqCst)
    }

    /// Why this clock is not to be gone by, where it is not; as it was after so many steps.
    pub fn set_clock_fault(&self, wrong: Option<String>, steps: u64) {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.is_some() || steps == self.clock_step_count() {
            *clock = wrong;
        }
    }

    /// Number of times that this host's clock was set.
    pub fn clock_step_count(&self) -> u64 {
        self.steps.load(Ordering::SeqCst)
    }

    /// This clock was set: it is not gone by before it was compared with another again.
    pub fn clock_stepped(&self, reason: String) {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        self.steps.fetch_add(1, Ordering::SeqCst);
        *clock = Some(reason);
    }

    /// Nothing can run for a reason, from now on and for some seconds; said again while it lasts.
    pub fn is_away(&self, reason: &str, now_s: i64, for_s: i64) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let lasts = away.as_ref().filter(|away| away.reason == reason && away.until_s >= now_s);
        let from_s = lasts.map_or(now_s, |away| away.from_s);
        *away = Some(Away { reason: reason.to_owned(), from_s, until_s: now_s + for_s });
    }

    /// Replaces the bookings by these.
    pub fn is_given(&self, bookings: Vec<Booking>) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = bookings;
    }

    /// The bookings that are to run.
    pub(super) fn bookings_to_run(&self) -> Vec<Booking> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why nothing ran at a time, where that was said.
    pub(super) fn why_away(&self, at_s: i64) -> Option<String> {
        let away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let then = away.as_ref().filter(|away| (away.from_s..=away.until_s).contains(&at_s));
        then.map(|away| away.reason.clone())
    }

    /// Answer to a run of a class that would end at a time.
    pub(super) fn hinders(&self, end_s: i64, class: Class) -> Hindered {
        if end_s > self.until_s() {
            return Hindered::Silently;
        }
        if self.is_double() {
            // Where that one did not make it either, this is what the hub has of it.
            return Hindered::By(DOUBLE.to_owned());
        }
        let clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match clock {
            Some(reason) if class != Class::Background => Hindered::By(reason),
            _ => Hindered::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_ends_a_double_and_a_wrong_clock_hold_runs() {
        let rein = Rein::default();
        assert_eq!(rein.hinders(1000, Class::Exclusive), Hindered::No);
        rein.ends_at(1000);
        rein.ends_at(2000);
        assert_eq!(rein.hinders(1000, Class::Exclusive), Hindered::No);
        assert_eq!(rein.hinders(1001, Class::Background), Hindered::Silently);
        rein.loosen();
        rein.set_clock_fault(Some("clock".to_owned()), 0);
        let by = Hindered::By("clock".to_owned());
        assert_eq!(rein.hinders(5000, Class::Normal), by);
        assert_eq!(rein.hinders(5000, Class::Background), Hindered::No);
        rein.double(true);
        assert_eq!(rein.hinders(5000, Class::Background), Hindered::By(DOUBLE.to_owned()));
    }

    #[test]
    fn a_clock_that_was_set_is_not_gone_by_before_it_was_compared_after_that() {
        let rein = Rein::default();
        let before = rein.clock_step_count();
        rein.clock_stepped("the clock was set by +3.0 s".to_owned());
        // What was measured before it says nothing of it.
        rein.set_clock_fault(None, before);
        let held = Hindered::By("the clock was set by +3.0 s".to_owned());
        assert_eq!(rein.hinders(5000, Class::Exclusive), held);
        rein.set_clock_fault(None, rein.clock_step_count());
        assert_eq!(rein.hinders(5000, Class::Exclusive), Hindered::No);
    }

    #[test]
    fn a_span_in_which_nothing_could_run_has_its_reason_and_no_other_time_has() {
        let rein = Rein::default();
        assert_eq!(rein.why_away(100), None);
        // Said twice, 5 s apart: one span.
        rein.is_away("the disk was full", 100, 5);
        rein.is_away("the disk was full", 105, 5);
        let then = Some("the disk was full".to_owned());
        assert_eq!((rein.why_away(99), rein.why_away(100)), (None, then.clone()));
        assert_eq!((rein.why_away(110), rein.why_away(111)), (then, None));
    }
}
