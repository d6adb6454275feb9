//! A share of a whole as one number: a loss, a share of a rate. Two counts are a `Ratio`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::{ParseUnitError, QuantityInfo, UnitErrorReason};

/// A number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fraction(f64);

impl Fraction {
    /// The share `value`; `None` outside 0 … 1 and for a value that is not a number.
    pub fn from_value(value: f64) -> Option<Self> {
        // Adding zero turns the negative zero into the one that prints as 0.
        (0.0..=1.0).contains(&value).then_some(Self(value + 0.0))
    }

    /// The share as a number from 0 to 1.
    pub const fn as_f64(self) -> f64 {
        self.0
    }
}

const FRACTION: QuantityInfo =
    QuantityInfo { name: "a share", accepted: "for example 1e-4, 0.0001, 0.01% or 1/10000" };

impl FromStr for Fraction {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|reason| FRACTION.refuse(text, reason))
    }
}

fn parse(text: &str) -> Result<Fraction, UnitErrorReason> {
    let text = text.trim();
    let value = if let Some((part, whole)) = text.split_once('/') {
        let whole = number(whole)?;
        if whole == 0.0 {
            return Err(UnitErrorReason::Other("it divides by zero".to_owned()));
        }
        number(part)? / whole
    } else if let Some(percent) = text.strip_suffix('%') {
        number(percent)? / 100.0
    } else {
        number(text)?
    };
    Fraction::from_value(value).ok_or_else(|| UnitErrorReason::Other("it is above 1".to_owned()))
}

/// A decimal number with an exponent or without, not negative.
fn number(text: &str) -> Result<f64, UnitErrorReason> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UnitErrorReason::Empty);
    }
    if text.starts_with('-') {
        return Err(UnitErrorReason::Negative);
    }
    // The standard library also reads `inf` and `nan`, which are no shares.
    let is_plain = text.bytes().all(|c| c.is_ascii_digit() || b".eE+-".contains(&c));
    let value: f64 = text.parse().ok().filter(|_| is_plain).ok_or(UnitErrorReason::NotANumber)?;
    let is_nothing = !text
        .split(['e', 'E'])
        .next()
        .is_some_and(|digits| digits.bytes().any(|c| (b'1'..=b'9').contains(&c)));
    match value {
        0.0 if !is_nothing => Err(UnitErrorReason::RoundsToZero),
        finite if finite.is_finite() => Ok(finite),
        _ => Err(UnitErrorReason::TooLarge),
    }
}

impl fmt::Display for Fraction {
    /// As a decimal down to a thousandth, with an exponent below: `0.25`, `1e-4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            small if small > 0.0 && small < 1e-3 => format!("{small:e}"),
            value => value.to_string(),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_share_is_read_in_three_forms() {
        let cases = [
            ("1e-4", 1e-4),
            ("0.0001", 1e-4),
            ("1E-4", 1e-4),
            (" 0.01 % ", 1e-4),
            ("0.01%", 1e-4),
            ("1/10000", 1e-4),
            ("1 / 1e4", 1e-4),
            ("0", 0.0),
            ("1", 1.0),
            ("100%", 1.0),
            (".5", 0.5),
        ];
        for (text, value) in cases {
            let got = text.parse::<Fraction>().unwrap_or_else(|error| panic!("{error}")).as_f64();
            assert!((got - value).abs() <= 1e-16, "{text}: {got}");
        }
    }

    #[test]
    fn what_is_no_share_is_refused_in_one_line() {
        let refused = |text: &str| text.parse::<Fraction>().expect_err(text).to_string();
        assert_eq!(
            refused("2"),
            "\"2\" is not a share: it is above 1; write for example 1e-4, 0.0001, 0.01% or 1/10000"
        );
        for (text, reason) in [
            ("", "it is empty"),
            ("%", "it is empty"),
            ("1/", "it is empty"),
            ("1/0", "it divides by zero"),
            ("-1e-4", "it is negative"),
            ("101%", "it is above 1"),
            ("3/2", "it is above 1"),
            ("inf", "it does not start with a number"),
            ("nan", "it does not start with a number"),
            ("1e-4x", "it does not start with a number"),
            ("1/2/3", "it does not start with a number"),
            ("1e-999", "it rounds to zero"),
            ("1e999", "it is too large"),
        ] {
            assert!(refused(text).contains(reason), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn small_shares_print_with_an_exponent() {
        let cases = [(0.0, "0"), (1.0, "1"), (0.25, "0.25"), (1e-3, "0.001"), (1e-4, "1e-4")];
        for (value, text) in cases {
            assert_eq!(Fraction::from_value(value).expect("a share").to_string(), text);
        }
        assert_eq!(Fraction::from_value(f64::NAN), None);
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(value in 0.0..=1.0_f64) {
            let share = Fraction::from_value(value).expect("within 0 … 1");
            prop_assert_eq!(share.to_string().parse(), Ok(share));
        }

        #[test]
        fn no_text_panics(text in ".{0,30}|[0-9.e+/%-]{1,20}") {
            let _ = text.parse::<Fraction>();
        }
    }
}
