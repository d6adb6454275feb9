//! How far a sender without a pace may go ahead of its receiver: as far as the receiver's socket
//! has room, so that the test measures what the path and the hosts carry, and not how much a
//! socket throws away while its reader does something else.
//!
//! The receiver grants numbers, in its signs of life. The sender heeds a grant only as long as
//! that cannot bound the path: its own rate times the round-trip time of the control connection is
//! less than half of the window. On a longer or faster path it goes on as if there were none, and
//! what the socket drops is told as such. Numbers that a path lost count as taken in as soon as a
//! higher one arrives, so losses of the path neither slow a sender down nor hide. Paced streams
//! have a rate of their own, and no grants.
//!
//! Left out: fairness to others on the path; a test as fast as possible has none.

use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_proto::native::Grant;

/// Share of the socket's room that is granted; the rest is for what the estimate of a datagram's
/// cost leaves out.
const GRANTED: (u64, u64) = (3, 4);

/// Payload that is granted at most: enough for a receiver that a busy host keeps waiting for some
/// milliseconds. More waits in memory further away.
const WINDOW_BYTES_MAX: u64 = 24 << 20;

/// Grants are told anew when this share of the window has been taken in.
const STEP_DIVISOR: u64 = 8;

/// And after this, since one that is lost must not end a test.
const AGAIN: Duration = Duration::from_millis(20);

/// A sender without room goes on with one batch after this: what it sent last may be lost, and
/// only what arrives later shows that.
const PATIENCE: Duration = Duration::from_millis(50);

/// Datagrams of `size` bytes for which a socket with `room_bytes` has room, where `joined` came in
/// each buffer: what the kernel counts is its own memory (`skb->truesize`), here taken from above.
pub(super) fn window(room_bytes: u64, size: u64, joined: u64) -> u64 {
    let payload = size * joined.max(1);
    // Memory of the next power of two, in front of 320 bytes of the kernel's, with 256 beside.
    let cost = (payload + 384).next_power_of_two() + 512;
    let (share, whole) = GRANTED;
    let granted = room_bytes.saturating_mul(share) / whole / cost * joined.max(1);
    granted.min(WINDOW_BYTES_MAX / size.max(1)).max(1)
}

/// What a receiver grants.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grants {
    last: Option<(Grant, MonoTime)>,
}

impl Grants {
    /// What to tell the sender now, if anything: `next` is the number that is expected, and the
    /// window what [`window`] says.
    pub(super) fn turn(&mut self, next: u64, window: u64, now: MonoTime) -> Option<Grant> {
        let due = self.last.is_none_or(|(last, told)| {
            next.saturating_sub(last.next) >= window / STEP_DIVISOR || now.since(told) >= AGAIN
        });
        let grant = Grant { next, limit: next.saturating_add(window) };
        self.last = if due { Some((grant, now)) } else { self.last };
        due.then_some(grant)
    }
}

/// What a sender was granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    grant: Option<Grant>,
}

impl Credit {
    /// Nothing was granted, and nothing is bounded.
    pub(super) const fn new() -> Self {
        Self { grant: None }
    }

    /// Whether the receiver grants anything.
    pub(super) const fn is_granted(&self) -> bool {
        self.grant.is_some()
    }

    /// Takes the receiver's word. An old one that was overtaken changes nothing.
    pub(super) fn told(&mut self, grant: Grant) {
        let newer = self.grant.is_none_or(|last| grant.next >= last.next);
        self.grant = if newer { Some(grant) } else { self.grant };
    }

    /// How many datagrams may follow the `sent` ones that took `elapsed` so far, over a path of
    /// this round-trip time; none where nothing bounds it.
    pub(super) fn left(&self, sent: u64, elapsed: Duration, rtt: Option<Duration>) -> Option<u64> {
        let grant = self.grant?;
        let window = grant.limit.saturating_sub(grant.next);
        let path = sent as f64 * rtt?.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        (path <= window as f64 / 2.0).then(|| grant.limit.saturating_sub(sent))
    }

    /// A grant that has not changed for as long as a sender waits.
    pub(super) const fn patience() -> Duration {
        PATIENCE
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
        assert_eq!(window(1_000_000, 64, 1), 750_000 / 1024);
        assert_eq!(window(1_000_000, 1472, 1), 750_000 / 2560);
        assert_eq!(window(1_000_000, 1472, 44), 750_000 / 66_048 * 44);
        assert_eq!(window(64 << 20, 1472, 44), (24 << 20) / 1472, "the most");
        assert_eq!(window(0, 64, 128), 1, "nothing would never end");
        assert_eq!(window(u64::MAX, 65_507, 1), (24 << 20) / 65_507);
    }

    #[test]
    fn a_grant_is_told_at_first_and_anew_with_each_eighth_and_now_and_then() {
        let mut grants = Grants::default();
        assert_eq!(grants.turn(0, 800, AT(0)), Some(Grant { next: 0, limit: 800 }));
        assert_eq!(grants.turn(99, 800, AT(1)), None);
        assert_eq!(grants.turn(100, 800, AT(1)), Some(Grant { next: 100, limit: 900 }));
        assert_eq!(grants.turn(101, 800, AT(20)), None);
        assert_eq!(grants.turn(101, 800, AT(21)), Some(Grant { next: 101, limit: 901 }));
    }

    #[test]
    fn a_sender_stops_at_the_limit_and_an_overtaken_word_does_not_set_it_back() {
        let mut credit = Credit::new();
        assert_eq!(credit.left(7, SECOND, RTT), None, "no grant, no bound");
        credit.told(Grant { next: 100, limit: 900 });
        assert_eq!(credit.left(880, SECOND, RTT), Some(20));
        assert_eq!(credit.left(950, SECOND, RTT), Some(0));
        credit.told(Grant { next: 50, limit: 850 });
        assert_eq!(credit.left(880, SECOND, RTT), Some(20));
    }

    #[test]
    fn a_path_that_holds_more_than_half_the_window_is_not_bounded_by_it() {
        let mut credit = Credit::new();
        credit.told(Grant { next: 0, limit: 1000 });
        // 10,000 a second over 50 ms are 500 on their way, over 51 ms 510.
        let left = |ms| credit.left(10_000, SECOND, Some(Duration::from_millis(ms)));
        assert_eq!((left(50), left(51)), (Some(0), None));
        assert_eq!(credit.left(10_000, SECOND, None), None, "a path of unknown length");
        assert_eq!(credit.left(10_000, Duration::ZERO, RTT), None, "a rate of unknown height");
    }
}
