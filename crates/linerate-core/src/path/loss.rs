//! Independent random loss.

use super::{Element, Outlet, Packet, PathLossCause, Random};
use crate::time::MonoTime;

/// Loses each packet with one probability, independently (Bernoulli).
#[derive(Debug)]
pub struct Bernoulli {
    probability: f64,
    random: Random,
}

impl Bernoulli {
    /// Loss with `probability`, 0 … 1.
    pub const fn new(probability: f64, random: Random) -> Self {
        Self { probability, random }
    }

    /// Draws the fate of the next packet; true when it is lost.
    pub(super) fn draw_loss(&mut self) -> bool {
        self.random.chance(self.probability)
    }
}

impl Element for Bernoulli {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if self.draw_loss() {
            out.record_loss(at, packet, PathLossCause::Random);
        } else {
            out.forward(at, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_lost_is_the_probability_to_four_standard_errors() {
        let n = 4_000_000_u32;
        for (probability, seed) in [(0.01, 1), (0.25, 2), (0.5, 3), (0.9, 4)] {
            let mut loss = Bernoulli::new(probability, Random::new(seed, 0));
            let lost = (0..n).filter(|_| loss.draw_loss()).count();
            // sqrt(p (1 - p) / n): at 0.01 half a per cent of it, so that 3 % more are six.
            let error = (probability * (1.0 - probability) / f64::from(n)).sqrt();
            let share = lost as f64 / f64::from(n);
            assert!((share - probability).abs() < 4.0 * error, "{probability}: {share}");
        }
    }
}
