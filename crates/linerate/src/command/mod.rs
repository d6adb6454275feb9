//! One file per subcommand: flags in, plan out, and what to print.
mod access;
#[cfg(feature = "web")]
pub(crate) mod agent;
pub(crate) mod assert;
pub(crate) mod bench;
pub(crate) mod ceiling;
mod certificate;
pub(crate) mod compare;
mod complete;
pub(crate) mod conform;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod flags;
pub(crate) mod generate;
pub(crate) mod history;
pub(crate) mod lab;
pub(crate) mod measure;
#[cfg(feature = "web")]
pub(crate) mod mesh;
#[cfg(feature = "web")]
mod mesh_archive;
pub(crate) mod path;
pub(crate) mod ping;
pub(crate) mod policy;
mod probes;
pub(crate) mod quantity;
pub(crate) mod report;
mod round_trip_flags;
pub(crate) mod rrul;
pub(crate) mod schedule;
pub(crate) mod serve;
#[cfg(feature = "web")]
mod serve_export;
mod serve_hub;
mod serve_stamp;
pub(crate) mod stamp;
mod stamp_key;
pub(crate) mod study;
mod target;
pub(crate) mod tcp;
pub(crate) mod test;
pub(crate) mod trace;
pub(crate) mod udp;
mod udp_search;
