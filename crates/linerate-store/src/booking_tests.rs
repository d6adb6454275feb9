//! Bookings: no two overlap, whoever asks at once, and an hour is given away once.

use linerate_core::mesh::{Booking, BookingWhy};
use linerate_core::schedule::{RunState, RunWhy, ScheduleRun};

use super::*;

/// 2026-11-24 00:00 UTC.
const HOUR_S: i64 = 1_795_478_400;

fn asked(id: &str, (agent, task): (&str, &str), start_s: i64) -> NewBooking {
    let peer = task.split_once('/').expect("COMMAND/AGENT").1;
    NewBooking {
        mesh: "m".to_owned(),
        agent: agent.to_owned(),
        booking: Booking { id: id.to_owned(), task: task.to_owned(), start_s, takes_s: 18 },
        things: vec![format!("agent {agent}"), format!("agent {peer}")],
        margin_s: 2,
        seconds_an_hour: 90,
        why: BookingWhy::Adhoc,
        asked_s: start_s,
    }
}

fn open(directory: &tempfile::TempDir) -> Store {
    Store::open(&directory.path().join("hub.db")).expect("a store")
}

#[test]
fn a_booking_keeps_its_margin_to_others_that_share_anything_and_an_hour_is_spent_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = open(&directory);
    let mut books = |asked: &NewBooking| store.mesh_books(asked).expect("room");
    assert_eq!(books(&asked("1", ("a", "burst/b"), HOUR_S + 100)), Booked::Kept);
    let taken = Booked::Taken { until_s: HOUR_S + 120 };
    // b is the other end; 18 s and 2 s of margin before and behind.
    assert_eq!(books(&asked("2", ("b", "burst/c"), HOUR_S + 119)), taken);
    assert_eq!(books(&asked("2", ("c", "burst/a"), HOUR_S + 81)), taken);
    assert_eq!(books(&asked("2", ("c", "burst/d"), HOUR_S + 110)), Booked::Kept);
    assert_eq!(
        books(&asked("3", ("b", "burst/c"), HOUR_S + 120)),
        Booked::Taken { until_s: HOUR_S + 130 }
    );
    assert_eq!(books(&asked("3", ("b", "burst/c"), HOUR_S + 130)), Booked::Kept);
    assert_eq!(books(&asked("4", ("c", "burst/a"), HOUR_S + 80)), Booked::Kept);
    // c has had 54 s as either end; 72 s are not more than 90, 90 s neither.
    assert_eq!(books(&asked("5", ("d", "burst/c"), HOUR_S + 200)), Booked::Kept);
    assert_eq!(books(&asked("6", ("d", "burst/c"), HOUR_S + 300)), Booked::Kept);
    let spent = Booked::Spent { until_s: HOUR_S + 3600 };
    assert_eq!(books(&asked("7", ("e", "burst/c"), HOUR_S + 400)), spent);
    assert_eq!(books(&asked("7", ("e", "burst/c"), HOUR_S + 3600)), Booked::Kept);
    // What may be beside anything has a name all the same.
    let probe = |id: &str, start_s| NewBooking {
        things: Vec::new(),
        ..asked(id, ("x", "delay/y"), start_s)
    };
    assert_eq!(books(&probe("8", HOUR_S + 100)), Booked::Kept);
    assert_eq!(books(&probe("9", HOUR_S + 100)), Booked::Taken { until_s: HOUR_S + 118 });
    // Another mesh in the same store has its own time.
    let other = NewBooking { mesh: "n".to_owned(), ..asked("10", ("a", "burst/b"), HOUR_S + 100) };
    assert_eq!(books(&other), Booked::Kept);
}

#[test]
fn the_file_itself_takes_no_overlap() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = open(&directory);
    let first = asked("1", ("a", "burst/b"), HOUR_S);
    assert_eq!(store.mesh_books(&first), Ok(Booked::Kept));
    // By whoever else writes into it, without asking before.
    let insert = |thing: &str, start_s: i64| {
        store.connection.execute(
            "INSERT INTO mesh_occupied (mesh, thing, start_s, until_s, booking)
             VALUES ('m', ?1, ?2, ?2 + 20, '1')",
            rusqlite::params![thing, start_s],
        )
    };
    let error = insert("agent b", HOUR_S + 19).expect_err("b is occupied").to_string();
    assert!(error.contains("occupied"), "{error}");
    assert!(insert("agent b", HOUR_S - 19).is_err());
    assert_eq!(insert("agent b", HOUR_S + 20), Ok(1));
    assert_eq!(insert("agent c", HOUR_S), Ok(1));
}

#[test]
fn of_fifty_who_ask_at_once_each_has_a_time_of_its_own() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    drop(open(&directory));
    let path = directory.path().join("hub.db");
    let ask = |at: usize| {
        let mut store = Store::open(&path).expect("a store");
        // Five agents, each pair in its turn: every booking meets most of the others.
        let (from, to) = (at % 5, (at + 1 + at / 5 % 4) % 5);
        let (agent, task) = (format!("a{from}"), format!("burst/a{to}"));
        let mut asked = asked(&format!("{at}"), (&agent, &task), HOUR_S);
        asked.seconds_an_hour = 1800;
        for _ in 0..1000 {
            match store.mesh_books(&asked).expect("it waits for the others") {
                Booked::Kept => return asked,
                Booked::Taken { until_s } | Booked::Spent { until_s } => {
                    assert!(until_s > asked.booking.start_s, "it goes on");
                    asked.booking.start_s = until_s;
                }
            }
        }
        panic!("no time was free");
    };
    let kept: Vec<NewBooking> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..50).map(|at| scope.spawn(move || ask(at))).collect();
        asking.into_iter().map(|it| it.join().expect("it has a time")).collect()
    });
    let mut near = 0;
    for (at, one) in kept.iter().enumerate() {
        for other in &kept[at + 1..] {
            let shares = one.things.iter().any(|thing| other.things.contains(thing));
            let apart = (one.booking.start_s - other.booking.start_s).abs();
            assert!(!shares || apart >= 20, "{one:?} and {other:?}");
            near += usize::from(!shares && apart < 20);
        }
    }
    assert!(near > 5, "those that share nothing run beside each other: {near}");
    let stored = open(&directory).mesh_bookings("m", HOUR_S).expect("readable");
    assert_eq!(stored.len(), 50);
    let times: std::collections::BTreeSet<(String, String, i64)> =
        stored.into_iter().map(|it| (it.agent, it.booking.task, it.booking.start_s)).collect();
    let given = kept.into_iter().map(|it| (it.agent, it.booking.task, it.booking.start_s));
    assert_eq!(times, given.collect());
}

#[test]
fn a_booking_is_open_until_its_run_is_here_however_it_ended() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = open(&directory);
    for (id, at_s) in [("1", 100), ("2", 200), ("3", 300)] {
        let asked = asked(id, ("a", "burst/b"), HOUR_S + at_s);
        assert_eq!(store.mesh_books(&asked), Ok(Booked::Kept));
    }
    let open = |store: &Store, since_s| -> Vec<String> {
        let open = store.mesh_bookings_open("m", "a", since_s).expect("readable");
        open.into_iter().map(|it| it.id).collect()
    };
    assert_eq!(open(&store, HOUR_S), ["1", "2", "3"]);
    assert_eq!(open(&store, HOUR_S + 150), ["2", "3"]);
    assert_eq!(store.mesh_bookings_open("m", "b", 0), Ok(Vec::new()), "it runs nothing for it");
    let run = ScheduleRun {
        task: "burst/b".to_owned(),
        start_s: HOUR_S + 200,
        why: RunWhy::Booked,
        state: RunState::Missed,
        reason: Some("why not".to_owned()),
        record: None,
    };
    assert_eq!(store.mesh_ran("m", "a", &run, None), Ok(true));
    assert_eq!(open(&store, HOUR_S), ["1", "3"]);
    let all = store.mesh_bookings("m", HOUR_S + 150).expect("readable");
    let [third, second] = &all[..] else { panic!("{all:?}") };
    assert_eq!((third.booking.id.as_str(), &third.state), ("3", &None));
    assert_eq!(second.state, Some(RunState::Missed));
    assert_eq!((second.reason.as_deref(), second.why), (Some("why not"), BookingWhy::Adhoc));
}
