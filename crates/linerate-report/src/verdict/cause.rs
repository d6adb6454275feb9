//! Causes and the figures that show them, in words.

use linerate_core::record::{Against, Cause, Sign};

use crate::{number, words};

/// A cause in words, by the table of causes.
pub(crate) const fn name(cause: Cause) -> &'static str {
    cause.name()
}

/// Causes as a list in words.
pub(crate) fn listed(causes: &[Cause]) -> String {
    words::listed(&causes.iter().map(|cause| name(*cause).to_owned()).collect::<Vec<_>>())
}

/// A figure with its unit and its threshold.
pub(crate) fn sign(sign: &Sign) -> String {
    let shown = |value: f64| value_of(value, &sign.unit);
    let threshold = sign.threshold.map_or_else(String::new, |threshold| {
        let word = match threshold.against {
            Against::AtLeast => "at least",
            Against::AtMost => "at most",
        };
        format!(" ({word} {})", shown(threshold.value))
    });
    format!("{} {}{threshold}", sign.name, shown(sign.value))
}

fn value_of(value: f64, unit: &str) -> String {
    match unit {
        "bit/s" => number::measured_rate(value),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count of bytes"
        )]
        "bytes" => number::buffer(value.max(0.0) as u64),
        "ns" => format!("{} ms", number::ms_of_clock(value, 1)),
        "1" => number::trimmed(&number::significant(value, 3)).to_owned(),
        unit => format!("{} {unit}", number::trimmed(&number::significant(value, 3))),
    }
}
