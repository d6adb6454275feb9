//! What the parsers of `linerate bench` share: lists of KEY=VALUE.

use std::str::FromStr;

/// The parts of `a=1,b=2`, in order. Each key is one of `keys`, and is there once.
pub(super) fn settings<'a>(
    text: &'a str,
    keys: &[&str],
) -> Result<Vec<(&'a str, &'a str)>, String> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if !keys.contains(&key) {
            return Err(format!("'{part}' is none of {}", keys.join("=, ") + "="));
        }
        if value.is_empty() {
            return Err(format!("'{key}' has no value; it is {key}=…"));
        }
        if found.iter().any(|(other, _)| *other == key) {
            return Err(format!("'{key}' is there twice"));
        }
        found.push((key, value));
    }
    Ok(found)
}

/// A value, or one line that names its key.
pub(super) fn parse_value<T: FromStr<Err: std::fmt::Display>>(
    key: &str,
    text: &str,
) -> Result<T, String> {
    text.parse().map_err(|error| format!("{key}: {error}"))
}

/// A whole number with an SI prefix or without, above 0: `64k`.
pub(super) fn parse_count(key: &str, text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1000),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let number = number.filter(|number| *number > 0);
    number.ok_or_else(|| format!("{key}: '{text}' is no whole number above 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_settings_names_what_is_wrong_with_it() {
        let keys = ["a", "b"];
        assert_eq!(settings("b=1,a=x=2", &keys), Ok(vec![("b", "1"), ("a", "x=2")]));
        for (wrong, part) in [
            ("", "'' is none of a=, b="),
            ("c=1", "'c=1' is none of a=, b="),
            ("a", "'a' has no value"),
            ("a=", "'a' has no value"),
            ("a=1,a=2", "'a' is there twice"),
        ] {
            let error = settings(wrong, &keys).expect_err(wrong);
            assert!(error.contains(part), "{wrong}: {error}");
        }
    }

    #[test]
    fn counts_are_whole_and_above_zero() {
        assert_eq!(parse_count("n", "64"), Ok(64));
        assert_eq!(parse_count("n", "2k"), Ok(2000));
        assert_eq!(parse_count("n", "1M"), Ok(1_000_000));
        for wrong in ["0", "-1", "1.5", "k", "", "99999999999999999999", "18446744073709551615k"] {
            assert!(parse_count("n", wrong).is_err(), "{wrong}");
        }
    }
}
