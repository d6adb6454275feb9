//! A mesh of many agents in simulated time: the calendar, the runner, both ends of the talk, the
//! rules for bookings are the real ones; disks, the network and what a run does are simulated.
//!
//! What goes wrong: all join at once, clocks differ by up to the margin and are set, agents are
//! killed and come back or run twice, the network is parted, the hub is away, loses answers and is
//! set back to an older copy of its store, a spool is too small, the plan changes midway.
//!
//! Nothing may overlap that excludes each other, and each slot of each agent, and each booking, has
//! exactly one row at the hub in the end: a result, or a reason why there is none.
//!
//! 1,000 agents are a test; 10,000 for a day take six minutes of a core and 2 GB (CONTRIBUTING.md):
//!
//!     cargo test --release -p linerate-core --test quick ten_thousand -- --ignored --nocapture

mod agent;
mod check;
mod hub;
mod world;

use world::{Scale, World};

const HOUR_S: f64 = 3600.0;

/// Half an hour of 1,000 agents in 20 full meshes of 50, whose 49 rounds of 16 s leave a third of
/// their period to what is booked.
fn thousand() -> Scale {
    Scale {
        agents: 1000,
        group: 50,
        every: ["20m", "21m"],
        span_s: 1800.0,
        apart_ms: 500,
        kills: 300,
        steps: 60,
        twins: 5,
        bookings: 100,
        requests_a_s: 400,
        away_s: vec![(600.0, 900.0)],
        restored_s: Some((480.0, 900.0)),
        parted_s: (200.0, 420.0),
        published_s: 1000.0,
        changes_s: 1300.0,
        spool: 4,
        kept_s: 3000,
    }
}

#[test]
fn a_thousand_agents_lose_nothing_double_nothing_and_never_disturb_each_other() {
    let mut world = World::new(thousand());
    world.live();
    let found = world.check();
    println!("{found}");
    // Rounds of 500 pairs, 16 s apart: of the first plan, whose periods begin at 0 and at 1200 s,
    // those of 49 that begin from 100 s on, 42, and 5 until 1276 s; of the second, whose next
    // period begins at 1620 s, 11 until 1795 s.
    assert_eq!(found.slots, 58 * 500, "{found}");
    assert!(found.of("ok") > 20_000, "{found}");
    for reason in ["not running", "clock", "killed", "spool full", "set back", "double"] {
        assert!(found.of(reason) > 0, "nothing of {reason}: {found}");
    }
    assert!(found.booked > 50 && found.again > 1000, "it was quiet: {found}");
    assert!(found.joined_s < 60.0, "{found}");
    assert!(world.all_have_the_second_plan());
}

#[test]
#[should_panic(expected = "is in two runs")]
fn clocks_that_are_further_apart_than_the_plan_says_do_disturb() {
    let mut world = World::new(Scale { apart_ms: 9000, ..thousand() });
    world.believes_its_clock = true;
    world.live();
}

/// A day of 10,000 agents, in 50 full meshes of 200.
#[test]
#[ignore = "nightly: six minutes of a core in a release build"]
fn ten_thousand_agents_for_a_day() {
    let mut world = World::new(Scale {
        agents: 10_000,
        group: 200,
        every: ["4h", "3h"],
        span_s: 24.0 * HOUR_S,
        apart_ms: 500,
        kills: 20_000,
        steps: 5000,
        twins: 100,
        bookings: 3000,
        requests_a_s: 4000,
        away_s: vec![(2.0 * HOUR_S, 5.0 * HOUR_S), (14.0 * HOUR_S, 14.5 * HOUR_S)],
        restored_s: Some((13.5 * HOUR_S, 14.5 * HOUR_S)),
        parted_s: (6.0 * HOUR_S, 7.0 * HOUR_S),
        published_s: 9.0 * HOUR_S,
        changes_s: 12.0 * HOUR_S,
        spool: 30,
        kept_s: 6 * 3600,
    });
    world.live();
    let found = world.check();
    println!("{found}");
    assert!(found.slots > 5_000_000, "{found}");
    assert!(world.all_have_the_second_plan());
}
