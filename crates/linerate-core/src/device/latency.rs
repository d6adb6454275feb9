//! Latency at one load: every frame of all trials together, and each trial by itself.
//!
//! A frame is stamped when its first bit leaves the tester and is taken when its last bit is back:
//! its time on the medium is taken off once or twice, by the definition. Left out: IPDV
//! (`stats::ipdv`). Sources: RFC 1242 §3.8 for the two definitions of a frame's latency; RFC 8219
//! §7.2 (typical latency is the median, worst case latency the 99.9th percentile, of 500 frames or
//! more; 20 repetitions, of which the median and the 1st and 99th percentile are told) and §7.3.1
//! (PDV is the 99.9th percentile less the smallest).

use super::TimeHistogram;
use crate::record::{BenchLatency, Distribution, LatencyKind, LatencyRepeats, MetricId, Repeated};
use crate::stats::{LogHistogram, Sorted, median};
use crate::units::{BitRate, FrameLen};

/// Tagged frames of a trial at least.
pub const FRAMES_MIN: u64 = 500;
/// Repetitions that RFC 8219 asks for at least.
pub const REPEATS_MIN: usize = 20;

/// Latency of one trial, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TrialLatency {
    frames: u64,
    min_ns: u64,
    /// Median latency of the trial's frames.
    typical_ns: u64,
    /// 99.9th percentile of the trial's frames.
    worst_ns: u64,
}

impl TrialLatency {
    /// Latency from a trial's histogram and its exact extremes; `None` without frames.
    fn from_histogram(bins: &LogHistogram, min_ns: u64, max_ns: u64) -> Option<Self> {
        Some(Self {
            frames: bins.count(),
            min_ns,
            typical_ns: bins.quantile(0.5)?.clamp(min_ns, max_ns),
            worst_ns: bins.quantile(0.999)?.clamp(min_ns, max_ns),
        })
    }

    /// The same trial with the time on the medium taken off each frame; the variation stays.
    fn without_medium(self, medium_ns: u64) -> Self {
        let less = |time_ns: u64| time_ns.saturating_sub(medium_ns);
        Self {
            min_ns: less(self.min_ns),
            typical_ns: less(self.typical_ns),
            worst_ns: less(self.worst_ns),
            ..self
        }
    }
}

impl LatencyRepeats {
    /// Median and extremes over the trials; `None` without trials.
    fn from_trials(trials: &[TrialLatency]) -> Option<Self> {
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
            pdv: repeated(|trial| trial.worst_ns - trial.min_ns)?,
            is_complete: has_enough && trials.len() >= REPEATS_MIN,
        })
    }
}

/// Delays of trials at one load, from the first bit sent to the last bit received.
#[derive(Clone, Debug, Default)]
pub struct FrameDelays {
    bins: LogHistogram,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
    trials: Vec<TrialLatency>,
}

impl FrameDelays {
    /// Adds a trial, with the delays of each stream at each counter. One without frames is ignored.
    pub fn add<'a>(&mut self, spreads: impl IntoIterator<Item = &'a TimeHistogram>) {
        let mut bins = LogHistogram::default();
        let (mut min_ns, mut max_ns) = (u64::MAX, 0);
        for spread in spreads.into_iter().filter(|spread| spread.bins.count() > 0) {
            bins.merge(&spread.bins);
            min_ns = min_ns.min(spread.min_ns);
            max_ns = max_ns.max(spread.max_ns);
            self.sum_ns += u128::from(spread.sum_ns);
        }
        let Some(trial) = TrialLatency::from_histogram(&bins, min_ns, max_ns) else { return };
        self.min_ns = if self.trials.is_empty() { min_ns } else { self.min_ns.min(min_ns) };
        self.max_ns = self.max_ns.max(max_ns);
        self.bins.merge(&bins);
        self.trials.push(trial);
    }

    /// Latency by both definitions of RFC 1242; without a medium there is one, because a frame
    /// takes no time on it. Nothing without frames.
    pub fn latency(&self, offered_fps: f64, frame_ns: Option<u64>) -> Vec<BenchLatency> {
        if self.trials.is_empty() {
            return Vec::new();
        }
        let latency_of = |kind, frame_ns| {
            self.latency_without_medium(kind, medium_ns(kind, frame_ns), offered_fps)
        };
        match frame_ns {
            None => vec![latency_of(LatencyKind::StoreAndForward, 0)],
            Some(ns) => [LatencyKind::StoreAndForward, LatencyKind::CutThrough]
                .map(|kind| latency_of(kind, ns))
                .into(),
        }
    }

    fn latency_without_medium(
        &self,
        kind: LatencyKind,
        medium_ns: u64,
        offered_fps: f64,
    ) -> BenchLatency {
        let mut bins = LogHistogram::default();
        for (value, count) in self.bins.bin_counts() {
            bins.record_many(value.saturating_sub(medium_ns), count);
        }
        let trials: Vec<_> =
            self.trials.iter().map(|trial| trial.without_medium(medium_ns)).collect();
        let typical = || trials.iter().map(|trial| trial.typical_ns as f64);
        let at = |share| bins.quantile(share).unwrap_or(0) as f64;
        let min_ns = self.min_ns.saturating_sub(medium_ns);
        BenchLatency {
            kind,
            offered_fps,
            distribution: Distribution::from_histogram(MetricId::FrameLatency, &bins),
            min_ns,
            mean_ns: self.sum_ns as f64 / bins.count() as f64 - medium_ns as f64,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: self.max_ns.saturating_sub(medium_ns),
            pdv_ns: (at(0.999) - min_ns as f64).max(0.0),
            p50_range_ns: typical().reduce(f64::min).zip(typical().reduce(f64::max)),
            repeated: LatencyRepeats::from_trials(&trials),
            frames: bins.count(),
        }
    }
}

/// Time that a frame spends on the medium between the stamps, which is not the device's: one frame
/// time at each port for store-and-forward (last bit in to first bit out), one in all for
/// cut-through (first bit in to first bit out).
const fn medium_ns(kind: LatencyKind, frame_ns: u64) -> u64 {
    match kind {
        LatencyKind::StoreAndForward => 2 * frame_ns,
        LatencyKind::CutThrough => frame_ns,
    }
}

/// Time of a frame on a medium, FCS included but neither preamble nor gap, ns, rounded down;
/// `None` without a rate.
///
/// 64 bytes at 10 Mbit/s are 51,200 ns.
pub fn frame_time_ns(frame: FrameLen, line: BitRate) -> Option<u64> {
    (u64::from(frame.bytes()) * 8_000_000_000).checked_div(line.bits_per_sec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(delays: impl IntoIterator<Item = u64>) -> TimeHistogram {
        let mut all = TimeHistogram { min_ns: u64::MAX, ..TimeHistogram::default() };
        for ns in delays {
            all.bins.record(ns);
            all.min_ns = all.min_ns.min(ns);
            all.max_ns = all.max_ns.max(ns);
            all.sum_ns += ns;
        }
        all
    }

    #[test]
    fn a_trial_has_a_median_and_a_worst_case() {
        // 1 to 1000: ranks 500 and 999.
        let bins: LogHistogram = (1..=1000).collect();
        let trial = TrialLatency::from_histogram(&bins, 1, 1000).expect("frames");
        assert_eq!((trial.typical_ns, trial.worst_ns), (500, 999));
        assert_eq!(TrialLatency::from_histogram(&LogHistogram::default(), 0, 0), None);
    }

    #[test]
    fn repetitions_give_a_median_and_two_percentiles() {
        let trial = |typical_ns| TrialLatency {
            frames: 500,
            min_ns: 0,
            typical_ns,
            worst_ns: typical_ns + 100,
        };
        // 1 to 20: the median is 10.5, the ranks are 1 and 20.
        let trials: Vec<_> = (1..=20).map(trial).collect();
        let repeated = LatencyRepeats::from_trials(&trials).expect("trials");
        assert_eq!(repeated.typical, Repeated { median_ns: 10.5, p1_ns: 1, p99_ns: 20 });
        assert_eq!((repeated.worst.median_ns, repeated.pdv.median_ns), (110.5, 110.5));
        assert!(repeated.is_complete);
        assert!(!LatencyRepeats::from_trials(&trials[1..]).expect("trials").is_complete);
        assert_eq!(LatencyRepeats::from_trials(&[]), None);
    }

    #[test]
    fn both_definitions_differ_by_the_frame() {
        // 64 bytes at 10 Mbit/s take 51.2 us: a store and forward device of 50 us has 152.4 from
        // first bit sent to last bit received, and 101.2 from first bit to first bit.
        let ten = BitRate::from_bits_per_sec(10_000_000);
        let frame_ns = frame_time_ns(FrameLen::from_bytes(64).expect("a frame"), ten);
        assert_eq!(frame_ns, Some(51_200));
        let mut delays = FrameDelays::default();
        delays.add([&spread([152_400])]);
        let [store, cut] = &delays.latency(10.0, frame_ns)[..] else { panic!("two definitions") };
        assert_eq!((store.kind, store.min_ns), (LatencyKind::StoreAndForward, 50_000));
        assert_eq!((cut.kind, cut.max_ns), (LatencyKind::CutThrough, 101_200));
        assert_eq!((store.mean_ns, cut.mean_ns), (50_000.0, 101_200.0));
        let [only] = &delays.latency(10.0, None)[..] else { panic!("one definition") };
        assert_eq!(only.min_ns, 152_400);
        let gigabit = BitRate::from_bits_per_sec(1_000_000_000);
        let long = FrameLen::from_bytes(1518).expect("a frame");
        assert_eq!(frame_time_ns(long, gigabit), Some(12_144));
    }

    #[test]
    fn counters_of_a_trial_are_taken_together_and_trials_kept_apart() {
        let mut delays = FrameDelays::default();
        delays.add([&spread([10, 10]), &spread([30])]);
        delays.add([&spread([50, 50, 50]), &TimeHistogram::default()]);
        delays.add([]);
        let [all] = &delays.latency(1.0, None)[..] else { panic!("one definition") };
        // 10 10 30 50 50 50: the third is the median of all; those of the trials are 10 and 50.
        assert_eq!((all.frames, all.min_ns, all.max_ns, all.p50_ns), (6, 10, 50, 30.0));
        assert_eq!((all.p50_range_ns, all.mean_ns), (Some((10.0, 50.0)), 200.0 / 6.0));
        let repeated = all.repeated.expect("trials");
        assert_eq!((repeated.repeats, repeated.typical.median_ns), (2, 30.0));
        assert!(FrameDelays::default().latency(1.0, None).is_empty());
    }
}
