//! The hub's watch over its mesh: each series that reaches it, each agent and each pair; what it
//! finds becomes incidents, and goes out as alerts.
//!
//! The detector and the outbox are those of `linerate schedule`. Further runs at once, and surveys,
//! are booked where the plan lets them be. Of hubs that share a database one watches; what reaches
//! the others it finds in the store.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::mesh::{Rules, ordered_pair};
use linerate_core::record::Failure;
use linerate_core::schedule::{EventKind, LevelChange, SchedulePlan};
use linerate_core::time::MonoTime;
use linerate_report::schedule::change_sentence;
use linerate_store::{HAPPENED_KEPT_S, HubStore, Marks, SeriesValue, TaskNote};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;

use super::clock::now_s;
use super::found::{DetectedChange, Further};
use super::hub::{Hub, Served, alert_owner};
use super::incidents::{Incidents, Scene};
use crate::alert::Post;
use crate::schedule::{NEWS_S, Watches, change_detail};

/// Time between two looks at new results.
const LOOK: Duration = Duration::from_millis(500);
/// Time between two looks for missing results, and for results that came by way of another hub.
const SILENCE_EVERY: Duration = Duration::from_secs(5);
/// Longest time for new values in one round, before the rest of the work has its turn.
const LOOKS_FOR: Duration = Duration::from_secs(10);
/// Time between two deletions of old events; those beyond one deletion go in the next rounds.
const FORGET_EVERY: Duration = Duration::from_secs(3600);
/// Wait after a failure of the store, and while another hub watches.
const TRY_AGAIN: Duration = Duration::from_secs(10);
/// Values of a figure that a watch begins with: two of its windows and more.
const VALUES_READ: usize = 700;
/// Age up to which changes in a series that was never looked at are reported, seconds.
const NEW_S: i64 = 86_400;
/// Series that are watched: each takes some 10 kB.
const SERIES_MAX: usize = 20_000;

/// An agent's schedule, and the watches over its series.
#[derive(Debug)]
struct WatchedAgent {
    plan: SchedulePlan,
    watches: Watches,
    /// Time until which each task's series were looked at, seconds since 1970-01-01 UTC.
    until: BTreeMap<String, f64>,
}

/// Watches what comes to a hub and what does not, and tells who is to know, until it is asked to
/// stop. A store that fails is tried again, and what it knows is read anew; while another hub of
/// the same database watches, this one waits.
pub fn watch_mesh(hub: &Hub, stop: &Stop) {
    let mut waits = false;
    while !stop.is_requested() {
        match Watcher::start_if_alone(hub, now_s()) {
            Ok(Some(watcher)) => {
                waits = false;
                if let Err(failure) = watcher.run(stop) {
                    tracing::error!("the mesh is not watched, and tried again: {failure}");
                }
            }
            Ok(None) if !std::mem::replace(&mut waits, true) => {
                tracing::info!("another hub watches the mesh; this one does when that has ended");
            }
            Ok(None) => {}
            Err(failure) => {
                tracing::error!("the mesh is not watched, and tried again: {failure}");
            }
        }
        sleep_until_stop(TRY_AGAIN, stop);
    }
}

fn sleep_until_stop(time: Duration, stop: &Stop) {
    let until = monotonic() + time;
    while !stop.is_requested() && monotonic() < until {
        sleep(LOOK);
    }
}

/// A hub's watch over the series of its mesh: finds changes and silence, and makes incidents of
/// them.
#[derive(Debug)]
struct Watcher<'a> {
    hub: &'a Hub,
    served: Arc<Served>,
    rules: Arc<Rules>,
    store: Box<dyn HubStore>,
    agents: BTreeMap<String, WatchedAgent>,
    /// Agents and tasks that have something new, and the last that was looked at.
    waiting: BTreeSet<(String, String)>,
    last: (String, String),
    /// Times until which series without a change were looked at, before they are stored.
    marks: Marks,
    incidents: Incidents,
    post: Post,
    silence_at: MonoTime,
    forget_at: MonoTime,
    full: bool,
}

impl<'a> Watcher<'a> {
    /// Begins a watch with the state that the store has; none while another hub watches.
    fn start_if_alone(hub: &'a Hub, now_s: i64) -> Result<Option<Self>, Failure> {
        let mut store = hub.open_store()?;
        let is_alone = store.mesh_watches(&hub.plan_summary().0)?;
        is_alone.then(|| Self::new(hub, store, now_s)).transpose()
    }

    fn new(hub: &'a Hub, mut store: Box<dyn HubStore>, now_s: i64) -> Result<Self, Failure> {
        let (served, rules) = (hub.served(), hub.current_rules());
        let mesh = served.checked.plan.mesh.clone();
        let post = Post::new(alert_owner(&mesh), rules.alert.as_ref());
        let incidents = Incidents::from_store(&mut *store, &served.checked.plan, now_s)?;
        hub.look_at_all();
        Ok(Self {
            hub,
            served,
            rules,
            store,
            agents: BTreeMap::new(),
            waiting: BTreeSet::new(),
            last: Default::default(),
            marks: Marks::new(),
            incidents,
            post,
            silence_at: monotonic(),
            forget_at: monotonic(),
            full: false,
        })
    }

    /// Watches until it is asked to stop, or the hub has another mesh.
    fn run(mut self, stop: &Stop) -> Result<(), Failure> {
        let mesh = self.hub.plan_summary().0;
        while !stop.is_requested() && self.hub.plan_summary().0 == mesh {
            self.run_checks(now_s())?;
            sleep_until_stop(LOOK, stop);
        }
        Ok(())
    }

    /// Looks at new values and at silence as they are at `now_s`, seconds since 1970-01-01 UTC.
    fn run_checks(&mut self, now_s: i64) -> Result<(), Failure> {
        self.read_again();
        let is_time = monotonic() >= self.silence_at;
        self.waiting.extend(self.hub.arrived());
        if is_time {
            let mesh = &self.served.checked.plan.mesh;
            self.waiting.extend(self.store.mesh_unwatched(mesh, now_s - NEW_S)?);
        }
        self.look_in_turn(now_s)?;
        let outputs = self.post.output_keys();
        let (served, rules) = (Arc::clone(&self.served), Arc::clone(&self.rules));
        let scene = Scene {
            plan: &served.checked.plan,
            calendar: &served.checked.calendar,
            rules: &rules,
            owner: &alert_owner(&served.checked.plan.mesh),
            outputs: &outputs,
            now_s,
        };
        self.incidents.group_waiting_changes(&mut *self.store, &scene)?;
        if is_time {
            self.silence_at = monotonic() + SILENCE_EVERY;
            let matrix = self.hub.matrix_at(now_s)?;
            self.incidents.silence(&mut *self.store, &scene, &matrix)?;
            self.incidents.close_old_changes(&mut *self.store, &scene, NEWS_S)?;
        }
        self.forget(now_s)?;
        self.post
            .deliver_due_alerts(&mut *self.store, now_s, &|line: &str| tracing::warn!("{line}"))
    }

    /// Deletes old events and incidents, some hundreds at a look.
    fn forget(&mut self, now_s: i64) -> Result<(), Failure> {
        let now = monotonic();
        if now >= self.forget_at {
            let mesh = &self.served.checked.plan.mesh;
            let gone = self.store.mesh_forgets(mesh, now_s - HAPPENED_KEPT_S)?;
            self.forget_at = if gone > 0 { now } else { now + FORGET_EVERY };
        }
        Ok(())
    }

    /// Takes the hub's plan and rules, where they are others than before.
    fn read_again(&mut self) {
        let (served, rules) = (self.hub.served(), self.hub.current_rules());
        let same = Arc::ptr_eq(&served, &self.served) && Arc::ptr_eq(&rules, &self.rules);
        if same {
            return;
        }
        self.agents.clear();
        self.post = Post::new(alert_owner(&served.checked.plan.mesh), rules.alert.as_ref());
        (self.served, self.rules) = (served, rules);
    }

    fn watched(&mut self, agent: &str) -> Option<&mut WatchedAgent> {
        let super::Checked { plan, calendar } = &self.served.checked;
        if !self.agents.contains_key(agent) {
            let mut plan = calendar.of_agent(plan, plan.agent_index(agent)?).plan;
            plan.learn = self.rules.learn;
            for task in &mut plan.tasks {
                task.least_change = self.rules.least_change;
            }
            let (watches, until) = (Watches::default(), BTreeMap::new());
            self.agents.insert(agent.to_owned(), WatchedAgent { plan, watches, until });
        }
        self.agents.get_mut(agent)
    }

    /// Checks the series with new values in turn, for a limited time, so that none waits for ever
    /// where more comes than can be checked.
    fn look_in_turn(&mut self, now_s: i64) -> Result<(), Failure> {
        let until = monotonic() + LOOKS_FOR;
        while monotonic() < until {
            let next = self.waiting.range((Bound::Excluded(&self.last), Bound::Unbounded)).next();
            let Some(next) = next.or_else(|| self.waiting.first()).cloned() else { break };
            self.waiting.remove(&next);
            self.check_series(&next.0, &next.1, now_s)?;
            self.last = next;
        }
        self.store.mesh_looked(&std::mem::take(&mut self.marks))
    }

    /// Checks the new values in the series of a task of an agent for changes.
    fn check_series(&mut self, agent: &str, task: &str, now_s: i64) -> Result<(), Failure> {
        let name = format!("{}/{agent}", self.served.checked.plan.mesh);
        let Some(watched) = self.watched(agent) else { return Ok(()) };
        let (is_new, known) =
            (!watched.watches.has_task_series(task), watched.until.get(task).copied());
        if is_new && self.is_full() {
            return Ok(());
        }
        #[allow(clippy::cast_precision_loss, reason = "seconds since 1970")]
        let first = (now_s - NEW_S) as f64;
        let after = match known {
            Some(until) => until,
            None => self.store.mesh_watched_s(&name, task)?.unwrap_or(first),
        };
        let values = self.store.task_series(&name, task, after, f64::MAX, VALUES_READ)?;
        let Some(until) = values.last().map(|value| value.at_s) else { return Ok(()) };
        let old = match is_new {
            true => self.store.task_series(&name, task, f64::MIN, after, VALUES_READ)?,
            false => Vec::new(),
        };
        let Some(WatchedAgent { plan, watches, until: known }) = self.watched(agent) else {
            return Ok(());
        };
        known.insert(task.to_owned(), until);
        watches.learn_values(plan, &old);
        let (mut notes, mut changes) = (Vec::new(), Vec::new());
        for run in values.chunk_by(|a, b| a.record == b.record) {
            let found = watches.check_values(plan, run).changes;
            if !found.is_empty() {
                notes.push(change_note(&name, task, &run[0], &found, now_s));
                changes.push(found);
            }
        }
        if notes.is_empty() {
            self.marks.insert((name, task.to_owned()), until);
            return Ok(());
        }
        let ids = self.store.mesh_watched(&name, task, until, &notes)?;
        for (id, changes) in ids.into_iter().zip(changes) {
            let Some(found) = self.detected_change(id, now_s, agent, task, changes) else {
                continue;
            };
            tracing::warn!("{}", found.sentence);
            self.incidents.add_change(&mut *self.store, &self.served.checked.plan, found)?;
        }
        Ok(())
    }

    /// True where no more series can be watched; that is logged once.
    fn is_full(&mut self) -> bool {
        let count: usize = self.agents.values().map(|agent| agent.watches.series_count()).sum();
        let full = count >= SERIES_MAX;
        if full && !std::mem::replace(&mut self.full, true) {
            tracing::warn!("{SERIES_MAX} series are watched; changes in others are not looked for");
        }
        full
    }

    fn detected_change(
        &self,
        event: i64,
        found_s: i64,
        agent: &str,
        task: &str,
        changes: Vec<(String, LevelChange)>,
    ) -> Option<DetectedChange> {
        let plan = &self.served.checked.plan;
        let (task, peer) = task.split_once('/')?;
        let period = plan.tasks.iter().find(|known| known.name == task)?.every.seconds();
        let sentence = change_sentence(&plan.mesh, &format!("{task} {agent} to {peer}"), &changes);
        Some(DetectedChange {
            events: vec![event],
            found_s,
            period_s: i64::try_from(period).unwrap_or(i64::MAX / 4),
            pair: ordered_pair(plan.agent_index(agent)?, plan.agent_index(peer)?),
            from: agent.to_owned(),
            to: peer.to_owned(),
            task: task.to_owned(),
            changes,
            sentence,
            further: Further::Wanted,
        })
    }
}

/// Event of a change in a task of an agent, for the store.
fn change_note(
    plan: &str,
    task: &str,
    first: &SeriesValue,
    changes: &[(String, LevelChange)],
    at_s: i64,
) -> TaskNote {
    let sentence = change_sentence(plan, task, changes);
    let (plan, task) = (plan.to_owned(), task.to_owned());
    let detail = change_detail(&sentence, changes, 0, &first.record);
    TaskNote { plan, task, at_s, kind: EventKind::Change, detail }
}

#[cfg(test)]
mod tests;
