//! The final text of a ping: counts, the min/avg/max/stddev line that BSD's ping prints, with
//! nanoseconds, percentiles, and pings per second both ways.

use linerate_core::record::{MetricId, PingPlan, Record, Stat, Status};

use super::{facts, own_limits, tail};
use crate::number::{self, or_dash};
use crate::{escape, words};

/// The final text of `linerate ping`.
pub(super) fn summary(record: &Record, plan: &PingPlan) -> String {
    let mut out = escape::line(&title(plan));
    out.push('\n');
    out.push_str(&facts(record));
    out.push_str(&own_limits(record));
    for &size in &plan.sizes_bytes {
        out.push_str(&of_size(record, size));
    }
    out.push_str(&tail(record));
    out
}

/// The one line that says what was asked.
pub(crate) fn title(plan: &PingPlan) -> String {
    let sizes: Vec<String> = plan.sizes_bytes.iter().map(u32::to_string).collect();
    format!(
        "ping of {} by {}: {} bytes of payload, {}, {}",
        plan.host,
        words::transport(plan.transport),
        words::listed(&sizes),
        plan.count.map_or_else(
            || "until stopped".to_owned(),
            |count| if plan.sizes_bytes.len() > 1 {
                format!("{} of each size", words::counted(count, "probe"))
            } else {
                words::counted(count, "probe")
            }
        ),
        words::ping_mode(plan.mode, plan.interval_ns),
    )
}

/// A value for one payload; a record of one size may leave the payload out of its rows.
pub(crate) fn value(record: &Record, metric: MetricId, stat: Stat, size: u32) -> Option<f64> {
    record.value_at(metric, stat, size).or_else(|| {
        let mut rows = record.summary.iter();
        rows.find(|row| row.metric == metric && row.stat == stat && row.payload_bytes.is_none())
            .map(|row| row.value)
    })
}

fn of_size(record: &Record, size: u32) -> String {
    let mut out = format!("{size} bytes: {}\n", counts(record, size));
    for (label, metric) in [("round-trip", MetricId::Rtt), ("kernel's own", MetricId::RttKernel)] {
        let stats = [Stat::Min, Stat::Mean, Stat::Max, Stat::Stddev];
        if let Some(line) = slashed(record, metric, &stats, size) {
            out.push_str(&format!("  {label} min/avg/max/stddev = {line} ms\n"));
        }
    }
    let stats = [Stat::P50, Stat::P90, Stat::P95, Stat::P99, Stat::P999];
    if let Some(line) = slashed(record, MetricId::Rtt, &stats, size) {
        out.push_str(&format!("  percentiles 50/90/95/99/99.9 = {line} ms\n"));
    }
    out.push_str(&per_second(record, size));
    out
}

/// Values joined by slashes; nothing when none of them was measured.
fn slashed(record: &Record, metric: MetricId, stats: &[Stat], size: u32) -> Option<String> {
    let values: Vec<Option<f64>> =
        stats.iter().map(|&stat| value(record, metric, stat, size)).collect();
    values.iter().any(Option::is_some).then(|| {
        let texts: Vec<String> =
            values.iter().map(|&value| or_dash(value, number::ms_exact)).collect();
        texts.join("/")
    })
}

fn counts(record: &Record, size: u32) -> String {
    let get = |metric| value(record, metric, Stat::Value, size);
    let count = |metric| or_dash(get(metric), |n| format!("{n:.0}"));
    let bound = get(MetricId::LossRatioHigh)
        .map_or_else(String::new, |ratio| format!(" (at most {})", number::percent(ratio)));
    format!(
        "{} sent, {} answered, {} lost{bound}, {} duplicates, {} reordered, {} late",
        count(MetricId::Sent),
        count(MetricId::Received),
        or_dash(get(MetricId::LossRatio), number::percent),
        count(MetricId::Duplicates),
        count(MetricId::Reordered),
        count(MetricId::Late),
    )
}

fn per_second(record: &Record, size: u32) -> String {
    let whole = |n: f64| format!("{n:.0}");
    let measured = or_dash(value(record, MetricId::Pps, Stat::Value, size), whole);
    let paper = or_dash(from_average(record, size), |n| whole(n.trunc()));
    format!("  pings/s {measured} measured, {paper} as 1000/avg\n")
}

/// Pings per second as the studies of 2000 compute them, from the stored row or the mean.
pub(crate) fn from_average(record: &Record, size: u32) -> Option<f64> {
    value(record, MetricId::PpsPaper, Stat::Value, size).or_else(|| {
        let mean = value(record, MetricId::Rtt, Stat::Mean, size)?;
        (mean > 0.0).then(|| 1e9 / mean)
    })
}

/// What the ping says, in one plain sentence.
pub(super) fn sentence(record: &Record, plan: &PingPlan) -> String {
    let ends = [plan.sizes_bytes.first(), plan.sizes_bytes.last()];
    let median = |size: u32| {
        value(record, MetricId::Rtt, Stat::P50, size)
            .or_else(|| value(record, MetricId::Rtt, Stat::Mean, size))
    };
    let text = match ends {
        [Some(&first), Some(&last)] => match (median(first), median(last)) {
            (Some(a), Some(b)) if first != last => format!(
                "A typical answer from {} took {} ms with {first} bytes and {} ms with {last}",
                plan.host,
                number::ms(a),
                number::ms(b)
            ),
            (Some(a), _) | (_, Some(a)) => {
                format!("A typical answer from {} took {} ms", plan.host, number::ms(a))
            }
            (None, None) => return format!("No answer came from {}.", plan.host),
        },
        _ => return format!("Nothing was asked of {}.", plan.host),
    };
    let lost = plan
        .sizes_bytes
        .iter()
        .map(|&size| {
            let sent = value(record, MetricId::Sent, Stat::Value, size)?;
            Some(sent - value(record, MetricId::Received, Stat::Value, size)?)
        })
        .sum::<Option<f64>>();
    let cut = if record.status == Status::Ok { "" } else { " before it was cut short" };
    match lost {
        Some(0.0) => format!("{text}; none was lost{cut}."),
        Some(lost) => format!("{text}; {}{cut}.", lost_words(lost)),
        None => format!("{text}{cut}."),
    }
}

fn lost_words(lost: f64) -> String {
    format!("{lost:.0} {} lost", if lost == 1.0 { "was" } else { "were" })
}
