//! Token buckets: a policer that loses what exceeds the contract, a shaper that makes it wait.
//!
//! The bucket is that of the theory, exact to the part of a token; here it meets packets. Lengths
//! are those of the framing (RFC 2697 §3 with one colour; RFC 7640 §5).

use super::queue::Queue;
use super::{Backlog, Element, Framing, Outlet, Packet, PathLossCause};
use crate::theory::token_bucket::{BucketError, TokenBucket};
use crate::time::MonoTime;
use crate::units::{BitRate, Bytes};

/// Rate and depth of a token bucket on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Rate at which the bucket fills; not 0.
    pub rate: BitRate,
    /// The most that the bucket holds; not 0.
    pub burst: Bytes,
    /// Bytes of a packet that the bucket counts.
    pub framing: Framing,
}

/// A bucket with its tokens, full until the first packet.
#[derive(Clone, Copy, Debug)]
struct PacketTokens {
    bucket: TokenBucket,
    framing: Framing,
}

impl PacketTokens {
    fn full_bucket(bucket: Bucket) -> Result<Self, BucketError> {
        let Bucket { rate, burst, framing } = bucket;
        Ok(Self { bucket: TokenBucket::new(rate, burst)?, framing })
    }

    /// Takes the tokens of a packet that conforms; false when it does not.
    fn take_tokens(&mut self, at: MonoTime, packet: &Packet) -> bool {
        self.bucket.arrive(at.as_nanos(), self.framing.line_bytes(packet.ip_bytes)).is_none()
    }

    /// Time at which a packet will conform; `None` when it never will.
    fn conforms_at(&self, at: MonoTime, packet: &Packet) -> Option<MonoTime> {
        let line_bytes = self.framing.line_bytes(packet.ip_bytes);
        self.bucket.conforms_at_ns(at.as_nanos(), line_bytes).map(MonoTime::from_nanos)
    }
}

/// Loses packets that exceed the contract. The bucket is full at first.
#[derive(Debug)]
pub struct Policer {
    tokens: PacketTokens,
}

impl Policer {
    /// A policer by contract.
    /// # Errors
    /// When the rate or the burst is 0.
    pub fn new(bucket: Bucket) -> Result<Self, BucketError> {
        Ok(Self { tokens: PacketTokens::full_bucket(bucket)? })
    }
}

impl Element for Policer {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if self.tokens.take_tokens(at, &packet) {
            out.forward(at, packet);
        } else {
            out.record_loss(at, packet, PathLossCause::Policed);
        }
    }
}

/// Holds packets that exceed the contract in a queue. The bucket is full at first.
pub struct TokenBucketShaper {
    tokens: PacketTokens,
    queue: Box<dyn Queue>,
    /// The packet at the head and when the bucket has enough for it.
    head: Option<(MonoTime, Packet)>,
}

impl TokenBucketShaper {
    /// A shaper by contract.
    /// # Errors
    /// When the rate or the burst is 0.
    pub fn new(bucket: Bucket, queue: impl Queue + 'static) -> Result<Self, BucketError> {
        Ok(Self { tokens: PacketTokens::full_bucket(bucket)?, queue: Box::new(queue), head: None })
    }

    /// Makes `packet` the head of the line at `at`.
    fn hold_at_head(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        match self.tokens.conforms_at(at, &packet) {
            Some(ready) => self.head = Some((ready, packet)),
            None => out.record_loss(at, packet, PathLossCause::Policed),
        }
    }
}

impl Element for TokenBucketShaper {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if self.head.is_some() {
            self.queue.enqueue(at, packet, out);
        } else if let Some(packet) = self.queue.pass_through(at, packet, out) {
            self.hold_at_head(at, packet, out);
            self.release(at, out);
        }
    }

    fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        while let Some((ready, packet)) = self.head.filter(|(ready, _)| *ready <= now) {
            let conforms = self.tokens.take_tokens(ready, &packet);
            debug_assert!(conforms, "the bucket was asked when it has enough");
            out.forward(ready, packet);
            self.head = None;
            while self.head.is_none() {
                let Some(next) = self.queue.get(ready, out) else { break };
                self.hold_at_head(ready, next, out);
            }
        }
    }

    fn next(&self) -> Option<MonoTime> {
        self.head.map(|(ready, _)| ready)
    }

    fn backlog(&self, _: MonoTime) -> Backlog {
        let mut waiting = self.queue.backlog();
        if let Some((_, packet)) = &self.head {
            waiting.packets += 1;
            waiting.bytes += u64::from(packet.ip_bytes);
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{numbers, packet, send_packets, time_at_ns};
    use super::*;
    use crate::path::{Limit, TailDrop};

    const MS: u64 = 1_000_000;

    fn bucket(bps: u64, burst_bytes: u64) -> Bucket {
        let (rate, burst) = (BitRate::from_bits_per_sec(bps), Bytes::new(burst_bytes));
        Bucket { rate, burst, framing: Framing::Ip }
    }

    #[test]
    fn a_policer_decides_as_worked_by_hand() {
        // 8 kbit/s are 1000 bytes a second; a bucket of 3000; packets of 1500 at 0, 0, 0, 1, 1.5
        // and 3 s: 3000, 1500, 0 (lost), 1000 (lost), 1500, 1500.
        let mut policer = Policer::new(bucket(8000, 3000)).expect("a bucket");
        let mut out = Outlet::default();
        for (number, ms) in [0, 0, 0, 1000, 1500, 3000].into_iter().enumerate() {
            let packet = Packet { number: number as u64, ..packet(1500) };
            policer.receive(time_at_ns(ms * MS), packet, &mut out);
        }
        assert_eq!(numbers(&out.departures), [0, 1, 4, 5]);
    }

    #[test]
    fn a_constant_rate_of_1_3_times_the_contract_loses_three_of_thirteen() {
        // 1500 bytes at 1.3 x 12 Mbit/s: one each 769.23 µs; 1 - 1/1.3 = 23.08 %.
        let mut policer = Policer::new(bucket(12_000_000, 3000)).expect("a bucket");
        let out = send_packets(&mut policer, 1_300_000, 1500, 769_231);
        let ratio = out.lost.len() as f64 / 1_300_000.0;
        assert!((ratio - 0.230_769).abs() < 1e-5, "{ratio}");
    }

    #[test]
    fn a_shaper_lets_its_burst_go_and_then_keeps_its_rate_exactly() {
        // 12 Mbit/s: 1 ms a packet. The bucket has two packets in it.
        let queue = TailDrop::new(Limit::Packets(10));
        let mut shaper = TokenBucketShaper::new(bucket(12_000_000, 3000), queue).expect("a bucket");
        let mut out = Outlet::default();
        for _ in 0..5 {
            shaper.receive(time_at_ns(0), packet(1500), &mut out);
        }
        shaper.release(time_at_ns(u64::MAX), &mut out);
        let times: Vec<_> = out.departures.iter().map(|left| left.at.as_nanos() / 1000).collect();
        assert_eq!(times, [0, 0, 1000, 2000, 3000]);
    }

    #[test]
    fn a_packet_that_is_longer_than_the_bucket_never_passes() {
        let queue = TailDrop::new(Limit::Packets(10));
        let mut shaper = TokenBucketShaper::new(bucket(12_000_000, 1000), queue).expect("a bucket");
        let out = send_packets(&mut shaper, 3, 1500, MS);
        assert_eq!((out.departures.len(), out.lost.len()), (0, 3));
    }
}
