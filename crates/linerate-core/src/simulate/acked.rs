//! What an acknowledgement tells a sender.

use crate::time::MonoTime;

/// Segments and times that an acknowledgement reports to the congestion window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: MonoTime,
    /// Segments that it newly covers.
    pub(super) segments: u64,
    /// The first segment that it does not cover.
    pub(super) first: u64,
    /// The next new segment.
    pub(super) next: u64,
    /// The round trip of the segment, if the acknowledgement gives one.
    pub(super) sample_ns: Option<u64>,
    /// The smoothed round trip.
    pub(super) rtt_s: f64,
}
