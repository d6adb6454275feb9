//! The plan that a test of a study embeds: what holds for all of its runs, by the plan's own names.
//!
//! A sweep has the plan as a field, so an option of the plan is an option of every study. A file
//! has the fields that differ from the base; those that a sweep sets by its lists and spans, and
//! those that a study has no use for, are no keys.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::fault::{Checked, fault_at_path};
use crate::lab::Step;
use crate::record::{BenchFrames, BenchPlan, PingMode, PingPlan, TcpTest, UdpTest};

/// Keys of a table.
pub(super) type Keys = Map<String, Value>;

/// A plan within a test of a study.
pub(super) trait Embedded: Default + Serialize + DeserializeOwned {
    /// Fields that are no keys of a test, with blanks between.
    const WITHHELD: &'static str;

    /// The plan of a test that gives none of its keys.
    fn plan_without_keys() -> Self {
        Self::default()
    }

    /// True for a field that is no key of a test.
    fn withholds(field: &str) -> bool {
        Self::WITHHELD.split(' ').any(|withheld| withheld == field)
    }
}

impl Embedded for TcpTest {
    // One result of one direction: the places of client and server in the topology say which.
    const WITHHELD: &'static str = "directions streams finish omit_ns \
         interval_ns window_bytes read_bytes read_pace_bps background_bps";
}

impl Embedded for UdpTest<Option<u32>> {
    const WITHHELD: &'static str =
        "directions streams finish omit_ns interval_ns size_bytes pace_bps search";
}

impl Embedded for PingPlan {
    // The laboratory gives the target.
    const WITHHELD: &'static str =
        "host transport port family bind sizes_bytes count stamp profile";

    fn plan_without_keys() -> Self {
        Self { host: String::new(), mode: PingMode::Flood, ..Self::default() }
    }
}

impl Embedded for BenchFrames {
    const WITHHELD: &'static str = "size_bytes mix";
}

impl Embedded for BenchPlan {
    // A study runs no command of a shell.
    const WITHHELD: &'static str = "ports frames tests goals times line known filters contract \
                                    cell_contract reset_command";
}

/// The base with the keys that the plan has; others are left to whoever has them.
/// # Errors
/// A value that is not of its field's type.
pub(super) fn plan_of<T: Embedded>(given: &Keys) -> Result<T, crate::tree::Error> {
    let mut keys = keys_of(&T::plan_without_keys());
    let own = given.iter().filter(|(key, _)| !T::withholds(key));
    keys.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    crate::tree::from_value(Value::Object(keys))
}

/// True for a key that the plan has.
/// # Errors
/// Where it has, but for values of another type.
pub(super) fn plan_has_key<T: Embedded>(
    key: &str,
    value: &Value,
) -> Result<bool, crate::tree::Error> {
    let plan: T = plan_of(&Keys::from_iter([(key.to_owned(), value.clone())]))?;
    Ok(!T::withholds(key) && keys_of(&plan).contains_key(key))
}

/// The keys that a file has for a plan.
pub(super) fn differing<T: Embedded>(plan: &T) -> Keys {
    let base = keys_of(&T::plan_without_keys());
    let mut keys = keys_of(plan);
    keys.retain(|key, value| !T::withholds(key) && base.get(key) != Some(value));
    keys.values_mut().for_each(without_nulls);
    keys
}

/// TOML has no null: what is null is absent.
fn without_nulls(value: &mut Value) {
    if let Value::Object(keys) = value {
        keys.retain(|_, value| !value.is_null());
        keys.values_mut().for_each(without_nulls);
    }
}

/// Every key that a test gives of its plan passes the plan's check by itself.
pub(super) fn check_each_key<T: Embedded, E: ToString>(
    plan: &T,
    check: impl Fn(&T) -> Result<(), E>,
) -> Checked {
    for (key, value) in differing(plan) {
        let alone = plan_of(&Keys::from_iter([(key.clone(), value)]));
        if let Some(Err(error)) = alone.ok().map(|alone| check(&alone)) {
            return fault_at_path(&[Step::Named(key)], error.to_string());
        }
    }
    Ok(())
}

fn keys_of<T: Serialize>(plan: &T) -> Keys {
    match crate::tree::to_value(plan) {
        Ok(Value::Object(keys)) => keys,
        _ => Keys::new(),
    }
}

/// For `#[serde(with)]`.
pub(super) fn serialize<T: Embedded, S: Serializer>(plan: &T, to: S) -> Result<S::Ok, S::Error> {
    differing(plan).serialize(to)
}

/// For `#[serde(with)]`.
pub(super) fn deserialize<'de, T: Embedded, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    plan_of(&Keys::deserialize(from)?).map_err(D::Error::custom)
}

/// The keys as a schema: none is required.
#[cfg(feature = "schema")]
pub(super) fn schema<T: Embedded + schemars::JsonSchema>(
    generator: &mut schemars::SchemaGenerator,
) -> schemars::Schema {
    let mut schema = T::json_schema(generator);
    schema.remove("required");
    schema.remove("description");
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|key, _| !T::withholds(key));
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object_keys(value: Value) -> Keys {
        crate::tree::from_value(value).expect("an object")
    }

    #[test]
    fn a_file_has_the_fields_that_differ_and_no_others() {
        let given = object_keys(json!({ "nodelay": true, "dscp": 46, "mss_bytes": 1448 }));
        let plan: TcpTest = plan_of(&given).expect("fields of a TCP test");
        let expected =
            TcpTest { nodelay: true, dscp: Some(46), mss_bytes: Some(1448), ..TcpTest::default() };
        assert_eq!(plan, expected);
        assert_eq!(differing(&plan), given);
        assert_eq!(differing(&TcpTest::default()), Keys::new());
        assert_eq!(differing(&PingPlan::plan_without_keys()), Keys::new());
    }

    #[test]
    fn what_the_sweep_sets_is_left_as_it_is_and_a_wrong_type_is_refused() {
        let given = object_keys(json!({ "finish": "never", "streams": [1, 2], "unknown": 3 }));
        assert_eq!(plan_of::<TcpTest>(&given).expect("none of its keys"), TcpTest::default());
        assert!(plan_of::<TcpTest>(&object_keys(json!({ "nodelay": "yes" }))).is_err());
    }

    #[test]
    fn every_withheld_field_is_one() {
        fn all_known<T: Embedded>(skipped_when_absent: &[&str]) {
            let known = keys_of(&T::plan_without_keys());
            let known = |key: &str| known.contains_key(key) || skipped_when_absent.contains(&key);
            let strangers: Vec<_> = T::WITHHELD.split(' ').filter(|key| !known(key)).collect();
            assert!(strangers.is_empty(), "{strangers:?}");
        }
        all_known::<TcpTest>(&["read_pace_bps"]);
        all_known::<UdpTest<Option<u32>>>(&["search"]);
        all_known::<PingPlan>(&["stamp", "profile"]);
        all_known::<BenchFrames>(&[]);
        all_known::<BenchPlan>(&[]);
    }
}
