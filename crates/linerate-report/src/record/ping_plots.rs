//! The plots of a ping: delay over time, its distribution, where it passed, and delay by size.

use linerate_core::record::{Distribution, MetricId, PingPlan, Record, Stat};

use super::by_size::BySize;
use super::ping_split::{Split, value_for_payload};
use crate::document::ReportFigure;
use crate::number;
use crate::svg::{
    self, Axis, BarChart, BarRow, ChartSeries, DelayChart, LineChart, ProbeDrawing, Trail,
    described_rows, linear_domain,
};
use crate::words::counted;

/// All figures that the record has the data for.
pub(super) fn figures(record: &Record, plan: &PingPlan) -> Vec<ReportFigure> {
    let all = [
        over_time(record, ProbeDrawing::Probes),
        over_time(record, ProbeDrawing::Bands),
        distribution(record),
        split_figure(record, plan),
        by_size(record, plan),
    ];
    all.into_iter().flatten().collect()
}

/// Colours of sizes: the second is that of lost probes.
const COLOURS: [usize; 6] = [0, 2, 3, 4, 5, 6];

/// The same colour for a size in every figure; beyond six sizes with open markers.
const fn colour(index: usize) -> usize {
    COLOURS[index % COLOURS.len()] + index / COLOURS.len() * svg::OPEN
}

/// The probes of each size in order of sending.
fn trails(record: &Record) -> Vec<Trail> {
    let rtt = record.series.iter().filter(|series| series.metric == MetricId::Rtt);
    let trail = |style: usize, series: &linerate_core::record::Series| {
        let bytes = series.payload_bytes.map(|bytes| counted(bytes.into(), "byte"));
        let probes = series.t_ns.iter().zip(&series.values);
        let probes = probes.map(|(&t, ns)| (t as f64 / 1e9, ns.map(|ns| ns as u64)));
        Trail {
            label: bytes.unwrap_or_else(|| "round trip".to_owned()),
            style: colour(style),
            probes: probes.collect(),
        }
    };
    rtt.enumerate().map(|(style, series)| trail(style, series)).collect()
}

fn over_time(record: &Record, shown: ProbeDrawing) -> Option<ReportFigure> {
    let trails = trails(record);
    let kept: usize = trails.iter().map(|trail| trail.probes.len()).sum();
    let sent = record.summary.iter().filter(|row| row.metric == MetricId::Sent);
    let sent: f64 = sent.map(|row| row.value).sum();
    let first = match (kept as f64) < sent {
        true => format!(" The first {kept} of {sent:.0} probes; --samples keeps more."),
        false => String::new(),
    };
    let (title, inner, caption) = match shown {
        ProbeDrawing::Probes => (
            "Delay over time",
            "Round trip of each probe",
            "Each answer at the time of its probe's sending. Strokes at the foot are lost probes.",
        ),
        ProbeDrawing::Bands => (
            "Percentiles over time",
            "Median, and what 50 % and 90 % lie within",
            "Half of the answers of each moment lie within the darker band, 90 % within the lighter \
             one. Strokes at the foot are lost probes.",
        ),
    };
    let chart = DelayChart {
        title: inner.to_owned(),
        description: format!("{kept} probes"),
        since: "the start",
        trails,
        shown,
        load: Vec::new(),
    };
    chart
        .has_any()
        .then(|| ReportFigure::from_panel(title, &format!("{caption}{first}"), chart.svg()))
}

/// The distribution function of the round-trip times of each size.
fn distribution(record: &Record) -> Option<ReportFigure> {
    let rtt = |it: &&Distribution| it.metric == MetricId::Rtt;
    let curves = record.distributions.iter().filter(rtt).enumerate();
    let curves = curves.map(|(style, distribution)| {
        let bytes = distribution.payload_bytes.map(|bytes| counted(bytes.into(), "byte"));
        let label = bytes.unwrap_or_else(|| "rtt".to_owned());
        ChartSeries::new(label, colour(style), svg::cumulated(distribution, 1e6)).in_steps()
    });
    let curves: Vec<ChartSeries> = curves.filter(|curve| !curve.points.is_empty()).collect();
    let x = Axis::logarithmic("round-trip time, ms", number::short_time);
    let y = Axis::linear("% of answers", number::short_count);
    let y = Axis { domain: Some((0.0, 100.0)), ..y };
    let (title, description) = (
        "Share of answers within a time",
        "Cumulative distribution of round-trip times by payload size",
    );
    let caption =
        "Share of the probes that were answered within a time. Lost probes are not in it.";
    (!curves.is_empty()).then(|| {
        let chart = LineChart::new(title, description, [x, y], curves);
        ReportFigure::from_panel("Distribution of round-trip times", caption, chart.svg())
    })
}

/// Where the mean round trip of each size passed.
fn split_figure(record: &Record, plan: &PingPlan) -> Option<ReportFigure> {
    let mut names: Vec<String> = Vec::new();
    let mut partial = false;
    let mut rows = Vec::new();
    for &size in &plan.sizes_bytes {
        let Some(split) = Split::from_record(record, size) else { continue };
        let parts = split.timed_parts();
        let own: Vec<String> = parts.iter().map(|(name, _)| (*name).to_owned()).collect();
        // Sizes of which the kernel told less would take other colours for the same part.
        if !names.is_empty() && names != own {
            continue;
        }
        names = own;
        partial |= split.is_of_some();
        let ms = |ns: f64| format!("{} ms", number::time_in_ms(ns));
        let texts = parts.iter().map(|(name, ns)| format!("{name} {}", ms(*ns)));
        let all: f64 = parts.iter().map(|(_, ns)| ns).sum();
        rows.push(BarRow {
            label: counted(size.into(), "byte"),
            values: parts.iter().map(|(_, ns)| Some(ns / 1e6)).collect(),
            texts: texts.chain([ms(all)]).collect(),
        });
    }
    let caption = format!(
        "Mean times by the kernel's timestamps, in the order of travel; together they are the round \
         trip{}.",
        if partial { " of the probes that have all timestamps" } else { "" }
    );
    (!rows.is_empty()).then(|| {
        let chart = BarChart {
            stacked: true,
            title: "Parts of the mean round trip".to_owned(),
            description: described_rows(&rows),
            axis: "ms".to_owned(),
            names,
            rows,
        };
        ReportFigure::from_panel("Where the round trip passed", &caption, chart.svg())
    })
}

/// Smallest and median round trip of each size, with the line through the smallest.
fn by_size(record: &Record, plan: &PingPlan) -> Option<ReportFigure> {
    let found = BySize::from_record(record, plan)?;
    let medians = found.least.iter().filter_map(|&(size, _)| {
        Some((f64::from(size), value_for_payload(record, MetricId::Rtt, Stat::P50, size)? / 1e6))
    });
    let medians: Vec<(f64, f64)> = medians.collect();
    let least: Vec<(f64, f64)> =
        found.least.iter().map(|&(size, ns)| (f64::from(size), ns / 1e6)).collect();
    let last = found.least.last()?.0;
    let line = [found.least.first()?.0, last]
        .map(|size| (f64::from(size), found.fitted_ns_at(size) / 1e6));
    let fitted = format!("{} ns per byte", number::significant(found.fit.slope, 3));
    let drawn = medians.iter().chain(&least).chain(&line).map(|point| point.1);
    let domain = linear_domain(drawn, f64::INFINITY, 5)?;
    let mut series = vec![
        ChartSeries::new("median", 0, medians),
        ChartSeries::new("smallest", 2, least),
        ChartSeries::new(fitted, 2, line.to_vec()).dashed(),
    ];
    if let Some(most) = found.whole_bytes.filter(|most| *most < last) {
        let limit = vec![(f64::from(most), domain.0), (f64::from(most), domain.1)];
        series.push(ChartSeries::new(format!("one packet up to {most} bytes"), 5, limit).dashed());
    }
    let y = Axis::linear("round trip, ms", number::short_time);
    let axes =
        [Axis::linear("payload, bytes", number::short_count), Axis { domain: Some(domain), ..y }];
    let chart =
        LineChart::new("Smallest and median round trip", found.fit_in_words(), axes, series);
    let caption = format!("{}. The axis of the delay does not begin at 0.", found.fit_in_words());
    Some(ReportFigure::from_panel("Round trip by size", &caption, chart.svg()))
}
