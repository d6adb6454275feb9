//! Spans of time as text, for flags and plans: `10`, `500ms`, `1h30m`.

use std::fmt::Write as _;
use std::time::Duration;

use super::decimal::split_unit;
use super::error::{ParseUnitError, QuantityInfo, UnitErrorReason};

const SPAN: QuantityInfo = QuantityInfo {
    name: "a time span",
    accepted: "seconds or, for example, 500ms, 20us, 1.5s, 10m or 1h30m",
};

/// A unit of time and the names that a text may give it.
struct TimeUnit {
    name: &'static str,
    other_names: &'static [&'static str],
    ns: u64,
}

/// Units, largest first.
const UNITS: [TimeUnit; 6] = [
    TimeUnit { name: "h", other_names: &[], ns: 3_600_000_000_000 },
    TimeUnit { name: "m", other_names: &["min"], ns: 60_000_000_000 },
    TimeUnit { name: "s", other_names: &["sec"], ns: 1_000_000_000 },
    TimeUnit { name: "ms", other_names: &[], ns: 1_000_000 },
    // U+00B5 is the micro sign, U+03BC the Greek letter.
    TimeUnit { name: "us", other_names: &["\u{b5}s", "\u{3bc}s"], ns: 1_000 },
    TimeUnit { name: "ns", other_names: &[], ns: 1 },
];

/// Reads a span: a bare number is seconds, otherwise numbers with units, largest first. The
/// result is a whole number of nanoseconds, at most 2^64 - 1 of them (584 years).
///
/// ```
/// # use std::time::Duration;
/// # use linerate_core::units::parse_span;
/// assert_eq!(parse_span("1h30m"), Ok(Duration::from_secs(5400)));
/// assert_eq!(parse_span("0.2"), Ok(Duration::from_millis(200)));
/// ```
/// # Errors
/// One line that names the text, what is wrong with it, and what is accepted.
pub fn parse_span(text: &str) -> Result<Duration, ParseUnitError> {
    parse(text).map(Duration::from_nanos).map_err(|reason| SPAN.refuse(text, reason))
}

fn parse(text: &str) -> Result<u64, UnitErrorReason> {
    let mut rest = text.trim();
    let (number, unit) = split_unit(rest)?;
    if unit.is_empty() {
        return number.multiply_rounded(UNITS[2].ns);
    }
    let mut total = 0_u64;
    let mut units = UNITS.iter();
    while !rest.is_empty() {
        let (number, after) = split_unit(rest)?;
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.' || c.is_whitespace());
        let (unit, tail) = after.split_at(end.unwrap_or(after.len()));
        let is_it = |row: &&TimeUnit| row.name == unit || row.other_names.contains(&unit);
        if !UNITS.iter().any(|row| is_it(&row)) {
            return Err(UnitErrorReason::unknown_unit(unit));
        }
        // The iterator has moved past every unit that is as large as the last one.
        let Some(TimeUnit { ns, .. }) = units.find(is_it) else {
            return Err(UnitErrorReason::Other(format!(
                "{unit:?} comes after a unit that is not larger"
            )));
        };
        total =
            total.checked_add(number.multiply_rounded(*ns)?).ok_or(UnitErrorReason::TooLarge)?;
        rest = tail.trim_start();
    }
    Ok(total)
}

/// A span in the form that [`parse_span`] reads, without rounding: `10s`, `500ms`, `1h30m`,
/// `1.5s`, `20us`. What is below a second has one unit; from there on hours, minutes and seconds
/// are apart.
pub fn print_span(span: Duration) -> String {
    let ns = span.as_nanos();
    let unit_ns = |index: usize| u128::from(UNITS[index].ns);
    if ns == 0 {
        return "0s".to_owned();
    }
    if ns < unit_ns(2) {
        let index = (3..UNITS.len()).find(|&index| ns >= unit_ns(index)).unwrap_or(UNITS.len() - 1);
        return print_part(ns, unit_ns(index), UNITS[index].name);
    }
    let mut text = String::new();
    let (hours, below_hour) = (ns / unit_ns(0), ns % unit_ns(0));
    let (minutes, below_minute) = (below_hour / unit_ns(1), below_hour % unit_ns(1));
    if hours > 0 {
        // Writing to a String cannot fail.
        let _ = write!(text, "{hours}h");
    }
    if minutes > 0 {
        let _ = write!(text, "{minutes}m");
    }
    if below_minute > 0 {
        text.push_str(&print_part(below_minute, unit_ns(2), UNITS[2].name));
    }
    text
}

/// `ns` in a unit of `unit_ns`, with as many decimals as it has.
fn print_part(ns: u128, unit_ns: u128, unit: &str) -> String {
    let (whole, mut rest) = (ns / unit_ns, ns % unit_ns);
    let mut text = whole.to_string();
    if rest > 0 {
        text.push('.');
    }
    while rest > 0 {
        rest *= 10;
        let _ = write!(text, "{}", rest / unit_ns);
        rest %= unit_ns;
    }
    text + unit
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_are_read_with_and_without_units() {
        let cases = [
            ("0", 0),
            ("10", 10_000_000_000),
            ("0.2", 200_000_000),
            ("10s", 10_000_000_000),
            ("10 s", 10_000_000_000),
            ("1.5s", 1_500_000_000),
            ("500ms", 500_000_000),
            ("20us", 20_000),
            ("20µs", 20_000),
            ("7ns", 7),
            ("0.5us", 500),
            ("2m", 120_000_000_000),
            ("2min", 120_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1h 30m 0.5s", 5_400_500_000_000),
            ("1s500ms", 1_500_000_000),
            ("24h", 86_400_000_000_000),
        ];
        for (text, ns) in cases {
            assert_eq!(parse_span(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
    }

    #[test]
    fn what_is_no_span_is_refused_in_one_line() {
        let refused = |text: &str| parse_span(text).expect_err(text).to_string();
        assert_eq!(
            refused("10 parsecs"),
            "\"10 parsecs\" is not a time span: unknown unit \"parsecs\"; write seconds or, for \
             example, 500ms, 20us, 1.5s, 10m or 1h30m"
        );
        for (text, reason) in [
            ("", "it is empty"),
            ("-1s", "it is negative"),
            ("s", "it does not start with a number"),
            ("1h30", "unknown unit \"\""),
            ("30m1h", "\"h\" comes after a unit that is not larger"),
            ("1m1m", "\"m\" comes after a unit that is not larger"),
            ("0.1ns", "it rounds to zero"),
            ("600000000000s", "it is too large"),
            ("5124096h", "it is too large"),
        ] {
            assert!(refused(text).contains(reason), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn spans_print_short_and_without_rounding() {
        let cases = [
            (0, "0s"),
            (1, "1ns"),
            (20_000, "20us"),
            (12_304, "12.304us"),
            (500_000_000, "500ms"),
            (999_999_999, "999.999999ms"),
            (1_000_000_000, "1s"),
            (1_500_000_000, "1.5s"),
            (60_000_000_000, "1m"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h"),
            (5_400_000_000_000, "1h30m"),
            (3_601_500_000_000, "1h1.5s"),
        ];
        for (ns, text) in cases {
            assert_eq!(print_span(Duration::from_nanos(ns)), text);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again_exactly(ns: u64) {
            let span = Duration::from_nanos(ns);
            prop_assert_eq!(parse_span(&print_span(span)), Ok(span));
        }

        #[test]
        fn no_text_panics(text in ".{0,30}|([0-9.]{1,25}(h|m|s|ms|us|ns)?){1,4}") {
            let _ = parse_span(&text);
        }
    }
}
