//! Pages: one self-contained file each, without scripts and without a request to anywhere.
//!
//! The content security policy in the head says so to the browser too. Light and dark follow the
//! reader's setting; print is always light.

pub(crate) mod bench;
pub(crate) mod page;
mod simulated;
mod single;
pub(crate) mod study;

pub use single::record;
