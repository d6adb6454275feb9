//! An agent: who it is, which plan is in force, and the keeper that runs it.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_core::mesh::{DISK_FULL, Enrolled, ROOM_S, SignedPlan};
use linerate_core::record::{Failure, Fault};
use linerate_core::schedule::{RunState, RunWhy, ScheduleRun};
use linerate_core::time::MonoTime;
use linerate_core::units::Bytes;
use linerate_outbound::Authority;
use linerate_store::{KeptPlan, MeshSelf, Store, is_full};
use linerate_sys::clock::{monotonic, random_bytes, sleep};
use linerate_sys::stop::Stop;

use super::address::HubAddress;
use super::booking::booking_desk;
use super::client::{HubClient, NoAnswer};
use super::clock::now_s;
use super::meet;
use super::plan::{Checked, parse_plan_text};
use super::sign::verify;
use super::spool::Spool;
use super::talk::{Talk, clock_offset_limit};
use super::{JoinToken, hex};
use crate::schedule::{Keeper, KeeperCounts, KeeperOptions, NOT_RUNNING, Rein, take_lock};

/// Time between two looks whether a plan is in force.
const LOOK: Duration = Duration::from_millis(200);
/// Time between two tries to join, and between two tries to write to a full disk.
const TRY_AGAIN: Duration = Duration::from_secs(2);
/// Seconds for which a disk is taken for full after a write to it failed for want of room.
const FULL_FOR_S: i64 = 5;

/// Options of an agent.
pub struct AgentOptions {
    /// Address of the hub that the agent reports to.
    pub hub: HubAddress,
    /// Token for the first start; later ones use the secret in the store.
    pub token: Option<JoinToken>,
    /// Authority that the hub's certificate is checked against; none without TLS.
    pub authority: Option<Authority>,
    /// File of the agent's results, which is also the spool of those that the hub does not have
    /// yet.
    pub store: PathBuf,
    /// Most bytes that the store takes on disk; beyond it the oldest results are dropped.
    pub spool: Bytes,
    /// File of this program, by which each run is started.
    pub program: PathBuf,
    /// Time after which the agent ends by itself; none for never.
    pub for_: Option<Duration>,
    /// Checks that this program can run a command line.
    pub accept: fn(&[String]) -> Result<(), String>,
    /// Called with a line for each run and each event.
    pub say: fn(&str),
    /// Called once the agent has opened its store and knows its name; the hub may still be away.
    pub ready: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for AgentOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { hub, store, for_, .. } = self;
        let mut shown = f.debug_struct("AgentOptions");
        shown.field("hub", hub).field("store", store).field("for_", for_).finish_non_exhaustive()
    }
}

/// Counts of an agent's runs when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentEnded {
    /// Runs that brought a result.
    pub good: u64,
    /// Runs that brought no result: failed, or not begun.
    pub without: u64,
    /// Runs that the hub does not have yet.
    pub waiting: u64,
}

/// An agent that has joined.
#[derive(Debug)]
pub struct JoinedAgent {
    options: AgentOptions,
    me: MeshSelf,
    name: (String, String),
    client: HubClient,
    stop: Stop,
    until: Option<MonoTime>,
    rein: Arc<Rein>,
    _lock: File,
}

/// A plan of the mesh, and the time at which the next one takes its place.
struct AgentActivePlan {
    text: String,
    checked: Checked,
    until_s: i64,
}

impl JoinedAgent {
    /// Takes the store's lock and joins, where it has not before: the hub is asked until it
    /// answers.
    /// # Errors
    /// When another program is an agent on this store, the store cannot be written, there is no
    /// token for the first time, or the hub refuses it.
    pub fn join_mesh(options: AgentOptions, stop: Stop) -> Result<Option<Self>, Failure> {
        // It makes the directory that the lock is in, too.
        let mut store = Store::open(&options.store)?;
        let lock = take_lock(&options.store, "agent")?;
        let until = options.for_.map(|span| monotonic() + span);
        let me = load_membership(&mut store, &options)?;
        (options.ready)();
        let client = HubClient::new(&options.hub, options.authority.as_ref(), &me.secret)?;
        let mut told = false;
        let mut me = me;
        while me.name.is_none() {
            if stop.is_requested() || until.is_some_and(|until| monotonic() >= until) {
                return Ok(None);
            }
            let token = options.token.as_ref().map_or("", |token| token.secret.as_str());
            match client.request_join(&me, token) {
                Ok(Enrolled { mesh, agent }) => me.name = Some((mesh, agent)),
                Err(NoAnswer::Refused(_, say)) => {
                    return Err(Failure::new(
                        Fault::PeerRefused,
                        "join",
                        options.hub.to_string(),
                        say,
                    ));
                }
                Err(away) => {
                    if !std::mem::replace(&mut told, true) {
                        (options.say)(&format!("no answer of the hub, asked again: {away}"));
                    }
                    sleep_until_stop(&stop, TRY_AGAIN);
                }
            }
        }
        store.mesh_self_is(&me)?;
        let name = me.name.clone().unwrap_or_default();
        let rein = Arc::new(Rein::default());
        Ok(Some(Self { options, me, name, client, stop, until, rein, _lock: lock }))
    }

    /// The mesh, and this agent's name in it.
    pub const fn name(&self) -> &(String, String) {
        &self.name
    }

    /// Runs plan after plan until it is asked to stop.
    /// # Errors
    /// When the store can no longer be read or written.
    pub fn run(self) -> Result<AgentEnded, Failure> {
        let ended = AtomicBool::new(false);
        let talk = self.open_hub_talk()?;
        let (ran, talked) = std::thread::scope(|scope| {
            let talking = scope.spawn(|| {
                let talked = talk.run(&ended);
                // Without its spool an agent has nothing to run for.
                if talked.is_err() {
                    self.stop.request_stop();
                }
                talked
            });
            let ran = self.run_plans();
            ended.store(true, Ordering::SeqCst);
            (ran, talking.join())
        });
        let KeeperCounts { good, without, .. } = ran?;
        talked.unwrap_or(Ok(()))?;
        let schedule = format!("{}/{}", self.name.0, self.name.1);
        let waiting = Store::open(&self.options.store)?.mesh_unsent_count(&schedule)?;
        Ok(AgentEnded { good, without, waiting })
    }

    fn open_hub_talk(&self) -> Result<Talk, Failure> {
        let options = &self.options;
        let store = Store::open(&options.store)?;
        let plan = store.mesh_plans(&self.name.0)?.into_iter().next();
        let plan = plan.and_then(|kept| parse_plan_text(&kept.text, "the plan").ok());
        Ok(Talk {
            client: self.client.clone(),
            me: self.me.clone(),
            name: self.name.clone(),
            rein: Arc::clone(&self.rein),
            store,
            say: options.say,
            accept: options.accept,
            single: false,
            apart_s: plan.map_or(f64::INFINITY, |checked| clock_offset_limit(&checked.plan)),
            ahead_s: None,
            away: false,
            spool: self.result_spool(),
            full: false,
            stored: Vec::new(),
        })
    }

    fn result_spool(&self) -> Spool {
        let schedule = format!("{}/{}", self.name.0, self.name.1);
        Spool::new(schedule, self.options.spool, &self.options.store)
    }

    fn is_over(&self) -> bool {
        self.stop.is_requested() || self.until.is_some_and(|until| monotonic() >= until)
    }

    fn run_plans(&self) -> Result<KeeperCounts, Failure> {
        let mut sum = KeeperCounts::default();
        let mut told = false;
        while !self.is_over() {
            match self.keep_one() {
                Ok(Some(ended)) => {
                    told = false;
                    sum.good += ended.good;
                    sum.without += ended.without;
                }
                Ok(None) => sleep_until_stop(&self.stop, LOOK),
                // What cannot be written down is not begun: it is missed, and said when there is
                // room again.
                Err(failure) if is_full(&failure) => {
                    if !std::mem::replace(&mut told, true) {
                        (self.options.say)(&format!("nothing runs: {failure}"));
                    }
                    self.rein.is_away(DISK_FULL, now_s(), FULL_FOR_S);
                    sleep_until_stop(&self.stop, TRY_AGAIN);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(sum)
    }

    /// Keeps the plan that is in force, as long as it is; none where there is nothing to do.
    fn keep_one(&self) -> Result<Option<KeeperCounts>, Failure> {
        // Before the plans are read: one that comes after that ends the keeper.
        self.rein.loosen();
        let Some(found) = self.in_force(now_s())? else { return Ok(None) };
        self.rein.ends_at(found.until_s);
        let AgentActivePlan { text, checked, .. } = found;
        let Some(place) = checked.plan.agent_index(&self.name.1) else { return Ok(None) };
        let mine = checked.calendar.of_agent(&checked.plan, place);
        let checked_from_s = checked.plan.from_s();
        let met = checked.calendar.meetings(&checked.plan, place);
        let options = KeeperOptions {
            program: self.options.program.clone(),
            text,
            plan: mine.plan,
            calendar: mine.calendar,
            for_: self.until.map(|until| until.duration_since(monotonic())),
            say: self.options.say,
            rein: Some(Arc::clone(&self.rein)),
            desk: booking_desk(checked, place),
        };
        let mut store = Store::open(&self.options.store)?;
        self.record_missed_runs(&mut store, checked_from_s)?;
        let keeper = Keeper::new(options, store, self.stop.clone())?;
        let over = Stop::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                meet::reflect_in_slots(&met.0, &met.1, &self.rein, &over, self.options.say)
            });
            let ended = keeper.run();
            over.request_stop();
            ended.map(Some)
        })
    }

    /// Records as missed the runs of the plan before that were due while the agent did not run,
    /// until the new plan came into force.
    fn record_missed_runs(&self, store: &mut Store, from_s: i64) -> Result<(), Failure> {
        let schedule = format!("{}/{}", self.name.0, self.name.1);
        let known = store.schedules()?.into_iter().find(|known| known.plan == schedule);
        let Some(dealt_s) = known.map(|known| known.dealt_s).filter(|dealt_s| *dealt_s < from_s)
        else {
            return Ok(());
        };
        let older = store.mesh_plans(&self.name.0)?.into_iter();
        let older = older.filter(|kept| self.is_signed(kept));
        let older = older.filter_map(|kept| parse_plan_text(&kept.text, "the plan").ok());
        let before =
            older.filter(|old| old.plan.from_s() < from_s).max_by_key(|old| old.plan.revision);
        if let Some(Checked { plan, calendar }) = before
            && let Some(place) = plan.agent_index(&self.name.1)
        {
            let margin_s = i64::try_from(plan.margin.seconds()).unwrap_or(0);
            let last = store.runs_since(&schedule, dealt_s)?.last().map(|run| run.start_s + 1);
            let begin_s = last.unwrap_or(dealt_s).max(dealt_s);
            let mine = calendar.of_agent(&plan, place);
            for slot in
                mine.calendar.slots_between(begin_s, from_s.saturating_sub(margin_s + ROOM_S))
            {
                let run = ScheduleRun {
                    task: mine.plan.tasks[slot.task].name.clone(),
                    start_s: slot.start_s,
                    why: RunWhy::Calendar,
                    state: RunState::Missed,
                    reason: Some(NOT_RUNNING.to_owned()),
                    record: None,
                };
                store.slot_begun(&schedule, &run)?;
            }
        }
        store.schedule_dealt(&schedule, from_s)
    }

    /// The plan that is in force at a time; none between two, and before the first.
    fn in_force(&self, now_s: i64) -> Result<Option<AgentActivePlan>, Failure> {
        let plans = Store::open(&self.options.store)?.mesh_plans(&self.name.0)?;
        let mut until_s = i64::MAX;
        for kept in plans.into_iter().filter(|kept| self.is_signed(kept)) {
            let checked = parse_plan_text(&kept.text, "the plan")?;
            let from_s = checked.plan.from_s();
            if now_s >= from_s {
                let found = AgentActivePlan { text: kept.text, checked, until_s };
                return Ok((now_s < until_s).then_some(found));
            }
            let margin_s = i64::try_from(checked.plan.margin.seconds()).unwrap_or(0);
            until_s = until_s.min(from_s.saturating_sub(margin_s + ROOM_S));
        }
        Ok(None)
    }

    fn is_signed(&self, kept: &KeptPlan) -> bool {
        let KeptPlan { text, key, signature, .. } = kept.clone();
        *key == *self.me.key && verify(&SignedPlan { text, key, signature }).is_ok()
    }
}

/// This host's membership in a mesh: as its store has it, or as a token begins it.
fn load_membership(store: &mut Store, options: &AgentOptions) -> Result<MeshSelf, Failure> {
    let hub = options.hub.to_string();
    let found = store.mesh_self_starts()?;
    let usage = |reason: String, advice: &str| {
        Failure::new(Fault::Usage, "join", hub.clone(), reason).advise(advice)
    };
    match (found, &options.token) {
        (Some(me), Some(token)) if me.name.is_some() && me.key != token.key => Err(usage(
            "this store is of an agent of another mesh".to_owned(),
            "name another store with --store",
        )),
        (Some(me), token) if me.name.is_some() || token.is_some() => {
            let key = token.as_ref().map_or(&me.key, |token| &token.key).clone();
            let me = MeshSelf { hub, key, ..me };
            store.mesh_self_is(&me)?;
            Ok(me)
        }
        (None, Some(token)) => {
            let secret = hex::encode_bytes(&random_bytes::<32>());
            let me = MeshSelf { hub, key: token.key.clone(), secret, name: None, starts: 1 };
            // Kept before it is sent: an answer that is lost is asked for again with the same.
            store.mesh_self_is(&me)?;
            Ok(me)
        }
        _ => Err(usage(
            "this store has not joined a mesh".to_owned(),
            "for the first time give --token, as linerate mesh token prints it",
        )),
    }
}

/// Waits for a span, or until it is to stop.
fn sleep_until_stop(stop: &Stop, span: Duration) {
    let until = monotonic() + span;
    while !stop.is_requested() && monotonic() < until {
        sleep(LOOK.min(span));
    }
}
