//! Benchmarks of devices by raw frames: RFC 2544 and its successors.
//!
//! The tester is opened on the plan's ports, shows by itself what it can do, and makes the plan's
//! tests in their order, each a series of trials. The tests see no more of it than a
//! [`setup::TestSetup`], so that a simulated device stands in for real ones.

mod addresses;
mod blocking;
mod bounds;
mod buffer;
mod burst;
mod cells;
mod check;
mod contract;
mod counter;
mod forwarding;
mod frames;
mod generator;
mod measure;
mod namespaces;
mod neighbours;
#[cfg(test)]
mod own_faults_tests;
mod port;
mod reset;
mod retry;
mod run;
mod search;
mod self_test;
mod setup;
#[cfg(test)]
mod simulated;
mod tester;
mod trial;

pub use namespaces::{Namespaces, OwnNamespace};
pub use run::run;
