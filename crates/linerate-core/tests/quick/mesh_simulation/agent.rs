//! A program of an agent: what a keeper, its spool and its talk do, with a disk of maps.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use linerate_core::mesh::{
    Ask, Beat, Booking, HubLink, Occupied, ROOM_S, Standing, VERSION, admit_booking,
};
use linerate_core::schedule::{Class, RunCause, Runner, RunnerAction, ScheduleTask, Slot, Span};

use super::hub::{Run, State};
use super::world::{BEGIN_S, Event, GRACE_S, REVISIONS, Revision, World};

/// Results of one message.
const AT_ONCE: usize = 20;
/// A copy of an agent's store runs for so long, seconds.
const TWIN_S: f64 = 120.0;
/// Two programs of one agent may both run until one has heard of the other, microseconds.
const BOTH_RUN: u64 = 180_000_000;

/// A run that goes on: its task, its end by the plan it is of, and its name.
#[derive(Clone, Copy)]
struct Going {
    task: usize,
    run: Run,
}

pub(crate) struct Agent {
    /// Its place in the plan; twins have one.
    pub(crate) place: usize,
    pub(crate) ahead_ms: i64,
    pub(crate) twin: bool,
    alive: bool,
    began: u64,
    // Of a life.
    pub(crate) life: u32,
    runner: Option<(usize, Runner)>,
    going: Vec<Going>,
    link: HubLink,
    /// When it looks and talks next; of a life.
    pub(crate) looks_at: u64,
    pub(crate) talks_at: u64,
    /// Why its clock is not gone by.
    clock: bool,
    double: bool,
    given: Vec<Booking>,
    judged: BTreeSet<String>,
    taken: Vec<Occupied>,
    // On its disk.
    /// Plans that it has.
    pub(crate) known: usize,
    starts: u64,
    dealt_s: i64,
    pub(crate) rows: BTreeMap<Run, (State, bool)>,
    spool: VecDeque<Run>,
    hub_runs: u64,
}

impl Agent {
    pub(crate) fn new(place: usize, ahead_ms: i64) -> Self {
        Self {
            place,
            ahead_ms,
            twin: false,
            alive: false,
            began: 0,
            life: 0,
            runner: None,
            going: Vec::new(),
            link: HubLink::new(0, 0, 0.0),
            looks_at: u64::MAX,
            talks_at: u64::MAX,
            clock: false,
            double: false,
            given: Vec::new(),
            judged: BTreeSet::new(),
            taken: Vec::new(),
            known: 0,
            starts: 0,
            dealt_s: BEGIN_S,
            rows: BTreeMap::new(),
            spool: VecDeque::new(),
            hub_runs: 0,
        }
    }

    /// Is killed: what it had in memory is gone.
    pub(crate) fn dies(&mut self) {
        self.alive = false;
        self.runner = None;
        self.going.clear();
        self.life += 1;
    }

    /// A row of a run that is not begun, or is over.
    fn ends(&mut self, run: Run, state: State) {
        let row = self.rows.entry(run).or_insert(("running", false));
        if row.0 == "running" {
            row.0 = state;
            self.spool.push_back(run);
        }
    }

    /// What the plan before had until another came into force, while nothing ran.
    fn owes(&mut self, before: &Revision, changes_s: i64) {
        let until_s = changes_s - 2 - ROOM_S;
        if self.dealt_s < until_s {
            for slot in before.of_agent[self.place].calendar.slots_between(self.dealt_s, until_s) {
                let to = before.to[self.place][slot.task];
                self.ends((slot.start_s, to, false), "not running");
            }
        }
        self.dealt_s = self.dealt_s.max(changes_s);
    }

    /// What was stored may be so no more.
    fn unconfirms(&mut self) {
        for (run, (state, sent)) in &mut self.rows {
            if std::mem::take(sent) {
                if *state == "ok" {
                    *state = "set back";
                }
                self.spool.push_back(*run);
            }
        }
    }
}

impl World {
    fn wall_s(&self, agent: usize) -> f64 {
        BEGIN_S as f64 + self.now_s() + self.agents[agent].ahead_ms as f64 / 1000.0
    }

    /// A program begins: what a keeper does that finds its store after a kill.
    pub(crate) fn begin(&mut self, agent: usize) {
        let (seed, now_s, now) = (self.below(u64::MAX), self.now_s(), self.now);
        let me = &mut self.agents[agent];
        for (run, (state, _)) in &mut me.rows {
            if *state == "running" {
                *state = "killed";
                me.spool.push_back(*run);
            }
        }
        let last = me.rows.keys().next_back().map_or(i64::MIN, |run| run.0 + 1);
        me.dealt_s = me.dealt_s.max(last);
        let revision = if me.known == 0 { 0 } else { REVISIONS[me.known - 1] };
        me.link = HubLink::new(seed, revision, now_s);
        me.starts += 1;
        me.life += 1;
        me.began = now;
        me.alive = true;
        (me.looks_at, me.talks_at) = (u64::MAX, u64::MAX);
        (me.clock, me.double) = (false, false);
        me.given.clear();
        self.wake(agent);
        self.look(agent);
    }

    pub(crate) fn kill(&mut self, agent: usize) {
        let me = &self.agents[agent];
        // One that begins with a wrong clock runs by it until it has heard its hub.
        if !me.alive || me.ahead_ms.abs() > 1000 {
            return;
        }
        self.found.kills += 1;
        self.agents[agent].dies();
        let back = 1.0 + self.below(120_000) as f64 / 1000.0;
        self.after_s(back, Event::Back(agent));
    }

    /// Another host begins to run from a copy of an agent's store.
    pub(crate) fn twin(&mut self, agent: usize) {
        let me = &self.agents[agent];
        if me.known == 0 || me.runner.is_none() {
            return;
        }
        let mut twin = Agent::new(me.place, -me.ahead_ms);
        (twin.twin, twin.known) = (true, me.known);
        (twin.starts, twin.dealt_s, twin.hub_runs) = (me.starts, me.dealt_s, me.hub_runs);
        (twin.rows, twin.spool) = (me.rows.clone(), me.spool.clone());
        // What ran when it was copied is the other's.
        twin.rows.retain(|_, (state, _)| *state != "running");
        self.agents.push(twin);
        let twin = self.agents.len() - 1;
        self.begin(twin);
        self.after_s(TWIN_S, Event::TwinEnds(twin));
    }

    /// The plan in force at a time by an agent's clock, and until when it is.
    fn in_force(&self, agent: usize, wall_s: f64) -> Option<(usize, i64)> {
        let known = self.agents[agent].known;
        let changes_s = self.revisions[1].plan.from_s();
        match known {
            2 if wall_s >= changes_s as f64 => Some((1, i64::MAX)),
            2 if wall_s < (changes_s - 2 - ROOM_S) as f64 => Some((0, changes_s - 2 - ROOM_S)),
            1 => Some((0, i64::MAX)),
            _ => None,
        }
    }

    /// Ends a keeper whose plan is over, and begins that of the next.
    fn keeps(&mut self, agent: usize, wall_s: f64) {
        let force = self.in_force(agent, wall_s);
        let me = &mut self.agents[agent];
        let over = me.runner.as_ref().is_some_and(|(at, _)| force.is_none_or(|it| it.0 != *at));
        if over && me.going.is_empty() {
            me.runner = None;
            me.dealt_s = me.dealt_s.max(wall_s as i64);
        }
        if let (None, Some((at, _))) = (&me.runner, force) {
            if at == 1 {
                me.owes(&self.revisions[0], self.revisions[1].plan.from_s());
            }
            let mine = &self.revisions[at].of_agent[me.place];
            let (plan, calendar) = (mine.plan.clone(), mine.calendar.clone());
            let runner = Runner::new(plan, calendar, wall_s as i64, Some(me.dealt_s));
            me.runner = Some((at, runner.within(GRACE_S)));
            me.judged.clear();
            me.taken.clear();
        }
    }

    pub(crate) fn look(&mut self, agent: usize) {
        if !self.agents[agent].alive {
            return;
        }
        let (wall, mono) = (self.wall_s(agent), self.now_s());
        self.keeps(agent, wall);
        self.judges(agent, wall as i64);
        let mut wait = 1.0;
        if let Some((at, mut runner)) = self.agents[agent].runner.take() {
            for step in runner.actions_at(wall, mono) {
                self.does(agent, (at, &mut runner), step, wall as i64);
            }
            self.agents[agent].dealt_s = wall as i64 + 1;
            let next_s = runner.next_start_s().expect("a calendar repeats");
            if !runner.has_waiting_runs() {
                // What keeps a life from looking on must not be missed: the plan changes.
                let changes_s = self.revisions[1].plan.from_s();
                let edge =
                    [changes_s - 2 - ROOM_S, changes_s].into_iter().find(|it| *it as f64 > wall);
                wait = edge.unwrap_or(i64::MAX).min(next_s) as f64 - wall;
            }
            self.agents[agent].runner = Some((at, runner));
        } else if self.agents[agent].known == 0 {
            return;
        }
        let when = self.now + (wait.max(0.0) * 1e6) as u64 + 1;
        let me = &mut self.agents[agent];
        if when < me.looks_at || me.looks_at <= self.now {
            me.looks_at = when;
            let life = me.life;
            self.at(when, Event::Look(agent, life));
        }
        self.wake(agent);
    }

    fn does(
        &mut self,
        agent: usize,
        (at, runner): (usize, &mut Runner),
        step: RunnerAction,
        now_s: i64,
    ) {
        match step {
            RunnerAction::Start { task, why } => {
                let start_s = match why {
                    RunCause::Booked { start_s } => start_s,
                    _ => now_s,
                };
                if !self.start(agent, (at, runner), task, start_s) {
                    runner.record_run_end(task);
                }
            }
            RunnerAction::Missed { slot, .. } => {
                let run = self.named(agent, (at, runner), slot.task, slot.start_s);
                self.agents[agent].ends(run, "not running");
            }
            RunnerAction::ClockStepped(_) => self.agents[agent].clock = !self.believes_its_clock,
        }
    }

    fn named(
        &self,
        agent: usize,
        (at, runner): (usize, &Runner),
        task: usize,
        start_s: i64,
    ) -> Run {
        let place = self.agents[agent].place;
        match self.revisions[at].to[place].get(task) {
            Some(to) => (start_s, *to, false),
            None => {
                let name = &runner.schedule_plan().tasks[task].name;
                let to = name.strip_prefix("burst/a").and_then(|to| to.parse().ok());
                (start_s, to.expect("a booked one"), true)
            }
        }
    }

    /// A run begins, if nothing holds it: nobody else may be in one at either end.
    fn start(
        &mut self,
        agent: usize,
        (at, runner): (usize, &Runner),
        task: usize,
        start_s: i64,
    ) -> bool {
        let run = self.named(agent, (at, runner), task, start_s);
        let takes_s = runner.schedule_plan().tasks[task].takes_s() as i64;
        let until_s = self.in_force(agent, start_s as f64).map_or(i64::MIN, |it| it.1);
        let me = &mut self.agents[agent];
        if start_s + takes_s > until_s {
            return false;
        }
        for (held, reason) in [(me.double, "double"), (me.clock, "clock")] {
            if held {
                me.ends(run, reason);
                return false;
            }
        }
        if me.rows.contains_key(&run) {
            return false;
        }
        me.rows.insert(run, ("running", false));
        me.going.push(Going { task, run });
        let (life, place) = (me.life, me.place);
        // At most as long as the plan says, and then two seconds until it has ended.
        let share = 0.2 + 0.8 * (self.below(1000) as f64 / 999.0);
        let span = (takes_s + ROOM_S - GRACE_S) as f64 * share;
        let end = self.now + (span * 1e6) as u64;
        for end_of in [place, run.1 as usize] {
            let (until, owner) = self.busy[end_of];
            if until > self.now {
                let both = owner == place && self.has_twin(place);
                assert!(both, "{end_of} is in two runs at {} s", self.now_s());
                self.found.both_ran += 1;
            }
            self.busy[end_of] = (end.max(until), place);
        }
        self.found.runs += 1;
        self.at(end, Event::End(agent, life, task));
        true
    }

    /// Whether a second program of an agent began a short while ago.
    fn has_twin(&self, place: usize) -> bool {
        let twins = self.agents[self.scale.agents..].iter();
        let mut mine = twins.filter(|it| it.place == place);
        mine.any(|it| self.now < it.began + BOTH_RUN)
    }

    pub(crate) fn end(&mut self, agent: usize, task: usize) {
        let me = &mut self.agents[agent];
        let Some(at) = me.going.iter().position(|it| it.task == task) else { return };
        let run = me.going.swap_remove(at).run;
        me.ends(run, "ok");
        me.runner.iter_mut().for_each(|(_, runner)| runner.record_run_end(task));
        let limit = self.scale.spool;
        let me = &mut self.agents[agent];
        // A small spool: the oldest results go first, that they were made stays.
        if me.place.is_multiple_of(10) {
            let kept = me.spool.iter().filter(|run| me.rows[run].0 == "ok").count();
            let oldest = me.spool.iter().find(|run| me.rows[run].0 == "ok").copied();
            if let Some(oldest) = oldest.filter(|_| kept > limit) {
                me.rows.insert(oldest, ("spool full", false));
            }
        }
        self.look(agent);
    }

    /// Looks at what it was given, by its plan.
    fn judges(&mut self, agent: usize, now_s: i64) {
        let Some((at, mut runner)) = self.agents[agent].runner.take() else { return };
        let until_s = self.in_force(agent, now_s as f64).map_or(i64::MIN, |it| it.1);
        let me = &mut self.agents[agent];
        let revision = &self.revisions[at];
        for booking in me.given.clone() {
            if booking.start_s >= until_s || !me.judged.insert(booking.id.clone()) {
                continue;
            }
            let to = booking.task.strip_prefix("burst/a").and_then(|to| to.parse().ok());
            let run = (booking.start_s, to.expect("the hub's names"), true);
            if me.rows.contains_key(&run) {
                continue;
            }
            if booking.start_s + GRACE_S < now_s {
                me.ends(run, "unheard");
                continue;
            }
            let (plan, calendar) = (&revision.plan, &revision.calendar);
            match admit_booking(plan, calendar, me.place, &booking, &me.taken) {
                Err(reason) => panic!("a booking of the hub was refused: {reason}"),
                Ok(wish) => {
                    let Booking { start_s, takes_s, .. } = booking;
                    me.taken.push(Occupied { start_s, takes_s, class: Class::Exclusive });
                    let task = runner.add_task(ScheduleTask {
                        name: booking.task.clone(),
                        run: wish.what.run.to_owned(),
                        every: None,
                        at: Vec::new(),
                        takes: Some(Span(std::time::Duration::from_secs(
                            (takes_s - ROOM_S) as u64,
                        ))),
                        class: Some(wish.what.class),
                        rate: None,
                        least_change: 0.05,
                        survey: None,
                    });
                    runner.book_slot(Slot { task, start_s, until_s: start_s + takes_s });
                }
            }
        }
        me.runner = Some((at, runner));
    }

    /// Talks when there is something to say.
    fn wake(&mut self, agent: usize) {
        let (now_s, jitter) = (self.now_s(), self.below(500_000));
        let me = &mut self.agents[agent];
        let due_s = me.link.due_s(now_s, !me.spool.is_empty() && !me.double);
        let when = ((due_s * 1e6) as u64).max(self.now) + jitter;
        if when + 500_000 < me.talks_at || me.talks_at <= self.now {
            me.talks_at = when;
            let life = me.life;
            self.at(when, Event::Talk(agent, life));
        }
    }

    pub(crate) fn talk(&mut self, agent: usize) {
        let now_s = self.now_s();
        let me = &self.agents[agent];
        let place = me.place;
        if let Some(asked) = me.link.next(now_s, !me.spool.is_empty() && !me.double) {
            // An answer in twenty is lost after the hub has done its part.
            let (reaches, lost) = (self.reaches(place), self.below(20) == 0);
            if !reaches {
                self.agents[agent].link.failed(now_s);
            } else {
                match asked {
                    Ask::Beat => self.beats(agent, lost),
                    Ask::Plan if lost => self.agents[agent].link.failed(now_s),
                    Ask::Plan => {
                        let offered = self.offered();
                        let me = &mut self.agents[agent];
                        me.known = offered;
                        me.link.has_plan(now_s, REVISIONS[offered - 1]);
                        self.found.joined_s = match self.found.joined_s {
                            joined if offered == 1 => joined.max(now_s),
                            joined => joined,
                        };
                        self.look(agent);
                    }
                    Ask::Results => self.gives(agent, lost),
                }
            }
        }
        self.agents[agent].talks_at = u64::MAX;
        self.wake(agent);
    }

    fn beats(&mut self, agent: usize, lost: bool) {
        let now_s = self.now_s();
        let wall_s = BEGIN_S + now_s as i64;
        let me = &self.agents[agent];
        let place = me.place;
        let beat = Beat {
            v: VERSION,
            instance: format!("{agent} {}", me.life),
            starts: me.starts,
            revision: me.link.revision(),
            waiting: me.spool.len() as u64,
            ahead_s: None,
        };
        let standing = self.hub.hears(place, &beat, wall_s);
        // As the hub itself does: what began within a day may still lack its row.
        let bookings = self.hub.open(place, wall_s - 86_400);
        let (runs, offered) = (self.hub.taken[place], self.offered());
        let believes = self.believes_its_clock;
        let me = &mut self.agents[agent];
        if lost {
            return me.link.failed(now_s);
        }
        me.link.beaten(now_s, REVISIONS[offered - 1]);
        me.double = standing == Standing::Double;
        me.clock = me.ahead_ms.abs() > 1000 && !believes;
        let new = !bookings.is_empty();
        me.given = bookings;
        self.hub_has(agent, runs, 0);
        if new {
            self.look(agent);
        }
    }

    fn hub_has(&mut self, agent: usize, runs: u64, new: u64) {
        let me = &mut self.agents[agent];
        if runs < me.hub_runs + new {
            self.found.set_back += 1;
            me.unconfirms();
        }
        me.hub_runs = runs;
    }

    fn gives(&mut self, agent: usize, lost: bool) {
        let now_s = self.now_s();
        let me = &self.agents[agent];
        let place = me.place;
        let runs: Vec<Run> = me.spool.iter().take(AT_ONCE).copied().collect();
        let results: Vec<(Run, State)> = runs.iter().map(|run| (*run, me.rows[run].0)).collect();
        let known = self.hub.takes(place, &results);
        let all = self.hub.taken[place];
        let forget_s = BEGIN_S + now_s as i64 - self.scale.kept_s;
        let me = &mut self.agents[agent];
        if lost {
            return me.link.failed(now_s);
        }
        me.link.went_well(now_s);
        me.spool.drain(..runs.len());
        for run in &runs {
            me.rows.entry(*run).and_modify(|row| row.1 = true);
        }
        while me.rows.first_key_value().is_some_and(|(run, row)| run.0 < forget_s && row.1) {
            me.rows.pop_first();
        }
        self.hub_has(agent, all, runs.len() as u64 - known);
    }
}
