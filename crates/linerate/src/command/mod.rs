//! One file per subcommand: flags in, plan out, and what to print.
mod access;
#[cfg(feature = "web")]
pub(crate) mod agent;
pub(crate) mod assert;
#[cfg(feature = "commands")]
pub(crate) mod bench;
#[cfg(feature = "commands")]
pub(crate) mod beyond_core;
#[cfg(feature = "commands")]
pub(crate) mod ceiling;
mod certificate;
#[cfg(feature = "commands")]
pub(crate) mod compare;
#[cfg(feature = "commands")]
mod complete;
#[cfg(feature = "commands")]
pub(crate) mod conform;
#[cfg(feature = "commands")]
pub(crate) mod diff;
#[cfg(feature = "commands")]
pub(crate) mod doctor;
pub(crate) mod explain;
#[cfg(feature = "commands")]
pub(crate) mod export;
pub(crate) mod flags;
#[cfg(feature = "commands")]
pub(crate) mod generate;
#[cfg(feature = "commands")]
pub(crate) mod history;
#[cfg(feature = "commands")]
pub(crate) mod lab;
pub(crate) mod measure;
#[cfg(feature = "web")]
pub(crate) mod mesh;
#[cfg(feature = "web")]
mod mesh_archive;
#[cfg(feature = "commands")]
pub(crate) mod path;
pub(crate) mod ping;
pub(crate) mod policy;
mod probes;
pub(crate) mod quantity;
#[cfg(feature = "commands")]
pub(crate) mod report;
mod round_trip_flags;
#[cfg(feature = "commands")]
pub(crate) mod rrul;
#[cfg(feature = "commands")]
pub(crate) mod schedule;
pub(crate) mod serve;
#[cfg(feature = "web")]
mod serve_export;
mod serve_hub;
mod serve_stamp;
pub(crate) mod stamp;
mod stamp_key;
#[cfg(feature = "commands")]
pub(crate) mod study;
mod target;
pub(crate) mod tcp;
pub(crate) mod test;
#[cfg(feature = "commands")]
pub(crate) mod trace;
pub(crate) mod udp;
mod udp_search;
