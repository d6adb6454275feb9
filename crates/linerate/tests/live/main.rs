//! Tests of the program that build laboratories, call other programs or measure; a test that cannot
//! run here prints `skipped: reason`. `./dev test` runs one module after another, each in a process
//! of its own, so that no module loads the machine while another measures; in one process they take
//! turns (`turn.rs`).

mod addresses;
mod bench_flags;
mod bench_ports;
mod bench_run;
mod black_hole;
mod cli;
mod compare;
mod conform;
mod delay;
mod from_here;
mod iperf3_late;
mod lab;
mod lab_bank;
mod laws;
mod mesh;
mod mesh_confirm;
mod nat;
mod netns_study;
mod path_run;
mod ping;
mod pscheduler;
mod study;
mod study_run;
#[path = "../support/mod.rs"]
mod support;
mod tcp;
mod trace;
mod udp;
mod vanished;
mod wire_class;
