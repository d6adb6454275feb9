//! What a program that keeps a calendar does next, by the clocks that it is told.
//!
//! A run begins at its slot's second, by wall time. One that cannot begin within [`GRACE_S`] is
//! missed, with the reason; it is not made up for, since a later one comes. Wall time that jumps
//! against the monotonic clock is said and never repeats a run that was done. Further runs that a
//! suspected change asks for, and the survey of a path that changed, take gaps: they begin only
//! where the next run that excludes them is far enough away.

use std::collections::VecDeque;

use super::calendar::{Calendar, MARGIN_S, Slot};
use super::plan::{Class, SchedulePlan, ScheduleTask};

/// A run begins at most so late.
pub const GRACE_S: i64 = 30;
/// Wall time that went on by so much more or less than the monotonic clock was set.
const STEP_S: f64 = 2.0;
/// The same where other hosts go by the same calendar.
const STEP_SHARED_S: f64 = 0.5;
/// A clock that goes back further than this was wrong: the calendar begins anew.
const BACK_S: i64 = 3600;
/// A further run that found no gap for so long is left out.
const EXTRA_WAITS_S: i64 = 1800;
/// A survey that found no gap for so long takes the place of the calendar's next runs: a path that
/// changed is worth a missed run.
const SURVEY_WAITS_S: i64 = 60;
/// Slots that are looked at again after a long sleep.
const LOOK_BACK_S: i64 = 2 * 86_400;
/// How far the calendar is looked up at once.
const PLANNED_S: i64 = 3600;

/// Why a run is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunCause {
    /// The calendar has it.
    Calendar,
    /// A change is suspected.
    Confirm,
    /// A change was found: what limits the path now?
    Survey,
    /// It was booked beside the calendar.
    Booked {
        /// Its begin, which is its name, seconds since 1970-01-01 UTC.
        start_s: i64,
    },
}

/// What is to be done or said.
#[derive(Clone, Debug, PartialEq)]
pub enum RunnerAction {
    /// Begin a run of a task.
    Start {
        /// The task's place in the plan.
        task: usize,
        /// Why.
        why: RunCause,
    },
    /// A run will not be.
    Missed {
        /// What was to run.
        slot: Slot,
        /// Why it was to.
        why: RunCause,
        /// Why it does not.
        reason: Reason,
    },
    /// Wall time went on by this much more than the monotonic clock, seconds.
    ClockStepped(f64),
}

/// Why a run was missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The program or the host was not running, or the clock jumped over it.
    Asleep,
    /// A run of this task still went on that excludes it.
    Busy(usize),
}

#[derive(Clone, Copy, Debug)]
struct Extra {
    task: usize,
    why: RunCause,
    asked_s: i64,
}

/// The keeper of a calendar.
#[derive(Debug)]
pub struct Runner {
    plan: SchedulePlan,
    calendar: Calendar,
    /// Slots that begin before this are dealt with.
    dealt_s: i64,
    clocks: Option<(f64, f64)>,
    /// Slots from `dealt_s` on and before `planned_s`.
    planned: VecDeque<Slot>,
    planned_s: i64,
    due: VecDeque<Slot>,
    /// Runs beside the calendar, at their times.
    booked: Vec<Slot>,
    extra: VecDeque<Extra>,
    /// Tasks of runs that go on, with the run's class.
    running: Vec<(usize, Class)>,
    grace_s: i64,
    step_s: f64,
}

impl Runner {
    /// A keeper that begins at a wall time, seconds since 1970-01-01 UTC. `dealt_s` is when the
    /// last one ended, where there was one: what was to run since then is missed. A time that is
    /// not yet keeps what was begun from being begun again, by a keeper that is back within the
    /// same second and by one that finds the clock set back.
    pub fn new(plan: SchedulePlan, calendar: Calendar, now_s: i64, dealt_s: Option<i64>) -> Self {
        let dealt_s = dealt_s.map_or(now_s, |at| at.max(now_s - LOOK_BACK_S));
        Self {
            plan,
            calendar,
            dealt_s,
            clocks: None,
            planned: VecDeque::new(),
            planned_s: dealt_s,
            due: VecDeque::new(),
            booked: Vec::new(),
            extra: VecDeque::new(),
            running: Vec::new(),
            grace_s: GRACE_S,
            step_s: STEP_S,
        }
    }

    /// The same whose runs begin so late at most: where others have the time behind a slot. A clock
    /// that was set by less is told, too.
    #[must_use]
    pub const fn within(mut self, grace_s: i64) -> Self {
        self.grace_s = grace_s;
        self.step_s = STEP_SHARED_S;
        self
    }

    /// The plan.
    pub const fn schedule_plan(&self) -> &SchedulePlan {
        &self.plan
    }

    /// What is to be done at a wall time and a time of the monotonic clock, seconds.
    pub fn actions_at(&mut self, wall_s: f64, mono_s: f64) -> Vec<RunnerAction> {
        let mut steps = Vec::new();
        if let Some((wall, mono)) = self.clocks.replace((wall_s, mono_s)) {
            let stepped = (wall_s - wall) - (mono_s - mono);
            if stepped.abs() > self.step_s {
                steps.push(RunnerAction::ClockStepped(stepped));
            }
        }
        #[allow(clippy::cast_possible_truncation, reason = "seconds since 1970")]
        let now_s = wall_s.floor() as i64;
        if now_s < self.dealt_s - BACK_S {
            self.begin_anew(now_s);
            self.due.clear();
        }
        if now_s >= self.dealt_s {
            if now_s - LOOK_BACK_S > self.dealt_s {
                self.begin_anew(now_s - LOOK_BACK_S);
            }
            self.plan_until(now_s + 1);
            let due = self.planned.iter().take_while(|slot| slot.start_s <= now_s).count();
            self.due.extend(self.planned.drain(..due));
            self.dealt_s = now_s + 1;
        }
        self.begin_due(now_s, &mut steps);
        self.begin_booked(now_s, &mut steps);
        self.begin_extra(now_s, &mut steps);
        steps
    }

    fn begin_anew(&mut self, from_s: i64) {
        (self.dealt_s, self.planned_s) = (from_s, from_s);
        self.planned.clear();
    }

    /// Looks the calendar up as far as a time.
    fn plan_until(&mut self, until_s: i64) {
        if until_s > self.planned_s {
            let until_s = until_s + PLANNED_S;
            self.planned.extend(self.calendar.slots_between(self.planned_s, until_s));
            self.planned_s = until_s;
        }
    }

    fn begin_due(&mut self, now_s: i64, steps: &mut Vec<RunnerAction>) {
        for slot in std::mem::take(&mut self.due) {
            match self.begins(slot, RunCause::Calendar, now_s) {
                Some(step) => steps.push(step),
                None => self.due.push_back(slot),
            }
        }
    }

    fn begin_booked(&mut self, now_s: i64, steps: &mut Vec<RunnerAction>) {
        for slot in std::mem::take(&mut self.booked) {
            let why = RunCause::Booked { start_s: slot.start_s };
            let due = now_s >= slot.start_s;
            match due.then(|| self.begins(slot, why, now_s)).flatten() {
                Some(step) => steps.push(step),
                None => self.booked.push(slot),
            }
        }
    }

    /// What becomes of a run whose time has come; none where it waits for another to end.
    fn begins(&mut self, slot: Slot, why: RunCause, now_s: i64) -> Option<RunnerAction> {
        match self.hindered_by(slot.task) {
            None if now_s <= slot.start_s + self.grace_s => {
                self.running.push((slot.task, self.plan.tasks[slot.task].effective_class()));
                Some(RunnerAction::Start { task: slot.task, why })
            }
            None => Some(RunnerAction::Missed { slot, why, reason: Reason::Asleep }),
            Some(_) if now_s < slot.start_s + self.grace_s => None,
            Some(other) => Some(RunnerAction::Missed { slot, why, reason: Reason::Busy(other) }),
        }
    }

    fn begin_extra(&mut self, now_s: i64, steps: &mut Vec<RunnerAction>) {
        for extra in std::mem::take(&mut self.extra) {
            if now_s > extra.asked_s + EXTRA_WAITS_S {
                continue;
            }
            let presses = extra.why == RunCause::Survey && now_s >= extra.asked_s + SURVEY_WAITS_S;
            let (class, _) = self.extent(extra.task, extra.why);
            let hindered = self.hinders(extra.task, class).is_some();
            if hindered || !(presses || self.has_gap(extra, now_s)) {
                self.extra.push_back(extra);
                continue;
            }
            steps.push(RunnerAction::Start { task: extra.task, why: extra.why });
            self.running.push((extra.task, class));
        }
    }

    /// A running task beside which this one may not run: itself, or one that it excludes.
    fn hindered_by(&self, task: usize) -> Option<usize> {
        self.hinders(task, self.plan.tasks[task].effective_class())
    }

    fn hinders(&self, task: usize, class: Class) -> Option<usize> {
        let excludes = |other: usize, its: Class| other == task || !class.beside(its);
        let mut running = self.running.iter();
        running.find(|(other, its)| excludes(*other, *its)).map(|(other, _)| *other)
    }

    /// The class and the seconds of a run.
    fn extent(&self, task: usize, why: RunCause) -> (Class, u64) {
        let task = &self.plan.tasks[task];
        match why {
            RunCause::Survey => (task.survey_class(), task.survey_takes_s()),
            RunCause::Calendar | RunCause::Confirm | RunCause::Booked { .. } => {
                (task.effective_class(), task.takes_s())
            }
        }
    }

    /// Whether a run now would end before the next one begins that it excludes.
    fn has_gap(&mut self, extra: Extra, now_s: i64) -> bool {
        let (class, takes) = self.extent(extra.task, extra.why);
        let until_s = now_s + i64::try_from(takes).unwrap_or(i64::MAX / 4) + MARGIN_S;
        self.plan_until(until_s);
        let next = self.planned.iter().take_while(|slot| slot.start_s < until_s);
        let booked = self.booked.iter().filter(|slot| slot.start_s < until_s);
        self.due
            .iter()
            .chain(next)
            .chain(booked)
            .all(|slot| class.beside(self.plan.tasks[slot.task].effective_class()))
    }

    /// A run of a task has ended.
    pub fn record_run_end(&mut self, task: usize) {
        if let Some(at) = self.running.iter().position(|running| running.0 == task) {
            self.running.swap_remove(at);
        }
    }

    /// Asks for one further run of a task at once.
    pub fn request_run(&mut self, task: usize, why: RunCause) {
        let asked_s = self.dealt_s - 1;
        self.extra.push_back(Extra { task, why, asked_s });
    }

    /// Takes a task that the calendar does not have, for runs that are booked; its place.
    pub fn add_task(&mut self, task: ScheduleTask) -> usize {
        self.plan.tasks.push(task);
        self.plan.tasks.len() - 1
    }

    /// Takes a run beside the calendar, at its time.
    pub fn book_slot(&mut self, slot: Slot) {
        self.booked.push(slot);
    }

    /// The wall time of the next run by the calendar or of one that is booked, as far as a week.
    pub fn next_start_s(&mut self) -> Option<i64> {
        if self.planned.is_empty() {
            let mut span_s = PLANNED_S;
            while self.planned.is_empty() && span_s <= 8 * 86_400 {
                self.plan_until(self.dealt_s + span_s);
                span_s *= 4;
            }
        }
        let booked = self.booked.iter().map(|slot| slot.start_s);
        self.planned.front().map(|slot| slot.start_s).into_iter().chain(booked).min()
    }

    /// Whether something waits for a gap or for another run.
    pub fn has_waiting_runs(&self) -> bool {
        !self.due.is_empty() || !self.extra.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Zone;

    const BEGIN_S: i64 = 1_795_478_400;

    fn runner(text: &str, now_s: i64, dealt_s: Option<i64>) -> Runner {
        let plan = SchedulePlan::from_toml(text).expect("a plan");
        let calendar = Calendar::from_plan(&plan, Zone::utc()).expect("places");
        Runner::new(plan, calendar, now_s, dealt_s)
    }

    const HOURLY: &str = "name = \"p\"\n[[task]]\nname = \"a\"\nrun = \"tcp h\"\nevery = \"1h\"\n";

    /// The begin of the hourly task's first run from a time on.
    fn first_run_s(from_s: i64) -> i64 {
        let plan = SchedulePlan::from_toml(HOURLY).expect("a plan");
        let calendar = Calendar::from_plan(&plan, Zone::utc()).expect("places");
        calendar.slots_between(from_s, from_s + 3600)[0].start_s
    }

    fn starts(steps: &[RunnerAction]) -> usize {
        steps.iter().filter(|step| matches!(step, RunnerAction::Start { .. })).count()
    }

    /// Runs a second at a time; a run ends after 12 s. The begins, and what else was said.
    fn run_for_seconds(
        runner: &mut Runner,
        wall: impl Fn(i64) -> f64,
        seconds: i64,
    ) -> (Vec<i64>, Vec<RunnerAction>) {
        let (mut begun, mut said, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for second in 0..seconds {
            ends.retain(|(at, task): &(i64, usize)| {
                let over = *at <= second;
                if over {
                    runner.record_run_end(*task);
                }
                !over
            });
            for step in runner.actions_at(wall(second), second as f64) {
                match step {
                    RunnerAction::Start { task, .. } => {
                        #[allow(clippy::cast_possible_truncation, reason = "whole seconds")]
                        begun.push(wall(second) as i64);
                        ends.push((second + 12, task));
                    }
                    other => said.push(other),
                }
            }
        }
        (begun, said)
    }

    #[test]
    fn a_day_has_each_run_once_at_its_second() {
        let mut runner = runner(HOURLY, BEGIN_S, None);
        let (begun, said) = run_for_seconds(&mut runner, |s| (BEGIN_S + s) as f64, 86_400);
        let wanted: Vec<i64> = (0..24).map(|hour| first_run_s(BEGIN_S) + 3600 * hour).collect();
        assert_eq!((begun, said), (wanted, Vec::new()));
    }

    #[test]
    fn what_was_to_run_while_nobody_was_there_is_missed_and_not_made_up_for() {
        let mut runner = runner(HOURLY, BEGIN_S, Some(BEGIN_S - 3 * 3600));
        let steps = runner.actions_at(BEGIN_S as f64, 0.0);
        let missed = |step: &&RunnerAction| {
            matches!(step, RunnerAction::Missed { reason: Reason::Asleep, .. })
        };
        assert_eq!((steps.iter().filter(missed).count(), steps.len()), (3, 3), "{steps:?}");
    }

    #[test]
    fn what_was_begun_is_not_begun_again_by_a_keeper_that_is_back_at_once() {
        let at = first_run_s(BEGIN_S);
        // Killed in the second of the run; back in the same one, or with the clock set back.
        for now_s in [at, at - 600] {
            let mut back = runner(HOURLY, now_s, Some(at + 1));
            let wall = |s: i64| (now_s + s) as f64;
            let (begun, said) = run_for_seconds(&mut back, wall, 4800);
            assert_eq!((begun, said), (vec![at + 3600], Vec::new()));
        }
    }

    #[test]
    fn a_clock_that_is_set_back_repeats_nothing_and_one_set_forward_misses_what_it_jumped_over() {
        let at = first_run_s(BEGIN_S) - BEGIN_S;
        // Ten minutes back just after the run.
        let mut back = runner(HOURLY, BEGIN_S, None);
        let wall = |s: i64| (BEGIN_S + s - if s > at + 60 { 600 } else { 0 }) as f64;
        let (begun, said) = run_for_seconds(&mut back, wall, at + 3600 + 1200);
        assert_eq!(begun, [first_run_s(BEGIN_S), first_run_s(BEGIN_S) + 3600]);
        assert_eq!(said, [RunnerAction::ClockStepped(-600.0)]);
        // Two hours forward, a minute before it.
        let mut forward = runner(HOURLY, BEGIN_S, None);
        let wall = |s: i64| (BEGIN_S + s + if s > at - 60 { 7200 } else { 0 }) as f64;
        let (begun, said) = run_for_seconds(&mut forward, wall, at + 600);
        assert_eq!(begun, [first_run_s(BEGIN_S) + 7200]);
        let missed = |reason| {
            said.iter()
                .filter(
                    |step| matches!(step, RunnerAction::Missed { reason: r, .. } if *r == reason),
                )
                .count()
        };
        assert_eq!((missed(Reason::Asleep), said.len()), (2, 3), "{said:?}");
        // A clock that was a day ahead: the calendar goes on by the right one.
        let mut wrong = runner(HOURLY, BEGIN_S + 86_400, None);
        let wall = |s: i64| (BEGIN_S + s + if s < 5 { 86_400 } else { 0 }) as f64;
        let (begun, _) = run_for_seconds(&mut wrong, wall, 3600);
        assert_eq!(begun, [first_run_s(BEGIN_S)]);
    }

    #[test]
    fn a_run_that_goes_on_for_too_long_makes_the_next_one_missed_by_name() {
        let mut runner = runner(HOURLY, BEGIN_S, None);
        let at = first_run_s(BEGIN_S);
        assert_eq!(starts(&runner.actions_at(at as f64, 0.0)), 1);
        let mut said = Vec::new();
        for s in 1..3700 {
            said.extend(runner.actions_at((at + s) as f64, s as f64));
        }
        assert!(
            matches!(said.as_slice(), [RunnerAction::Missed { reason: Reason::Busy(0), .. }]),
            "{said:?}"
        );
    }

    #[test]
    fn further_runs_take_gaps_and_never_overlap_the_calendar() {
        let text = format!("{HOURLY}[[task]]\nname = \"b\"\nrun = \"tcp h\"\nevery = \"1h\"\n");
        let mut runner = runner(&text, BEGIN_S, None);
        let slots = Calendar::from_plan(runner.schedule_plan(), Zone::utc())
            .expect("places")
            .slots_between(BEGIN_S, BEGIN_S + 3600);
        let [one, two] = slots.as_slice() else { panic!("two runs an hour") };
        // Asked 20 s before the next run, of 30 s: it waits until that has ended.
        let before = two.start_s - 20;
        assert!(before > one.until_s, "the seed of the names keeps them apart");
        assert_eq!(starts(&runner.actions_at(one.start_s as f64, 0.0)), 1);
        runner.record_run_end(one.task);
        let mono = |s: i64| (s - one.start_s) as f64;
        runner.actions_at(before as f64, mono(before));
        runner.request_run(one.task, RunCause::Confirm);
        let mut begun = Vec::new();
        for s in before + 1..two.start_s + 60 {
            if s == two.start_s + 15 {
                runner.record_run_end(two.task);
            }
            let steps = runner.actions_at(s as f64, mono(s));
            begun.extend(steps.into_iter().map(|step| (s, step)));
        }
        let start = |task, why| RunnerAction::Start { task, why };
        assert_eq!(
            begun,
            [
                (two.start_s, start(two.task, RunCause::Calendar)),
                (two.start_s + 15, start(one.task, RunCause::Confirm))
            ]
        );
    }

    #[test]
    fn a_booked_run_begins_at_its_second_or_is_missed_with_its_reason() {
        let mut patient = runner(HOURLY, BEGIN_S, None);
        let at = first_run_s(BEGIN_S);
        let mut other = patient.schedule_plan().tasks[0].clone();
        other.name = "burst".to_owned();
        let burst = patient.add_task(other);
        let slot = |start_s| Slot { task: burst, start_s, until_s: start_s + 14 };
        // A minute after the calendar's run, which is over; and one within it.
        patient.book_slot(slot(at + 60));
        patient.book_slot(slot(at + 5));
        let (begun, said) = run_for_seconds(&mut patient, |s| (BEGIN_S + s) as f64, 3600);
        // The one within begins when that has ended, within its 30 s.
        assert_eq!((begun, said), (vec![at, at + 12, at + 60], Vec::new()));
        let mut late = runner(HOURLY, BEGIN_S, None).within(2);
        let mut other = late.schedule_plan().tasks[0].clone();
        other.name = "burst".to_owned();
        assert_eq!(late.add_task(other), burst);
        late.book_slot(slot(at + 5));
        late.book_slot(slot(at - 100));
        let (begun, said) = run_for_seconds(&mut late, |s| (at - 90 + s) as f64, 200);
        let why = |start_s| RunCause::Booked { start_s };
        let missed = |start_s, reason| RunnerAction::Missed {
            slot: slot(start_s),
            why: why(start_s),
            reason,
        };
        let wanted = [missed(at - 100, Reason::Asleep), missed(at + 5, Reason::Busy(0))];
        assert_eq!((begun, said.as_slice()), (vec![at], &wanted[..]));
    }

    #[test]
    fn a_survey_waits_for_a_gap_and_then_takes_the_place_of_a_run() {
        let text = "name = \"p\"\n[[task]]\nname = \"a\"\nrun = \"tcp h\"\nevery = \"30s\"\n\
                    takes = \"5s\"\n";
        let mut runner = runner(text, BEGIN_S, None);
        runner.actions_at(BEGIN_S as f64, 0.0);
        runner.request_run(0, RunCause::Survey);
        let (mut begun, mut ends) = (Vec::new(), None);
        let mut missed = 0;
        for s in 1..150 {
            if ends == Some(s) {
                runner.record_run_end(0);
            }
            for step in runner.actions_at((BEGIN_S + s) as f64, s as f64) {
                match step {
                    RunnerAction::Start { why, .. } => {
                        ends = Some(s + if why == RunCause::Survey { 40 } else { 4 });
                        begun.push((why, s));
                    }
                    RunnerAction::Missed { reason: Reason::Busy(0), .. } => missed += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
        let survey = begun.iter().find(|(why, _)| *why == RunCause::Survey).expect("it began").1;
        assert!((60..70).contains(&survey), "{begun:?}");
        // Two runs of the calendar fall into its 40 s; one that can begin within its grace does.
        assert!(missed <= 1, "{missed}");
    }
}
