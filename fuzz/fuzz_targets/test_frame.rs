//! Any bytes as a frame at a port of the tester: see the entry, which `cargo test` runs over the
//! corpus as well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../entries/test_frame.rs"]
mod entry;

fuzz_target!(|bytes: &[u8]| entry::run(bytes));
