//! A duplex mismatch: one end of a link is full duplex and sends at any time, the other one is half
//! duplex, waits while it hears the first, and takes what comes while it sends for a collision
//! (IEEE 802.3 §4.2; Shalunov and Carlson 2005, "Detecting duplex mismatch on Ethernet").
//!
//! Left out: the wait after a collision. A frame that collides within its first 64 bytes is sent
//! again at once as part of the same turn, a later collision loses it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::time::MonoTime;

/// Times of the frames on a link whose ends disagree on duplex, shared by its two directions.
#[derive(Clone, Debug, Default)]
pub struct DuplexMismatch(Arc<Mutex<FrameTimes>>);

#[derive(Debug, Default)]
struct FrameTimes {
    /// Time until which the full-duplex end sends.
    full_until: MonoTime,
    /// The last frame of the half-duplex end: its begin, and when it is over.
    half: (MonoTime, MonoTime),
    /// True when that frame was hit after its collision window.
    half_is_lost: bool,
}

/// One end of a mismatched link, by the direction that it sends.
#[derive(Clone, Debug)]
pub struct DuplexEnd {
    link: DuplexMismatch,
    is_half: bool,
    /// Time of the first 64 bytes on the line: the collision window.
    window_ns: u64,
}

impl DuplexMismatch {
    /// The end that sends in one direction, half duplex or full, on a line of `bits_per_s`.
    pub fn duplex_end(&self, is_half: bool, bits_per_s: u64) -> DuplexEnd {
        DuplexEnd {
            link: self.clone(),
            is_half,
            window_ns: 512 * 1_000_000_000 / bits_per_s.max(1),
        }
    }
}

impl DuplexEnd {
    /// Sends a frame that is ready at `at` and leaves until the time from `send`. A
    /// full-duplex end's frame has its fate at once; a half-duplex end's from
    /// [`DuplexEnd::was_hit`].
    pub(super) fn send_frame(
        &self,
        at: MonoTime,
        send: impl FnOnce(MonoTime) -> MonoTime,
    ) -> (MonoTime, bool) {
        let mut turns = self.link.0.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_half {
            let begin = at.max(turns.full_until);
            turns.half = (begin, send(begin));
            turns.half_is_lost = false;
            return (turns.half.1, false);
        }
        turns.full_until = send(at);
        let (begin, until) = turns.half;
        let collides = begin < turns.full_until && at < until;
        let late = at.nanos_since(begin) >= self.window_ns;
        turns.half_is_lost |= collides && late;
        (turns.full_until, collides)
    }

    /// True when the half-duplex end's frame that is over now was hit late.
    pub(super) fn was_hit(&self) -> bool {
        let turns = self.link.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_half && turns.half_is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{packet, time_at_ns};
    use super::*;
    use crate::path::{
        Element, Framing, Limit, Outlet, Packet, PathLossCause, QueuedLink, TailDrop,
    };
    use crate::units::BitRate;

    /// 1500 bytes take 1 ms, 64 bytes 43 µs, at either end.
    fn mismatched_links() -> [QueuedLink; 2] {
        let mismatch = DuplexMismatch::default();
        [false, true].map(|is_half| {
            let rate = BitRate::from_bits_per_sec(12_000_000);
            let link = QueuedLink::new(rate, Framing::Ip, TailDrop::new(Limit::Packets(100)));
            link.in_mismatch(mismatch.duplex_end(is_half, 12_000_000))
        })
    }

    /// Sends packets of (µs, number, whether by the half-duplex end) and tells the numbers lost.
    fn lost_numbers(packets: &[(u64, u64, bool)]) -> Vec<u64> {
        let (mut ends, mut out) = (mismatched_links(), Outlet::default());
        for &(us, number, half) in packets {
            let now = time_at_ns(us * 1000);
            ends.iter_mut().for_each(|end| end.release(now, &mut out));
            ends[usize::from(half)].receive(now, Packet { number, ..packet(1500) }, &mut out);
        }
        ends.iter_mut().for_each(|end| end.release(time_at_ns(u64::MAX), &mut out));
        assert!(out.lost.iter().all(|lost| lost.cause == PathLossCause::Damaged));
        assert_eq!(out.lost.len() + out.departures.len(), packets.len());
        let mut numbers: Vec<_> = out.lost.iter().map(|lost| lost.packet.number).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn one_direction_alone_loses_nothing() {
        assert_eq!(lost_numbers(&[(0, 1, false), (0, 2, false), (0, 3, false)]), [0_u64; 0]);
        assert_eq!(lost_numbers(&[(0, 1, true), (0, 2, true), (0, 3, true)]), [0_u64; 0]);
    }

    #[test]
    fn a_frame_into_one_of_the_half_duplex_end_is_lost_with_it() {
        // The second begins 500 µs into the first, past its window of 43 µs.
        assert_eq!(lost_numbers(&[(0, 1, true), (500, 2, false)]), [1, 2]);
        // Within the window the half-duplex end begins anew and gets through.
        assert_eq!(lost_numbers(&[(0, 1, true), (30, 2, false)]), [2]);
    }

    #[test]
    fn the_half_duplex_end_waits_for_the_other_one() {
        assert_eq!(lost_numbers(&[(0, 1, false), (500, 2, true)]), [0_u64; 0]);
        // It begins at 1 ms, as the next frame of the other end does: an early collision.
        assert_eq!(lost_numbers(&[(0, 1, false), (0, 2, false), (500, 3, true)]), [2]);
    }
}
