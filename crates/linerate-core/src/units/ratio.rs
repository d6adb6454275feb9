//! A share as the two counts it came from. The percentage is made when it is shown.

use std::fmt;
use std::str::FromStr;

use super::error::{ParseUnitError, QuantityInfo, UnitErrorReason};

/// `part` of `whole`, both counted. A part above the whole is allowed: duplicates over probes
/// sent may exceed 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    /// Number of the part that was counted.
    pub part: u64,
    /// Out of how many.
    pub whole: u64,
}

impl Ratio {
    /// `part` out of `whole`.
    pub const fn new(part: u64, whole: u64) -> Self {
        Self { part, whole }
    }

    /// The ratio as a number; `None` out of nothing. Counts above 2^53 are rounded to 53 bits.
    pub fn as_f64(self) -> Option<f64> {
        (self.whole > 0).then(|| self.part as f64 / self.whole as f64)
    }

    /// The ratio for people: `30 %`, or `-` out of nothing.
    pub const fn percent(self) -> Percent {
        Percent(self)
    }
}

const RATIO: QuantityInfo =
    QuantityInfo { name: "a ratio", accepted: "two counts, for example 3/10" };

impl FromStr for Ratio {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|reason| RATIO.refuse(text, reason))
    }
}

fn parse(text: &str) -> Result<Ratio, UnitErrorReason> {
    if text.trim().is_empty() {
        return Err(UnitErrorReason::Empty);
    }
    let missing = || UnitErrorReason::Other("it has no /".to_owned());
    let (part, whole) = text.split_once('/').ok_or_else(missing)?;
    Ok(Ratio::new(parse_count(part.trim())?, parse_count(whole.trim())?))
}

fn parse_count(text: &str) -> Result<u64, UnitErrorReason> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(UnitErrorReason::Other(format!("{text:?} is not a count")));
    }
    text.parse().map_err(|_| UnitErrorReason::TooLarge)
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.part, self.whole))
    }
}

/// A ratio that prints in percent, with two decimals or two significant digits, whichever is
/// more; trailing zeros are dropped: `12.34 %`, `0.012 %`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percent(Ratio);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(value) = self.0.as_f64() else { return f.pad("-") };
        let percent = value * 100.0;
        // One of 2^64 is 5e-18 %, so 20 decimals always reach a digit.
        let digits = if percent == 0.0 || percent >= 0.1 {
            format!("{percent:.2}")
        } else {
            let places = (2..20_u8).find(|&n| percent * 10_f64.powi(n.into()) >= 10.0);
            format!("{percent:.*}", usize::from(places.unwrap_or(20)))
        };
        f.pad(&format!("{} %", digits.trim_end_matches('0').trim_end_matches('.')))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_ratio_of_nothing_has_no_value() {
        assert_eq!(Ratio::new(0, 0).as_f64(), None);
        assert_eq!(Ratio::new(0, 0).percent().to_string(), "-");
        assert_eq!(Ratio::new(0, 10).as_f64(), Some(0.0));
    }

    #[test]
    fn a_small_loss_never_prints_as_none() {
        let cases = [
            (0, 10, "0 %"),
            (3, 10, "30 %"),
            (1, 3, "33.33 %"),
            (10, 10, "100 %"),
            (20, 10, "200 %"),
            (1, 1000, "0.1 %"),
            (1, 7000, "0.014 %"),
            (1, 1_000_000, "0.0001 %"),
            (1, u64::MAX, "0.0000000000000000054 %"),
        ];
        for (part, whole, text) in cases {
            assert_eq!(Ratio::new(part, whole).percent().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_ratio_is_refused_in_one_line() {
        let refused = |text: &str| text.parse::<Ratio>().expect_err(text).to_string();
        assert_eq!(
            refused("30 %"),
            "\"30 %\" is not a ratio: it has no /; write two counts, for example 3/10"
        );
        for text in ["", "/", "1/", "/2", "-1/2", "1.5/2", "1/2/3", "99999999999999999999/1"] {
            assert!(!refused(text).contains('\n'), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(part: u64, whole: u64) {
            let ratio = Ratio::new(part, whole);
            prop_assert_eq!(ratio.to_string().parse(), Ok(ratio));
        }

        #[test]
        fn only_zero_prints_as_zero(part: u64, whole in 1_u64..) {
            let shown = Ratio::new(part, whole).percent().to_string();
            prop_assert_eq!(shown == "0 %", part == 0);
        }
    }
}
