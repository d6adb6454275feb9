//! A policer's measured parameters compared with those of the contract that was ordered.

use super::cells::{CellEstimate, MaxBurst};
use super::find::BucketEstimate;
use crate::record::{ComparedParameter, Holds, RateFound};

impl ComparedParameter {
    /// The comparison labelled with its parameter and unit.
    #[must_use]
    pub fn with_parameter(self, parameter: &str, unit: &str) -> Self {
        Self { parameter: parameter.to_owned(), unit: unit.to_owned(), ..self }
    }
}

/// Compares a found value and its interval with an order; `tolerance` is a share of the order
/// (0.01 for 1 %).
pub fn compare(ordered: f64, found: RateFound, tolerance: f64) -> ComparedParameter {
    let RateFound { value, low, high } = found;
    let holds = if high < ordered * (1.0 - tolerance) {
        Holds::Less
    } else if low > ordered * (1.0 + tolerance) {
        Holds::More
    } else {
        Holds::Kept
    };
    let (parameter, unit) = (String::new(), String::new());
    ComparedParameter { parameter, unit, ordered, found: value, low, high, holds }
}

/// CIR (bit/s) and CBS (bytes) as ordered and as found.
pub fn compare_bucket(
    found: &BucketEstimate,
    cir_bps: f64,
    cbs_bytes: f64,
    tolerance: f64,
) -> [ComparedParameter; 2] {
    [
        compare(cir_bps, found.rate_interval(), tolerance).with_parameter("cir", "bit/s"),
        compare(cbs_bytes, found.depth_interval(), tolerance).with_parameter("cbs", "bytes"),
    ]
}

/// A cell rate and its limit as ordered and as found; `names` are `["pcr", "cdvt"]`, or `["scr",
/// "limit"]` for the sustained rule.
pub fn compare_cells(
    found: &CellEstimate,
    names: [&str; 2],
    ordered: [f64; 2],
    tolerance: f64,
) -> [ComparedParameter; 2] {
    [
        compare(ordered[0], found.rate_per_s(), tolerance).with_parameter(names[0], "cells/s"),
        compare(ordered[1], found.limit_interval(), tolerance).with_parameter(names[1], "s"),
    ]
}

/// MBS as ordered and as found.
pub fn compare_burst(found: &MaxBurst, mbs_cells: f64, tolerance: f64) -> ComparedParameter {
    let cells = RateFound { value: found.cells, low: found.cells_low, high: found.cells_high };
    compare(mbs_cells, cells, tolerance).with_parameter("mbs", "cells")
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
        let holds =
            |cir, cbs| compare_bucket(&bucket, cir, cbs, 0.01).map(|compared| compared.holds);
        assert_eq!(holds(10e6, 20_000.0), [Holds::Kept, Holds::Kept]);
        assert_eq!(holds(8e6, 32_000.0), [Holds::More, Holds::Less]);
    }

    #[test]
    fn an_order_within_the_interval_is_kept() {
        let range = |low, high| RateFound { value: low, low, high };
        let holds = |ordered, low, high| compare(ordered, range(low, high), 0.01).holds;
        assert_eq!(holds(100.0, 99.5, 100.5), Holds::Kept);
        assert_eq!(holds(100.0, 90.0, 98.9), Holds::Less);
        assert_eq!(holds(100.0, 90.0, 99.1), Holds::Kept);
        assert_eq!(holds(100.0, 101.1, 110.0), Holds::More);
    }
}
