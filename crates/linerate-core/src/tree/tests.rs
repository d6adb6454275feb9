//! Held against serde_json and toml, which read and write the same types without a tree.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    name: String,
    count: u64,
    offset: i32,
    share: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    absent: Option<u8>,
    pair: (u16, bool),
    bins: BTreeMap<u32, i64>,
    kinds: Vec<Kind>,
    seen: Wrapped,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Wrapped(String);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Plain,
    One(f64),
    Two(u8, u8),
    Named { depth: i64 },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    id: String,
    #[serde(flatten)]
    rest: Tagged,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    Near { hops: u8 },
    Far { km: f64 },
}

fn whole() -> Whole {
    Whole {
        name: "B \"\u{1f41b}\"\n".to_owned(),
        count: u64::MAX,
        offset: -7,
        share: 0.1,
        absent: None,
        pair: (5210, true),
        bins: BTreeMap::from([(10, -1), (9, 4)]),
        kinds: vec![Kind::Plain, Kind::One(1.0), Kind::Two(1, 2), Kind::Named { depth: i64::MIN }],
        seen: Wrapped("x".to_owned()),
    }
}

#[test]
fn json_is_what_serde_json_writes() {
    let whole = whole();
    assert_eq!(to_json(&whole).ok(), serde_json::to_string(&whole).ok());
    assert_eq!(to_json_pretty(&whole).ok(), serde_json::to_string_pretty(&whole).ok());
    assert_eq!(to_value(&whole).ok(), serde_json::to_value(&whole).ok());
    // RFC 8259 §6 has no number that is none.
    assert_eq!(to_json(&f64::NAN).as_deref(), Ok("null"));
}

#[test]
fn json_is_read_as_serde_json_reads_it() {
    let text = serde_json::to_string(&whole()).expect("plain data");
    assert_eq!(from_json(&text), Ok(whole()));
    assert_eq!(from_value(serde_json::from_str(&text).expect("JSON")), Ok(whole()));
    let flat = Flat { id: "a".to_owned(), rest: Tagged::Far { km: 3.0 } };
    assert_eq!(from_json(r#"{"kind":"far","id":"a","km":3}"#), Ok(flat));
}

#[test]
fn toml_is_what_toml_writes_and_reads() {
    let whole = Whole { count: 1, ..whole() };
    let text = ::toml::to_string(&whole).expect("a table");
    assert_eq!(to_toml(&whole), Ok(text.clone()));
    assert_eq!(from_toml(&text), Ok(whole));
    // What is no table is no document of TOML.
    assert!(to_toml(&7).is_err());
}

#[test]
fn numbers_of_toml_have_its_forms() {
    let read = |text: &str| from_toml::<BTreeMap<String, f64>>(text).map(|table| table["a"]);
    // TOML 1.0, sections Integer and Float.
    for (text, value) in [
        ("a = 1_000", 1000.0),
        ("a = 0xDEAD_BEEF", f64::from(0xdead_beef_u32)),
        ("a = 0o755", 493.0),
        ("a = 0b11010110", 214.0),
        ("a = -17", -17.0),
        ("a = 5e+22", 5e22),
        ("a = -inf", f64::NEG_INFINITY),
    ] {
        assert_eq!(read(text), Ok(value), "{text}");
    }
    assert!(read("a = nan").is_ok_and(f64::is_nan));
    assert_eq!(read("\na = 1e999").map_err(|error| error.offset()), Err(Some(5)));
}

#[track_caller]
fn check_place(text: &str, at: &str) {
    let error = from_toml::<Whole>(text).expect_err("it does not fit");
    assert_eq!(error.offset(), text.find(at), "{error}");
    let theirs = ::toml::from_str::<Whole>(text).expect_err("it does not fit");
    assert_eq!(error.offset(), theirs.span().map(|span| span.start), "{theirs}");
    assert_eq!(error.message(), theirs.message());
}

#[test]
fn a_fault_has_its_place_in_toml() {
    check_place("name = 'x'\nnam = 'y'", "nam =");
    check_place("name = 'x'\ncount = -3", "-3");
    check_place("bins.5 = 'many'", "'many'");
    check_place("kinds = ['plain', { one = 'x' }]", "'x'");
    check_place("kinds = [{ none = 1 }]", "none");
    // Text that is not TOML, at its end.
    assert_eq!(from_toml::<Whole>("name = ").map_err(|error| error.offset()), Err(Some(7)));
}

#[test]
fn a_list_of_toml_that_is_too_long_is_refused() {
    let error = from_toml::<BTreeMap<String, (u8, bool)>>("pair = [1, true, 3]");
    let error = error.expect_err("it has a third item");
    assert_eq!(
        (error.message(), error.offset()),
        ("invalid length 3, expected fewer elements in array", Some(7))
    );
}

#[test]
fn a_fault_of_json_is_named_and_placed_where_the_text_is_not_json() {
    let say = |text: &str| from_json::<Kind>(text).expect_err("it does not fit").to_string();
    assert!(say("{\n\"one\":").ends_with("at line 2 column 6"), "{}", say("{\n\"one\":"));
    assert!(say("\"other\"").starts_with("unknown variant `other`"));
    assert!(say("{\"two\":[1,2,3]}").contains("invalid length 3"));
    assert!(say("{\"one\":1,\"plain\":null}").contains("single key"));
    assert!(say("[]").contains("string or map"));
    // A key that stands twice is one too many, as without a tree.
    let twice = r#"{"name":"a","name":"b"}"#;
    assert!(from_json::<Whole>(twice).is_err_and(|error| error.message().contains("duplicate")));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e300..1e300).prop_map(|number: f64| Value::from(number)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_survives_the_way_through_a_tree(value in any_value()) {
        let text = serde_json::to_string(&value).expect("JSON");
        prop_assert_eq!(to_json(&value), Ok(text.clone()));
        let read = from_json::<Value>(&text).ok();
        prop_assert_eq!(read, serde_json::from_str::<Value>(&text).ok());
        prop_assert_eq!(to_value(json!({ "a": value })).map(|it| it["a"].clone()), Ok(value));
    }
}
