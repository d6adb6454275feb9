//! An agent as the suite moves it: its talk and its spool, without the runs.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use linerate_core::mesh::HubLink;
use linerate_core::record::{
    Distribution, MetricId, PingPlan, Plan, Record, RecordId, RecordStatus, Stat, Summary, Tool,
};
use linerate_core::schedule::{RunState, RunWhy, ScheduleRun};
use linerate_core::time::WallTime;
use linerate_core::units::Bytes;
use linerate_store::{MeshSelf, Store, TAG_PLAN, TAG_SLOT};
use linerate_sys::clock::{random_bytes, sleep};

use super::super::client::{HubClient, NoAnswer};
use super::super::spool::Spool;
use super::super::talk::{Talk, mono_s};
use super::super::{JoinToken, hex};
use super::World;
use crate::schedule::Rein;

thread_local! {
    /// What agents of this test said.
    static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn say(line: &str) {
    SAID.with_borrow_mut(|said| said.push(line.to_owned()));
}

/// Whether an agent said something.
pub(super) fn was_said(part: &str) -> bool {
    SAID.with_borrow(|said| said.iter().any(|line| line.contains(part)))
}

/// An agent that runs nothing: what it measured is given to it.
#[derive(Debug)]
pub struct TestAgent {
    pub(super) talk: Talk,
    pub(super) link: HubLink,
    pub(super) schedule: String,
    instance: String,
}

/// Who asks to join, with a new secret.
pub(super) fn stranger(token: &JoinToken) -> MeshSelf {
    let secret = hex::encode_bytes(&random_bytes::<32>());
    MeshSelf { hub: String::new(), key: token.key.clone(), secret, name: None, starts: 1 }
}

/// A client of whoever that is.
pub(super) fn client(world: &dyn World, me: &MeshSelf) -> HubClient {
    HubClient::new(&world.address(), world.authority().as_ref(), &me.secret).expect("a client")
}

impl TestAgent {
    /// An agent that joins; its store is in a directory.
    pub fn joins(world: &dyn World, name: &str) -> Self {
        let token = world.token(name);
        let mut me = stranger(&token);
        let client = client(world, &me);
        let joined = retried(|| client.request_join(&me, &token.secret)).expect("it joins");
        assert_eq!((joined.mesh.as_str(), joined.agent.as_str()), ("m", name));
        me.name = Some((joined.mesh, joined.agent));
        Self::begins(world, me, client)
    }

    /// A program that is this agent.
    pub(super) fn begins(world: &dyn World, me: MeshSelf, client: HubClient) -> Self {
        let name = me.name.clone().expect("it has joined");
        let schedule = format!("{}/{}", name.0, name.1);
        let file = world.directory().join(format!("{}.db", name.1));
        let mut store = Store::open(&file).expect("a store");
        store.mesh_self_is(&me).expect("room");
        let spool = Spool::new(schedule.clone(), Bytes::new(1 << 30), &file);
        let talk = Talk {
            client,
            me,
            name,
            rein: Arc::new(Rein::default()),
            store,
            say,
            accept: |_| Ok(()),
            single: false,
            apart_s: f64::INFINITY,
            ahead_s: None,
            away: false,
            spool,
            full: false,
            stored: Vec::new(),
        };
        let instance = hex::encode_bytes(&random_bytes::<8>());
        Self { talk, link: HubLink::new(1, 0, mono_s()), schedule, instance }
    }

    /// Another program with the secret of this one.
    pub(super) fn twin(&self, world: &dyn World, starts: u64) -> Self {
        let me = MeshSelf { starts, ..self.talk.me.clone() };
        let client = client(world, &me);
        Self::begins(world, me, client)
    }

    /// Keeps a run that went well, of a round trip time.
    pub fn measured(&mut self, start_s: i64, rtt_ns: f64) {
        let run = ScheduleRun {
            task: "delay/z".to_owned(),
            start_s,
            why: RunWhy::Calendar,
            state: RunState::Running,
            reason: None,
            record: None,
        };
        let (store, schedule) = (&mut self.talk.store, &self.schedule);
        assert_eq!(store.slot_begun(schedule, &run), Ok(true));
        let mut record = record(schedule, start_s, rtt_ns);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ns")]
        let samples = [rtt_ns as u64];
        record.distributions = vec![Distribution::from_samples(MetricId::Rtt, &samples)];
        store.put_record(&record).expect("room");
        store.slot_ended(schedule, &run.task, start_s, RunState::Ok, None).expect("room");
    }

    /// How many results it keeps.
    pub(super) fn waiting(&self) -> u64 {
        self.talk.store.mesh_unsent_count(&self.schedule).expect("readable")
    }

    /// Gives once; whether all is stored then.
    pub(super) fn tries(&mut self) -> bool {
        let schedule = self.schedule.clone();
        self.talk.send_results(&mut self.link, &schedule).expect("its store is written");
        self.waiting() == 0
    }

    /// Gives until all is stored.
    pub fn gives(&mut self) {
        for _ in 0..30 {
            if self.waiting() == 0 || self.tries() {
                return;
            }
            sleep(std::time::Duration::from_millis(200));
        }
        panic!("{} results wait", self.waiting());
    }

    /// Says that it is there, until it is heard.
    pub(super) fn beats(&mut self) {
        for _ in 0..30 {
            let waiting = self.waiting();
            let (schedule, instance) = (&self.schedule, &self.instance);
            let sent = self.talk.send_beat(&mut self.link, schedule, instance, waiting);
            sent.expect("its store is written");
            if !self.talk.away {
                return;
            }
            sleep(std::time::Duration::from_millis(200));
        }
        panic!("the hub does not answer");
    }
}

/// Asks until there is an answer, or it is refused.
pub(super) fn retried<T>(mut ask: impl FnMut() -> Result<T, NoAnswer>) -> Result<T, NoAnswer> {
    for _ in 0..30 {
        match ask() {
            Err(NoAnswer::Away(_)) => sleep(std::time::Duration::from_millis(200)),
            other => return other,
        }
    }
    ask()
}

/// The record of a run.
pub(super) fn record(schedule: &str, start_s: i64, rtt_ns: f64) -> Record {
    let millis = u64::try_from(start_s).expect("after 1970") * 1000;
    let id = RecordId::from_parts(millis, random_bytes());
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    let at = WallTime::from_unix_nanos(u128::from(millis) * 1_000_000);
    let mut record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), at);
    record.status = RecordStatus::Ok;
    record.name = Some("delay/z".to_owned());
    record.tags.insert(TAG_PLAN.to_owned(), schedule.to_owned());
    record.tags.insert(TAG_SLOT.to_owned(), start_s.to_string());
    record.summary = vec![Summary::from_value(MetricId::Rtt, Stat::P50, rtt_ns)];
    record
}

/// A plan with agents of one letter, and a directory's signed file of it.
pub(super) fn plan_is(directory: &Path, key: &super::super::SigningKey, revision: u64) {
    let agents: String = ('a'..='z')
        .map(|name| {
            let last = u32::from(name);
            format!("[[agent]]\nname = \"{name}\"\naddress = \"192.0.2.{last}\"\n")
        })
        .collect();
    let plan = format!(
        "mesh = \"m\"\nrevision = {revision}\n{agents}[[task]]\nname = \"delay\"\n\
         run = \"ping {{to}}\"\nevery = \"10s\"\ntakes = \"9s\"\n"
    );
    plan_reads(directory, key, &plan);
}

/// A directory's signed file of a plan.
pub(super) fn plan_reads(directory: &Path, key: &super::super::SigningKey, plan: &str) {
    let signed = key.sign_plan(plan);
    std::fs::write(directory.join("plan.toml"), plan).expect("room");
    let lines = format!("{}\n{}\n", signed.key, signed.signature);
    std::fs::write(directory.join("plan.toml.sig"), lines).expect("room");
}
