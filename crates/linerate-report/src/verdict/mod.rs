//! Every sentence about what limited a result, and how far to trust it: for terminals, pages,
//! alerts and reports alike.
//!
//! Left out: how it is decided (`linerate_core::explain`), and where a sentence stands in a page.

pub(crate) mod cause;
pub(crate) mod doubt;
pub(crate) mod finding;
mod json;
pub(crate) mod limit;
pub(crate) mod note;
pub(crate) mod outcome;
pub mod remedy;
pub(crate) mod sign;

pub use finding::goal_lines;
pub use json::VerdictJson;
pub use note::next_bound_name;
pub use outcome::{cause_with_proof, evidence};
