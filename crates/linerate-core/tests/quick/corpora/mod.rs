//! The fuzz entries of what this crate reads, over their corpora and mutations of them.

mod entries;
mod listed;
#[path = "../../../../../fuzz/mutations.rs"]
mod mutations;
mod readers;
