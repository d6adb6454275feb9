//! Any bytes as `hub_answer`: see the entry, which `./dev test` runs over its corpus and
//! mutations as well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../entries/hub_answer.rs"]
mod entry;

fuzz_target!(|bytes: &[u8]| entry::run(bytes));
