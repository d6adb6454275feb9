//! The loop: what the calendar says is begun, what came of it is kept and looked at.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use linerate_core::mesh::{Booking, HOUR_S, REFUSED, UNHEARD};
use linerate_core::record::{Failure, Record, RecordStatus};
use linerate_core::schedule::{
    Calendar, EventKind, FURTHER_RUNS, Reason, RunCause, RunState, RunWhy, Runner, RunnerAction,
    SchedulePlan, ScheduleRun, ScheduleTask, Slot,
};
use linerate_core::time::MonoTime;
use linerate_store::{HAPPENED_KEPT_S, SeriesValue, Store};
use linerate_sys::clock::{monotonic, realtime_ns};
use linerate_sys::stop::Stop;

use super::child::{self, ProcessJob, ProcessOutcome, RunIdentity};
use super::desk::{BookedAt, Desk};
use super::news::News;
use super::rein::{Hindered, Rein};
use super::watches::Watches;
use super::{NOT_RUNNING, lock, words};
use crate::alert::Post;

/// The newest values of a figure that a new keeper reads: two windows of a watch and more.
const VALUES_READ: usize = 2000;
/// Time beyond the plan's after which a run is killed.
const SLACK: Duration = Duration::from_secs(60);
/// Such slack, and the seconds that a run may begin late, in a mesh, where other runs follow at
/// once.
const STRICT: (Duration, i64) = (Duration::ZERO, 2);
/// Time between two writes of the second up to which the calendar was worked off.
const DEALT_EVERY: Duration = Duration::from_secs(60);
/// Time between two deletions of old records.
const FORGET_EVERY: Duration = Duration::from_secs(900);

/// Options of a keeper.
#[derive(Debug)]
pub struct KeeperOptions {
    /// File of this program, by which each run is started.
    pub program: PathBuf,
    /// Text of the plan's file, as the store keeps it.
    pub text: String,
    /// The schedule's plan, read from `text`.
    pub plan: SchedulePlan,
    /// Begins of all runs of the plan.
    pub calendar: Calendar,
    /// Time after which the keeper ends by itself; none for never.
    pub for_: Option<Duration>,
    /// Called with a line for each run and each event.
    pub say: fn(&str),
    /// Reasons that hold its runs back, where they are part of a mesh's calendar.
    pub rein: Option<Arc<Rein>>,
    /// Checks runs that are booked beside the calendar.
    pub desk: Desk,
}

/// Counts of a keeper's runs and changes when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeeperCounts {
    /// Runs with a result.
    pub good: u64,
    /// Runs without a result: failed, or not begun.
    pub without: u64,
    /// Lasting changes that were found in the results.
    pub changes: u64,
}

/// A keeper of a plan.
#[derive(Debug)]
pub struct Keeper {
    options: KeeperOptions,
    store: Store,
    runner: Runner,
    watches: Watches,
    news: News,
    /// Runs of each task that were asked for since the last one of the calendar.
    asked: Vec<u32>,
    running: u64,
    stop: Stop,
    /// Ends the processes of the runs; `stop` ends the keeper itself.
    runs_stop: Stop,
    ended: (Sender<ProcessOutcome>, Receiver<ProcessOutcome>),
    post: Post,
    count: KeeperCounts,
    /// Lock of the plan, held as long as the keeper runs.
    _lock: File,
}

/// Wall time in seconds since 1970-01-01 UTC.
fn wall_s() -> f64 {
    realtime_ns() as f64 / 1e9
}

#[allow(clippy::cast_possible_truncation, reason = "seconds since 1970")]
fn now_s() -> i64 {
    wall_s().floor() as i64
}

impl Keeper {
    /// Takes the plan's lock and reads what is known of it.
    /// # Errors
    /// When another program runs the plan on this store, or the store cannot be read or written.
    pub fn new(options: KeeperOptions, mut store: Store, stop: Stop) -> Result<Self, Failure> {
        let plan = &options.plan;
        let lock = lock::acquire_lock(store.path(), &plan.name)?;
        let now = now_s();
        let known = store.schedule_opened(&plan.name, &options.text, now)?;
        let away = options.rein.as_ref().and_then(|rein| rein.why_away(now));
        let killed = away.unwrap_or_else(|| "the schedule was killed during it".to_owned());
        let lost = store.slots_left(&plan.name, &killed)?;
        if lost > 0 {
            (options.say)(&format!("{lost} runs were lost: {killed}"));
        }
        let last = store.runs_since(&plan.name, known.dealt_s)?.last().map(|run| run.start_s + 1);
        let dealt_s = last.unwrap_or(known.dealt_s).max(known.dealt_s);
        let series = store.series(&plan.name, 0.0, VALUES_READ)?;
        let watches = Watches::from_series(plan, &series);
        let mut runner = Runner::new(plan.clone(), options.calendar.clone(), now, Some(dealt_s));
        if options.rein.is_some() {
            runner = runner.within(STRICT.1);
        }
        let detail = serde_json::json!({ "lost": lost });
        store.event_happened(&plan.name, "", now, EventKind::Begin, &detail)?;
        let news = News::from_store(plan, &store, now, options.say)?;
        let asked = vec![0; plan.tasks.len()];
        let ended = channel();
        let post = Post::new(plan.name.clone(), plan.alert.as_ref());
        let count = KeeperCounts::default();
        let running = 0;
        Ok(Self {
            options,
            store,
            runner,
            watches,
            news,
            asked,
            running,
            stop,
            runs_stop: Stop::new(),
            ended,
            post,
            count,
            _lock: lock,
        })
    }

    fn schedule_plan(&self) -> &SchedulePlan {
        &self.options.plan
    }

    /// Keeps the plan until it is asked to stop.
    /// # Errors
    /// When the store can no longer be written: what is measured would be lost.
    pub fn run(mut self) -> Result<KeeperCounts, Failure> {
        let kept = self.run_loop();
        if let Err(failure) = kept {
            self.runs_stop.request_stop();
            return Err(failure);
        }
        self.finish_runs()
    }

    fn run_loop(&mut self) -> Result<(), Failure> {
        let begin = monotonic();
        let over =
            |now: MonoTime, span: Option<Duration>| span.is_some_and(|span| now >= begin + span);
        let (mut dealt_at, mut forget_at) = (begin, begin);
        while !self.stop.is_requested()
            && !over(monotonic(), self.options.for_)
            && !self.is_replaced()
        {
            let now = monotonic();
            self.accept_bookings()?;
            for step in self.runner.actions_at(wall_s(), now.as_nanos() as f64 / 1e9) {
                self.execute_step(step)?;
            }
            if now >= dealt_at {
                dealt_at = now + DEALT_EVERY;
                self.store.schedule_dealt(&self.options.plan.name, now_s())?;
            }
            if now >= forget_at {
                forget_at = now + FORGET_EVERY;
                self.forget()?;
            }
            self.send_alerts(now)?;
            self.wait_next_second()?;
        }
        Ok(())
    }

    /// True where another plan is in force and no run of this one is under way.
    fn is_replaced(&self) -> bool {
        let rein = self.options.rein.as_ref();
        self.running == 0 && rein.is_some_and(|rein| now_s() >= rein.until_s())
    }

    /// Waits until the next second begins, or a run ends.
    fn wait_next_second(&mut self) -> Result<(), Failure> {
        let wall = wall_s();
        let rest = Duration::from_secs_f64((wall.floor() + 1.0 - wall).clamp(0.001, 1.0));
        match self.ended.1.recv_timeout(rest + Duration::from_millis(1)) {
            Ok(outcome) => self.record_run_end(&outcome),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    /// Ends the processes that run, and stores how they ended.
    fn finish_runs(mut self) -> Result<KeeperCounts, Failure> {
        self.runs_stop.request_stop();
        while self.running > 0 {
            let Ok(outcome) = self.ended.1.recv_timeout(Duration::from_secs(30)) else { break };
            self.record_run_end(&outcome)?;
        }
        let name = self.options.plan.name.clone();
        self.store.schedule_dealt(&name, now_s())?;
        let detail = serde_json::json!({ "signal": self.stop.signal() });
        self.store.event_happened(&name, "", now_s(), EventKind::End, &detail)?;
        Ok(self.count)
    }

    fn execute_step(&mut self, step: RunnerAction) -> Result<(), Failure> {
        match step {
            RunnerAction::Start { task, why } => self.start_run(task, why),
            RunnerAction::Missed { slot, why, reason } => {
                let displaced =
                    matches!(reason, Reason::Busy(other) if self.news.is_surveyed(other));
                let state = if displaced { RunState::Displaced } else { RunState::Missed };
                let reason = match reason {
                    Reason::Asleep => {
                        let rein = self.options.rein.as_ref();
                        let away = rein.and_then(|rein| rein.why_away(slot.start_s));
                        away.unwrap_or_else(|| NOT_RUNNING.to_owned())
                    }
                    Reason::Busy(other) if displaced => {
                        format!("the survey of {}", self.schedule_plan().tasks[other].name)
                    }
                    Reason::Busy(other) => {
                        format!("a run of {} went on", self.schedule_plan().tasks[other].name)
                    }
                };
                self.missed(slot.task, slot.start_s, why, state, &reason)
            }
            RunnerAction::ClockStepped(by_s) => {
                let said = format!("the clock was set by {by_s:+.1} s");
                (self.options.say)(&said);
                self.options.rein.iter().for_each(|rein| rein.clock_stepped(said.clone()));
                let detail = serde_json::json!({ "by_s": by_s });
                let name = self.options.plan.name.clone();
                self.store.event_happened(&name, "", now_s(), EventKind::Clock, &detail).map(drop)
            }
        }
    }

    fn missed(
        &mut self,
        task: usize,
        start_s: i64,
        why: RunCause,
        state: RunState,
        reason: &str,
    ) -> Result<(), Failure> {
        let name = self.schedule_plan().tasks[task].name.clone();
        let new = self.is_gap(name, start_s, why, state, reason)?;
        if new && why == RunCause::Calendar {
            self.news.run_ended(&mut self.store, task, now_s())?;
        }
        Ok(())
    }

    /// Stores a run that is not made, with the reason. False where the store had it already.
    fn is_gap(
        &mut self,
        task: String,
        start_s: i64,
        why: RunCause,
        state: RunState,
        reason: &str,
    ) -> Result<bool, Failure> {
        let run = ScheduleRun {
            task,
            start_s,
            why: words::stored_cause(why),
            state,
            reason: Some(reason.to_owned()),
            record: None,
        };
        let name = self.options.plan.name.clone();
        let new = self.store.slot_begun(&name, &run)?;
        if new {
            self.count.without += 1;
            (self.options.say)(&format!("{}: missed: {reason}", run.task));
        }
        Ok(new)
    }

    /// Looks at new bookings: each gets its slot beside the calendar, or is refused with a reason.
    fn accept_bookings(&mut self) -> Result<(), Failure> {
        let Some(rein) = self.options.rein.clone() else { return Ok(()) };
        self.options.desk.forgets(now_s() - 2 * HOUR_S);
        for ((task, start_s), reason) in self.options.desk.take_due_refusals(now_s()) {
            let why = RunCause::Booked { start_s };
            self.is_gap(task, start_s, why, RunState::Missed, &reason)?;
        }
        for booking in rein.bookings_to_run() {
            // What is under another plan is looked at by that one's keeper.
            if booking.start_s >= rein.until_s() || !self.options.desk.is_new(&booking.id, now_s())
            {
                continue;
            }
            let Booking { task, start_s, takes_s, .. } = booking.clone();
            let name = self.options.plan.name.clone();
            if self.store.find_run(&name, &task, start_s)?.is_some() {
                continue;
            }
            let why = RunCause::Booked { start_s };
            if start_s + STRICT.1 < now_s() {
                self.is_gap(task, start_s, why, RunState::Missed, UNHEARD)?;
                continue;
            }
            let begun = self.booked_since(start_s - HOUR_S)?;
            match self.options.desk.admit_booking(&booking, &begun) {
                Err(reason) => self.options.desk.refuses(&booking, reason),
                Ok(known) => {
                    let place = self.task_index(known);
                    self.runner.book_slot(Slot {
                        task: place,
                        start_s,
                        until_s: start_s + takes_s,
                    });
                }
            }
        }
        Ok(())
    }

    /// Booked runs that were begun at a time or later.
    fn booked_since(&self, since_s: i64) -> Result<Vec<BookedAt>, Failure> {
        let runs = self.store.runs_since(&self.options.plan.name, since_s)?.into_iter();
        let begun = runs.filter(|run| run.why == RunWhy::Booked && run.state != RunState::Missed);
        Ok(begun.map(|run| (run.task, run.start_s)).collect())
    }

    /// The place of a booked run's task: one of the calendar, or one that is added.
    fn task_index(&mut self, task: ScheduleTask) -> usize {
        let known = self.schedule_plan().tasks.iter().position(|known| known.name == task.name);
        known.unwrap_or_else(|| {
            self.options.plan.tasks.push(task.clone());
            self.asked.push(0);
            self.runner.add_task(task)
        })
    }

    /// Stores a run as running, and begins it.
    fn start_run(&mut self, task: usize, why: RunCause) -> Result<(), Failure> {
        let start_s = match why {
            RunCause::Booked { start_s } => start_s,
            _ => now_s(),
        };
        if let Some(rein) = self.options.rein.clone() {
            let known = &self.schedule_plan().tasks[task];
            let takes_s = i64::try_from(known.takes_s()).unwrap_or(i64::MAX / 4);
            match rein.hinders(start_s + takes_s, known.effective_class()) {
                Hindered::No => {}
                Hindered::Silently if matches!(why, RunCause::Booked { .. }) => {
                    self.runner.record_run_end(task);
                    let reason = format!("{REFUSED}: another plan comes into force in it");
                    return self.missed(task, start_s, why, RunState::Missed, &reason);
                }
                Hindered::Silently => {
                    self.runner.record_run_end(task);
                    return Ok(());
                }
                Hindered::By(reason) => {
                    self.runner.record_run_end(task);
                    return self.missed(task, start_s, why, RunState::Missed, &reason);
                }
            }
        }
        let plan = self.schedule_plan();
        let (name, known) = (plan.name.clone(), &plan.tasks[task]);
        let words = match why {
            RunCause::Survey => self.news.survey_words(task),
            RunCause::Calendar | RunCause::Confirm | RunCause::Booked { .. } => {
                known.command_words().unwrap_or_default()
            }
        };
        let takes = if why == RunCause::Survey { known.survey_takes_s() } else { known.takes_s() };
        let run = ScheduleRun {
            task: known.name.clone(),
            start_s,
            why: words::stored_cause(why),
            state: RunState::Running,
            reason: None,
            record: None,
        };
        let words = words::command(words, &name, &run, self.store.path());
        if !self.store.slot_begun(&name, &run)? {
            self.runner.record_run_end(task);
            return Ok(());
        }
        self.running += 1;
        let place = RunIdentity { task, start_s, why };
        let takes = Duration::from_secs(takes);
        let slack = if self.options.rein.is_some() { STRICT.0 } else { SLACK };
        let job = ProcessJob { program: self.options.program.clone(), words, takes, slack, place };
        child::spawn_run(job, self.runs_stop.clone(), self.ended.0.clone());
        Ok(())
    }

    /// Stores how a run ended, and looks at its values for changes.
    fn record_run_end(&mut self, outcome: &ProcessOutcome) -> Result<(), Failure> {
        self.running = self.running.saturating_sub(1);
        let RunIdentity { task, start_s, why } = outcome.place;
        self.runner.record_run_end(task);
        let plan = self.options.plan.clone();
        let name = &plan.tasks[task].name;
        let record = self.record(&plan.name, name, start_s, outcome)?;
        let good = record.as_ref().filter(|record| record.status == RecordStatus::Ok);
        let reason = good.is_none().then(|| self.reason(outcome, record.as_ref()));
        let state = if good.is_some() { RunState::Ok } else { RunState::Failed };
        self.store.slot_ended(&plan.name, name, start_s, state, reason.as_deref())?;
        match good {
            Some(_) => self.count.good += 1,
            None => self.count.without += 1,
        }
        (self.options.say)(&words::run_line(name, why, good, reason.as_deref()));
        if why == RunCause::Survey {
            return self.news.explained(&mut self.store, task, record.as_ref(), reason.as_deref());
        }
        if let Some(record) = good {
            self.watch_run_values(task, why, record)?;
        }
        if matches!(why, RunCause::Booked { .. }) {
            return Ok(());
        }
        self.news.run_ended(&mut self.store, task, now_s())
    }

    /// The record of a run; one that its own process could not keep is kept now.
    fn record(
        &mut self,
        plan: &str,
        task: &str,
        start_s: i64,
        outcome: &ProcessOutcome,
    ) -> Result<Option<Record>, Failure> {
        let kept = self.store.find_run(plan, task, start_s)?.and_then(|run| run.record);
        if let Some(id) = kept {
            return self.store.stored(&id);
        }
        let Ok(record) = Record::from_json(&outcome.printed) else { return Ok(None) };
        self.store.put_record(&record)?;
        Ok(Some(record))
    }

    fn reason(&self, outcome: &ProcessOutcome, record: Option<&Record>) -> String {
        let failure = record.and_then(|record| record.failure.as_ref());
        match (failure, outcome.code) {
            _ if self.stop.is_requested() => "the schedule was ended during it".to_owned(),
            _ if outcome.late && self.options.rein.is_some() => {
                "it was not over when its slot was".to_owned()
            }
            _ if outcome.late => "it took a minute longer than the plan says".to_owned(),
            (Some(failure), _) => failure.to_string(),
            (None, _) if !outcome.said.is_empty() => outcome.said.clone(),
            (None, Some(code)) => format!("it ended with {code} and no result"),
            (None, None) => "it was killed".to_owned(),
        }
    }

    /// Adds the values of a good run to the watched series, and acts on changes in them.
    fn watch_run_values(
        &mut self,
        task: usize,
        why: RunCause,
        record: &Record,
    ) -> Result<(), Failure> {
        let plan = self.options.plan.clone();
        let at_s = record.started_at.unix_millis() as f64 / 1000.0;
        let id = record.id.to_string();
        let values: Vec<SeriesValue> = linerate_core::schedule::followed(record)
            .into_iter()
            .map(|(what, value)| SeriesValue {
                task: plan.tasks[task].name.clone(),
                metric: what.series_key(),
                at_s,
                value,
                record: id.clone(),
            })
            .collect();
        let findings = self.watches.check_values(&plan, &values);
        if why == RunCause::Calendar {
            self.asked[task] = 0;
        }
        if !findings.changes.is_empty() {
            self.count.changes += 1;
            let further = self.asked[task];
            let asks = self.news.changed(
                &mut self.store,
                task,
                record,
                further,
                &findings.changes,
                now_s(),
            )?;
            if asks {
                self.runner.request_run(task, RunCause::Survey);
            }
        } else if findings.suspected && self.asked[task] < FURTHER_RUNS {
            self.asked[task] += 1;
            self.runner.request_run(task, RunCause::Confirm);
        }
        Ok(())
    }

    /// Makes the alerts of new events, and delivers those that are due.
    fn send_alerts(&mut self, now: MonoTime) -> Result<(), Failure> {
        if !self.post.has_outputs() {
            return Ok(());
        }
        let now_s = now_s();
        self.news.make_alerts(&mut self.store, &self.post.output_keys(), now, now_s)?;
        self.post.deliver_due_alerts(&mut self.store, now_s, &self.options.say)
    }

    /// Deletes records and events that are older than they are kept.
    fn forget(&mut self) -> Result<(), Failure> {
        let keep = self.schedule_plan().keep;
        let keep_s = keep.map(|keep| i64::try_from(keep.seconds()).unwrap_or(i64::MAX / 4));
        let (name, now_s) = (self.options.plan.name.clone(), now_s());
        if let Some(keep_s) = keep_s {
            self.store.schedule_forgets(&name, now_s - keep_s)?;
        }
        let kept_s = keep_s.unwrap_or(0).max(HAPPENED_KEPT_S);
        self.store.events_forget(&name, now_s - kept_s).map(drop)
    }
}
