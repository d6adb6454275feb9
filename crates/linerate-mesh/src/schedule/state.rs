//! A plan as the store knows it.

use std::collections::BTreeMap;

use linerate_core::record::Failure;
use linerate_core::schedule::{Calendar, EventKind, RunState, RunWhy, SchedulePlan, ScheduleRun};
use linerate_report::schedule::{EventView, Gap, SampleSpread, ScheduleView, SeriesView, TaskView};
use linerate_store::{HAPPENED_KEPT_S, ScheduleEvent, Sketched, Store};

use super::{NEWS_S, SILENT_S};

/// Most values of a figure that are read.
const VALUES_MAX: usize = 20_000;
/// Shortest time that is shown, seconds.
const AXIS_S_MIN: i64 = 60;
/// Changes and silence before the time that is shown are looked for as far back, seconds.
const LOOK_BACK_S: i64 = HAPPENED_KEPT_S;

/// A plan's tasks, series and events at a time and in the `span_s` seconds before. Without a
/// calendar the next runs are left out.
/// # Errors
/// One line when the store cannot be read.
pub fn schedule_view(
    store: &Store,
    plan: &SchedulePlan,
    calendar: Option<&Calendar>,
    now_s: i64,
    span_s: i64,
) -> Result<ScheduleView, Failure> {
    let known = store.schedules()?.into_iter().find(|known| known.plan == plan.name);
    // Nothing was measured before its first run; a minute is room enough for an axis.
    let since_s = known.as_ref().map_or(i64::MIN, |known| known.since_s);
    let from_s = (now_s - span_s).max(since_s).min(now_s - AXIS_S_MIN);
    let events = store.events(&plan.name, now_s - LOOK_BACK_S)?;
    let begun =
        events.iter().rev().find(|event| matches!(event.kind, EventKind::Begin | EventKind::End));
    let ended = begun.is_none_or(|event| event.kind == EventKind::End);
    let dealt_s = known.as_ref().map_or(0, |known| known.dealt_s);
    let running = !ended && now_s - dealt_s <= SILENT_S;
    let mut view = ScheduleView {
        plan: plan.name.clone(),
        now_s,
        from_s,
        running,
        events: events.iter().filter(|event| event.at_s >= from_s).map(event_view).collect(),
        ..ScheduleView::default()
    };
    if !ended && !running {
        let last = u128::try_from(dealt_s).unwrap_or(0) * 1_000_000_000;
        let last = linerate_core::time::WallTime::from_unix_nanos(last);
        view.alerts.push(format!("the schedule was not seen since {last}"));
    }
    let slots = store.runs_since(&plan.name, from_s)?;
    let mut series: BTreeMap<(String, String), Vec<(f64, f64)>> = BTreeMap::new();
    for value in store.series(&plan.name, from_s as f64, VALUES_MAX)? {
        series.entry((value.task, value.metric)).or_default().push((value.at_s, value.value));
    }
    let (since_s, sketches) = store.sketches_since(&plan.name, from_s, now_s)?;
    let next = next_of(plan, calendar, now_s);
    for (at, task) in plan.tasks.iter().enumerate() {
        let alert = in_alert(&events, &task.name, now_s);
        view.alerts.extend(alert.clone());
        let mine = series.iter().filter(|((of, _), _)| *of == task.name);
        let spreads = sketches.iter().filter(|sketched| sketched.task == task.name);
        let spread = |row: &Sketched| SampleSpread::from_sketch(&row.metric, since_s, &row.sketch);
        view.tasks.push(TaskView {
            name: task.name.clone(),
            run: task.run.clone(),
            next_s: next[at],
            alert: alert.is_some(),
            spreads: spreads.filter_map(spread).collect(),
            series: mine
                .map(|((_, metric), points)| SeriesView {
                    metric: metric.clone(),
                    points: points.clone(),
                })
                .collect(),
            ..of_slots(store, plan, &task.name, &slots)?
        });
    }
    Ok(view)
}

/// The next run of each task within a week; looked up in longer and longer spans, for tasks that
/// run every few seconds have many runs in a week.
fn next_of(plan: &SchedulePlan, calendar: Option<&Calendar>, now_s: i64) -> Vec<Option<i64>> {
    let mut next = vec![None; plan.tasks.len()];
    for span_s in [3600, NEWS_S, 8 * NEWS_S] {
        let Some(calendar) = calendar.filter(|_| next.contains(&None)) else { break };
        for slot in calendar.slots_between(now_s + 1, now_s + span_s) {
            next[slot.task].get_or_insert(slot.start_s);
        }
    }
    next
}

fn event_view(event: &ScheduleEvent) -> EventView {
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let changes = event.detail["changes"].as_array().cloned().unwrap_or_default();
    let since = changes.iter().filter_map(|change| change["since_s"].as_f64());
    let since = since.fold(f64::INFINITY, f64::min);
    let said = match event.kind {
        EventKind::Begin => "the schedule began".to_owned(),
        EventKind::End => "the schedule was ended".to_owned(),
        EventKind::Clock => {
            format!("the clock was set by {:+.1} s", event.detail["by_s"].as_f64().unwrap_or(0.0))
        }
        _ => String::new(),
    };
    EventView {
        at_s: event.at_s,
        since_s: if since.is_finite() { since } else { event.at_s as f64 },
        task: event.task.clone(),
        kind: event.kind,
        sentence: text(&event.detail["sentence"]).unwrap_or(said),
        verdict: text(&event.detail["verdict"]["sentence"]),
        metrics: changes.iter().filter_map(|change| text(&change["metric"])).collect(),
    }
}

/// Why a task is in alert: it has no data, or it changed within a day.
fn in_alert(events: &[ScheduleEvent], task: &str, now_s: i64) -> Option<String> {
    let mine = || events.iter().rev().filter(|event| event.task == task);
    let silent = mine().find(|event| matches!(event.kind, EventKind::NoData | EventKind::Data));
    let silent = silent.filter(|event| event.kind == EventKind::NoData);
    let changed =
        mine().find(|event| event.kind == EventKind::Change && now_s - event.at_s < NEWS_S);
    let said = |event: &ScheduleEvent| event.detail["sentence"].as_str().map(str::to_owned);
    silent.or(changed).and_then(said)
}

fn of_slots(
    store: &Store,
    plan: &SchedulePlan,
    task: &str,
    slots: &[ScheduleRun],
) -> Result<TaskView, Failure> {
    let mut view = TaskView::default();
    for slot in slots.iter().filter(|slot| slot.task == task && slot.why == RunWhy::Calendar) {
        view.last_s = Some(slot.start_s);
        match (slot.state, &slot.reason) {
            (RunState::Ok, _) => {
                view.good += 1;
                view.last_good_s = Some(slot.start_s);
            }
            (RunState::Running, _) => {}
            (state, reason) => {
                view.without += 1;
                let reason = reason.clone().unwrap_or_else(|| state.to_string());
                let follows = view
                    .last_good_s
                    .is_none_or(|good| view.gaps.last().is_some_and(|gap| gap.until_s > good));
                match view.gaps.last_mut().filter(|gap| follows && gap.reason == reason) {
                    Some(gap) => {
                        gap.until_s = slot.start_s;
                        gap.runs += 1;
                    }
                    None => view.gaps.push(Gap {
                        from_s: slot.start_s,
                        until_s: slot.start_s,
                        runs: 1,
                        reason,
                    }),
                }
            }
        }
    }
    if view.last_s.is_none() {
        let last = store.last_slots(&plan.name, task, 50)?;
        view.last_s = last.first().map(|slot| slot.start_s);
        view.last_good_s =
            last.iter().find(|slot| slot.state == RunState::Ok).map(|slot| slot.start_s);
    }
    Ok(view)
}
