//! Whether an assertion is met, in one line with both values of each comparison.

use linerate_core::assertion::{Assertion, Judged, Side};
use linerate_core::record::Direction;

use crate::number::{self, NONE};

/// An assertion with its judgement and the values that it compares, in one line.
pub fn judged_line(assertion: &Assertion, judged: &Judged) -> String {
    let met = if judged.met { "met" } else { "NOT met" };
    let way = match judged.direction {
        Some(Direction::Up) => " up",
        Some(Direction::Down) => " down",
        None => "",
    };
    let pairs = judged.comparisons.iter();
    let pairs = pairs.map(|(left, sign, right)| {
        format!("{} {sign} {}", side_with_unit(left), side_with_unit(right))
    });
    let pairs: Vec<String> = pairs.collect();
    let mut text = format!("assertion {met}{way}: {assertion} ({})", pairs.join(", "));
    if !judged.missing.is_empty() {
        text.push_str(&format!("; {}", judged.missing.join("; ")));
    }
    text
}

fn side_with_unit(side: &Side) -> String {
    let Some(value) = side.value else { return NONE.to_owned() };
    match side.unit {
        "bit/s" => number::measured_rate(value),
        "ns" => format!("{} ms", number::ms_of_clock(value, 6)),
        "1" => number::percent(value),
        "bytes" => number::amount(value.max(0.0) as u64),
        "" => number::trimmed(&format!("{value:.6}")).to_owned(),
        unit => format!("{} {unit}", number::significant(value, 4)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_values_stand_beside_the_words() {
        let side = |value, unit| Side { text: String::new(), value, unit };
        let judged = Judged {
            met: false,
            direction: Some(Direction::Up),
            comparisons: vec![
                (side(Some(700e6), "bit/s"), ">=", side(Some(847.3e6), "bit/s")),
                (side(None, ""), "<", side(Some(2.5), "")),
            ],
            missing: vec!["the result has no late".to_owned()],
        };
        let assertion = "goodput >= 0.9 * ceiling and late < 2.5".parse().expect("an assertion");
        assert_eq!(
            judged_line(&assertion, &judged),
            "assertion NOT met up: goodput >= 0.9 * ceiling and late < 2.5 (700.0 Mbit/s >= \
             847.3 Mbit/s, \u{2014} < 2.5); the result has no late"
        );
    }
}
