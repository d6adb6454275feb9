//! The hub's watch over its mesh: each series that reaches it, each agent and each pair; what it
//! finds becomes incidents, and goes out as alerts.
//!
//! The detector and the outbox are those of `linerate schedule`. Further runs at once, and surveys,
//! are booked where the plan lets them be.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::mesh::{Rules, pair};
use linerate_core::record::Failure;
use linerate_core::schedule::{Change, SchedulePlan};
use linerate_core::time::MonoTime;
use linerate_report::schedule::change_sentence;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;

use super::found::{Found, Further};
use super::hub::{Hub, Served, now_s, owner};
use super::incidents::{Incidents, Scene};
use crate::alert::Post;
use crate::schedule::{NEWS_S, Watches, change_detail};
use crate::store::{SeriesValue, Store, TaskNote};

/// Between two looks at what came.
const LOOK: Duration = Duration::from_millis(500);
/// Between two looks at what did not come.
const SILENCE_EVERY: Duration = Duration::from_secs(5);
/// After a failure of the store.
const TRY_AGAIN: Duration = Duration::from_secs(10);
/// Values of a figure that a watch begins with: two of its windows and more.
const VALUES_READ: usize = 700;
/// Of a series that was never looked at, changes are news from so long ago on, seconds.
const NEW_S: f64 = 86_400.0;
/// Series that are watched: each takes some 10 kB.
const SERIES_MAX: usize = 20_000;

/// An agent's schedule, and the watches over its series.
#[derive(Debug)]
struct Watched {
    plan: SchedulePlan,
    watches: Watches,
}

/// Watches what comes to a hub and what does not, and tells who is to know, until it is asked to
/// stop.
/// # Errors
/// When the store cannot be read at first.
pub fn watch(hub: &Hub, stop: &Stop) -> Result<(), Failure> {
    match hub.file()? {
        Some(store) => Watcher::new(hub, store, now_s())?.run(stop),
        None => tracing::warn!(
            "changes and silence are not looked for in PostgreSQL: docs/monitoring has rules for \
             Prometheus, which see silence"
        ),
    }
    Ok(())
}

/// A hub's watch.
#[derive(Debug)]
struct Watcher<'a> {
    hub: &'a Hub,
    served: Arc<Served>,
    rules: Arc<Rules>,
    store: Store,
    agents: BTreeMap<String, Watched>,
    incidents: Incidents,
    post: Post,
    silence_at: MonoTime,
    full: bool,
}

impl<'a> Watcher<'a> {
    fn new(hub: &'a Hub, store: Store, now_s: i64) -> Result<Self, Failure> {
        let (served, rules) = (hub.served(), hub.rules());
        let mesh = served.checked.plan.mesh.clone();
        let post = Post::new(owner(&mesh), rules.alert.as_ref());
        let incidents = Incidents::of(&store, &served.checked.plan, now_s)?;
        let (agents, silence_at) = (BTreeMap::new(), monotonic());
        hub.look_at_all();
        Ok(Self { hub, served, rules, store, agents, incidents, post, silence_at, full: false })
    }

    /// Watches until it is asked to stop. A store that fails is tried again.
    fn run(mut self, stop: &Stop) {
        while !stop.asked() {
            let worked = self.work(now_s());
            if let Err(failure) = &worked {
                tracing::error!("the mesh is not watched, and tried again: {failure}");
            }
            let until = monotonic() + if worked.is_ok() { LOOK } else { TRY_AGAIN };
            while !stop.asked() && monotonic() < until {
                sleep(LOOK);
            }
        }
    }

    /// Looks at what came and what did not, at a time.
    fn work(&mut self, now_s: i64) -> Result<(), Failure> {
        self.read_again();
        let mut arrived = self.hub.arrived();
        while let Some((agent, task)) = arrived.pop_first() {
            if let Err(failure) = self.look((&agent, &task), now_s) {
                arrived.insert((agent, task));
                arrived.iter().for_each(|(agent, task)| self.hub.came(agent, task));
                return Err(failure);
            }
        }
        let outputs = self.post.words();
        let (served, rules) = (Arc::clone(&self.served), Arc::clone(&self.rules));
        let scene = Scene {
            plan: &served.checked.plan,
            calendar: &served.checked.calendar,
            rules: &rules,
            owner: &owner(&served.checked.plan.mesh),
            outputs: &outputs,
            now_s,
        };
        self.incidents.join(&mut self.store, &scene)?;
        if monotonic() >= self.silence_at {
            self.silence_at = monotonic() + SILENCE_EVERY;
            let matrix = self.hub.matrix_at(now_s)?;
            self.incidents.silence(&mut self.store, &scene, &matrix)?;
            self.incidents.age(&mut self.store, &scene, NEWS_S)?;
        }
        self.post.work(&mut self.store, now_s, &|line: &str| tracing::warn!("{line}"))
    }

    /// Takes another plan, and other rules.
    fn read_again(&mut self) {
        let (served, rules) = (self.hub.served(), self.hub.rules());
        let same = Arc::ptr_eq(&served, &self.served) && Arc::ptr_eq(&rules, &self.rules);
        if same {
            return;
        }
        self.agents.clear();
        self.post = Post::new(owner(&served.checked.plan.mesh), rules.alert.as_ref());
        (self.served, self.rules) = (served, rules);
    }

    fn watched(&mut self, agent: &str) -> Option<&mut Watched> {
        let super::Checked { plan, calendar } = &self.served.checked;
        if !self.agents.contains_key(agent) {
            let mut plan = calendar.of_agent(plan, plan.agent(agent)?).plan;
            plan.learn = self.rules.learn;
            for task in &mut plan.tasks {
                task.least_change = self.rules.least_change;
            }
            self.agents.insert(agent.to_owned(), Watched { plan, watches: Watches::default() });
        }
        self.agents.get_mut(agent)
    }

    /// Looks at what is new in the series of a task of an agent.
    fn look(&mut self, (agent, task): (&str, &str), now_s: i64) -> Result<(), Failure> {
        let name = format!("{}/{agent}", self.served.checked.plan.mesh);
        let key = (name.as_str(), task);
        #[allow(clippy::cast_precision_loss, reason = "seconds since 1970")]
        let now = now_s as f64;
        let after = self.store.mesh_watched_s(&name, task)?.unwrap_or(now - NEW_S);
        let values = self.store.task_series(key, (after, f64::MAX), VALUES_READ)?;
        let Some(until) = values.last().map(|value| value.at_s) else { return Ok(()) };
        let count: usize = self.agents.values().map(|it| it.watches.count()).sum();
        let old = self.store.task_series(key, (f64::MIN, after), VALUES_READ)?;
        let Some(Watched { plan, watches }) = self.watched(agent) else { return Ok(()) };
        if !watches.knows(task) {
            if count >= SERIES_MAX {
                return self.is_full();
            }
            watches.learn(plan, &old);
        }
        let (mut notes, mut changes) = (Vec::new(), Vec::new());
        for run in values.chunk_by(|a, b| a.record == b.record) {
            let found = watches.look(plan, run).changes;
            if !found.is_empty() {
                notes.push(note((&name, task), &run[0], &found, now_s));
                changes.push(found);
            }
        }
        let ids = self.store.mesh_watched(key, until, &notes)?;
        for (id, changes) in ids.into_iter().zip(changes) {
            let Some(found) = self.found((id, now_s), (agent, task), changes) else { continue };
            tracing::warn!("{}", found.sentence);
            self.incidents.found(&mut self.store, &self.served.checked.plan, found)?;
        }
        Ok(())
    }

    fn is_full(&mut self) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.full, true) {
            tracing::warn!("{SERIES_MAX} series are watched; changes in others are not looked for");
        }
        Ok(())
    }

    fn found(
        &self,
        (event, found_s): (i64, i64),
        (agent, task): (&str, &str),
        changes: Vec<(String, Change)>,
    ) -> Option<Found> {
        let plan = &self.served.checked.plan;
        let (task, peer) = task.split_once('/')?;
        let period = plan.tasks.iter().find(|it| it.name == task)?.every.seconds();
        let sentence = change_sentence(&plan.mesh, &format!("{task} {agent} to {peer}"), &changes);
        Some(Found {
            events: vec![event],
            found_s,
            period_s: i64::try_from(period).unwrap_or(i64::MAX / 4),
            pair: pair(plan.agent(agent)?, plan.agent(peer)?),
            from: agent.to_owned(),
            to: peer.to_owned(),
            task: task.to_owned(),
            changes,
            sentence,
            further: Further::Wanted,
        })
    }
}

/// What the store keeps of a change: as of a schedule's.
fn note(
    (plan, task): (&str, &str),
    first: &SeriesValue,
    changes: &[(String, Change)],
    at_s: i64,
) -> TaskNote {
    let sentence = change_sentence(plan, task, changes);
    let (plan, task) = (plan.to_owned(), task.to_owned());
    let detail = change_detail(&sentence, changes, 0, &first.record);
    TaskNote { plan, task, at_s, kind: "change", detail }
}

#[cfg(test)]
mod tests;
