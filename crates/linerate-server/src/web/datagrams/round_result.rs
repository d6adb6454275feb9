//! What one round of datagrams brought, both ways.

use linerate_core::time::MonoTime;
use serde::Serialize;

use super::fate::OneWayCounts;

/// Counts of one round of datagrams, both ways.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RoundResult {
    pub(super) round: u8,
    pub(super) down: OneWayCounts,
    pub(super) up: OneWayCounts,
    /// Payload of each datagram, bytes.
    #[serde(skip)]
    pub(super) bytes: u16,
    /// When it was asked for, and when its last datagram was to leave.
    #[serde(skip)]
    pub(super) planned: (MonoTime, MonoTime),
}

impl RoundResult {
    /// A result with the same counts both ways, at a planned time.
    #[cfg(test)]
    pub(super) const fn from_counts(fate: OneWayCounts, planned: (MonoTime, MonoTime)) -> Self {
        Self { round: 0, down: fate, up: fate, bytes: 100, planned }
    }

    /// Bytes sent to the browser, with `around` bytes of headers for each datagram.
    #[cfg(feature = "datagrams")]
    pub(super) fn bytes_down(&self, around: u64) -> u64 {
        self.down.sent * (u64::from(self.bytes) + around)
    }
}
