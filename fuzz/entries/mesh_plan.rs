//! Any text as the plan of a mesh or the rules of its watch: no panic, an error of one line, and a
//! plan whose calendar can be made or is refused in a line.

use linerate_core::mesh::{MeshCalendar, MeshPlan, Rules};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = Rules::from_toml(text) {
        one_line(&error.to_string());
    }
    let plan = match MeshPlan::from_toml(text) {
        Ok(plan) => plan,
        Err(error) => return one_line(&error.to_string()),
    };
    let _ = plan.from_s();
    for task in &plan.tasks {
        let _ = (task.takes_s(), task.effective_class());
    }
    match MeshCalendar::from_plan(&plan) {
        Ok(calendar) => assert!(calendar.iter_runs().take(100).count() <= 100),
        Err(error) => one_line(&error),
    }
}

fn one_line(error: &str) {
    assert!(!error.contains('\n') && !error.is_empty(), "{error}");
}
