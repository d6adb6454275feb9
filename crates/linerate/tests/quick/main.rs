//! Tests of the program that need no laboratory and judge nothing that other work on the machine
//! could spoil: what it prints, refuses, stores, and does with other programs on loopback.
//! `live` has the others, `tidy` the rules of the tree.

mod abuse;
mod ceiling;
mod complete;
mod default_build;
mod examine;
mod explain;
mod export;
mod generated;
mod iperf3;
mod kubernetes;
mod mesh_archive;
mod mesh_scale;
mod mistakes;
mod path_simulate;
mod personality;
mod personality_udp;
mod ping_udp;
mod policy;
mod psconfig;
mod published;
mod rrul;
mod schedule;
mod service;
mod stamp;
#[cfg(feature = "scale")]
#[path = "../../../linerate-mesh/src/tests/started.rs"]
#[allow(dead_code, reason = "the suite of linerate-mesh needs more of it")]
mod started;
mod store_read_only;
mod study_answers;
mod study_simulate;
#[path = "../support/mod.rs"]
mod support;
mod udp_search;

#[cfg(feature = "scale")]
use support::ports;
