//! Values and changes of a series in words.

use linerate_core::record::{Direction, MetricId};
use linerate_core::schedule::{Followed, LevelChange};
use linerate_core::time::WallTime;

use crate::number;

/// The name of a figure: `goodput (down)`.
pub(super) fn name(key: &str) -> String {
    let Some(followed) = Followed::from_key(key) else { return key.to_owned() };
    let name = match followed.metric {
        MetricId::Goodput => "goodput",
        MetricId::Rtt | MetricId::RttKernel => "round trip",
        MetricId::DelayIdle => "idle delay",
        MetricId::DelayLoaded => "delay under load",
        MetricId::OneWayDelay => "one-way delay",
        _ => "loss",
    };
    match followed.direction {
        Some(Direction::Up) => format!("{name} (up)"),
        Some(Direction::Down) => format!("{name} (down)"),
        None => name.to_owned(),
    }
}

/// A value of a figure with its unit.
pub fn value_with_unit(key: &str, value: f64) -> String {
    let metric = key.split_once('/').map_or(key, |(metric, _)| metric);
    if metric.ends_with("_bps") {
        number::measured_rate(value)
    } else if metric.ends_with("_ns") {
        format!("{} ms", number::time_in_ms(value))
    } else {
        number::loss_percent(value)
    }
}

/// A time of day with its date, UTC.
pub(crate) fn utc_date_time(at_s: f64) -> String {
    format(at_s, "%Y-%m-%d %H:%M:%S")
}

/// A time in a format of strftime(3), UTC.
pub(super) fn format(at_s: f64, format: &str) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "since 1970")]
    let nanos = at_s.max(0.0) as u128 * 1_000_000_000;
    WallTime::from_unix_nanos(nanos).format_utc(format).unwrap_or_default()
}

/// The change of a figure in words, with its values before and since.
pub(crate) fn change_in_words(key: &str, before: f64, after: f64) -> String {
    let ratio = after / before;
    let by = match ratio {
        // Of a loss that was none, no share can be said.
        _ if !ratio.is_finite() || ratio > 10.0 => String::new(),
        ratio => format!(" ({:+.0} %)", (ratio - 1.0) * 100.0),
    };
    let went = if ratio < 1.0 { "fell" } else { "rose" };
    format!(
        "{} {went} from {} to {}{by}",
        name(key),
        value_with_unit(key, before),
        value_with_unit(key, after)
    )
}

/// A lasting change in a sentence.
pub fn change_sentence(plan: &str, task: &str, changes: &[(String, LevelChange)]) -> String {
    let each =
        changes.iter().map(|(key, change)| change_in_words(key, change.before, change.after));
    let each = each.collect::<Vec<_>>().join(", ");
    let since = changes.iter().map(|(_, change)| change.at_s).fold(f64::INFINITY, f64::min);
    format!("{plan}, {task}: {each}, since {} UTC", utc_date_time(since))
}

/// Runs without a result in a sentence.
pub fn no_data_sentence(plan: &str, task: &str, runs: usize, reason: &str) -> String {
    format!("{plan}, {task}: no data, {runs} runs one after another without a result: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_says_from_what_to_what_and_since_when() {
        let change = |before, after| LevelChange {
            at_s: 1_795_478_400.0,
            between_s: (1_795_478_400.0, 1_795_478_400.0),
            before,
            after,
            values: 3,
        };
        let sentence = change_sentence(
            "home",
            "line",
            &[
                ("goodput_bps/down".to_owned(), change(941.5e6, 95e6)),
                ("rtt_ns".to_owned(), change(10e6, 25e6)),
                ("loss_ratio".to_owned(), change(0.0, 0.02)),
            ],
        );
        assert_eq!(
            sentence,
            "home, line: goodput (down) fell from 941.5 Mbit/s to 95.00 Mbit/s (-90 %), round trip \
             rose from 10.00 ms to 25.00 ms (+150 %), loss rose from 0.0 % to 2.0 %, since \
             2026-11-24 00:00:00 UTC"
        );
    }
}
