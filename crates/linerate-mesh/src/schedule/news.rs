//! What is worth an alert: a lasting change with what a survey says of it, runs without a result,
//! and that results are back.

use std::collections::BTreeMap;

use linerate_core::record::{Failure, Plan, Record};
use linerate_core::schedule::{EventKind, LevelChange, RunState, SchedulePlan};
use linerate_core::time::{MonoTime, WallTime};
use linerate_report::Headline;
use linerate_report::schedule::{change_sentence, no_data_sentence};
use linerate_store::{HAPPENED_KEPT_S, NewAlert, ScheduleEvent, Store};
use linerate_sys::clock::{monotonic, record_id};
use std::time::Duration;

use super::{NEWS_S, NO_DATA_RUNS};

/// Longest wait of an alert for the survey that explains it.
const SURVEY_WAITS: Duration = Duration::from_secs(900);
/// Seconds within which a path is surveyed once; later changes have the same verdict.
const SURVEY_ONCE_S: i64 = 600;
/// Runs that are looked at for data: missed ones for a survey lie between them.
const RUNS_READ: usize = 24;

/// A change whose alert waits for its survey.
#[derive(Debug)]
struct PendingChange {
    event: i64,
    detail: serde_json::Value,
    until: MonoTime,
}

/// Changes and missing results of a plan's tasks that are to become alerts.
#[derive(Debug)]
pub(super) struct News {
    plan: SchedulePlan,
    /// Changes that wait for a survey, by the task's index in the plan.
    waiting: BTreeMap<usize, Vec<PendingChange>>,
    surveyed: BTreeMap<usize, (i64, Option<serde_json::Value>)>,
    survey: BTreeMap<usize, Vec<String>>,
    /// Prints a line for the user.
    say: fn(&str),
    /// True for each task of the plan that brings no data.
    silent: Vec<bool>,
    /// True where an event may still be without its alert.
    open: bool,
}

impl News {
    /// Begins with the state that the store's events leave: tasks without data are silent.
    pub(super) fn from_store(
        plan: &SchedulePlan,
        store: &Store,
        now_s: i64,
        say: fn(&str),
    ) -> Result<Self, Failure> {
        let mut silent = vec![false; plan.tasks.len()];
        for event in store.events(&plan.name, now_s - HAPPENED_KEPT_S)? {
            let at = plan.tasks.iter().position(|task| task.name == event.task);
            match (at, event.kind) {
                (Some(at), EventKind::NoData) => silent[at] = true,
                (Some(at), EventKind::Data) => silent[at] = false,
                _ => {}
            }
        }
        Ok(Self {
            plan: plan.clone(),
            waiting: BTreeMap::new(),
            surveyed: BTreeMap::new(),
            survey: BTreeMap::new(),
            say,
            silent,
            open: true,
        })
    }

    /// True while a survey of the task is under way or to come.
    pub(super) fn is_surveyed(&self, task: usize) -> bool {
        self.waiting.get(&task).is_some_and(|waiting| !waiting.is_empty())
    }

    /// The words of a task's survey.
    pub(super) fn survey_words(&self, task: usize) -> Vec<String> {
        self.survey.get(&task).cloned().unwrap_or_default()
    }

    /// Keeps a change that a record and `further` more runs of the task show. True where a survey
    /// of the path is to be made.
    pub(super) fn changed(
        &mut self,
        store: &mut Store,
        task: usize,
        record: &Record,
        further: u32,
        changes: &[(String, LevelChange)],
        now_s: i64,
    ) -> Result<bool, Failure> {
        let name = self.plan.tasks[task].name.clone();
        let sentence = change_sentence(&self.plan.name, &name, changes);
        (self.say)(&sentence);
        let detail = change_detail(&sentence, changes, further, &record.id.to_string());
        let event =
            store.event_happened(&self.plan.name, &name, now_s, EventKind::Change, &detail)?;
        self.open = true;
        let recent = self.surveyed.get(&task).filter(|(at_s, _)| now_s - at_s < SURVEY_ONCE_S);
        if let Some((_, Some(verdict))) = recent {
            let mut detail = detail;
            detail["verdict"] = verdict.clone();
            store.event_explained(event, &detail)?;
            return Ok(false);
        }
        let asks = recent.is_none();
        let words = survey(&self.plan.tasks[task], &record.plan);
        let Some(words) = words else { return Ok(false) };
        self.survey.insert(task, words);
        self.surveyed.entry(task).and_modify(|survey| survey.0 = now_s).or_insert((now_s, None));
        let until = monotonic() + SURVEY_WAITS;
        self.waiting.entry(task).or_default().push(PendingChange { event, detail, until });
        Ok(asks)
    }

    /// Adds the verdict of a task's survey to the changes that wait for it.
    pub(super) fn explained(
        &mut self,
        store: &mut Store,
        task: usize,
        record: Option<&Record>,
        reason: Option<&str>,
    ) -> Result<(), Failure> {
        let verdict = match (record, reason) {
            (Some(record), _) => serde_json::json!({
                "sentence": Headline::from_record(record).summary_line(),
                "record": record.id.to_string(),
            }),
            (None, reason) => serde_json::json!({
                "sentence": format!("no verdict: {}", reason.unwrap_or("no result")),
            }),
        };
        for mut waiting in self.waiting.remove(&task).unwrap_or_default() {
            waiting.detail["verdict"] = verdict.clone();
            store.event_explained(waiting.event, &waiting.detail)?;
        }
        if let Some(known) = self.surveyed.get_mut(&task) {
            known.1 = Some(verdict);
        }
        self.open = true;
        Ok(())
    }

    /// Notes that a task has no data any more, or has data again, after a run of it ended or was
    /// missed.
    pub(super) fn run_ended(
        &mut self,
        store: &mut Store,
        task: usize,
        now_s: i64,
    ) -> Result<(), Failure> {
        let name = self.plan.tasks[task].name.clone();
        let mut last = store.last_slots(&self.plan.name, &name, RUNS_READ)?;
        last.retain(|run| !matches!(run.state, RunState::Running | RunState::Displaced));
        let without = last.iter().take_while(|run| run.state != RunState::Ok).count();
        let (kind, sentence) = match (self.silent[task], without) {
            (false, NO_DATA_RUNS..) => {
                let reason = last[0].reason.as_deref().unwrap_or("no result");
                (EventKind::NoData, no_data_sentence(&self.plan.name, &name, without, reason))
            }
            (true, 0) if !last.is_empty() => {
                (EventKind::Data, format!("{}, {name}: results are back", self.plan.name))
            }
            _ => return Ok(()),
        };
        self.silent[task] = !self.silent[task];
        let detail = serde_json::json!({ "sentence": sentence, "runs": without });
        store.event_happened(&self.plan.name, &name, now_s, kind, &detail)?;
        self.open = true;
        Ok(())
    }

    /// Makes the alerts that wait for nothing more: with their outputs they are in the outbox.
    pub(super) fn make_alerts(
        &mut self,
        store: &mut Store,
        outputs: &[String],
        now: MonoTime,
        now_s: i64,
    ) -> Result<(), Failure> {
        if !self.open {
            return Ok(());
        }
        for waiting in self.waiting.values_mut() {
            waiting.retain(|change| change.until > now);
        }
        let waits = |id: i64| self.waiting.values().flatten().any(|change| change.event == id);
        let untold = store.events(&self.plan.name, now_s - NEWS_S)?.into_iter().filter(|event| {
            let kind =
                matches!(event.kind, EventKind::Change | EventKind::NoData | EventKind::Data);
            kind && event.told_s.is_none() && !waits(event.id)
        });
        for event in untold {
            let alert = self.build_alert(&event, now_s);
            store.event_alerts(event.id, &self.plan.name, &alert, outputs)?;
        }
        self.open = self.waiting.values().any(|waiting| !waiting.is_empty());
        Ok(())
    }

    fn build_alert(&self, event: &ScheduleEvent, now_s: i64) -> NewAlert {
        let id = record_id().to_string();
        let at = u128::try_from(event.at_s).unwrap_or(0) * 1_000_000_000;
        let mut json = serde_json::json!({
            "id": id,
            "plan": self.plan.name,
            "task": event.task,
            "kind": event.kind,
            "at": WallTime::from_unix_nanos(at).to_string(),
        });
        if let (Some(json), Some(detail)) = (json.as_object_mut(), event.detail.as_object()) {
            json.extend(detail.clone());
        }
        let mut sentence = event.detail["sentence"].as_str().unwrap_or_default().to_owned();
        if let Some(verdict) = event.detail["verdict"]["sentence"].as_str() {
            sentence = format!("{sentence}; {verdict}");
        }
        NewAlert { id, at_s: now_s, sentence, json: json.to_string() }
    }
}

/// Detail of a change's event, JSON: the changes, the record that shows them and the number of
/// further runs.
pub(crate) fn change_detail(
    sentence: &str,
    changes: &[(String, LevelChange)],
    further_runs: u32,
    record: &str,
) -> serde_json::Value {
    let each = changes.iter().map(|(metric, change)| {
        serde_json::json!({
            "metric": metric,
            "before": change.before,
            "after": change.after,
            "ratio": change.level_ratio(),
            "since_s": change.at_s,
            "between_s": [change.between_s.0, change.between_s.1],
            "values": change.values,
        })
    });
    serde_json::json!({
        "sentence": sentence,
        "changes": each.collect::<Vec<_>>(),
        "further_runs": further_runs,
        "record": record,
    })
}

/// The words of a task's survey: the plan's, or a `test` of the host that a test of rates went to,
/// a `trace` of that of probes.
fn survey(task: &linerate_core::schedule::ScheduleTask, plan: &Plan) -> Option<Vec<String>> {
    if let Some(words) = task.survey_words() {
        return Some(words);
    }
    let words = task.command_words().ok()?;
    let host = plan.host_names().last()?;
    let with_port = |word: &&String| {
        *word == host
            || word.strip_prefix(host).is_some_and(|rest| rest.starts_with(':'))
            || word.strip_prefix(&format!("[{host}]")).is_some()
    };
    let target = words.iter().find(with_port)?.clone();
    let probes = matches!(words.first().map(String::as_str), Some("ping" | "stamp" | "trace"));
    if probes {
        return Some(vec!["trace".to_owned(), host.to_owned()]);
    }
    let mut survey = vec!["test".to_owned(), target];
    let port = words.iter().position(|word| word == "-p" || word == "--port");
    if let Some(port) = port.and_then(|at| words.get(at + 1)) {
        survey.extend(["-p".to_owned(), port.clone()]);
    }
    Some(survey)
}
