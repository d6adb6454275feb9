//! Back-to-back frames: the longest burst without loss, and the buffer that it implies.
//!
//! Each repetition is a search of its own; after the first, a search starts at the result before.
//! Sources: RFC 2544 §26.4, RFC 9004 §6. Only meaningful where the throughput is below the
//! medium's rate.

use serde::{Deserialize, Serialize};

use super::search::{Controller, INVALID_MAX, IntegerSearch, Invalid, NextTrial};
use crate::stats::Moments;

/// Longest burst that is tried, frames.
pub const BURST_MAX: u64 = 65_536;

/// Frames to which each repetition is searched.
pub const BURST_STEP: u64 = 1;

/// One burst to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BurstTrial {
    /// Frames with the smallest legal gap, after the device was idle.
    pub frames: u64,
    /// Number of the repetition, from 0.
    pub repeat: u32,
}

/// Outcome of one burst.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BurstOutcome {
    /// Frames that were asked for.
    pub frames: u64,
    /// Frames put on the wire.
    pub sent: u64,
    /// Different frames received from the device.
    pub received: u64,
    /// The reason why the outcome does not count.
    pub invalid: Option<Invalid>,
}

impl BurstOutcome {
    /// False for a burst that was sent shorter than asked: it says nothing about the longer one.
    fn counts(&self) -> bool {
        self.invalid.is_none() && self.sent == self.frames && self.received <= self.sent
    }
}

/// The search for burst lengths.
#[derive(Clone, Debug)]
pub struct BurstSearch {
    max_frames: u64,
    resolution: u64,
    repeats: u32,
    lengths: Vec<u64>,
    current: IntegerSearch,
    invalid: usize,
}

impl BurstSearch {
    /// Bursts up to `max_frames` (the frames that the medium carries in 2 s, for RFC 2544), each
    /// repetition to within `resolution` frames.
    pub fn new(max_frames: u64, resolution: u64, repeats: u32) -> Self {
        Self {
            max_frames,
            resolution,
            repeats: repeats.max(1),
            lengths: Vec::new(),
            current: IntegerSearch::new(max_frames, resolution, None),
            invalid: 0,
        }
    }

    /// The longest burst of each repetition so far.
    pub fn lengths(&self) -> &[u64] {
        &self.lengths
    }
}

impl Controller for BurstSearch {
    type Trial = BurstTrial;
    type Outcome = BurstOutcome;

    fn next(&self) -> NextTrial<BurstTrial> {
        let repeat = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        match self.current.next() {
            Some(frames) if repeat < self.repeats && self.invalid < INVALID_MAX => {
                NextTrial::Trial(BurstTrial { frames, repeat })
            }
            _ => NextTrial::Done,
        }
    }

    fn add_outcome(&mut self, outcome: BurstOutcome) {
        if !outcome.counts() {
            self.invalid += 1;
            return;
        }
        self.invalid = 0;
        self.current.add_result(outcome.frames, outcome.received == outcome.sent);
        if self.current.next().is_none() {
            let found = self.current.largest_passed();
            self.lengths.push(found);
            self.current = IntegerSearch::new(self.max_frames, self.resolution, Some(found));
        }
    }
}

/// Burst lengths with the buffer that they imply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Burst {
    /// Repetitions of the search.
    pub repeats: u64,
    /// Shortest of the longest bursts, frames.
    pub min_frames: f64,
    /// Mean of the longest bursts, which is the benchmark.
    pub mean_frames: f64,
    /// Longest of the longest bursts, frames.
    pub max_frames: f64,
    /// Standard deviation; `None` for one.
    pub stddev_frames: Option<f64>,
    /// Implied buffer time: mean burst over the rate at which it arrived, s (RFC 9004 §6).
    pub implied_s: f64,
    /// Buffer time less the frames forwarded meanwhile, s; `None` without a throughput below that
    /// rate.
    pub corrected_s: Option<f64>,
    /// The corrected time in frames of the rate at which they arrived.
    pub corrected_frames: Option<f64>,
    /// The longest burst that could be sent passed: the buffer is larger than all this.
    pub is_at_max: bool,
}

/// Rates and limit that bursts were sent with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLimits {
    /// Rate within a burst: the medium's, or the tester's real one.
    pub rate_fps: f64,
    /// The device's throughput, if it was measured.
    pub throughput_fps: Option<f64>,
    /// The longest burst that was tried.
    pub max_frames: u64,
}

impl Burst {
    /// Figures of `lengths`; `None` without lengths or rate.
    ///
    /// implied = mean / rate; corrected = implied (1 - throughput / rate). 3,000 frames at
    /// 1,000,000 frames/s imply 3 ms; with a throughput of 800,000 frames/s 0.6 ms.
    /// # Source
    /// RFC 9004 §6 (benchmark calculations).
    pub fn from_lengths(lengths: &[u64], limits: &BurstLimits) -> Option<Self> {
        let BurstLimits { rate_fps, throughput_fps, max_frames } = *limits;
        if !(rate_fps.is_finite() && rate_fps > 0.0) {
            return None;
        }
        let moments: Moments = lengths.iter().map(|&length| length as f64).collect();
        let mean_frames = moments.mean()?;
        let implied_s = mean_frames / rate_fps;
        let drained = throughput_fps.map(|throughput| throughput / rate_fps);
        let drained = drained.filter(|share| (0.0..1.0).contains(share));
        let corrected_s = drained.map(|share| implied_s * (1.0 - share));
        Some(Self {
            repeats: moments.count(),
            min_frames: moments.min()?,
            mean_frames,
            max_frames: moments.max()?,
            stddev_frames: moments.stddev(),
            implied_s,
            corrected_s,
            corrected_frames: corrected_s.map(|seconds| seconds * rate_fps),
            is_at_max: lengths.iter().any(|length| *length >= max_frames),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(longest: impl Fn(u32) -> u64, max: u64, repeats: u32) -> (BurstSearch, u32) {
        let mut search = BurstSearch::new(max, 1, repeats);
        let mut trials = 0;
        while let Some(BurstTrial { frames, repeat }) = search.next().into_trial() {
            let received = frames.min(longest(repeat));
            search.add_outcome(BurstOutcome { frames, sent: frames, received, invalid: None });
            trials += 1;
        }
        (search, trials)
    }

    fn burst_from_search(
        search: &BurstSearch,
        throughput_fps: Option<f64>,
        max_frames: u64,
    ) -> Option<Burst> {
        Burst::from_lengths(
            search.lengths(),
            &BurstLimits { rate_fps: 1e6, throughput_fps, max_frames },
        )
    }

    #[test]
    fn a_planted_buffer_is_found_in_each_repetition() {
        // 64 frames of buffer and 80 % of the rate going out: 64 / (1 - 0.8) = 320 frames.
        let (search, trials) = run(|_| 320, 30_000, 50);
        assert_eq!(search.lengths(), [320; 50]);
        // 16 trials for the first (30,000 and 15 halvings), two for each of the others.
        assert!(trials <= 16 + 49 * 2, "{trials}");
        let burst = burst_from_search(&search, Some(8e5), 30_000).expect("lengths");
        assert!((burst.implied_s - 320e-6).abs() < 1e-12);
        assert!((burst.corrected_s.expect("below the rate") - 64e-6).abs() < 1e-12);
        assert!((burst.corrected_frames.expect("frames") - 64.0).abs() < 1e-9);
        assert_eq!((burst.repeats, burst.stddev_frames, burst.is_at_max), (50, Some(0.0), false));
    }

    #[test]
    fn repetitions_differ_as_the_device_does() {
        let (search, _) = run(|repeat| if repeat % 2 == 0 { 100 } else { 110 }, 1000, 4);
        assert_eq!(search.lengths(), [100, 110, 100, 110]);
        let burst = burst_from_search(&search, None, 1000).expect("lengths");
        assert_eq!((burst.min_frames, burst.mean_frames, burst.max_frames), (100.0, 105.0, 110.0));
        // Four values 5 away from their mean: sqrt(100 / 3).
        assert!((burst.stddev_frames.expect("four") - 5.773_503).abs() < 1e-6);
        assert_eq!(burst.corrected_s, None);
    }

    #[test]
    fn a_device_at_line_rate_shows_no_limit() {
        let (search, trials) = run(|_| u64::MAX, 1000, 1);
        assert_eq!((search.lengths(), trials), (&[1000][..], 1));
        let burst = burst_from_search(&search, Some(1e6), 1000).expect("lengths");
        assert!(burst.is_at_max);
        assert_eq!(burst.corrected_s, None);
    }

    #[test]
    fn bursts_that_were_cut_do_not_count() {
        let mut search = BurstSearch::new(100, 1, 1);
        for _ in 0..INVALID_MAX {
            assert!(search.next().into_trial().is_some());
            search.add_outcome(BurstOutcome { frames: 100, sent: 99, received: 99, invalid: None });
        }
        assert_eq!(search.next(), NextTrial::Done);
        assert!(search.lengths().is_empty());
    }
}
