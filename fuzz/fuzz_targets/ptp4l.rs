//! Any bytes as an answer of ptp4l: see the entry, which `cargo test` runs over recordings as well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../entries/ptp4l.rs"]
mod entry;

fuzz_target!(|bytes: &[u8]| entry::run(bytes));
