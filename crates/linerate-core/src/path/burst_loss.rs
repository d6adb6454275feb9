//! Loss in bursts: the two-state model of Gilbert and Elliott.
//!
//! Gilbert 1960, Elliott 1963: a good and a bad state, each with a loss probability of its own; the
//! state changes before each packet. With loss only in the bad state, the loss ratio is
//! p / (p + q) and a burst has a mean of 1/q packets (RFC 3357 speaks of loss periods).

use super::{Element, Outlet, Packet, PathLossCause, Random};
use crate::time::MonoTime;

/// Parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLossSettings {
    /// Probability of turning bad before a packet, in the good state.
    pub to_bad: f64,
    /// Probability of turning good before a packet, in the bad state.
    pub to_good: f64,
    /// Loss in the good state; 0 in Gilbert's model.
    pub loss_good: f64,
    /// Loss in the bad state; 1 for whole bursts.
    pub loss_bad: f64,
}

impl BurstLossSettings {
    /// The share of packets lost in the long run.
    pub fn loss_ratio(&self) -> f64 {
        let sum = self.to_bad + self.to_good;
        if sum == 0.0 {
            return self.loss_good;
        }
        let bad = self.to_bad / sum;
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }
}

/// Gilbert–Elliott loss. It begins in the good state.
#[derive(Debug)]
pub struct BurstLoss {
    settings: BurstLossSettings,
    random: Random,
    bad: bool,
}

impl BurstLoss {
    /// Loss of packets by the Markov chain of `settings`.
    pub const fn new(settings: BurstLossSettings, random: Random) -> Self {
        Self { settings, random, bad: false }
    }
}

impl Element for BurstLoss {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        let turn = if self.bad { self.settings.to_good } else { self.settings.to_bad };
        if self.random.chance(turn) {
            self.bad = !self.bad;
        }
        let loss = if self.bad { self.settings.loss_bad } else { self.settings.loss_good };
        if self.random.chance(loss) {
            out.record_loss(at, packet, PathLossCause::Random);
        } else {
            out.forward(at, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::send_packets;
    use super::*;

    #[test]
    fn ratio_and_length_of_bursts_are_those_of_the_closed_form() {
        let settings =
            BurstLossSettings { to_bad: 0.001, to_good: 0.25, loss_good: 0.0, loss_bad: 1.0 };
        let mut loss = BurstLoss::new(settings, Random::new(3, 0));
        let n = 4_000_000;
        let out = send_packets(&mut loss, n, 1500, 1);
        let lost: Vec<u64> = out.lost.iter().map(|lost| lost.packet.number).collect();
        let bursts = 1 + lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        // Ratio 0.001 / 0.251 = 0.0039841. Bursts begin about 3984 times; their mean is 4 with a
        // standard deviation of sqrt(1 - q)/q = 3.46, so 0.055 for the mean. The ratio's relative
        // error is then about sqrt((1 + 0.75)/3984) = 2.1 %; four of each are allowed.
        let ratio = lost.len() as f64 / n as f64;
        assert!((settings.loss_ratio() - 0.003_984_06).abs() < 1e-8);
        assert!((ratio / 0.003_984_06 - 1.0).abs() < 0.084, "{ratio}");
        let mean = lost.len() as f64 / bursts as f64;
        assert!((mean - 4.0).abs() < 0.22, "{mean}");
    }

    #[test]
    fn elliott_s_good_state_loses_as_well() {
        let settings =
            BurstLossSettings { to_bad: 0.1, to_good: 0.3, loss_good: 0.01, loss_bad: 0.5 };
        // A quarter of the packets meet the bad state: 0.25 x 0.5 + 0.75 x 0.01.
        assert!((settings.loss_ratio() - 0.1325).abs() < 1e-12);
        let never = BurstLossSettings { to_bad: 0.0, to_good: 0.0, ..settings };
        assert!((never.loss_ratio() - 0.01).abs() < 1e-12, "it begins in the good state");
        let n = 1_000_000;
        let out = send_packets(&mut BurstLoss::new(settings, Random::new(5, 0)), n, 1500, 1);
        // Losses of a chain that stays with 1 - 0.4 spread sqrt(1.6 / 0.4) = 2 times as much at
        // most: 4 x 2 x sqrt(0.1325 x 0.8675 / 10^6).
        let ratio = out.lost.len() as f64 / n as f64;
        assert!((ratio - 0.1325).abs() < 0.0027, "{ratio}");
    }
}
