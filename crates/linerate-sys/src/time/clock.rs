//! Clocks and sleeping (clock_gettime(2), clock_nanosleep(2)). The only place where time is read.

use std::time::Duration;

use linerate_core::record::RecordId;
use linerate_core::time::{Clock, MonoTime, WallTime};
use rustix::time::{ClockId, Timespec};

/// Current time of CLOCK_MONOTONIC; takes about 25 ns through the vDSO.
#[inline]
pub fn monotonic() -> MonoTime {
    MonoTime::from_nanos(timespec_nanos(rustix::time::clock_gettime(ClockId::Monotonic)))
}

/// Current time of CLOCK_REALTIME, as a label and not for differences.
pub fn wall_time() -> WallTime {
    WallTime::from_unix_nanos(u128::from(timespec_nanos(rustix::time::clock_gettime(
        ClockId::Realtime,
    ))))
}

/// Current time of CLOCK_REALTIME in ns since 1970, comparable with the kernel's packet timestamps.
#[inline]
pub fn realtime_ns() -> u64 {
    timespec_nanos(rustix::time::clock_gettime(ClockId::Realtime))
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC, to convert the kernel's packet timestamps.
pub fn realtime_offset_ns() -> i64 {
    let [real, mono] = [ClockId::Realtime, ClockId::Monotonic].map(rustix::time::clock_gettime);
    timespec_nanos(real).cast_signed().saturating_sub(timespec_nanos(mono).cast_signed())
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC to within the clock's resolution, by the closest of many
/// readings of one clock around one of the other. Takes about 2.5 µs.
pub fn realtime_offset_to_a_step_ns() -> i64 {
    let (mut low, mut high) = (i64::MIN, i64::MAX);
    for _ in 0..32 {
        let before = monotonic().as_nanos().cast_signed();
        let real = realtime_ns().cast_signed();
        let after = monotonic().as_nanos().cast_signed();
        low = low.max(real.saturating_sub(after));
        high = high.min(real.saturating_sub(before));
    }
    low.midpoint(high)
}

/// Sleeps until `then`; returns at once when it has passed. Wakes late by the timer slack of the
/// thread (50 µs by default) and by the run time of other threads.
pub fn sleep_until(then: MonoTime) {
    let request = Timespec {
        tv_sec: i64::try_from(then.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (then.as_nanos() % 1_000_000_000).cast_signed(),
    };
    // A signal ends the sleep early; the caller's loop checks its stop flag and calls again.
    let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &request);
}

/// Sleeps for the time `span`.
pub fn sleep(span: Duration) {
    sleep_until(monotonic() + span);
}

/// CLOCK_MONOTONIC of this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> MonoTime {
        monotonic()
    }
}

/// New record identifier from the wall clock and the kernel's random source.
pub fn record_id() -> RecordId {
    RecordId::from_parts(wall_time().unix_millis(), random_bytes())
}

/// Random bytes from the kernel (getrandom(2)).
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Requests up to 256 bytes are never cut short once the source is up (getrandom(2)).
    let _ = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    bytes
}

fn timespec_nanos(time: Timespec) -> u64 {
    let sec = u64::try_from(time.tv_sec).unwrap_or(0);
    sec * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_after_its_time_and_not_before() {
        let start = monotonic();
        sleep(Duration::from_millis(5));
        assert!(monotonic().duration_since(start) >= Duration::from_millis(5));
    }

    #[test]
    fn two_ids_differ_and_sort_by_time() {
        let first = record_id();
        sleep(Duration::from_millis(2));
        assert!(first < record_id());
    }
}
