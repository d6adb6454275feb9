//! Tests of the engine in laboratories and on this host's loopback; a test that cannot run here
//! prints `skipped: reason`. `./dev test` runs one module after another, each in a process of its
//! own, so that no module loads the machine while another measures; in one process they take
//! turns (`turn.rs`).

mod bench_lab;
mod lab;
mod lab_devices;
mod lab_paths;
mod link_reset;
mod path_live;
mod ping;
#[path = "../../../linerate/tests/support/turn.rs"]
mod turn;
