//! The hub: what it does with what agents say. HTTP is `web/mesh`'s, tables are the store's.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use linerate_core::mesh::{
    Beat, BeatAnswer, Enrol, Enrolled, Matrix, RESULTS_AT_ONCE, Rules, RunResult, RunResults,
    SignedPlan, Standing, Stored, judge, matrix,
};
use linerate_core::record::{Failure, Fault, Record};
use linerate_core::schedule::followed;
use linerate_sys::clock::realtime_ns;

use super::plan::{Checked, check, kept, rules, signed};
use super::{digest, hex};
use crate::schedule::NEWS_S;
use crate::store::{BOOKED, Joined, Outcomes, SlotRun, Store, TAG_PLAN, TAG_SLOT};

/// Characters of a task's name and of a reason that are kept.
const NAME_MAX: usize = 100;
const REASON_MAX: usize = 1000;
/// An agent is told of bookings for so long after their begin, seconds: one that was away says then
/// that it did not run.
const BOOKED_S: i64 = 86_400;
/// Why runs are made.
const WHYS: [&str; 2] = ["calendar", BOOKED];
/// Ends of runs.
const STATES: [&str; 4] = ["ok", "failed", "missed", "lost"];

/// Why an agent is not answered as it wishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// What it sent makes no sense.
    Bad(String),
    /// It is not known here.
    Unknown(String),
    /// The hub could not.
    System(String),
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::System(failure.to_string())
    }
}

/// A plan that is served.
#[derive(Debug)]
pub(super) struct Served {
    signed: SignedPlan,
    pub(super) checked: Checked,
    since_s: i64,
}

/// A mesh's hub.
#[derive(Debug)]
pub struct Hub {
    file: PathBuf,
    store: PathBuf,
    served: RwLock<Arc<Served>>,
    /// Beats are judged one after another.
    judging: Mutex<()>,
    rules_file: Option<PathBuf>,
    rules: RwLock<Arc<Rules>>,
    /// Agents and tasks whose series have something new.
    arrived: Mutex<BTreeSet<(String, String)>>,
}

/// The owner of a mesh's alerts in the outbox.
pub(super) fn owner(mesh: &str) -> String {
    format!("mesh:{mesh}")
}

pub(super) fn now_s() -> i64 {
    i64::try_from(realtime_ns() / 1_000_000_000).unwrap_or(i64::MAX)
}

impl Hub {
    /// The hub of a plan's file, with the signature beside it, on a store; perhaps with rules.
    /// # Errors
    /// When the plan cannot be read or run, is not signed, or the store had a newer one or one of
    /// the same revision that differs; when the rules cannot be read.
    pub fn open(file: &Path, rules_file: Option<&Path>, store: &Path) -> Result<Self, Failure> {
        let known = rules_file.map(rules).transpose()?.unwrap_or_default();
        let served = RwLock::new(Arc::new(serve(file, store)?));
        let (file, store) = (file.to_owned(), store.to_owned());
        Ok(Self {
            file,
            store,
            served,
            judging: Mutex::default(),
            rules_file: rules_file.map(Path::to_owned),
            rules: RwLock::new(Arc::new(known)),
            arrived: Mutex::default(),
        })
    }

    pub(super) fn store(&self) -> Result<Store, Failure> {
        Store::open(&self.store)
    }

    pub(super) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Something is new in the series of a task of an agent.
    pub(super) fn came(&self, agent: &str, task: &str) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.insert((agent.to_owned(), task.to_owned()));
    }

    /// Every series of the plan may have something new: what it was is not known any more.
    pub(super) fn look_at_all(&self) {
        let served = self.served();
        let Checked { plan, calendar } = &served.checked;
        for run in calendar.runs() {
            let task = format!("{}/{}", plan.tasks[run.task].name, plan.agents[run.to].name);
            self.came(&plan.agents[run.from].name, &task);
        }
    }

    /// What has something new, and is looked at now.
    pub(super) fn arrived(&self) -> BTreeSet<(String, String)> {
        std::mem::take(&mut self.arrived.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the files of plan and rules again.
    /// # Errors
    /// As [`Hub::open`]; the plan and the rules before stay in force.
    pub fn reload(&self) -> Result<u64, Failure> {
        if let Some(file) = &self.rules_file {
            let new = rules(file)?;
            *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        }
        let new = serve(&self.file, &self.store)?;
        let revision = new.checked.plan.revision;
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        Ok(revision)
    }

    /// Mesh, revision and number of agents of the plan.
    pub fn about(&self) -> (String, u64, usize) {
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
    pub fn agent_of(&self, secret: &str) -> Result<String, Refused> {
        let found = Store::open(&self.store)?.mesh_agent_of(&digest(secret))?;
        let mesh = self.about().0;
        let unknown = || Refused::Unknown("no agent of this mesh has that secret".to_owned());
        found.filter(|(of, _)| *of == mesh).map(|(_, agent)| agent).ok_or_else(unknown)
    }

    /// An agent joins.
    /// # Errors
    /// When its token is not known here, over, or used by another.
    pub fn enrol(&self, asked: &Enrol) -> Result<Enrolled, Refused> {
        if hex::bytes::<32>(&asked.secret).is_none() {
            return Err(Refused::Bad("secret: 64 hexadecimal digits".to_owned()));
        }
        let mut store = Store::open(&self.store)?;
        let joined = store.mesh_joins(&digest(&asked.token), &digest(&asked.secret), now_s())?;
        match joined {
            Joined::As(mesh, agent) if mesh == self.about().0 => Ok(Enrolled { mesh, agent }),
            Joined::As(..) | Joined::Unknown => Err(Refused::Unknown(
                "the token is not known here or its time is over: linerate mesh token makes one"
                    .to_owned(),
            )),
            Joined::Used => Err(Refused::Unknown(
                "the token was used by another agent: linerate mesh token makes one".to_owned(),
            )),
        }
    }

    /// The plan as it was signed.
    pub fn plan(&self) -> SignedPlan {
        self.served().signed.clone()
    }

    /// An agent is there.
    /// # Errors
    /// When the store cannot be read or written.
    pub fn beat(&self, agent: &str, beat: &Beat) -> Result<BeatAnswer, Refused> {
        let _one = self.judging.lock().unwrap_or_else(PoisonError::into_inner);
        let (mesh, revision, _) = self.about();
        let mut store = Store::open(&self.store)?;
        let known = store.mesh_agents(&mesh)?.remove(agent).and_then(|state| state.seen);
        let (seen, standing) = judge(known.as_ref(), beat, now_s());
        store.mesh_seen((&mesh, agent), &seen)?;
        #[allow(clippy::cast_precision_loss, reason = "to the microsecond")]
        let wall_s = realtime_ns() as f64 / 1e9;
        let double = standing == Standing::Double;
        let bookings = store.mesh_bookings_open(&mesh, agent, now_s() - BOOKED_S)?;
        let runs = Some(store.mesh_runs_of(&mesh, agent)?);
        Ok(BeatAnswer { revision, wall_s, double, bookings, runs })
    }

    /// Keeps runs of an agent; what was said to be stored survives a crash.
    /// # Errors
    /// When one of them makes no sense, or the store cannot be written; those before it are kept.
    pub fn take(&self, agent: &str, runs: &RunResults) -> Result<Stored, Refused> {
        if runs.results.len() > RESULTS_AT_ONCE {
            let say = format!("results: {RESULTS_AT_ONCE} at most");
            return Err(Refused::Bad(say));
        }
        let mesh = self.about().0;
        let mut store = Store::open(&self.store)?;
        let mut known = 0;
        for run in &runs.results {
            let (slot, record) = read(&format!("{mesh}/{agent}"), run)?;
            let plan = format!("{mesh}/{agent}");
            if store.slot(&plan, &slot.task, slot.start_s)?.is_some() {
                known += 1;
                continue;
            }
            let mut figure = None;
            if let Some(record) = &record {
                store.put(record)?;
                figure = followed(record).first().map(|(what, value)| (what.key(), *value));
            }
            let figure = figure.as_ref().map(|(key, value)| (key.as_str(), *value));
            store.mesh_ran((&mesh, agent), &slot, figure)?;
            if record.is_some() {
                self.came(agent, &slot.task);
            }
        }
        let all = Some(store.mesh_runs_of(&mesh, agent)?);
        Ok(Stored { stored: runs.results.len(), known, runs: all })
    }

    /// How the mesh stands.
    /// # Errors
    /// When the store cannot be read.
    pub fn matrix(&self) -> Result<Matrix, Failure> {
        self.matrix_at(now_s())
    }

    pub(super) fn matrix_at(&self, now_s: i64) -> Result<Matrix, Failure> {
        let served = self.served();
        let Checked { plan, calendar } = &served.checked;
        let store = Store::open(&self.store)?;
        let (agents, cells) = (store.mesh_agents(&plan.mesh)?, store.mesh_cells(&plan.mesh)?);
        let found = matrix((plan, calendar), &agents, &cells, (served.since_s, now_s));
        let bookings = store.mesh_bookings(&plan.mesh, now_s - NEWS_S)?;
        let found = found.with_bookings(bookings);
        Ok(found.with_incidents(store.incidents(&plan.mesh, now_s - NEWS_S)?))
    }
}

impl Hub {
    /// Its runs by agent and by how they ended, and how many alerts of two days an output has not
    /// got.
    /// # Errors
    /// When the store cannot be read.
    pub fn counts(&self) -> Result<(Outcomes, usize), Failure> {
        let (store, mesh) = (self.store()?, self.about().0);
        let waiting = store.alerts_waiting(&owner(&mesh), now_s() - 2 * NEWS_S)?;
        Ok((store.mesh_outcomes(&mesh)?, waiting.len()))
    }
}

/// Reads a plan and keeps it as the newest.
fn serve(file: &Path, store: &Path) -> Result<Served, Failure> {
    let signed = signed(file)?;
    let checked = check(&signed.text, &file.display().to_string())?;
    let plan = &checked.plan;
    let mut store = Store::open(store)?;
    let refused = |reason: String| {
        Failure::new(Fault::Usage, "serve plan", file.display().to_string(), reason)
            .advise("give it a greater revision, and sign it")
    };
    let newest = store.mesh_plans(&plan.mesh)?.into_iter().next();
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
    store.mesh_plan_is(&plan.mesh, &kept(&signed, plan, now_s()))?;
    let since_s = store.mesh_plans(&plan.mesh)?.first().map_or_else(now_s, |kept| kept.kept_s);
    Ok(Served { signed, checked, since_s })
}

/// A run as the store keeps it, with its record; that has to say that it is of this run.
fn read(plan: &str, run: &RunResult) -> Result<(SlotRun, Option<Record>), Refused> {
    let bad = |say: &str| Refused::Bad(format!("{} at {}: {say}", run.task, run.start_s));
    let named = run
        .task
        .split_once('/')
        .is_some_and(|(task, peer)| !task.is_empty() && !peer.is_empty() && !peer.contains('/'));
    if !named || run.task.len() > NAME_MAX {
        return Err(bad("a task is TASK/AGENT"));
    }
    if !STATES.contains(&run.state.as_str()) {
        return Err(bad("a state is ok, failed, missed or lost"));
    }
    if !WHYS.contains(&run.why.as_str()) {
        return Err(bad("a run is of the calendar or booked"));
    }
    let record = run.record.as_ref().map(|value| Record::from_json(&value.to_string()));
    let record = record.transpose().map_err(|reason| bad(&format!("its record: {reason}")))?;
    if run.state == "ok" && record.is_none() {
        return Err(bad("a run that is ok has a record"));
    }
    if let Some(record) = &record {
        let tag = |key: &str| record.tags.get(key).map(String::as_str);
        let of_it = tag(TAG_PLAN) == Some(plan)
            && tag(TAG_SLOT) == Some(run.start_s.to_string().as_str())
            && record.name.as_deref() == Some(&run.task)
            && record.cell.is_none();
        if !of_it {
            return Err(bad("its record is of another run"));
        }
    }
    let reason = run.reason.as_ref().map(|text| text.chars().take(REASON_MAX).collect());
    let slot = SlotRun {
        task: run.task.clone(),
        start_s: run.start_s,
        why: run.why.clone(),
        state: run.state.clone(),
        reason,
        record: record.as_ref().map(|record| record.id.to_string()),
    };
    Ok((slot, record))
}
