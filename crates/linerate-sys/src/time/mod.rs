//! Clocks and timers.

pub mod clock;
pub mod clock_facts;
pub mod local_time;
pub mod ptp_clock;
pub mod timer;
