//! Lengths of paths, to the metre.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::decimal::split_unit;
use super::error::{ParseUnitError, QuantityInfo, UnitErrorReason};

/// A length of a path in whole metres.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Distance(u64);

impl Distance {
    /// A length of `metres`.
    pub const fn from_metres(metres: u64) -> Self {
        Self(metres)
    }

    /// The length in metres.
    pub const fn metres(self) -> u64 {
        self.0
    }
}

const DISTANCE: QuantityInfo = QuantityInfo {
    name: "a distance",
    accepted: "with its unit, for example 1000km, 250 m or 80mi",
};

impl FromStr for Distance {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Self).map_err(|reason| DISTANCE.refuse(text, reason))
    }
}

fn parse(text: &str) -> Result<u64, UnitErrorReason> {
    let (number, unit) = split_unit(text)?;
    match unit.to_ascii_lowercase().as_str() {
        "km" => number.multiply_rounded(1_000),
        "m" => number.multiply_rounded(1),
        // The international mile of 1959 is 1609.344 m; a thousandth of it is 1.609344 m.
        "mi" => Ok((number.multiply_rounded(1_609_344)? + 500) / 1_000),
        "" => Err(UnitErrorReason::Other("it has no unit".to_owned())),
        _ => Err(UnitErrorReason::unknown_unit(unit)),
    }
}

impl fmt::Display for Distance {
    /// In kilometres from one on, whole metres below: `1000 km`, `1.5 km`, `250 m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match (self.0 / 1000, self.0 % 1000) {
            (0, metres) => format!("{metres} m"),
            (km, 0) => format!("{km} km"),
            (km, metres) => {
                format!("{} km", format!("{km}.{metres:03}").trim_end_matches('0'))
            }
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn distances_are_read_with_their_unit() {
        let cases = [
            ("1000km", 1_000_000),
            ("1000 km", 1_000_000),
            ("0.25KM", 250),
            ("250 m", 250),
            ("0m", 0),
            ("80mi", 128_748), // 80 × 1609.344 = 128,747.52
        ];
        for (text, metres) in cases {
            assert_eq!(text.parse(), Ok(Distance::from_metres(metres)), "{text}");
        }
    }

    #[test]
    fn what_is_no_distance_is_refused_in_one_line() {
        let refused = |text: &str| text.parse::<Distance>().expect_err(text).to_string();
        assert_eq!(
            refused("1000"),
            "\"1000\" is not a distance: it has no unit; write with its unit, for example 1000km, \
             250 m or 80mi"
        );
        for text in ["", "-1km", "km", "1 ly", "99999999999999999999km", "18446744073709551615mi"] {
            assert!(!refused(text).contains('\n'), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(metres in 0_u64..1_000_000_000_000) {
            let distance = Distance::from_metres(metres);
            prop_assert_eq!(distance.to_string().parse(), Ok(distance));
        }

        #[test]
        fn no_text_panics(text in ".{0,30}|[0-9.]{1,25}(km|m|mi)?") {
            let _ = text.parse::<Distance>();
        }
    }
}
