//! How often probes go beside a load, so that they take no more than a hundredth of what it moves:
//! 50 a second are half of a link of 56 kbit/s. Before a rate is known there is one at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use linerate_core::record::{Direction, FlowSide};

use crate::flow::account::{client_side, rate_bps};
use crate::flow::samples::Sample;

/// Share of the load's rate that probes of one kind may take.
const SHARE: f64 = 0.01;
/// Headers around the payload of a probe: IPv6 and UDP, the longest.
const HEADER_BYTES: u32 = 48;
/// However slow the path, one goes in this time: a hundredth of 700 bit/s.
const INTERVAL_NS_MAX: f64 = 10e9;

/// The interval of probes while a load goes on; 0 before its rate is known.
#[derive(Debug, Default)]
pub(crate) struct ProbeShare {
    interval_ns: AtomicU64,
}

impl ProbeShare {
    /// Time between two probes that the load leaves room for; none before its rate is known.
    pub(crate) fn interval_ns(&self) -> Option<u64> {
        match self.interval_ns.load(Ordering::Relaxed) {
            0 => None,
            ns => Some(ns),
        }
    }

    /// Learns what the load moved so far from what the client's end, or the server's, samples of
    /// it. Of several directions the slowest counts: probes go both ways.
    pub(super) fn learn_load_rate(&self, samples: &[Sample], of_client: bool, payload_bytes: u32) {
        let ways = [Direction::Up, Direction::Down];
        let rates = ways.into_iter().filter_map(|way| {
            let receives = (client_side(way) == FlowSide::Receiver) == of_client;
            let of_way: Vec<&Sample> =
                samples.iter().filter(|sample| sample.direction == way).collect();
            carried_bps(&of_way, receives)
        });
        let Some(bps) = rates.reduce(f64::min) else { return };
        let bits = f64::from((payload_bytes + HEADER_BYTES) * 8);
        let interval_ns = (bits * 1e9 / (SHARE * bps)).clamp(1.0, INTERVAL_NS_MAX);
        self.interval_ns.store(interval_ns as u64, Ordering::Relaxed);
    }
}

/// The rate that has arrived so far, in bit/s. A sender of TCP knows it by the kernel's delivery
/// rate: what it wrote may wait in its send buffer for seconds.
fn carried_bps(samples: &[&Sample], receives: bool) -> Option<f64> {
    let span_ns = samples.iter().map(|sample| sample.t_ns).max()?;
    let bytes: u64 = samples.iter().map(|sample| sample.bytes).sum();
    let moved = Some(rate_bps(bytes, span_ns)).filter(|bps| *bps > 0.0)?;
    let delivered: Option<u64> = samples.iter().map(|sample| sample.delivery_rate_bps).sum();
    match delivered.filter(|_| !receives) {
        Some(delivered) if delivered > 0 => Some(moved.min(delivered as f64)),
        _ => Some(moved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(way: Direction, bytes: u64, delivery_rate_bps: Option<u64>) -> Sample {
        Sample { bytes, delivery_rate_bps, ..Sample::empty_at(way, 0, 1_000_000_000) }
    }

    fn interval_ms(samples: &[Sample], of_client: bool) -> Option<u64> {
        let share = ProbeShare::default();
        share.learn_load_rate(samples, of_client, 42);
        share.interval_ns().map(|ns| ns / 1_000_000)
    }

    #[test]
    fn probes_take_a_hundredth_of_what_arrives() {
        // 90 bytes are 720 bits: of 50 kbit/s a hundredth is 500 bit/s, one in 1.44 s.
        let down = sample(Direction::Down, 6250, None);
        assert_eq!(interval_ms(std::slice::from_ref(&down), true), Some(1440));
        // Of 36 Mbit/s one in 2 ms: the plan's interval is longer.
        let fast = sample(Direction::Down, 4_500_000, None);
        assert_eq!(interval_ms(std::slice::from_ref(&fast), true), Some(2));
        // 2.5 MB were written at once and 50 kbit/s delivered.
        let up = sample(Direction::Up, 2_500_000, Some(50_000));
        assert_eq!(interval_ms(std::slice::from_ref(&up), true), Some(1440));
        // The server's own count of the same needs no estimate.
        let there = sample(Direction::Up, 6250, Some(1));
        assert_eq!(interval_ms(std::slice::from_ref(&there), false), Some(1440));
        // Both ways at once: the slower one.
        assert_eq!(interval_ms(&[up, fast], true), Some(1440));
    }

    #[test]
    fn before_anything_arrived_no_rate_is_known() {
        assert_eq!(interval_ms(&[], true), None);
        assert_eq!(interval_ms(&[sample(Direction::Down, 0, None)], true), None);
        // A byte in a second would be one probe in hours.
        assert_eq!(interval_ms(&[sample(Direction::Down, 1, None)], true), Some(10_000));
    }
}
