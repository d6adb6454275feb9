//! The watched series of a plan.

use std::collections::BTreeMap;

use linerate_core::schedule::{Followed, LevelChange, Point, SchedulePlan, SeriesFinding, Watch};
use linerate_store::SeriesValue;

/// Watches for changes, one for each figure of each task.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    of: BTreeMap<(String, String), Watch>,
}

/// Changes and suspicions that the values of one run brought.
#[derive(Debug, Default)]
pub(crate) struct WatchFindings {
    pub(crate) suspected: bool,
    /// The figure's key and its change, in the metric's unit.
    pub(crate) changes: Vec<(String, LevelChange)>,
}

impl Watches {
    /// Reads what is stored; changes in it are known already.
    pub(super) fn from_series(plan: &SchedulePlan, series: &[SeriesValue]) -> Self {
        let mut watches = Self::default();
        watches.learn_values(plan, series);
        watches
    }

    /// Takes values whose changes are known already.
    pub(crate) fn learn_values(&mut self, plan: &SchedulePlan, series: &[SeriesValue]) {
        for value in series {
            self.add(plan, value);
        }
    }

    /// True where a task has at least one watched series.
    pub(crate) fn has_task_series(&self, task: &str) -> bool {
        let first = self.of.range((task.to_owned(), String::new())..).next();
        first.is_some_and(|((of, _), _)| of == task)
    }

    /// Number of the series that are watched.
    pub(crate) fn series_count(&self) -> usize {
        self.of.len()
    }

    /// Takes a value; one of a task that the plan has no more is left out.
    fn add(&mut self, plan: &SchedulePlan, value: &SeriesValue) -> SeriesFinding {
        let Some(task) = plan.tasks.iter().find(|task| task.name == value.task) else {
            return SeriesFinding::Steady;
        };
        let Some(followed) = Followed::from_key(&value.metric) else {
            return SeriesFinding::Steady;
        };
        let key = (value.task.clone(), value.metric.clone());
        let new = || Watch::new(task.least_change).learning(plan.learn_s());
        let watch = self.of.entry(key).or_insert_with(new);
        let point = Point { at_s: value.at_s, value: followed.watched(value.value) };
        match watch.add(point) {
            SeriesFinding::Changed(change) => SeriesFinding::Changed(LevelChange {
                before: followed.unwatched(change.before),
                after: followed.unwatched(change.after),
                ..change
            }),
            other => other,
        }
    }

    /// Takes the values of a run.
    pub(crate) fn check_values(
        &mut self,
        plan: &SchedulePlan,
        values: &[SeriesValue],
    ) -> WatchFindings {
        let mut findings = WatchFindings::default();
        for value in values {
            match self.add(plan, value) {
                SeriesFinding::Steady => {}
                SeriesFinding::Suspected => findings.suspected = true,
                SeriesFinding::Changed(change) => {
                    findings.changes.push((value.metric.clone(), change))
                }
            }
        }
        findings
    }
}
