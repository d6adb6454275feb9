//! Incidents of a mesh: what changed together, what brings no data together, and when it is over.
//!
//! A change waits for one period of its task, in which each other pair of the task has a run, and
//! is then said with what changed beside it; what comes later joins it without another alert.
//! Silence waits as long, after it has lasted for [`HOLD_S`]: results of an agent that was cut off
//! come one after another.

use std::collections::{BTreeMap, BTreeSet};

use linerate_core::mesh::{
    Cell, Hit, Incident, IncidentKind, Matrix, Member, MeshCalendar, MeshPlan, Pair, Rules,
    SILENT_S, SharedElement, SharedKind, crosses, grouped, ordered_pair,
};
use linerate_core::record::Failure;
use linerate_core::schedule::{EventKind, Followed, LevelChange};
use linerate_core::time::WallTime;
use linerate_report::mesh::{change_sentence, no_data_sentence, over_sentence};
use linerate_store::{HubStore, NewAlert, TaskNote};
use linerate_sys::clock::record_id;

use super::found::{DetectedChange, Further, JOIN_S_MAX, read};

/// Silence that is shorter is none: an agent asks a hub that is back after a minute at the latest.
const HOLD_S: i64 = 90;
/// Silence of pairs whose agent has results on the way is none before so long.
const DELIVERS_S: i64 = 900;
/// A level is back when it has come so much of the way.
const BACK: f64 = 0.75;
/// Changes before this many seconds ago that are part of nothing are old.
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

/// Something that brings no data: an agent, or a task from one agent to another.
type Dark = (String, Option<(String, String)>);

/// Open incidents of a mesh, and changes that may become incidents.
#[derive(Debug)]
pub(super) struct Incidents {
    pub(super) open: Vec<Incident>,
    pub(super) pending: Vec<DetectedChange>,
    /// Changes that further runs did not show, until their levels are back.
    pub(super) dropped: Vec<DetectedChange>,
    /// Since when each is dark.
    dark: BTreeMap<Dark, i64>,
}

fn pair_of(plan: &MeshPlan, member: &Member) -> Option<Pair> {
    Some(ordered_pair(plan.agent_index(&member.from)?, plan.agent_index(member.to.as_deref()?)?))
}

impl Incidents {
    /// As the store knows them: open ones, and changes that are part of none yet.
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

    /// A change was found: it is the way back of one that is open, part of one, or waits.
    pub(super) fn add_change(
        &mut self,
        store: &mut dyn HubStore,
        plan: &MeshPlan,
        mut found: DetectedChange,
    ) -> Result<(), Failure> {
        let changes = std::mem::take(&mut found.changes);
        let mut touched = BTreeSet::new();
        for change in changes {
            let closed = self.undropped(&found, &change);
            if !closed.is_empty() {
                let both = [&closed[..], &found.events].concat();
                store.mesh_changes_closed(&both)?;
            } else if let Some(at) = self.mark_level_back(&found, &change) {
                touched.insert(at);
            } else {
                found.changes.push(change);
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
            store.incident_is(&plan.mesh, incident, (&found.events, &[]), None)?;
        }
        Ok(())
    }

    /// The events of a change that was dropped and whose level this one brings back: neither was
    /// anything.
    fn undropped(
        &mut self,
        found: &DetectedChange,
        (metric, change): &(String, LevelChange),
    ) -> Vec<i64> {
        let is_it = |old: &DetectedChange| {
            let same = (&old.from, &old.to, &old.task) == (&found.from, &found.to, &found.task);
            same && old.changes.iter().any(|(moved, was)| {
                moved == metric && is_back(metric, (was.before, was.after), change.after)
            })
        };
        let at = self.dropped.iter().position(is_it);
        at.map(|at| self.dropped.remove(at).events).unwrap_or_default()
    }

    /// The open incident whose level a change brings back.
    fn mark_level_back(
        &mut self,
        found: &DetectedChange,
        (metric, change): &(String, LevelChange),
    ) -> Option<usize> {
        let is_it = |member: &Member| {
            (&member.from, member.to.as_ref(), member.task.as_ref())
                == (&found.from, Some(&found.to), Some(&found.task))
        };
        for (at, incident) in self.open.iter_mut().enumerate() {
            let moved = incident.members.iter_mut().filter(|member| is_it(member));
            for moved in moved.flat_map(|member| &mut member.moved) {
                let back = is_back(metric, (moved.before, moved.after), change.after);
                if moved.metric == *metric && moved.back_s.is_none() && back {
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
                store.incident_is(mesh, &incident, (&events, &[]), None)?;
                self.open.push(incident);
            } else {
                self.open_incident(store, scene, incident, (&events, &[]), "change")?;
            }
        }
        Ok(())
    }

    fn open_incident(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
        incident: Incident,
        with: (&[i64], &[TaskNote]),
        kind: &str,
    ) -> Result<(), Failure> {
        let said = incident.sentence.clone();
        record_incident(store, scene, &incident, with, (kind, &said))?;
        self.open.push(incident);
        Ok(())
    }

    /// Changes all of whose levels are back.
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

    /// An incident is over, and that is told.
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
        record_incident(store, scene, &ended, (&[], &notes), (kind, &said))?;
        self.open.remove(at);
        Ok(())
    }

    /// Changes that are no more news: what they brought is how it is.
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
        store.incident_is(&scene.plan.mesh, &ended, (&[], &[]), None)?;
        self.open.remove(at);
        Ok(())
    }

    /// Looks at what brings no data.
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
            self.no_data(store, scene, (shared, counts), (members, since))?;
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
                    store.incident_is(&plan.mesh, incident, (&[], &[]), None)?;
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
            self.no_data(store, scene, (Some(shared), counts), (members, since))?;
        }
        Ok(())
    }

    fn no_data(
        &mut self,
        store: &mut dyn HubStore,
        scene: &Scene<'_>,
        (shared, counts): (Option<SharedElement>, (usize, usize)),
        (members, since_s): (Vec<Member>, f64),
    ) -> Result<(), Failure> {
        let mesh = &scene.plan.mesh;
        let sentence = no_data_sentence(mesh, shared.as_ref(), counts, &members, since_s);
        let incident = incident(IncidentKind::NoData, scene, shared, counts);
        let incident = Incident { since_s, members, sentence, ..incident };
        let notes = member_notes(scene, &incident, EventKind::NoData, &incident.sentence);
        self.open_incident(store, scene, incident, (&[], &notes), "no_data")
    }
}

/// A value of a figure where its logarithm means something.
pub(super) fn watched(metric: &str, value: f64) -> f64 {
    Followed::from_key(metric).map_or(value, |figure| figure.watched(value))
}

/// True where a value has come back most of the way from one level to another.
fn is_back(metric: &str, (before, after): (f64, f64), now: f64) -> bool {
    let level = |value: f64| watched(metric, value).ln();
    let way = level(after) - level(before);
    (level(after) - level(now)) / way >= BACK
}

/// One that has no members yet.
fn incident(
    kind: IncidentKind,
    scene: &Scene<'_>,
    shared: Option<SharedElement>,
    (hit, of): (usize, usize),
) -> Incident {
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

/// A pair that brings no data, or an agent.
#[derive(Clone, Debug)]
struct Darkness {
    member: Member,
    since_s: f64,
    /// Seconds that the silence has to last before it is an incident.
    wait_s: i64,
}

/// Agents that are silent after they were heard once, and pairs without data whose agents both
/// are heard.
fn find_silent_members(plan: &MeshPlan, matrix: &Matrix) -> BTreeMap<Dark, Darkness> {
    let silent = |at: usize| matrix.agents[at].heard_s_ago.is_some_and(|ago| ago > SILENT_S);
    let mut found = BTreeMap::new();
    for (at, row) in matrix.agents.iter().enumerate().filter(|(at, _)| silent(*at)) {
        let since_s = (matrix.now_s - matrix.agents[at].heard_s_ago.unwrap_or(0)) as f64;
        let member = Member { from: row.name.clone(), ..Member::default() };
        let darkness = Darkness { member, since_s, wait_s: HOLD_S };
        found.insert((row.name.clone(), None), darkness);
    }
    let unexplained = matrix.cells.iter().filter(|cell| {
        let heard = matrix.agents[cell.from].heard_s_ago.is_some();
        cell.no_data && heard && !silent(cell.from) && !silent(cell.to)
    });
    for cell in unexplained {
        let (from, to) = (&matrix.agents[cell.from], &matrix.agents[cell.to]);
        let task = matrix.tasks[cell.task].clone();
        let period = plan.tasks[cell.task].every.seconds();
        let period = i64::try_from(period).unwrap_or(JOIN_S_MAX).min(JOIN_S_MAX);
        let delivers = from.waiting.is_some_and(|waiting| waiting > 0);
        let wait_s = HOLD_S + if delivers { period.max(DELIVERS_S) } else { period };
        let member = Member {
            from: from.name.clone(),
            to: Some(to.name.clone()),
            task: Some(task),
            reason: cell.reason.clone(),
            ..Member::default()
        };
        let since_s = (matrix.now_s - cell.age_s.unwrap_or(0)) as f64;
        found.insert(key_of(&member), Darkness { member, since_s, wait_s });
    }
    found
}

fn key_of(member: &Member) -> Dark {
    (member.from.clone(), member.to.clone().zip(member.task.clone()))
}

/// True where each agent and pair of an incident has data again, or is no longer in the plan.
fn is_light(incident: &Incident, matrix: &Matrix) -> bool {
    let place = |name: &str| matrix.agents.iter().position(|agent| agent.name == name);
    let is_dark = |member: &Member| {
        let Some(from) = place(&member.from) else { return false };
        let Some((to, task)) = member.to.as_deref().zip(member.task.as_ref()) else {
            return matrix.agents[from].heard_s_ago.is_none_or(|ago| ago > SILENT_S);
        };
        let task = matrix.tasks.iter().position(|known| known == task);
        let is_it =
            |cell: &&Cell| (Some(cell.task), cell.from, Some(cell.to)) == (task, from, place(to));
        matrix.cells.iter().find(is_it).is_some_and(|cell| cell.no_data)
    };
    incident.kind == IncidentKind::NoData && !incident.members.iter().any(is_dark)
}

/// Parts agents by the site or uplink all of whose agents they are; the others stand alone.
fn by_place<'a>(
    plan: &MeshPlan,
    mut names: BTreeSet<&'a str>,
) -> Vec<(Option<SharedElement>, Vec<&'a str>)> {
    let mut parts = Vec::new();
    let sites =
        plan.agents.iter().filter_map(|agent| Some((SharedKind::Site, agent.site.as_ref()?)));
    let uplinks =
        plan.agents.iter().filter_map(|agent| Some((SharedKind::Uplink, agent.uplink.as_ref()?)));
    for (kind, name) in sites.chain(uplinks).collect::<BTreeSet<_>>() {
        let of = |agent: &&linerate_core::mesh::Agent| {
            let place = if kind == SharedKind::Site { &agent.site } else { &agent.uplink };
            place.as_ref() == Some(name)
        };
        let all: Vec<&str> =
            plan.agents.iter().filter(of).map(|agent| agent.name.as_str()).collect();
        if all.len() >= 2 && all.iter().all(|name| names.contains(name)) {
            let mine: Vec<&str> = names.iter().copied().filter(|name| all.contains(name)).collect();
            names.retain(|name| !all.contains(name));
            parts.push((Some(SharedElement { kind, name: name.clone() }), mine));
        }
    }
    parts.extend(names.into_iter().map(|name| (None, vec![name])));
    parts
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

/// Keeps an incident, with its alert where somebody is to hear of it.
pub(super) fn record_incident(
    store: &mut dyn HubStore,
    scene: &Scene<'_>,
    incident: &Incident,
    with: (&[i64], &[TaskNote]),
    (kind, said): (&str, &str),
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
    let alert = (!scene.outputs.is_empty()).then_some((scene.owner, &alert, scene.outputs));
    store.incident_is(&scene.plan.mesh, incident, with, alert)
}

/// True for a change at the time of an open incident, on a path that crosses its shared place.
fn is_part(plan: &MeshPlan, incident: &Incident, found: &DetectedChange) -> bool {
    let near = (found.since_s() - incident.since_s).abs() <= found.join_s() as f64;
    let shared = incident.shared.as_ref();
    let crosses = shared.is_some_and(|shared| crosses(plan, shared, found.pair));
    incident.kind == IncidentKind::Change && near && crosses
}
