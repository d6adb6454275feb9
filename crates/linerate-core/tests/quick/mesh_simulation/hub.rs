//! The hub: its rows, its store's copy, and the bookings that it gives.

use std::collections::BTreeMap;

use linerate_core::mesh::{Beat, Booking, HOUR_S, LEAD_S, Seen, Standing, Wish, judge_beat};

use super::world::{BEGIN_S, World};

/// A run's name at an agent: its begin, by the agent's clock, the one that is measured, and whether
/// it was booked.
pub(crate) type Run = (i64, u32, bool);
/// How a run ended.
pub(crate) type State = &'static str;

/// A booking as the hub keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) booking: Booking,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) things: Vec<String>,
}

type Bookings = BTreeMap<usize, Vec<Kept>>;
/// Rows, how many were taken, and bookings.
type Copied = (Vec<BTreeMap<Run, State>>, Vec<u64>, Bookings);

#[derive(Default)]
pub(crate) struct Hub {
    pub(crate) seen: Vec<Option<Seen>>,
    pub(crate) rows: Vec<BTreeMap<Run, State>>,
    /// Runs that were ever taken of each agent.
    pub(crate) taken: Vec<u64>,
    /// By the agent that runs them.
    pub(crate) bookings: Bookings,
    copy: Option<Copied>,
    second: (u64, u64),
    pub(crate) next: u64,
    pub(crate) doubles: u64,
    pub(crate) again: u64,
    pub(crate) restored: bool,
}

impl Hub {
    pub(crate) fn new(agents: usize) -> Self {
        Self {
            seen: vec![None; agents],
            rows: vec![BTreeMap::new(); agents],
            taken: vec![0; agents],
            ..Self::default()
        }
    }

    /// Whether it answers one more request of a second.
    pub(crate) fn has_time(&mut self, second: u64, most: u64) -> bool {
        if self.second.0 != second {
            self.second = (second, 0);
        }
        self.second.1 += 1;
        self.second.1 <= most
    }

    pub(crate) fn is_copied(&mut self) {
        self.copy = Some((self.rows.clone(), self.taken.clone(), self.bookings.clone()));
    }

    pub(crate) fn is_restored(&mut self) {
        let (rows, taken, bookings) = self.copy.take().expect("it was copied");
        let lost: u64 = self.taken.iter().sum::<u64>() - taken.iter().sum::<u64>();
        assert!(lost > 0, "nothing came between the copy and now");
        (self.rows, self.taken, self.bookings) = (rows, taken, bookings);
        self.restored = true;
    }

    pub(crate) fn hears(&mut self, place: usize, beat: &Beat, now_s: i64) -> Standing {
        let (seen, standing) = judge_beat(self.seen[place].as_ref(), beat, now_s);
        self.doubles += u64::from(standing == Standing::Double);
        self.seen[place] = Some(seen);
        standing
    }

    /// Keeps runs that are not there yet; how many were.
    pub(crate) fn takes(&mut self, place: usize, results: &[(Run, State)]) -> u64 {
        let mut known = 0;
        for (run, state) in results {
            if self.rows[place].contains_key(run) {
                known += 1;
                continue;
            }
            self.rows[place].insert(*run, state);
            self.taken[place] += 1;
        }
        self.again += known;
        known
    }

    /// Bookings of an agent of which there is no row.
    pub(crate) fn open(&self, place: usize, since_s: i64) -> Vec<Booking> {
        let mine = self.bookings.get(&place).into_iter().flatten();
        let open = mine.filter(|it| {
            let run = (it.booking.start_s, it.to as u32, true);
            it.booking.start_s >= since_s && !self.rows[place].contains_key(&run)
        });
        open.map(|it| it.booking.clone()).collect()
    }

    /// Until when something of a run is occupied, or its hour is spent.
    fn hindered(&self, wish: &Wish<'_>, things: &[String], start_s: i64) -> Option<i64> {
        let takes_s = wish.what.takes_s;
        let near = self.bookings.values().flatten().filter(|it| {
            let other = it.booking.start_s;
            let meets = other < start_s + takes_s + 2 && start_s < other + it.booking.takes_s + 2;
            meets && it.things.iter().any(|thing| things.contains(thing))
        });
        let taken = near.map(|it| it.booking.start_s + it.booking.takes_s + 2).max();
        let hour = start_s.div_euclid(HOUR_S);
        let spent = [wish.from, wish.to].iter().any(|agent| {
            let of = |it: &&Kept| it.from == *agent || it.to == *agent;
            let same = self.bookings.values().flatten().filter(of);
            let same = same.filter(|it| it.booking.start_s.div_euclid(HOUR_S) == hour);
            same.map(|it| it.booking.takes_s).sum::<i64>() + takes_s > 600
        });
        taken.or_else(|| spent.then_some((hour + 1) * HOUR_S))
    }
}

impl World {
    /// A run is booked between two agents that are drawn, when the hub is there.
    pub(crate) fn book(&mut self) {
        let now_s = self.now_s();
        let within = |(from, to): &(f64, f64)| (*from..*to).contains(&now_s);
        // What is lost with a store that is set back may meet what is booked after it: none is
        // under way then.
        let lost = |(copied, restored): (f64, f64)| within(&(copied - 1.0, restored + 120.0));
        if self.scale.away_s.iter().any(within) || self.scale.restored_s.is_some_and(lost) {
            return;
        }
        let agents = self.scale.agents as u64;
        let (from, to) = (self.below(agents) as usize, self.below(agents) as usize);
        if from == to {
            return;
        }
        let now_s = BEGIN_S + now_s as i64;
        let changes_s = BEGIN_S + self.scale.changes_s as i64;
        let published = self.now_s() >= self.scale.published_s;
        for (at, (from_s, until_s)) in [(0, (0, changes_s - 6)), (1, (changes_s, i64::MAX))] {
            if at == 1 && !published {
                return;
            }
            let until_s = if at == 0 && !published { i64::MAX } else { until_s };
            let revision = &self.revisions[at];
            let what = revision.plan.bookable_of("burst").expect("the plan has it");
            let wish = Wish { what, from, to };
            let things = wish.things(&revision.plan);
            let mut next_s = from_s.max(now_s + LEAD_S);
            let latest_s = until_s.min(now_s + 1200) - what.takes_s;
            while let Some(start_s) =
                revision.calendar.find_free_start(&revision.plan, &wish, next_s, latest_s)
            {
                if let Some(until_s) = self.hub.hindered(&wish, &things, start_s) {
                    next_s = until_s;
                    continue;
                }
                self.hub.next += 1;
                let (id, task) = (self.hub.next.to_string(), format!("burst/a{to}"));
                let booking = Booking { id, task, start_s, takes_s: what.takes_s };
                self.hub.bookings.entry(from).or_default().push(Kept { booking, from, to, things });
                return;
            }
        }
    }

    /// The plan that the hub offers.
    pub(crate) fn offered(&self) -> usize {
        if self.now_s() >= self.scale.published_s { 2 } else { 1 }
    }
}
