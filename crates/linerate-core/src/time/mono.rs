//! Monotonic time: the only source of spans.

use std::ops::{Add, AddAssign};
use std::time::Duration;

/// A point on a monotonic clock, in nanoseconds since that clock's own origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonoTime(u64);

impl MonoTime {
    /// The point `ns` nanoseconds after the clock's origin.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to `self`; 0 when `earlier` is later.
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The span from `earlier` to `self`; zero when `earlier` is later.
    pub const fn duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }
}

impl Add<Duration> for MonoTime {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        let ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ns))
    }
}

impl AddAssign<Duration> for MonoTime {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_runs_forward_only() {
        let (early, late) = (MonoTime::from_nanos(100), MonoTime::from_nanos(350));
        assert_eq!(late.nanos_since(early), 250);
        assert_eq!(late.duration_since(early), Duration::from_nanos(250));
        assert_eq!(early.nanos_since(late), 0);
        assert_eq!(early.duration_since(late), Duration::ZERO);
        assert_eq!(early.duration_since(early), Duration::ZERO);
    }

    #[test]
    fn adding_a_span_stops_at_the_end_of_the_clock() {
        let mut time = MonoTime::from_nanos(1) + Duration::from_micros(2);
        assert_eq!(time.as_nanos(), 2_001);
        time += Duration::from_secs(1);
        assert_eq!(time.as_nanos(), 1_000_002_001);
        // 2^64 ns are 584 years; a time-out of "never" must not wrap into the past.
        assert_eq!((time + Duration::MAX).as_nanos(), u64::MAX);
        assert_eq!((time + Duration::from_nanos(u64::MAX)).as_nanos(), u64::MAX);
    }

    #[test]
    fn points_compare_by_time() {
        assert!(MonoTime::from_nanos(2) > MonoTime::from_nanos(1));
        assert_eq!(MonoTime::default(), MonoTime::from_nanos(0));
    }
}
