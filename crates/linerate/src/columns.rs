//! Spans and identifiers as people read them.

use std::collections::BTreeSet;

/// A span in everyday words: `0.4 s`, `42 s`, `3 min 35 s`, `2 h 5 min`.
pub(crate) fn spoken(ns: u64) -> String {
    let seconds = (ns + 500_000_000) / 1_000_000_000;
    match seconds {
        0..10 => format!("{:.1} s", ns as f64 / 1e9),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `2000-07-01T12:00:00.123Z` without its fraction.
pub(crate) fn to_the_second(rfc3339: &str) -> String {
    match rfc3339.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => rfc3339.to_owned(),
    }
}

pub(crate) use linerate_report::headline::short_id;

/// Number of characters that name each of these identifiers, from the point where [`short_id`]
/// ends.
pub(crate) fn short_id_len<'a>(ids: impl Iterator<Item = &'a str> + Clone) -> usize {
    let distinct = |len: usize| {
        let mut seen = BTreeSet::new();
        ids.clone().all(|id| seen.insert(id.get(..len).unwrap_or(id)))
    };
    // The ends of the groups of a UUID (RFC 9562 §4).
    [13, 18, 23, 36].into_iter().find(|&len| distinct(len)).unwrap_or(36)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_cut_where_they_still_differ() {
        let ids = ["01a2005b-41e2-7000-8000-000000000001", "01a2005b-41e3-7000-8000-000000000001"];
        assert_eq!(short_id_len(ids.into_iter()), 13);
        let ids = ["01a2005b-41e2-7000-8000-000000000001", "01a2005b-41e2-7001-8000-000000000001"];
        assert_eq!(short_id_len(ids.into_iter()), 18);
        assert_eq!(short_id_len(["x", "x"].into_iter()), 36);
    }

    #[test]
    fn spans_are_spoken_in_two_units_at_most() {
        let cases = [
            (0, "0.0 s"),
            (440_000_000, "0.4 s"),
            (41_600_000_000, "42 s"),
            (215_000_000_000, "3 min 35 s"),
            (7_500_000_000_000, "2 h 5 min"),
        ];
        for (ns, expected) in cases {
            assert_eq!(spoken(ns), expected);
        }
    }
}
