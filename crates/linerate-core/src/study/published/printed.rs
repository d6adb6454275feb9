//! A figure as it was printed: one value, a range (`70-80`), or a bound (`<0.01`).
//!
//! Nothing is guessed: a range keeps its ends and has no middle, a bound has one end only. Left
//! out: values with an error (`5 ± 1`), which none of the tables has.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

/// A printed figure. Text and ends always agree: the text is what was parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    text: String,
    low: Option<f64>,
    high: Option<f64>,
}

/// Text that is no figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is neither a number, a range like 70-80, nor a bound like <0.01")]
pub struct NotAFigure;

impl Printed {
    /// The digits as printed.
    pub fn source_text(&self) -> &str {
        &self.text
    }

    /// The lower end; `None` where only an upper bound was printed.
    pub const fn lower_end(&self) -> Option<f64> {
        self.low
    }

    /// The upper end; `None` where only a lower bound was printed.
    pub const fn upper_end(&self) -> Option<f64> {
        self.high
    }

    /// The one value; `None` for a range and for a bound.
    pub fn single_value(&self) -> Option<f64> {
        if self.low == self.high { self.low } else { None }
    }

    /// Half a unit of the last printed digit: `599.04` is good to 0.005.
    pub fn rounding(&self) -> f64 {
        rounding(&self.text)
    }
}

/// Half a unit of the last digit of a decimal.
pub(super) fn rounding(text: &str) -> f64 {
    let decimals = text.rsplit_once('.').map_or(0, |(_, fraction)| fraction.len());
    0.5 * 10f64.powi(-i32::try_from(decimals).unwrap_or(i32::MAX))
}

impl FromStr for Printed {
    type Err = NotAFigure;

    fn from_str(text: &str) -> Result<Self, NotAFigure> {
        let printed = |low, high| Self { text: text.to_owned(), low, high };
        if let Some(bound) = text.strip_prefix('<') {
            return Ok(printed(None, Some(number(bound)?)));
        }
        if let Some(bound) = text.strip_prefix('>') {
            return Ok(printed(Some(number(bound)?), None));
        }
        // The first character may be a sign and separates nothing.
        let dash = text.char_indices().skip(1).find(|(_, c)| *c == '-').map(|(at, _)| at);
        let Some(dash) = dash else {
            let value = number(text)?;
            return Ok(printed(Some(value), Some(value)));
        };
        let (low, high) = (number(&text[..dash])?, number(&text[dash + 1..])?);
        if low >= high {
            return Err(NotAFigure);
        }
        Ok(printed(Some(low), Some(high)))
    }
}

/// A plain decimal; exponents, `nan` and `inf` are no printed figures.
pub(super) fn number(text: &str) -> Result<f64, NotAFigure> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && digits.starts_with(|c: char| c.is_ascii_digit());
    match text.parse::<f64>() {
        Ok(value) if plain && value.is_finite() => Ok(value),
        _ => Err(NotAFigure),
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Serialize for Printed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Printed", 3)?;
        out.serialize_field("text", &self.text)?;
        out.serialize_field("low", &self.low)?;
        out.serialize_field("high", &self.high)?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_printed(text: &str, low: Option<f64>, high: Option<f64>, value: Option<f64>) {
        let printed: Printed = text.parse().expect(text);
        assert_eq!(
            (printed.lower_end(), printed.upper_end(), printed.single_value()),
            (low, high, value),
            "{text}"
        );
        assert_eq!(printed.source_text(), text);
    }

    #[test]
    fn values_ranges_and_bounds_keep_their_ends_and_nothing_is_guessed() {
        check_printed("33.6", Some(33.6), Some(33.6), Some(33.6));
        check_printed("0.020", Some(0.02), Some(0.02), Some(0.02));
        check_printed("-3", Some(-3.0), Some(-3.0), Some(-3.0));
        check_printed("0", Some(0.0), Some(0.0), Some(0.0));
        check_printed("70-80", Some(70.0), Some(80.0), None);
        check_printed("3-5", Some(3.0), Some(5.0), None);
        check_printed("-5-5", Some(-5.0), Some(5.0), None);
        check_printed("1990-1993", Some(1990.0), Some(1993.0), None);
        check_printed("<0.01", None, Some(0.01), None);
        check_printed(">124900", Some(124_900.0), None, None);
    }

    #[test]
    fn what_is_no_figure_is_refused() {
        let odd = [
            "",
            " ",
            "fast",
            "1e3",
            "nan",
            "inf",
            "-",
            "3-",
            "5-3",
            "3-3",
            "1-2-3",
            "<",
            "<<1",
            "1,000",
            "1.2.3",
            ".5",
            "+5",
            "5 %",
            "\u{2212}5",
        ];
        for text in odd {
            assert_eq!(text.parse::<Printed>(), Err(NotAFigure), "{text:?}");
        }
    }

    #[test]
    fn a_figure_is_good_to_half_of_its_last_digit() {
        for (text, expected) in [("599.04", 0.005), ("178", 0.5), ("18.2", 0.05)] {
            let printed: Printed = text.parse().expect(text);
            assert!((printed.rounding() - expected).abs() < 1e-12, "{text}");
        }
    }
}
