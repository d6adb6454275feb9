//! Bookings: runs beside the calendar, at a time of their own. The hub finds the first gap; an
//! agent looks at what it was given itself, by its signed plan, and believes nobody that a time is
//! free.

use serde::Serialize;

use super::bookable::Bookable;
use super::calendar::MeshCalendar;
use super::message::Booking;
use super::plan::{MeshPlan, is_name};
use crate::record::named;
use crate::schedule::{Class, RunState};

/// Seconds of the time by which allowances are counted: an hour of UTC, in which a run begins.
pub const HOUR_S: i64 = 3600;
/// Seconds from the asking on before which no booking begins: a beat, and what a hub and an
/// agent need.
pub const LEAD_S: i64 = 15;
/// Seconds in which a gap is looked for.
pub const WITHIN_S: i64 = 86_400;
/// Characters of a booking's identifier.
const ID_MAX: usize = 64;
/// How a reason begins for which an agent makes no booked run.
pub const REFUSED: &str = "the booking was refused";
/// The reason of a booking that an agent had not heard of at its time.
pub const UNHEARD: &str = "the booking was not heard of in time";

/// A run to be placed: of an agent, to another.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// What is run.
    pub what: Bookable<'a>,
    /// Place of the agent that measures.
    pub from: usize,
    /// Place of the one that is measured.
    pub to: usize,
}

/// A booked run of an agent that it knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupied {
    /// Its begin, seconds since 1970-01-01 UTC.
    pub start_s: i64,
    /// Seconds of its slot.
    pub takes_s: i64,
    /// What may run beside it.
    pub class: Class,
}

/// Purpose of a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BookingWhy {
    /// Somebody asked for it.
    Adhoc,
    /// A change is to be shown again before it is an incident.
    Confirm,
    /// An incident is to be explained.
    Survey,
}

named!(BookingWhy { Adhoc = "adhoc", Confirm = "confirm", Survey = "survey" });

/// A booking as a hub knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "MeshBookedRun"))]
pub struct BookedRun {
    /// What is booked, and when.
    #[serde(flatten)]
    pub booking: Booking,
    /// The agent that is to run it.
    pub agent: String,
    /// `adhoc`, `confirm` or `survey`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub why: BookingWhy,
    /// When it was asked for, seconds since 1970-01-01 UTC.
    pub asked_s: i64,
    /// How it ended, as of other runs; null where that is not known.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub state: Option<RunState>,
    /// Why it brought no result.
    pub reason: Option<String>,
    /// Its record.
    pub record: Option<String>,
}

impl Wish<'_> {
    /// What it occupies, by names that are the same in every revision; nothing where it may run
    /// beside anything.
    pub fn things(&self, plan: &MeshPlan) -> Vec<String> {
        if self.what.class == Class::Background {
            return Vec::new();
        }
        let (from, to) = (&plan.agents[self.from], &plan.agents[self.to]);
        let mut things = vec![format!("agent {}", from.name), format!("agent {}", to.name)];
        let site = |name: &String| format!("site {name}");
        things.extend([&from.site, &to.site].into_iter().flatten().map(site));
        if from.uplink != to.uplink {
            let uplink = |name: &String| format!("uplink {name}");
            things.extend([&from.uplink, &to.uplink].into_iter().flatten().map(uplink));
        }
        things.sort_unstable();
        things.dedup();
        things
    }
}

/// Tells whether a booking that a hub gave makes any sense at a time: names are names, times are
/// near. One that makes none is passed over: it has no name that a row could have.
pub fn is_plausible(booking: &Booking, now_s: i64) -> bool {
    let Booking { id, task, start_s, takes_s } = booking;
    let named = task.split_once('/').is_some_and(|(name, to)| is_name(name) && is_name(to));
    let near = now_s.saturating_sub(2 * WITHIN_S)..=now_s.saturating_add(2 * WITHIN_S);
    named && id.len() <= ID_MAX && near.contains(start_s) && (1..=HOUR_S).contains(takes_s)
}

/// Looks at a booking that an agent was given, by its signed plan: what it is to run, and to whom.
/// # Errors
/// One line that says why not, which begins with [`REFUSED`].
pub fn admit_booking<'a>(
    plan: &'a MeshPlan,
    calendar: &MeshCalendar,
    me: usize,
    booking: &Booking,
    known: &[Occupied],
) -> Result<Wish<'a>, String> {
    let refuse = |why: String| Err(format!("{REFUSED}: {why}"));
    let Some(adhoc) = &plan.adhoc else {
        return refuse("the plan lets nothing run beside its calendar".to_owned());
    };
    let (name, peer) = booking.task.split_once('/').unwrap_or((&booking.task, ""));
    let Some(what) = plan.bookable_of(name) else {
        return refuse(format!("the plan has no command {name:?}"));
    };
    let Some(to) = plan.agent_index(peer).filter(|to| *to != me) else {
        return refuse(format!("the plan has no other agent {peer:?}"));
    };
    if let Err(why) = plan.bookable_to(to) {
        return refuse(why);
    }
    if booking.takes_s != what.takes_s {
        let (asked, has) = (booking.takes_s, what.takes_s);
        return refuse(format!("it takes {asked} s, by the plan {has} s"));
    }
    let wish = Wish { what, from: me, to };
    if let Some(other) = calendar.conflicting_run(plan, &wish, booking.start_s) {
        return refuse(format!("it meets {other} of the calendar"));
    }
    let margin_s = i64::try_from(plan.margin.seconds()).unwrap_or(0);
    let near = |other: &&Occupied| {
        let apart = !what.class.beside(other.class);
        apart
            && other.start_s < booking.start_s + what.takes_s + margin_s
            && booking.start_s < other.start_s + other.takes_s + margin_s
    };
    if known.iter().any(|occupied| near(&occupied)) {
        return refuse("it meets another booking".to_owned());
    }
    let hour = |at_s: i64| at_s.div_euclid(HOUR_S);
    let same = known.iter().filter(|occupied| hour(occupied.start_s) == hour(booking.start_s));
    let spent: i64 = same.map(|occupied| occupied.takes_s).sum();
    let most = i64::from(adhoc.seconds_an_hour);
    if spent + what.takes_s > most {
        return refuse(format!("{spent} s of the {most} s of its hour are spent"));
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "mesh = \"m\"\nrevision = 1\nmargin = \"2s\"\n\
        [[agent]]\nname = \"a\"\naddress = \"192.0.2.1\"\nsite = \"s\"\n\
        [[agent]]\nname = \"b\"\naddress = \"192.0.2.2\"\nuplink = \"u\"\n\
        [[agent]]\nname = \"c\"\naddress = \"192.0.2.3\"\nuplink = \"u\"\n\
        [[agent]]\nname = \"d\"\naddress = \"192.0.2.4\"\nuplink = \"v\"\nsite = \"s\"\n\
        [[task]]\nname = \"rate\"\nrun = \"tcp {to} -t5\"\nevery = \"10m\"\ntakes = \"14s\"\n\
        [[task]]\nname = \"delay\"\nrun = \"ping {to} -c2\"\nevery = \"1m\"\ntakes = \"9s\"\n\
        [adhoc]\nseconds_an_hour = 40\n[[adhoc.command]]\nname = \"burst\"\n\
        run = \"tcp {to} -t9\"\ntakes = \"18s\"\n";

    fn plan_and_calendar() -> (MeshPlan, MeshCalendar) {
        let plan = MeshPlan::from_toml(PLAN).expect("a plan");
        let calendar = MeshCalendar::from_plan(&plan).expect("room");
        (plan, calendar)
    }

    fn booking_wish<'a>(plan: &'a MeshPlan, name: &str, from: usize, to: usize) -> Wish<'a> {
        Wish { what: plan.bookable_of(name).expect("it is there"), from, to }
    }

    #[test]
    fn a_run_occupies_its_agents_their_sites_and_the_uplinks_that_it_leaves_by() {
        let (plan, _) = plan_and_calendar();
        let of = |from, to| booking_wish(&plan, "burst", from, to).things(&plan);
        assert_eq!(of(0, 3), ["agent a", "agent d", "site s", "uplink v"]);
        assert_eq!(of(1, 2), ["agent b", "agent c"], "it stays within u");
        assert_eq!(of(1, 3), ["agent b", "agent d", "site s", "uplink u", "uplink v"]);
        assert_eq!(booking_wish(&plan, "delay", 0, 1).things(&plan), Vec::<String>::new());
    }

    /// What hinders a run at a second, by looking at each run of the calendar for itself.
    fn plainly(plan: &MeshPlan, calendar: &MeshCalendar, wish: &Wish<'_>, start_s: i64) -> bool {
        let end_s = start_s + wish.what.takes_s;
        calendar.iter_runs().any(|run| {
            let task = &plan.tasks[run.task];
            let other = Wish {
                what: plan.bookable_of(&task.name).expect("a task's"),
                from: run.from,
                to: run.to,
            };
            let mine = wish.things(plan);
            let shared = other.things(plan).iter().any(|thing| mine.contains(thing));
            let same =
                wish.what.task == Some(run.task) && (run.from, run.to) == (wish.from, wish.to);
            let excludes = shared && !wish.what.class.beside(task.effective_class());
            // Each begin of a day and a little.
            let first = start_s - 86_400;
            let first = first + (run.offset_s - first).rem_euclid(run.period_s);
            let mut begins = (0..).map(|at| first + at * run.period_s);
            (same || excludes)
                && begins
                    .by_ref()
                    .take_while(|at| *at < end_s + 100)
                    .any(|at| at < end_s + 2 && start_s < at + run.takes_s + 2)
        })
    }

    #[test]
    fn the_first_gap_is_the_first_second_at_which_nothing_of_the_calendar_is_near() {
        let (plan, calendar) = plan_and_calendar();
        let begin_s = 1_795_478_400;
        for (name, from, to) in [("burst", 0, 1), ("burst", 1, 2), ("rate", 3, 0), ("delay", 2, 3)]
        {
            let wish = booking_wish(&plan, name, from, to);
            for earliest in (begin_s..begin_s + 600).step_by(7) {
                let found = calendar.find_free_start(&plan, &wish, earliest, earliest + 7200);
                let found = found.expect("a calendar with gaps");
                let wanted = (earliest..).find(|at| !plainly(&plan, &calendar, &wish, *at));
                assert_eq!(Some(found), wanted, "{name} {from} to {to} from {earliest} on");
                assert_eq!(calendar.conflicting_run(&plan, &wish, found), None);
            }
        }
        // Nothing is as long as this.
        let tight = PLAN.replace("10m\"\ntakes = \"14s", "230s\"\ntakes = \"14s");
        let tight = MeshPlan::from_toml(&tight).expect("a plan");
        let calendar = MeshCalendar::from_plan(&tight).expect("twelve slots of 16 s");
        let wish = booking_wish(&tight, "burst", 0, 1);
        let found = calendar.find_free_start(&tight, &wish, begin_s, begin_s + 7200);
        let plain = (begin_s..begin_s + 300).find(|at| !plainly(&tight, &calendar, &wish, *at));
        assert_eq!(found, plain);
    }

    #[test]
    fn what_a_hub_says_is_passed_over_where_it_makes_no_sense() {
        let now_s = 1_795_478_400;
        let good =
            Booking { id: "i".to_owned(), task: "burst/b".to_owned(), start_s: now_s, takes_s: 14 };
        assert!(is_plausible(&good, now_s));
        let task = |task: &str| Booking { task: task.to_owned(), ..good.clone() };
        let starts = |start_s| Booking { start_s, ..good.clone() };
        let takes = |takes_s| Booking { takes_s, ..good.clone() };
        for wrong in [
            task("burst"),
            task("burst/"),
            task("burst/b/c"),
            task("bu rst/b"),
            task(&format!("{}/b", "x".repeat(41))),
            starts(i64::MAX),
            starts(i64::MIN),
            starts(now_s + 2 * WITHIN_S + 1),
            takes(0),
            takes(-5),
            takes(i64::MAX),
            Booking { id: "i".repeat(65), ..good.clone() },
        ] {
            assert!(!is_plausible(&wrong, now_s), "{wrong:?}");
        }
    }

    #[test]
    fn an_agent_runs_nothing_that_its_plan_does_not_let_be_booked() {
        let (plan, calendar) = plan_and_calendar();
        let free = calendar.find_free_start(
            &plan,
            &booking_wish(&plan, "burst", 0, 1),
            1_795_478_400,
            1_795_485_600,
        );
        let start_s = free.expect("a gap");
        let good = Booking { id: "i".to_owned(), task: "burst/b".to_owned(), start_s, takes_s: 18 };
        let of = |booking: &Booking, known: &[Occupied]| {
            admit_booking(&plan, &calendar, 0, booking, known).map(|wish| (wish.what.name, wish.to))
        };
        assert_eq!(of(&good, &[]), Ok(("burst", 1)));
        let wrong = |task: &str| Booking { task: task.to_owned(), ..good.clone() };
        for (booking, said) in [
            (wrong("serve/b"), "the plan has no command \"serve\""),
            (wrong("burst/a"), "the plan has no other agent \"a\""),
            (wrong("burst/192.0.2.9"), "the plan has no other agent"),
            (wrong("burst"), "the plan has no other agent \"\""),
            (Booking { takes_s: 3600, ..good.clone() }, "it takes 3600 s, by the plan 18 s"),
        ] {
            let error = of(&booking, &[]).expect_err(said);
            assert!(error.starts_with(REFUSED) && error.contains(said), "{error}");
        }
        // At each begin of a run of the calendar that a has.
        for run in
            calendar.iter_runs().filter(|run| run.task == 0 && (run.from == 0 || run.to == 0))
        {
            let at = start_s + (run.offset_s - start_s).rem_euclid(run.period_s);
            let error = of(&Booking { start_s: at, ..good.clone() }, &[]).expect_err("taken");
            assert!(error.contains("it meets rate "), "{error}");
        }
        let known = |start_s, takes_s, class| Occupied { start_s, takes_s, class };
        let before = start_s - 19;
        let error = of(&good, &[known(before, 18, Class::Exclusive)]).expect_err("1 s before");
        assert!(error.ends_with("it meets another booking"), "{error}");
        assert!(
            of(&good, &[known(before - 1, 18, Class::Exclusive)]).is_ok(),
            "the margin is kept"
        );
        assert!(of(&good, &[known(before, 9, Class::Background)]).is_ok());
        // 40 s an hour, by the hour in which a run begins.
        let hour = start_s.div_euclid(HOUR_S) * HOUR_S;
        let spent = [known(hour, 23, Class::Background)];
        let error = of(&good, &spent).expect_err("23 and 18 are more than 40");
        assert!(error.ends_with("23 s of the 40 s of its hour are spent"), "{error}");
        assert!(of(&good, &[known(hour - 1, 23, Class::Background)]).is_ok());
        let bare =
            MeshPlan::from_toml(PLAN.split("[adhoc]").next().expect("a part")).expect("a plan");
        let error = admit_booking(&bare, &calendar, 0, &good, &[]).expect_err("no allowance");
        assert!(error.contains("lets nothing run beside"), "{error}");
    }
}
