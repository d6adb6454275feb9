//! The clock as something that is passed in: a real one lives in `linerate-sys`, a simulated one
//! here.

use std::cell::Cell;
use std::time::Duration;

use super::MonoTime;

/// Something that tells monotonic time.
pub trait Clock {
    /// Now, on this clock.
    fn now(&self) -> MonoTime;
}

/// A clock that stands still until it is told to move.
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
