//! The world: time, what happens when, and who is in a run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use linerate_core::mesh::{AgentCalendar, MeshCalendar, MeshPlan};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::agent::Agent;
use super::check::Found;
use super::hub::Hub;

/// 2026-11-24 01:00 UTC, when a period of 5 h begins.
pub(crate) const BEGIN_S: i64 = 1_795_482_000;
pub(crate) const REVISIONS: [u64; 2] = [7, 8];
pub(crate) const GRACE_S: i64 = 2;
/// Until when all have joined and no slot is looked at.
pub(crate) const JOINED_S: i64 = 100;
/// What is on the way is over so long after the last slot that is looked at.
const DELIVERED_S: f64 = 300.0;
/// Verified rows are forgotten this often.
const CHECK_EVERY_S: u64 = 3600;

/// How large it is, and what goes wrong when; seconds since the begin.
pub(crate) struct Scale {
    pub(crate) agents: usize,
    /// Agents that measure each other.
    pub(crate) group: usize,
    pub(crate) every: [&'static str; 2],
    pub(crate) span_s: f64,
    /// Clocks are from so many milliseconds behind to as many ahead.
    pub(crate) apart_ms: u64,
    pub(crate) kills: u64,
    /// Clocks that are set wrong, and right again.
    pub(crate) steps: u64,
    pub(crate) twins: usize,
    pub(crate) bookings: u64,
    /// The hub answers so many requests of a second.
    pub(crate) requests_a_s: u64,
    pub(crate) away_s: Vec<(f64, f64)>,
    /// The hub's store is copied at the first time, and put in place at the second.
    pub(crate) restored_s: Option<(f64, f64)>,
    /// A third of the agents does not reach the hub.
    pub(crate) parted_s: (f64, f64),
    /// When the second plan is at the hub, and in force.
    pub(crate) published_s: f64,
    pub(crate) changes_s: f64,
    /// Results that the spools of a tenth of the agents take.
    pub(crate) spool: usize,
    /// Agents keep names of runs for so long.
    pub(crate) kept_s: i64,
}

/// A revision of the plan.
pub(crate) struct Revision {
    pub(crate) plan: MeshPlan,
    pub(crate) calendar: MeshCalendar,
    pub(crate) of_agent: Vec<AgentCalendar>,
    /// Who is measured by each task of each agent.
    pub(crate) to: Vec<Vec<u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// Look what the calendar says; of a life of the agent.
    Look(usize, u32),
    Talk(usize, u32),
    End(usize, u32, usize),
    Kill(usize),
    Back(usize),
    /// A clock is set by milliseconds.
    Set(usize, i64),
    /// A second program from a copy of an agent's store, and its end.
    Twin(usize),
    TwinEnds(usize),
    Book,
    Copied,
    Restored,
    Check,
}

pub(crate) struct World {
    pub(crate) scale: Scale,
    pub(crate) revisions: Vec<Revision>,
    pub(crate) draw: Xoshiro256PlusPlus,
    queue: BinaryHeap<Reverse<(u64, u64, Event)>>,
    order: u64,
    /// Programs: first one for each agent, then twins.
    pub(crate) agents: Vec<Agent>,
    /// Until when each agent is in a run, microseconds, and whose run that is.
    pub(crate) busy: Vec<(u64, usize)>,
    pub(crate) hub: Hub,
    pub(crate) now: u64,
    pub(crate) found: Found,
    /// No clock is compared with the hub's.
    pub(crate) believes_its_clock: bool,
}

fn plan(scale: &Scale, at: usize) -> MeshPlan {
    let agent = |at: usize| {
        format!("[[agent]]\nname = \"a{at}\"\naddress = \"10.0.{}.{}\"\n", at / 256, at % 256)
    };
    let agents: String = (0..scale.agents).map(agent).collect();
    let group = |at: usize| {
        let names = (at * scale.group..(at + 1) * scale.group).map(|it| format!("\"a{it}\""));
        let names: Vec<String> = names.collect();
        format!("[[group]]\nname = \"g{at}\"\nagents = [{}]\n", names.join(", "))
    };
    let every = scale.every[at];
    let task = |at: usize| {
        format!(
            "[[task]]\nname = \"rate{at}\"\ngroup = \"g{at}\"\nrun = \"tcp {{to}}\"\n\
             every = \"{every}\"\ntakes = \"14s\"\nways = \"one\"\n"
        )
    };
    let groups = scale.agents / scale.group;
    let (groups, tasks): (String, String) =
        ((0..groups).map(group).collect(), (0..groups).map(task).collect());
    let from = jiff::Timestamp::from_second(BEGIN_S + scale.changes_s as i64).expect("a time");
    let from = if at == 0 { String::new() } else { format!("from = \"{from}\"\n") };
    let text = format!(
        "mesh = \"m\"\nrevision = {}\nmargin = \"2s\"\n{from}{agents}{groups}{tasks}\
         [adhoc]\nseconds_an_hour = 600\n[[adhoc.command]]\nname = \"burst\"\n\
         run = \"tcp {{to}} -t5\"\ntakes = \"14s\"\n",
        REVISIONS[at]
    );
    MeshPlan::from_toml(&text).expect("a plan")
}

fn revision(scale: &Scale, at: usize) -> Revision {
    let plan = plan(scale, at);
    let calendar = MeshCalendar::from_plan(&plan).expect("slots of 16 s fit the period");
    let least = scale.group - 1;
    assert!(calendar.rounds(&plan).iter().all(|it| it.used == Some(least)), "a round robin");
    let mut to = vec![Vec::new(); scale.agents];
    calendar.iter_runs().for_each(|run| to[run.from].push(run.to as u32));
    let of_agent = calendar.of_all(&plan);
    Revision { plan, calendar, of_agent, to }
}

impl World {
    pub(crate) fn new(scale: Scale) -> Self {
        let revisions: Vec<Revision> = (0..2).map(|at| revision(&scale, at)).collect();
        let mut draw = Xoshiro256PlusPlus::seed_from_u64(17);
        let apart = scale.apart_ms as i64;
        let agents = (0..scale.agents)
            .map(|place| {
                Agent::new(place, (draw.next_u64() % (2 * apart as u64 + 1)) as i64 - apart)
            })
            .collect();
        Self {
            busy: vec![(0, 0); scale.agents],
            hub: Hub::new(scale.agents),
            agents,
            scale,
            revisions,
            draw,
            queue: BinaryHeap::new(),
            order: 0,
            // A second after the hour, so that no clock is before it.
            now: 1_000_000,
            found: Found::default(),
            believes_its_clock: false,
        }
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.draw.next_u64() % end
    }

    pub(crate) fn at(&mut self, when: u64, event: Event) {
        self.order += 1;
        self.queue.push(Reverse((when, self.order, event)));
    }

    pub(crate) fn after_s(&mut self, seconds: f64, event: Event) {
        self.at(self.now + (seconds.max(0.0) * 1e6) as u64, event);
    }

    pub(crate) fn now_s(&self) -> f64 {
        self.now as f64 / 1e6
    }

    /// Whether an agent gets an answer of the hub now.
    pub(crate) fn reaches(&mut self, place: usize) -> bool {
        let now_s = self.now_s();
        let within = |(from, to): &(f64, f64)| (*from..*to).contains(&now_s);
        let away = self.scale.away_s.iter().any(within);
        let parted = place.is_multiple_of(3) && within(&self.scale.parted_s);
        !away && !parted && self.hub.has_time(now_s as u64, self.scale.requests_a_s)
    }

    /// What goes wrong, at times that are drawn; between 150 s and the end but for 200 s.
    fn plans_trouble(&mut self) {
        let span = (self.scale.span_s - 350.0) as u64 * 1_000_000;
        let agents = self.scale.agents as u64;
        for _ in 0..self.scale.kills {
            let (agent, when) = (self.below(agents) as usize, 150_000_000 + self.below(span));
            self.at(when, Event::Kill(agent));
        }
        for _ in 0..self.scale.steps {
            let (agent, when) = (self.below(agents) as usize, 150_000_000 + self.below(span));
            let changes = (self.scale.changes_s * 1e6) as u64;
            // A clock that jumps over the change of plans jumps over the end of one.
            if when.abs_diff(changes) < 200_000_000 {
                continue;
            }
            let by = (3 + self.below(60) as i64) * if self.below(2) == 0 { 1000 } else { -1000 };
            self.at(when, Event::Set(agent, by));
            let right = when + 30_000_000 + self.below(60_000_000);
            self.at(right, Event::Set(agent, -by));
        }
        for at in 0..self.scale.twins {
            // Of those that are never parted from the hub, while it is there.
            let agent = 1 + 3 * (at * 7 % (self.scale.agents / 3 - 1));
            let when = 110.0 + at as f64;
            self.after_s(when, Event::Twin(agent));
        }
        for at in 0..self.scale.bookings {
            let when = self.scale.span_s * (at + 1) as f64 / (self.scale.bookings + 1) as f64;
            self.after_s(when, Event::Book);
        }
        if let Some((copied_s, restored_s)) = self.scale.restored_s {
            self.after_s(copied_s, Event::Copied);
            self.after_s(restored_s, Event::Restored);
        }
        let checks = self.scale.span_s as u64 / CHECK_EVERY_S;
        (1..=checks).for_each(|at| self.at(at * CHECK_EVERY_S * 1_000_000, Event::Check));
    }

    /// Lives until the end, and until what is on the way is over; new runs go on, and are looked at
    /// no more.
    pub(crate) fn live(&mut self) {
        (0..self.scale.agents).for_each(|agent| self.begin(agent));
        self.plans_trouble();
        let until = ((self.scale.span_s + DELIVERED_S) * 1e6) as u64;
        while let Some(Reverse((when, ..))) = self.queue.peek() {
            if *when > until {
                return;
            }
            let Some(Reverse((when, _, event))) = self.queue.pop() else { return };
            self.now = when;
            self.happens(event);
        }
    }

    fn happens(&mut self, event: Event) {
        let lives = |world: &Self, agent: usize, life| world.agents[agent].life == life;
        match event {
            // An earlier one took the place of one that comes at another time.
            Event::Look(agent, _) if self.agents[agent].looks_at != self.now => {}
            Event::Talk(agent, _) if self.agents[agent].talks_at != self.now => {}
            Event::Look(agent, life) if lives(self, agent, life) => self.look(agent),
            Event::Talk(agent, life) if lives(self, agent, life) => self.talk(agent),
            Event::End(agent, life, at) if lives(self, agent, life) => self.end(agent, at),
            Event::Look(..) | Event::Talk(..) | Event::End(..) => {}
            Event::Kill(agent) => self.kill(agent),
            Event::Back(agent) => self.begin(agent),
            Event::Set(agent, by_ms) => {
                self.agents[agent].ahead_ms += by_ms;
                self.look(agent);
            }
            Event::Twin(agent) => self.twin(agent),
            Event::TwinEnds(twin) => self.agents[twin].dies(),
            Event::Book => self.book(),
            Event::Copied => self.hub.is_copied(),
            Event::Restored => self.hub.is_restored(),
            Event::Check => self.forget(),
        }
    }

    pub(crate) fn all_have_the_second_plan(&self) -> bool {
        self.agents[..self.scale.agents].iter().all(|agent| agent.known == 2)
    }
}
