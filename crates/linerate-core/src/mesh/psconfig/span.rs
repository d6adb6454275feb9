//! Durations of ISO 8601 as psConfig has them: weeks, days, hours, minutes, seconds.

/// Seconds of `PT1H30M`; none where it is no such duration. Years and months, whose length
/// varies, are none in psConfig's schema either.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let rest = text.strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let date = sum_of_units(date, &[('W', 604_800.0), ('D', 86_400.0)])?;
    Some(date + sum_of_units(time, &[('H', 3600.0), ('M', 60.0), ('S', 1.0)])?)
}

/// Numbers with these units behind them, each once at the most, in this order.
fn sum_of_units(mut text: &str, units: &[(char, f64)]) -> Option<f64> {
    let mut units = units.iter();
    let mut sum = 0.0;
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = text.split_at(end);
        let unit = behind.chars().next()?;
        let (_, factor) = units.find(|(it, _)| *it == unit)?;
        sum += number.parse::<f64>().ok()? * factor;
        text = &behind[1..];
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_iso_8601_without_years_and_months() {
        for (text, expected) in [
            ("PT20S", 20.0),
            ("PT1H30M", 5400.0),
            ("P1D", 86_400.0),
            ("P1W2DT3H4M5.5S", 604_800.0 + 172_800.0 + 10_800.0 + 240.0 + 5.5),
            ("PT0.2S", 0.2),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["", "P", "PT", "20", "PT20", "P1M", "P1Y", "PT1M1H", "PTS", "PT1X", "PT.S"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
