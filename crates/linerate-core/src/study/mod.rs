//! A study as data: topologies, tests, parameters, repetitions, and the figures published before.
//!
//! Nothing here measures or reads a file; the grid is run by the engine and kept by the store.

mod background;
mod bench_words;
mod check;
mod check_bench;
mod embedded;
mod estimate;
mod fault;
mod frames_sweep;
mod list;
mod parameter;
mod plan;
mod published;
mod question;
mod simulate_sweep;
mod tcp_sweep;
mod test;
mod toml_text;
mod topology;
mod udp_sweep;

pub use background::BackgroundFlow;
pub use bench_words::{GoalTable, GoalWord, Measure, NamedGoal, OrderedCells, OrderedContract};
pub use estimate::{Estimator, expected_ns};
pub use frames_sweep::FramesSweep;
pub use parameter::{Parameter, Value};
pub use plan::{CellKey, CellPlan, StudyPlan};
pub use published::{
    Cards, ErrorColumn, Milestone, MilestoneSet, NotAFigure, PacketsPerSecond, Printed,
    PublishedError, PublishedFigures, PublishedItem, PublishedPing, PublishedRouter, PublishedRows,
    PublishedTable, PublishedTcp, Relation, Streams, TableAbout, Theory, TheoryComparison,
};
pub use question::{
    Answer, CHANCE_RUNS_MIN, Evaluated, Figure, FigureCondition, FigureKind, FigureSetting,
    FigureStat, Figures, Measured, Missing, Part, Quantity, Question, QuestionVerdict, Template,
    Unit, ValueName,
};
pub use simulate_sweep::SimulateSweep;
pub use tcp_sweep::TcpSweep;
pub use test::{Test, TestKind};
pub use toml_text::PlanFileError;
pub use topology::{PublishedAs, Topology};
pub use udp_sweep::{OfferedRate, UdpSweep};
