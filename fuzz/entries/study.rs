//! Any text as a study: no panic, an error of one line, and a study that is the same when written
//! again.

use linerate_core::study::StudyPlan;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let plan = match StudyPlan::from_toml(text) {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    // TOML has no number above 2^63 - 1.
    let Ok(again) = plan.to_toml() else { return };
    assert_eq!(StudyPlan::from_toml(&again), Ok(plan));
}
