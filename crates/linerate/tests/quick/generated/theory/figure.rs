//! Figures of the page: as many digits as say something, a comma at each thousand from 10,000 on,
//! powers of ten where zeros would say nothing.

/// Significant digits that a computed figure has at least.
const DIGITS: usize = 6;

/// Below this a figure is written with a power of ten.
const SMALL: f64 = 1e-4;

/// From this on a figure is written with a power of ten: more digits than `f64` holds.
const LARGE: f64 = 1e15;

/// A figure that was stated: all its digits.
pub(super) fn stated(value: f64) -> String {
    if is_plain(value) { grouped(&value.to_string()) } else { format!("{value:e}") }
}

/// A computed figure with six significant digits, or as many as the stated one beside it has.
pub(super) fn computed(value: f64, stated_value: f64) -> String {
    let count = stated(stated_value).split('e').next().unwrap_or_default().to_owned();
    let count = count.trim_start_matches(['-', '0', '.']);
    let digits = count.bytes().filter(u8::is_ascii_digit).count().max(DIGITS);
    if !value.is_finite() {
        return value.to_string();
    }
    if !is_plain(value) {
        let text = format!("{value:.*e}", digits - 1);
        return match text.split_once('e') {
            Some((figures, power)) => format!("{}e{power}", trimmed(figures)),
            None => text,
        };
    }
    let before = if value == 0.0 { 1 } else { value.abs().log10().floor() as i32 + 1 };
    let decimals = usize::try_from(digits as i32 - before).unwrap_or(0);
    grouped(trimmed(&format!("{value:.decimals$}")))
}

/// A decimal with commas.
fn grouped(text: &str) -> String {
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    if digits.len() < 5 {
        return text.to_owned();
    }
    let mut out = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

fn is_plain(value: f64) -> bool {
    value == 0.0 || (SMALL..LARGE).contains(&value.abs())
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

mod tests {
    use super::*;

    #[test]
    fn figures_keep_what_they_say_and_drop_what_they_do_not() {
        let cases = [
            (599.04, 599.04, "599.04", "599.04"),
            (949.284_785, 949.285, "949.285", "949.285"),
            (14_880_952.38, 14_880_952.38, "14,880,952.38", "14,880,952.38"),
            (14_880_952.0, 14_880_952.0, "14,880,952", "14,880,952"),
            (178.218_3, 178.0, "178", "178.218"),
            (0.0, 0.0, "0", "0"),
            (-2.5, -2.5, "-2.5", "-2.5"),
            (-12_345.5, -12_345.5, "-12,345.5", "-12,345.5"),
            (9999.0, 9999.0, "9999", "9999"),
            (0.005_967_1, 0.005_967_1, "0.0059671", "0.0059671"),
            (1.249e17, 1.249e17, "1.249e17", "1.249e17"),
            (1e-7, 1e-7, "1e-7", "1e-7"),
            (1_234_567.891, 1_234_568.0, "1,234,568", "1,234,568"),
        ];
        for (value, beside, first, second) in cases {
            assert_eq!((stated(beside), computed(value, beside)), (first.into(), second.into()));
        }
        assert_eq!(computed(f64::INFINITY, 1.0), "inf");
    }
}
