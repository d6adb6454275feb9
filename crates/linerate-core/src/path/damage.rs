//! Damage on the line that loses whole packets: bit errors and lost ATM cells.
//!
//! A frame with a wrong check sequence is dropped by its receiver (IEEE 802.3 §3.4), and an AAL5
//! frame that lacks a cell fails its CRC-32 (ITU-T I.363.5 §9.2.1.2), so one bit or one cell costs
//! the packet. Left out: errors that a check sequence misses.

use super::{Element, Framing, Outlet, Packet, PathLossCause, Random};
use crate::time::MonoTime;

/// Independent bit errors on everything that the framing puts on the line.
#[derive(Debug)]
pub struct BitErrors {
    ratio: f64,
    framing: Framing,
    random: Random,
}

impl BitErrors {
    /// Errors with a bit error ratio, 0 … 1.
    pub const fn new(ratio: f64, framing: Framing, random: Random) -> Self {
        Self { ratio, framing, random }
    }
}

impl Element for BitErrors {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        let bits = f64::from(self.framing.line_bytes(packet.ip_bytes)) * 8.0;
        // 1 - (1 - ratio)^bits, exact for small ratios too.
        let damaged = -(bits * (-self.ratio).ln_1p()).exp_m1();
        if self.random.chance(damaged) {
            out.record_loss(at, packet, PathLossCause::Damaged);
        } else {
            out.forward(at, packet);
        }
    }
}

/// Parameters of cell loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellLossSettings {
    /// Probability that a burst begins at a cell.
    pub probability: f64,
    /// Cells lost in a row, 1 for single ones.
    pub burst_cells: u32,
    /// Header before the packet in its AAL5 frame: 8 for LLC/SNAP.
    pub header_bytes: u32,
}

/// Loss of ATM cells, alone or in bursts of a fixed length; a burst runs on into the next packets'
/// cells.
#[derive(Debug)]
pub struct CellLoss {
    settings: CellLossSettings,
    random: Random,
    /// Cells until the next burst begins.
    until_burst: u64,
    /// Cells of the burst that are still to be lost.
    burst_left: u64,
    /// Cells lost so far.
    cells_lost: u64,
}

impl CellLoss {
    /// Cell loss by `settings`.
    pub fn new(settings: CellLossSettings, random: Random) -> Self {
        let mut loss = Self { settings, random, until_burst: 0, burst_left: 0, cells_lost: 0 };
        loss.until_burst = loss.draw_burst_gap();
        loss
    }

    /// Cells lost so far.
    pub const fn cells_lost(&self) -> u64 {
        self.cells_lost
    }

    /// Cells before the next burst: geometric, drawn at once, so that cells cost no draw each.
    fn draw_burst_gap(&mut self) -> u64 {
        let probability = self.settings.probability;
        if probability <= 0.0 {
            return u64::MAX;
        }
        if probability >= 1.0 {
            return 0;
        }
        let gap = (1.0 - self.random.next_uniform()).ln() / (-probability).ln_1p();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a quotient of two negative numbers; a cast saturates"
        )]
        let cells = gap as u64;
        cells
    }

    /// Cells of the next `cells` that are lost.
    fn count_lost_cells(&mut self, mut cells: u64) -> u64 {
        let mut lost = 0;
        while cells > 0 {
            if self.burst_left > 0 {
                let hit = self.burst_left.min(cells);
                self.burst_left -= hit;
                lost += hit;
                cells -= hit;
            } else if self.until_burst >= cells {
                self.until_burst -= cells;
                cells = 0;
            } else {
                cells -= self.until_burst;
                self.burst_left = u64::from(self.settings.burst_cells.max(1));
                self.until_burst = self.draw_burst_gap();
            }
        }
        lost
    }
}

impl Element for CellLoss {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        let framing = Framing::Aal5 { header_bytes: self.settings.header_bytes };
        let lost = self.count_lost_cells(u64::from(framing.line_bytes(packet.ip_bytes)) / 53);
        self.cells_lost += lost;
        if lost > 0 {
            out.record_loss(at, packet, PathLossCause::Damaged);
        } else {
            out.forward(at, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::send_packets;
    use super::*;

    /// The share lost of `n` packets is `expected`, within four standard errors.
    fn assert_loss_ratio(element: &mut dyn Element, n: u64, ip_bytes: u32, expected: f64) {
        let out = send_packets(element, n, ip_bytes, 1);
        let ratio = out.lost.len() as f64 / n as f64;
        let error = (expected * (1.0 - expected) / n as f64).sqrt();
        assert!((ratio - expected).abs() < 4.0 * error, "{ratio}, expected {expected}");
    }

    fn cell_loss(probability: f64) -> CellLoss {
        let settings = CellLossSettings { probability, burst_cells: 1, header_bytes: 8 };
        CellLoss::new(settings, Random::new(11, 0))
    }

    #[test]
    fn one_cell_of_192_costs_the_packet() {
        // 1 - (1 - p)^192 for 9180 bytes, ^32 for 1500.
        assert_loss_ratio(&mut cell_loss(1e-5), 200_000, 9180, 0.001_918_2);
        assert_loss_ratio(&mut cell_loss(1e-4), 200_000, 9180, 0.019_017);
        assert_loss_ratio(&mut cell_loss(1e-4), 200_000, 1500, 0.003_195);
    }

    #[test]
    fn a_burst_of_cells_runs_on_into_the_next_packet() {
        // Bursts of 40 cells over packets of one cell: 40 packets in a row each.
        let settings = CellLossSettings { probability: 1e-4, burst_cells: 40, header_bytes: 0 };
        let mut loss = CellLoss::new(settings, Random::new(2, 0));
        let out = send_packets(&mut loss, 1_000_000, 40, 1);
        let numbers: Vec<u64> = out.lost.iter().map(|lost| lost.packet.number).collect();
        let bursts = 1 + numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        assert_eq!(loss.cells_lost(), numbers.len() as u64);
        let mean = numbers.len() as f64 / bursts as f64;
        // Two bursts touch with a chance of about 1e-4.
        assert!((mean - 40.0).abs() < 0.6, "{mean}");
    }

    #[test]
    fn bit_errors_hit_long_packets_more() {
        let errors = |ratio| BitErrors::new(ratio, Framing::Ip, Random::new(4, 0));
        // 1 - (1 - 1e-7)^12000 = 0.0011993; 1 - (1 - 1e-6)^72000 = 0.069469.
        assert_loss_ratio(&mut errors(1e-7), 400_000, 1500, 0.001_199_3);
        assert_loss_ratio(&mut errors(1e-6), 100_000, 9000, 0.069_469);
    }
}
