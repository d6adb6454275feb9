//! A hub is given results as agents give them, at times of the test's own, and watched: each test
//! with a file, and with PostgreSQL.

use std::path::{Path, PathBuf};

use linerate_core::mesh::{
    Incident, IncidentKind, RunResult, RunResults, Seen, SharedElement, SharedKind, VERSION,
};
use linerate_core::record::{
    MetricId, PingPlan, Plan, Record, RecordId, RecordStatus, Stat, Summary, Tool,
};
use linerate_core::schedule::{EventKind, RunState};
use linerate_core::time::WallTime;
use linerate_store::{HubPlace, ScheduleEvent, Store};

use self::kept::{
    an_incident_is_kept_with_its_alert_its_changes_and_its_notes_or_not_at_all,
    each_output_of_a_mesh_gets_an_alert_until_it_has_it,
    what_is_over_goes_after_its_time_and_what_is_open_stays_with_its_events,
};
use super::super::SigningKey;
use super::*;

#[cfg(feature = "scale")]
mod database;
mod kept;
#[cfg(feature = "scale")]
mod load;

/// 2026-11-24 00:00 UTC.
const NOW_S: i64 = 1_795_478_400;
const PERIOD_S: i64 = 10;

/// Runs each of some tests with a file; and all with PostgreSQL, each in a database of its own.
macro_rules! with_either {
    ($($name:ident)*) => {
        mod with_a_file {
            $(#[test]
            fn $name() {
                super::$name(None);
            })*
        }

        #[cfg(feature = "scale")]
        #[test]
        fn with_postgresql_all_is_as_with_a_file() {
            let server = super::super::tests::started::Postgres::start(false);
            let tests: &[(&str, fn(Database<'_>))] = &[$((stringify!($name), $name)),*];
            for (at, (name, test)) in tests.iter().enumerate() {
                println!("{name}");
                let database = format!("mesh{at}");
                server.sql("postgres", &format!("CREATE DATABASE {database}"));
                test(Some(&server.url(&database)));
            }
        }
    };
}

with_either! {
    pairs_that_changed_together_are_one_incident_told_once_and_over_when_they_are_back
    silent_agents_are_told_by_their_site_and_pairs_by_what_they_share_and_both_when_they_are_back
    a_change_of_one_pair_is_of_that_pair_and_old_after_a_day
    a_change_is_an_incident_once_booked_runs_show_it_and_is_told_with_what_a_survey_says
    a_task_that_repeats_often_is_shown_again_by_its_own_next_runs
    a_survey_that_nothing_is_heard_of_holds_no_alert_for_ever
    a_change_that_further_runs_do_not_show_is_dropped_and_its_way_back_is_none_either
    an_incident_is_kept_with_its_alert_its_changes_and_its_notes_or_not_at_all
    each_output_of_a_mesh_gets_an_alert_until_it_has_it
    what_is_over_goes_after_its_time_and_what_is_open_stays_with_its_events
}

/// Where PostgreSQL is; a file is beside the plan.
type Database<'a> = Option<&'a str>;

struct Mesh {
    /// Where its store is, if that is a file.
    file: Option<PathBuf>,
    directory: tempfile::TempDir,
    hub: Hub,
    seed: std::cell::Cell<u64>,
}

/// Four agents, of which `c` and `d` share a site, and a hub whose alerts go to a file.
fn mesh(database: Option<&str>) -> Mesh {
    mesh_with(database, PERIOD_S, "")
}

/// The same whose plan has another period, and more.
fn mesh_with(database: Database<'_>, period_s: i64, more: &str) -> Mesh {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    let agent = |name: &str, last: u8, more: &str| {
        format!("[[agent]]\nname = \"{name}\"\naddress = \"192.0.2.{last}\"\n{more}")
    };
    let plan = format!(
        "mesh = \"m\"\nrevision = 1\n{}{}{}{}[[task]]\nname = \"delay\"\nrun = \"ping {{to}}\"\n\
         every = \"{period_s}s\"\ntakes = \"9s\"\n{more}",
        agent("a", 1, ""),
        agent("b", 2, ""),
        agent("c", 3, "site = \"rack\"\n"),
        agent("d", 4, "site = \"rack\"\n"),
    );
    std::fs::write(path("plan.toml"), &plan).expect("room");
    let signed = SigningKey::create_key_file(&path("key")).expect("a key").sign_plan(&plan);
    let lines = format!("{}\n{}\n", signed.key, signed.signature);
    std::fs::write(path("plan.toml.sig"), lines).expect("room");
    let told = path("told").display().to_string();
    let rules = format!("learn = \"1m\"\n[alert]\ncommand = \"cat >> {told}\"\n");
    std::fs::write(path("rules.toml"), rules).expect("room");
    let file = database.is_none().then(|| path("hub.db"));
    let place = HubPlace::parse(database.unwrap_or(&path("hub.db").display().to_string()));
    let place = place.expect("a place");
    let hub =
        Hub::from_plan_file(&path("plan.toml"), Some(&path("rules.toml")), &place).expect("a hub");
    Mesh { hub, file, directory, seed: std::cell::Cell::new(1) }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let to = |from: &'static str| NAMES.into_iter().filter(move |to| *to != from);
    NAMES.into_iter().flat_map(move |from| to(from).map(move |to| (from, to)))
}

impl Mesh {
    /// A number from 0 to 1 (xorshift, Marsaglia 2003).
    fn draw(&self) -> f64 {
        let mut seed = self.seed.get();
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        self.seed.set(seed);
        (seed >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Gives one result of a pair at a time: a round trip.
    fn give(&self, from: &str, to: &str, at_s: i64, rtt_ns: f64) {
        self.gives((from, "delay", to), "calendar", at_s, rtt_ns);
    }

    fn gives(&self, (from, task, to): (&str, &str, &str), why: &str, at_s: i64, rtt_ns: f64) {
        let mut tail = [0; 10];
        tail[..8].copy_from_slice(&self.draw().to_be_bytes());
        tail[8] = from.as_bytes()[0];
        tail[9] = to.as_bytes()[0];
        let millis = u64::try_from(at_s).expect("after 1970") * 1000;
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let plan = Plan::Ping(PingPlan::default());
        let at = WallTime::from_unix_nanos(u128::from(millis) * 1_000_000);
        let mut record = Record::from_plan(RecordId::from_parts(millis, tail), tool, plan, at);
        record.status = RecordStatus::Ok;
        record.name = Some(format!("{task}/{to}"));
        record.tags.insert("schedule".to_owned(), format!("m/{from}"));
        record.tags.insert("slot".to_owned(), at_s.to_string());
        record.summary = vec![Summary::from_value(MetricId::Rtt, Stat::P50, rtt_ns)];
        let run = RunResult {
            task: format!("{task}/{to}"),
            start_s: at_s,
            state: RunState::Ok,
            reason: None,
            why: why.parse().expect("a word"),
            record: Some(linerate_core::tree::to_value(&record).expect("JSON")),
        };
        let runs = RunResults { v: VERSION, results: vec![run] };
        assert_eq!(self.hub.store_runs(from, &runs).expect("it is taken").known, 0);
    }

    /// Rounds of all pairs that end at a time: 10 ms and a little noise, times what a pair has.
    fn rounds(&self, until_s: i64, count: i64, times: impl Fn(&str, &str) -> f64) {
        for round in 0..count {
            let at_s = until_s - (count - 1 - round) * PERIOD_S;
            for (from, to) in pairs() {
                let rtt = 10e6 * times(from, to) * (1.0 + 0.02 * self.draw());
                self.give(from, to, at_s, rtt);
            }
        }
    }

    fn heard(&self, agent: &str, at_s: i64) {
        let mut store = self.store();
        if !store.agents("m").expect("readable").contains_key(agent) {
            store.keep_token(agent, "m", agent, i64::MAX).expect("room");
            store.join_by_token(agent, agent, at_s).expect("room");
        }
        let seen = Seen {
            at_s,
            instance: "x".to_owned(),
            starts: 1,
            revision: 1,
            waiting: 0,
            ahead_s: None,
            double_s: None,
        };
        let seen = BTreeMap::from([(agent.to_owned(), seen)]);
        store.keep_beats("m", &seen).expect("room");
    }

    fn store(&self) -> Box<dyn HubStore> {
        self.hub.open_store().expect("a store")
    }

    /// A watch; where one has just ended a database hears of that a moment later.
    fn watcher(&self) -> Watcher<'_> {
        for _ in 0..600 {
            if let Some(watcher) = Watcher::start_if_alone(&self.hub, NOW_S).expect("a store") {
                return watcher;
            }
            sleep(Duration::from_millis(100));
        }
        panic!("nobody watches, and it is not to be had");
    }

    fn incidents(&self) -> Vec<Incident> {
        self.store().incidents("m", 0).expect("readable")
    }

    fn events(&self, agent: &str) -> Vec<ScheduleEvent> {
        self.store().mesh_events(&format!("m/{agent}"), 0).expect("readable")
    }
}

/// Looks at a time, and waits until what it tells is told; the kinds of all alerts so far.
fn work(watcher: &mut Watcher<'_>, directory: &Path, now_s: i64) -> Vec<String> {
    watcher.silence_at = monotonic();
    watcher.run_checks(now_s).expect("the store is there");
    for _ in 0..3000 {
        let waiting = watcher.store.alerts_waiting(&alert_owner("m"), 0).expect("readable");
        if waiting.is_empty() {
            let told = std::fs::read_to_string(directory.join("told")).unwrap_or_default();
            let json = told.lines().map(|line| {
                let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
                assert_eq!(value["mesh"], "m");
                value["kind"].as_str().expect("a kind").to_owned()
            });
            return json.collect();
        }
        sleep(Duration::from_millis(20));
        watcher.run_checks(now_s).expect("the store is there");
    }
    panic!("not told within a minute");
}

fn site(kind: SharedKind, name: &str) -> Option<SharedElement> {
    Some(SharedElement { kind, name: name.to_owned() })
}

fn pairs_that_changed_together_are_one_incident_told_once_and_over_when_they_are_back(
    database: Database<'_>,
) {
    let mesh = mesh(database);
    let path = mesh.directory.path().to_owned();
    let slow = |from: &str, to: &str| if from == "c" || to == "c" { 2.5 } else { 1.0 };
    mesh.rounds(NOW_S - 300, 60, |_, _| 1.0);
    for name in NAMES {
        mesh.heard(name, NOW_S);
    }
    let mut watcher = mesh.watcher();
    assert_eq!(work(&mut watcher, &path, NOW_S - 300), Vec::<String>::new());
    mesh.rounds(NOW_S, 30, slow);
    assert_eq!(work(&mut watcher, &path, NOW_S), Vec::<String>::new(), "others may come");
    assert_eq!(mesh.incidents(), []);
    // Killed before it was said: the store knows that it is to be.
    drop(watcher);
    let mut watcher = mesh.watcher();
    assert_eq!(work(&mut watcher, &path, NOW_S + PERIOD_S), Vec::<String>::new());
    assert_eq!(work(&mut watcher, &path, NOW_S + PERIOD_S + 5), ["change"]);
    let [incident] = &mesh.incidents()[..] else { panic!("{:?}", mesh.incidents()) };
    assert_eq!(incident.shared, site(SharedKind::Agent, "c"));
    assert_eq!((incident.hit, incident.of, incident.members.len()), (3, 3, 6));
    assert!(!incident.confirmed && incident.sentence.contains("not confirmed by further runs"));
    // The first value of the step is that of the round 290 s before now; 10 ms became 25.
    let first = (NOW_S - 290) as f64;
    for member in &incident.members {
        assert!(member.from == "c" || member.to.as_deref() == Some("c"), "{member:?}");
        let [moved] = &member.moved[..] else { panic!("{member:?}") };
        assert!((moved.since_s - first).abs() <= 10.0, "{moved:?}");
        assert!((moved.after / moved.before - 2.5).abs() < 0.1, "{moved:?}");
    }
    // A start finds nothing anew, and the matrix marks what changed.
    drop(watcher);
    let mut watcher = mesh.watcher();
    assert_eq!(work(&mut watcher, &path, NOW_S + 60), ["change"]);
    let matrix = mesh.hub.matrix_at(NOW_S + 60).expect("readable");
    let changed = matrix.cells.iter().filter(|cell| cell.changed).count();
    assert_eq!((changed, matrix.incidents.len()), (6, 1));
    assert!(matrix.alerts.contains(&incident.sentence), "{:?}", matrix.alerts);
    mesh.rounds(NOW_S + 400, 30, |_, _| 1.0);
    NAMES.iter().for_each(|name| mesh.heard(name, NOW_S + 400));
    let told = work(&mut watcher, &path, NOW_S + 400);
    assert_eq!(told, ["change", "back"], "{:?}", mesh.incidents());
    assert_eq!(mesh.incidents()[0].until_s, Some(NOW_S + 400));
    assert_eq!(mesh.incidents().len(), 1);
}

fn silent_agents_are_told_by_their_site_and_pairs_by_what_they_share_and_both_when_they_are_back(
    database: Database<'_>,
) {
    let mesh = mesh(database);
    let path = mesh.directory.path().to_owned();
    mesh.rounds(NOW_S, 3, |_, _| 1.0);
    NAMES.iter().for_each(|name| mesh.heard(name, NOW_S));
    let mut watcher = mesh.watcher();
    assert_eq!(work(&mut watcher, &path, NOW_S + 30), Vec::<String>::new());
    let alive = |mesh: &Mesh, names: &[&str], at_s| {
        names.iter().for_each(|name| mesh.heard(name, at_s));
    };
    // c and d are not heard; a and b measure each other, and nobody has results of c and d.
    for at_s in [NOW_S + 40, NOW_S + 70, NOW_S + 100, NOW_S + 129] {
        alive(&mesh, &["a", "b"], at_s);
        mesh.give("a", "b", at_s, 10e6);
        mesh.give("b", "a", at_s, 10e6);
        assert_eq!(work(&mut watcher, &path, at_s), Vec::<String>::new(), "{at_s}");
    }
    alive(&mesh, &["a", "b"], NOW_S + 130);
    assert_eq!(work(&mut watcher, &path, NOW_S + 130), ["no_data"]);
    let incident = mesh.incidents().remove(0);
    assert_eq!((incident.kind, incident.hit), (IncidentKind::NoData, 2));
    assert_eq!(incident.shared, site(SharedKind::Site, "rack"));
    assert!((incident.since_s - NOW_S as f64).abs() < 1.0, "{incident:?}");
    // They are back, but nothing that goes to d has a result.
    let mut at_s = NOW_S + 140;
    alive(&mesh, &NAMES, at_s);
    let good = |mesh: &Mesh, at_s| {
        for (from, to) in pairs().filter(|(_, to)| *to != "d") {
            mesh.give(from, to, at_s, 10e6);
        }
    };
    good(&mesh, at_s);
    assert_eq!(work(&mut watcher, &path, at_s), ["no_data", "data"]);
    while at_s < NOW_S + 140 + HOLD_AND_JOIN_S {
        assert_eq!(work(&mut watcher, &path, at_s).len(), 2, "{at_s}");
        at_s += 10;
        alive(&mesh, &NAMES, at_s);
        good(&mesh, at_s);
    }
    assert_eq!(work(&mut watcher, &path, at_s), ["no_data", "data", "no_data"]);
    let incident = mesh.incidents().remove(0);
    assert_eq!(incident.shared, site(SharedKind::Agent, "d"));
    assert_eq!((incident.hit, incident.of, incident.members.len()), (3, 3, 3));
    // The series of the pair knows, too.
    let events = mesh.events("a");
    assert!(
        events.iter().all(|it| it.task == "delay/d" && it.kind == EventKind::NoData),
        "{events:?}"
    );
    assert!(events.len() == 1 && events[0].detail["incident"] == incident.id.as_str());
    if let Some(path) = &mesh.file {
        let states = Store::open(path).and_then(|it| it.task_states()).expect("readable");
        let state = states.iter().find(|it| it.plan == "m/a" && it.task == "delay/d");
        assert!(state.expect("it ran").no_data);
    }
    for (from, to) in pairs() {
        if to == "d" {
            mesh.give(from, to, at_s, 10e6);
        }
    }
    assert_eq!(work(&mut watcher, &path, at_s), ["no_data", "data", "no_data", "data"]);
    assert!(mesh.incidents().iter().all(|it| it.until_s.is_some()));
}

/// What pairs without data wait for: 90 s and a period.
const HOLD_AND_JOIN_S: i64 = 90 + PERIOD_S;

fn a_change_of_one_pair_is_of_that_pair_and_old_after_a_day(database: Database<'_>) {
    let mesh = mesh(database);
    let path = mesh.directory.path().to_owned();
    let slow = |from: &str, to: &str| if (from, to) == ("a", "b") { 3.0 } else { 1.0 };
    mesh.rounds(NOW_S - 300, 40, |_, _| 1.0);
    mesh.rounds(NOW_S, 30, slow);
    NAMES.iter().for_each(|name| mesh.heard(name, NOW_S + 10));
    let mut watcher = mesh.watcher();
    assert_eq!(work(&mut watcher, &path, NOW_S), Vec::<String>::new());
    assert_eq!(work(&mut watcher, &path, NOW_S + PERIOD_S + 5), ["change"]);
    let incident = mesh.incidents().remove(0);
    assert_eq!((incident.shared, incident.hit), (site(SharedKind::Pair, "a and b"), 1));
    assert_eq!(incident.members.len(), 1);
    let late = NOW_S + PERIOD_S + 5 + NEWS_S;
    NAMES.iter().for_each(|name| mesh.heard(name, late));
    mesh.rounds(late, 3, slow);
    assert_eq!(work(&mut watcher, &path, late - 1).len(), 1);
    assert_eq!(mesh.incidents()[0].until_s, None);
    assert_eq!(work(&mut watcher, &path, late).len(), 1, "nobody is told that it is old");
    assert_eq!(mesh.incidents()[0].until_s, Some(late));
}

/// Ten minutes of an hour, and a survey.
const ADHOC: &str = "[adhoc]\nseconds_an_hour = 600\n[[adhoc.command]]\nname = \"look\"\n\
    run = \"test {to}\"\n";
/// Between two runs of a pair, by the plan of which changes are shown again by booked runs; values
/// are given as often as in the others. What was found waits so long, and 5 s, for others.
const SELDOM_S: i64 = 200;

/// Begins of bookings for a reason, with who runs what.
fn booked(mesh: &Mesh, why: &str) -> Vec<(String, String, i64)> {
    let all = mesh.store().bookings("m", 0).expect("readable");
    let mine = all.into_iter().rev().filter(|it| it.why.name() == why);
    mine.map(|it| (it.agent, it.booking.task, it.booking.start_s)).collect()
}

fn slow(from: &str, to: &str) -> f64 {
    if (from, to) == ("a", "b") { 3.0 } else { 1.0 }
}

/// A mesh in which the way from `a` to `b` takes three times as long for 300 s, which is found
/// now; and when the two runs begin that are to show it.
fn suspected(database: Database<'_>) -> (Mesh, Vec<i64>) {
    let mesh = mesh_with(database, SELDOM_S, ADHOC);
    mesh.rounds(NOW_S - 300, 40, |_, _| 1.0);
    mesh.rounds(NOW_S, 30, slow);
    NAMES.iter().for_each(|name| mesh.heard(name, NOW_S + 400));
    let mut watcher = mesh.watcher();
    let told = work(&mut watcher, mesh.directory.path(), NOW_S);
    assert_eq!(told, Vec::<String>::new());
    drop(watcher);
    let asked = booked(&mesh, "confirm");
    let run = |(agent, task, _): &(String, String, i64)| (agent.clone(), task.clone());
    let wanted = ("a".to_owned(), "delay/b".to_owned());
    assert_eq!(asked.iter().map(run).collect::<Vec<_>>(), [wanted.clone(), wanted]);
    let starts: Vec<i64> = asked.iter().map(|it| it.2).collect();
    // Of one agent and beside all others: apart by the slot of 9 s, without the clocks' margin.
    assert!(starts[0] >= NOW_S + 15 && starts[1] >= starts[0] + 9, "{starts:?}");
    assert!(starts[1] < NOW_S + 100, "a period has room for both: {starts:?}");
    (mesh, starts)
}

fn a_change_is_an_incident_once_booked_runs_show_it_and_is_told_with_what_a_survey_says(
    database: Database<'_>,
) {
    let (mesh, starts) = suspected(database);
    let path = mesh.directory.path().to_owned();
    // A hub that was killed meanwhile books no others.
    let mut watcher = mesh.watcher();
    assert_eq!(work(&mut watcher, &path, NOW_S + 10), Vec::<String>::new());
    assert_eq!((mesh.incidents(), booked(&mesh, "confirm").len()), (Vec::new(), 2));
    mesh.gives(("a", "delay", "b"), "booked", starts[0], 30e6);
    let joined_s = NOW_S + SELDOM_S + 5;
    // One of two, and it is waited for 90 s longer than it takes.
    assert_eq!(work(&mut watcher, &path, starts[1] + 98), Vec::<String>::new());
    assert_eq!(mesh.incidents(), []);
    mesh.gives(("a", "delay", "b"), "booked", starts[1], 31e6);
    assert_eq!(work(&mut watcher, &path, joined_s - 1), Vec::<String>::new(), "others may come");
    assert_eq!(mesh.incidents(), []);
    assert_eq!(work(&mut watcher, &path, joined_s), Vec::<String>::new(), "a survey is to come");
    let [incident] = &mesh.incidents()[..] else { panic!("{:?}", mesh.incidents()) };
    let survey = incident.survey.clone().expect("it was booked");
    assert_eq!((survey.agent.as_str(), survey.task.as_str()), ("a", "look/b"));
    assert_eq!(booked(&mesh, "survey"), [("a".to_owned(), "look/b".to_owned(), survey.start_s)]);
    assert!(incident.confirmed && survey.verdict.is_none());
    assert!(incident.sentence.ends_with("; confirmed by further runs"), "{}", incident.sentence);
    drop(watcher);
    let mut watcher = mesh.watcher();
    let at_s = survey.start_s + 45;
    mesh.gives(("a", "look", "b"), "booked", survey.start_s, 30e6);
    assert_eq!(work(&mut watcher, &path, at_s), ["change"]);
    let incident = mesh.incidents().remove(0);
    let survey = incident.survey.clone().expect("there it is");
    let verdict = survey.verdict.expect("it ended");
    assert!(survey.record.is_some() && !verdict.is_empty(), "{verdict}");
    assert!(incident.sentence.ends_with(&format!("runs; {verdict}")), "{}", incident.sentence);
    let told = std::fs::read_to_string(path.join("told")).expect("it was told");
    let told: serde_json::Value = serde_json::from_str(told.trim()).expect("one of JSON");
    assert_eq!(told["incident"]["survey"]["verdict"], verdict.as_str());
    assert_eq!(told["sentence"], incident.sentence.as_str());
    assert_eq!(work(&mut watcher, &path, at_s + 60), ["change"], "told once");
}

fn a_task_that_repeats_often_is_shown_again_by_its_own_next_runs(database: Database<'_>) {
    let mesh = mesh_with(database, PERIOD_S, ADHOC);
    let path = mesh.directory.path().to_owned();
    mesh.rounds(NOW_S - 300, 40, |_, _| 1.0);
    mesh.rounds(NOW_S, 30, slow);
    NAMES.iter().for_each(|name| mesh.heard(name, NOW_S + 400));
    let mut watcher = mesh.watcher();
    assert_eq!(work(&mut watcher, &path, NOW_S), Vec::<String>::new());
    mesh.rounds(NOW_S + 10, 1, slow);
    assert_eq!(work(&mut watcher, &path, NOW_S + 20), Vec::<String>::new());
    assert_eq!((mesh.incidents(), booked(&mesh, "confirm")), (Vec::new(), Vec::new()));
    drop(watcher);
    let mut watcher = mesh.watcher();
    mesh.rounds(NOW_S + 20, 1, slow);
    assert_eq!(work(&mut watcher, &path, NOW_S + 21), Vec::<String>::new(), "a survey is to come");
    assert!(mesh.incidents()[0].confirmed);
    assert_eq!(booked(&mesh, "survey").len(), 1);
}

fn a_survey_that_nothing_is_heard_of_holds_no_alert_for_ever(database: Database<'_>) {
    let (mesh, starts) = suspected(database);
    let path = mesh.directory.path().to_owned();
    starts.iter().for_each(|at| mesh.gives(("a", "delay", "b"), "booked", *at, 30e6));
    let mut watcher = mesh.watcher();
    assert_eq!(work(&mut watcher, &path, NOW_S + SELDOM_S + 5), Vec::<String>::new());
    let until_s = mesh.incidents()[0].survey.as_ref().expect("booked").until_s;
    NAMES.iter().for_each(|name| mesh.heard(name, until_s));
    mesh.rounds(until_s, 1, slow);
    assert_eq!(work(&mut watcher, &path, until_s - 1), Vec::<String>::new());
    assert_eq!(work(&mut watcher, &path, until_s), ["change"]);
    let said = &mesh.incidents()[0].sentence;
    assert!(said.ends_with("nothing was heard of its survey"), "{said}");
}

fn a_change_that_further_runs_do_not_show_is_dropped_and_its_way_back_is_none_either(
    database: Database<'_>,
) {
    let (mesh, starts) = suspected(database);
    let path = mesh.directory.path().to_owned();
    for at_s in &starts {
        mesh.gives(("a", "delay", "b"), "booked", *at_s, 10e6);
    }
    let mut watcher = mesh.watcher();
    assert_eq!(work(&mut watcher, &path, NOW_S + 150), Vec::<String>::new());
    assert_eq!(mesh.incidents(), []);
    let events = mesh.events("a");
    let [event] = &events[..] else { panic!("{events:?}") };
    assert_eq!(event.kind, EventKind::Dropped);
    let said = event.detail["sentence"].as_str().expect("a sentence");
    assert!(said.contains("delay a to b") && said.contains("dropped"), "{said}");
    // The detector took the new level; that the old one is back is no news.
    drop(watcher);
    let mut watcher = mesh.watcher();
    mesh.rounds(NOW_S + 500, 30, |_, _| 1.0);
    for later in [500, 600, 800] {
        NAMES.iter().for_each(|name| mesh.heard(name, NOW_S + later));
        mesh.rounds(NOW_S + later + 3, 1, |_, _| 1.0);
        assert_eq!(work(&mut watcher, &path, NOW_S + later + 5), Vec::<String>::new(), "{later}");
    }
    assert_eq!((mesh.incidents(), booked(&mesh, "confirm").len()), (Vec::new(), 2));
    let events = mesh.events("a");
    assert!(events.iter().all(|it| it.detail["incident"] == "none"), "{events:?}");
}
