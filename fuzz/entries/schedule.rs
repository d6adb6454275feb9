//! Any text as a schedule: no panic, an error of one line, and a calendar in order of time, or a
//! refusal of one line.

use linerate_core::schedule::{Calendar, SchedulePlan, Zone};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let plan = match SchedulePlan::from_toml(text) {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
    };
    let _ = (plan.bytes_in_a_month(), plan.learn_s());
    for task in &plan.tasks {
        let _ =
            (task.command_words(), task.survey_words(), task.survey_takes_s(), task.runs_a_day());
    }
    match Calendar::from_plan(&plan, Zone::utc()) {
        // 2026-11-24, an hour.
        Ok(calendar) => {
            let slots = calendar.slots_between(1_795_478_400, 1_795_482_000);
            assert!(slots.is_sorted_by_key(|slot| slot.start_s));
            assert!(slots.iter().all(|slot| slot.task < plan.tasks.len()));
        }
        Err(error) => assert!(!error.contains('\n')),
    }
}
