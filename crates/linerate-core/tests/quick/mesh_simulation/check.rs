//! Whether each slot and each booking has exactly one row at the hub, and what rows there are.

use std::collections::BTreeMap;

use super::agent::Agent;
use super::hub::Run;
use super::world::{BEGIN_S, GRACE_S, JOINED_S, World};

/// Slots are looked at when they are so old: longer than the hub is ever away.
const OLD_S: i64 = 5 * 3600;

/// What was found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) slots: u64,
    pub(crate) booked: u64,
    pub(crate) runs: u64,
    pub(crate) kills: u64,
    pub(crate) again: u64,
    /// Agents that found that the hub's store was set back.
    pub(crate) set_back: u64,
    /// Begins of two programs of one agent beside each other, before the first knew of the second.
    pub(crate) both_ran: u64,
    pub(crate) joined_s: f64,
    ends: BTreeMap<&'static str, u64>,
    /// Until when slots were looked at.
    until_s: i64,
}

impl Found {
    pub(crate) fn of(&self, end: &str) -> u64 {
        self.ends.get(end).copied().unwrap_or(0)
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { slots, booked, runs, kills, again, set_back, both_ran, joined_s, ends, .. } =
            self;
        write!(
            f,
            "{slots} slots and {booked} bookings with one row each: {ends:?}; {runs} runs, 0 overlaps \
             (second programs of an agent beside the first {both_ran}); {kills} kills, {again} results \
             given twice and kept once, {set_back} agents found a store that was set back; all had \
             joined after {joined_s:.1} s"
        )
    }
}

impl World {
    /// Looks at slots from the last time on and before another.
    fn look_back(&mut self, until_s: i64) {
        let from_s = self.found.until_s.max(BEGIN_S + JOINED_S);
        if until_s <= from_s {
            return;
        }
        self.found.until_s = until_s;
        let changes_s = BEGIN_S + self.scale.changes_s as i64;
        // Runs that would not be over six seconds before the next plan are of neither.
        let spans =
            [(0, from_s, until_s.min(changes_s - 6 - 18)), (1, from_s.max(changes_s + 3), until_s)];
        let mut twins = vec![false; self.scale.agents];
        self.agents[self.scale.agents..].iter().for_each(|it| twins[it.place] = true);
        for (place, twin) in twins.iter().enumerate() {
            for (at, from_s, until_s) in spans {
                let revision = &self.revisions[at];
                for slot in revision.of_agent[place].calendar.slots_between(from_s, until_s) {
                    let to = revision.to[place][slot.task];
                    let run = |late| (slot.start_s + late, to, false);
                    let rows = &self.hub.rows[place];
                    let found: Vec<&'static str> =
                        (0..=GRACE_S).filter_map(|late| rows.get(&run(late)).copied()).collect();
                    // Two programs of one agent whose clocks differ name one run twice, at most.
                    let one = found.len() == 1 || *twin && found.len() == 2;
                    assert!(
                        one,
                        "agent {place} to {to} at {}: {found:?}, {:?}",
                        slot.start_s,
                        programs(&self.agents, place, run(0))
                    );
                    self.found.slots += 1;
                    *self.found.ends.entry(found[0]).or_default() += 1;
                }
            }
        }
        self.look_at_bookings(from_s, until_s);
    }

    fn look_at_bookings(&mut self, from_s: i64, until_s: i64) {
        for kept in self.hub.bookings.values().flatten() {
            let start_s = kept.booking.start_s;
            if !(from_s..until_s).contains(&start_s) {
                continue;
            }
            let run = (start_s, kept.to as u32, true);
            let row = self.hub.rows[kept.from].get(&run);
            assert!(row.is_some(), "{kept:?}: {:?}", programs(&self.agents, kept.from, run));
            self.found.booked += 1;
        }
    }

    /// Looks at what is old, and forgets it.
    pub(crate) fn forget(&mut self) {
        let until_s = BEGIN_S + self.now_s() as i64 - OLD_S;
        self.look_back(until_s);
        let keep: Run = (until_s - 10, 0, false);
        for rows in &mut self.hub.rows {
            *rows = rows.split_off(&keep);
        }
        for kept in self.hub.bookings.values_mut() {
            kept.retain(|it| it.booking.start_s >= until_s - 10);
        }
    }

    /// Looks at all slots until the end.
    pub(crate) fn check(&mut self) -> Found {
        self.look_back(BEGIN_S + self.scale.span_s as i64 - 5);
        assert!(self.hub.restored || self.scale.restored_s.is_none());
        self.found.again = self.hub.again;
        std::mem::take(&mut self.found)
    }
}

/// What the programs of an agent know of a run.
fn programs(agents: &[Agent], place: usize, run: Run) -> Vec<(bool, String)> {
    let mine = agents.iter().filter(|it| it.place == place);
    mine.map(|it| (it.twin, format!("{:?}", it.rows.get(&run)))).collect()
}
