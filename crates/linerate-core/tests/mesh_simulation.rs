//! A mesh of 1,000 agents in simulated time: the calendar, the runner, both ends of the talk are
//! the real ones; disks, the network and what a run does are simulated. Clocks differ by up to the
//! margin, agents are killed and come back, the hub is away for a while and loses answers.
//!
//! Nothing may overlap that excludes each other, and each slot of each agent has exactly one row at
//! the hub in the end: a result, or a reason why there is none.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use linerate_core::mesh::{
    AgentCalendar, Ask, Beat, Link, MeshCalendar, MeshPlan, ROOM_S, Seen, Standing, VERSION, judge,
};
use linerate_core::schedule::{Runner, Step};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const AGENTS: usize = 1000;
/// 2026-11-24 01:00 UTC, when a period of 5 h begins.
const BEGIN_S: i64 = 1_795_482_000;
/// What is looked at, and then until every spool is empty.
const SPAN_S: f64 = 1800.0;
const HUB_AWAY_S: (f64, f64) = (600.0, 900.0);
const REVISION: u64 = 7;
const GRACE_S: i64 = 2;

/// When, in microseconds since the begin, and what.
type Queue = BinaryHeap<Reverse<(u64, u64, Event)>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Look what the calendar says; of a life of the agent.
    Look(usize, u32),
    Talk(usize, u32),
    End(usize, u32, usize, i64),
    Kill(usize),
    Back(usize),
}

/// A run's name at an agent: its task, and its begin by the agent's clock.
type Run = (usize, i64);

struct Agent {
    mine: AgentCalendar,
    ahead_s: f64,
    // Of a life.
    life: u32,
    runner: Option<Runner>,
    link: Link,
    looks_at: u64,
    revision: u64,
    // On its disk.
    starts: u64,
    dealt_s: i64,
    rows: HashMap<Run, &'static str>,
    spool: VecDeque<Run>,
}

#[derive(Default)]
struct Hub {
    seen: BTreeMap<usize, Seen>,
    rows: HashMap<(usize, Run), &'static str>,
    again: u64,
}

struct World {
    draw: Xoshiro256PlusPlus,
    queue: Queue,
    order: u64,
    agents: Vec<Agent>,
    /// Until when each agent is in a run, microseconds.
    busy: Vec<u64>,
    to: Vec<Vec<usize>>,
    hub: Hub,
    now: u64,
    runs: u64,
    kills: u64,
    doubles: u64,
}

impl World {
    fn below(&mut self, end: u64) -> u64 {
        self.draw.next_u64() % end
    }

    fn at(&mut self, when: u64, event: Event) {
        self.order += 1;
        self.queue.push(Reverse((when, self.order, event)));
    }

    fn now_s(&self) -> f64 {
        self.now as f64 / 1e6
    }

    fn wall_s(&self, agent: usize) -> f64 {
        BEGIN_S as f64 + self.now_s() + self.agents[agent].ahead_s
    }

    fn begin(&mut self, agent: usize) {
        let wall = self.wall_s(agent).floor() as i64;
        let seed = self.draw.next_u64();
        let now_s = self.now_s();
        let me = &mut self.agents[agent];
        // What a keeper does that finds its store after a kill.
        for (run, state) in &mut me.rows {
            if *state == "running" {
                *state = "lost";
                me.spool.push_back(*run);
            }
        }
        let last = me.rows.keys().map(|run| run.1 + 1).max().unwrap_or(i64::MIN);
        let (plan, calendar) = (me.mine.plan.clone(), me.mine.calendar.clone());
        let dealt = last.max(me.dealt_s);
        me.runner = Some(Runner::new(plan, calendar, wall, Some(dealt)).within(GRACE_S));
        me.link = Link::new(seed, me.revision, now_s);
        me.starts += 1;
        me.life += 1;
        me.looks_at = u64::MAX;
        let life = me.life;
        self.at(self.now, Event::Talk(agent, life));
        self.look(agent);
    }

    fn look(&mut self, agent: usize) {
        let (wall, mono) = (self.wall_s(agent), self.now_s());
        let Some(mut runner) = self.agents[agent].runner.take() else { return };
        for step in runner.at(wall, mono) {
            match step {
                Step::Start { task, .. } => self.start(agent, task, wall.floor() as i64),
                Step::Missed { slot, .. } => {
                    let me = &mut self.agents[agent];
                    let run = (slot.task, slot.start_s);
                    if me.rows.insert(run, "missed").is_none() {
                        me.spool.push_back(run);
                    }
                }
                Step::ClockStepped(by_s) => panic!("no clock was set, and yet by {by_s} s"),
            }
        }
        self.agents[agent].dealt_s = wall.floor() as i64;
        let next_s = runner.next_start_s().expect("a calendar repeats");
        let me = &mut self.agents[agent];
        let wait = if runner.waits() { 1.0 } else { next_s as f64 - wall };
        me.runner = Some(runner);
        let when = self.now + (wait.max(0.0) * 1e6) as u64 + 1;
        let me = &mut self.agents[agent];
        if when < me.looks_at || me.looks_at <= self.now {
            me.looks_at = when;
            let life = me.life;
            self.at(when, Event::Look(agent, life));
        }
    }

    /// A run begins: nobody else may be in one at either end.
    fn start(&mut self, agent: usize, task: usize, start_s: i64) {
        let me = &mut self.agents[agent];
        assert_eq!(me.rows.insert((task, start_s), "running"), None, "begun twice");
        let takes = me.mine.plan.tasks[task].takes_s() as f64;
        let life = me.life;
        // At most as long as the plan says, and then two seconds until it has ended.
        let share = 0.2 + 0.8 * (self.below(1000) as f64 / 999.0);
        let span = (takes + (ROOM_S - GRACE_S) as f64) * share;
        let end = self.now + (span * 1e6) as u64;
        for place in [agent, self.to[agent][task]] {
            assert!(self.busy[place] <= self.now, "{place} is in two runs at {} s", self.now_s());
            self.busy[place] = end;
        }
        self.runs += 1;
        self.at(end, Event::End(agent, life, task, start_s));
    }

    fn end(&mut self, agent: usize, task: usize, start_s: i64) {
        let me = &mut self.agents[agent];
        me.rows.insert((task, start_s), "ok");
        me.spool.push_back((task, start_s));
        me.runner.iter_mut().for_each(|runner| runner.ended(task));
        self.look(agent);
    }

    fn kill(&mut self, agent: usize) {
        self.kills += 1;
        let me = &mut self.agents[agent];
        me.runner = None;
        me.life += 1;
        let back = self.now + 1_000_000 + self.below(120_000_000);
        self.at(back, Event::Back(agent));
    }

    fn talk(&mut self, agent: usize) {
        let now_s = self.now_s();
        let unsent = !self.agents[agent].spool.is_empty();
        let asked = self.agents[agent].link.next(now_s, unsent);
        let away = (HUB_AWAY_S.0..HUB_AWAY_S.1).contains(&now_s);
        // An answer in twenty is lost after the hub has done its part.
        let lost = self.below(20) == 0;
        if let Some(asked) = asked {
            let done = if away { None } else { Some(self.answer(agent, asked)) };
            let me = &mut self.agents[agent];
            match done.filter(|_| !lost) {
                None => me.link.failed(now_s),
                Some(confirmed) => match asked {
                    Ask::Beat => me.link.beaten(now_s, REVISION),
                    Ask::Plan => {
                        me.revision = REVISION;
                        me.link.has_plan(now_s, REVISION);
                    }
                    Ask::Results => {
                        me.spool.drain(..confirmed);
                        me.link.went_well(now_s);
                    }
                },
            }
        }
        let life = self.agents[agent].life;
        let wait = 500_000 + self.below(1000);
        self.at(self.now + wait, Event::Talk(agent, life));
    }

    /// What a hub does; how many results it says are stored.
    fn answer(&mut self, agent: usize, asked: Ask) -> usize {
        let me = &self.agents[agent];
        if asked == Ask::Beat {
            let beat = Beat {
                v: VERSION,
                instance: format!("{agent} {}", me.life),
                starts: me.starts,
                revision: me.revision,
                waiting: me.spool.len() as u64,
                ahead_s: Some(me.ahead_s),
            };
            let known = self.hub.seen.get(&agent);
            let (seen, standing) = judge(known, &beat, BEGIN_S + self.now_s() as i64);
            self.doubles += u64::from(standing == Standing::Double);
            self.hub.seen.insert(agent, seen);
            return 0;
        }
        if asked == Ask::Plan {
            return 0;
        }
        let results: Vec<Run> = me.spool.iter().take(20).copied().collect();
        for run in &results {
            let state = me.rows[run];
            match self.hub.rows.get(&(agent, *run)) {
                Some(known) => {
                    assert_eq!(*known, state);
                    self.hub.again += 1;
                }
                None => drop(self.hub.rows.insert((agent, *run), state)),
            }
        }
        results.len()
    }

    fn run(&mut self, until: u64) {
        while let Some(Reverse((when, ..))) = self.queue.peek() {
            if *when > until {
                return;
            }
            let Some(Reverse((when, _, event))) = self.queue.pop() else { return };
            self.now = when;
            let lives = |world: &Self, agent: usize, life| world.agents[agent].life == life;
            match event {
                Event::Look(agent, life) if lives(self, agent, life) => self.look(agent),
                Event::Talk(agent, life) if lives(self, agent, life) => self.talk(agent),
                Event::End(agent, life, task, start_s) if lives(self, agent, life) => {
                    self.end(agent, task, start_s);
                }
                Event::Kill(agent) => self.kill(agent),
                Event::Back(agent) => self.begin(agent),
                Event::Look(..) | Event::Talk(..) | Event::End(..) => {}
            }
        }
    }
}

fn plan() -> MeshPlan {
    let agent = |at: usize| {
        format!("[[agent]]\nname = \"a{at}\"\naddress = \"10.0.{}.{}\"\n", at / 256, at % 256)
    };
    let agents: String = (0..AGENTS).map(agent).collect();
    let text = format!(
        "mesh = \"m\"\nrevision = {REVISION}\nmargin = \"2s\"\n{agents}[[task]]\nname = \"rate\"\n\
         run = \"tcp {{to}}\"\nevery = \"5h\"\ntakes = \"14s\"\nways = \"one\"\n"
    );
    MeshPlan::from_toml(&text).expect("a plan")
}

/// Clocks are from so many milliseconds behind to as many ahead.
fn world(apart_ms: u64) -> World {
    let plan = plan();
    let calendar = MeshCalendar::of(&plan).expect("999 slots of 16 s are less than 5 h");
    assert_eq!(calendar.rounds(&plan)[0].used, Some(AGENTS - 1));
    let mut to = vec![Vec::new(); AGENTS];
    calendar.runs().for_each(|run| to[run.from].push(run.to));
    let mut draw = Xoshiro256PlusPlus::seed_from_u64(17);
    let agents = calendar.of_all(&plan).into_iter().map(|mine| Agent {
        mine,
        ahead_s: (draw.next_u64() % (2 * apart_ms + 1)) as f64 / 1000.0 - apart_ms as f64 / 1000.0,
        life: 0,
        runner: None,
        link: Link::new(0, 0, 0.0),
        looks_at: u64::MAX,
        revision: 0,
        starts: 0,
        dealt_s: BEGIN_S,
        rows: HashMap::new(),
        spool: VecDeque::new(),
    });
    World {
        agents: agents.collect(),
        draw,
        queue: Queue::new(),
        order: 0,
        busy: vec![0; AGENTS],
        to,
        hub: Hub::default(),
        now: 0,
        runs: 0,
        kills: 0,
        doubles: 0,
    }
}

#[test]
fn a_thousand_agents_lose_nothing_double_nothing_and_never_disturb_each_other() {
    // Two seconds apart at the most, as the plan says.
    let mut world = world(1000);
    // A second after the hour, so that no clock is before it.
    world.now = 1_000_000;
    (0..AGENTS).for_each(|agent| world.begin(agent));
    for _ in 0..300 {
        let agent = world.below(AGENTS as u64) as usize;
        let when = 60_000_000 + world.below((SPAN_S as u64 - 400) * 1_000_000);
        // One that is down already is not killed.
        if !world.queue.iter().any(|Reverse((.., event))| *event == Event::Kill(agent)) {
            world.at(when, Event::Kill(agent));
        }
    }
    world.run((SPAN_S * 1e6) as u64);
    let span = world.now;
    // Then until what is on the way is over; new runs go on, and are looked at no more.
    world.run(span + 300_000_000);
    let (mut expected, mut without) = (0_u64, 0_u64);
    for (at, agent) in world.agents.iter().enumerate() {
        let from = BEGIN_S + 3;
        for slot in agent.mine.calendar.slots(from, BEGIN_S + SPAN_S as i64 - 5) {
            let row = |late| world.hub.rows.get(&(at, (slot.task, slot.start_s + late)));
            let rows: Vec<&&str> = (0..=GRACE_S).filter_map(row).collect();
            assert_eq!(
                rows.len(),
                1,
                "agent {at}, {slot:?}: {:?}",
                agent.rows.get(&(slot.task, slot.start_s))
            );
            expected += 1;
            without += u64::from(*rows[0] != "ok");
        }
    }
    println!(
        "{AGENTS} agents, {expected} slots in half an hour, {} runs, {} kills, {without} slots with a \
         reason in place of a result, {} results given twice and kept once, {} beats",
        world.runs,
        world.kills,
        world.hub.again,
        world.hub.seen.len()
    );
    // 500 pairs at each of the 112 multiples of 16 s from 16 to 1792.
    assert_eq!(expected, 56_000);
    assert!(world.kills > 200 && without > 100 && world.hub.again > 1000, "it was quiet");
    assert_eq!(world.doubles, 0, "an agent that came back was taken for a second one");
    assert!(world.agents.iter().all(|agent| agent.revision == REVISION));
}

#[test]
#[should_panic(expected = "is in two runs")]
fn clocks_that_are_further_apart_than_the_plan_says_do_disturb() {
    let mut world = world(9000);
    world.now = 10_000_000;
    (0..AGENTS).for_each(|agent| world.begin(agent));
    world.run(300_000_000);
}
