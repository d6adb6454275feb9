//! The table of rates that a search offers, in bit/s of IP packets.
//!
//! ```text
//! row            rate            step
//!    0        0.5 Mbit/s
//!    1 … 1000   1 Mbit/s … 1 Gbit/s     1 Mbit/s
//! 1001 … 1090 1.1 Gbit/s … 10 Gbit/s  100 Mbit/s
//! 1091 … 1180  11 Gbit/s … 100 Gbit/s   1 Gbit/s
//! ```
//!
//! Source: RFC 9097 §8.1, table 1; the steps above 10 Gbit/s are there as not tested.

use crate::units::BitRate;

/// The row of 1 Gbit/s: above it every step is one row (`hSpeedThresh` of RFC 9097 appendix A).
pub const HIGH_ROW: u16 = 1000;

/// The last row, of 100 Gbit/s.
pub const ROW_MAX: u16 = 1180;

const MBIT: u64 = 1_000_000;

/// The row of 10 Gbit/s.
const TEN_GBIT_ROW: u16 = 1090;

/// The rate of a row; rows above [`ROW_MAX`] have its rate.
pub fn rate_of_row(row: u16) -> BitRate {
    let row = row.min(ROW_MAX);
    let bps = match row {
        0 => MBIT / 2,
        1..=HIGH_ROW => u64::from(row) * MBIT,
        1001..=TEN_GBIT_ROW => 1000 * MBIT + u64::from(row - HIGH_ROW) * 100 * MBIT,
        _ => 10_000 * MBIT + u64::from(row - TEN_GBIT_ROW) * 1000 * MBIT,
    };
    BitRate::from_bits_per_sec(bps)
}

/// The last row whose rate is not above `limit`; row 0 where all are.
pub fn last_row_within(limit: BitRate) -> u16 {
    let rows: Vec<u16> = (0..=ROW_MAX).collect();
    let above =
        rows.partition_point(|&row| rate_of_row(row).bits_per_sec() <= limit.bits_per_sec());
    above.checked_sub(1).and_then(|at| rows.get(at)).copied().unwrap_or(0)
}
