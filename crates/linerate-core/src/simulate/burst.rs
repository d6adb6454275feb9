//! How many segments leave together: segmentation offload, the waiting for more room, and pacing,
//! as Linux has them (`tcp_tso_autosize`, `tcp_tso_should_defer` and `tcp_update_skb_after_send` in
//! `net/ipv4/tcp_output.c`).
//!
//! A sender hands the network a millisecond of its rate at a time, in one piece that enters the
//! path at line rate: a buffer of a few packets overflows though the mean rate is far below it.

use std::time::Duration;

use crate::time::MonoTime;

/// Bytes of a piece at the most (`GSO_MAX_SIZE`).
const PIECE_BYTES_MAX: f64 = 65_536.0;
/// A piece holds the rate's bytes of so much time: 2^-10 s (`sk_pacing_shift`).
const PIECE_S: f64 = 1.0 / 1024.0;
/// Round trips for which a piece is larger, by halves: 2^9 µs (`tcp_tso_rtt_log`).
const NEAR_US: u128 = 512;
/// Divisor of the window for the room below which a sender waits for more.
const ROOM_DIVISOR: f64 = 3.0;
/// Time since the last sending within which a sender waits.
const WAIT: Duration = Duration::from_millis(1);

/// State of a sender that is about to begin a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Segments that windows allow now.
    pub(super) segments: u64,
    /// The congestion window or the receiver's, whichever is less.
    pub(super) window: f64,
    /// Time at which the oldest segment under way was sent.
    pub(super) oldest: Option<MonoTime>,
    pub(super) rtt: Duration,
    /// No waiting for a larger piece: in a recovery, or where more room comes soon.
    pub(super) at_once: bool,
}

/// Pieces of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bursts {
    /// Segments of the piece begun that are left.
    left: u64,
    last: Option<MonoTime>,
    /// The next piece leaves then at the earliest.
    paced: MonoTime,
}

/// Segments of a piece at this pacing rate: two at least.
pub(super) fn piece_segments(rate_bytes_per_s: f64, mss_bytes: u32, rtt: Duration) -> u64 {
    let near = match rtt.as_micros() / NEAR_US {
        halves @ 0..32 => PIECE_BYTES_MAX / f64::from(1_u32 << u32::try_from(halves).unwrap_or(31)),
        _ => 0.0,
    };
    let bytes = (rate_bytes_per_s * PIECE_S + near).min(PIECE_BYTES_MAX);
    truncated(bytes / f64::from(mss_bytes)).max(2)
}

impl Bursts {
    /// Counts a new segment into the present or a new piece of `size` segments; false when it has
    /// to wait.
    pub(super) fn admits(&mut self, now: MonoTime, size: u64, room: &Room) -> bool {
        if self.left == 0 {
            if room.segments < size && self.should_defer(now, room) {
                return false;
            }
            self.left = size.min(room.segments);
            self.last = Some(now);
        }
        self.left = self.left.saturating_sub(1);
        true
    }

    fn should_defer(&self, now: MonoTime, room: &Room) -> bool {
        let recent = self.last.is_some_and(|last| now.duration_since(last) <= WAIT);
        let old = room.oldest.is_some_and(|oldest| now.duration_since(oldest) >= room.rtt / 2);
        let little = (room.segments as f64) < room.window / ROOM_DIVISOR;
        recent && old && little && !room.at_once
    }

    /// Ends the present piece, complete or not.
    pub(super) const fn end_piece(&mut self) {
        self.left = 0;
    }

    pub(super) const fn is_within(&self) -> bool {
        self.left > 0
    }

    /// Time from which the next piece may leave.
    pub(super) const fn paced_until(&self) -> MonoTime {
        self.paced
    }

    /// A piece that takes `span` at the pace left at `now`.
    pub(super) fn pace_piece(&mut self, now: MonoTime, span: Duration) {
        let start = self.paced.max(now);
        // A sender that was late makes up for it, by half a piece at the most.
        let credit = start.duration_since(self.paced);
        self.paced = start + (span - credit.min(span / 2));
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
pub(super) const fn truncated(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_a_millisecond_of_the_rate_and_larger_on_short_paths() {
        // 100 Mbit/s with a fifth more, 40 ms: 15e6 / 1024 = 14,648 bytes: ten segments of 1448.
        assert_eq!(piece_segments(15e6, 1448, Duration::from_millis(40)), 10);
        // 64 KiB are 45.3 segments.
        assert_eq!(piece_segments(1e9, 1448, Duration::from_millis(40)), 45);
        assert_eq!(piece_segments(1e3, 1448, Duration::from_millis(40)), 2);
        // 1 ms: 1000 / 512 = 1, so half of 64 KiB more: (14,648 + 32,768) / 1448 = 32.7.
        assert_eq!(piece_segments(15e6, 1448, Duration::from_millis(1)), 32);
    }

    #[test]
    fn a_sender_waits_for_room_only_while_it_is_busy() {
        let at = |us: u64| MonoTime::from_nanos(us * 1000);
        let rtt = Duration::from_millis(40);
        let room =
            |segments, at_once| Room { segments, window: 300.0, oldest: Some(at(0)), rtt, at_once };
        let mut bursts = Bursts::default();
        // Nothing was sent before: it leaves.
        assert!(bursts.admits(at(40_000), 10, &room(2, false)));
        assert!(bursts.admits(at(40_000), 10, &room(1, false)));
        assert!(!bursts.admits(at(40_300), 10, &room(2, false)), "it waits for ten");
        assert!(bursts.admits(at(40_300), 10, &room(2, true)), "in a recovery it does not");
        bursts.end_piece();
        assert!(bursts.admits(at(41_400), 10, &room(2, false)), "nor after a millisecond");
        bursts.end_piece();
        assert!(bursts.admits(at(41_500), 10, &room(100, false)), "nor with a third of the window");
    }

    #[test]
    fn pieces_leave_at_the_pace_and_a_late_one_is_made_up_for_by_half() {
        let at = |us: u64| MonoTime::from_nanos(us * 1000);
        let piece = Duration::from_micros(1000);
        let mut bursts = Bursts::default();
        bursts.pace_piece(at(10_000), piece);
        // The first has all the credit that there is: half.
        assert_eq!(bursts.paced_until(), at(10_500));
        bursts.pace_piece(at(10_500), piece);
        assert_eq!(bursts.paced_until(), at(11_500));
        bursts.pace_piece(at(11_700), piece);
        assert_eq!(bursts.paced_until(), at(12_500), "0.2 ms late");
    }
}
