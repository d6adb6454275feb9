//! Numbers as a reader wants them: few digits, the unit beside them, a dash for what is absent.
//!
//! Rates are decimal and show four significant digits; round-trip times are in milliseconds, as
//! the studies print them. Nothing here knows a metric; the callers choose.

use linerate_core::units::{BitRate, Bytes};

/// The dash that stands where nothing was measured (the studies print NODATA).
pub(crate) const NONE: &str = "\u{2014}";

/// Steps of 1000 with their prefix.
const STEPS: [(f64, &str); 5] = [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];

/// `show(value)`, or the dash.
pub(crate) fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), show)
}

/// A plain decimal with `digits` significant digits; whole numbers keep all theirs but rounded.
pub(crate) fn significant(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let scale = 10f64.powi((digits - 1 - magnitude).clamp(-300, 300));
    let rounded = (value * scale).round() / scale;
    // Rounding may have carried into the next decade (9.996 is 10.00), which costs a decimal.
    let magnitude = rounded.abs().max(f64::MIN_POSITIVE).log10().floor() as i32;
    let decimals = usize::try_from((digits - 1 - magnitude).max(0)).unwrap_or(0).min(30);
    format!("{rounded:.decimals$}")
}

/// A decimal without the zeros that say nothing.
pub(crate) fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// The value over the largest step of 1000 below it, once rounded to `digits`.
fn step_of(value: f64, digits: i32) -> (f64, &'static str) {
    let rounded: f64 = significant(value.abs(), digits).parse().unwrap_or(0.0);
    let (size, prefix) =
        STEPS.iter().rev().find(|(size, _)| rounded >= *size).copied().unwrap_or(STEPS[0]);
    (value / size, prefix)
}

/// A rate as [`BitRate`] prints it: at most two decimals, `941.48 Mbit/s`.
pub(crate) fn rate_with_unit(bps: f64) -> String {
    or_dash(BitRate::from_nearest(bps), |rate| rate.to_string())
}

/// A measured rate to four significant digits, the zeros at its end too, so that rates under each
/// other line up and none claims more than it has: `941.5 Mbit/s`, `16.80 Gbit/s`.
pub(crate) fn measured_rate(bps: f64) -> String {
    if !bps.is_finite() || bps < 0.0 {
        return NONE.to_owned();
    }
    let (value, prefix) = step_of(bps, 4);
    format!("{} {prefix}bit/s", significant(value, 4))
}

/// A rate in Mbit/s without its unit, for table columns.
pub(crate) fn rate_in_mbit(bps: f64) -> String {
    significant(bps / 1e6, 4)
}

/// A published rate in Mbit/s, with the digits that were printed and no more.
pub(crate) fn published_mbit(bps: f64) -> String {
    if bps.is_finite() { trimmed(&significant(bps / 1e6, 6)).to_owned() } else { NONE.to_owned() }
}

/// A published rate in Mbit/s with its unit.
pub(crate) fn rate_published(bps: f64) -> String {
    format!("{} Mbit/s", published_mbit(bps))
}

/// A share of a whole for sentences: whole percent, two digits below ten.
pub(crate) fn whole_percent(ratio: f64) -> String {
    let value = ratio * 100.0;
    let digits = if value.abs() >= 99.5 { 3 } else { 2 };
    format!("{} %", significant(value, digits))
}

/// A count in steps of 1000 for axes: `500`, `20k`, `1M`.
pub(crate) fn short_count(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let (value, prefix) = step_of(value, 4);
    format!("{}{prefix}", trimmed(&significant(value, 4)))
}

/// As [`short_count`], with the true minus sign below zero.
pub fn short_signed(value: f64) -> String {
    if value < 0.0 { format!("\u{2212}{}", short_count(-value)) } else { short_count(value) }
}

/// An amount of transferred bytes, decimal: `1.177 GB`.
pub(crate) fn amount(bytes: u64) -> String {
    Bytes::new(bytes).transferred()
}

/// A piece of memory as [`Bytes`] prints it: `32 KiB`, `46720 bytes`.
pub(crate) fn memory(bytes: u64) -> String {
    Bytes::new(bytes).to_string()
}

/// A measured amount of memory to three significant digits: `2.00 MiB`, `45.3 KiB`.
pub(crate) fn buffer(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let step = UNITS.len().min(bytes.max(1).ilog2() as usize / 10 + 1) - 1;
    match step {
        0 => format!("{bytes} B"),
        _ => {
            let value = bytes as f64 / 1024f64.powi(step as i32);
            let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
            format!("{value:.decimals$} {}", UNITS[step])
        }
    }
}

/// A window as the studies head their columns: `16K`; 0 leaves the choice to the kernel.
pub(crate) fn window(bytes: u64) -> String {
    match bytes {
        0 => "auto".to_owned(),
        _ if bytes.is_multiple_of(1_048_576) => format!("{}M", bytes / 1_048_576),
        _ if bytes.is_multiple_of(1024) => format!("{}K", bytes / 1024),
        _ => bytes.to_string(),
    }
}

/// A time in milliseconds without its unit: three digits after the point, more below 0.1 ms so
/// that three significant ones remain, fewer above 10 ms.
pub(crate) fn time_in_ms(ns: f64) -> String {
    let ms = ns / 1e6;
    if !ms.is_finite() {
        return NONE.to_owned();
    }
    match ms.abs() {
        0.0 => "0".to_owned(),
        small if small < 0.1 => significant(ms, 3),
        small if small < 10.0 => format!("{ms:.3}"),
        middle if middle < 1000.0 => format!("{ms:.2}"),
        _ => format!("{ms:.0}"),
    }
}

/// A measured time in milliseconds: to the microsecond, above 10 ms to a hundredth; below 0.01 ms
/// to three significant digits, but never finer than the clock.
pub(crate) fn ms_of_clock(ns: f64, decimals: usize) -> String {
    let ms = ns / 1e6;
    match ms.abs() {
        _ if !ms.is_finite() => NONE.to_owned(),
        tiny if tiny < 0.01 => {
            let wanted = significant(ms, 3).split('.').nth(1).map_or(3, str::len);
            format!("{ms:.0$}", wanted.min(decimals))
        }
        small if small < 10.0 => format!("{ms:.0$}", 3.min(decimals)),
        _ => format!("{ms:.0$}", 2.min(decimals)),
    }
}

/// Milliseconds for axes: no zeros that say nothing.
pub(crate) fn short_time(ms: f64) -> String {
    if ms >= 1.0 { short_count(ms) } else { trimmed(&significant(ms, 3)).to_owned() }
}

/// A time in milliseconds with as many decimals as its clock justifies.
pub(crate) fn ms_exact(ns: f64, decimals: usize) -> String {
    if ns.is_finite() { format!("{:.decimals$}", ns / 1e6) } else { NONE.to_owned() }
}

/// A time in milliseconds that is known to the microsecond: what the studies printed, what the
/// kernel tells of TCP.
pub(crate) fn ms_to_microsecond(ns: f64) -> String {
    if ns.is_finite() { format!("{:.3}", ns / 1e6) } else { NONE.to_owned() }
}

/// A span in seconds with its unit.
pub(crate) fn seconds(ns: f64) -> String {
    let s = ns / 1e9;
    if s < 10.0 { format!("{} s", significant(s, 3)) } else { format!("{s:.1} s") }
}

/// A share as a percentage with three significant digits, two decimals at most near the whole.
pub(crate) fn percent(ratio: f64) -> String {
    let value = ratio * 100.0;
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value == 0.0 {
        return "0 %".to_owned();
    }
    format!("{} %", significant(value, 3))
}

/// A measured loss in percent to one decimal. Below zero it is a gain, told as what the figure is
/// times the one that it is held against: a loss of -518.8 % says nothing to a reader.
pub(crate) fn loss_percent(ratio: f64) -> String {
    let value = ratio * 100.0;
    if !value.is_finite() {
        return NONE.to_owned();
    }
    let tenths = (value * 10.0).round() / 10.0;
    if tenths < 0.0 {
        return format!("{} times", trimmed(&significant(1.0 - ratio, 3)));
    }
    format!("{:.1} %", tenths.abs())
}

/// A loss as the PREN study prints it: whole percent, rounded up.
///
/// The study prints 28, 39, 58 and 80 % for 422, 360, 247 and 122 of 586 Mbit/s, which are 27.99,
/// 38.57, 57.85 and 79.18 %: the last one only comes out when rounding up.
pub(crate) fn published_loss(ratio: f64) -> String {
    if !ratio.is_finite() {
        return NONE.to_owned();
    }
    // The small term keeps 1 - 0.72 (28.000000000000004 %) from becoming 29 %.
    let whole = (ratio * 100.0 - 1e-6).ceil();
    let sign = if whole < 0.0 { "\u{2212}" } else { "" };
    format!("{sign}{:.0} %", whole.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_that_a_reader_can_use() {
        let cases: &[(String, &str)] = &[
            (rate_with_unit(941_482_444.7), "941.48 Mbit/s"),
            (rate_with_unit(0.0), "0 bit/s"),
            (rate_with_unit(155_520_000.0), "155.52 Mbit/s"),
            (rate_with_unit(f64::NAN), NONE),
            (rate_with_unit(-1.0), NONE),
            (measured_rate(941_482_444.7), "941.5 Mbit/s"),
            (measured_rate(16_800_000_000.0), "16.80 Gbit/s"),
            (measured_rate(999_960_000.0), "1.000 Gbit/s"),
            (measured_rate(0.0), "0 bit/s"),
            (measured_rate(f64::NAN), NONE),
            (ms_of_clock(42_935.0, 6), "0.043"),
            (ms_of_clock(6_412.0, 6), "0.00641"),
            (ms_of_clock(6_412.0, 4), "0.0064"),
            (ms_of_clock(1_570_000.0, 6), "1.570"),
            (ms_of_clock(23_456_000.0, 6), "23.46"),
            (ms_of_clock(0.0, 5), "0.000"),
            (published_mbit(586e6), "586"),
            (whole_percent(0.007_4), "0.74 %"),
            (whole_percent(0.998), "99.8 %"),
            (ms_to_microsecond(20_000.0), "0.020"),
            (rate_in_mbit(12_345_600_000.0), "12350"),
            (rate_in_mbit(586_000_000.0), "586.0"),
            (short_count(20_000.0), "20k"),
            (short_count(500.0), "500"),
            (amount(1_177_000_000), "1.177 GB"),
            (amount(0), "0 B"),
            (memory(32_768), "32 KiB"),
            (memory(46_720), "46720 bytes"),
            (buffer(46_720), "45.6 KiB"),
            (buffer(2_097_152), "2.00 MiB"),
            (buffer(1_047_552), "1023 KiB"),
            (buffer(700), "700 B"),
            (window(131_072), "128K"),
            (window(0), "auto"),
            (time_in_ms(6_412.3), "0.00641"),
            (time_in_ms(145_000.0), "0.145"),
            (time_in_ms(1_570_000.0), "1.570"),
            (time_in_ms(23_456_000.0), "23.46"),
            (ms_exact(6_412.0, 6), "0.006412"),
            (ms_exact(6_412.0, 5), "0.00641"),
            (percent(0.991), "99.1 %"),
            (percent(1.0), "100 %"),
            (percent(0.000_4), "0.0400 %"),
            (seconds(10_000_000_000.0), "10.0 s"),
            (significant(f64::NAN, 3), NONE),
            (significant(9.996, 3), "10.0"),
            (significant(-0.5, 3), "-0.500"),
        ];
        for (got, expected) in cases {
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn losses_round_up_as_the_pren_study_prints_them() {
        // §5.1 of the study: Mbit/s at 32K windows, localhost 586.
        for (mbit, printed) in [(586.0, "0 %"), (422.0, "28 %"), (360.0, "39 %"), (247.0, "58 %")] {
            assert_eq!(published_loss(1.0 - mbit / 586.0), printed);
        }
        assert_eq!(published_loss(1.0 - 122.0 / 586.0), "80 %");
        assert_eq!(published_loss(1.0 - 0.72), "28 %");
        assert_eq!(published_loss(-0.123), "\u{2212}12 %");
        assert_eq!(published_loss(-0.001), "0 %");
        assert_eq!(loss_percent(1.0 - 122.0 / 586.0), "79.2 %");
        // 1.1234 and 6.188 times what it is held against.
        assert_eq!(loss_percent(-0.1234), "1.12 times");
        assert_eq!(loss_percent(-5.188), "6.19 times");
        assert_eq!(loss_percent(-0.0001), "0.0 %");
        assert_eq!(loss_percent(0.9926), "99.3 %");
    }
}
