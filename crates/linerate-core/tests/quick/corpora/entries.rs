//! The entries of `fuzz/entries` that read what this crate takes apart.

#[path = "../../../../../fuzz/entries/explain.rs"]
pub(super) mod explain;
#[path = "../../../../../fuzz/entries/host_bytes.rs"]
pub(super) mod host_bytes;
#[path = "../../../../../fuzz/entries/lab.rs"]
pub(super) mod lab;
#[path = "../../../../../fuzz/entries/mesh_message.rs"]
pub(super) mod mesh_message;
#[path = "../../../../../fuzz/entries/mesh_plan.rs"]
pub(super) mod mesh_plan;
#[path = "../../../../../fuzz/entries/path_trace.rs"]
pub(super) mod path_trace;
#[path = "../../../../../fuzz/entries/policy.rs"]
pub(super) mod policy;
#[path = "../../../../../fuzz/entries/psconfig.rs"]
pub(super) mod psconfig;
#[path = "../../../../../fuzz/entries/published.rs"]
pub(super) mod published;
#[path = "../../../../../fuzz/entries/record.rs"]
pub(super) mod record;
#[path = "../../../../../fuzz/entries/schedule.rs"]
pub(super) mod schedule;
#[path = "../../../../../fuzz/entries/study.rs"]
pub(super) mod study;
#[path = "../../../../../fuzz/entries/words.rs"]
pub(super) mod words;
