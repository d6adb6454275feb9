//! Any bytes as an ICMP error: see the entry, which `cargo test` runs over its vectors as well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../entries/icmp_error.rs"]
mod entry;

fuzz_target!(|bytes: &[u8]| entry::run(bytes));
