//! Documents that say the same: a number that is read and written again may differ in its last
//! digit, since JSON's reader is not exact for those of more than 17 digits.

use linerate_core::tree;
use serde::Serialize;

/// Two values are the same as documents.
pub(crate) fn assert_alike<T: Serialize + PartialEq>(one: &T, other: &T) {
    if one == other {
        return;
    }
    let parts = |value: &T| -> Vec<String> {
        let text = tree::to_json(value).expect("what was read can be written");
        text.split([',', ':', '[', ']', '{', '}']).map(str::to_owned).collect()
    };
    let (one, other) = (parts(one), parts(other));
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other).filter(|(one, other)| one != other) {
        let numbers = one.parse::<f64>().ok().zip(other.parse::<f64>().ok());
        let near = numbers.is_some_and(|(a, b)| (a - b).abs() <= a.abs() * 1e-15);
        assert!(near, "{one} and {other}");
    }
}
