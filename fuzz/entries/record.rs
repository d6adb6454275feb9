//! Any text as a record of this version or the one before: no panic, an error of one line, a record
//! that is the same when written again, and an explanation of it that ends.

use linerate_core::explain::explain;
use linerate_core::record::Record;
use linerate_core::schedule::{followed, sketched};
use linerate_core::tree;

#[allow(clippy::duplicate_mod, reason = "an entry stands alone in its fuzz target")]
#[path = "../alike.rs"]
mod alike;
use alike::assert_alike;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let record = match Record::from_json(text) {
        Ok(record) => record,
        Err(error) => return assert!(!error.contains('\n'), "{error}"),
    };
    let again = tree::to_json(&record).expect("what was read can be written");
    assert_alike(&Record::from_json(&again).expect("its own text"), &record);
    let _ = (followed(&record), sketched(&record), explain(&record));
}
