//! Benchmarks of devices by raw frames: RFC 2544 and its successors.
//!
//! The tester is opened on the plan's ports, shows by itself what it can do, and makes the plan's
//! tests in their order, each a series of trials. The tests know a [`bed::Bed`] alone.

mod addresses;
mod bed;
mod blocking;
mod bounds;
mod burst;
mod cells;
mod check;
mod contract;
mod counter;
mod frames;
mod generator;
mod hold;
mod measure;
mod neighbours;
#[cfg(test)]
mod own_faults_tests;
mod places;
mod port;
mod reach;
mod reset;
mod run;
mod search;
mod self_test;
#[cfg(test)]
mod simulated;
mod tester;
mod trial;

pub use places::{Here, Places};
pub use run::run;
