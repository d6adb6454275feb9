//! How far a sender without a pace may go ahead of its receiver: as far as the receiver's socket
//! has room, so that the test measures what the path and the hosts carry, and not how much a
//! socket throws away while its reader does something else.
//!
//! The receiver grants numbers, in its signs of life: some that wait where they are soon taken in,
//! and most of its room for a path that holds more. The sender heeds a grant only as long as that
//! cannot bound the path: its own rate times the round-trip time of the control connection is at
//! most half of the room. On a longer or faster path it goes on as if there were none, and what the
//! socket drops is told as such. Numbers that a path lost count as taken in as soon as a higher one
//! arrives, so losses of the path neither slow a sender down nor hide. Paced streams have a rate of
//! their own, and no grants.
//!
//! Left out: fairness to others on the path; a test as fast as possible has none.

use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_proto::native::Grant;

/// Share of the socket's room that is granted at most; the rest is for what the estimate of a
/// datagram's cost leaves out.
const GRANTED: (u64, u64) = (3, 4);

/// The most bytes that wait at a receiver where the path itself holds little. Of 50 MiB that wait,
/// a datagram of 64 bytes costs its receiver 1.05 µs, of 2 MiB 0.8 (Linux 6.18, `--take-singly`):
/// memory that was written long ago is far away.
const WAITING_BYTES: u64 = 4 << 20;

/// Grants are told anew when this share of what may wait has been taken in.
const STEP_DIVISOR: u64 = 4;

/// Grants are told again after this, since one that is lost must not end a test.
const AGAIN: Duration = Duration::from_millis(20);

/// A sender without room goes on with one batch after this: what it sent last may be lost, and
/// only what arrives later shows that.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);

/// Datagrams that a receiver has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceiverRoom {
    /// Datagrams that may wait.
    waiting: u64,
    /// Datagrams that find room.
    most: u64,
}

impl ReceiverRoom {
    /// For datagrams of `size` bytes, of which `joined` came in each buffer, and a socket with
    /// `room_bytes`: what the kernel counts is its own memory (`skb->truesize`), here taken from
    /// above.
    pub(super) fn from_socket_room(room_bytes: u64, size: u64, joined: u64) -> Self {
        // Memory of the next power of two, in front of 320 bytes of the kernel's, with 256 beside.
        let cost = (size * joined.max(1) + 384).next_power_of_two() + 512;
        let (share, whole) = GRANTED;
        let granted = room_bytes.saturating_mul(share) / whole;
        let datagrams = |bytes: u64| (bytes / cost * joined.max(1)).max(1);
        Self { waiting: datagrams(granted.min(WAITING_BYTES)), most: datagrams(granted) }
    }
}

/// The grants that a receiver gives its sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grants {
    last: Option<(Grant, MonoTime)>,
}

impl Grants {
    /// The grant to tell the sender now, if one is due; `next` is the number that is expected.
    pub(super) fn due_grant(
        &mut self,
        next: u64,
        window: ReceiverRoom,
        now: MonoTime,
    ) -> Option<Grant> {
        let due = self.last.is_none_or(|(last, told)| {
            let taken = next.saturating_sub(last.next);
            taken >= window.waiting.div_ceil(STEP_DIVISOR) || now.duration_since(told) >= AGAIN
        });
        let above = |count: u64| next.saturating_add(count);
        let grant = Grant { next, limit: above(window.waiting), most: above(window.most) };
        self.last = if due { Some((grant, now)) } else { self.last };
        due.then_some(grant)
    }
}

/// The grant that a sender has from its receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    grant: Option<Grant>,
}

impl Credit {
    /// The credit before the first grant: nothing is bounded.
    pub(super) const fn new() -> Self {
        Self { grant: None }
    }

    /// True where the receiver grants anything.
    pub(super) const fn is_granted(&self) -> bool {
        self.grant.is_some()
    }

    /// Takes the receiver's word. An old one that was overtaken changes nothing.
    pub(super) fn take_grant(&mut self, grant: Grant) {
        let newer = self.grant.is_none_or(|last| grant.next >= last.next);
        self.grant = if newer { Some(grant) } else { self.grant };
    }

    /// How many datagrams may follow the `sent` ones that took `elapsed` so far, over a path of
    /// this round-trip time; none where nothing bounds it.
    pub(super) fn datagrams_left(
        &self,
        sent: u64,
        elapsed: Duration,
        rtt: Option<Duration>,
    ) -> Option<u64> {
        let grant = self.grant?;
        let path = sent as f64 * rtt?.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        if path > grant.most.saturating_sub(grant.next) as f64 / 2.0 {
            return None;
        }
        // Twice what the path holds, for it to be full also while a grant is on its way.
        let needed = grant.next.saturating_add((path * 2.0) as u64);
        Some(grant.limit.max(needed).min(grant.most).saturating_sub(sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> MonoTime = |ms| MonoTime::from_nanos(ms * 1_000_000);
    const RTT: Option<Duration> = Some(Duration::from_micros(50));
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_window_is_what_the_kernels_memory_for_datagrams_holds() {
        // Linux 6.18 on x86-64 counts 832 bytes for a datagram of 64 on the loopback, 2304 for one
        // of 1472, 65,600 for 44 of those in one buffer (SO_MEMINFO); the estimates are above.
        let check = |room, size, joined, datagrams| {
            let window = ReceiverRoom { waiting: datagrams, most: datagrams };
            assert_eq!(
                ReceiverRoom::from_socket_room(room, size, joined),
                window,
                "{size} x {joined}"
            );
        };
        check(1_000_000, 64, 1, 750_000 / 1024);
        check(1_000_000, 1472, 1, 750_000 / 2560);
        check(1_000_000, 1472, 44, 750_000 / 66_048 * 44);
        check(0, 64, 128, 1);
        let large = ReceiverRoom::from_socket_room(64 << 20, 1472, 44);
        assert_eq!(large.waiting, (4 << 20) / 66_048 * 44);
        assert_eq!(large.most, (48 << 20) / 66_048 * 44);
        assert!(ReceiverRoom::from_socket_room(u64::MAX, 65_507, 1).most > 1 << 40, "no overflow");
    }

    #[test]
    fn a_grant_is_told_at_first_and_anew_with_each_quarter_and_now_and_then() {
        let mut grants = Grants::default();
        let window = ReceiverRoom { waiting: 800, most: 5000 };
        let mut turn = |next, ms| grants.due_grant(next, window, AT(ms));
        assert_eq!(turn(0, 0), Some(Grant { next: 0, limit: 800, most: 5000 }));
        assert_eq!(turn(199, 1), None);
        assert_eq!(turn(200, 1), Some(Grant { next: 200, limit: 1000, most: 5200 }));
        assert_eq!(turn(201, 20), None);
        assert_eq!(turn(201, 21), Some(Grant { next: 201, limit: 1001, most: 5201 }));
    }

    #[test]
    fn a_sender_stops_at_the_limit_and_an_overtaken_word_does_not_set_it_back() {
        let mut credit = Credit::new();
        assert_eq!(credit.datagrams_left(7, SECOND, RTT), None, "no grant, no bound");
        credit.take_grant(Grant { next: 100, limit: 900, most: 2000 });
        assert_eq!(credit.datagrams_left(880, SECOND, RTT), Some(20));
        assert_eq!(credit.datagrams_left(950, SECOND, RTT), Some(0));
        credit.take_grant(Grant { next: 50, limit: 850, most: 2000 });
        assert_eq!(credit.datagrams_left(880, SECOND, RTT), Some(20));
    }

    #[test]
    fn a_path_that_holds_more_than_half_the_room_is_not_bounded_and_a_longer_one_gets_more() {
        let mut credit = Credit::new();
        credit.take_grant(Grant { next: 10_000, limit: 10_400, most: 11_000 });
        // 10,000 a second over 20 ms are 200 on their way, over 50 ms 500, over 51 ms 510.
        let left = |ms| credit.datagrams_left(10_000, SECOND, Some(Duration::from_millis(ms)));
        assert_eq!([left(0), left(20), left(30), left(50)], [400, 400, 600, 1000].map(Some));
        assert_eq!(left(51), None);
        assert_eq!(credit.datagrams_left(10_000, SECOND, None), None, "a path of unknown length");
        assert_eq!(
            credit.datagrams_left(10_000, Duration::ZERO, RTT),
            None,
            "a rate of unknown height"
        );
    }
}
