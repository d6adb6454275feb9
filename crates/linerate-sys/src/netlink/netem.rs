//! The kernel's network emulator at the root of a link (tc-netem(8); layouts in linux/pkt_sched.h).
//!
//! ```text
//! TCA_OPTIONS of netem: struct tc_netem_qopt, then attributes; all in host order
//!   0  u32 latency (ticks)    4  u32 limit (packets)   8  u32 loss (of 2^32 - 1)
//!  12  u32 gap               16  u32 duplicate        20  u32 jitter (ticks)
//! TCA_NETEM_CORRUPT (4)    u32 probability  u32 correlation
//! TCA_NETEM_RATE (6)       u32 bytes/s  i32 packet_overhead  u32 cell_size  i32 cell_overhead
//! TCA_NETEM_RATE64 (8)     u64 bytes/s, where 32 bits are too few
//! TCA_NETEM_LATENCY64 (10) i64 ns       TCA_NETEM_JITTER64 (11) i64 ns
//! TCA_NETEM_PRNG_SEED (14) u64
//! ```
//! Kernels with the 64-bit forms (Linux 4.15) use them instead of the ticks; kernels before 6.7
//! ignore the seed.

use linerate_core::path::{Netem, NetemRate};
use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};

use super::socket::{Attempt, RouteSocket};
use crate::Result;

const TCA_OPTIONS: u16 = 2;
const TCA_NETEM_CORRUPT: u16 = 4;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_PRNG_SEED: u16 = 14;
/// A tick of the packet scheduler: 1 << PSCHED_SHIFT nanoseconds (net/pkt_sched.h).
const TICK_NS: u128 = 64;

impl RouteSocket {
    /// Sets netem as the root queueing discipline of a link, replacing the current one.
    /// # Errors
    /// When the kernel has no netem, or without CAP_NET_ADMIN.
    pub fn set_netem(&mut self, index: u32, netem: &Netem) -> Result<()> {
        let mut message = TcMessage::with_index(index.cast_signed());
        message.header.parent = TcHandle::ROOT;
        message.header.handle = TcHandle { major: 1, minor: 0 };
        message.attributes = vec![
            TcAttribute::Kind("netem".to_owned()),
            TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options(netem))),
        ];
        let attempt = Attempt { call: "set network emulator of link", object: &index };
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.change(RouteNetlinkMessage::NewQueueDiscipline(message), flags, &attempt)
    }
}

fn options(netem: &Netem) -> Vec<u8> {
    let ticks = |ns: u128| u32::try_from(ns / TICK_NS).unwrap_or(u32::MAX);
    let (latency_ns, jitter_ns) = (netem.latency.as_nanos(), netem.jitter.as_nanos());
    let words = [
        ticks(latency_ns),
        netem.limit_packets,
        probability(netem.loss),
        0,
        probability(netem.duplicate),
        ticks(jitter_ns),
    ];
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    if netem.corrupt > 0.0 {
        let words = [probability(netem.corrupt), 0];
        attribute(&mut bytes, TCA_NETEM_CORRUPT, &words.map(u32::to_ne_bytes).concat());
    }
    if let Some(rate) = &netem.rate {
        add_rate(&mut bytes, rate);
    }
    let signed = |ns: u128| i64::try_from(ns).unwrap_or(i64::MAX).to_ne_bytes();
    attribute(&mut bytes, TCA_NETEM_LATENCY64, &signed(latency_ns));
    attribute(&mut bytes, TCA_NETEM_JITTER64, &signed(jitter_ns));
    attribute(&mut bytes, TCA_NETEM_PRNG_SEED, &netem.seed.to_ne_bytes());
    bytes
}

fn add_rate(bytes: &mut Vec<u8>, rate: &NetemRate) {
    let short = u32::try_from(rate.bytes_per_s);
    let words = [
        short.unwrap_or(u32::MAX).to_ne_bytes(),
        rate.packet_overhead_bytes.to_ne_bytes(),
        rate.cell_bytes.to_ne_bytes(),
        rate.cell_overhead_bytes.to_ne_bytes(),
    ];
    attribute(bytes, TCA_NETEM_RATE, &words.concat());
    if short.is_err() {
        attribute(bytes, TCA_NETEM_RATE64, &rate.bytes_per_s.to_ne_bytes());
    }
}

/// Appends an attribute: length with its header, kind, value (netlink(7)). All values are whole
/// words.
fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = 4 + value.len() as u16;
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
}

/// Converts a probability to netem's 32 bits: 0 is never, 2^32 - 1 is always.
fn probability(share: f64) -> u32 {
    (share.clamp(0.0, 1.0) * f64::from(u32::MAX)).round() as u32
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use std::time::Duration;

    use super::*;

    fn plain_netem() -> Netem {
        Netem {
            latency: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            limit_packets: 1000,
            rate: None,
            seed: 1,
        }
    }

    #[test]
    fn every_figure_is_at_its_place_in_the_kernels_structures() {
        let rate = NetemRate {
            bytes_per_s: 74_880_000,
            packet_overhead_bytes: 2,
            cell_bytes: 48,
            cell_overhead_bytes: 5,
        };
        let netem = Netem {
            latency: Duration::from_micros(22_500),
            jitter: Duration::from_millis(1),
            loss: 0.5,
            duplicate: 1.0,
            corrupt: 0.25,
            limit_packets: 2625,
            rate: Some(rate),
            seed: 7,
        };
        let expected = [
            // 22,500,000 / 64 = 351,562 = 0x55d4a; 2625 = 0xa41; 0x80000000; 15,625 = 0x3d09.
            &[0x4a, 0x5d, 0x05, 0][..],
            &[0x41, 0x0a, 0, 0],
            &[0, 0, 0, 0x80],
            &[0, 0, 0, 0],
            &[0xff, 0xff, 0xff, 0xff],
            &[0x09, 0x3d, 0, 0],
            // (2^32 - 1) / 4 = 1,073,741,823.75.
            &[12, 0, 4, 0, 0, 0, 0, 0x40, 0, 0, 0, 0],
            // 74,880,000 = 0x4769400.
            &[20, 0, 6, 0, 0x00, 0x94, 0x76, 0x04, 2, 0, 0, 0, 48, 0, 0, 0, 5, 0, 0, 0],
            // 22,500,000 = 0x15752a0; 1,000,000 = 0xf4240.
            &[12, 0, 10, 0, 0xa0, 0x52, 0x57, 0x01, 0, 0, 0, 0],
            &[12, 0, 11, 0, 0x40, 0x42, 0x0f, 0, 0, 0, 0, 0],
            &[12, 0, 14, 0, 7, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(options(&netem), expected.concat());
    }

    #[test]
    fn what_is_not_asked_is_not_sent_and_a_fast_line_has_its_64_bits() {
        let kinds = |netem: &Netem| {
            let bytes = options(netem);
            let mut rest = &bytes[24..];
            let mut kinds = Vec::new();
            while let [low, high, kind, 0, ..] = *rest {
                kinds.push(kind);
                rest = &rest[usize::from(u16::from_le_bytes([low, high]))..];
            }
            kinds
        };
        assert_eq!(kinds(&plain_netem()), [10, 11, 14]);
        // 100 Gbit/s is 12.5e9 bytes/s, more than 2^32; an overhead below nothing is signed.
        let rate = NetemRate {
            bytes_per_s: 12_500_000_000,
            packet_overhead_bytes: -14,
            cell_bytes: 0,
            cell_overhead_bytes: 0,
        };
        let fast = Netem { rate: Some(rate), ..plain_netem() };
        assert_eq!(kinds(&fast), [6, 8, 10, 11, 14]);
        let bytes = options(&fast);
        assert_eq!(bytes[28..36], [0xff, 0xff, 0xff, 0xff, 0xf2, 0xff, 0xff, 0xff]);
        // 12,500,000,000 = 0x2e90edd00.
        assert_eq!(bytes[48..56], [0x00, 0xdd, 0x0e, 0xe9, 0x02, 0, 0, 0]);
    }
}
