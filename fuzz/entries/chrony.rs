//! Any bytes as a reply of chronyd: no panic, one to the request of its number alone, and an error
//! that is none where the clock is not set.

use linerate_proto::chrony::{Tracking, tracking_request};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let number = bytes.get(16..).and_then(|rest| rest.first_chunk());
    let number = number.map_or(0, |four| u32::from_be_bytes(*four));
    assert_eq!(Tracking::parse(bytes, number.wrapping_add(1)), None);
    assert_eq!(Tracking::parse(&tracking_request(number), number), None);
    let Some(tracking) = Tracking::parse(bytes, number) else { return };
    let numbers = [
        tracking.correction_s,
        tracking.root_delay_s,
        tracking.root_dispersion_s,
        tracking.update_interval_s,
    ];
    assert!(numbers.iter().all(|number| number.is_finite()));
    assert!(tracking.synchronised || tracking.error_ns().is_none());
    if let Some(error_ns) = tracking.error_ns() {
        // The correction is a part of it, but for the last digits of a float and what has no room.
        assert!(
            error_ns == u64::MAX || error_ns as f64 >= tracking.correction_s.abs() * 0.999_999e9
        );
    }
}
