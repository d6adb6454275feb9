//! Gaps of a calendar: times at which a run that it does not have disturbs none that it has.

use super::{MeshCalendar, RepeatedRun, Shared, signed_seconds};
use crate::mesh::booking::Wish;
use crate::mesh::plan::MeshPlan;

/// A run of the calendar that hinders, with its task's place and its agents'.
type Other = (RepeatedRun, usize, (u32, u32));

impl MeshCalendar {
    /// The first second from `earliest_s` to `latest_s` at which a run could begin that comes
    /// within the margin of nothing that excludes it and shares an agent, a site or an uplink, nor
    /// of a run of the same task by the same agents.
    pub fn find_free_start(
        &self,
        plan: &MeshPlan,
        wish: &Wish<'_>,
        earliest_s: i64,
        latest_s: i64,
    ) -> Option<i64> {
        let others = self.hindering(plan, wish);
        let margin_s = signed_seconds(plan.margin.seconds());
        let mut start_s = earliest_s;
        while start_s <= latest_s {
            let run = single_run(start_s, wish.what.takes_s);
            let wait =
                others.iter().filter_map(|(other, ..)| run.shift_needed_s(*other, margin_s)).max();
            match wait {
                None => return Some(start_s),
                Some(wait) => start_s += wait,
            }
        }
        None
    }

    /// The run of the calendar, in words, that one at a time would come too near to.
    pub fn conflicting_run(
        &self,
        plan: &MeshPlan,
        wish: &Wish<'_>,
        start_s: i64,
    ) -> Option<String> {
        let margin_s = signed_seconds(plan.margin.seconds());
        let run = single_run(start_s, wish.what.takes_s);
        let others = self.hindering(plan, wish);
        let near = others.iter().find(|(other, ..)| run.shift_needed_s(*other, margin_s).is_some());
        near.map(|(_, task, (from, to))| {
            let name = |at: u32| &plan.agents[at as usize].name;
            format!("{} {} to {}", plan.tasks[*task].name, name(*from), name(*to))
        })
    }

    fn hindering(&self, plan: &MeshPlan, wish: &Wish<'_>) -> Vec<Other> {
        let shared = Shared::from_plan(plan);
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mine = (place(wish.from), place(wish.to));
        let beside = shared.between(mine.0, mine.1);
        let meets = |from: u32, to: u32| {
            let one = [from, to].iter().any(|at| *at == mine.0 || *at == mine.1);
            one || !beside.is_empty()
                && shared.between(from, to).iter().any(|thing| beside.contains(thing))
        };
        let mut found = Vec::new();
        for (task, placed) in self.tasks.iter().enumerate() {
            let excludes = !wish.what.class.beside(placed.class);
            let same = wish.what.task == Some(task);
            let (period_s, takes_s) = (placed.period_s, placed.takes_s);
            for round in placed.rounds.iter().filter(|_| excludes || same) {
                let run = RepeatedRun { period_s, offset_s: round.offset_s, takes_s };
                let hinders = |pair: &(u32, u32)| {
                    (same && *pair == mine) || (excludes && meets(pair.0, pair.1))
                };
                let pair = round.pairs.iter().copied().find(hinders);
                found.extend(pair.map(|pair| (run, task, pair)));
            }
        }
        found
    }
}

/// A run that does not repeat: what repeats after 0 s has with any other the other's period in
/// common.
const fn single_run(offset_s: i64, takes_s: i64) -> RepeatedRun {
    RepeatedRun { period_s: 0, offset_s, takes_s }
}
