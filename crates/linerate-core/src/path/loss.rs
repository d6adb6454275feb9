//! Independent random loss.

use super::{Element, LossCause, Outlet, Packet, Random};
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

    /// Whether the next packet is lost.
    pub(super) fn loses(&mut self) -> bool {
        self.random.chance(self.probability)
    }
}

impl Element for Bernoulli {
    fn take(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if self.loses() {
            out.lose(at, packet, LossCause::Random);
        } else {
            out.forward(at, packet);
        }
    }
}
