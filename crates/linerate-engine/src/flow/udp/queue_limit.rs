//! How much of a sender's datagrams may wait before its link, and how they go there.
//!
//! A socket is held back once its datagrams take up SO_SNDBUF, wherever on this host they wait. Of
//! 1472 bytes that are 92 by the kernel's default of 212,992 bytes, a queue that most links have
//! room for; so a sender without a pace sends what its link takes, as other programs' senders do.
//! A joined buffer takes little more than its payload and would let the queue become half as long
//! again, and a discipline that has no room for all of it drops all of it: the fuller the queue,
//! the fewer datagrams are joined. Where the queue is shorter than the socket's room the link
//! refuses datagrams, and a sender without a pace makes do with less room, of which it takes an
//! eighth back twice a second.
//!
//! Left out: what other senders have in the queue.

use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_sys::datagram_socket::SendRoom;

/// A joined buffer takes at most one part of this many of the room that is left.
const PARTS: u64 = 4;

/// Datagrams that a sender keeps room for, whatever the link refuses.
const KEPT: u64 = 16;

/// Without a refusal for this long, there is more room again.
const AGAIN: Duration = Duration::from_millis(500);

/// Time of a link at its rate that a sender's room covers: a fast one tells up to so much later
/// that it has sent something.
const LINK_NS: u128 = 250_000;

/// The room of one sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLimit {
    size: u64,
    /// True where there is a queue before the link.
    queues: bool,
    /// The room that the sender began with, where it may change.
    full: Option<u64>,
    now: u64,
    turned: MonoTime,
}

impl QueueLimit {
    /// For datagrams of `size` bytes over a link that `queues`. With `began`, the room changes as
    /// the link refuses datagrams.
    pub(super) fn for_datagram_size(
        size: usize,
        queues: bool,
        began: Option<SendRoom>,
        now: MonoTime,
    ) -> Self {
        let full = began.map(|room| u64::from(room.room_bytes));
        Self { size: size as u64, queues, full, now: full.unwrap_or(0), turned: now }
    }

    /// True where the bytes that wait are to be looked at before datagrams are joined.
    pub(super) const fn bounds_joining(&self) -> bool {
        self.queues
    }

    /// How many of `wanted` datagrams find room beside what waits, and how many of them in one
    /// buffer, at most `joined`; each at least 1.
    pub(super) fn fit_datagrams(
        &self,
        room: SendRoom,
        wanted: usize,
        joined: usize,
    ) -> (usize, usize) {
        let (used, whole) = (u64::from(room.used_bytes), u64::from(room.room_bytes));
        let cost = kernel_cost(self.size);
        let count = whole.saturating_sub(used) / cost;
        // Payload of as many as find room one by one; what waits may be joined already.
        let payload = (whole / cost * self.size).saturating_sub(used);
        let together = payload / PARTS / self.size;
        let within = |value: u64, most: usize| {
            usize::try_from(value).unwrap_or(usize::MAX).clamp(1, most.max(1))
        };
        (within(count, wanted), within(together, joined))
    }

    /// The link refused datagrams while so much waited: the room from here on, where it changes.
    pub(super) fn refused(&mut self, room: SendRoom, now: MonoTime) -> Option<u64> {
        self.full?;
        self.turned = now;
        let less = u64::from(room.used_bytes) / 4 * 3;
        self.set_room(less.max(KEPT * kernel_cost(self.size)).min(self.now))
    }

    /// The room from here on, where it is time for more.
    pub(super) fn grow_room(&mut self, now: MonoTime) -> Option<u64> {
        let full = self.full?;
        if now.duration_since(self.turned) < AGAIN {
            return None;
        }
        self.turned = now;
        self.set_room((self.now + full / 8).min(full))
    }

    fn set_room(&mut self, bytes: u64) -> Option<u64> {
        let changed = bytes != self.now;
        self.now = bytes;
        changed.then_some(bytes)
    }
}

/// The kernel's memory that a datagram of `size` bytes takes up (`skb->truesize`): data of the next
/// power of two with headers and 320 bytes of the kernel's, and 256 beside.
pub(super) const fn kernel_cost(size: u64) -> u64 {
    (size + 384).next_power_of_two() + 256
}

/// The room for what a link of this rate sends in a moment.
pub(super) fn of_link(rate_bps: u64, size: usize) -> u64 {
    of_span(rate_bps, LINK_NS, size)
}

/// The room for datagrams of `size` bytes that take `span_ns` at a rate.
pub(super) fn of_span(rate_bps: u64, span_ns: u128, size: usize) -> u64 {
    let size = size.max(1) as u128;
    let bytes = u128::from(rate_bps) * span_ns / 8_000_000_000;
    let room = bytes * u128::from(kernel_cost(size as u64)) / size;
    u64::try_from(room).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> MonoTime = |ms| MonoTime::from_nanos(ms * 1_000_000);
    const DEFAULT: u32 = 212_992;

    fn send_room(used_bytes: u32, room_bytes: u32) -> SendRoom {
        SendRoom { used_bytes, room_bytes }
    }

    #[test]
    fn datagrams_cost_what_the_kernel_counts() {
        // Linux 6.18 on x86-64, SO_MEMINFO while a tbf held them: 768 for 64 bytes, 2304 for 1472.
        assert_eq!([64, 1472].map(kernel_cost), [768, 2304]);
        // 250 µs of 100 Gbit/s are 3,125,000 bytes: 2122 datagrams of 1472.
        assert_eq!(of_link(100_000_000_000, 1472) / 2304, 2122);
        assert_eq!(of_span(u64::MAX, u128::from(u64::MAX), 0), u64::MAX);
    }

    #[test]
    fn the_fuller_the_queue_the_fewer_datagrams_are_joined() {
        let it = QueueLimit::for_datagram_size(1472, true, None, AT(0));
        // 212,992 / 2304 is 92, with 135,424 bytes of payload: a quarter holds 23.
        assert_eq!(it.fit_datagrams(send_room(0, DEFAULT), 352, 44), (92, 23));
        assert_eq!(it.fit_datagrams(send_room(0, DEFAULT), 35, 20), (35, 20));
        // 100,000 bytes wait: 112,992 are left for 49, and 35,424 of payload for 24 / 4.
        assert_eq!(it.fit_datagrams(send_room(100_000, DEFAULT), 352, 44), (49, 6));
        assert_eq!(it.fit_datagrams(send_room(DEFAULT, DEFAULT), 352, 44), (1, 1));
        assert_eq!(it.fit_datagrams(send_room(u32::MAX, 0), 0, 0), (1, 1));
    }

    #[test]
    fn a_link_that_refuses_gets_less_at_once_and_slowly_all_again() {
        let mut it = QueueLimit::for_datagram_size(1472, true, Some(send_room(0, DEFAULT)), AT(0));
        assert_eq!(it.grow_room(AT(600)), None, "it has all");
        assert_eq!(it.refused(send_room(100_000, DEFAULT), AT(1000)), Some(75_000));
        assert_eq!(it.refused(send_room(10_000, 75_000), AT(1001)), Some(16 * 2304));
        assert_eq!(it.refused(send_room(10_000, 36_864), AT(1002)), None, "no less than this");
        assert_eq!(it.grow_room(AT(1400)), None);
        assert_eq!(it.grow_room(AT(1502)), Some(36_864 + 26_624));
        assert_eq!(it.grow_room(AT(1503)), None);
        let last = (0..20).filter_map(|n| it.grow_room(AT(2100 + n * 500))).last();
        assert_eq!(last, Some(DEFAULT.into()));
        let mut fixed = QueueLimit::for_datagram_size(1472, true, None, AT(0));
        assert_eq!(
            (fixed.refused(send_room(1, 2), AT(1)), fixed.grow_room(AT(9999))),
            (None, None)
        );
    }
}
