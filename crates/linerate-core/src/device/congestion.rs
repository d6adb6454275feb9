//! Congestion in a switch: does a full port hold up frames to another (head-of-line blocking), or
//! push back on the senders?
//!
//! Two ports send at the medium's rate: one half to a free port and half to a congested one, the
//! other all to the congested one, which is so offered 150 %. Left out: forward pressure (§5.6),
//! which takes a sender with a gap below the least. Source: RFC 2889 §5.5.

use crate::record::{Congestion, PortCounts};

/// An output that carries more than this share of the capacity was not full: its capacity is
/// another one than was thought, as where links have no medium.
const FULL_MAX: f64 = 1.001;

/// Largest loss ratio on the free port without head-of-line blocking: stragglers.
const LOSS_MAX: f64 = 1e-6;

impl PortCounts {
    const fn lost_frames(self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    fn loss_ratio(self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost_frames() as f64 / self.sent as f64 }
    }
}

impl Congestion {
    /// The verdict for counts of both ports; `capacity` is the number of frames that the medium
    /// carries in the time of the trial.
    pub fn from_counts(free: PortCounts, congested: PortCounts, capacity: u64) -> Self {
        let carried = congested.received as f64 > capacity as f64 * FULL_MAX;
        let is_uncongested = congested.intended <= capacity || carried;
        Self {
            has_head_of_line_blocking: free.loss_ratio() > LOSS_MAX,
            has_back_pressure: !is_uncongested && congested.lost_frames() == 0,
            is_uncongested,
            free_loss_ratio: free.loss_ratio(),
            congested_loss_ratio: congested.loss_ratio(),
            free: Some(free),
            congested: Some(congested),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 100 Mbit/s, 64 bytes, 10 s: 1,488,090 frames; half and one and a half of that.
    const CAPACITY: u64 = 1_488_090;
    const FREE: PortCounts = PortCounts { intended: 744_045, sent: 744_045, received: 744_045 };
    const FULL: PortCounts =
        PortCounts { intended: 2_232_135, sent: 2_232_135, received: CAPACITY };

    #[test]
    fn a_good_switch_loses_only_at_the_congested_port() {
        let found = Congestion::from_counts(FREE, FULL, CAPACITY);
        assert!(!found.has_head_of_line_blocking && !found.has_back_pressure);
        assert!((found.congested_loss_ratio - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn loss_at_the_free_port_is_head_of_line_blocking() {
        let blocked = PortCounts { received: 496_030, ..FREE };
        let found = Congestion::from_counts(blocked, FULL, CAPACITY);
        assert!(found.has_head_of_line_blocking);
        assert!((found.free_loss_ratio - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn no_loss_at_the_congested_port_is_back_pressure() {
        let held = PortCounts { sent: CAPACITY, received: CAPACITY, ..FULL };
        assert!(Congestion::from_counts(FREE, held, CAPACITY).has_back_pressure);
        let little = PortCounts { intended: CAPACITY, sent: CAPACITY, received: CAPACITY };
        let found = Congestion::from_counts(FREE, little, CAPACITY);
        assert!(found.is_uncongested && !found.has_back_pressure);
    }

    #[test]
    fn an_output_that_carries_one_and_a_half_times_its_capacity_was_not_full() {
        let carried = PortCounts { received: FULL.sent, ..FULL };
        let found = Congestion::from_counts(FREE, carried, CAPACITY);
        assert!(found.is_uncongested && !found.has_back_pressure);
    }
}
