//! The difference that two runs of the same thing may have, of figures without samples.
//!
//! Counts are taken as Poisson's: the difference of two has the variance of their sum. What a load
//! adds to a delay is noise up to the figure from which on it is called a queue. Everything else
//! differs from run to run by some per cent.

use linerate_core::record::{MetricId, Record, Stat, Summary};

use crate::delay::{QUEUE_NS, QUEUE_SHARE};

/// Relative difference of runs over paths without losses: 2 to 5 % (measured,
/// `core::explain::interventions`).
const RUNS: f64 = 0.05;
/// Relative difference of two searches, each of which ends within half a per cent of the rate.
const SEARCHES: f64 = 0.01;
/// Standard deviations within which a difference of counts says nothing: 95 % of all lie there.
const DEVIATIONS: f64 = 2.0;

/// The difference that two runs may have in a figure with the values `pair`.
pub(super) fn noise_between_runs(records: [&Record; 2], row: &Summary, pair: (f64, f64)) -> f64 {
    let (one, other) = pair;
    let largest = one.abs().max(other.abs());
    match row.metric {
        MetricId::DelayAdded
        | MetricId::AddedHere
        | MetricId::AddedPath
        | MetricId::AddedThere
        | MetricId::AddedBack
        | MetricId::AddedPeer => of_queue(records),
        MetricId::RetransmitRatio => of_share(records, row, MetricId::Retransmits, largest),
        MetricId::DatagramLossRatio => of_share(records, row, MetricId::DatagramsLost, largest),
        MetricId::IpCapacity => SEARCHES * largest,
        _ if is_count(row.metric) => DEVIATIONS * (one.abs() + other.abs()).sqrt(),
        _ if row.metric.table_row().unit == "frames/s" => SEARCHES * largest,
        _ => RUNS * largest,
    }
}

/// The smallest added delay that is called a queue: a fixed time, or a share of the idle delay.
fn of_queue(records: [&Record; 2]) -> f64 {
    let idle = records
        .iter()
        .filter_map(|record| record.summary_value(MetricId::DelayIdle, Stat::P50, None));
    QUEUE_NS.max(QUEUE_SHARE * idle.fold(0.0, f64::max))
}

/// Noise of a ratio that is computed from a count: the relative noise of the count.
fn of_share(records: [&Record; 2], row: &Summary, count: MetricId, largest: f64) -> f64 {
    let counts = records
        .map(|record| record.summary_value(count, Stat::Value, row.direction).unwrap_or(0.0));
    let most = counts[0].max(counts[1]).max(1.0);
    largest * DEVIATIONS * (counts[0] + counts[1]).sqrt() / most
}

/// True if a metric counts events that are independent of each other, such as lost packets.
fn is_count(metric: MetricId) -> bool {
    let counted = [
        "addresses",
        "answers",
        "datagrams",
        "events",
        "frames",
        "outages",
        "packets",
        "probes",
        "segments",
    ];
    counted.contains(&metric.table_row().unit)
}
