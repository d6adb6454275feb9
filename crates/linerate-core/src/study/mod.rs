//! A study as data: topologies, tests, parameters, repetitions, and the figures published before.
//!
//! Nothing here measures or reads a file; the grid is run by the engine and kept by the store.

mod check;
mod estimate;
mod plan;
mod published;
mod toml_text;

pub use estimate::{Estimator, expected_ns};
pub use plan::{CellKey, CellPlan, PublishedAs, StudyPlan, Test, TestKind, Topology};
pub use published::{PublishedError, PublishedFigures, PublishedPing, PublishedTcp};
pub use toml_text::PlanError;
