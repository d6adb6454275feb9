//! What a watch has to itself with PostgreSQL: other hubs beside it, tables of an older version,
//! and a connection that ends.

use super::*;
use crate::tests::started::Postgres;

fn database(server: &Postgres, name: &str) -> String {
    server.sql("postgres", &format!("CREATE DATABASE {name}"));
    server.url(name)
}

#[test]
fn one_hub_of_a_database_watches_what_reaches_any_and_another_when_it_has_ended() {
    let server = Postgres::start(false);
    let url = database(&server, "mesh");
    let (first, second) = (mesh(Some(&url)), mesh(Some(&url)));
    let mut watcher = first.watcher();
    let waits = || Watcher::start_if_alone(&second.hub, NOW_S).expect("a store").is_none();
    assert!(waits() && waits(), "one has it");
    // All results reach the hub that does not watch.
    second.rounds(NOW_S - 300, 40, |_, _| 1.0);
    second.rounds(NOW_S, 30, slow);
    ["a", "b", "c", "d"].iter().for_each(|name| second.heard(name, NOW_S));
    assert_eq!(first.hub.arrived().len(), 12, "those of the plan, and no more");
    let path = first.directory.path().to_owned();
    assert_eq!(work(&mut watcher, &path, NOW_S), Vec::<String>::new());
    assert_eq!(watcher.incidents.pending.len(), 1);
    assert_eq!(watcher.store.mesh_unwatched("m", 0), Ok(BTreeSet::new()), "all is looked at");
    assert!(waits(), "it still has it");
    // Its process is gone, and what it had not said yet is said by the other.
    drop(watcher);
    let mut watcher = second.watcher();
    assert_eq!(watcher.incidents.pending.len(), 1);
    let path = second.directory.path().to_owned();
    assert_eq!(work(&mut watcher, &path, NOW_S + 15), ["change"]);
    assert_eq!(first.incidents().len(), 1, "both show it");
    assert!(Watcher::start_if_alone(&first.hub, NOW_S).expect("a store").is_none());
    // Another mesh of the database has a watch of its own.
    let mut store = first.store();
    assert_eq!((store.mesh_watches("n"), store.mesh_watches("m")), (Ok(true), Ok(false)));
}

#[test]
fn a_watch_whose_connection_ended_says_so_and_has_no_other_in_its_place() {
    let server = Postgres::start(false);
    let url = database(&server, "mesh");
    let mesh = mesh(Some(&url));
    mesh.rounds(NOW_S - 300, 3, |_, _| 1.0);
    let mut watcher = mesh.watcher();
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks
               WHERE locktype = 'advisory' AND pid <> pg_backend_pid()";
    assert_eq!(server.sql("mesh", end), "1");
    assert!(watcher.run_checks(NOW_S).is_err());
    let failure = watcher.run_checks(NOW_S).expect_err("another may have the right by now");
    assert!(failure.reason.contains("watched mesh m is over"), "{failure}");
    drop(watcher);
    let mut watcher = mesh.watcher();
    assert_eq!(watcher.run_checks(NOW_S), Ok(()));
}

#[test]
fn a_database_of_version_1_is_watched_from_its_next_results_on() {
    let server = Postgres::start(false);
    let url = database(&server, "mesh");
    let before = mesh(Some(&url));
    before.rounds(NOW_S - 300, 40, |_, _| 1.0);
    let path = before.directory.path().to_owned();
    let older = "DROP INDEX mesh_result_record; ALTER TABLE mesh_result DROP COLUMN followed;
        DROP TABLE mesh_watched, mesh_event, mesh_incident, mesh_alert_out, mesh_alert;
        UPDATE mesh_version SET version = 1";
    server.sql("mesh", older);
    // A program of this version begins: its connections are new.
    let after = mesh(Some(&url));
    assert_eq!(server.sql("mesh", "SELECT version FROM mesh_version"), "3");
    let mut store = after.store();
    assert_eq!(store.agent_runs("m", "a", Some("delay/b"), 0..i64::MAX).expect("kept").len(), 40);
    let mut watcher = after.watcher();
    after.rounds(NOW_S - 20, 28, |_, _| 1.0);
    let mut changes = |at_s: i64, watcher: &mut Watcher<'_>| {
        assert_eq!(work(watcher, &path, at_s), Vec::<String>::new());
        store.task_series("m/a", "delay/b", f64::MIN, f64::MAX, 999).expect("readable").len()
    };
    assert_eq!(changes(NOW_S - 20, &mut watcher), 28);
    after.rounds(NOW_S + 280, 30, slow);
    ["a", "b", "c", "d"].iter().for_each(|name| after.heard(name, NOW_S + 280));
    assert_eq!(changes(NOW_S + 280, &mut watcher), 58);
    assert_eq!(watcher.incidents.pending.len(), 1);
}

#[test]
fn the_newest_values_of_a_figure_are_read_the_oldest_first() {
    let server = Postgres::start(false);
    let url = database(&server, "mesh");
    let mesh = mesh_with(Some(&url), PERIOD_S, ADHOC);
    mesh.rounds(NOW_S, 30, |_, _| 1.0);
    let mut store = mesh.store();
    let mut starts = |after: i64, until: i64, limit: usize| {
        let (after_s, until_s) = (after as f64, until as f64);
        let values = store.task_series("m/a", "delay/b", after_s, until_s, limit);
        let values = values.expect("readable");
        assert!(values.iter().all(|it| it.metric == "rtt_ns" && it.value >= 10e6), "{values:?}");
        assert!(values.iter().all(|it| it.task == "delay/b" && !it.record.is_empty()));
        values.iter().map(|it| it.at_s as i64 - NOW_S).collect::<Vec<_>>()
    };
    assert_eq!(starts(0, NOW_S, 3), [-20, -10, 0]);
    assert_eq!(starts(NOW_S - 40, NOW_S - 10, 99), [-30, -20, -10]);
    assert_eq!(starts(0, i64::MAX, 99).len(), 30);
    let before = server.sql("mesh", "SELECT count(*) FROM mesh_result WHERE followed IS NOT NULL");
    mesh.gives(("a", "look", "b"), "booked", NOW_S, 10e6);
    let after = server.sql("mesh", "SELECT count(*) FROM mesh_result WHERE followed IS NOT NULL");
    assert_eq!((before.as_str(), after.as_str()), ("360", "361"));
    let followed = "SELECT followed FROM mesh_result WHERE why = 'booked'";
    assert_eq!(server.sql("mesh", followed), "{\"rtt_ns\":10000000.0}");
}
