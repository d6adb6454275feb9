//! What the times at which frames left say of a run's sender; [`super::SendWatch`] takes them.

use super::blame::{self, Pause};

/// Pauses of one run that are kept one by one.
pub const PAUSES_MAX: usize = 256;

/// Frames of one run of which each is known to be one that could be lost, or not.
pub const SUSPECTS_MAX: usize = 1 << 20;

/// What the send times of a run say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Frames that a device which carries the load may have lost.
    pub could_lose: u64,
    /// Which they are, a bit a frame; where the generator keeps it, the first [`SUSPECTS_MAX`].
    pub suspects: Vec<u64>,
    /// The first [`PAUSES_MAX`] pauses.
    pub pauses: Vec<Pause>,
    /// All of them, ns.
    pub away_ns: u64,
    /// The longest time without a pause, ns.
    pub steady_ns: u64,
    /// Gaps between frames in it.
    pub steady_gaps: u64,
}

impl Watched {
    /// The rate between pauses, frames per second; none where too few frames tell.
    pub fn steady_fps(&self) -> Option<f64> {
        let tells = self.steady_gaps > 0 && self.steady_ns > 0;
        tells.then(|| self.steady_gaps as f64 * 1e9 / self.steady_ns as f64)
    }

    /// How many of the lost frames the times explain one by one: those that an ideal device could
    /// have lost, the frames after each of them, which a faster device may lose instead, and with
    /// `shares` those near pauses.
    pub fn explained(&self, came: &[bool], fps: f64, shares: bool) -> u64 {
        let pauses = if shares { self.pauses.as_slice() } else { &[] };
        let mut explained = came.to_vec();
        blame::forgive_pauses(pauses, &mut explained, fps);
        for (number, it) in explained.iter_mut().enumerate() {
            *it |= self.is_suspect(number) || number > 0 && self.is_suspect(number - 1);
        }
        came.iter().zip(explained).filter(|(came, explained)| !**came && *explained).count() as u64
    }

    fn is_suspect(&self, number: usize) -> bool {
        self.suspects.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Whether it is known of the first `frames` frames which of them could be lost, and of enough
    /// of them that they could not.
    pub fn tells_each_of(&self, frames: u64) -> bool {
        let known = self.could_lose == 0 || self.suspects.len() as u64 * 64 >= frames;
        known && self.could_lose * 2 <= frames
    }

    /// Adds the run that followed on this one; frames that could be lost are told apart in the
    /// first one alone.
    pub fn join(&mut self, next: &Self) {
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
