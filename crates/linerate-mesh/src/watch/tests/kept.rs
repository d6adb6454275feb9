//! What is kept of a watch: whole or not at all, and until it has been told.

use linerate_core::mesh::{Incident, IncidentKind, Member, Moved};
use linerate_core::schedule::EventKind;
use linerate_store::{HAPPENED_KEPT_S, HubStore, NewAlert, OutgoingAlert, TaskNote};

use super::{Database, NOW_S, mesh};

fn incident_of(id: &str) -> Incident {
    Incident {
        id: id.to_owned(),
        kind: IncidentKind::Change,
        opened_s: NOW_S,
        since_s: NOW_S as f64,
        until_s: None,
        shared: None,
        hit: 1,
        of: 1,
        members: Vec::new(),
        confirmed: false,
        survey: None,
        sentence: "slower".to_owned(),
    }
}

fn alert_of(id: &str, at_s: i64) -> NewAlert {
    let (sentence, json) = ("slower".to_owned(), "{}".to_owned());
    NewAlert { id: id.to_owned(), at_s, sentence, json }
}

pub(super) fn an_incident_is_kept_with_its_alert_its_changes_and_its_notes_or_not_at_all(
    database: Database<'_>,
) {
    let mesh = mesh(database);
    mesh.give("a", "b", NOW_S, 10e6);
    let mut store = mesh.store();
    let note = |kind: EventKind| TaskNote {
        plan: "m/a".to_owned(),
        task: "delay/b".to_owned(),
        at_s: NOW_S,
        kind,
        detail: serde_json::json!({ "sentence": kind }),
    };
    let notes = [note(EventKind::Change), note(EventKind::Change)];
    let ids = store.mesh_watched("m/a", "delay/b", NOW_S as f64, &notes);
    let ids = ids.expect("room");
    assert_eq!(store.mesh_watched_s("m/a", "delay/b"), Ok(Some(NOW_S as f64)));
    assert_eq!(store.mesh_watched_s("m/a", "delay/c"), Ok(None));
    mesh.give("a", "c", NOW_S, 10e6);
    let mark =
        |task: &str, after_s| (("m/a".to_owned(), task.to_owned()), (NOW_S + after_s) as f64);
    store.mesh_looked(&[mark("delay/b", 1), mark("delay/c", 2)].into()).expect("room");
    let marks = ["delay/b", "delay/c"].map(|task| store.mesh_watched_s("m/a", task));
    assert_eq!(marks, [1, 2].map(|after_s| Ok(Some((NOW_S + after_s) as f64))));
    let (alert, to) = (alert_of("x", NOW_S), ["command".to_owned()]);
    let out = || Some(OutgoingAlert { owner: "mesh:m", alert: &alert, outputs: &to });
    store.incident_is("m", &incident_of("1"), &ids[..1], &[], out()).expect("room");
    // The alert of that identifier is there: nothing of the second is kept.
    let refused = store.incident_is("m", &incident_of("2"), &ids, &[note(EventKind::Data)], out());
    assert!(refused.is_err());
    assert_eq!(mesh.incidents(), [incident_of("1")]);
    let events = mesh.events("a");
    let of: Vec<_> = events.iter().map(|it| (it.id, it.detail["incident"].as_str())).collect();
    assert_eq!(of, [(ids[0], Some("1")), (ids[1], None)]);
    // Over, it is what it was, and is passed over later on.
    let over = Incident { until_s: Some(NOW_S + 5), ..incident_of("1") };
    let mut store = mesh.store();
    store.incident_is("m", &over, &[], &[note(EventKind::Data)], None).expect("room");
    assert_eq!(store.incidents("m", NOW_S + 5), Ok(vec![over]));
    assert_eq!(store.incidents("m", NOW_S + 6), Ok(Vec::new()));
    assert_eq!(store.incidents("n", 0), Ok(Vec::new()));
    assert_eq!(mesh.events("a")[2].kind, EventKind::Data);
    assert_eq!((mesh.events("b"), mesh.events("a").len()), (Vec::new(), 3));
    let late = store.mesh_events("m/a", NOW_S + 1);
    assert_eq!(late, Ok(Vec::new()));
}

pub(super) fn each_output_of_a_mesh_gets_an_alert_until_it_has_it(database: Database<'_>) {
    let mesh = mesh(database);
    let mut store = mesh.store();
    let to = ["command".to_owned(), "webhook".to_owned()];
    for (id, at_s) in [("x", NOW_S), ("y", NOW_S + 1)] {
        let alert = alert_of(id, at_s);
        let out = Some(OutgoingAlert { owner: "mesh:m", alert: &alert, outputs: &to });
        store.incident_is("m", &incident_of("1"), &[], &[], out).expect("room");
    }
    let due = |store: &mut Box<dyn HubStore>, output: &str, now_s| {
        let due = store.alert_due("mesh:m", output, now_s).expect("readable");
        due.map(|due| (due.id, due.tries, due.json))
    };
    let is = |id: &str, tries| Some((id.to_owned(), tries, "{}".to_owned()));
    assert_eq!(due(&mut store, "command", NOW_S - 1), None);
    assert_eq!(due(&mut store, "command", NOW_S + 1), is("x", 0));
    assert_eq!(store.alert_due("mesh:n", "command", NOW_S + 1), Ok(None));
    store.alert_told("x", "command", NOW_S + 1).expect("room");
    store.alert_failed("x", "webhook", Some(NOW_S + 20), "HTTP 500").expect("room");
    assert_eq!(due(&mut store, "command", NOW_S + 1), is("y", 0));
    assert_eq!(due(&mut store, "webhook", NOW_S + 1), is("y", 0));
    assert_eq!(due(&mut store, "webhook", NOW_S + 20), is("x", 1), "the older one first");
    store.alert_failed("x", "webhook", None, "HTTP 500").expect("room");
    assert_eq!(due(&mut store, "webhook", NOW_S + 9999), is("y", 0), "it was given up");
    let wanted = [("webhook", Some("HTTP 500")), ("command", None), ("webhook", None)];
    let wanted = wanted.map(|(to, why)| (to.to_owned(), why.map(str::to_owned)));
    assert_eq!(store.alerts_waiting("mesh:m", 0), Ok(wanted.to_vec()));
    assert_eq!(store.alerts_waiting("mesh:m", NOW_S + 1).expect("readable").len(), 2);
    // A month later it is forgotten.
    let month_s = 30 * 86_400;
    let alert = alert_of("z", NOW_S + month_s + 1);
    let out = Some(OutgoingAlert { owner: "mesh:m", alert: &alert, outputs: &to[..1] });
    store.incident_is("m", &incident_of("1"), &[], &[], out).expect("room");
    assert_eq!(store.alerts_waiting("mesh:m", 0).expect("readable").len(), 3);
}

/// A pair whose level is not back.
fn changed() -> Member {
    let moved = Moved {
        metric: "rtt_ns".to_owned(),
        before: 1e6,
        after: 2e6,
        since_s: NOW_S as f64,
        between_s: (NOW_S as f64, NOW_S as f64),
        back_s: None,
    };
    let (to, task) = (Some("b".to_owned()), Some("delay".to_owned()));
    Member { from: "a".to_owned(), to, task, moved: vec![moved], reason: None }
}

pub(super) fn what_is_over_goes_after_its_time_and_what_is_open_stays_with_its_events(
    database: Database<'_>,
) {
    let mesh = mesh(database);
    let mut store = mesh.store();
    let old_s = NOW_S - HAPPENED_KEPT_S - 1;
    let note = |plan: &str, at_s: i64, kind: EventKind, incident: &str| TaskNote {
        plan: plan.to_owned(),
        task: "delay/b".to_owned(),
        at_s,
        kind,
        detail: serde_json::json!({ "incident": incident }),
    };
    let of = |id: &str, until_s: Option<i64>| Incident { until_s, ..incident_of(id) };
    let mut keep = |mesh: &str, incident: &Incident, notes: &[TaskNote]| {
        store.incident_is(mesh, incident, &[], notes, None).expect("room");
    };
    let over: Vec<TaskNote> =
        (0..1200).map(|_| note("m/a", old_s, EventKind::NoData, "over")).collect();
    let open = [
        note("m/a", old_s, EventKind::NoData, "open"),
        note("m/a", old_s, EventKind::Data, "open"),
    ];
    let other = || note("n/a", old_s, EventKind::Data, "other");
    let newest = [
        note("m/a", old_s, EventKind::Data, "over"),
        note("m/a", old_s + 1, EventKind::NoData, "late"),
    ];
    keep("m", &of("over", Some(old_s)), &over);
    keep("m", &Incident { members: vec![changed()], ..of("open", None) }, &open);
    keep("m", &of("late", Some(old_s + 1)), &newest);
    keep("n", &of("other", Some(old_s)), &[other(), other()]);
    let mut watcher = mesh.watcher();
    for _ in 0..4 {
        watcher.run_checks(NOW_S).expect("the store is there");
    }
    let mut ids: Vec<String> = mesh.incidents().into_iter().map(|it| it.id).collect();
    ids.sort();
    assert_eq!(ids, ["late", "open"]);
    let events = mesh.events("a");
    let left: Vec<_> = events
        .iter()
        .map(|it| (it.at_s - old_s, it.kind, it.detail["incident"].as_str()))
        .collect();
    let stay = [
        (0, EventKind::NoData, "open"),
        (0, EventKind::Data, "open"),
        (0, EventKind::Data, "over"),
    ];
    assert_eq!(left[..3], stay.map(|(at_s, kind, of)| (at_s, kind, Some(of))));
    assert_eq!(left[3], (1, EventKind::NoData, Some("late")));
    // Another mesh of the store is its own hub's.
    assert_eq!(mesh.store().incidents("n", 0).expect("readable").len(), 1);
    assert_eq!(mesh.store().mesh_events("n/a", 0).expect("readable").len(), 2);
}
