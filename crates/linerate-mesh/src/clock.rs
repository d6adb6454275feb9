//! The time of day as plans of a mesh count it.

use linerate_sys::clock::realtime_ns;

/// Seconds since 1970 (UTC), by this host's clock.
pub(super) fn now_s() -> i64 {
    i64::try_from(realtime_ns() / 1_000_000_000).unwrap_or(i64::MAX)
}
