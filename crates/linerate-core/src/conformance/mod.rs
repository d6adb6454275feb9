//! Whether traffic keeps a contract, and which contract it would keep: one pass over arrivals, in
//! constant memory.
//!
//! Left out: where packets come from (the engine reads captures and interfaces) and the rules of
//! the meters (`theory::gcra`, `theory::token_bucket`).

mod analysis;
mod envelope;
mod filter;
mod follower;
mod line;
mod meter;
mod needed;
mod peaks;
mod plan;
mod result;
mod stretch;

pub use analysis::Analysis;
pub use envelope::{Envelope, Train, Vertex};
pub use filter::{Facts, Filter, FilterError};
pub use line::{CellMapping, cell_line};
pub use meter::{ConformanceVerdict, Lack, Meter};
pub use peaks::Peaks;
pub use plan::{ConformPlan, Contract, Layer, PlanError};
pub use result::{
    BucketFound, BurstAtRate, Conformance, ContractResult, Count, Ended, Needed, Peak, Run, SCHEMA,
    Stretch, Unused, Violation,
};

use crate::theory::token_bucket::Colour;
use stretch::{bucket, stretches};

/// Arrival of a packet, as a meter takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the packet in the capture, from 1.
    pub number: u64,
    /// Time of arrival, in nanoseconds of any clock.
    pub at_ns: u64,
    /// Length at the layer that counts, bytes.
    pub bytes: u32,
    /// Length of its IP packet, from which cells are made.
    pub ip_bytes: u32,
    /// The colour that the packet arrived with.
    pub colour: Colour,
}
