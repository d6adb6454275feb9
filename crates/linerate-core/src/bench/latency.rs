//! Latency of trials at the throughput: typical, worst case and variation, over repetitions.
//!
//! Left out: IPDV (`stats::ipdv`). Sources: RFC 8219 §7.2 (typical latency is the median, worst
//! case latency the 99.9th percentile, of 500 frames or more), §7.3.1 (PDV is the 99.9th
//! percentile less the smallest) and §7 for 20 repetitions with median, 1st and 99th percentile;
//! RFC 1242 §3.8 for the two definitions of a frame's latency.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::{LogHistogram, Sorted, median};

/// Tagged frames of a trial at least.
pub const FRAMES_MIN: u64 = 500;
/// Repetitions at least.
pub const REPEATS_MIN: usize = 20;

/// Latency of one trial, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialLatency {
    /// Frames measured.
    pub frames: u64,
    /// Smallest.
    pub min_ns: u64,
    /// Typical latency: the median.
    pub typical_ns: u64,
    /// Worst case latency: the 99.9th percentile.
    pub worst_ns: u64,
    /// Largest.
    pub max_ns: u64,
    /// Packet delay variation: worst less smallest.
    pub pdv_ns: u64,
}

impl TrialLatency {
    /// Latency of a trial from its histogram and its exact extremes; `None` without frames.
    pub fn of(bins: &LogHistogram, min_ns: u64, max_ns: u64) -> Option<Self> {
        let worst_ns = bins.quantile(0.999)?.min(max_ns);
        Some(Self {
            frames: bins.count(),
            min_ns,
            typical_ns: bins.quantile(0.5)?.clamp(min_ns, max_ns),
            worst_ns,
            max_ns,
            pdv_ns: worst_ns.saturating_sub(min_ns),
        })
    }
}

/// One figure over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeated {
    /// Median of the repetitions, ns.
    pub median_ns: f64,
    /// Their 1st percentile.
    pub p1_ns: u64,
    /// Their 99th percentile.
    pub p99_ns: u64,
}

/// The benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Repetitions.
    pub repeats: u64,
    /// Typical latency.
    pub typical: Repeated,
    /// Worst case latency.
    pub worst: Repeated,
    /// Packet delay variation.
    pub pdv: Repeated,
    /// 20 repetitions of 500 frames or more, as RFC 8219 asks.
    pub is_complete: bool,
}

impl Latency {
    /// The benchmark of trials; `None` without any.
    pub fn of(trials: &[TrialLatency]) -> Option<Self> {
        let repeated = |figure: fn(&TrialLatency) -> u64| {
            let values: Vec<u64> = trials.iter().map(figure).collect();
            let exact: Vec<f64> = values.iter().map(|&value| value as f64).collect();
            let sorted = Sorted::new(values);
            Some(Repeated {
                median_ns: median(&exact)?,
                p1_ns: sorted.quantile(0.01)?,
                p99_ns: sorted.quantile(0.99)?,
            })
        };
        let has_enough = trials.iter().all(|trial| trial.frames >= FRAMES_MIN);
        Some(Self {
            repeats: trials.len() as u64,
            typical: repeated(|trial| trial.typical_ns)?,
            worst: repeated(|trial| trial.worst_ns)?,
            pdv: repeated(|trial| trial.pdv_ns)?,
            is_complete: has_enough && trials.len() >= REPEATS_MIN,
        })
    }
}

/// Time of a frame on a medium, FCS included but neither preamble nor gap, ns.
pub fn frame_time_ns(frame_bytes: u32, bits_per_s: u64) -> Option<f64> {
    (bits_per_s > 0).then(|| f64::from(frame_bytes) * 8e9 / bits_per_s as f64)
}

/// Cut-through latency (first bit in to first bit out) of a store-and-forward one (last bit in to
/// first bit out): one frame time more, on ports of equal rates.
pub fn first_in_first_out_ns(last_in_first_out_ns: f64, frame_time_ns: f64) -> f64 {
    last_in_first_out_ns + frame_time_ns
}

/// MIMO latency of the ATM Forum's frame tests: the smaller of last bit in to last bit out, and
/// first bit in to last bit out less the nominal time of the frame at the output.
pub fn mimo_ns(last_in_last_out_ns: f64, first_in_last_out_ns: f64, output_time_ns: f64) -> f64 {
    last_in_last_out_ns.min(first_in_last_out_ns - output_time_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_has_a_median_and_a_worst_case() {
        // 1 to 1000: ranks 500 and 999.
        let bins: LogHistogram = (1..=1000).collect();
        let trial = TrialLatency::of(&bins, 1, 1000).expect("frames");
        assert_eq!((trial.typical_ns, trial.worst_ns, trial.pdv_ns), (500, 999, 998));
        assert_eq!(TrialLatency::of(&LogHistogram::default(), 0, 0), None);
    }

    #[test]
    fn repetitions_give_a_median_and_two_percentiles() {
        let trial = |typical_ns| TrialLatency {
            frames: 500,
            min_ns: 10,
            typical_ns,
            worst_ns: typical_ns + 100,
            max_ns: 1000,
            pdv_ns: typical_ns + 90,
        };
        // 1 to 20: the median is 10.5, the ranks are 1 and 20.
        let trials: Vec<_> = (1..=20).map(trial).collect();
        let latency = Latency::of(&trials).expect("trials");
        assert_eq!(latency.typical, Repeated { median_ns: 10.5, p1_ns: 1, p99_ns: 20 });
        assert_eq!(latency.worst.median_ns, 110.5);
        assert!(latency.is_complete);
        assert!(!Latency::of(&trials[1..]).expect("trials").is_complete);
        assert_eq!(Latency::of(&[]), None);
    }

    #[test]
    fn both_definitions_differ_by_the_frame() {
        // 64 bytes at 10 Mbit/s: 51.2 us; 1518 at 1 Gbit/s: 12.144 us.
        let time = frame_time_ns(64, 10_000_000).expect("a rate");
        assert_eq!(first_in_first_out_ns(50_000.0, time), 101_200.0);
        assert_eq!(frame_time_ns(1518, 1_000_000_000), Some(12_144.0));
        assert_eq!(frame_time_ns(64, 0), None);
        // Store and forward from 100 Mbit/s to 10: LILO 60 us, FILO 65.12, output 51.2.
        assert!((mimo_ns(60_000.0, 65_120.0, 51_200.0) - 13_920.0).abs() < 1e-9);
    }
}
