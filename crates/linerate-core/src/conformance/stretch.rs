//! A planted bucket, found again: where the arrival curve's hull is straight, its slope is a rate
//! and its height at 0 a burst.
//!
//! Traffic that is always there fills min(C t, b + r t) behind a bucket on a line. Between the end
//! of the first burst and the end of the longest busy time that curve is straight, so two corners
//! give r and b, whatever the grid of rates was. Left out: buckets that the traffic did not fill;
//! what was never sent cannot be seen. Source: Cruz, IEEE Trans. Inf. Theory 37 (1991), §II.

use super::envelope::Vertex;
use super::result::Stretch;

/// Slopes that differ by less than this are one stretch: half the step between rates of the grid.
const SAME_SLOPE: f64 = 0.06;
/// Least length of a bucket's stretch over the time before it: the first burst, or the time in
/// which the bucket fills.
const LENGTH_RATIO_MIN: f64 = 10.0;
/// Least bytes of a bucket's stretch, in the largest packets.
const PACKETS_MIN: f64 = 100.0;

/// A corner of the hull: so many bytes within so many ns.
#[derive(Clone, Copy, Debug)]
struct HullCorner {
    span_ns: f64,
    bytes: f64,
}

/// The straight stretches of the hull, shortest spans first.
pub(super) fn stretches(vertices: &[Vertex]) -> Vec<Stretch> {
    let mut corners: Vec<HullCorner> = Vec::new();
    for vertex in vertices.iter().rev() {
        let corner = HullCorner { span_ns: vertex.span_ns, bytes: vertex.arrived_bytes() };
        // The same interval again, within the rounding of its length.
        if corners.last().is_none_or(|last| corner.span_ns > last.span_ns + 0.5) {
            corners.push(corner);
        }
    }
    let mut found: Vec<(HullCorner, HullCorner)> = Vec::new();
    for pair in corners.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        match found.last_mut() {
            Some(last) if is_same(slope_between(last.0, last.1), slope_between(from, to)) => {
                last.1 = to
            }
            _ => found.push((from, to)),
        }
    }
    found.into_iter().map(|(from, to)| stretch(&corners, from, to)).collect()
}

/// Bytes per ns from one corner to the next.
fn slope_between(from: HullCorner, to: HullCorner) -> f64 {
    (to.bytes - from.bytes) / (to.span_ns - from.span_ns)
}

fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= SAME_SLOPE * one.max(other)
}

fn stretch(corners: &[HullCorner], from: HullCorner, to: HullCorner) -> Stretch {
    let rate = slope_between(from, to);
    let within = corners.iter().filter(|corner| corner.span_ns >= from.span_ns);
    let within = within.filter(|corner| corner.span_ns <= to.span_ns);
    // The deepest of the corners, so that none of them is above the line.
    let burst_bytes = within.map(|corner| corner.bytes - rate * corner.span_ns);
    Stretch {
        rate_bps: rate * 8e9,
        burst_bytes: burst_bytes.fold(0.0, f64::max),
        from_ns: from.span_ns,
        to_ns: to.span_ns,
        bytes: to.bytes,
    }
}

/// The bucket that may have shaped the traffic: the last stretch that is long enough.
pub(super) fn bucket(stretches: &[Stretch], packet_bytes_max: f64) -> Option<Stretch> {
    let is_long = |stretch: &&Stretch| {
        let fill_ns = stretch.burst_bytes * 8e9 / stretch.rate_bps;
        stretch.to_ns >= LENGTH_RATIO_MIN * stretch.from_ns.max(fill_ns)
            && stretch.bytes >= PACKETS_MIN * packet_bytes_max
    };
    stretches.iter().rev().find(is_long).copied()
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times of tests are small"
)]
mod tests {
    use std::time::Duration;

    use crate::conformance::result::BucketFound;
    use crate::conformance::{Analysis, Arrival, ConformPlan, Ended, Filter, Layer, cell_line};
    use crate::theory::token_bucket::{Colour, TokenBucket};
    use crate::units::{BitRate, Bytes};

    fn analysis() -> Analysis {
        let plan = ConformPlan {
            source: String::new(),
            contracts: Vec::new(),
            layer: Layer::Ip,
            cells: None,
            line: cell_line("oc3").expect("a line"),
            filter: Filter::default(),
            mtu_bytes: None,
        };
        Analysis::new(&plan).expect("a plan")
    }

    fn push(analysis: &mut Analysis, at_ns: u64, bytes: u32) {
        let colour = Colour::Green;
        analysis.push(&Arrival { number: 1, at_ns, bytes, ip_bytes: bytes, colour });
    }

    /// Numbers without a pattern, the same in every run (Knuth's MMIX generator).
    fn random(seed: &mut u64) -> u64 {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed >> 11
    }

    /// A stream with always a packet waiting, on a line of 1 Gbit/s through a policer for 5 s; gaps
    /// vary by `noise_ns`.
    fn policed(bps: u64, burst: u64, noise_ns: u64) -> Option<BucketFound> {
        policed_for(bps, burst, noise_ns, 5_000_000_000)
    }

    fn policed_for(bps: u64, burst: u64, noise_ns: u64, span_ns: u64) -> Option<BucketFound> {
        let mut bucket =
            TokenBucket::new(BitRate::from_bits_per_sec(bps), Bytes::new(burst)).expect("a bucket");
        let mut analysis = analysis();
        let (mut at, mut seed) = (0_u64, 1_u64);
        while at < span_ns {
            if bucket.arrive(at, 1500).is_none() {
                push(&mut analysis, at, 1500);
            }
            at += 12_000 + if noise_ns > 0 { random(&mut seed) % noise_ns } else { 0 };
        }
        analysis.result(Ended::Complete, None).bucket
    }

    fn assert_bucket_found(bps: u64, burst: u64, noise_ns: u64) {
        let found = policed(bps, burst, noise_ns);
        let found = found.unwrap_or_else(|| panic!("{bps} bit/s, {burst} bytes, {noise_ns} ns"));
        let error = |got: f64, want: u64| (got - want as f64).abs() / want as f64;
        assert!(error(found.rate_bps, bps) < 0.01, "{bps} {burst}: {found:?}");
        assert!(error(found.burst_bytes, burst) < 0.05, "{bps} {burst}: {found:?}");
    }

    #[test]
    fn a_policer_is_found_from_what_it_let_pass() {
        // Rates on the grid, between its rates, and just beside them.
        for bps in [1_000_000, 10_000_000, 10_600_000, 11_220_185, 20_000_000, 50_000_000] {
            assert_bucket_found(bps, 32_000, 0);
            assert_bucket_found(bps, 32_000, 20_000);
        }
        assert_bucket_found(10_000_000, 64_000, 0);
        assert_bucket_found(100_000_000, 1_000_000, 5_000);
        assert_bucket_found(300_000_000, 256_000, 1_000);
    }

    #[test]
    fn random_traffic_shows_no_bucket() {
        // Poisson arrivals: exponential gaps with a mean of 1 ms for 2 to 30 s.
        for seed in 1..=15 {
            let (mut state, mut at, mut analysis) = (seed, 0.0, analysis());
            while at < 2e9 * (seed as f64) {
                let at_ns = Duration::from_secs_f64(at / 1e9).as_nanos();
                push(&mut analysis, u64::try_from(at_ns).expect("a minute"), 1000);
                at -= 1e6 * ((random(&mut state) as f64 + 1.0) / 9_007_199_254_740_993.0).ln();
            }
            let found = analysis.result(Ended::Complete, None);
            assert_eq!(found.bucket, None, "seed {seed}");
            assert!(found.stretches.len() > 3, "the hull is round: {:?}", found.stretches);
        }
    }

    /// Packets of 1228 bytes at even distances: so many bit/s for so many seconds, one after the
    /// other.
    fn sent_at(rates: &[(f64, f64)]) -> Option<BucketFound> {
        let (mut analysis, mut at_ns, mut end_ns) = (analysis(), 0.0, 0.0);
        for &(bps, seconds) in rates {
            end_ns += seconds * 1e9;
            while at_ns < end_ns {
                push(&mut analysis, at_ns as u64, 1228);
                at_ns += 1228.0 * 8e9 / bps;
            }
        }
        analysis.result(Ended::Complete, None).bucket
    }

    #[test]
    fn a_sender_that_slows_down_is_not_taken_for_a_bucket() {
        // A bucket of the first rate would have let the later packets pass at three to four times
        // their rate: nothing shaped them.
        for rates in [
            &[(14.74e6, 0.36), (3.4e6, 1.0)],
            &[(14.74e6, 5.0), (3.4e6, 1.0)],
            &[(14.74e6, 5.0), (3.4e6, 20.0)],
        ] {
            assert_eq!(sent_at(rates), None, "{rates:?}");
        }
        // To the end it may have been one.
        let found = sent_at(&[(3.4e6, 6.0)]).expect("a steady rate");
        assert!((found.rate_bps / 3.4e6 - 1.0).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn a_deep_bucket_is_found_behind_the_burst_that_it_let_pass() {
        // A line of 14.74 Mbit/s fills a bucket of 3.367 Mbit/s and 513 kB for 0.361 s:
        // 513,000 × 8 / (14.74 − 3.367) Mbit/s.
        let found = sent_at(&[(14.74e6, 0.360_855), (3.367e6, 20.0)]).expect("a bucket");
        assert!((found.rate_bps / 3.367e6 - 1.0).abs() < 1e-2, "{found:?}");
        assert!((found.burst_bytes / 513e3 - 1.0).abs() < 1e-2, "{found:?}");
        // The same by a token bucket itself, behind a line of 1 Gbit/s.
        let found = policed_for(3_367_000, 513_000, 0, 20_000_000_000).expect("a bucket");
        assert!((found.rate_bps / 3.367e6 - 1.0).abs() < 1e-2, "{found:?}");
        assert!((found.burst_bytes / 513e3 - 1.0).abs() < 1e-2, "{found:?}");
    }

    #[test]
    fn a_few_packets_are_no_bucket() {
        let mut analysis = analysis();
        (0..20).for_each(|n| push(&mut analysis, n * 1_000_000, 1500));
        let found = analysis.result(Ended::Complete, None);
        assert_eq!(found.bucket, None);
        assert_eq!(found.stretches.len(), 1, "{:?}", found.stretches);
    }
}
