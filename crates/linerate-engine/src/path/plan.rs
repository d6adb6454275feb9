//! What an emulator is asked to be, and what that takes: memory and the release quantum, both
//! known before the start.

use std::net::IpAddr;
use std::time::Duration;

use linerate_core::path::Pipeline;
use linerate_core::record::{Failure, Fault};
use linerate_core::units::BitRate;
use linerate_sys::netns::Netns;
use linerate_sys::tun::TunKind;

use super::hold::{ledger_bytes, ring_bytes};

/// Memory for packets unless the plan says otherwise.
pub const MEMORY_LIMIT_BYTES: u64 = 1 << 30;

/// A direction without a rate of its own is thought to carry this much at most over its delay.
const RATE_MAX: BitRate = BitRate::from_bits_per_sec(10_000_000_000);

/// Packets that are due within this of each other leave together where packets follow each other
/// faster: 200 µs at 1 Gbit/s kept the rate to 1.000 of the ceiling at 0.3 of a processor, 1 µs
/// took a whole one (Linux 6.18 guest).
const QUANTUM_FAST: Duration = Duration::from_micros(200);
/// The quantum is at most this part of the delay, so that it changes no round trip by more than
/// a fiftieth.
const QUANTUMS_OF_DELAY: u32 = 50;
/// Below [`FAST`], for directions that have no rate, and for short delays.
const QUANTUM_SLOW: Duration = Duration::from_micros(50);
/// From here on a packet of 1500 bytes takes less than 200 µs.
const FAST: BitRate = BitRate::from_bits_per_sec(60_000_000);

/// An emulated path between two devices that it makes.
#[derive(Debug)]
pub struct EmulatorPlan<'a> {
    /// Where it begins and ends.
    pub ends: [EmulatedEnd<'a>; 2],
    /// From the first end to the second, and back.
    pub directions: [EmulatedDirection; 2],
    /// Refuses to start above this.
    pub memory_limit_bytes: u64,
    /// Asks for real-time priority, and does without where it is not allowed.
    pub real_time: bool,
}

impl<'a> EmulatorPlan<'a> {
    /// A plan with the usual limit on memory and real-time priority where it is allowed.
    pub const fn new(ends: [EmulatedEnd<'a>; 2], directions: [EmulatedDirection; 2]) -> Self {
        Self { ends, directions, memory_limit_bytes: MEMORY_LIMIT_BYTES, real_time: true }
    }

    /// Bytes of memory that it takes at most: packets, and what tells of them.
    pub fn memory_bytes(&self) -> u64 {
        self.directions.iter().map(EmulatedDirection::memory_bytes).fold(0, u64::saturating_add)
    }

    /// Looks at everything that can be known before anything is made.
    pub(super) fn check_limits(&self) -> Result<(), Failure> {
        let usage = |object: &str, reason: &str| {
            Failure::new(Fault::Usage, "start path emulator", object, reason)
        };
        let [one, other] = &self.ends;
        if one.kind != other.kind {
            return Err(usage(&other.name, "both ends must carry IP, or both Ethernet"));
        }
        for end in &self.ends {
            if !(MTU_MIN..=MTU_MAX).contains(&end.mtu_bytes) {
                let reason = format!("an MTU of {} is not {MTU_MIN} to {MTU_MAX}", end.mtu_bytes);
                return Err(usage(&end.name, &reason));
            }
        }
        let needed = self.memory_bytes();
        if needed > self.memory_limit_bytes {
            let reason = format!(
                "rate x delay and queues need {} MB of memory, {} MB are allowed",
                needed.div_ceil(1_000_000),
                self.memory_limit_bytes / 1_000_000,
            );
            let object = format!("{} and {}", one.name, other.name);
            return Err(usage(&object, &reason)
                .advise("lower the rate, the delay or the queue, or raise the limit"));
        }
        Ok(())
    }
}

/// Smallest MTU of IPv4 (RFC 791 §3.1).
const MTU_MIN: u32 = 68;
/// Largest MTU of a TUN device (drivers/net/tun.c).
const MTU_MAX: u32 = 65_535;

/// One end of an emulated path: a device that the emulator makes.
#[derive(Clone, Debug)]
pub struct EmulatedEnd<'a> {
    /// The namespace; none is that of the calling thread.
    pub netns: Option<&'a Netns>,
    /// Name of the device, not yet taken there.
    pub name: String,
    /// IP for a point-to-point link, Ethernet for a port of a bridge.
    pub kind: TunKind,
    /// Largest IP packet of the device.
    pub mtu_bytes: u32,
    /// Addresses with their prefix lengths.
    pub addresses: Vec<(IpAddr, u8)>,
}

impl<'a> EmulatedEnd<'a> {
    /// An end that carries IP packets up to 1500 bytes and has no address.
    pub fn new(netns: Option<&'a Netns>, name: impl Into<String>) -> Self {
        let kind = TunKind::Ip;
        Self { netns, name: name.into(), kind, mtu_bytes: 1500, addresses: Vec::new() }
    }
}

/// One direction: its elements, and how much they hold at most.
#[derive(Debug, Default)]
pub struct EmulatedDirection {
    /// The elements in the order in which packets pass them.
    pub pipeline: Pipeline,
    /// The slowest rate that its packets pass before they are delayed; none where they pass none.
    pub rate: Option<BitRate>,
    /// Longest time that an element delays a packet: propagation, jitter, reordering.
    pub delay_max: Duration,
    /// The most that all queues hold together, in bytes of IP packets.
    pub queue_bytes: u64,
    /// Senders of longer packets that may not be fragmented are told this MTU; none tells nobody.
    pub announced_mtu_bytes: Option<u32>,
    /// Packets due within this of each other leave together; none chooses it by the rate.
    pub quantum: Option<Duration>,
}

impl EmulatedDirection {
    /// Most bytes of IP packets inside at once: rate x delay, and the queues.
    pub fn held_bytes_max(&self) -> u64 {
        let rate = self.rate.unwrap_or(RATE_MAX);
        let travelling = u128::from(rate.bits_per_sec()) * self.delay_max.as_nanos();
        let travelling = travelling.div_ceil(8 * 1_000_000_000);
        u64::try_from(travelling).unwrap_or(u64::MAX).saturating_add(self.queue_bytes)
    }

    /// Bytes of memory that the direction takes at most.
    pub fn memory_bytes(&self) -> u64 {
        let ring = self.ring_bytes();
        ring.saturating_add(ledger_bytes(ring))
    }

    pub(super) fn ring_bytes(&self) -> u64 {
        ring_bytes(self.held_bytes_max())
    }

    /// The release quantum. A packet that comes alone never waits for it.
    pub fn release_quantum(&self) -> Duration {
        let usual = match self.rate {
            Some(rate) if rate >= FAST => {
                (self.delay_max / QUANTUMS_OF_DELAY).clamp(QUANTUM_SLOW, QUANTUM_FAST)
            }
            _ => QUANTUM_SLOW,
        };
        self.quantum.unwrap_or(usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction(mbit: u64, delay_ms: u64, queue_bytes: u64) -> EmulatedDirection {
        EmulatedDirection {
            rate: Some(BitRate::from_bits_per_sec(mbit * 1_000_000)),
            delay_max: Duration::from_millis(delay_ms),
            queue_bytes,
            ..EmulatedDirection::default()
        }
    }

    #[test]
    fn what_a_path_holds_is_rate_times_delay_and_the_queue() {
        // 10^9 x 0.021 / 8 = 2,625,000.
        assert_eq!(direction(1000, 21, 500_000).held_bytes_max(), 3_125_000);
        assert_eq!(direction(1000, 0, 0).held_bytes_max(), 0);
    }

    #[test]
    fn a_path_that_needs_more_memory_than_allowed_is_refused_in_one_line() {
        let ends = [EmulatedEnd::new(None, "one"), EmulatedEnd::new(None, "two")];
        // 10^10 x 1 s / 8 = 1.25 GB, half more, and as much to tell of them.
        let directions = [direction(10_000, 1000, 0), direction(1000, 1, 0)];
        let failure = EmulatorPlan::new(ends, directions).check_limits().expect_err("too much");
        let text = failure.to_string();
        assert!(text.starts_with("start path emulator one and two: rate x delay"), "{text}");
        assert!(text.contains("1073 MB are allowed"), "{text}");
        assert!(!text.contains('\n'));
    }

    #[test]
    fn the_quantum_follows_rate_and_delay_unless_it_is_given() {
        assert_eq!(direction(10, 1, 0).release_quantum(), Duration::from_micros(50));
        assert_eq!(direction(1000, 1, 0).release_quantum(), Duration::from_micros(50));
        // 5 ms / 50.
        assert_eq!(direction(1000, 5, 0).release_quantum(), Duration::from_micros(100));
        assert_eq!(direction(1000, 100, 0).release_quantum(), Duration::from_micros(200));
        let given = EmulatedDirection { quantum: Some(Duration::ZERO), ..direction(1000, 1, 0) };
        assert_eq!(given.release_quantum(), Duration::ZERO);
    }
}
