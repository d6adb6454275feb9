//! Names that are near a mistyped one.

/// Names that at most two typing mistakes turn into `text`, nearest first, four at most.
pub fn similar_names<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let text = text.trim().to_ascii_lowercase();
    // Longer texts are no mistyped names, and the distance costs the product of the lengths.
    if text.len() > 20 {
        return Vec::new();
    }
    let mut found: Vec<(usize, &str)> =
        names.map(|name| (distance(&text, name), name)).filter(|(far, _)| *far <= 2).collect();
    found.sort_by_key(|(far, _)| *far);
    found.into_iter().take(4).map(|(_, name)| name).collect()
}

/// Insertions, removals and replacements of a character between two texts (V. Levenshtein, 1966).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = before + usize::from(ca != *cb);
            before = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(before + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_typing_mistakes() {
        for (a, b, far) in [("oc12", "oc12", 0), ("oc13", "oc12", 1), ("kitten", "sitting", 3)] {
            assert_eq!(distance(a, b), far);
        }
        assert_eq!(similar_names("oc21", ["oc1", "oc12", "ds3"].into_iter()), ["oc1", "oc12"]);
        assert_eq!(similar_names(&"o".repeat(1000), ["oc1"].into_iter()), Vec::<&str>::new());
    }
}
