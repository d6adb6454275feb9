//! The clock as something that is passed in: a real one lives in `linerate-sys`, a simulated one
//! here.

use std::cell::Cell;
use std::time::Duration;

use super::MonoTime;

/// A source of monotonic time.
pub trait Clock {
    /// Now, on this clock.
    fn now(&self) -> MonoTime;
}

/// A clock that moves only when it is set.
#[derive(Debug, Default)]
pub struct SimClock(Cell<MonoTime>);

impl SimClock {
    /// A clock that shows `start`.
    pub const fn starting_at(start: MonoTime) -> Self {
        Self(Cell::new(start))
    }

    /// Moves the clock forward by `span`.
    pub fn advance(&self, span: Duration) {
        self.0.set(self.0.get() + span);
    }

    /// Moves the clock to `then`; a point in the past leaves it where it is.
    pub fn advance_to(&self, then: MonoTime) {
        self.0.set(self.0.get().max(then));
    }
}

impl Clock for SimClock {
    fn now(&self) -> MonoTime {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_clock_stands_still_until_it_is_moved() {
        let clock = SimClock::starting_at(MonoTime::from_nanos(5));
        assert_eq!(clock.now(), MonoTime::from_nanos(5));
        assert_eq!(clock.now(), MonoTime::from_nanos(5));
        clock.advance(Duration::from_nanos(7));
        assert_eq!(clock.now(), MonoTime::from_nanos(12));
    }

    #[test]
    fn a_simulated_clock_never_goes_back() {
        let clock = SimClock::default();
        clock.advance_to(MonoTime::from_nanos(100));
        clock.advance_to(MonoTime::from_nanos(40));
        assert_eq!(clock.now(), MonoTime::from_nanos(100));
        clock.advance_to(MonoTime::from_nanos(101));
        assert_eq!(clock.now(), MonoTime::from_nanos(101));
    }

    #[test]
    fn whoever_takes_a_clock_sees_it_move_through_a_shared_reference() {
        fn two_readings(clock: &dyn Clock, between: impl FnOnce()) -> Duration {
            let start = clock.now();
            between();
            clock.now().duration_since(start)
        }
        let clock = SimClock::default();
        let span = two_readings(&clock, || clock.advance(Duration::from_millis(3)));
        assert_eq!(span, Duration::from_millis(3));
    }
}
