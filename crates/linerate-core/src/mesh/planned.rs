//! What the calendar of a mesh has ahead: runs of a day and about how many bytes they move, and the
//! next slots.

use serde::Serialize;

use super::calendar::{MeshCalendar, MeshRun};
use super::plan::{MeshPlan, MeshTask};
use crate::schedule::{Class, ScheduleTask};

/// Slots that are named.
const NEXT_MAX: usize = 12;
const DAY_S: f64 = 86_400.0;
/// What tcp and udp send for without `-t`.
const LOAD_S: u64 = 10;
/// The flag by which a test loads both directions.
const BIDIR: &str = "--bidir";

/// A task's day.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshPlanned"))]
pub struct Planned {
    /// Whether it shares an agent, a site or an uplink with nothing else meanwhile; background runs
    /// do with anything.
    pub alone: bool,
    /// Runs of all its pairs.
    pub runs_a_day: f64,
    /// Seconds between two runs of a pair.
    pub period_s: i64,
    /// Seconds of a slot.
    pub takes_s: i64,
    /// Bytes that they move: as the command says; else by the newest rate of each pair. Null where
    /// nothing is known of any.
    pub bytes_a_day: Option<f64>,
    /// Pairs of which no rate is known yet, and which `bytes_a_day` leaves out.
    pub unknown: usize,
}

/// A slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshNextRun"))]
pub struct NextRun {
    /// The task's place.
    pub task: usize,
    /// Place of the agent that measures.
    pub from: usize,
    /// Place of the one that is measured.
    pub to: usize,
    /// Begin, seconds since 1970-01-01 UTC.
    pub start_s: i64,
    /// Seconds of the slot.
    pub takes_s: i64,
}

/// A day of each task, in the plan's order; `rates` are the newest of the pairs of a task, bit/s.
pub(super) fn planned(
    plan: &MeshPlan,
    runs: &[MeshRun],
    rates: &dyn Fn(usize) -> Vec<f64>,
) -> Vec<Planned> {
    let of_task = |at: usize, task: &MeshTask| {
        let mine = || runs.iter().filter(|run| run.task == at);
        let period_s = i64::try_from(task.every.seconds()).unwrap_or(i64::MAX);
        let (count, a_day) = (mine().count(), DAY_S / period_s as f64);
        let one =
            ScheduleTask::of_mesh(&task.name, &task.run, lasts_s(task), task.effective_class());
        let ways = if task.run.split_whitespace().any(|word| word == BIDIR) { 2.0 } else { 1.0 };
        let (bytes, unknown) = match (one.bytes_a_run(None), one.bytes_a_run(Some(8.0))) {
            (Some(bytes), _) => (Some(bytes * count as f64), 0),
            (None, Some(seconds)) => {
                let rates = rates(at);
                let bytes = rates.iter().sum::<f64>() / 8.0 * seconds;
                ((!rates.is_empty()).then_some(bytes), count.saturating_sub(rates.len()))
            }
            (None, None) => (None, count),
        };
        Planned {
            alone: task.effective_class() == Class::Exclusive,
            runs_a_day: count as f64 * a_day,
            period_s,
            takes_s: i64::try_from(task.takes_s()).unwrap_or(i64::MAX),
            bytes_a_day: bytes.map(|bytes| bytes * a_day * ways),
            unknown,
        }
    };
    plan.tasks.iter().enumerate().map(|(at, task)| of_task(at, task)).collect()
}

/// Seconds that a command without `-t` sends: tcp and udp 10, the others what they take.
fn lasts_s(task: &MeshTask) -> u64 {
    let takes_s = task.takes_s();
    let is_load = matches!(task.run.split_whitespace().next(), Some("tcp" | "udp"));
    if is_load { takes_s.min(LOAD_S) } else { takes_s }
}

/// The next slots of tasks that are not in the background; of those where there are no others.
pub(super) fn next(plan: &MeshPlan, calendar: &MeshCalendar, now_s: i64) -> Vec<NextRun> {
    let quiet = |task: usize| plan.tasks[task].effective_class() == Class::Background;
    let all_quiet = (0..plan.tasks.len()).all(quiet);
    let runs = calendar.iter_runs().filter(|run| all_quiet || !quiet(run.task));
    let at = |run: MeshRun| {
        let MeshRun { task, from, to, offset_s, period_s, takes_s } = run;
        let start_s = now_s + (offset_s - now_s).rem_euclid(period_s);
        NextRun { task, from, to, start_s, takes_s }
    };
    let key = |run: &NextRun| (run.start_s, run.task, run.from, run.to);
    let mut next: Vec<NextRun> = runs.map(at).collect();
    if next.len() > NEXT_MAX {
        next.select_nth_unstable_by_key(NEXT_MAX - 1, key);
        next.truncate(NEXT_MAX);
    }
    next.sort_unstable_by_key(key);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "mesh = \"m\"\nrevision = 1\n\
        [[agent]]\nname = \"a\"\naddress = \"192.0.2.1\"\n\
        [[agent]]\nname = \"b\"\naddress = \"192.0.2.2\"\n\
        [[task]]\nname = \"rate\"\nrun = \"tcp {to} -t5\"\nevery = \"1h\"\ntakes = \"14s\"\n\
        [[task]]\nname = \"paced\"\nrun = \"udp {to} -b8M -t5\"\nevery = \"30m\"\ntakes = \"14s\"\n\
        [[task]]\nname = \"delay\"\nrun = \"ping {to} -c20\"\nevery = \"1m\"\ntakes = \"30s\"\n";

    #[test]
    fn a_day_moves_what_commands_say_and_else_what_was_measured() {
        let plan = MeshPlan::from_toml(PLAN).expect("a plan");
        let calendar = MeshCalendar::from_plan(&plan).expect("room");
        let runs: Vec<MeshRun> = calendar.iter_runs().collect();
        let found = planned(&plan, &runs, &|task| if task == 0 { vec![800e6] } else { vec![] });
        let [rate, paced, delay] = found.as_slice() else { panic!("three tasks") };
        // Two pairs, 24 runs each; 800 Mbit/s for 5 s are 500 MB, of the pair that has a rate.
        assert_eq!((rate.runs_a_day, rate.unknown), (48.0, 1));
        assert_eq!(rate.bytes_a_day, Some(24.0 * 500e6));
        // 8 Mbit/s for 5 s are 5 MB; 96 runs.
        assert_eq!((paced.bytes_a_day, paced.unknown), (Some(96.0 * 5e6), 0));
        // Probes of 120 kbit/s for the 30 s of a slot are 450,000 bytes; 2 x 1440 runs.
        assert_eq!((delay.bytes_a_day, delay.alone), (Some(2880.0 * 450e3), false));
        assert_eq!(planned(&plan, &runs, &|_| vec![])[0].bytes_a_day, None);
        // Without -t a test sends for 10 s of its slot; with --bidir both ways.
        let usual = PLAN.replace("tcp {to} -t5", "tcp {to} --bidir").replace("14s", "30s");
        let plan = MeshPlan::from_toml(&usual).expect("a plan");
        let found = planned(&plan, &runs, &|task| if task == 0 { vec![800e6] } else { vec![] });
        assert_eq!(found[0].bytes_a_day, Some(24.0 * 1000e6 * 2.0));
    }

    #[test]
    fn the_next_slots_are_those_that_disturb_others_in_their_order() {
        let plan = MeshPlan::from_toml(PLAN).expect("a plan");
        let calendar = MeshCalendar::from_plan(&plan).expect("room");
        let now_s = 1_795_478_400;
        let slots = next(&plan, &calendar, now_s);
        assert_eq!(slots.len(), 4, "two pairs of two tasks");
        assert!(slots.is_sorted_by_key(|run| run.start_s) && slots[0].start_s >= now_s);
        assert!(slots.iter().all(|run| run.task != 2 && run.start_s < now_s + 3600));
        let of =
            |it: &MeshRun| (it.task, it.from, it.to) == (slots[0].task, slots[0].from, slots[0].to);
        let run = calendar.iter_runs().find(of).expect("it is the calendar's");
        assert_eq!(slots[0].start_s.rem_euclid(run.period_s), run.offset_s);
    }
}
