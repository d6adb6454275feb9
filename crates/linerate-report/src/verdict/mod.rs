//! Every sentence about what limited a result, and how far to trust it: for terminals, pages,
//! alerts and reports alike.
//!
//! Left out: how it is decided (`linerate_core::explain`), and where a sentence stands in a page.

pub(crate) mod cause;
pub(crate) mod doubt;
mod json;
pub(crate) mod limit;
pub mod remedy;

pub use json::VerdictJson;
