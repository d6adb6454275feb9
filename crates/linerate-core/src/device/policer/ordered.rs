//! What was found against what was ordered.

use super::cells::{CellEstimate, MaxBurst};
use super::find::BucketEstimate;
use crate::record::{Compared, Holds};

impl Compared {
    /// Names the parameter.
    #[must_use]
    pub fn of(self, parameter: &str, unit: &str) -> Self {
        Self { parameter: parameter.to_owned(), unit: unit.to_owned(), ..self }
    }
}

/// Compares a found value and its interval with an order; `tolerance` is a share of the order
/// (0.01 for 1 %).
pub fn compare(ordered: f64, (low, found, high): (f64, f64, f64), tolerance: f64) -> Compared {
    let holds = if high < ordered * (1.0 - tolerance) {
        Holds::Less
    } else if low > ordered * (1.0 + tolerance) {
        Holds::More
    } else {
        Holds::Kept
    };
    let (parameter, unit) = (String::new(), String::new());
    Compared { parameter, unit, ordered, found, low, high, holds }
}

/// CIR (bit/s) and CBS (bytes) as ordered and as found.
pub fn compare_bucket(
    found: &BucketEstimate,
    cir_bps: f64,
    cbs_bytes: f64,
    tolerance: f64,
) -> [Compared; 2] {
    let rates = (found.rate_low_bps, found.rate_bps, found.rate_high_bps);
    let depths = (found.burst_low_bytes, found.burst_bytes, found.burst_high_bytes);
    [
        compare(cir_bps, rates, tolerance).of("cir", "bit/s"),
        compare(cbs_bytes, depths, tolerance).of("cbs", "bytes"),
    ]
}

/// A cell rate and its limit as ordered and as found; `names` are `["pcr", "cdvt"]`, or `["scr",
/// "limit"]` for the sustained rule.
pub fn compare_cells(
    found: &CellEstimate,
    names: [&str; 2],
    ordered: [f64; 2],
    tolerance: f64,
) -> [Compared; 2] {
    let rates = (found.per_s_low, found.per_s, found.per_s_high);
    let limits = (found.limit_low_s, found.limit_s, found.limit_high_s);
    [
        compare(ordered[0], rates, tolerance).of(names[0], "cells/s"),
        compare(ordered[1], limits, tolerance).of(names[1], "s"),
    ]
}

/// MBS as ordered and as found.
pub fn compare_burst(found: &MaxBurst, mbs_cells: f64, tolerance: f64) -> Compared {
    let cells = (found.cells_low, found.cells, found.cells_high);
    compare(mbs_cells, cells, tolerance).of("mbs", "cells")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_with_half_of_the_ordered_burst_is_named() {
        // The failed case of the OC-12 study: SCR as ordered, MBS bites too early.
        let found = MaxBurst { cells: 16.0, cells_low: 15.0, cells_high: 16.0 };
        let compared = compare_burst(&found, 32.0, 0.0);
        assert_eq!((compared.parameter.as_str(), compared.holds), ("mbs", Holds::Less));
        let bucket = BucketEstimate {
            rate_bps: 10e6,
            rate_low_bps: 9.99e6,
            rate_high_bps: 10.01e6,
            burst_bytes: 20_000.0,
            burst_low_bytes: 19_500.0,
            burst_high_bytes: 20_500.0,
            is_shallow: false,
            tolerance_ns: 1,
            disagreements: 0,
            frames: 1000,
        };
        let holds = |cir, cbs| compare_bucket(&bucket, cir, cbs, 0.01).map(|it| it.holds);
        assert_eq!(holds(10e6, 20_000.0), [Holds::Kept, Holds::Kept]);
        assert_eq!(holds(8e6, 32_000.0), [Holds::More, Holds::Less]);
    }

    #[test]
    fn an_order_within_the_interval_is_kept() {
        let holds = |ordered, low, high| compare(ordered, (low, low, high), 0.01).holds;
        assert_eq!(holds(100.0, 99.5, 100.5), Holds::Kept);
        assert_eq!(holds(100.0, 90.0, 98.9), Holds::Less);
        assert_eq!(holds(100.0, 90.0, 99.1), Holds::Kept);
        assert_eq!(holds(100.0, 101.1, 110.0), Holds::More);
    }
}
