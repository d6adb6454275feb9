//! Any text as a laboratory: no panic, an error of one line, and a laboratory that can be laid out
//! or is refused.

use linerate_core::lab::{LabPlan, Layout};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let plan = match LabPlan::from_toml(text, "x.toml") {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    if let Ok(layout) = Layout::from_plan(&plan) {
        assert!(layout.node_index("nobody of that name").is_none());
    }
}
