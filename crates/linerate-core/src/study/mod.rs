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
pub use published::{
    Cards, Comparison, ErrorColumn, Milestone, MilestoneSet, NotAFigure, PacketsPerSecond, Printed,
    PublishedError, PublishedFigures, PublishedItem, PublishedPing, PublishedRouter, PublishedRows,
    PublishedTable, PublishedTcp, Relation, Streams, TableAbout, Theory,
};
pub use toml_text::PlanError;
