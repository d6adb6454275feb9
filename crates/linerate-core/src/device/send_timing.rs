//! Send timing of one run: when the sender paused, and which frames it sent so close together that
//! a good device may have lost them. [`super::SendWatch`] measures it.

use super::blame::{self, Pause};

/// Pauses of one run that are listed; later ones are only counted in the time.
pub const PAUSES_MAX: usize = 256;

/// Frames of one run that have a bit in the suspect map, from the first on.
pub const SUSPECTS_MAX: usize = 1 << 20;

/// Send timing of one run. A suspect is a frame so close behind others that even a device which
/// carries the load may have lost it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendTiming {
    /// Number of suspects in the run.
    pub could_lose: u64,
    /// Map of the suspects, a bit for each of the first [`SUSPECTS_MAX`] frames; empty where the
    /// generator keeps no map.
    pub suspects: Vec<u64>,
    /// Pauses in the order of sending, the first [`PAUSES_MAX`].
    pub pauses: Vec<Pause>,
    /// Length of all pauses together, ns.
    pub away_ns: u64,
    /// Length of the longest stretch without a pause, ns.
    pub steady_ns: u64,
    /// Gaps between frames in the longest stretch.
    pub steady_gaps: u64,
}

impl SendTiming {
    /// Rate in the longest stretch without a pause, frames per second; `None` for fewer than two
    /// frames.
    pub fn steady_fps(&self) -> Option<f64> {
        let has_gaps = self.steady_gaps > 0 && self.steady_ns > 0;
        has_gaps.then(|| self.steady_gaps as f64 * 1e9 / self.steady_ns as f64)
    }

    /// Lost frames that the send timing explains one by one: suspects, the frame after each (a
    /// faster device may lose that one instead), and frames near a pause when tester and device
    /// share processors. `arrived` has one entry a frame, in the order of sending.
    pub fn count_explained(&self, arrived: &[bool], fps: f64, shares_processors: bool) -> u64 {
        let pauses = if shares_processors { self.pauses.as_slice() } else { &[] };
        let mut excused = arrived.to_vec();
        blame::forgive_pauses(pauses, &mut excused, fps);
        for (number, is_excused) in excused.iter_mut().enumerate() {
            *is_excused |= self.is_suspect(number) || number > 0 && self.is_suspect(number - 1);
        }
        let lost = excused.iter().zip(arrived).filter(|pair| !*pair.1);
        lost.filter(|pair| *pair.0).count() as u64
    }

    fn is_suspect(&self, number: usize) -> bool {
        self.suspects.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// True when each loss among the first `frames` frames can be laid on the tester or the device:
    /// the suspect map covers them, and at most half of them are suspects.
    pub fn can_attribute_losses(&self, frames: u64) -> bool {
        let is_mapped = self.could_lose == 0 || self.suspects.len() as u64 * 64 >= frames;
        is_mapped && self.could_lose * 2 <= frames
    }

    /// Adds the timing of the run that followed. The suspect map stays that of the first run that
    /// sent frames; `could_lose` counts both.
    pub fn append(&mut self, next: &Self) {
        if self.steady_gaps == 0 && self.could_lose == 0 {
            self.suspects.clone_from(&next.suspects);
        }
        self.could_lose += next.could_lose;
        self.away_ns += next.away_ns;
        let room = PAUSES_MAX.saturating_sub(self.pauses.len());
        self.pauses.extend(next.pauses.iter().take(room));
        if next.steady_ns > self.steady_ns {
            (self.steady_ns, self.steady_gaps) = (next.steady_ns, next.steady_gaps);
        }
    }
}
