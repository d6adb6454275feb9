//! Units, clocks, statistics, theory, plans and records of linerate.
//!
//! Pure and deterministic: nothing here opens, sleeps, prints, spawns or reads a clock, and there
//! is no `unsafe`. Time and randomness come in as arguments.
#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

pub mod assertion;
pub mod comparison;
pub mod conformance;
pub mod device;
pub mod explain;
pub mod lab;
pub mod mesh;
mod near;
pub mod path;
pub mod poisson;
pub mod policy;
pub mod record;
pub mod schedule;
pub mod search;
pub mod simulate;
pub mod stats;
pub mod study;
pub mod theory;
pub mod time;
pub mod trace;
pub mod tree;
pub mod units;

pub use near::similar_names;
