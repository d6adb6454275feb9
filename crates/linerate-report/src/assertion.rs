//! Whether an assertion is met, in one line with both values of each comparison.

use linerate_core::assertion::{Assertion, Judged, Side};
use linerate_core::record::Direction;

use crate::diff::value_text;
use crate::number::NONE;

/// The line.
pub fn line(assertion: &Assertion, judged: &Judged) -> String {
    let met = if judged.met { "met" } else { "NOT met" };
    let way = match judged.direction {
        Some(Direction::Up) => " up",
        Some(Direction::Down) => " down",
        None => "",
    };
    let pairs = judged.comparisons.iter();
    let pairs = pairs.map(|(left, sign, right)| format!("{} {sign} {}", shown(left), shown(right)));
    let pairs: Vec<String> = pairs.collect();
    let mut text = format!("assertion {met}{way}: {assertion} ({})", pairs.join(", "));
    if !judged.missing.is_empty() {
        text.push_str(&format!("; {}", judged.missing.join("; ")));
    }
    text
}

fn shown(side: &Side) -> String {
    match side.value {
        None => NONE.to_owned(),
        Some(value) if side.unit.is_empty() => {
            let text = format!("{value:.6}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        Some(value) => value_text(side.unit, value),
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
            line(&assertion, &judged),
            "assertion NOT met up: goodput >= 0.9 * ceiling and late < 2.5 (700 Mbit/s >= 847.3 \
             Mbit/s, \u{2014} < 2.5); the result has no late"
        );
    }
}
