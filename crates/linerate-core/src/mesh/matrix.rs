//! How a mesh stands: each pair's newest figure and its age, each agent, and what is in alert.
//!
//! That nothing came is an alert as much as that something was bad: of a pair after three periods,
//! of an agent after three beats.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::booking::BookedRun;
use super::calendar::{MeshCalendar, MeshRun};
use super::incident::{Incident, IncidentKind};
use super::plan::MeshPlan;
use super::planned::{NextRun, Planned, next, planned};
use super::roll::{SILENT_S, Seen};
use crate::schedule::RunState;

/// Periods without a result after which there is no data.
const NO_DATA_PERIODS: i64 = 3;
/// Pairs of one task that are named in an alert.
const NAMED: usize = 3;

/// What the store has of one task from one agent to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellState {
    /// Begin of the last run.
    pub last_s: i64,
    /// How it ended.
    pub state: RunState,
    /// Why it brought no result.
    pub reason: Option<String>,
    /// Begin of the last run with a result.
    pub good_s: Option<i64>,
    /// The figure of that, as its key says.
    pub metric: Option<String>,
    /// Its value.
    pub value: Option<f64>,
    /// Its record.
    pub record: Option<String>,
}

/// What the store has of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentState {
    /// When it joined; none where it has not.
    pub joined_s: Option<i64>,
    /// By its last beat.
    pub seen: Option<Seen>,
}

/// A mesh as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Mesh"))]
pub struct Matrix {
    /// Its name.
    pub mesh: String,
    /// The plan's revision.
    pub revision: u64,
    /// Now, seconds since 1970-01-01 UTC.
    pub now_s: i64,
    /// Agents, in the plan's order.
    pub agents: Vec<Row>,
    /// Tasks, in the plan's order.
    pub tasks: Vec<String>,
    /// One for each task from one agent to another.
    pub cells: Vec<Cell>,
    /// What is in alert, each in a sentence.
    pub alerts: Vec<String>,
    /// Incidents that are open, and those that were over within a day, the newest first.
    pub incidents: Vec<Incident>,
    /// A day of each task, in the plan's order.
    pub planned: Vec<Planned>,
    /// The calendar's next slots, the next first.
    pub next: Vec<NextRun>,
    /// Runs beside the calendar, to come and of the last day, the newest first.
    pub bookings: Vec<BookedRun>,
}

/// An agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshAgent"))]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Seconds since its last beat; null where none came.
    pub heard_s_ago: Option<i64>,
    /// The plan that it has.
    pub revision: Option<u64>,
    /// Results that it keeps.
    pub waiting: Option<u64>,
    /// How far its clock is ahead, seconds.
    pub ahead_s: Option<f64>,
}

/// What one agent measured of another.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshCell"))]
pub struct Cell {
    /// The task's place.
    pub task: usize,
    /// Place of the agent that measures.
    pub from: usize,
    /// Place of the one that is measured.
    pub to: usize,
    /// The figure's key.
    pub metric: Option<String>,
    /// The newest value.
    pub value: Option<f64>,
    /// Seconds since the run that brought it.
    pub age_s: Option<i64>,
    /// Its record.
    pub record: Option<String>,
    /// Why the last run brought no result.
    pub reason: Option<String>,
    /// No result for three periods.
    pub no_data: bool,
    /// An open incident is about a lasting change of it.
    pub changed: bool,
}

/// Cells by task, source and destination.
pub type Cells = BTreeMap<(String, String, String), CellState>;

/// How a mesh stands at a time; `since_s` is when its hub first had a plan.
pub fn matrix(
    plan: &MeshPlan,
    calendar: &MeshCalendar,
    agents: &BTreeMap<String, AgentState>,
    cells: &Cells,
    since_s: i64,
    now_s: i64,
) -> Matrix {
    let row = |agent: &super::Agent| {
        let seen = agents.get(&agent.name).and_then(|state| state.seen.as_ref());
        Row {
            name: agent.name.clone(),
            heard_s_ago: seen.map(|seen| now_s - seen.at_s),
            revision: seen.map(|seen| seen.revision),
            waiting: seen.map(|seen| seen.waiting),
            ahead_s: seen.and_then(|seen| seen.ahead_s),
        }
    };
    let mut found = Matrix {
        mesh: plan.mesh.clone(),
        revision: plan.revision,
        now_s,
        agents: plan.agents.iter().map(row).collect(),
        tasks: plan.tasks.iter().map(|task| task.name.clone()).collect(),
        ..Matrix::default()
    };
    let mut runs: Vec<MeshRun> = calendar.iter_runs().collect();
    runs.sort_by_key(|run| (run.task, run.from, run.to));
    let begin_s = since_s.max(plan.from_s());
    let name = |place: usize| plan.agents[place].name.clone();
    for run in &runs {
        let key = (found.tasks[run.task].clone(), name(run.from), name(run.to));
        let state = cells.get(&key).cloned().unwrap_or_default();
        let quiet = now_s - state.good_s.unwrap_or(begin_s);
        found.cells.push(Cell {
            task: run.task,
            from: run.from,
            to: run.to,
            metric: state.metric,
            value: state.value,
            age_s: state.good_s.map(|good| now_s - good),
            record: state.record,
            reason: state.reason,
            no_data: quiet > run.period_s * NO_DATA_PERIODS,
            changed: false,
        });
    }
    found.planned = planned(plan, &runs, &|task| newest_rates(&found.cells, task));
    found.next = next(plan, calendar, now_s);
    found.alerts = alerts(plan, agents, &found);
    found
}

/// The newest rates of the pairs of a task, bit/s.
fn newest_rates(cells: &[Cell], task: usize) -> Vec<f64> {
    let is_rate = |cell: &&Cell| {
        cell.task == task
            && cell.metric.as_ref().is_some_and(|metric| metric.starts_with("goodput_bps"))
    };
    cells.iter().filter(is_rate).filter_map(|cell| cell.value).collect()
}

impl Matrix {
    /// The same with what is booked beside the calendar.
    #[must_use]
    pub fn with_bookings(self, bookings: Vec<BookedRun>) -> Self {
        Self { bookings, ..self }
    }

    /// The same with incidents: cells that changed are marked, and changes are in alert. That there
    /// is no data is in alert without them.
    #[must_use]
    pub fn with_incidents(mut self, incidents: Vec<Incident>) -> Self {
        let open = incidents.iter().filter(|incident| incident.until_s.is_none());
        for incident in open.filter(|incident| incident.kind == IncidentKind::Change) {
            self.alerts.push(incident.sentence.clone());
            for member in &incident.members {
                let place = |name: &str| self.agents.iter().position(|row| row.name == name);
                let task = member.task.as_ref();
                let task = task.and_then(|task| self.tasks.iter().position(|name| name == task));
                let ends = (place(&member.from), member.to.as_deref().and_then(place));
                let is_it = |cell: &&mut Cell| {
                    (Some(cell.task), Some(cell.from), Some(cell.to)) == (task, ends.0, ends.1)
                };
                self.cells.iter_mut().filter(is_it).for_each(|cell| cell.changed = true);
            }
        }
        self.incidents = incidents;
        self
    }
}

/// What is in alert: agents first, then pairs that no agent's silence explains.
fn alerts(plan: &MeshPlan, agents: &BTreeMap<String, AgentState>, matrix: &Matrix) -> Vec<String> {
    let mut alerts = Vec::new();
    let mut silent = BTreeSet::new();
    let apart_s = plan.margin.seconds() as f64 / 2.0;
    for (place, row) in matrix.agents.iter().enumerate() {
        let name = &row.name;
        let state = agents.get(name);
        // Its first beat and its plan come with the next beats.
        let joined_s = state.and_then(|state| state.joined_s);
        let is_new = joined_s.is_some_and(|at| matrix.now_s - at <= SILENT_S);
        match row.heard_s_ago {
            None if is_new => {}
            None => alerts.push(format!("{name} has never joined")),
            Some(ago) if ago > SILENT_S => alerts.push(format!("{name} was not heard for {ago} s")),
            Some(_) => {}
        }
        if row.heard_s_ago.is_none_or(|ago| ago > SILENT_S) {
            silent.insert(place);
            continue;
        }
        if let Some(revision) =
            row.revision.filter(|revision| *revision != plan.revision && !is_new)
        {
            let newest = plan.revision;
            alerts.push(format!("{name} has revision {revision} of the plan, the hub {newest}"));
        }
        if let Some(ahead) = row.ahead_s.filter(|ahead| ahead.abs() > apart_s) {
            alerts.push(format!("the clock of {name} is {ahead:+.1} s from the hub's"));
        }
        let double = state.and_then(|state| state.seen.as_ref()).and_then(|seen| seen.double_s);
        if double.is_some_and(|at| matrix.now_s - at <= SILENT_S) {
            alerts.push(format!("a second program is {name}; it holds"));
        }
    }
    for (task, name) in matrix.tasks.iter().enumerate() {
        let dark = |cell: &&Cell| cell.task == task && cell.no_data && !silent.contains(&cell.from);
        let dark: Vec<&Cell> = matrix.cells.iter().filter(dark).collect();
        let named = dark.iter().take(NAMED).map(|cell| {
            let [from, to] = [cell.from, cell.to].map(|at| matrix.agents[at].name.as_str());
            let why = cell.reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
            format!("{from} to {to}{why}")
        });
        let named: Vec<String> = named.collect();
        if !named.is_empty() {
            let more = dark.len() - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            alerts.push(format!("{name}: no data from {}{more}", named.join(", ")));
        }
    }
    alerts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::Member;

    const PLAN: &str = "mesh = \"m\"\nrevision = 2\n[[agent]]\nname = \"a\"\n\
        address = \"192.0.2.1\"\n[[agent]]\nname = \"b\"\naddress = \"192.0.2.2\"\n[[agent]]\n\
        name = \"c\"\naddress = \"192.0.2.3\"\n[[task]]\nname = \"rate\"\nrun = \"tcp {to}\"\n\
        every = \"5m\"\n";

    fn state_seen_at(at_s: i64, revision: u64, ahead_s: f64) -> AgentState {
        let instance = "x".to_owned();
        let seen = Seen {
            at_s,
            instance,
            starts: 1,
            revision,
            waiting: 0,
            ahead_s: Some(ahead_s),
            double_s: None,
        };
        AgentState { joined_s: Some(0), seen: Some(seen) }
    }

    #[test]
    fn what_is_missing_is_an_alert_with_its_cause_said_once() {
        let plan = MeshPlan::from_toml(PLAN).expect("a plan");
        let calendar = MeshCalendar::from_plan(&plan).expect("room");
        let now = 10_000;
        let agents: BTreeMap<String, AgentState> = [
            ("a".to_owned(), state_seen_at(now - 5, 2, 0.1)),
            ("b".to_owned(), state_seen_at(now - 31, 2, 0.0)),
            ("c".to_owned(), state_seen_at(now - 1, 1, -1.5)),
        ]
        .into();
        let good = |age: i64| CellState {
            last_s: now - age,
            state: RunState::Ok,
            good_s: Some(now - age),
            metric: Some("goodput_bps/up".to_owned()),
            value: Some(1e9),
            ..CellState::default()
        };
        let key = |from: &str, to: &str| ("rate".to_owned(), from.to_owned(), to.to_owned());
        let refused = CellState { reason: Some("refused".to_owned()), ..good(901) };
        let cells: Cells = [
            (key("a", "b"), good(900)),
            (key("a", "c"), refused),
            (key("c", "a"), good(10)),
            (key("c", "b"), good(10)),
        ]
        .into();
        let found = matrix(&plan, &calendar, &agents, &cells, 0, now);
        assert_eq!(found.cells.len(), 6);
        assert_eq!(newest_rates(&found.cells, 0), [1e9; 4]);
        assert!(newest_rates(&found.cells, 1).is_empty());
        let [ab, ac] = [&found.cells[0], &found.cells[1]];
        assert_eq!((ab.no_data, ab.age_s, ac.no_data), (false, Some(900), true));
        assert_eq!(
            found.alerts,
            [
                "b was not heard for 31 s",
                "c has revision 1 of the plan, the hub 2",
                "the clock of c is -1.5 s from the hub's",
                "rate: no data from a to c (refused)",
            ]
        );
        let member = Member {
            from: "c".to_owned(),
            to: Some("b".to_owned()),
            task: Some("rate".to_owned()),
            ..Member::default()
        };
        let incident = Incident {
            id: "i".to_owned(),
            kind: IncidentKind::Change,
            opened_s: now,
            since_s: 9000.0,
            until_s: None,
            shared: None,
            hit: 1,
            of: 1,
            members: vec![member],
            confirmed: false,
            survey: None,
            sentence: "it fell".to_owned(),
        };
        let over = Incident { until_s: Some(now), ..incident.clone() };
        let marked = found.clone().with_incidents(vec![over]);
        assert!(marked.cells.iter().all(|cell| !cell.changed) && marked.alerts == found.alerts);
        let marked = found.with_incidents(vec![incident]);
        let changed: Vec<(usize, usize)> = marked
            .cells
            .iter()
            .filter(|cell| cell.changed)
            .map(|cell| (cell.from, cell.to))
            .collect();
        assert_eq!(
            (changed, marked.alerts.last().map(String::as_str)),
            (vec![(2, 1)], Some("it fell"))
        );
        // An agent that has just joined has no plan yet, or was not heard yet (link.rs: a beat each
        // 10 s); later that is an alert.
        let joined = |ago: i64, seen: Option<Seen>| AgentState { joined_s: Some(now - ago), seen };
        let without_plan = |ago| {
            let [a, b] = [state_seen_at(now - 1, 0, 0.0).seen, None].map(|seen| joined(ago, seen));
            let agents = [("a".to_owned(), a), ("b".to_owned(), b)].into();
            matrix(&plan, &calendar, &agents, &BTreeMap::new(), now - 900, now).alerts
        };
        assert_eq!(without_plan(5), ["c has never joined"]);
        assert_eq!(without_plan(900).len(), 3);
        // Right after the first plan nothing is missed yet, but for who has not joined.
        let fresh = matrix(&plan, &calendar, &BTreeMap::new(), &BTreeMap::new(), now - 900, now);
        assert!(fresh.cells.iter().all(|cell| !cell.no_data));
        assert_eq!(fresh.alerts.len(), 3, "{:?}", fresh.alerts);
    }
}
