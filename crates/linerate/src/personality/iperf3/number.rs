//! Numbers as iperf3 reads them, with the C library's leniency: what stands behind a number is left
//! alone (`10s` is 10), what begins with none is 0. Sizes go by powers of 1024, rates by 1000.

/// The longest beginning of a text that is a whole number, as atoi(3) has it; else 0.
pub(super) fn integer(text: &str) -> i64 {
    let text = text.trim_start();
    let signs = usize::from(text.starts_with(['-', '+']));
    let digits = text[signs..].chars().take_while(char::is_ascii_digit).count();
    // More digits than fit are beyond every bound that is asked of them.
    let value =
        text[signs..signs + digits].parse().unwrap_or(if digits > 0 { i64::MAX } else { 0 });
    if text.starts_with('-') { -value } else { value }
}

/// The whole number of another base after `0x` or `0` (strtol(3)); `None` for a text that begins
/// with no number.
pub(super) fn any_base(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (base, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(rest) => (16, rest),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    i64::from_str_radix(&digits[..end], base).ok().map(|value| sign * value)
}

/// The longest beginning of a text that is a number, and the rest of the text.
fn beginning(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    let longest = text.find(|c| !is_part(c)).unwrap_or(text.len());
    (1..=longest).rev().find_map(|end| {
        let value: f64 = text[..end].parse().ok()?;
        Some((value, &text[end..]))
    })
}

/// The longest beginning of a text that is a number, as atof(3) has it; else 0.
pub(super) fn parse_real(text: &str) -> f64 {
    beginning(text).map_or(0.0, |(value, _)| value)
}

/// `64K`, `1.5M`, `1G`: bytes or blocks, by powers of 1024.
pub(super) fn parse_size(text: &str) -> Result<f64, String> {
    with_letter(text, 1024.0)
}

/// `10M`, `1.5G`: bit/s, by powers of 1000.
pub(super) fn parse_rate(text: &str) -> Result<f64, String> {
    with_letter(text, 1000.0)
}

fn with_letter(text: &str, step: f64) -> Result<f64, String> {
    let wrong = || format!("invalid unit value or suffix: '{text}'");
    let (value, rest) = beginning(text).ok_or_else(wrong)?;
    let Some(letter) = rest.chars().next() else { return Ok(value) };
    let power = "KMGT".find(letter.to_ascii_uppercase()).ok_or_else(wrong)?;
    Ok(value * step.powi(i32::try_from(power).unwrap_or(0) + 1))
}

/// The type of service octet of a code point: a number up to 63, or a name.
pub(super) fn octet_of_dscp(text: &str) -> Option<u8> {
    let name = text.to_ascii_lowercase();
    // RFC 2474 §4.2.2, RFC 2597 §6, RFC 3246 §2.7, RFC 8622 §4, RFC 5865.
    let class = |prefix: &str| name.strip_prefix(prefix).and_then(|rest| rest.parse::<u8>().ok());
    let point = match (name.as_str(), class("cs"), class("af")) {
        ("ef", ..) => 46,
        ("le", ..) => 1,
        ("va" | "voice-admit", ..) => 44,
        // RFC 1349 §4: octets, whose upper six bits stand where the code point does.
        ("lowdelay", ..) => 0x10 >> 2,
        ("throughput", ..) => 0x08 >> 2,
        ("reliability", ..) => 0x04 >> 2,
        (_, Some(class @ 0..=7), _) => class * 8,
        (_, _, Some(af @ 11..=43)) if (1..=3).contains(&(af % 10)) => af / 10 * 8 + af % 10 * 2,
        _ => u8::try_from(any_base(text)?).ok().filter(|point| *point < 64)?,
    };
    Some(point << 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_the_c_library_ends_them() {
        for (text, value) in [("10", 10), ("10s", 10), (" -3", -3), ("abc", 0), ("", 0), ("1.5", 1)]
        {
            assert_eq!(integer(text), value, "{text}");
        }
        for (text, value) in [("1.5x", 1.5), ("x", 0.0), ("2e", 2.0), ("2e1", 20.0), (".5", 0.5)] {
            assert!((parse_real(text) - value).abs() < 1e-12, "{text}");
        }
        for (text, value) in [("0xb8", Some(184)), ("040", Some(32)), ("32", Some(32)), ("x", None)]
        {
            assert_eq!(any_base(text), value, "{text}");
        }
        assert_eq!(any_base("0"), Some(0));
        assert_eq!(any_base("-1"), Some(-1));
    }

    #[test]
    fn sizes_and_rates_have_their_own_powers() {
        assert_eq!(parse_size("64K"), Ok(65_536.0));
        assert_eq!(parse_size("1.5m"), Ok(1_572_864.0));
        assert_eq!(parse_size("1000"), Ok(1000.0));
        assert_eq!(parse_rate("10M"), Ok(10e6));
        assert_eq!(parse_rate("1g"), Ok(1e9));
        // sscanf's %lf%c takes one letter and leaves the rest.
        assert_eq!(parse_rate("10Mbit"), Ok(10e6));
        for wrong in ["", "K", "1X", "x"] {
            assert_eq!(parse_size(wrong), Err(format!("invalid unit value or suffix: '{wrong}'")));
        }
    }

    #[test]
    fn code_points_have_names_and_octets() {
        // RFC 2597 §6: AF41 is 100010, AF11 001010; RFC 3246: EF is 101110.
        for (text, point) in [("af41", 34), ("AF11", 10), ("ef", 46), ("cs1", 8), ("0x2e", 46)] {
            assert_eq!(octet_of_dscp(text), Some(point << 2), "{text}");
        }
        for wrong in ["af14", "cs8", "64", "x", "-1"] {
            assert_eq!(octet_of_dscp(wrong), None, "{wrong}");
        }
    }
}
