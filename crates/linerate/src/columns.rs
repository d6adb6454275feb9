//! Lists in columns for the terminal: text stands left, figures stand right.

use std::collections::BTreeSet;

/// Where a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// Names.
    Left,
    /// Figures.
    Right,
}

/// Lays `rows` out under `head`, two spaces between columns, each line ended.
pub(crate) fn lay_out(head: &[(&str, Stand)], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
        let cells = cells.chain(head.get(column).map(|(title, _)| *title));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let titles = head.iter().map(|(title, _)| (*title).to_owned()).collect();
    let mut out = String::new();
    for row in std::iter::once(&titles).chain(rows) {
        let cells =
            row.iter().zip(head).zip(&widths).map(|((cell, (_, stand)), &width)| match stand {
                Stand::Left => format!("{cell:<width$}"),
                Stand::Right => format!("{cell:>width$}"),
            });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// Lays out as [`lay_out`] does; where that is wider than `width`, columns without any value go
/// first, then those named in `dropped`, in that order, until it fits or none is left to go.
pub(crate) fn lay_out_within(
    head: &[(&str, Stand)],
    rows: &[Vec<String>],
    width: Option<usize>,
    dropped: &[&str],
) -> String {
    let whole = lay_out(head, rows);
    let Some(width) = width.filter(|width| widest(&whole) > *width) else { return whole };
    let place = |name: &&str| head.iter().position(|(title, _)| title == name);
    let is_empty =
        |column: &usize| rows.iter().all(|row| row.get(*column).is_none_or(|cell| cell == "-"));
    let columns: Vec<usize> = dropped.iter().filter_map(place).collect();
    let (empty, full): (Vec<usize>, Vec<usize>) = columns.iter().partition(|it| is_empty(it));
    let mut kept: Vec<usize> = (0..head.len()).collect();
    let mut text = whole;
    for column in empty.into_iter().chain(full) {
        kept.retain(|it| *it != column);
        let head: Vec<(&str, Stand)> = kept.iter().map(|&it| head[it]).collect();
        let pick = |row: &Vec<String>| {
            kept.iter().map(|&it| row.get(it).cloned().unwrap_or_default()).collect()
        };
        text = lay_out(&head, &rows.iter().map(pick).collect::<Vec<_>>());
        if widest(&text) <= width {
            break;
        }
    }
    text
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// A span as a person says it: `0.4 s`, `42 s`, `3 min 35 s`, `2 h 5 min`.
pub(crate) fn spoken(ns: u64) -> String {
    let seconds = (ns + 500_000_000) / 1_000_000_000;
    match seconds {
        0..10 => format!("{:.1} s", ns as f64 / 1e9),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The start of an identifier that names it among a user's records: its 48 bits of milliseconds.
pub(crate) fn short_id(id: &str) -> &str {
    id.get(..13).unwrap_or(id)
}

/// How many characters of these identifiers name each of them, from where [`short_id`] ends on.
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
    fn columns_are_as_wide_as_their_widest_cell() {
        let head = [("name", Stand::Left), ("n", Stand::Right)];
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["längest".to_owned(), "10".into()]];
        assert_eq!(lay_out(&head, &rows), "name      n\na         1\nlängest  10\n");
    }

    #[test]
    fn a_narrow_terminal_loses_empty_columns_first_then_the_least_telling() {
        let head = ["id", "value", "study", "name"].map(|title| (title, Stand::Left));
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [row(["1234", "16384", "-", "first"]), row(["5678", "56", "-", "second"])];
        let at = |width| lay_out_within(&head, &rows, Some(width), &["value", "study"]);
        // 4 + 2 + 5 + 2 + 5 + 2 + 6 = 26 columns in all, 19 without the study.
        assert_eq!(at(26), lay_out(&head, &rows));
        assert_eq!(at(25).lines().next(), Some("id    value  name"));
        assert_eq!(at(18).lines().next(), Some("id    name"));
        assert_eq!(at(3).lines().next(), Some("id    name"), "what is left stays");
        assert_eq!(lay_out_within(&head, &rows, None, &["value"]), lay_out(&head, &rows));
    }

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
