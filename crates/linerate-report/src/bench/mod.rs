//! Benchmarks of devices: one record in full, and the records of a run as tables in the form of
//! Bradner's of 1990 and of RFC 2544, with their diagrams.
//!
//! All from the records and the published table alone. A record is one frame length on one state
//! of a device; records are told by their plan, not by the study that they are of.

pub(crate) mod limit;
pub(crate) mod single;
pub(crate) mod words;
