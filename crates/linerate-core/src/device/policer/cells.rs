//! The same in the words of cell contracts: PCR and CDVT, SCR and MBS, each with its interval.
//!
//! GCRA(I, L) on cells of one size is a bucket of rate 1/I and depth 1 + L/I cells. A train that
//! is faster than PCR and shorter than MBS meets the peak rule alone; one at PCR and far longer
//! than MBS meets the sustained one. Source: ITU-T I.371, ATM Forum Traffic Management 4.0 (BT =
//! (MBS - 1)(1/SCR - 1/PCR)).

use serde::{Deserialize, Serialize};

use super::find::BucketEstimate;
use crate::record::RateFound;

/// A rule of a cell contract.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellEstimate {
    /// Cells (or frames of one size) per second: PCR or SCR.
    pub per_s: f64,
    /// Smallest rate that fits.
    pub per_s_low: f64,
    /// Largest rate that fits.
    pub per_s_high: f64,
    /// Limit L, s: CDVT for the peak rule, burst tolerance and CDVT for the sustained one.
    pub limit_s: f64,
    /// Smallest limit that fits, s.
    pub limit_low_s: f64,
    /// Largest limit that fits, s.
    pub limit_high_s: f64,
}

impl CellEstimate {
    /// Rate in cells per second with its interval.
    pub const fn rate_per_s(&self) -> RateFound {
        RateFound { value: self.per_s, low: self.per_s_low, high: self.per_s_high }
    }

    /// Limit L in seconds with its interval.
    pub const fn limit_interval(&self) -> RateFound {
        RateFound { value: self.limit_s, low: self.limit_low_s, high: self.limit_high_s }
    }
}

/// Most cells that pass at the peak rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MaxBurst {
    /// Maximum burst size (MBS), cells.
    pub cells: f64,
    /// Smallest MBS that fits, cells.
    pub cells_low: f64,
    /// Largest MBS that fits, cells.
    pub cells_high: f64,
}

/// A bucket in cells of `cell_bytes`; `None` for cells without bytes.
pub fn cell_estimate(found: &BucketEstimate, cell_bytes: u32) -> Option<CellEstimate> {
    if cell_bytes == 0 {
        return None;
    }
    let bits = f64::from(cell_bytes) * 8.0;
    let limit = |burst: f64, rate_bps: f64| {
        ((burst / f64::from(cell_bytes) - 1.0) * bits / rate_bps).max(0.0)
    };
    Some(CellEstimate {
        per_s: found.rate_bps / bits,
        per_s_low: found.rate_low_bps / bits,
        per_s_high: found.rate_high_bps / bits,
        limit_s: limit(found.burst_bytes, found.rate_bps),
        // A faster rule comes with less depth.
        limit_low_s: limit(found.burst_low_bytes, found.rate_high_bps),
        limit_high_s: limit(found.burst_high_bytes, found.rate_low_bps),
    })
}

/// MBS of a sustained rule at a peak rate, the tolerance `cdvt_s` taken off; `None` when the peak
/// is not above the sustained rate.
///
/// floor(1 + (L - CDVT) / (1/SCR - 1/PCR)).
pub fn max_burst(sustained: &CellEstimate, peak_per_s: f64, cdvt_s: f64) -> Option<MaxBurst> {
    let cells_at = |limit_s: f64, per_s: f64| {
        let spread_s = 1.0 / per_s - 1.0 / peak_per_s;
        // A thousandth of a cell for rounding.
        let cells = 1.0 + (limit_s - cdvt_s).max(0.0) / spread_s;
        (spread_s > 0.0).then(|| (cells + 1e-3).floor())
    };
    Some(MaxBurst {
        cells: cells_at(sustained.limit_s, sustained.per_s)?,
        cells_low: cells_at(sustained.limit_low_s, sustained.per_s_high)?,
        cells_high: cells_at(sustained.limit_high_s, sustained.per_s_low)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::find::{TrainFrame, find_bucket};
    use super::*;
    use crate::theory::gcra::{Gcra, VirtualScheduling};

    const CELL_BYTES: u32 = 53;

    /// Cells each `gap_us` through GCRA rules in microseconds.
    fn policed(rules: &[Gcra], gap_us: u64, count: u64) -> Vec<TrainFrame> {
        let mut meters: Vec<_> = rules.iter().map(|rule| VirtualScheduling::new(*rule)).collect();
        let cell = |number: u64| {
            let at = i128::from(number * gap_us);
            let arrived = meters.iter().all(|meter| meter.ticks_early(at) <= 0);
            if arrived {
                meters.iter_mut().for_each(|meter| meter.accept(at));
            }
            TrainFrame { sent_ns: number * gap_us * 1000, bytes: CELL_BYTES, arrived }
        };
        (0..count).map(cell).collect()
    }

    #[test]
    fn peak_and_sustained_rules_are_found_from_two_trains() {
        // PCR 1000/s with CDVT 5 ms, SCR 250/s with MBS 32: BT = 31 * (4 - 1) ms = 93 ms; the
        // sustained limit is BT + CDVT = 98 ms.
        let peak = Gcra { increment: 1_000, limit: 5_000 };
        let sustained = Gcra { increment: 4_000, limit: 98_000 };
        // At 4000 cells/s for 30 ms: fewer than MBS pass, so the peak rule alone is met. It lets
        // one in each ms pass after the first few: 30 cells are few to know a rate by.
        let fast = policed(&[peak, sustained], 250, 100);
        let found = cell_estimate(&find_bucket(&[&fast], 1_000).expect("a bucket"), CELL_BYTES);
        let found = found.expect("cells");
        assert!(found.per_s_low <= 1_000.0 && 1_000.0 <= found.per_s_high, "{found:?}");
        assert!((found.per_s / 1_000.0 - 1.0).abs() < 0.05, "{found:?}");
        assert!((found.limit_s - 0.005).abs() < 0.001, "{found:?}");
        // At PCR for 20 s.
        let long = policed(&[peak, sustained], 1_000, 20_000);
        let found = cell_estimate(&find_bucket(&[&long], 1_000).expect("a bucket"), CELL_BYTES);
        let found = found.expect("cells");
        assert!((found.per_s / 250.0 - 1.0).abs() < 0.001, "{found:?}");
        let burst = max_burst(&found, 1_000.0, 0.005).expect("a peak above");
        assert!(burst.cells_low <= 32.0 && 32.0 <= burst.cells_high, "{burst:?} {found:?}");
        assert!((burst.cells - 32.0).abs() <= 1.0, "{burst:?}");
    }

    #[test]
    fn a_peak_that_is_not_above_has_no_burst() {
        let found = BucketEstimate {
            rate_bps: 424_000.0,
            rate_low_bps: 424_000.0,
            rate_high_bps: 424_000.0,
            burst_bytes: 530.0,
            burst_low_bytes: 530.0,
            burst_high_bytes: 530.0,
            is_shallow: false,
            tolerance_ns: 0,
            disagreements: 0,
            frames: 0,
        };
        // 1000 cells/s, 10 deep: L = 9 ms; at 2000 cells/s MBS = 1 + 9 / (1 - 0.5) = 19.
        let found = cell_estimate(&found, CELL_BYTES).expect("cells");
        assert!((found.limit_s - 0.009).abs() < 1e-12);
        assert_eq!(max_burst(&found, 2_000.0, 0.0).map(|burst| burst.cells), Some(19.0));
        assert_eq!(max_burst(&found, 1_000.0, 0.0), None);
    }
}
