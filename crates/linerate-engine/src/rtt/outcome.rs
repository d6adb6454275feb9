//! What a run of one size came to: its rows, distributions and samples.

use linerate_core::record::{
    ClockAgreement, Distribution, LostStretch, MetricId, Series, Stat, Summary,
};
use linerate_core::stats::{Z_95, wilson_interval};

use super::collector::Collector;
use super::drive::ProbeRun;

/// The results of a run, from its collector.
pub(super) struct PingOutcome {
    pub(super) distributions: Vec<Distribution>,
    pub(super) delays: Vec<Summary>,
    pub(super) series: Vec<Series>,
    pub(super) span_ns: Option<u64>,
    pub(super) paired: u64,
    pub(super) impossible: u64,
    pub(super) split: u64,
    pub(super) marked: u64,
    pub(super) outages: Vec<LostStretch>,
    pub(super) stepped_ns: Option<i64>,
    pub(super) kept_short: Option<u64>,
    pub(super) clocks: Option<ClockAgreement>,
}

impl PingOutcome {
    pub(super) fn from_collector(collector: &Collector<'_>, payload_bytes: u32) -> Self {
        let mut distributions = Vec::new();
        let mut delays = Vec::new();
        for (samples, metric) in
            [(&collector.rtt, MetricId::Rtt), (&collector.kernel, MetricId::RttKernel)]
        {
            if let Some(distribution) = samples.distribution(metric) {
                delays.extend(samples.summary(&distribution));
                distributions.push(distribution);
            }
        }
        // Of the parts the rows say enough: a distribution each would double a record.
        for (samples, metric) in collector.own_parts.iter().zip([
            MetricId::RttSend,
            MetricId::RttQueue,
            MetricId::RttWake,
        ]) {
            let distribution = samples.distribution(metric);
            delays
                .extend(distribution.iter().flat_map(|distribution| samples.summary(distribution)));
        }
        let scheduled = collector.scheduled.distribution(MetricId::RttScheduled);
        delays.extend(
            scheduled.iter().flat_map(|distribution| collector.scheduled.summary(distribution)),
        );
        let (mut outages, count, longest_ns) = collector.outages.stretches_and_totals();
        outages.iter_mut().for_each(|outage| outage.payload_bytes = payload_bytes);
        delays.push(Summary::from_value(MetricId::Outages, Stat::Value, count as f64));
        if count > 0 {
            delays.push(Summary::from_value(MetricId::OutageMax, Stat::Value, longest_ns as f64));
        }
        let figures = collector.times.as_ref().and_then(|times| times.figures(payload_bytes));
        let mut series = collector.series();
        let clocks = figures.map(|figures| {
            series.extend(collector.series_one_way(&figures.delays));
            delays.extend(figures.rows);
            distributions.extend(figures.distributions);
            figures.clocks
        });
        Self {
            clocks,
            distributions,
            delays,
            series,
            span_ns: collector.span_ns(),
            paired: collector.book.as_ref().map_or(0, |book| book.paired),
            impossible: collector.book.as_ref().map_or(0, |book| book.impossible),
            split: collector.book.as_ref().map_or(0, |book| book.split),
            marked: collector.marked,
            outages,
            stepped_ns: collector.civil.stepped_ns,
            kept_short: collector.kept_short(),
        }
    }
}

/// The summary of one size.
pub(super) fn summary_rows(outcome: &PingOutcome, run: &ProbeRun) -> Vec<Summary> {
    let counts = run.counts;
    let total = |metric, value: u64| Summary::from_value(metric, Stat::Value, value as f64);
    let mut rows = outcome.delays.clone();
    let mean = rows.iter().find(|r| r.metric == MetricId::Rtt && r.stat == Stat::Mean);
    if let Some(mean_ns) = mean.map(|row| row.value).filter(|ns| *ns > 0.0) {
        rows.push(Summary::from_value(MetricId::PpsPaper, Stat::Value, 1e9 / mean_ns));
    }
    if let Some(span_ns) = outcome.span_ns {
        let pps = counts.answered as f64 * 1e9 / span_ns as f64;
        rows.push(Summary::from_value(MetricId::Pps, Stat::Value, pps).with_n(counts.answered));
    }
    rows.push(total(MetricId::Sent, counts.sent));
    rows.push(total(MetricId::Received, counts.answered));
    if counts.sent > 0 {
        let ratio = counts.lost as f64 / counts.sent as f64;
        rows.push(Summary::from_value(MetricId::LossRatio, Stat::Value, ratio).with_n(counts.sent));
    }
    if let Some(interval) = wilson_interval(counts.lost, counts.sent, Z_95) {
        let row = Summary::from_value(MetricId::LossRatioHigh, Stat::Value, interval.high);
        rows.push(row.with_n(counts.sent));
    }
    rows.push(total(MetricId::Duplicates, counts.duplicates));
    rows.push(total(MetricId::Reordered, counts.reordered));
    rows.push(total(MetricId::Late, counts.late));
    rows
}
