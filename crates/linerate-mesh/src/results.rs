//! Results that agents give: a run that a plan of the mesh has, at a time that can be, with a
//! record that says that it is of this run. A secret lets an agent speak for itself and for its
//! part of the plan, and for nothing else.

use std::sync::Arc;

use linerate_core::mesh::{MeshPlan, RESULTS_AT_ONCE, RunResult, RunResults};
use linerate_core::record::Record;
use linerate_core::schedule::{RunState, RunWhy, ScheduleRun, followed};
use linerate_store::{AgentRun, TAG_PLAN, TAG_SLOT};

use super::clock::now_s;
use super::refused::HubRefusal;

/// Characters of a task's name and of a reason that are kept.
const NAME_MAX: usize = 100;
const REASON_MAX: usize = 1000;
/// No run began before this program did: 2020-01-01 UTC.
const FIRST_S: i64 = 1_577_836_800;
/// Seconds after the hub's time that a run may begin: a day ahead it is booked, and clocks differ.
const AHEAD_S: i64 = 2 * 86_400;

/// Plans whose results are taken: the newest, and earlier ones, of which an agent that was away may
/// still have runs.
pub(super) struct Plans<'a> {
    pub(super) newest: &'a MeshPlan,
    pub(super) earlier: &'a dyn Fn() -> Arc<Vec<MeshPlan>>,
}

impl Plans<'_> {
    fn contains_run(&self, agent: &str, task: &str, peer: &str, is_booked: bool) -> bool {
        let has = |plan: &MeshPlan| has_run(plan, agent, task, peer, is_booked);
        has(self.newest) || (self.earlier)().iter().any(has)
    }
}

/// True where a plan has a task, or a command that may be booked, from one agent to another. The
/// begin is not compared with the calendar: two versions of this program may place a run at
/// different seconds.
fn has_run(plan: &MeshPlan, agent: &str, task: &str, peer: &str, is_booked: bool) -> bool {
    let (from, to) = (plan.agent_index(agent), plan.agent_index(peer));
    let has_pair = from.is_some() && to.is_some() && from != to;
    let has_task = plan.tasks.iter().any(|known| known.name == task);
    has_pair && (has_task || (is_booked && plan.bookable_of(task).is_some()))
}

/// Reads the runs of a message, up to the first that makes no sense.
pub(super) fn read_all(
    plans: &Plans<'_>,
    agent: &str,
    runs: &RunResults,
    given: &mut Vec<AgentRun>,
) -> Result<(), HubRefusal> {
    if runs.results.len() > RESULTS_AT_ONCE {
        return Err(HubRefusal::Bad(format!("results: {RESULTS_AT_ONCE} at most")));
    }
    for run in &runs.results {
        let (run, record) = read(plans, agent, run)?;
        let followed = record.as_ref().map(followed);
        let figure = followed.as_ref().and_then(|all| all.first());
        let figure = figure.map(|(what, value)| (what.series_key(), *value));
        given.push(AgentRun { agent: agent.to_owned(), run, record, figure });
    }
    Ok(())
}

/// # Errors
/// One line that says why a run cannot be one of an agent's.
fn check_run_result(plans: &Plans<'_>, agent: &str, run: &RunResult) -> Result<(), &'static str> {
    let pair = run
        .task
        .split_once('/')
        .filter(|(task, peer)| !task.is_empty() && !peer.is_empty() && !peer.contains('/'));
    let plain = run.task.len() <= NAME_MAX && !run.task.contains(char::is_control);
    let (task, peer) = pair.filter(|_| plain).ok_or("a task is TASK/AGENT")?;
    if !matches!(run.why, RunWhy::Calendar | RunWhy::Booked) {
        return Err("a run is of the calendar or booked");
    }
    if matches!(run.state, RunState::Running | RunState::Displaced) {
        return Err("a state is ok, failed, missed or lost");
    }
    if !(FIRST_S..=now_s() + AHEAD_S).contains(&run.start_s) {
        return Err("a run begins after 2019, and two days after the hub's time at most");
    }
    if !plans.contains_run(agent, task, peer, run.why == RunWhy::Booked) {
        return Err("no plan of this mesh has that run of this agent");
    }
    Ok(())
}

/// A run as the store keeps it, with its record; that has to say that it is of this run.
fn read(
    plans: &Plans<'_>,
    agent: &str,
    run: &RunResult,
) -> Result<(ScheduleRun, Option<Record>), HubRefusal> {
    let name: String = run.task.chars().filter(|c| !c.is_control()).take(NAME_MAX).collect();
    let bad = |say: &str| HubRefusal::Bad(format!("{name} at {}: {say}", run.start_s));
    check_run_result(plans, agent, run).map_err(&bad)?;
    let record = run.record.as_ref().map(|value| Record::from_json(&value.to_string()));
    let record = record.transpose().map_err(|reason| bad(&format!("its record: {reason}")))?;
    if run.state == RunState::Ok && record.is_none() {
        return Err(bad("a run that is ok has a record"));
    }
    if let Some(record) = &record {
        let tag = |key: &str| record.tags.get(key).map(String::as_str);
        let of_it = tag(TAG_PLAN) == Some(format!("{}/{agent}", plans.newest.mesh).as_str())
            && tag(TAG_SLOT) == Some(run.start_s.to_string().as_str())
            && record.name.as_deref() == Some(&run.task)
            && record.cell.is_none();
        if !of_it {
            return Err(bad("its record is of another run"));
        }
    }
    let plain = |text: &String| text.chars().filter(|c| *c != '\0').take(REASON_MAX).collect();
    let reason = run.reason.as_ref().map(plain);
    let slot = ScheduleRun {
        task: run.task.clone(),
        start_s: run.start_s,
        why: run.why,
        state: run.state,
        reason,
        record: record.as_ref().map(|record| record.id.to_string()),
    };
    Ok((slot, record))
}
