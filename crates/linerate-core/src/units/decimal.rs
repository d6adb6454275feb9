//! Numbers as people write them, without floating point: `155.52` is 155 and 52 hundredths, so
//! that 155.52 M is 155,520,000 and not a neighbour of it. Also the printing of scaled values.

use super::error::UnitErrorReason;

/// A number that is not negative, exact to 18 decimal places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    whole: u64,
    /// The part after the point in units of 10^-18.
    atto: u64,
}

/// Places after the point that are kept; further digits are below any unit read here.
const PLACES: usize = 18;

/// Parts of one unit: 10^[`PLACES`].
const ATTO: u128 = 1_000_000_000_000_000_000;

impl Decimal {
    /// Reads the number that `text` is.
    fn parse(text: &str) -> Result<Self, UnitErrorReason> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
            return Err(UnitErrorReason::NotANumber);
        }
        let whole = match whole {
            "" => 0,
            digits => digits.parse().map_err(|_| UnitErrorReason::TooLarge)?,
        };
        let kept = &fraction[..fraction.len().min(PLACES)];
        let atto = format!("{kept:0<PLACES$}").parse().map_err(|_| UnitErrorReason::NotANumber)?;
        Ok(Self { whole, atto })
    }

    /// The number times `factor`, to the nearest whole, half up.
    pub(super) fn multiply_rounded(self, factor: u64) -> Result<u64, UnitErrorReason> {
        let factor = u128::from(factor);
        let below = (u128::from(self.atto) * factor + ATTO / 2) / ATTO;
        let product = u128::from(self.whole) * factor + below;
        if product == 0 && (self.whole, self.atto) != (0, 0) {
            return Err(UnitErrorReason::RoundsToZero);
        }
        u64::try_from(product).map_err(|_| UnitErrorReason::TooLarge)
    }
}

/// Splits `155.52 Mbit/s` into its number and its unit, spaces removed.
pub(super) fn split_unit(text: &str) -> Result<(Decimal, &str), UnitErrorReason> {
    let (number, unit) = split_number(text)?;
    Ok((Decimal::parse(number)?, unit))
}

/// Splits a text after its leading digits and points; neither half is checked further.
pub(super) fn split_number(text: &str) -> Result<(&str, &str), UnitErrorReason> {
    let text = text.trim();
    if text.is_empty() {
        return Err(UnitErrorReason::Empty);
    }
    if text.starts_with('-') {
        return Err(UnitErrorReason::Negative);
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    if end == 0 {
        return Err(UnitErrorReason::NotANumber);
    }
    Ok((&text[..end], text[end..].trim_start()))
}

/// Decimal prefixes by rising power of 1000.
pub(super) const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// The power of 1000 in `unit`, which is a prefix and one of `names`; letter case does not count.
/// The longest names come first, so that the `p` of `pps` is not taken for peta.
pub(super) fn decimal_power(unit: &str, names: &[&str]) -> Result<usize, UnitErrorReason> {
    let lower = unit.to_ascii_lowercase();
    let prefix = names.iter().find_map(|name| lower.strip_suffix(name));
    PREFIXES
        .iter()
        .position(|known| prefix.is_some_and(|prefix| known.eq_ignore_ascii_case(prefix)))
        .ok_or_else(|| UnitErrorReason::unknown_unit(unit))
}

/// `hundredths` of something as a number with at most two decimals, trailing zeros dropped.
pub(super) fn print_hundredths(hundredths: u128) -> String {
    let (whole, rest) = (hundredths / 100, hundredths % 100);
    match (rest, rest % 10) {
        (0, _) => format!("{whole}"),
        (_, 0) => format!("{whole}.{}", rest / 10),
        _ => format!("{whole}.{rest:02}"),
    }
}
