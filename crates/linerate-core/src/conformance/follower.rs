//! Whether a bucket that the arrival curve suggests was really at work: traffic that waits behind
//! a bucket keeps it nearly empty, traffic that merely has a mean rate does not.
//!
//! Random traffic has a straight stretch too, from its worst burst to the whole capture. So a
//! bucket runs along from the look at which it first shows, and is believed when the packets since
//! then found it nearly empty without asking for more than it gives, and took all that it gave to
//! the end of the capture: a sender that slows down leaves some. A deep bucket shows late: its
//! first burst, at the rate of the line before it, looks like a bucket of that rate until then,
//! and what that one saw says nothing of the other.

use super::result::{BucketFound, Stretch};

/// Packets before the first bucket is looked for.
const FIRST_LOOK: u64 = 128;
/// Packets so far over this are the packets until the next search for a bucket.
const LOOK_PART: u64 = 4;
/// Least share of all packets that must have followed a bucket: those between two searches.
const SEEN_SHARE: f64 = 0.2;
/// Largest difference of the rates of two results that count as one bucket.
const SAME_RATE: f64 = 0.03;
/// A bucket is nearly empty below this share of its depth, and some packets.
const LOW_SHARE: f64 = 0.3;
/// Number of those packets, for the rounding of bursts and late timers.
const LOW_PACKETS: f64 = 3.0;
/// The share of packets that must find it so; those of a first burst do not.
const EMPTY_SHARE_MIN: f64 = 0.75;
/// Most bytes that packets may need beyond the bucket, as a share of its depth, beside the same
/// packets. Behind a bucket this is next to nothing; random traffic asks for half of the depth and
/// more.
const OVER_SHARE: f64 = 0.1;
/// Most of the tokens that may be wasted while the bucket is full, as a share of all tokens.
/// Traffic that waits takes all of it; a twentieth covers the rounding of the rate.
const UNUSED_SHARE: f64 = 0.05;

/// Counts of packets by the level at which they found the bucket.
#[derive(Clone, Copy, Debug, Default)]
struct LevelCounts {
    packets: u64,
    low: u64,
    /// Bytes that the bucket would not have let pass.
    over: f64,
    /// Bytes of tokens that came into the bucket, and of those that found it full.
    given: f64,
    unused: f64,
}

/// A bucket that runs along.
#[derive(Clone, Debug, Default)]
pub(super) struct Follower {
    packets: u64,
    next_look: u64,
    last_ns: u64,
    packet_bytes_max: f64,
    /// Bytes per ns, and bytes.
    bucket: Option<(f64, f64)>,
    level: f64,
    /// Counts since this bucket showed first.
    seen: LevelCounts,
}

impl Follower {
    /// Counts a packet; true when it is time to look for a bucket.
    #[inline]
    pub(super) fn arrive(&mut self, at_ns: u64, bytes: u32) -> bool {
        let bytes = f64::from(bytes);
        self.packets += 1;
        self.packet_bytes_max = self.packet_bytes_max.max(bytes);
        if let Some((rate, depth)) = self.bucket {
            let given = rate * (at_ns - self.last_ns) as f64;
            self.level += given;
            self.seen.given += given;
            self.seen.unused += (self.level - depth).max(0.0);
            self.level = self.level.min(depth);
            self.seen.packets += 1;
            self.seen.low += u64::from(self.level <= self.low_bytes(depth));
            self.level -= bytes;
            self.seen.over -= self.level.min(0.0);
            self.level = self.level.max(0.0);
        }
        self.last_ns = at_ns;
        self.packets >= self.next_look.max(FIRST_LOOK)
    }

    /// Goes on with the bucket that shows now, from the start where it is another one.
    pub(super) fn follow(&mut self, found: Option<&Stretch>) {
        self.next_look = self.packets + self.packets / LOOK_PART;
        if !found.is_some_and(|found| self.follows(found)) {
            (self.seen, self.level) = (LevelCounts::default(), 0.0);
        }
        self.bucket = found.map(|found| (found.rate_bps / 8e9, found.burst_bytes));
    }

    fn follows(&self, found: &Stretch) -> bool {
        let rate = found.rate_bps / 8e9;
        self.bucket.is_some_and(|(known, _)| (known - rate).abs() <= SAME_RATE * rate)
    }

    /// The bucket `found` at the end, where the levels that packets met confirm it.
    pub(super) fn confirm(&self, found: &Stretch) -> Option<BucketFound> {
        let LevelCounts { packets, low, over, given, unused } = self.seen;
        let empty_share = low as f64 / packets.max(1) as f64;
        let is_borne_out = self.follows(found)
            && packets >= FIRST_LOOK
            && packets as f64 >= SEEN_SHARE * self.packets as f64
            && empty_share >= EMPTY_SHARE_MIN
            && unused <= UNUSED_SHARE * given + LOW_PACKETS * self.packet_bytes_max
            && over <= OVER_SHARE * found.burst_bytes + LOW_PACKETS * self.packet_bytes_max;
        is_borne_out.then_some(BucketFound {
            rate_bps: found.rate_bps,
            burst_bytes: found.burst_bytes,
            held_ns: found.to_ns,
            empty_share,
        })
    }

    fn low_bytes(&self, depth: f64) -> f64 {
        LOW_SHARE * depth + LOW_PACKETS * self.packet_bytes_max
    }
}
