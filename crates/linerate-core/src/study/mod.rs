//! A study as data: topologies, tests, parameters, repetitions, and the figures published before.

mod plan;
mod published;

pub use plan::{CellPlan, PublishedAs, StudyPlan, Test, TestKind, Topology};
pub use published::{PublishedError, PublishedFigures, PublishedPing, PublishedTcp};
