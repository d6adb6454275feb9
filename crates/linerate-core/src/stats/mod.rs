//! Estimators. Each names its definition and is checked against a value from outside.
//!
//! Percentiles everywhere are those of RFC 2330 §11.3: the smallest sample that at least the given
//! share of all samples does not exceed. A percentile is therefore always a value that was
//! measured, and the histogram, the sorted list and the stored distribution agree on it.

mod arrivals;
mod clock_offset;
mod delay_changes;
mod delay_variation;
mod distribution;
mod fairness;
mod four_stamps;
mod jitter;
mod line_fit;
mod log_histogram;
mod moments;
mod quantile;
mod responsiveness;
mod sign_test;
mod sketch;
mod thinned;
mod wilson;

pub use arrivals::{LossPeriod, Reordered, StreamArrivals};
pub use clock_offset::{ClockClaim, Offset, Piece, clock_offset, take_out_steps};
pub use delay_changes::{MinDelayChange, delay_changes};
pub use delay_variation::{Ipdv, PacketArrival, ipdv_of_packets, pdv_of_packets};
pub use fairness::jain_index;
pub use four_stamps::FourStamps;
pub use jitter::JitterRfc3550;
pub use line_fit::LineFit;
pub use log_histogram::LogHistogram;
pub use moments::Moments;
pub use quantile::{Sorted, median};
pub use responsiveness::{round_trips_per_minute, trimmed_mean};
pub use sign_test::median_interval;
pub use sketch::Sketch;
pub use thinned::Thinned;
pub use wilson::{Interval, Z_95, wilson_interval};
