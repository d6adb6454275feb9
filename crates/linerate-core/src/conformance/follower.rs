//! Whether a bucket that the arrival curve suggests was really at work: traffic that waits behind
//! a bucket keeps it nearly empty, traffic that merely has a mean rate does not.
//!
//! Random traffic has a straight stretch too, from its worst burst to the whole capture. So the
//! bucket that shows after 128, 256, 512 … packets is kept running over as many more, and is
//! believed when they found it nearly empty without asking for more than it gives, and took all
//! that it gave to the end of the capture: a sender that slows down leaves some.

use super::result::{BucketFound, Stretch};

/// Packets before the first bucket is looked for.
const FIRST_LOOK: u64 = 128;
/// A bucket is nearly empty below this share of its depth, and some packets.
const LOW_SHARE: f64 = 0.3;
/// Those packets: the rounding of bursts and late timers.
const LOW_PACKETS: f64 = 3.0;
/// The share of packets that must find it so; those of a first burst do not.
const EMPTY_SHARE_MIN: f64 = 0.75;
/// The most that they may ask beyond it, as a share of its depth, beside the same packets. Behind
/// a bucket this is next to nothing; random traffic asks for half of the depth and more.
const OVER_SHARE: f64 = 0.1;
/// The most that they may leave of what the bucket gives. Traffic that waits takes all of it; a
/// twentieth covers the rounding of the rate.
const UNUSED_SHARE: f64 = 0.05;

/// What packets found.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    packets: u64,
    low: u64,
    /// Bytes that the bucket would not have let pass.
    over: f64,
    /// Bytes that came into the bucket, and those for which it was too full.
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
    before: Seen,
    now: Seen,
}

impl Follower {
    /// A packet comes. Says whether it is time to look for a bucket.
    #[inline]
    pub(super) fn arrive(&mut self, at_ns: u64, bytes: u32) -> bool {
        let bytes = f64::from(bytes);
        self.packets += 1;
        self.packet_bytes_max = self.packet_bytes_max.max(bytes);
        if let Some((rate, depth)) = self.bucket {
            let given = rate * (at_ns - self.last_ns) as f64;
            self.level += given;
            self.now.given += given;
            self.now.unused += (self.level - depth).max(0.0);
            self.level = self.level.min(depth);
            self.now.packets += 1;
            self.now.low += u64::from(self.level <= self.low_bytes(depth));
            self.level -= bytes;
            self.now.over -= self.level.min(0.0);
            self.level = self.level.max(0.0);
        }
        self.last_ns = at_ns;
        self.packets >= self.next_look.max(FIRST_LOOK)
    }

    /// Goes on with the bucket that shows now.
    pub(super) fn follow(&mut self, found: Option<Stretch>) {
        self.next_look = self.packets * 2;
        self.before = self.now;
        self.now = Seen::default();
        self.bucket = found.map(|found| (found.rate_bps / 8e9, found.burst_bytes));
    }

    /// The bucket `found` at the end, when what was seen bears it out.
    pub(super) fn judge(&self, found: &Stretch) -> Option<BucketFound> {
        let packets = self.before.packets + self.now.packets;
        let over = self.before.over + self.now.over;
        let (given, unused) =
            (self.before.given + self.now.given, self.before.unused + self.now.unused);
        let empty_share = (self.before.low + self.now.low) as f64 / packets.max(1) as f64;
        let is_borne_out = packets >= FIRST_LOOK
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
