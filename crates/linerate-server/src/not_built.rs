//! What the program says of a part that it was built without: a feature of `Cargo.toml`.

use linerate_core::record::{Failure, Fault};

/// The refusal of something that needs a part which is not there.
pub(crate) fn not_built(attempt: &str) -> Failure {
    let reason = "it was built without that part";
    Failure::new(Fault::Usage, attempt, "with this program", reason)
        .advise("use the program of a package, or build all of it: ./dev build full")
}
