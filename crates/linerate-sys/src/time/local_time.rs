//! The host's time zone (localtime_r(3): TZ, else /etc/localtime), for output with local dates.

use linerate_core::time::WallTime;

/// Offset of local time from UTC at `at`, in seconds; 0 where the host has no time zone.
pub fn offset_seconds(at: WallTime) -> i64 {
    let Ok(seconds) = libc::time_t::try_from(at.unix_millis() / 1000) else { return 0 };
    // SAFETY: an all-zero `tm` is a valid value of it (integers and a null pointer).
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of this frame; localtime_r keeps neither. The C
    // library reads TZ without a lock, and no thread of this program sets it.
    let filled = unsafe { libc::localtime_r(&raw const seconds, &raw mut tm) };
    if filled.is_null() { 0 } else { tm.tm_gmtoff }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_is_further_than_14_hours_from_utc() {
        let now = WallTime::from_unix_nanos(1_795_000_000_000_000_000);
        let offset = offset_seconds(now);
        assert!((-12 * 3600..=14 * 3600).contains(&offset), "{offset}");
        assert_eq!(offset % 900, 0, "whole quarters of an hour");
    }
}
