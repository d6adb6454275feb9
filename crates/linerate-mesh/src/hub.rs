//! The hub: what it does with what agents say. HTTP is `web/mesh`'s, tables are the store's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use linerate_core::mesh::{
    Beat, BeatAnswer, Enrol, Enrolled, Matrix, MeshPlan, Rules, RunOutcome, RunResults, SET_BACK,
    SignedPlan, Stored, matrix,
};
use linerate_core::record::{Failure, Fault, Record, RecordId};
use linerate_core::time::MonoTime;
use linerate_store::{
    AgentRun, HubPlace, HubStore, Joined, OutcomeCount, ScheduleEvent, SeriesValue, Sketched,
    SpreadQuery,
};
use linerate_sys::clock::{monotonic, realtime_ns};

use super::beats::{Beats, ReceivedBeat};
use super::clock::now_s;
use super::pack::packed;
use super::plan::{Checked, parse_plan_text, read_rules_file, signed, to_kept_plan};
use super::refused::HubRefusal;
use super::results::{Plans, read_all};
use super::{digest, hex};
use crate::schedule::NEWS_S;

/// Characters of the name of an agent's program.
const INSTANCE_MAX: usize = 100;
const NOBODY: &str = "no agent of this mesh has that secret";
/// Time for which the agents' secrets are cached. A join at this hub is seen at once.
const LOGINS_FOR: Duration = Duration::from_secs(10);
/// Most earlier plans of which results are still taken.
const EARLIER_MAX: usize = 20;
/// Time for which a matrix is shown before it is made anew.
const SHOWN_FOR: Duration = Duration::from_secs(1);

/// A plan that is served.
#[derive(Debug)]
pub(super) struct Served {
    signed: SignedPlan,
    json: String,
    /// The same in gzip's format, a tenth of it: ten thousand agents may ask at once.
    packed: Vec<u8>,
    pub(super) checked: Checked,
    since_s: i64,
    earlier: OnceLock<Arc<Vec<MeshPlan>>>,
}

/// Cached digests of the agents' secrets, by which a request is known to be an agent's.
#[derive(Debug, Default)]
struct Logins {
    known: BTreeMap<String, String>,
    until: Option<MonoTime>,
}

/// Hub of a mesh: hands out the signed plan, and takes the agents' beats and results.
#[derive(Debug)]
pub struct Hub {
    file: PathBuf,
    place: HubPlace,
    served: RwLock<Arc<Served>>,
    beats: Beats,
    logins: Mutex<Logins>,
    /// Joins are kept one after another: of hundreds that wait for the file itself some give up.
    joining: Mutex<()>,
    shown: Mutex<Option<(MonoTime, Arc<str>)>>,
    rules_file: Option<PathBuf>,
    rules: RwLock<Arc<Rules>>,
    /// Agents and tasks whose series have something new.
    arrived: Mutex<BTreeSet<(String, String)>>,
}

/// Login of an agent whose messages are signed by a key: the digest that the store keeps.
#[cfg(feature = "scale")]
fn login_of(key: &str) -> String {
    format!("ed25519 {key}")
}

/// The owner of a mesh's alerts in the outbox.
pub(super) fn alert_owner(mesh: &str) -> String {
    format!("mesh:{mesh}")
}

impl Hub {
    /// The hub of a plan's file, with the signature beside it, on a store; perhaps with rules.
    /// # Errors
    /// When the plan cannot be read or run, is not signed, or the store had a newer one or one of
    /// the same revision that differs; when the rules cannot be read.
    pub fn from_plan_file(
        file: &Path,
        rules_file: Option<&Path>,
        place: &HubPlace,
    ) -> Result<Self, Failure> {
        let known = rules_file.map(read_rules_file).transpose()?.unwrap_or_default();
        let served = RwLock::new(Arc::new(load_served_plan(file, place)?));
        Ok(Self {
            file: file.to_owned(),
            place: place.clone(),
            served,
            beats: Beats::default(),
            logins: Mutex::default(),
            joining: Mutex::default(),
            shown: Mutex::default(),
            rules_file: rules_file.map(Path::to_owned),
            rules: RwLock::new(Arc::new(known)),
            arrived: Mutex::default(),
        })
    }

    /// Opens the store in which the hub keeps plans, agents and results.
    pub(super) fn open_store(&self) -> Result<Box<dyn HubStore>, Failure> {
        self.place.open_store()
    }

    /// True where its store is a database; lists of results are read from files alone.
    pub const fn has_database(&self) -> bool {
        self.place.is_database()
    }

    /// True where the schedule is one of the hub's agents and the hub's store is a database.
    pub fn has_series(&self, schedule: &str) -> bool {
        let mesh = self.plan_summary().0;
        self.has_database() && schedule.split_once('/').is_some_and(|(of, _)| of == mesh)
    }

    /// The newest values of a task of a schedule (`MESH/AGENT`) since a time, and the schedule's
    /// events.
    pub fn series(
        &self,
        schedule: &str,
        task: &str,
        since_s: i64,
        runs: usize,
    ) -> Result<(Vec<SeriesValue>, Vec<ScheduleEvent>), HubRefusal> {
        let mut store = self.open_store()?;
        #[allow(clippy::cast_precision_loss, reason = "seconds since 1970")]
        let after_s = since_s.saturating_sub(1) as f64;
        let values = store.task_series(schedule, task, after_s, f64::MAX, runs)?;
        Ok((values, store.mesh_events(schedule, since_s)?))
    }

    /// Sketches of a task of a schedule (`MESH/AGENT`): see [`HubStore::spreads`] and
    /// [`SpreadQuery`].
    pub fn spreads(
        &self,
        schedule: &str,
        task: &str,
        merge: bool,
        step_s: i64,
        since_s: i64,
    ) -> Result<Vec<Sketched>, HubRefusal> {
        let (mesh, agent) = schedule.split_once('/').unwrap_or((schedule, ""));
        let query = SpreadQuery { mesh, agent, task, merge, step_s, since_s };
        self.open_store()?.spreads(query).map_err(|failure| {
            match failure.fault {
                // Too much was asked for.
                Fault::Usage => HubRefusal::Bad(failure.to_string()),
                _ => failure.into(),
            }
        })
    }

    /// A record by its identifier.
    pub fn record_named(&self, id: RecordId) -> Result<Option<Record>, HubRefusal> {
        Ok(self.open_store()?.record_named(id)?)
    }

    pub(super) fn current_rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Marks the series of a task of an agent as having new values.
    pub(super) fn mark_new_values(&self, agent: &str, task: &str) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.insert((agent.to_owned(), task.to_owned()));
    }

    /// Marks every series of the plan as possibly having new values, for a watch that begins anew.
    pub(super) fn look_at_all(&self) {
        let served = self.served();
        let Checked { plan, calendar } = &served.checked;
        for run in calendar.iter_runs() {
            let task = format!("{}/{}", plan.tasks[run.task].name, plan.agents[run.to].name);
            self.mark_new_values(&plan.agents[run.from].name, &task);
        }
    }

    /// Takes the agents and tasks whose series have new values since the last call.
    pub(super) fn arrived(&self) -> BTreeSet<(String, String)> {
        std::mem::take(&mut self.arrived.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the files of plan and rules again.
    /// # Errors
    /// As [`Hub::from_plan_file`]; the plan and the rules before stay in force.
    pub fn reload(&self) -> Result<u64, Failure> {
        if let Some(file) = &self.rules_file {
            let new = read_rules_file(file)?;
            *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        }
        let new = load_served_plan(&self.file, &self.place)?;
        let revision = new.checked.plan.revision;
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        // They may be of another mesh.
        self.logins.lock().unwrap_or_else(PoisonError::into_inner).until = None;
        Ok(revision)
    }

    /// Mesh, revision and number of agents of the plan.
    pub fn plan_summary(&self) -> (String, u64, usize) {
        let served = self.served();
        let plan = &served.checked.plan;
        (plan.mesh.clone(), plan.revision, plan.agents.len())
    }

    pub(super) fn served(&self) -> Arc<Served> {
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The agent with a secret.
    /// # Errors
    /// When no agent of this mesh has it.
    pub fn agent_of(&self, secret: &str) -> Result<String, HubRefusal> {
        // What is no secret may be the login of a key, which is known to others.
        if hex::decode_array::<32>(secret).is_none() {
            return Err(HubRefusal::Unknown(NOBODY.to_owned()));
        }
        self.agent_as(secret)
    }

    /// The agent whose messages a key signs.
    #[cfg(feature = "scale")]
    pub(super) fn agent_with_key(&self, key: &str) -> Result<String, HubRefusal> {
        self.agent_as(&login_of(key))
    }

    fn agent_as(&self, login: &str) -> Result<String, HubRefusal> {
        let (login, mesh) = (digest(login), self.plan_summary().0);
        if let Some(agent) = self.known_as(&login, &mesh)? {
            return Ok(agent);
        }
        // One that has joined by another hub of the same database meanwhile, or nobody: no agent
        // waits until that is looked up.
        let found = self.open_store()?.agent_of(&login)?;
        let unknown = || HubRefusal::Unknown(NOBODY.to_owned());
        found.filter(|(of, _)| *of == mesh).map(|(_, agent)| agent).ok_or_else(unknown)
    }

    /// The agent of a login, as the store had it some seconds ago at the most.
    fn known_as(&self, login: &str, mesh: &str) -> Result<Option<String>, Failure> {
        let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
        let now = monotonic();
        if logins.until.is_none_or(|until| now >= until) {
            logins.known = self.open_store()?.logins(mesh)?;
            logins.until = Some(now + LOGINS_FOR);
        }
        Ok(logins.known.get(login).cloned())
    }

    /// An agent joins, by a secret of its own.
    /// # Errors
    /// When its token is not known here, over, or used by another.
    pub fn enrol_agent(&self, asked: &Enrol) -> Result<Enrolled, HubRefusal> {
        self.enrol_as(asked, &asked.secret)
    }

    /// An agent joins whose messages a key signs: it is in the secret's place.
    #[cfg(feature = "scale")]
    pub(super) fn enrol_key(&self, asked: &Enrol) -> Result<Enrolled, HubRefusal> {
        self.enrol_as(asked, &login_of(&asked.secret))
    }

    fn enrol_as(&self, asked: &Enrol, login: &str) -> Result<Enrolled, HubRefusal> {
        if hex::decode_array::<32>(&asked.secret).is_none() {
            return Err(HubRefusal::Bad("secret: 64 hexadecimal digits".to_owned()));
        }
        let _one = self.joining.lock().unwrap_or_else(PoisonError::into_inner);
        let joined =
            self.open_store()?.join_by_token(&digest(&asked.token), &digest(login), now_s())?;
        match joined {
            Joined::As(mesh, agent) if mesh == self.plan_summary().0 => {
                let mut logins = self.logins.lock().unwrap_or_else(PoisonError::into_inner);
                // The secret that the agent had before is nobody's now.
                logins.known.retain(|_, of| *of != agent);
                logins.known.insert(digest(login), agent.clone());
                Ok(Enrolled { mesh, agent })
            }
            Joined::As(..) | Joined::Unknown => Err(HubRefusal::Unknown(
                "the token is not known here or its time is over: linerate mesh token makes one"
                    .to_owned(),
            )),
            Joined::Used => Err(HubRefusal::Unknown(
                "the token was used by another agent: linerate mesh token makes one".to_owned(),
            )),
        }
    }

    /// The plan as it was signed.
    pub fn signed_plan(&self) -> SignedPlan {
        self.served().signed.clone()
    }

    /// The same as JSON, which is made once: a thousand agents may ask at once.
    pub fn plan_json(&self) -> String {
        self.served().json.clone()
    }

    /// The same in gzip's format.
    pub fn plan_packed(&self) -> Vec<u8> {
        self.served().packed.clone()
    }

    /// An agent is there.
    /// # Errors
    /// When the beat makes no sense, or the store cannot be read or written.
    pub fn answer_beat(&self, agent: &str, beat: &Beat) -> Result<BeatAnswer, HubRefusal> {
        let heard = Self::check_beat(agent.to_owned(), beat.clone(), realtime_ns())?;
        let (mesh, revision, _) = self.plan_summary();
        Ok(self.beats.answer(heard, &mesh, revision, || self.open_store())?)
    }

    /// A beat that makes sense, and when it came, nanoseconds since 1970-01-01 UTC.
    pub(super) fn check_beat(
        agent: String,
        beat: Beat,
        at_ns: u64,
    ) -> Result<ReceivedBeat, HubRefusal> {
        if beat.instance.len() > INSTANCE_MAX || beat.instance.contains(char::is_control) {
            return Err(HubRefusal::Bad("instance: some hexadecimal digits".to_owned()));
        }
        Ok(ReceivedBeat { agent, beat, at_ns })
    }

    /// Agents are there.
    /// # Errors
    /// When the store cannot be read or written.
    #[cfg(feature = "scale")]
    pub(super) fn answer_beats(&self, all: &[ReceivedBeat]) -> Result<Vec<BeatAnswer>, Failure> {
        let (mesh, revision, _) = self.plan_summary();
        self.beats.answers(all, &mesh, revision, || self.open_store())
    }

    /// Keeps runs of an agent; what was said to be stored survives a crash.
    /// # Errors
    /// When one of them makes no sense, or the store cannot be written; those before it are kept.
    pub fn store_runs(&self, agent: &str, runs: &RunResults) -> Result<Stored, HubRefusal> {
        let done = self.take_all(&[(agent.to_owned(), runs.clone())])?;
        done.into_iter().next().unwrap_or(Ok(Stored { stored: 0, known: 0, runs: None }))
    }

    /// Plans before the one that is served, of which agents may still have results.
    fn earlier(&self, served: &Served) -> Arc<Vec<MeshPlan>> {
        let read = || {
            let kept =
                self.open_store().and_then(|mut store| store.list_plans(&served.checked.plan.mesh));
            let texts = kept.unwrap_or_default().into_iter().take(EARLIER_MAX);
            Arc::new(texts.filter_map(|plan| MeshPlan::from_toml(&plan.text).ok()).collect())
        };
        Arc::clone(served.earlier.get_or_init(read))
    }

    /// Keeps messages of several agents at once, and answers each as [`Hub::store_runs`] does.
    /// # Errors
    /// When the store cannot be written: it may have some of them, and has them all after a next
    /// time.
    pub fn take_all(
        &self,
        messages: &[(String, RunResults)],
    ) -> Result<Vec<Result<Stored, HubRefusal>>, Failure> {
        let served = self.served();
        let mesh = served.checked.plan.mesh.clone();
        let plans = Plans { newest: &served.checked.plan, earlier: &|| self.earlier(&served) };
        let mut given = Vec::new();
        let mut read = Vec::with_capacity(messages.len());
        for (agent, runs) in messages {
            let before = given.len();
            let end = read_all(&plans, agent, runs, &mut given);
            read.push((given.len() - before, end));
        }
        let mut store = self.open_store()?;
        let new = store.keep_runs(&mesh, &given)?;
        for (given, _) in
            given.iter().zip(&new).filter(|(given, new)| **new && given.record.is_some())
        {
            self.mark_new_values(&given.agent, &given.run.task);
        }
        let agents: BTreeSet<&str> = messages.iter().map(|(agent, _)| agent.as_str()).collect();
        let all = store.runs_of(&mesh, &agents)?;
        tell_set_back(&given, &new);
        let mut new = new.into_iter();
        let answers = read.into_iter().zip(messages).map(|((count, end), (agent, _))| {
            let known = new.by_ref().take(count).filter(|new| !new).count();
            end.map(|()| Stored { stored: count, known, runs: all.get(agent).copied() })
        });
        Ok(answers.collect())
    }

    /// The matrix of the mesh as JSON, at most a second old, so that many readers cost as much as
    /// one.
    /// # Errors
    /// When the store cannot be read.
    pub fn matrix_json(&self) -> Result<Arc<str>, Failure> {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((until, json)) = shown.as_ref()
            && monotonic() < *until
        {
            return Ok(Arc::clone(json));
        }
        let json: Arc<str> = document_json(&self.matrix()?)?.into();
        *shown = Some((monotonic() + SHOWN_FOR, Arc::clone(&json)));
        Ok(json)
    }

    /// The matrix of the mesh: the newest result of each task and pair.
    /// # Errors
    /// When the store cannot be read.
    pub fn matrix(&self) -> Result<Matrix, Failure> {
        self.matrix_at(now_s())
    }

    pub(super) fn matrix_at(&self, now_s: i64) -> Result<Matrix, Failure> {
        let served = self.served();
        let Checked { plan, calendar } = &served.checked;
        let mut store = self.open_store()?;
        let (agents, cells) = (store.agents(&plan.mesh)?, store.newest_cells(&plan.mesh)?);
        let found = matrix(plan, calendar, &agents, &cells, served.since_s, now_s);
        let found = found.with_bookings(store.bookings(&plan.mesh, now_s - NEWS_S)?);
        Ok(found.with_incidents(store.incidents(&plan.mesh, now_s - NEWS_S)?))
    }
}

impl Hub {
    /// Its runs by agent and by how they ended, and how many alerts of two days an output has not
    /// got.
    /// # Errors
    /// When the store cannot be read.
    pub fn counts(&self) -> Result<(Vec<OutcomeCount>, usize), Failure> {
        let (mesh, mut store) = (self.plan_summary().0, self.open_store()?);
        let waiting = store.alerts_waiting(&alert_owner(&mesh), now_s() - 2 * NEWS_S)?.len();
        Ok((store.outcomes(&mesh)?, waiting))
    }
}

fn document_json<T: serde::Serialize>(document: &T) -> Result<String, Failure> {
    let failed = |error: linerate_core::tree::Error| {
        Failure::new(Fault::System, "write", "a document", error.to_string())
    };
    linerate_core::tree::to_json(document).map_err(failed)
}

/// Reads a plan and keeps it as the newest.
fn load_served_plan(file: &Path, place: &HubPlace) -> Result<Served, Failure> {
    let signed = signed(file)?;
    let checked = parse_plan_text(&signed.text, &file.display().to_string())?;
    let plan = &checked.plan;
    let mut store = place.open_store()?;
    let refused = |reason: String| {
        Failure::new(Fault::Usage, "serve plan", file.display().to_string(), reason)
            .advise("give it a greater revision, and sign it")
    };
    let newest = store.list_plans(&plan.mesh)?.into_iter().next();
    match &newest {
        Some(newest) if newest.revision > plan.revision => {
            let reason = format!("revision {}; agents have {}", plan.revision, newest.revision);
            return Err(refused(reason));
        }
        Some(newest) if newest.revision == plan.revision && newest.text != signed.text => {
            let reason = format!("another plan was revision {} before", plan.revision);
            return Err(refused(reason));
        }
        _ => {}
    }
    store.keep_plan(&plan.mesh, &to_kept_plan(&signed, plan, now_s()))?;
    let since_s = store.list_plans(&plan.mesh)?.first().map_or_else(now_s, |kept| kept.kept_s);
    let json = document_json(&signed)?;
    let packed = packed(json.as_bytes());
    Ok(Served { signed, json, packed, checked, since_s, earlier: OnceLock::new() })
}

/// Names runs that the store had and has no more, as their agents say.
fn tell_set_back(given: &[AgentRun], new: &[bool]) {
    let lost = given.iter().zip(new).filter(|(given, new)| {
        **new
            && RunOutcome::from_end(given.run.state, given.run.reason.as_deref())
                == RunOutcome::SetBack
    });
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    lost.for_each(|(given, _)| *counts.entry(&given.agent).or_default() += 1);
    for (agent, count) in counts {
        tracing::warn!("{SET_BACK}: {count} runs of agent {agent} that it had are gaps now");
    }
}
