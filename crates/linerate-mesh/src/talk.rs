//! An agent's talk with its hub, on a thread of its own: the runs go on whatever becomes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_core::mesh::{
    Ask, Beat, BeatAnswer, HubLink, RESULTS_AT_ONCE, ROOM_S, RunResult, RunResults, SET_BACK,
    SignedPlan, Stored, VERSION, is_plausible,
};
use linerate_core::record::{Failure, Record};
use linerate_core::schedule::{RunState, RunWhy, ScheduleRun};
use linerate_core::time::MonoTime;
use linerate_store::{MeshSelf, Store, TAG_RAW, is_full};
use linerate_sys::clock::{monotonic, random_bytes, realtime_ns, sleep};

use super::client::{HubClient, NoAnswer};
use super::clock::now_s;
use super::hex;
use super::plan::{parse_plan_text, to_kept_plan};
use super::sign::verify;
use super::spool::Spool;
use crate::schedule::Rein;

/// Time between two looks at the spool.
const LOOK: Duration = Duration::from_millis(500);
/// Most time for which an agent that ends still sends its results.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// Bytes of one message of results, but for a single one that is larger.
const BYTES_AT_ONCE: usize = 4 << 20;
/// Bookings of one agent that are looked at.
const BOOKINGS_MAX: usize = 1000;
/// Seconds that the names of runs stored by the hub are remembered, so that none is begun twice.
const REMEMBERED_S: i64 = 2 * 86_400;

/// An agent's side of the exchange with its hub: beats, the plan, results.
#[derive(Debug)]
pub(super) struct Talk {
    pub(super) client: HubClient,
    pub(super) me: MeshSelf,
    /// The mesh, and the agent's name.
    pub(super) name: (String, String),
    pub(super) rein: Arc<Rein>,
    pub(super) store: Store,
    pub(super) say: fn(&str),
    pub(super) accept: fn(&[String]) -> Result<(), String>,
    /// Results are sent one by one, for one of them was refused.
    pub(super) single: bool,
    /// Most seconds that this clock may be from the hub's: half of what two agents may be apart.
    pub(super) apart_s: f64,
    pub(super) ahead_s: Option<f64>,
    pub(super) away: bool,
    pub(super) spool: Spool,
    /// The disk had no room at the last try.
    pub(super) full: bool,
    /// Runs that the hub's store has, and that could not be dropped here yet.
    pub(super) stored: Vec<ScheduleRun>,
}

pub(super) fn mono_s() -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "to the microsecond")]
    let seconds = monotonic().as_nanos() as f64 / 1e9;
    seconds
}

fn wall_s() -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "to the microsecond")]
    let seconds = realtime_ns() as f64 / 1e9;
    seconds
}

impl Talk {
    /// Talks until the runs have ended, and then until what they left is stored, for a while.
    pub(super) fn run(mut self, ended: &AtomicBool) -> Result<(), Failure> {
        let schedule = format!("{}/{}", self.name.0, self.name.1);
        let instance = hex::encode_bytes(&random_bytes::<8>());
        let revision = self.store.mesh_plans(&self.name.0)?.first().map_or(0, |plan| plan.revision);
        let mut link = HubLink::new(u64::from_le_bytes(random_bytes()), revision, mono_s());
        let mut end = None;
        loop {
            match self.take_turn(&mut link, &schedule, &instance, ended, &mut end) {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    self.full = false;
                    self.spool.reserves();
                }
                Err(failure) if is_full(&failure) => self.make_room(&schedule, &failure),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Looks once at the spool and sends what is due to the hub. True where the exchange is over.
    fn take_turn(
        &mut self,
        link: &mut HubLink,
        schedule: &str,
        instance: &str,
        ended: &AtomicBool,
        end: &mut Option<MonoTime>,
    ) -> Result<bool, Failure> {
        self.spool
            .enforce_limit(&mut self.store)?
            .drop_message()
            .iter()
            .for_each(|line| (self.say)(line));
        let waiting = self.store.mesh_unsent_count(schedule)?;
        if ended.load(Ordering::SeqCst) {
            let until = *end.get_or_insert_with(|| monotonic() + LAST_WORDS);
            if waiting == 0 || monotonic() >= until || self.away {
                return Ok(true);
            }
        }
        let unsent = waiting > 0 && !self.rein.is_double();
        match link.next(mono_s(), unsent) {
            None => sleep(LOOK),
            Some(Ask::Beat) => self.send_beat(link, schedule, instance, waiting)?,
            Some(Ask::Plan) => self.fetch_plan(link)?,
            Some(Ask::Results) => self.send_results(link, schedule)?,
        }
        Ok(false)
    }

    /// The disk is full: the spool is made smaller, so that results can be dropped that the hub
    /// has.
    fn make_room(&mut self, schedule: &str, failure: &Failure) {
        let first = !std::mem::replace(&mut self.full, true);
        if first {
            (self.say)(&failure.to_string());
        }
        // What the hub has is no loss: it goes before anything that it has not.
        self.spool.gives_reserve();
        if !self.stored.is_empty() && self.confirm(schedule).is_ok() {
            return;
        }
        match self.spool.makes_room(&mut self.store) {
            Ok(dropped) => dropped.drop_message().iter().for_each(|line| (self.say)(line)),
            Err(failure) if first => (self.say)(&format!("and no room could be made: {failure}")),
            Err(_) => {}
        }
        sleep(LOOK);
    }

    /// The answer to a request; a hub that is away is reported once, and once when it is back.
    pub(super) fn handle_answer<T>(
        &mut self,
        link: &mut HubLink,
        answer: Result<T, NoAnswer>,
    ) -> Option<T> {
        match answer {
            Ok(answer) => {
                if std::mem::take(&mut self.away) {
                    (self.say)(&format!("the hub {} is back", self.client.hub));
                }
                Some(answer)
            }
            Err(reason) => {
                if !std::mem::replace(&mut self.away, true) {
                    (self.say)(&format!("no answer of the hub; runs go on: {reason}"));
                }
                link.failed(mono_s());
                None
            }
        }
    }

    pub(super) fn send_beat(
        &mut self,
        link: &mut HubLink,
        schedule: &str,
        instance: &str,
        waiting: u64,
    ) -> Result<(), Failure> {
        let beat = Beat {
            v: VERSION,
            instance: instance.to_owned(),
            starts: self.me.starts,
            revision: link.revision(),
            waiting,
            ahead_s: self.ahead_s,
        };
        let (begin, steps) = (mono_s(), self.rein.clock_step_count());
        let answer = self.client.send_beat(&self.me, &beat);
        let took = mono_s() - begin;
        let here = wall_s() - took / 2.0;
        let Some(answer) = self.handle_answer(link, answer) else { return Ok(()) };
        let BeatAnswer { revision, wall_s, double, mut bookings, runs } = answer;
        bookings.retain(|booking| is_plausible(booking, now_s()));
        bookings.truncate(BOOKINGS_MAX);
        self.rein.is_given(bookings);
        link.beaten(mono_s(), revision);
        if double != self.rein.is_double() {
            (self.say)(if double {
                "another program is this agent: this one holds"
            } else {
                "this program is the agent again"
            });
            self.rein.double(double);
        }
        // The hub read its clock somewhere within the round trip.
        let ahead = here - wall_s;
        self.ahead_s = Some(ahead);
        let wrong = ahead.abs() - took / 2.0 > self.apart_s;
        let reason = || format!("the clock was {ahead:+.1} s from the hub's");
        self.rein.set_clock_fault(wrong.then(reason), steps);
        self.hub_has(schedule, runs, 0)
    }

    /// The hub's store has so many runs of this agent, of which some are new. Where it had more
    /// before, it was set back: what it had is given again, as far as it is kept.
    fn hub_has(&mut self, schedule: &str, runs: Option<u64>, new: u64) -> Result<(), Failure> {
        let Some(runs) = runs else { return Ok(()) };
        let known = self.store.mesh_hub_runs()?;
        if runs < known + new {
            let count = self.store.mesh_unconfirms(schedule)?;
            (self.say)(&format!("{SET_BACK}: {count} runs are given to it again"));
        }
        if runs != known { self.store.mesh_hub_has(runs) } else { Ok(()) }
    }

    /// Takes a newer plan, if it is what it has to be; one that is not is not asked for again.
    pub(super) fn fetch_plan(&mut self, link: &mut HubLink) -> Result<(), Failure> {
        let answer = self.client.fetch_plan(&self.me);
        let Some(signed) = self.handle_answer::<SignedPlan>(link, answer) else { return Ok(()) };
        match self.check_new_plan(&signed) {
            Ok((plan, from_s)) => {
                link.has_plan(mono_s(), plan.revision);
                self.store.mesh_plan_is(&self.name.0, &plan)?;
                self.rein.ends_at(from_s.max(now_s()));
                (self.say)(&format!("plan of revision {} was taken", plan.revision));
            }
            Err(reason) => {
                (self.say)(&format!("the hub's plan is not taken: {reason}"));
                link.declines_plan(mono_s());
            }
        }
        Ok(())
    }

    /// A plan that may be kept, and when the one before ends.
    fn check_new_plan(
        &mut self,
        signed: &SignedPlan,
    ) -> Result<(linerate_store::KeptPlan, i64), String> {
        if signed.key != self.me.key {
            return Err("it is signed by another key than that of the token".to_owned());
        }
        verify(signed)?;
        let checked =
            parse_plan_text(&signed.text, "the plan").map_err(|failure| failure.to_string())?;
        let plan = checked.plan;
        if plan.mesh != self.name.0 {
            return Err(format!("it is of mesh {}", plan.mesh));
        }
        let newest = self.store.mesh_plans(&plan.mesh).map_err(|failure| failure.to_string())?;
        let newest = newest.first().map_or(0, |plan| plan.revision);
        if plan.revision <= newest {
            return Err(format!("revision {} is not newer than {newest}", plan.revision));
        }
        if let Some(agent) = plan.agent_index(&self.name.1) {
            let mine = checked.calendar.of_agent(&plan, agent).plan;
            for task in &mine.tasks {
                task.command_words().and_then(|words| (self.accept)(&words))?;
            }
            for command in plan.adhoc.iter().flat_map(|adhoc| &adhoc.commands) {
                (self.accept)(&plan.command_words(&command.name, &command.run, agent, agent))?;
            }
        }
        self.apart_s = clock_offset_limit(&plan);
        let margin_s = i64::try_from(plan.margin.seconds()).unwrap_or(0);
        let ends_s = plan.from_s().saturating_sub(margin_s + ROOM_S);
        Ok((to_kept_plan(signed, &plan, now_s()), ends_s))
    }

    /// Sends the oldest results to the hub, and drops those that the hub has stored.
    pub(super) fn send_results(
        &mut self,
        link: &mut HubLink,
        schedule: &str,
    ) -> Result<(), Failure> {
        let limit = if self.single { 1 } else { RESULTS_AT_ONCE };
        let mut runs = self.store.mesh_unsent(schedule, limit)?;
        let mut results = Vec::new();
        let mut bytes = 0;
        for run in &runs {
            let result = self.result(run)?;
            bytes += result.record.as_ref().map_or(0, |record| record.to_string().len());
            if bytes > BYTES_AT_ONCE && !results.is_empty() {
                break;
            }
            results.push(result);
        }
        runs.truncate(results.len());
        let message = RunResults { v: VERSION, results };
        let mut answer = self.client.send_results(&self.me, &message);
        if matches!(answer, Err(NoAnswer::Refused(413, _))) && runs.len() == 1 {
            // Larger than the wire takes: its figures without its samples.
            let mut thin = message.clone();
            thinned(&mut thin.results[0]);
            answer = self.client.send_results(&self.me, &thin);
        }
        if let Err(NoAnswer::Refused(400 | 413 | 422, say)) = &answer {
            if runs.len() > 1 {
                self.single = true;
                return Ok(());
            }
            // The record stays here; the hub has at least the gap and its reason.
            (self.say)(&format!("{}: the hub refused its record: {say}", runs[0].task));
            let mut bare = message.clone();
            bare.results[0].record = None;
            bare.results[0].state = RunState::Failed;
            bare.results[0].reason = Some(format!("the hub refused its record: {say}"));
            runs[0].record = None;
            answer = self.client.send_results(&self.me, &bare);
            if let Err(NoAnswer::Refused(400 | 422, say)) = &answer {
                // A run that no plan of the hub has: it would hold up those behind it for ever.
                (self.say)(&format!("{}: the hub refused that it ran: {say}", runs[0].task));
                self.stored = runs;
                return self.confirm(schedule);
            }
        }
        if let Some(Stored { stored, known, runs: all }) = self.handle_answer(link, answer) {
            link.went_well(mono_s());
            self.single = false;
            self.stored = runs;
            self.confirm(schedule)?;
            self.hub_has(schedule, all, stored.saturating_sub(known) as u64)?;
        }
        Ok(())
    }

    /// Drops the results that the hub's store has.
    fn confirm(&mut self, schedule: &str) -> Result<(), Failure> {
        self.store.mesh_confirmed(schedule, &self.stored, now_s() - REMEMBERED_S)?;
        self.stored.clear();
        Ok(())
    }

    pub(super) fn result(&self, run: &ScheduleRun) -> Result<RunResult, Failure> {
        let record = match &run.record {
            Some(id) => self.store.stored(id)?,
            None => None,
        };
        Ok(RunResult {
            task: run.task.clone(),
            start_s: run.start_s,
            state: run.state,
            reason: run.reason.clone(),
            why: if run.why == RunWhy::Booked { RunWhy::Booked } else { RunWhy::Calendar },
            record: record.and_then(|record| linerate_core::tree::to_value(&record).ok()),
        })
    }
}

/// Takes the samples out of a result's record, and says so in it.
fn thinned(result: &mut RunResult) {
    let record =
        result.record.as_ref().and_then(|value| Record::from_json(&value.to_string()).ok());
    let Some(mut record) = record else { return };
    record.tags.insert(TAG_RAW.to_owned(), "dropped".to_owned());
    result.record = linerate_core::tree::to_value(record.without_samples()).ok();
    result.reason =
        Some("its samples were dropped: they are beyond what the broker takes".to_owned());
}

/// Greatest offset of an agent's clock from the hub's, seconds: half the margin, so that no two
/// agents are further apart than the margin.
pub(super) fn clock_offset_limit(plan: &linerate_core::mesh::MeshPlan) -> f64 {
    plan.margin.0.as_secs_f64() / 2.0
}
