//! Further runs that show a change again before it is an incident, and the survey that explains
//! one. Both are booked beside the calendar, as far as the plan lets them be.

use linerate_core::mesh::{BookingWhy, Incident, IncidentKind, Survey};
use linerate_core::record::Failure;
use linerate_core::schedule::{Class, RunState, ScheduleRun, confirms, own_difference};
use linerate_report::Headline;
use linerate_report::mesh::dropped_sentence;
use linerate_store::{HubStore, SeriesValue};
use serde_json::json;

use super::booking::{BookingRequest, What, book_run};
use super::found::{DetectedChange, Further};
use super::incidents::{Incidents, Scene, record_incident, watched};
use crate::schedule::NEWS_S;

/// Seconds within which further runs have to begin, or they are not made.
const CONFIRM_WITHIN_S: i64 = 900;
/// Seconds within which a survey has to begin, or it is not made.
const SURVEY_WITHIN_S: i64 = 1800;
/// Seconds after a booked run's end for which its result is waited for.
const HEARD_S: i64 = 90;
/// A task that runs so often as it has to be confirmed within this is confirmed by its own runs,
/// seconds.
const SOON_S: i64 = 120;
/// Changes that are confirmed at once: of more the first speak for those that share their cause.
const AT_ONCE: usize = 8;
/// Values of a task's figures that tell how much its path differs from itself.
const VALUES_READ: usize = 400;

impl Incidents {
    /// Books further runs of changes that wait, and looks at those that are there: a change that
    /// they do not show is dropped.
    pub(super) fn further(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
    ) -> Result<(), Failure> {
        let mut dropped = Vec::new();
        for at in 0..self.pending.len() {
            let asked = self
                .pending
                .iter()
                .filter(|change| matches!(change.further, Further::Booked(..)))
                .count();
            let found = &mut self.pending[at];
            match found.further.clone() {
                Further::Wanted if scene.plan.adhoc.is_none() => found.further = Further::None,
                Further::Wanted if is_soon(scene, found) => {
                    let (after_s, until_s) = (scene.now_s + 1, scene.now_s + SOON_S + HEARD_S);
                    let kept = json!({ "after_s": after_s, "until_s": until_s });
                    store.mesh_changes_ask(&found.events, &kept)?;
                    found.further = Further::Next(after_s, until_s);
                }
                Further::Wanted if asked >= AT_ONCE => found.further = Further::None,
                Further::Wanted => found.further = book_further_runs(store, scene, found)?,
                Further::Booked(..) | Further::Next(..) => {
                    let whole = found.clone();
                    evaluate_further_runs(store, scene, found)?;
                    dropped.extend(found.changes.is_empty().then_some(whole));
                }
                Further::None | Further::Shown => {}
            }
        }
        self.pending.retain(|found| !found.changes.is_empty());
        self.dropped.extend(dropped);
        Ok(())
    }

    /// Stores the verdict of surveys that have ended, and makes the alerts of their incidents.
    pub(super) fn surveyed(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
    ) -> Result<(), Failure> {
        let waits = |incident: &&mut Incident| {
            let survey = incident.survey.as_ref().is_some_and(|survey| survey.verdict.is_none());
            incident.kind == IncidentKind::Change && survey
        };
        for incident in self.open.iter_mut().filter(waits) {
            let Some(survey) = &mut incident.survey else { continue };
            let (mesh, agent) = (scene.plan.mesh.as_str(), survey.agent.as_str());
            let said = match run_at(store, mesh, agent, &survey.task, survey.start_s)? {
                Some(run) => {
                    let line = store
                        .record(mesh, agent, &run)?
                        .map(|record| Headline::from_record(&record).summary_line());
                    survey.record = run.record;
                    let none = || format!("no verdict: {}", run.reason.unwrap_or_default());
                    line.unwrap_or_else(none)
                }
                None if scene.now_s >= survey.until_s => {
                    "no verdict: nothing was heard of its survey".to_owned()
                }
                None => continue,
            };
            incident.sentence = format!("{}; {said}", incident.sentence);
            survey.verdict = Some(said);
            let sentence = incident.sentence.clone();
            record_incident(store, scene, incident, &[], &[], "change", &sentence)?;
        }
        Ok(())
    }
}

/// Books further runs of a change.
fn book_further_runs(
    store: &mut dyn HubStore,
    scene: &Scene<'_>,
    found: &DetectedChange,
) -> Result<Further, Failure> {
    let mut starts = Vec::new();
    let mut end_s = 0;
    for _ in 0..scene.rules.confirm {
        let wanted = BookingRequest {
            from: found.from.clone(),
            what: What::Named(found.task.clone(), found.to.clone()),
            why: BookingWhy::Confirm,
            earliest_s: end_s,
            within_s: CONFIRM_WITHIN_S,
        };
        match book_run(store, &scene.plan.mesh, &wanted, scene.now_s) {
            Ok(booking) => {
                starts.push(booking.start_s);
                end_s = booking.start_s + booking.takes_s;
            }
            Err(failure) => {
                tracing::info!("no further run of {} {}: {failure}", found.from, found.task);
                break;
            }
        }
    }
    if starts.is_empty() {
        return Ok(Further::None);
    }
    let until_s = end_s + HEARD_S;
    let kept = json!({ "starts": starts, "until_s": until_s });
    store.mesh_changes_ask(&found.events, &kept)?;
    Ok(Further::Booked(starts, until_s))
}

/// True where the task's own runs repeat soon enough to confirm a change. None is booked then: the
/// calendar of such a task has no gap for one.
fn is_soon(scene: &Scene<'_>, found: &DetectedChange) -> bool {
    let confirm = scene.rules.confirm;
    confirm > 0 && found.period_s <= SOON_S / i64::from(confirm)
}

/// A run of an agent's task that begins at a time.
fn run_at(
    store: &mut dyn HubStore,
    mesh: &str,
    agent: &str,
    task: &str,
    start_s: i64,
) -> Result<Option<ScheduleRun>, Failure> {
    Ok(store.agent_runs(mesh, agent, Some(task), start_s..start_s + 1)?.pop())
}

/// Further runs that have ended, and whether all have that are waited for.
fn ended_further_runs(
    store: &mut dyn HubStore,
    scene: &Scene<'_>,
    found: &DetectedChange,
    task: &str,
) -> Result<(Vec<ScheduleRun>, bool), Failure> {
    let (mesh, agent) = (scene.plan.mesh.as_str(), found.from.as_str());
    match &found.further {
        Further::Booked(starts, until_s) => {
            let mut runs = Vec::new();
            for start_s in starts {
                runs.extend(run_at(store, mesh, agent, task, *start_s)?);
            }
            let all = runs.len() == starts.len() || scene.now_s >= *until_s;
            Ok((runs, all))
        }
        Further::Next(after_s, until_s) => {
            let count = scene.rules.confirm as usize;
            let runs = store.agent_runs(mesh, agent, Some(task), *after_s..i64::MAX)?.into_iter();
            let good = runs.filter(|run| run.state == RunState::Ok);
            let runs: Vec<ScheduleRun> = good.take(count).collect();
            let all = runs.len() == count || scene.now_s >= *until_s;
            Ok((runs, all))
        }
        Further::Wanted | Further::None | Further::Shown => Ok((Vec::new(), false)),
    }
}

/// Looks whether further runs show a change, once they are there.
fn evaluate_further_runs(
    store: &mut dyn HubStore,
    scene: &Scene<'_>,
    found: &mut DetectedChange,
) -> Result<(), Failure> {
    let plan = format!("{}/{}", scene.plan.mesh, found.from);
    let task = format!("{}/{}", found.task, found.to);
    let (runs, all) = ended_further_runs(store, scene, found, &task)?;
    if !all {
        return Ok(());
    }
    let records: Vec<String> = runs.into_iter().filter_map(|run| run.record).collect();
    let series = store.task_series(&plan, &task, f64::MIN, f64::MAX, VALUES_READ)?;
    let before = found.member();
    let least = scene.rules.least_change.ln_1p();
    let mut heard = 0;
    found.changes.retain(|(metric, change)| {
        let of = |value: &&SeriesValue| value.metric == *metric;
        let known = |value: &SeriesValue| watched(metric, value.value);
        let further: Vec<f64> = series
            .iter()
            .filter(of)
            .filter(|value| records.contains(&value.record))
            .map(known)
            .collect();
        heard += further.len();
        let earlier = series.iter().filter(of).filter(|value| value.at_s < change.between_s.0);
        let floor = own_difference(&earlier.map(known).collect::<Vec<f64>>()).unwrap_or(0.0);
        let (before, after) = (watched(metric, change.before), watched(metric, change.after));
        further.is_empty() || confirms(before, after, floor.max(least), &further)
    });
    found.further = if heard > 0 { Further::Shown } else { Further::None };
    if found.changes.is_empty() {
        let sentence = dropped_sentence(&scene.plan.mesh, &before);
        tracing::warn!("{sentence}");
        store.mesh_changes_dropped(&found.events, &sentence)?;
    }
    Ok(())
}

impl Scene<'_> {
    /// Books the survey of a pair that changed, as many a day as the rules say: a `test` where the
    /// plan has one that may be booked, after probes a `trace` where it has only that.
    pub(super) fn survey(
        &self,
        store: &mut dyn HubStore,
        found: &DetectedChange,
    ) -> Result<Option<Survey>, Failure> {
        let mesh = &self.plan.mesh;
        let made = store.bookings(mesh, self.now_s - NEWS_S)?;
        let made = made
            .iter()
            .filter(|run| run.why == BookingWhy::Survey && run.asked_s > self.now_s - NEWS_S);
        let bookable = self.plan.bookable();
        let of = |command: &str| {
            let is_it = |run: &str| run.split_whitespace().next() == Some(command);
            bookable.iter().find(|bookable| is_it(bookable.run))
        };
        let task = self.plan.tasks.iter().find(|task| task.name == found.task);
        let probes = task.is_some_and(|task| task.effective_class() == Class::Background);
        let Some(what) = of("test").or_else(|| of("trace").filter(|_| probes)) else {
            return Ok(None);
        };
        if made.count() >= self.rules.surveys_a_day as usize {
            return Ok(None);
        }
        let wanted = BookingRequest {
            from: found.from.clone(),
            what: What::Named(what.name.to_owned(), found.to.clone()),
            why: BookingWhy::Survey,
            earliest_s: 0,
            within_s: SURVEY_WITHIN_S,
        };
        match book_run(store, mesh, &wanted, self.now_s) {
            Ok(booking) => Ok(Some(Survey {
                agent: found.from.clone(),
                until_s: booking.start_s + booking.takes_s + HEARD_S,
                task: booking.task,
                start_s: booking.start_s,
                verdict: None,
                record: None,
            })),
            Err(failure) => {
                tracing::info!("no survey of {} {}: {failure}", found.from, found.task);
                Ok(None)
            }
        }
    }
}
