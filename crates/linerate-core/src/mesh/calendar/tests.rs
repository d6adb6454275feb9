//! Random plans, and all of their runs laid side by side over a whole common period: who occupies
//! what is found anew from the names, and clocks differ by up to the margin.

use std::collections::BTreeMap;
use std::time::Duration;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::mesh::{Agent, Group};

/// All periods divide this, so that what repeats has been seen within it.
const WHOLE_S: i64 = 720;
const PERIODS_S: [u64; 6] = [60, 90, 120, 180, 240, 360];

struct Draw(Xoshiro256PlusPlus);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        let at = usize::try_from(self.below(of.len() as u64)).expect("small");
        of[at]
    }

    fn shared(&mut self, letter: char) -> Option<String> {
        let at = self.below(6);
        (at < 2).then(|| format!("{letter}{at}"))
    }

    fn plan(&mut self) -> MeshPlan {
        let count = 2 + self.below(6);
        let bound = self.below(2) == 0;
        let agents: Vec<Agent> = (0..count)
            .map(|at| Agent {
                name: format!("a{at}"),
                address: Some([192, 0, 2, u8::try_from(at).expect("small")].into()),
                nat: None,
                port: None,
                site: if bound { self.shared('s') } else { None },
                uplink: if bound { self.shared('u') } else { None },
            })
            .collect();
        let mut few: Vec<String> = agents.iter().map(|agent| agent.name.clone()).collect();
        while few.len() > 2 && self.below(2) == 0 {
            let at = usize::try_from(self.below(few.len() as u64)).expect("small");
            few.remove(at);
        }
        let tasks = (0..1 + self.below(3)).map(|at| self.task(at)).collect();
        let groups =
            vec![Group { name: "few".to_owned(), agents: few, to: None, except: Vec::new() }];
        let margin = Span(Duration::from_secs(self.below(4)));
        MeshPlan {
            mesh: "m".to_owned(),
            revision: 1,
            from: None,
            margin,
            agents,
            groups,
            tasks,
            adhoc: None,
            secret: String::new(),
        }
    }

    fn task(&mut self, at: u64) -> MeshTask {
        MeshTask {
            name: format!("t{at}"),
            group: (self.below(2) == 0).then(|| "few".to_owned()),
            run: "tcp {to}".to_owned(),
            every: Span(Duration::from_secs(self.one_of(&PERIODS_S))),
            takes: Some(Span(Duration::from_secs(6 + self.below(9)))),
            class: Some(self.one_of(&[
                Class::Exclusive,
                Class::Exclusive,
                Class::Normal,
                Class::Background,
            ])),
            ways: self.one_of(&[Ways::Both, Ways::One]),
        }
    }
}

/// What a run needs for itself, by name.
fn needs(plan: &MeshPlan, run: MeshRun) -> Vec<String> {
    let (from, to) = (&plan.agents[run.from], &plan.agents[run.to]);
    let mut needs: Vec<String> = [from, to].map(|agent| format!("agent {}", agent.name)).to_vec();
    needs
        .extend([from, to].iter().filter_map(|it| it.site.as_ref()).map(|it| format!("site {it}")));
    if from.uplink != to.uplink {
        let both = [from, to].into_iter().filter_map(|it| it.uplink.as_ref());
        needs.extend(both.map(|it| format!("uplink {it}")));
    }
    needs.sort();
    needs.dedup();
    needs
}

/// Pairs of runs that exclude each other and overlap, with clocks ahead by so many seconds.
fn overlaps(plan: &MeshPlan, runs: &[MeshRun], ahead: &[i64]) -> usize {
    let mut busy: BTreeMap<String, Vec<(i64, i64, Class)>> = BTreeMap::new();
    for run in runs {
        let class = plan.tasks[run.task].effective_class();
        for need in needs(plan, *run) {
            let spans = busy.entry(need).or_default();
            for k in 0..WHOLE_S / run.period_s {
                let start = run.offset_s + k * run.period_s - ahead[run.from];
                spans.push((start, start + run.takes_s, class));
            }
        }
    }
    let mut count = 0;
    for spans in busy.values_mut() {
        // The first runs of the next common period, behind the last of this one.
        let next: Vec<_> = spans
            .iter()
            .map(|(start, end, class)| (start + WHOLE_S, end + WHOLE_S, *class))
            .collect();
        spans.extend(next.into_iter().filter(|(start, ..)| *start < WHOLE_S + 120));
        spans.sort_unstable_by_key(|span| (span.0, span.1));
        for (at, span) in spans.iter().enumerate() {
            let beside = spans[at + 1..].iter().take_while(|other| other.0 < span.1);
            count += beside.filter(|other| !span.2.beside(other.2)).count();
        }
    }
    count
}

#[derive(Debug, Default)]
struct Sum {
    accepted: u64,
    refused: u64,
    overlaps: usize,
    /// Overlaps where clocks are further apart than the margin.
    beyond: usize,
    used: usize,
    least: usize,
}

fn campaign(plans: u64, seed: u64) -> Sum {
    let mut sum = Sum::default();
    for number in 0..plans {
        let mut draw = Draw(Xoshiro256PlusPlus::seed_from_u64(seed + number));
        let plan = draw.plan();
        let Ok(calendar) = MeshCalendar::from_plan(&plan) else {
            sum.refused += 1;
            continue;
        };
        sum.accepted += 1;
        let runs: Vec<MeshRun> = calendar.iter_runs().collect();
        let margin = signed_seconds(plan.margin.seconds());
        let some = |draw: &mut Draw| draw.one_of(&[0, margin, margin / 2]);
        let ahead: Vec<i64> = plan.agents.iter().map(|_| some(&mut draw)).collect();
        let found = overlaps(&plan, &runs, &ahead);
        assert_eq!(found, 0, "plan of seed {}: {plan:?}", seed + number);
        sum.overlaps += found;
        let wrong: Vec<i64> = ahead.iter().map(|it| it * 2 + draw.one_of(&[0, 9])).collect();
        sum.beyond += overlaps(&plan, &runs, &wrong);
        for rounds in calendar.rounds(&plan) {
            if let Some(used) = rounds.used {
                sum.used += used;
                sum.least += rounds.least;
            }
        }
    }
    sum
}

/// `LINERATE_MESH_PLANS=1000000` for more.
#[test]
fn no_plan_has_runs_that_disturb_each_other_while_clocks_are_within_the_margin() {
    let plans = std::env::var("LINERATE_MESH_PLANS").ok().and_then(|text| text.parse().ok());
    let plans = plans.unwrap_or(10_000);
    let sum = campaign(plans, 0x6d65_7368);
    println!(
        "{plans} plans: {} placed, {} without room, {} overlaps; {} slots, {} at the least",
        sum.accepted, sum.refused, sum.overlaps, sum.used, sum.least
    );
    assert!(sum.accepted > plans / 2, "{sum:?}");
    // The same look finds what there is to be found.
    assert!(sum.beyond > 100, "{sum:?}");
    assert!(sum.used >= sum.least && sum.used < sum.least * 5 / 4, "{sum:?}");
}

fn mesh(count: usize, every: &str, takes_s: u64) -> MeshPlan {
    let agent = |at: usize| {
        format!("[[agent]]\nname = \"a{at}\"\naddress = \"10.0.{}.{}\"\n", at / 256, at % 256)
    };
    let agents: String = (0..count).map(agent).collect();
    let text = format!(
        "mesh = \"m\"\nrevision = 1\nmargin = \"0s\"\n{agents}[[task]]\nname = \"t\"\n\
         run = \"tcp {{to}}\"\nevery = \"{every}\"\ntakes = \"{takes_s}s\"\nways = \"one\"\n"
    );
    MeshPlan::from_toml(&text).expect("a plan")
}

#[test]
fn a_full_mesh_takes_as_long_as_the_circle_method_says() {
    // 14 s a slot: 40 agents 39 slots, 9.1 min; 100 agents 99 slots, 23.1 min.
    for (count, fits, not) in [(40, "546s", "545s"), (100, "1386s", "1385s")] {
        let plan = mesh(count, fits, 14);
        let rounds = MeshCalendar::from_plan(&plan).expect("it fits").rounds(&plan);
        assert_eq!((rounds[0].used, rounds[0].least), (Some(count - 1), count - 1));
        assert_eq!(rounds[0].runs, count * (count - 1) / 2);
        let error =
            MeshCalendar::from_plan(&mesh(count, not, 14)).expect_err("a second too little");
        assert!(error.contains(&format!("{} of its {} slots", count - 2, count - 1)), "{error}");
    }
}

#[test]
fn each_agent_computes_its_part_of_the_one_calendar_and_a_revision_moves_nothing() {
    let plan = mesh(5, "5m", 14);
    let whole = MeshCalendar::from_plan(&plan).expect("it fits");
    let mut revised = plan.clone();
    revised.revision = 9;
    revised.from = "2026-11-24T00:00:07Z".parse().ok();
    let mut of_all = 0;
    for at in 0..5 {
        let mine = whole.of_agent(&plan, at);
        let again = MeshCalendar::from_plan(&revised).expect("it fits").of_agent(&revised, at);
        let slots = mine.calendar.slots_between(0, 3000);
        assert_eq!(slots, again.calendar.slots_between(0, 3000));
        let runs: Vec<MeshRun> = whole.iter_runs().filter(|run| run.from == at).collect();
        assert_eq!(slots.len(), runs.len() * 10);
        for slot in &slots {
            let run = runs[slot.task];
            assert_eq!(slot.start_s % 300, run.offset_s);
            let to = format!("t/a{}", run.to);
            assert_eq!(mine.plan.tasks[slot.task].name, to);
            assert_eq!(mine.plan.tasks[slot.task].run, format!("tcp 10.0.0.{}", run.to));
            // Two seconds to begin late, two to be ended.
            assert_eq!(mine.plan.tasks[slot.task].takes_s(), 10);
        }
        of_all += slots.len();
    }
    assert_eq!(of_all, 10 * 10, "ten pairs, ten times");
}

#[test]
fn a_site_and_an_uplink_of_one_name_are_two_things() {
    let agents = [("a", "site = \"x\""), ("b", ""), ("c", "uplink = \"x\""), ("d", "")];
    let agent = |(at, (name, shares)): (usize, &(&str, &str))| {
        format!("[[agent]]\nname = \"{name}\"\naddress = \"192.0.2.{at}\"\n{shares}\n")
    };
    let agents: String = agents.iter().enumerate().map(agent).collect();
    let text = format!(
        "mesh = \"m\"\nrevision = 1\n{agents}[[task]]\nname = \"t\"\nrun = \"tcp {{to}}\"\n\
         every = \"10m\"\ntakes = \"14s\"\nways = \"one\"\n"
    );
    let plan = MeshPlan::from_toml(&text).expect("a plan");
    let rounds = MeshCalendar::from_plan(&plan).expect("it fits").rounds(&plan);
    // Four agents meet in three rounds; were both one thing, five pairs of six would have it.
    assert_eq!((rounds[0].used, rounds[0].least), (Some(3), 3));
}
