//! When each pair of a mesh measures: a function of the plan, and of nothing else.
//!
//! A task's pairs are put into rounds (`rounds`), and each round gets a second of the task's
//! period, counted from 1970-01-01 UTC: the first from that of the round before it on at which no
//! run of it ever comes within the margin of a run that excludes it and has an agent, a site or an
//! uplink in common. What excludes what is as in a schedule. Background runs exclude nothing and
//! begin at a second drawn from the names.

use super::plan::{MeshPlan, MeshTask, Met, Ways};
use super::rounds::{Meeting, Rounds, rounds};
use crate::schedule::{Calendar, Class, RepeatedRun, SchedulePlan, ScheduleTask, Span, hash};

/// Seconds of a slot that a run does not have: two to begin late, two to be ended.
pub const ROOM_S: i64 = 4;

/// A calendar of a plan.
#[derive(Clone, Debug)]
pub struct MeshCalendar {
    tasks: Vec<Placed>,
}

#[derive(Clone, Debug)]
struct Placed {
    class: Class,
    takes_s: i64,
    period_s: i64,
    rounds: Vec<Round>,
    least: usize,
}

#[derive(Clone, Debug)]
struct Round {
    offset_s: i64,
    pairs: Vec<(u32, u32)>,
}

/// A run that repeats: from one agent to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshRun {
    /// The task's place in the plan.
    pub task: usize,
    /// Place of the agent that measures.
    pub from: usize,
    /// Place of the agent that is measured.
    pub to: usize,
    /// Second of the period, counted from 1970-01-01 UTC.
    pub offset_s: i64,
    /// Length of the period.
    pub period_s: i64,
    /// Length of the slot.
    pub takes_s: i64,
}

/// How the pairs of a task came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRounds {
    /// The task's name.
    pub task: String,
    /// Runs of one period.
    pub runs: usize,
    /// Slots that they take; none where runs are in the background.
    pub used: Option<usize>,
    /// The least that any order could take, by the circle method or by what is shared.
    pub least: usize,
}

/// What one agent does.
#[derive(Clone, Debug)]
pub struct AgentCalendar {
    /// Its tasks, one for each other agent: `rate/b`.
    pub plan: SchedulePlan,
    /// When.
    pub calendar: Calendar,
}

/// What the runs of a mesh occupy beside agents: sites and uplinks, by number.
struct Shared<'a> {
    names: Vec<(bool, &'a str)>,
    site: Vec<Option<usize>>,
    uplink: Vec<Option<usize>>,
}

impl<'a> Shared<'a> {
    fn from_plan(plan: &'a MeshPlan) -> Self {
        let mut shared = Self { names: Vec::new(), site: Vec::new(), uplink: Vec::new() };
        for agent in &plan.agents {
            let site = agent.site.as_deref().map(|name| shared.number((true, name)));
            let uplink = agent.uplink.as_deref().map(|name| shared.number((false, name)));
            shared.site.push(site);
            shared.uplink.push(uplink);
        }
        shared
    }

    fn number(&mut self, name: (bool, &'a str)) -> usize {
        let known = self.names.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    /// What a run between two agents occupies beside them.
    fn between(&self, from: u32, to: u32) -> Vec<usize> {
        let (from, to) = (from as usize, to as usize);
        let mut things: Vec<usize> =
            [self.site[from], self.site[to]].into_iter().flatten().collect();
        if self.uplink[from] != self.uplink[to] {
            things.extend([self.uplink[from], self.uplink[to]].into_iter().flatten());
        }
        things.sort_unstable();
        things.dedup();
        things
    }
}

/// A set of agents and of what they share.
#[derive(Clone, Debug)]
struct Set(Vec<u64>);

impl Set {
    fn from_round(round: &[(u32, u32)], agents: usize, shared: &Shared<'_>) -> Self {
        let mut set = Self(vec![0; (agents + shared.names.len()).div_ceil(64)]);
        for (from, to) in round {
            set.add(*from as usize);
            set.add(*to as usize);
            shared.between(*from, *to).into_iter().for_each(|place| set.add(agents + place));
        }
        set
    }

    fn add(&mut self, thing: usize) {
        self.0[thing / 64] |= 1 << (thing % 64);
    }

    fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
}

/// A round that has its place.
struct Fixed {
    task: usize,
    class: Class,
    run: RepeatedRun,
    set: Set,
}

impl MeshCalendar {
    /// Places the runs of a plan.
    /// # Errors
    /// One line that names a task for which its period has no room.
    pub fn from_plan(plan: &MeshPlan) -> Result<Self, String> {
        let shared = Shared::from_plan(plan);
        let mut order: Vec<usize> = (0..plan.tasks.len()).collect();
        // Short periods leave the fewest places; the names decide the rest.
        order.sort_by_key(|at| {
            let task = &plan.tasks[*at];
            (task.every, std::cmp::Reverse(task.takes_s()), task.name.clone())
        });
        let mut tasks: Vec<Option<Placed>> = vec![None; plan.tasks.len()];
        let mut fixed: Vec<Fixed> = Vec::new();
        for at in order {
            let task = &plan.tasks[at];
            tasks[at] = Some(if task.effective_class() == Class::Background {
                background(plan, task)
            } else {
                place_rounds(plan, at, &shared, &mut fixed)?
            });
        }
        Ok(Self { tasks: tasks.into_iter().flatten().collect() })
    }

    /// Every run.
    pub fn iter_runs(&self) -> impl Iterator<Item = MeshRun> + '_ {
        self.tasks.iter().enumerate().flat_map(|(task, placed)| {
            let (takes_s, period_s) = (placed.takes_s, placed.period_s);
            placed.rounds.iter().flat_map(move |round| {
                let offset_s = round.offset_s;
                round.pairs.iter().map(move |(from, to)| {
                    let (from, to) = (*from as usize, *to as usize);
                    MeshRun { task, from, to, offset_s, period_s, takes_s }
                })
            })
        })
    }

    /// How the pairs of each task came out.
    pub fn rounds(&self, plan: &MeshPlan) -> Vec<TaskRounds> {
        let rounds_of_task = |placed: &Placed, task: &MeshTask| TaskRounds {
            task: task.name.clone(),
            runs: placed.rounds.iter().map(|round| round.pairs.len()).sum(),
            used: (placed.class != Class::Background).then_some(placed.rounds.len()),
            least: placed.least,
        };
        let tasks = self.tasks.iter().zip(&plan.tasks);
        tasks.map(|(placed, task)| rounds_of_task(placed, task)).collect()
    }

    /// What an agent does, by its place in the plan.
    pub fn of_agent(&self, plan: &MeshPlan, agent: usize) -> AgentCalendar {
        let runs: Vec<MeshRun> = self.iter_runs().filter(|run| run.from == agent).collect();
        agent_calendar(plan, agent, &runs)
    }

    /// What every agent does, in the plan's order.
    pub fn of_all(&self, plan: &MeshPlan) -> Vec<AgentCalendar> {
        let mut runs = vec![Vec::new(); plan.agents.len()];
        self.iter_runs().for_each(|run| runs[run.from].push(run));
        runs.iter().enumerate().map(|(at, runs)| agent_calendar(plan, at, runs)).collect()
    }
}

/// A schedule of an agent's runs.
fn agent_calendar(plan: &MeshPlan, agent: usize, runs: &[MeshRun]) -> AgentCalendar {
    let seconds = |s: i64| Span(std::time::Duration::from_secs(s.unsigned_abs()));
    let tasks = runs.iter().map(|run| {
        let (task, to) = (&plan.tasks[run.task], &plan.agents[run.to]);
        let name = format!("{}/{}", task.name, to.name);
        let words = plan.command_words(&task.name, &task.run, agent, run.to).join(" ");
        let takes_s = (run.takes_s - ROOM_S).unsigned_abs();
        let every = Some(seconds(run.period_s));
        ScheduleTask {
            every,
            ..ScheduleTask::of_mesh(&name, &words, takes_s, task.effective_class())
        }
    });
    let schedule = SchedulePlan {
        name: format!("{}/{}", plan.mesh, plan.agents[agent].name),
        zone: "UTC".to_owned(),
        keep: None,
        bytes_a_month: None,
        // Further runs that a change would ask for are in nobody's calendar but this one's.
        learn: Some(Span(std::time::Duration::from_secs(u64::from(u32::MAX)))),
        alert: None,
        tasks: tasks.collect(),
    };
    let placed = runs.iter().map(|run| {
        let (period_s, offset_s, takes_s) = (run.period_s, run.offset_s, run.takes_s);
        (plan.tasks[run.task].effective_class(), RepeatedRun { period_s, offset_s, takes_s })
    });
    AgentCalendar { plan: schedule, calendar: Calendar::placed(placed) }
}

fn signed_seconds(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX / 4)
}

fn of_task(plan: &MeshPlan, task: &MeshTask, shared: &Shared<'_>) -> Rounds {
    let number = |at: usize| u32::try_from(at).expect("a plan has 10,000 agents at most");
    let places = |of: Vec<usize>| -> Vec<u32> { of.into_iter().map(number).collect() };
    let met = plan.task_members(task);
    let apart = plan.unreachable_pairs(task, &met);
    let Met { from, to, except } = met;
    let except = except.into_iter().chain(apart).map(|(from, to)| (number(from), number(to)));
    let meeting = Meeting { from: places(from), to: to.map(places), except: except.collect() };
    let between = |from, to| shared.between(from, to);
    rounds(&meeting, task.ways == Ways::Both, shared.names.len(), &between)
}

/// Runs in the background begin when their names say.
fn background(plan: &MeshPlan, task: &MeshTask) -> Placed {
    let none = Shared {
        names: Vec::new(),
        site: vec![None; plan.agents.len()],
        uplink: vec![None; plan.agents.len()],
    };
    let Rounds { rounds, least } = of_task(plan, task, &none);
    let period = task.every.seconds();
    let name = |at: u32| plan.agents[at as usize].name.as_str();
    let rounds = rounds.concat().into_iter().map(|(from, to)| Round {
        offset_s: signed_seconds(hash(&[&plan.mesh, &task.name, name(from), name(to)]) % period),
        pairs: vec![(from, to)],
    });
    Placed {
        class: Class::Background,
        takes_s: signed_seconds(task.takes_s()),
        period_s: signed_seconds(period),
        rounds: rounds.collect(),
        least,
    }
}

/// Gives each round of a task its second.
fn place_rounds(
    plan: &MeshPlan,
    at: usize,
    shared: &Shared<'_>,
    fixed: &mut Vec<Fixed>,
) -> Result<Placed, String> {
    let task = &plan.tasks[at];
    let (class, takes_s) = (task.effective_class(), signed_seconds(task.takes_s()));
    let period_s = signed_seconds(task.every.seconds());
    let margin_s = signed_seconds(plan.margin.seconds());
    let Rounds { rounds, least } = of_task(plan, task, shared);
    let (count, mut placed, mut moved) = (rounds.len(), Vec::new(), 0);
    for pairs in rounds {
        let set = Set::from_round(&pairs, plan.agents.len(), shared);
        let excludes = |other: &&Fixed| other.task == at || !class.beside(other.class);
        let others: Vec<RepeatedRun> = fixed
            .iter()
            .filter(excludes)
            .filter(|other| set.intersects(&other.set))
            .map(|other| other.run)
            .collect();
        let run = loop {
            let run = RepeatedRun { period_s, offset_s: moved % period_s, takes_s };
            let wait = others.iter().filter_map(|other| run.shift_needed_s(*other, margin_s)).max();
            match wait {
                None => break run,
                Some(wait) => moved += wait,
            }
            if moved >= period_s {
                return Err(no_room(task, count, placed.len()));
            }
        };
        placed.push(Round { offset_s: run.offset_s, pairs });
        fixed.push(Fixed { task: at, class, run, set });
    }
    Ok(Placed { class, takes_s, period_s, rounds: placed, least })
}

fn no_room(task: &MeshTask, count: usize, placed: usize) -> String {
    format!(
        "task {:?}: {placed} of its {count} slots of {} s have room in a period of {} s; make every \
         longer, the slot shorter or the group smaller",
        task.name,
        task.takes_s(),
        task.every.seconds()
    )
}

mod gap;
#[cfg(test)]
mod tests;
