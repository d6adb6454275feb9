//! A version speaks with the one before it: messages as that one wrote them are read, and what this
//! one writes, that one reads.
//!
//! `testdata/mesh/1` has each message as the first version wrote it. What it reads is what it
//! knows: every key of these files, of the same kind, whatever stands beside it.

use linerate_core::mesh::{
    Beat, BeatAnswer, Booking, Enrol, Enrolled, RunResult, RunResults, SignedPlan, Stored, VERSION,
};
use linerate_core::schedule::RunState;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn kept(name: &str) -> Value {
    let path = format!("{}/../../testdata/mesh/1/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(&path);
    serde_json::from_str(&text).expect("JSON")
}

fn read<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_value(kept(name)).expect(name)
}

/// Whether every key of a message of before is in one of now, with a value of the same kind; where
/// that may be null, null is taken.
fn is_read_by_the_version_before(name: &str, now: &impl Serialize) {
    fn holds(path: &str, before: &Value, now: &Value) {
        match (before, now) {
            (Value::Object(before), Value::Object(now)) => {
                for (key, value) in before {
                    let path = format!("{path}.{key}");
                    holds(&path, value, now.get(key).unwrap_or_else(|| panic!("{path} is gone")));
                }
            }
            (Value::Array(before), Value::Array(now)) => {
                for one in now {
                    holds(path, &before[0], one);
                }
            }
            (Value::Null, _) | (Value::Number(_), Value::Number(_)) => {}
            (Value::String(_), Value::String(_)) | (Value::Bool(_), Value::Bool(_)) => {}
            (before, now) => panic!("{path}: {now} in place of {before}"),
        }
    }
    let now = serde_json::to_value(now).expect("JSON");
    holds(name, &kept(name), &now);
    assert_eq!(now.get("v").is_some(), kept(name).get("v").is_some(), "{name}");
}

#[test]
fn messages_of_the_version_before_are_read_and_what_they_lack_is_as_if_it_were_not() {
    let enrol: Enrol = read("enrol");
    assert_eq!((enrol.v, enrol.token.len(), enrol.secret.len()), (VERSION, 32, 64));
    let enrolled: Enrolled = read("enrolled");
    assert_eq!((enrolled.mesh.as_str(), enrolled.agent.as_str()), ("m", "a"));
    let plan: SignedPlan = read("plan");
    assert!(plan.text.starts_with("mesh = \"m\"\n") && plan.signature.len() == 128);
    let beat: Beat = read("beat");
    assert_eq!((beat.starts, beat.waiting, beat.ahead_s), (3, 2, Some(-0.25)));
    // A hub of before books nothing and counts nothing.
    let answer: BeatAnswer = read("beat_answer");
    assert_eq!((answer.revision, answer.double), (2, false));
    assert_eq!((answer.bookings, answer.runs), (Vec::new(), None));
    // An agent of before runs its calendar alone.
    let results: RunResults = read("results");
    let [run] = &results.results[..] else { panic!("one") };
    assert_eq!(
        (run.task.as_str(), run.start_s, run.why.name()),
        ("rate/b", 1_795_478_400, "calendar")
    );
    let stored: Stored = read("stored");
    assert_eq!((stored.stored, stored.known, stored.runs), (1, 0, None));
}

#[test]
fn what_this_version_writes_has_all_that_the_one_before_reads() {
    let enrol = Enrol { v: VERSION, token: "t".to_owned(), secret: "s".to_owned() };
    is_read_by_the_version_before("enrol", &enrol);
    let enrolled = Enrolled { mesh: "m".to_owned(), agent: "a".to_owned() };
    is_read_by_the_version_before("enrolled", &enrolled);
    let (text, key, signature) = ("x".to_owned(), "k".to_owned(), "s".to_owned());
    is_read_by_the_version_before("plan", &SignedPlan { text, key, signature });
    let beat = Beat {
        v: VERSION,
        instance: "i".to_owned(),
        starts: 1,
        revision: 1,
        waiting: 0,
        ahead_s: Some(0.5),
    };
    is_read_by_the_version_before("beat", &beat);
    let booking =
        Booking { id: "i".to_owned(), task: "burst/b".to_owned(), start_s: 1, takes_s: 14 };
    let answer = BeatAnswer {
        revision: 1,
        wall_s: 1.5,
        double: true,
        bookings: vec![booking],
        runs: Some(7),
    };
    is_read_by_the_version_before("beat_answer", &answer);
    let run = |why: &str, reason: Option<&str>| RunResult {
        task: "rate/b".to_owned(),
        start_s: 1,
        state: RunState::Missed,
        reason: reason.map(str::to_owned),
        why: why.parse().expect("a word"),
        record: None,
    };
    let results = vec![run("calendar", Some("why")), run("booked", Some("why"))];
    is_read_by_the_version_before("results", &RunResults { v: VERSION, results });
    let stored = Stored { stored: 2, known: 1, runs: Some(9) };
    is_read_by_the_version_before("stored", &stored);
}

#[test]
#[should_panic(expected = "stored.known is gone")]
fn a_message_that_lost_a_key_is_found() {
    is_read_by_the_version_before("stored", &serde_json::json!({ "stored": 2 }));
}
