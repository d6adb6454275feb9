//! When each task of a plan runs: a function of the plan and of a span of time, and of nothing
//! else.
//!
//! A task of a period begins at the same second of each period, counted from 1970-01-01 UTC. The
//! second is drawn from the names, so that plans of many hosts do not meet, and moved until no two
//! runs that exclude each other ever overlap: with periods P and Q whose greatest common divisor
//! is g, begins o and p, and spans d and e, that is when (p - o) mod g is at least d and at most
//! g - e.
//! Runs by the time of day take the first gap after their time.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::plan::{Class, SchedulePlan, ScheduleTask, time_of_day};

/// Seconds between a run and one that excludes it: ends and beginnings are never to the second.
pub const MARGIN_S: i64 = 2;
/// A run by the time of day begins at most this much later.
pub const LATE_S_MAX: i64 = 15 * 60;
const DAY_S: i64 = 86_400;
/// Days before a span from which on runs by the time of day are placed: each waits for others of
/// some hours at most.
const DAYS_BEFORE: i64 = 2;

/// A time zone, by which `at` is read.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

impl Zone {
    /// Coordinated Universal Time.
    pub const fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// A zone of the IANA's data base as its file has it (RFC 9636).
    /// # Errors
    /// When the file is none.
    pub fn from_tzif(name: &str, file: &[u8]) -> Result<Self, String> {
        TimeZone::tzif(name, file).map(Self).map_err(|error| error.to_string())
    }
}

/// One run to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The task's place in the plan.
    pub task: usize,
    /// Begin, seconds since 1970-01-01 UTC.
    pub start_s: i64,
    /// The latest end.
    pub until_s: i64,
}

/// A calendar of a plan.
#[derive(Clone, Debug)]
pub struct Calendar {
    placed: Vec<PlacedTask>,
    zone: Zone,
}

#[derive(Clone, Debug)]
struct PlacedTask {
    class: Class,
    takes_s: i64,
    when: When,
}

#[derive(Clone, Debug)]
enum When {
    /// Period and second of the period.
    Every(i64, i64),
    At(Vec<jiff::civil::Time>),
}

impl Calendar {
    /// Places the tasks of a plan.
    /// # Errors
    /// One line that names a task for which no second of its period is free.
    pub fn from_plan(plan: &SchedulePlan, zone: Zone) -> Result<Self, String> {
        let mut order: Vec<usize> = (0..plan.tasks.len()).collect();
        // Short periods leave the fewest places; the names decide the rest, whatever the order in
        // the file.
        order.sort_by_key(|at| {
            let task = &plan.tasks[*at];
            (task.every, std::cmp::Reverse(task.takes_s()), task.name.clone())
        });
        let mut placed: Vec<Option<PlacedTask>> = vec![None; plan.tasks.len()];
        for at in order {
            let task = &plan.tasks[at];
            let before: Vec<&PlacedTask> = placed.iter().flatten().collect();
            placed[at] = Some(place_task(&plan.name, task, &before)?);
        }
        Ok(Self { placed: placed.into_iter().flatten().collect(), zone })
    }

    /// One whose runs are placed already: a run of each task, in the plan's order.
    pub(crate) fn placed(runs: impl IntoIterator<Item = (Class, RepeatedRun)>) -> Self {
        let at = |class: Class, run: RepeatedRun| PlacedTask {
            class,
            takes_s: run.takes_s,
            when: When::Every(run.period_s, run.offset_s),
        };
        Self {
            placed: runs.into_iter().map(|(class, run)| at(class, run)).collect(),
            zone: Zone::utc(),
        }
    }

    /// The runs that begin from `from_s` on and before `until_s`, in their order.
    pub fn slots_between(&self, from_s: i64, until_s: i64) -> Vec<Slot> {
        if self.placed.iter().all(|placed| matches!(placed.when, When::Every(..))) {
            let mut slots = self.periodic_slots(from_s, until_s);
            slots.sort_by_key(|slot| (slot.start_s, slot.task));
            return slots;
        }
        let begin = from_s - DAYS_BEFORE * DAY_S;
        let mut fixed = self.periodic_slots(begin, until_s + DAY_S);
        let mut wished = self.wished(begin, until_s);
        wished.sort_by_key(|slot| (slot.start_s, slot.task));
        for wish in wished {
            let class = self.placed[wish.task].class;
            let excluded: Vec<Slot> = fixed
                .iter()
                .filter(|slot| !class.beside(self.placed[slot.task].class))
                .filter(|slot| slot.until_s + MARGIN_S > wish.start_s)
                .filter(|slot| slot.start_s < wish.until_s + LATE_S_MAX + MARGIN_S)
                .copied()
                .collect();
            fixed.extend(first_gap(wish, excluded));
        }
        fixed.retain(|slot| (from_s..until_s).contains(&slot.start_s));
        fixed.sort_by_key(|slot| (slot.start_s, slot.task));
        fixed
    }

    fn periodic_slots(&self, from_s: i64, until_s: i64) -> Vec<Slot> {
        let mut slots = Vec::new();
        for (task, placed) in self.placed.iter().enumerate() {
            let When::Every(period, offset) = placed.when else { continue };
            let first = from_s + (offset - from_s).rem_euclid(period);
            let mut start_s = first;
            while start_s < until_s {
                slots.push(Slot { task, start_s, until_s: start_s + placed.takes_s });
                start_s += period;
            }
        }
        slots
    }

    /// Runs by the time of day, each at its time. A time that a day does not have, when clocks go
    /// forward, is the same span later; one that it has twice is the first of both.
    fn wished(&self, from_s: i64, until_s: i64) -> Vec<Slot> {
        let mut slots = Vec::new();
        let Ok(begin) = Timestamp::from_second(from_s - DAY_S) else { return slots };
        for (task, placed) in self.placed.iter().enumerate() {
            let When::At(times) = &placed.when else { continue };
            let mut day = begin.to_zoned(self.zone.0.clone()).date();
            for _ in 0..(until_s - from_s) / DAY_S + 3 {
                for time in times {
                    let Ok(at) = day.to_datetime(*time).to_zoned(self.zone.0.clone()) else {
                        continue;
                    };
                    let start_s = at.timestamp().as_second();
                    if (from_s..until_s).contains(&start_s) {
                        slots.push(Slot { task, start_s, until_s: start_s + placed.takes_s });
                    }
                }
                let Ok(next) = day.checked_add(1.day()) else { break };
                day = next;
            }
        }
        slots
    }
}

/// The first place from its time on where nothing is that excludes it; none within
/// [`LATE_S_MAX`].
fn first_gap(wish: Slot, mut excluded: Vec<Slot>) -> Option<Slot> {
    excluded.sort_by_key(|slot| slot.start_s);
    let takes = wish.until_s - wish.start_s;
    let mut start_s = wish.start_s;
    for other in excluded {
        if other.start_s >= start_s + takes + MARGIN_S {
            break;
        }
        start_s = start_s.max(other.until_s + MARGIN_S);
    }
    let late = start_s - wish.start_s;
    (late <= LATE_S_MAX).then_some(Slot { start_s, until_s: start_s + takes, ..wish })
}

fn place_task(
    plan: &str,
    task: &ScheduleTask,
    before: &[&PlacedTask],
) -> Result<PlacedTask, String> {
    let takes_s = i64::try_from(task.takes_s()).unwrap_or(i64::MAX / 4);
    let class = task.effective_class();
    let at = |when| PlacedTask { class, takes_s, when };
    let Some(every) = task.every else {
        return Ok(at(When::At(task.at.iter().filter_map(|text| time_of_day(text)).collect())));
    };
    let period = i64::try_from(every.seconds()).unwrap_or(i64::MAX / 4);
    let drawn = i64::try_from(hash(&[plan, &task.name]) % every.seconds()).unwrap_or(0);
    let mut offset = drawn;
    let mut moved = 0;
    while moved < period {
        let collides = before.iter().filter(|other| !class.beside(other.class));
        let run = RepeatedRun { period_s: period, offset_s: offset, takes_s };
        let wait = collides.filter_map(|other| shift_past_task_s(other, run)).max();
        match wait {
            None => return Ok(at(When::Every(period, offset))),
            Some(wait) => {
                moved += wait;
                offset = (offset + wait) % period;
            }
        }
    }
    Err(format!(
        "task {:?}: no place of {takes_s} s is free in its period of {period} s beside the other \
         tasks; make a period longer or give a class that may run beside others",
        task.name
    ))
}

/// Seconds until a run no longer overlaps those of another task; none where it never does.
fn shift_past_task_s(other: &PlacedTask, run: RepeatedRun) -> Option<i64> {
    let When::Every(other_period, other_offset) = other.when else { return None };
    let other =
        RepeatedRun { period_s: other_period, offset_s: other_offset, takes_s: other.takes_s };
    run.shift_needed_s(other, MARGIN_S)
}

/// A run that repeats: at the same second of each period, counted from 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RepeatedRun {
    pub(crate) period_s: i64,
    pub(crate) offset_s: i64,
    pub(crate) takes_s: i64,
}

impl RepeatedRun {
    /// Seconds that it has to be moved by until no run of it comes within `margin_s` of one of the
    /// other; none where none ever does.
    pub(crate) fn shift_needed_s(self, other: Self, margin_s: i64) -> Option<i64> {
        let common = common_divisor(self.period_s, other.period_s);
        let behind = (self.offset_s - other.offset_s).rem_euclid(common);
        let needed = other.takes_s + margin_s;
        if behind < needed {
            return Some(needed - behind);
        }
        (behind > common - self.takes_s - margin_s).then(|| common - behind + needed)
    }
}

const fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// FNV-1a with 64 bits (draft-eastlake-fnv), the words apart by a byte that is in none.
pub(crate) fn hash(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::plan::Span;

    /// 2026-11-24 00:00 UTC.
    const BEGIN_S: i64 = 1_795_478_400;

    fn periodic_task(name: &str, every_s: u64, takes_s: u64, class: Class) -> ScheduleTask {
        let span = |s| Some(Span(std::time::Duration::from_secs(s)));
        ScheduleTask {
            name: name.to_owned(),
            run: "tcp h".to_owned(),
            every: span(every_s),
            at: Vec::new(),
            takes: span(takes_s),
            class: Some(class),
            rate: None,
            least_change: 0.05,
            survey: None,
        }
    }

    fn plan_with_tasks(tasks: Vec<ScheduleTask>) -> SchedulePlan {
        let name = "p".to_owned();
        let zone = "UTC".to_owned();
        SchedulePlan {
            name,
            zone,
            keep: None,
            bytes_a_month: None,
            learn: None,
            alert: None,
            tasks,
        }
    }

    fn overlaps(plan: &SchedulePlan, slots: &[Slot]) -> usize {
        let class = |slot: &Slot| plan.tasks[slot.task].effective_class();
        let mut count = 0;
        for (at, slot) in slots.iter().enumerate() {
            let later = slots[at + 1..].iter().take_while(|other| other.start_s < slot.until_s);
            count += later.filter(|other| !class(slot).beside(class(other))).count();
        }
        count
    }

    #[test]
    fn hashes_are_those_of_the_draft() {
        // The draft's own vectors: of nothing, and of "a", without the byte that parts words.
        assert_eq!(hash(&[]), 0xcbf2_9ce4_8422_2325);
        let a = (0xcbf2_9ce4_8422_2325_u64 ^ 0x61).wrapping_mul(0x0000_0100_0000_01b3);
        assert_eq!(a, 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(&["a"]), (a ^ 0xff).wrapping_mul(0x0000_0100_0000_01b3));
    }

    #[test]
    fn a_task_runs_at_the_same_second_of_each_period() {
        let plan = plan_with_tasks(vec![periodic_task("a", 3600, 30, Class::Exclusive)]);
        let calendar = Calendar::from_plan(&plan, Zone::utc()).expect("one task has a place");
        let slots = calendar.slots_between(BEGIN_S, BEGIN_S + 7 * DAY_S);
        assert_eq!(slots.len(), 7 * 24);
        assert!(slots.windows(2).all(|pair| pair[1].start_s - pair[0].start_s == 3600));
        assert!(slots.iter().all(|slot| slot.until_s - slot.start_s == 30));
    }

    #[test]
    fn what_has_no_place_is_refused_by_name() {
        let tasks = vec![
            periodic_task("a", 60, 40, Class::Exclusive),
            periodic_task("b", 90, 20, Class::Exclusive),
        ];
        // g = 30 s, and 40 s do not fit: the runs would meet every three minutes.
        let error = Calendar::from_plan(&plan_with_tasks(tasks.clone()), Zone::utc())
            .expect_err("no place");
        assert!(error.starts_with("task \"b\": no place of 20 s is free in its period"), "{error}");
        let beside = vec![
            tasks[0].clone(),
            ScheduleTask { class: Some(Class::Background), ..tasks[1].clone() },
        ];
        assert!(Calendar::from_plan(&plan_with_tasks(beside), Zone::utc()).is_ok());
    }

    #[test]
    fn a_time_of_day_is_that_of_its_zone_when_clocks_go_forward_and_back() {
        let daily = |at: &str| ScheduleTask {
            every: None,
            at: vec![at.to_owned()],
            ..periodic_task("d", 60, 30, Class::Exclusive)
        };
        // A zone file of one rule (RFC 9636, version 2 with a POSIX string): central Europe.
        let zone = Zone::from_tzif("Europe/Berlin", &tzif_file_bytes("CET-1CEST,M3.5.0,M10.5.0/3"))
            .expect("a zone");
        let starts = |at: &str, from_s: i64| -> Vec<i64> {
            let calendar = Calendar::from_plan(&plan_with_tasks(vec![daily(at)]), zone.clone())
                .expect("a place");
            calendar
                .slots_between(from_s, from_s + 3 * DAY_S)
                .iter()
                .map(|slot| slot.start_s - from_s)
                .collect()
        };
        // 2026-03-28 00:00 UTC: 02:30 is 01:30 UTC; on the 29th there is no 02:30, and 03:30 is
        // 01:30 UTC; on the 30th it is 00:30 UTC.
        let march = 1_774_656_000;
        assert_eq!(starts("02:30", march), [5400, DAY_S + 5400, 2 * DAY_S + 1800]);
        // 2026-10-24 00:00 UTC: the 25th has 02:30 twice, at 00:30 and 01:30 UTC; the first counts.
        let october = 1_792_800_000;
        assert_eq!(starts("02:30", october), [1800, DAY_S + 1800, 2 * DAY_S + 5400]);
    }

    /// A file with no transitions and a rule.
    fn tzif_file_bytes(rule: &str) -> Vec<u8> {
        let header = |version: u8| {
            let mut bytes = b"TZif".to_vec();
            bytes.push(version);
            bytes.extend([0; 15]);
            // Counts of: UT and standard indicators, leap seconds, transitions, types, characters.
            for count in [0_u32, 0, 0, 0, 1, 4] {
                bytes.extend(count.to_be_bytes());
            }
            bytes.extend(3600_i32.to_be_bytes());
            bytes.extend([0, 0]);
            bytes.extend(b"CET\0");
            bytes
        };
        let mut file = header(b'2');
        file.extend(header(b'2'));
        file.extend(format!("\n{rule}\n").bytes());
        file
    }

    #[test]
    fn a_time_of_day_that_is_taken_waits_for_the_first_gap() {
        let hourly = periodic_task("a", 3600, 600, Class::Exclusive);
        let alone = Calendar::from_plan(&plan_with_tasks(vec![hourly.clone()]), Zone::utc())
            .expect("a place");
        let first = alone.slots_between(BEGIN_S, BEGIN_S + 3600)[0];
        let clock =
            |s: i64| Timestamp::from_second(s).expect("a time").strftime("%H:%M:%S").to_string();
        let daily = ScheduleTask {
            every: None,
            at: vec![clock(first.start_s + 10), clock(first.until_s + MARGIN_S + 5)],
            ..periodic_task("b", 60, 30, Class::Exclusive)
        };
        let both = plan_with_tasks(vec![hourly, daily]);
        let slots = Calendar::from_plan(&both, Zone::utc())
            .expect("places")
            .slots_between(BEGIN_S, BEGIN_S + DAY_S);
        assert_eq!(overlaps(&both, &slots), 0);
        let of_b: Vec<i64> =
            slots.iter().filter(|slot| slot.task == 1).map(|slot| slot.start_s).collect();
        let end = first.until_s + MARGIN_S;
        assert_eq!(of_b, [end, end + 30 + MARGIN_S], "one waits for the hourly, one for the other");
    }

    fn task_list_strategy() -> impl Strategy<Value = Vec<ScheduleTask>> {
        let periods =
            prop::sample::select(vec![60_u64, 90, 300, 600, 900, 3600, 7200, 21_600, 86_400]);
        let class = prop::sample::select(vec![Class::Exclusive, Class::Normal, Class::Background]);
        let one = (periods, 1_u64..50, class, prop::option::of(0_u32..86_400));
        prop::collection::vec(one, 1..8).prop_map(|rows| {
            let task =
                |(at, (every, takes, class, clock)): (usize, (u64, u64, Class, Option<u32>))| {
                    let name = format!("t{at}");
                    let task = periodic_task(&name, every, takes, class);
                    match clock {
                        None => task,
                        Some(s) => {
                            let text = format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
                            ScheduleTask { every: None, at: vec![text], ..task }
                        }
                    }
                };
            rows.into_iter().enumerate().map(task).collect()
        })
    }

    proptest! {
        /// `PROPTEST_CASES=1000000 cargo test --release -p linerate-core --lib runs_that_exclude`
        #[test]
        fn runs_that_exclude_each_other_never_overlap(
            tasks in task_list_strategy(),
            from in 0_i64..10_000_000,
        ) {
            let plan = plan_with_tasks(tasks);
            if let Ok(calendar) = Calendar::from_plan(&plan, Zone::utc()) {
                let from_s = BEGIN_S + from;
                let slots = calendar.slots_between(from_s, from_s + 90_000);
                prop_assert_eq!(overlaps(&plan, &slots), 0);
            }
        }

        #[test]
        fn a_span_in_two_parts_has_the_same_runs(
            tasks in task_list_strategy(),
            from in 0_i64..10_000_000,
            cut in 1_i64..90_000,
        ) {
            if let Ok(calendar) = Calendar::from_plan(&plan_with_tasks(tasks), Zone::utc()) {
                let from_s = BEGIN_S + from;
                let (cut_s, end_s) = (from_s + cut, from_s + 90_000);
                let slots = |from_s, until_s| calendar.slots_between(from_s, until_s);
                let parts = [slots(from_s, cut_s), slots(cut_s, end_s)].concat();
                prop_assert_eq!(parts, slots(from_s, end_s));
            }
        }
    }
}
