//! The token bucket that makes a link of a rate (tc-tbf(8)).
//!
//! The bucket counts frames without preamble, FCS and gap: a link of 100 Mbit/s here carries
//! 100 Mbit/s of those. On a wire of that rate they would be 1514 of every 1538 bytes.

use linerate_core::units::BitRate;
use linerate_sys::netlink::Tbf;

/// Ethernet header: addresses and type (IEEE 802.3).
const ETHERNET_HEADER_BYTES: u64 = 14;
/// Tokens gather for at most this long, so a timer may be this late without loss of rate. Timers
/// of a busy virtual machine are late by up to a few milliseconds. More makes larger lumps.
const BURST_NS: u64 = 4_000_000;
/// Frames that always fit the bucket, for slow links.
const BURST_FRAMES: u64 = 2;
/// Waiting room in time: enough for the congestion windows of local paths.
const LIMIT_NS: u64 = 50_000_000;
/// Waiting room at least: four of the 64 KiB super-packets that TCP hands down.
const LIMIT_BYTES_MIN: u64 = 4 * 65_536;

/// The bucket for a link.
pub(super) fn token_bucket(rate: BitRate, mtu_bytes: u32) -> Tbf {
    let frame_bytes = u64::from(mtu_bytes) + ETHERNET_HEADER_BYTES;
    let burst = bytes_in(rate, BURST_NS).max(BURST_FRAMES * frame_bytes);
    let limit = bytes_in(rate, LIMIT_NS).max(LIMIT_BYTES_MIN);
    Tbf {
        rate_bps: rate.bits_per_sec(),
        burst_bytes: u32::try_from(burst).unwrap_or(u32::MAX),
        limit_bytes: u32::try_from(limit).unwrap_or(u32::MAX),
    }
}

/// Bytes that pass at a rate in a span; rounds down.
fn bytes_in(rate: BitRate, span_ns: u64) -> u64 {
    let bits = u128::from(rate.bits_per_sec()) * u128::from(span_ns) / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_holds_four_milliseconds_and_the_queue_fifty() {
        // 155.52 Mbit/s is 19_440_000 bytes/s: 77_760 in 4 ms, 972_000 in 50 ms.
        let tbf = token_bucket(BitRate::from_bits_per_sec(155_520_000), 1500);
        let expected = Tbf { rate_bps: 155_520_000, burst_bytes: 77_760, limit_bytes: 972_000 };
        assert_eq!(tbf, expected);
    }

    #[test]
    fn a_slow_link_still_takes_two_frames_and_a_fast_one_stays_in_32_bits() {
        let slow = token_bucket(BitRate::from_bits_per_sec(64_000), 1500);
        assert_eq!((slow.burst_bytes, slow.limit_bytes), (3028, 262_144));
        let fast = token_bucket(BitRate::from_bits_per_sec(1_000_000_000_000), 9000);
        assert_eq!((fast.burst_bytes, fast.limit_bytes), (500_000_000, u32::MAX));
    }
}
