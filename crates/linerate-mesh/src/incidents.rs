//! Incidents of a mesh: what changed together, what brings no data together, and when it is over.
//!
//! A change waits for one period of its task, in which each other pair of the task has a run, and
//! is then said with what changed beside it; what comes later joins it without another alert.
//! Silence waits as long, after it has lasted for `silence::HOLD_S`: results of an agent that was
//! cut off come one after another.

use std::collections::{BTreeMap, BTreeSet};

use linerate_core::mesh::{
    Hit, Incident, IncidentKind, Matrix, Member, MeshCalendar, MeshPlan, Pair, Rules,
    SharedElement, crosses, grouped, ordered_pair,
};
use linerate_core::record::Failure;
use linerate_core::schedule::{EventKind, Followed, LevelChange};
use linerate_core::time::WallTime;
use linerate_report::mesh::{change_sentence, no_data_sentence, over_sentence};
use linerate_store::{HubStore, NewAlert, OutgoingAlert, TaskNote};
use linerate_sys::clock::record_id;

use super::found::{DetectedChange, Further, read};
use super::silence::{Dark, Darkness, by_place, find_silent_members, is_light, key_of};

/// Share of the way from the new level to the old one, on a logarithmic scale, after which a level
/// counts as back.
const BACK: f64 = 0.75;
/// Age in seconds beyond which a change that is part of no incident is not read from the store
/// again.
const PENDING_S: i64 = 2 * 86_400;

/// The plan, calendar and rules that incidents are judged by, at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) plan: &'a MeshPlan,
    pub(super) calendar: &'a MeshCalendar,
    pub(super) rules: &'a Rules,
    pub(super) owner: &'a str,
    pub(super) outputs: &'a [String],
    pub(super) now_s: i64,
}

/// Open incidents of a mesh, and changes that may become incidents.
#[derive(Debug)]
pub(super) struct Incidents {
    pub(super) open: Vec<Incident>,
    pub(super) pending: Vec<DetectedChange>,
    /// Changes that further runs did not show, until their levels are back.
    pub(super) dropped: Vec<DetectedChange>,
    /// Time since which each silent agent or pair is known to be silent, seconds since 1970-01-01
    /// UTC.
    dark: BTreeMap<Dark, i64>,
}

fn pair_of(plan: &MeshPlan, member: &Member) -> Option<Pair> {
    Some(ordered_pair(plan.agent_index(&member.from)?, plan.agent_index(member.to.as_deref()?)?))
}

impl Incidents {
    /// Reads open incidents from the store, and changes that are part of none yet.
    pub(super) fn from_store(
        store: &mut dyn HubStore,
        plan: &MeshPlan,
        now_s: i64,
    ) -> Result<Self, Failure> {
        let known = store.incidents(&plan.mesh, i64::MAX)?;
        let (pending, dropped, dark) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut found = Self { open: known, pending, dropped, dark };
        for agent in &plan.agents {
            let events =
                store.mesh_events(&format!("{}/{}", plan.mesh, agent.name), now_s - PENDING_S)?;
            let of = |kind: EventKind| {
                let mine = events.iter().filter(move |event| event.kind == kind);
                let left = mine.filter(|event| event.detail["incident"].is_null());
                left.filter_map(|event| read(plan, &agent.name, event))
            };
            found.pending.extend(of(EventKind::Change));
            found.dropped.extend(of(EventKind::Dropped));
        }
        Ok(found)
    }

    /// Takes a change that was found: it ends an open incident by bringing its level back, joins
    /// one, or waits for others.
    pub(super) fn add_change(
        &mut self,
        store: &mut dyn HubStore,
        plan: &MeshPlan,
        mut found: DetectedChange,
    ) -> Result<(), Failure> {
        let changes = std::mem::take(&mut found.changes);
        let mut touched = BTreeSet::new();
        for (metric, change) in changes {
            let closed = self.undropped(&found, &metric, &change);
            if !closed.is_empty() {
                let both = [&closed[..], &found.events].concat();
                store.mesh_changes_closed(&both)?;
            } else if let Some(at) = self.mark_level_back(&found, &metric, &change) {
                touched.insert(at);
            } else {
                found.changes.push((metric, change));
            }
        }
        if !found.changes.is_empty() {
            match self.open.iter().position(|incident| is_part(plan, incident, &found)) {
                Some(at) => {
                    self.open[at].members.push(found.member());
                    let pairs =
                        self.open[at].members.iter().filter_map(|member| pair_of(plan, member));
                    self.open[at].hit = pairs.collect::<BTreeSet<_>>().len();
                    touched.insert(at);
                }
                None => self.pending.push(found.clone()),
            }
        }
        for at in touched {
            let incident = &self.open[at];
            store.incident_is(&plan.mesh, incident, &found.events, &[], None)?;
        }
        Ok(())
    }

    /// Takes out the dropped change whose level this one brings back, and returns its events;
    /// neither change was real.
    fn undropped(
        &mut self,
        found: &DetectedChange,
        metric: &str,
        change: &LevelChange,
    ) -> Vec<i64> {
        let is_it = |old: &DetectedChange| {
            let same = (&old.from, &old.to, &old.task) == (&found.from, &found.to, &found.task);
            same && old.changes.iter().any(|(moved, was)| {
                moved == metric && is_back(metric, was.before, was.after, change.after)
            })
        };
        let at = self.dropped.iter().position(is_it);
        at.map(|at| self.dropped.remove(at).events).unwrap_or_default()
    }

    /// Marks the level that a change brings back in an open incident; returns the incident's index.
    fn mark_level_back(
        &mut self,
        found: &DetectedChange,
        metric: &str,
        change: &LevelChange,
    ) -> Option<usize> {
        let is_it = |member: &Member| {
            (&member.from, member.to.as_ref(), member.task.as_ref())
                == (&found.from, Some(&found.to), Some(&found.task))
        };
        for (at, incident) in self.open.iter_mut().enumerate() {
            let moved = incident.members.iter_mut().filter(|member| is_it(member));
            for moved in moved.flat_map(|member| &mut member.moved) {
                let back = is_back(metric, moved.before, moved.after, change.after);
                if moved.metric == metric && moved.back_s.is_none() && back {
                    moved.back_s = Some(change.at_s);
                    return Some(at);
                }
            }
        }
        None
    }

    /// Makes incidents of changes that have waited for others, and ends those that are back.
    pub(super) fn group_waiting_changes(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
    ) -> Result<(), Failure> {
        self.further(store, scene)?;
        self.surveyed(store, scene)?;
        self.end_changes(store, scene)?;
        let Some(oldest) = self.pending.iter().min_by_key(|change| change.found_s).cloned() else {
            return Ok(());
        };
        if scene.now_s < oldest.found_s + oldest.join_s() {
            return Ok(());
        }
        let near = |change: &DetectedChange| {
            let apart = (change.since_s() - oldest.since_s()).abs();
            apart <= change.join_s().max(oldest.join_s()) as f64
        };
        if self.pending.iter().any(|change| near(change) && change.further.is_awaited()) {
            return Ok(());
        }
        let (batch, rest): (Vec<_>, Vec<_>) = self.pending.drain(..).partition(near);
        self.pending = rest;
        let hit: BTreeSet<Pair> = batch.iter().map(|change| change.pair).collect();
        let cells = store.newest_cells(&scene.plan.mesh)?;
        let measured = cells.iter().filter(|(_, cell)| cell.good_s.is_some());
        let measured: BTreeSet<Pair> = measured
            .filter_map(|((_, from, to), _)| {
                Some(ordered_pair(scene.plan.agent_index(from)?, scene.plan.agent_index(to)?))
            })
            .collect();
        for Hit { shared, pairs, of } in grouped(scene.plan, &hit, &measured) {
            let mine = || batch.iter().filter(|change| pairs.contains(&change.pair));
            let members: Vec<Member> = mine().map(DetectedChange::member).collect();
            let events: Vec<i64> = mine().flat_map(|change| change.events.clone()).collect();
            let since_s = mine().map(DetectedChange::since_s).fold(f64::INFINITY, f64::min);
            let counts = (pairs.len(), of);
            let mesh = &scene.plan.mesh;
            let shown: Vec<&DetectedChange> =
                mine().filter(|change| change.further == Further::Shown).collect();
            let confirmed = !shown.is_empty();
            let sentence = change_sentence(mesh, Some(&shared), counts, &members, confirmed);
            let survey = match shown.first() {
                Some(found) => scene.survey(store, found)?,
                None => None,
            };
            let incident = incident(IncidentKind::Change, scene, Some(shared), counts);
            let incident = Incident { since_s, members, sentence, confirmed, survey, ..incident };
            if incident.survey.is_some() {
                // Its alert waits for what the survey says.
                store.incident_is(mesh, &incident, &events, &[], None)?;
                self.open.push(incident);
            } else {
                self.open_incident(store, scene, incident, &events, &[], "change")?;
            }
        }
        Ok(())
    }

    fn open_incident(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
        incident: Incident,
        changes: &[i64],
        notes: &[TaskNote],
        kind: &str,
    ) -> Result<(), Failure> {
        let said = incident.sentence.clone();
        record_incident(store, scene, &incident, changes, notes, kind, &said)?;
        self.open.push(incident);
        Ok(())
    }

    /// Closes the incidents of changes all of whose levels are back.
    fn end_changes(&mut self, store: &mut dyn HubStore, scene: &Scene<'_>) -> Result<(), Failure> {
        let is_back = |incident: &Incident| {
            let mut moved = incident.members.iter().flat_map(|member| &member.moved);
            let told = incident.survey.as_ref().is_none_or(|survey| survey.verdict.is_some());
            incident.kind == IncidentKind::Change
                && told
                && moved.all(|moved| moved.back_s.is_some())
        };
        while let Some(at) = self.open.iter().position(is_back) {
            self.close_incident(store, scene, at, "back")?;
        }
        Ok(())
    }

    /// Closes an incident and makes the alert of its end.
    fn close_incident(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
        at: usize,
        kind: &str,
    ) -> Result<(), Failure> {
        let incident = &self.open[at];
        let Incident { shared, hit, of, members, .. } = incident;
        let mesh = &scene.plan.mesh;
        let said = over_sentence(mesh, incident.kind, shared.as_ref(), (*hit, *of), members);
        let ended = Incident { until_s: Some(scene.now_s), ..incident.clone() };
        let notes = if kind == "data" {
            member_notes(scene, &ended, EventKind::Data, &said)
        } else {
            Vec::new()
        };
        record_incident(store, scene, &ended, &[], &notes, kind, &said)?;
        self.open.remove(at);
        Ok(())
    }

    /// Closes incidents of changes after `news_s` seconds, without an alert: the new level is the
    /// usual one by then.
    pub(super) fn close_old_changes(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
        news_s: i64,
    ) -> Result<(), Failure> {
        let old = |incident: &Incident| {
            incident.kind == IncidentKind::Change && scene.now_s - incident.opened_s >= news_s
        };
        while let Some(at) = self.open.iter().position(old) {
            self.ends_quietly(store, scene, at)?;
        }
        Ok(())
    }

    fn ends_quietly(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
        at: usize,
    ) -> Result<(), Failure> {
        let ended = Incident { until_s: Some(scene.now_s), ..self.open[at].clone() };
        store.incident_is(&scene.plan.mesh, &ended, &[], &[], None)?;
        self.open.remove(at);
        Ok(())
    }

    /// Opens and closes incidents of agents and pairs that bring no data.
    pub(super) fn silence(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
        matrix: &Matrix,
    ) -> Result<(), Failure> {
        let dark = find_silent_members(scene.plan, matrix);
        while let Some(at) = self.open.iter().position(|incident| is_light(incident, matrix)) {
            let is_planned = |member: &Member| scene.plan.agent_index(&member.from).is_some();
            if self.open[at].members.iter().any(is_planned) {
                self.close_incident(store, scene, at, "data")?;
            } else {
                // The plan has none of them any more.
                self.ends_quietly(store, scene, at)?;
            }
        }
        self.dark.retain(|key, _| dark.contains_key(key));
        let known: BTreeSet<Dark> = self
            .open
            .iter()
            .filter(|incident| incident.kind == IncidentKind::NoData)
            .flat_map(|incident| incident.members.iter().map(key_of))
            .collect();
        for key in dark.keys().filter(|key| !known.contains(*key)) {
            self.dark.entry(key.clone()).or_insert(scene.now_s);
        }
        self.dark.retain(|key, _| !known.contains(key));
        let held = |key: &Dark, since: &i64| {
            let wait = dark.get(key).map_or(i64::MAX, |darkness| darkness.wait_s);
            scene.now_s - since >= wait
        };
        let (agents, pairs): (Vec<Dark>, Vec<Dark>) =
            self.dark.keys().cloned().partition(|(_, pair)| pair.is_none());
        let ready = |keys: &[Dark]| keys.iter().any(|key| held(key, &self.dark[key]));
        let (agents_ready, pairs_ready) = (ready(&agents), ready(&pairs));
        if agents_ready {
            self.agents_dark(store, scene, &agents, &dark)?;
        }
        if pairs_ready {
            self.pairs_dark(store, scene, &pairs, &dark)?;
        }
        Ok(())
    }

    fn agents_dark(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
        agents: &[Dark],
        dark: &BTreeMap<Dark, Darkness>,
    ) -> Result<(), Failure> {
        let names: BTreeSet<&str> = agents.iter().map(|(name, _)| name.as_str()).collect();
        for (shared, names) in by_place(scene.plan, names) {
            let keys: Vec<Dark> = names.iter().map(|name| ((*name).to_owned(), None)).collect();
            let members: Vec<Member> = keys.iter().map(|key| dark[key].member.clone()).collect();
            let since = keys.iter().map(|key| dark[key].since_s).fold(f64::INFINITY, f64::min);
            let counts = (members.len(), members.len());
            self.no_data(store, scene, shared, counts, members, since)?;
        }
        Ok(())
    }

    fn pairs_dark(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
        pairs: &[Dark],
        dark: &BTreeMap<Dark, Darkness>,
    ) -> Result<(), Failure> {
        let plan = scene.plan;
        let of = |key: &Dark| pair_of(plan, &dark[key].member);
        let mut left: Vec<&Dark> = Vec::new();
        for key in pairs {
            let joins = |incident: &&mut Incident| {
                let shared = incident.shared.as_ref();
                let crosses =
                    shared.zip(of(key)).is_some_and(|(shared, pair)| crosses(plan, shared, pair));
                incident.kind == IncidentKind::NoData && incident.members[0].to.is_some() && crosses
            };
            match self.open.iter_mut().find(joins) {
                Some(incident) => {
                    incident.members.push(dark[key].member.clone());
                    store.incident_is(&plan.mesh, incident, &[], &[], None)?;
                }
                None => left.push(key),
            }
        }
        let hit: BTreeSet<Pair> = left.iter().filter_map(|key| of(key)).collect();
        let measured =
            scene.calendar.iter_runs().map(|run| ordered_pair(run.from, run.to)).collect();
        for Hit { shared, pairs, of: all } in grouped(plan, &hit, &measured) {
            let mine = left.iter().filter(|key| of(key).is_some_and(|pair| pairs.contains(&pair)));
            let mine: Vec<&Darkness> = mine.map(|key| &dark[*key]).collect();
            let members: Vec<Member> =
                mine.iter().map(|darkness| darkness.member.clone()).collect();
            let since = mine.iter().map(|darkness| darkness.since_s).fold(f64::INFINITY, f64::min);
            let counts = (pairs.len(), all);
            self.no_data(store, scene, Some(shared), counts, members, since)?;
        }
        Ok(())
    }

    fn no_data(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
        shared: Option<SharedElement>,
        counts: (usize, usize),
        members: Vec<Member>,
        since_s: f64,
    ) -> Result<(), Failure> {
        let mesh = &scene.plan.mesh;
        let sentence = no_data_sentence(mesh, shared.as_ref(), counts, &members, since_s);
        let incident = incident(IncidentKind::NoData, scene, shared, counts);
        let incident = Incident { since_s, members, sentence, ..incident };
        let notes = member_notes(scene, &incident, EventKind::NoData, &incident.sentence);
        self.open_incident(store, scene, incident, &[], &notes, "no_data")
    }
}

/// A figure's value on the scale on which its changes are looked for, where its logarithm has a
/// meaning.
pub(super) fn watched(metric: &str, value: f64) -> f64 {
    Followed::from_key(metric).map_or(value, |figure| figure.watched(value))
}

/// True where the value `now` has come back most of the way from the level `after` to the level
/// `before`.
fn is_back(metric: &str, before: f64, after: f64, now: f64) -> bool {
    let level = |value: f64| watched(metric, value).ln();
    let way = level(after) - level(before);
    (level(after) - level(now)) / way >= BACK
}

/// A new incident without members. `counts` are the pairs or agents that show it, and all that
/// cross the shared place.
fn incident(
    kind: IncidentKind,
    scene: &Scene<'_>,
    shared: Option<SharedElement>,
    counts: (usize, usize),
) -> Incident {
    let (hit, of) = counts;
    Incident {
        id: record_id().to_string(),
        kind,
        opened_s: scene.now_s,
        since_s: 0.0,
        until_s: None,
        shared,
        hit,
        of,
        members: Vec::new(),
        confirmed: false,
        survey: None,
        sentence: String::new(),
    }
}

/// Events to be stored for the pairs of an incident, one for each task and peer.
fn member_notes(
    scene: &Scene<'_>,
    incident: &Incident,
    kind: EventKind,
    said: &str,
) -> Vec<TaskNote> {
    let note = |member: &Member| {
        let (to, task) = member.to.as_ref().zip(member.task.as_ref())?;
        Some(TaskNote {
            plan: format!("{}/{}", scene.plan.mesh, member.from),
            task: format!("{task}/{to}"),
            at_s: scene.now_s,
            kind,
            detail: serde_json::json!({ "sentence": said, "incident": incident.id }),
        })
    };
    incident.members.iter().filter_map(note).collect()
}

/// Stores an incident, with its alert where the rules name an output.
pub(super) fn record_incident(
    store: &mut dyn HubStore,
    scene: &Scene<'_>,
    incident: &Incident,
    changes: &[i64],
    notes: &[TaskNote],
    kind: &str,
    said: &str,
) -> Result<(), Failure> {
    tracing::warn!("{said}");
    let id = record_id().to_string();
    let at = WallTime::from_unix_nanos(u128::try_from(scene.now_s).unwrap_or(0) * 1_000_000_000);
    let json = serde_json::json!({
        "id": id,
        "mesh": scene.plan.mesh,
        "kind": kind,
        "at": at.to_string(),
        "sentence": said,
        "incident": incident,
    });
    let (sentence, json) = (said.to_owned(), json.to_string());
    let alert = NewAlert { id, at_s: scene.now_s, sentence, json };
    let alert = (!scene.outputs.is_empty()).then_some(OutgoingAlert {
        owner: scene.owner,
        alert: &alert,
        outputs: scene.outputs,
    });
    store.incident_is(&scene.plan.mesh, incident, changes, notes, alert)
}

/// True for a change at the time of an open incident, on a path that crosses its shared place.
fn is_part(plan: &MeshPlan, incident: &Incident, found: &DetectedChange) -> bool {
    let near = (found.since_s() - incident.since_s).abs() <= found.join_s() as f64;
    let shared = incident.shared.as_ref();
    let crosses = shared.is_some_and(|shared| crosses(plan, shared, found.pair));
    incident.kind == IncidentKind::Change && near && crosses
}
