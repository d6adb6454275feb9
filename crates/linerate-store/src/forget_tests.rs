//! Which results go by a policy, with planted times: an hour apart, the newest now.

use linerate_core::policy::{Keep, Policy};
use linerate_core::record::{PingPlan, Plan, Record, RecordId, Tool};
use linerate_core::time::WallTime;
use tempfile::TempDir;

use super::*;

/// 2026-11-01T00:00:00Z.
const NOW_S: u64 = 1_793_491_200;

fn now() -> WallTime {
    WallTime::from_unix_nanos(u128::from(NOW_S) * 1_000_000_000)
}

/// A result that began so many hours ago, with a label.
fn record(hours_ago: u64, tag: Option<&str>) -> Record {
    let began_ms = (NOW_S - hours_ago * 3600) * 1000;
    let tail = (hours_ago as u16).to_be_bytes();
    let id = RecordId::from_parts(began_ms, [tail[0], tail[1], 0, 0, 0, 0, 0, 0, 0, 1]);
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    let at = WallTime::from_unix_nanos(u128::from(began_ms) * 1_000_000);
    let mut record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), at);
    record.tags.extend(tag.map(|tag| (tag.to_owned(), "yes".to_owned())));
    record
}

/// A store of results of the last so many hours, one each.
fn filled(hours: u64, tag: impl Fn(u64) -> Option<&'static str>) -> (TempDir, Store) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = Store::open(&directory.path().join("results.db")).expect("a store");
    // A thousand waits for the disk would tell nothing here.
    store.connection.pragma_update(None, "synchronous", "OFF").expect("open");
    for ago in (0..hours).rev() {
        store.put_record(&record(ago, tag(ago))).expect("room");
    }
    (directory, store)
}

fn keep(text: &str) -> Keep {
    let text = format!("[keep]\n{text}\n[[rule]]\nname = \"all\"\n");
    Policy::from_toml(&text).expect("a policy").keep.expect("it is there")
}

/// How old what is left is, in hours.
fn left(store: &Store) -> Vec<u64> {
    let entries = store.list_history(&HistoryFilter::default(), 10_000).expect("readable");
    let ago = |entry: &HistoryEntry| {
        let at: WallTime = WallTime::from_user_text(&entry.started_at, now()).expect("a time");
        (NOW_S - at.unix_millis() / 1000) / 3600
    };
    entries.iter().map(ago).collect()
}

#[test]
fn the_oldest_go_by_age_number_and_bytes() {
    let size = linerate_core::tree::to_json(&record(5, None)).expect("JSON").len();
    // Ten results, 0 to 9 hours old, all of one size but for the digits of their times.
    for (text, expected) in [
        // One that began exactly 4 h ago is not older than that.
        ("time = \"4h\"".to_owned(), 0..5),
        ("count = 7".to_owned(), 0..7),
        // Room for six and a half.
        (format!("bytes = \"{}\"", size * 13 / 2), 0..6),
        ("time = \"8h\"\ncount = 3".to_owned(), 0..3),
        ("time = \"100d\"\ncount = 100\nbytes = \"1 GB\"".to_owned(), 0..10),
    ] {
        let (_directory, mut store) = filled(10, |_| None);
        let keep = keep(&text);
        let would = store.would_forget(&keep, now()).expect("readable");
        let went = store.forget(&keep, now()).expect("room");
        assert_eq!((went.results, went.more), (10 - expected.end, false), "{text}");
        assert_eq!(would, went, "{text}");
        assert_eq!(left(&store), expected.collect::<Vec<_>>(), "{text}");
        assert_eq!(store.forget(&keep, now()), Ok(Forgotten::default()), "{text}");
    }
}

#[test]
fn what_began_within_the_hour_or_has_another_keeper_stays_and_does_not_count() {
    // 20 results: of every second one somebody else decides.
    let tag = |ago: u64| match ago % 4 {
        1 => Some("keep"),
        3 => Some("schedule"),
        _ => None,
    };
    let (_directory, mut store) = filled(20, tag);
    let went = store.forget(&keep("count = 2"), now()).expect("room");
    assert_eq!(went.results, 8, "of ten that may go");
    let odd = (0..20).filter(|ago| ago % 2 == 1 || *ago <= 2).collect::<Vec<_>>();
    assert_eq!(left(&store), odd);
    // 0 h ago is within the hour, however little is to stay.
    store.forget(&keep("bytes = \"1\""), now()).expect("room");
    assert_eq!(left(&store), (0..20).filter(|ago| ago % 2 == 1 || *ago == 0).collect::<Vec<_>>());
}

#[test]
fn many_go_in_steps_and_a_result_is_asked_to_stay_and_let_go_again() {
    let (directory, mut store) = filled(1203, |_| None);
    let id = record(1100, None).id.to_string();
    assert_eq!(store.mark_kept(&id, true).map(|id| id.to_string()), Ok(id.clone()));
    let mut other = Store::open(store.path()).expect("a second one on the file");
    let keep = keep("time = \"1h\"");
    let mut steps = Vec::new();
    while let Ok(Forgotten { results, more: true, .. }) = store.forget(&keep, now()) {
        steps.push(results);
        // Somebody who stores between two steps does not wait and does not lose.
        let n = steps.len() as u64;
        let mut late = record(0, Some("keep"));
        late.id = RecordId::from_parts(NOW_S * 1000 + n, [7; 10]);
        other.put_record(&late).expect("room");
    }
    assert_eq!(steps, [500, 500]);
    assert_eq!(left(&store), [0, 0, 0, 1, 1100]);
    assert_eq!(store.get(&id).expect("it stayed").tags["keep"], "yes");
    store.mark_kept(&id, false).expect("room");
    assert!(store.get(&id).expect("still").tags.is_empty());
    assert_eq!(store.forget(&keep, now()).map(|it| it.results), Ok(1));
    assert_eq!(left(&store), [0, 0, 0, 1]);
    drop(directory);
}
