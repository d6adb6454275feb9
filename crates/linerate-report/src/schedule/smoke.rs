//! A series as smoke in text: columns are equal spans of time, rows equal parts of the range of
//! the values, and a cell is the darker, the more of its column's values it has.

/// Rows of a band.
const ROWS: usize = 4;
/// From a few of a column's values to all of them.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// A band of so many columns from one time to another: its rows, the highest values first.
pub fn smoke_rows(points: &[(f64, f64)], from_s: f64, until_s: f64, columns: usize) -> Vec<String> {
    let low = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
    let mut counts = vec![[0_usize; ROWS]; columns];
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "held below")]
    let part = |share: f64, parts: usize| ((share * parts as f64) as usize).min(parts - 1);
    for (at, value) in points {
        let share = (at - from_s) / (until_s - from_s);
        if !(0.0..=1.0).contains(&share) || columns == 0 {
            continue;
        }
        let row = if high > low { part((value - low) / (high - low), ROWS) } else { ROWS / 2 };
        counts[part(share, columns)][row] += 1;
    }
    let cell = |column: &[usize; ROWS], row: usize| {
        let (count, all) = (column[row], column.iter().sum::<usize>());
        match count {
            0 => ' ',
            _ => SHADES[part(count as f64 / all as f64, SHADES.len())],
        }
    };
    let rows = (0..ROWS).rev();
    rows.map(|row| counts.iter().map(|column| cell(column, row)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_dark_where_its_values_are_and_empty_where_there_are_none() {
        let points = [(0.0, 10.0), (0.5, 10.0), (1.0, 10.0), (3.0, 0.0), (3.5, 10.0)];
        let rows = smoke_rows(&points, 0.0, 4.0, 4);
        assert_eq!(rows, ["██ ▓", "    ", "    ", "   ▓"]);
        assert_eq!(smoke_rows(&[], 0.0, 4.0, 2), ["  "; 4]);
        assert_eq!(smoke_rows(&[(1.0, 5.0)], 0.0, 4.0, 2), ["  ", "█ ", "  ", "  "]);
    }
}
