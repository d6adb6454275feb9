//! Bookings: the hub's end, which finds a time beside the calendar, and the agent's, which looks at
//! what it is given by its signed plan.

use linerate_core::mesh::{
    Bookable, Booking, BookingWhy, HOUR_S, LEAD_S, MeshPlan, Occupied, ROOM_S, Wish, admit_booking,
};
use linerate_core::record::{Failure, Fault};
use linerate_core::schedule::ScheduleTask;
use linerate_store::{Booked, HubStore, NewBooking};
use linerate_sys::clock::record_id;

use super::plan::{Checked, parse_plan_text};
use crate::schedule::Desk;

/// Most times that a booking tries, one after another.
const TRIES_MAX: usize = 10_000;

/// The command of a booked run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A command line, `tcp south -t5`.
    Line(String),
    /// A command of the plan by its name, and the agent that it goes to.
    Named(String, String),
}

/// A run that is wanted beside the calendar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BookingRequest {
    /// The agent that is to run it.
    pub from: String,
    /// Command that the run executes.
    pub what: What,
    /// `adhoc`, `confirm` or `survey`.
    pub why: BookingWhy,
    /// Earliest begin of the run, seconds since 1970-01-01 UTC.
    pub earliest_s: i64,
    /// Latest begin of the run, seconds from now.
    pub within_s: i64,
}

/// Books a run: the first time of the calendar of a hub's store, and beside all other bookings, at
/// which nothing that excludes it shares an agent, a site or an uplink.
/// # Errors
/// When the plan does not let it be booked, no time of a day is free, or the store cannot be
/// written.
pub fn book_run(
    store: &mut dyn HubStore,
    mesh: &str,
    wanted: &BookingRequest,
    now_s: i64,
) -> Result<Booking, Failure> {
    let refused = |reason: String| {
        Failure::new(Fault::Usage, "book a run of", wanted.from.clone(), reason)
            .advise("linerate help mesh-plan has what a plan lets be booked")
    };
    let mut why_not = format!("the store has no plan of mesh {mesh}");
    for (checked, (from_s, until_s)) in in_force(store, mesh)? {
        let (plan, calendar) = (&checked.plan, &checked.calendar);
        let wish = match resolve_request(plan, wanted) {
            Ok(wish) => wish,
            Err(reason) => {
                why_not = reason;
                continue;
            }
        };
        let earliest_s = wanted.earliest_s.max(now_s + LEAD_S).max(from_s);
        let latest_s = (now_s + wanted.within_s).min(until_s.saturating_sub(wish.what.takes_s));
        let mut asked = new_booking(plan, &wish, wanted, now_s);
        let mut next_s = earliest_s;
        why_not = format!("no time of {} s is free for it", wanted.within_s);
        for _ in 0..TRIES_MAX {
            let Some(start_s) = calendar.find_free_start(plan, &wish, next_s, latest_s) else {
                break;
            };
            asked.booking.start_s = start_s;
            match store.store_booking(&asked)? {
                Booked::Kept => return Ok(asked.booking),
                Booked::Taken { until_s } => next_s = until_s,
                Booked::Spent { until_s } => {
                    next_s = until_s;
                    why_not = format!(
                        "no hour within {} s has {} s left of the {} s that the plan allows",
                        wanted.within_s, wish.what.takes_s, asked.seconds_an_hour
                    );
                }
            }
        }
    }
    Err(refused(why_not))
}

/// A plan, and the span in which it is in force, seconds since 1970-01-01 UTC.
type InForce = (Checked, (i64, i64));

/// Plans of a mesh with the span in which each is in force, the earliest first.
fn in_force(store: &mut dyn HubStore, mesh: &str) -> Result<Vec<InForce>, Failure> {
    let mut found = Vec::new();
    let mut until_s = i64::MAX;
    for kept in store.list_plans(mesh)? {
        let checked = parse_plan_text(&kept.text, mesh)?;
        let from_s = checked.plan.from_s();
        let margin_s = i64::try_from(checked.plan.margin.seconds()).unwrap_or(0);
        found.insert(0, (checked, (from_s, until_s)));
        until_s = until_s.min(from_s.saturating_sub(margin_s + ROOM_S));
    }
    Ok(found)
}

fn resolve_request<'a>(plan: &'a MeshPlan, wanted: &BookingRequest) -> Result<Wish<'a>, String> {
    let from = plan.agent_index(&wanted.from).ok_or("the plan has no agent of that name")?;
    let (what, to) = match &wanted.what {
        What::Line(line) => plan.parse_command_line(line)?,
        What::Named(name, to) => {
            let none = || format!("the plan does not let {name} be booked");
            let what = plan.bookable_of(name).ok_or_else(none)?;
            let to = plan.agent_index(to).ok_or_else(|| format!("the plan has no agent {to:?}"))?;
            plan.bookable_to(to)?;
            (what, to)
        }
    };
    if from == to {
        return Err("a run goes to another agent".to_owned());
    }
    Ok(Wish { what, from, to })
}

fn new_booking(
    plan: &MeshPlan,
    wish: &Wish<'_>,
    wanted: &BookingRequest,
    now_s: i64,
) -> NewBooking {
    let to = &plan.agents[wish.to].name;
    let allowed = plan.adhoc.as_ref().map_or(0, |adhoc| adhoc.seconds_an_hour);
    NewBooking {
        mesh: plan.mesh.clone(),
        agent: wanted.from.clone(),
        booking: Booking {
            id: record_id().to_string(),
            task: format!("{}/{to}", wish.what.name),
            start_s: 0,
            takes_s: wish.what.takes_s,
        },
        things: wish.things(plan),
        margin_s: i64::try_from(plan.margin.seconds()).unwrap_or(0),
        seconds_an_hour: i64::from(allowed),
        why: wanted.why,
        asked_s: now_s,
    }
}

/// Desk that checks bookings for the agent at an index of a plan.
pub(super) fn booking_desk(checked: Checked, place: usize) -> Desk {
    Desk::new(Box::new(move |booking, known| {
        let Checked { plan, calendar } = &checked;
        let known: Vec<Occupied> =
            known.iter().map(|(task, start_s)| occupied(plan, task, *start_s)).collect();
        let wish = admit_booking(plan, calendar, place, booking, &known)?;
        let words = plan.command_words(wish.what.name, wish.what.run, place, wish.to);
        Ok(booked_task(&wish.what, &booking.task, &words))
    }))
}

/// Time that a known booked run occupies. A command that the plan no longer has is taken to need a
/// whole hour.
fn occupied(plan: &MeshPlan, task: &str, start_s: i64) -> Occupied {
    let name = task.split_once('/').map_or(task, |(name, _)| name);
    plan.bookable_of(name).map_or(
        Occupied { start_s, takes_s: HOUR_S, class: linerate_core::schedule::Class::Background },
        |what| Occupied { start_s, takes_s: what.takes_s, class: what.class },
    )
}

fn booked_task(what: &Bookable<'_>, name: &str, words: &[String]) -> ScheduleTask {
    let takes_s = u64::try_from(what.takes_s - ROOM_S).unwrap_or(1);
    ScheduleTask::of_mesh(name, &words.join(" "), takes_s, what.class)
}
