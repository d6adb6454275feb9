//! A flow test: what both ends know of its streams, and the record that comes of it.

pub(crate) mod account;
pub(crate) mod budget;
mod caveats;
pub(crate) mod ceiling;
pub(crate) mod endpoint;
pub(crate) mod fold;
mod samples;
pub(crate) mod start_up;
pub(crate) mod summary;

pub use samples::Sample;
