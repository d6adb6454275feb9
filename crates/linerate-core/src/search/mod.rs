//! The search for the capacity of a path: which rate is offered next, and what a receiver makes of
//! the arrivals. Machines without sockets and clocks.
//!
//! A sender offers the rates of one fixed table; every 50 ms the receiver tells what became of the
//! datagrams; without losses and delay the sender goes up the table, with them down. The result is
//! the highest rate of IP packets that arrived over a whole sub-interval. Left out: several flows
//! of one search, and the multiplicative search that obudpst calls type C.
//!
//! Source: RFC 9097 §8.1, table 1 and appendix A, which are annex B of ITU-T Y.1540 (2020).

mod adjustment;
mod join;
mod meter;
mod rates;

pub use adjustment::{Adjustment, Feedback};
pub use join::{SubIntervals, joined};
pub use meter::{DelayRange, StampedArrival, StreamCounts, SubIntervalMeter};
pub use rates::{HIGH_ROW, ROW_MAX, last_row_within, rate_of_row};

#[cfg(test)]
mod tests;
