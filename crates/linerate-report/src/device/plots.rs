//! The diagrams of benchmarks: throughput by length, loss by load, latencies, and the trials
//! of a search. RFC 2544 §26.1 and §26.3 ask for the first two.

use linerate_core::record::{BenchTest, BenchTrial};

use super::suite::{BenchCase, DeviceGroup, FrameSize, size_text};
use super::{rfc2544, words};
use crate::document::ReportFigure;
use crate::number;
use crate::svg::{
    Axis, BarChart, BarRow, ChartSeries, LineChart, Mark, TraceChart, TracePoint, cumulated,
    described,
};

/// Most searches that are drawn for one group.
const TRACES_MAX: usize = 9;

/// Most curves in one chart; the colours of more would not be told apart.
const CURVES_MAX: usize = 14;

/// All diagrams of a group. `number`, counted from 0, tells apart the files of several groups.
pub(crate) fn group_figures(group: &DeviceGroup<'_>, number: usize) -> Vec<ReportFigure> {
    let file = |name: &str| match number {
        0 => format!("bench-{name}"),
        _ => format!("bench-{name}-{}", number + 1),
    };
    let mut out = Vec::new();
    out.extend(throughput(group, &file("throughput")));
    out.extend(loss_figure(group, &file("loss")));
    out.extend(latency(group, &file("latency")));
    out.extend(searches(group, &file("search")));
    out
}

/// A curve of the throughput chart.
struct Curve {
    name: &'static str,
    style: usize,
    /// Takes the rate from a case, in frames per second.
    rate: fn(&BenchCase<'_>) -> Option<f64>,
}

const CURVES: [Curve; 4] = [
    Curve { name: "typical", style: 0, rate: |case| case.goal_fps("typical") },
    Curve { name: "strict", style: 1, rate: |case| case.goal_fps("strict") },
    Curve { name: "verified", style: 3, rate: |case| case.goal_fps("verified") },
    Curve { name: "flood", style: 2, rate: |case| case.flood_fps() },
];

/// RFC 2544 §26.1: frame rate by frame length, with the theoretical curve where the medium is
/// known.
fn throughput(group: &DeviceGroup<'_>, file: &str) -> Option<ReportFigure> {
    let sizes: Vec<_> = group.frame_sizes().into_iter().filter(|size| size.mix.is_none()).collect();
    let points = |rate: &dyn Fn(&FrameSize) -> Option<f64>| -> Vec<(f64, f64)> {
        sizes.iter().filter_map(|size| Some((f64::from(size.bytes), rate(size)?))).collect()
    };
    let curve = |curve: &Curve| {
        let rate = |size: &FrameSize| group.median_figure(size, group.fewest_filters(), curve.rate);
        ChartSeries::new(curve.name, curve.style, points(&rate))
    };
    let mut curves: Vec<ChartSeries> = CURVES.iter().map(curve).collect();
    curves.retain(|curve| !curve.points.is_empty());
    if curves.is_empty() || sizes.len() < 2 {
        return None;
    }
    let tester =
        points(&|size| group.median_figure(size, group.fewest_filters(), |case| case.tester_fps()));
    let theory = points(&|size| group.theoretical_fps(size));
    let dashed =
        [ChartSeries::new("theoretical", 5, theory), ChartSeries::new("tester", 6, tester)];
    let dashed = dashed.into_iter().filter(|curve| !curve.points.is_empty());
    curves.extend(dashed.map(ChartSeries::dashed));
    let ticks = sizes.iter().map(|size| (f64::from(size.bytes), size.bytes.to_string())).collect();
    let x = Axis { ticks, ..Axis::logarithmic("frame length, bytes", number::short_count) };
    let axes = [x, Axis::logarithmic("frames per second", number::short_count)];
    let title = format!("Frame rate by length: {}", group.device);
    let chart = LineChart::new(title, described(&curves), axes, curves);
    let caption = "Throughput of each goal and the rate under flood, of one sending port. Dashes: \
                   what the medium carries, and what the tester itself does.";
    let title = format!("Throughput by frame length: {}", group.heading_text());
    Some(ReportFigure::new(title, caption, vec![(format!("{file}.svg"), chart.svg())]))
}

/// RFC 2544 §26.3: loss by offered load; the load as share of the theoretical rate where the medium
/// is known.
fn loss_figure(group: &DeviceGroup<'_>, file: &str) -> Option<ReportFigure> {
    let curves = loss_curves(group);
    if curves.is_empty() {
        return None;
    }
    let label = match group.has_theoretical_rate() {
        true => "offered load, % of the theoretical rate",
        false => "offered load, frames per second",
    };
    let axes = [label, "frames lost, %"].map(|label| Axis::linear(label, number::short_count));
    let title = format!("Loss by load: {}", group.device);
    let chart = LineChart::new(title, described(&curves), axes, curves);
    let caption = "Frames lost of those that were sent, at a constant load.";
    let title = format!("Loss by load: {}", group.heading_text());
    Some(ReportFigure::new(title, caption, vec![(format!("{file}.svg"), chart.svg())]))
}

/// A curve of loss for each record, by the load that was really sent.
pub(crate) fn loss_curves(group: &DeviceGroup<'_>) -> Vec<ChartSeries> {
    let medium = group.has_theoretical_rate();
    let mut out = Vec::new();
    for case in rfc2544::cases_in_order(group) {
        let senders = words::senders(case.plan) as f64;
        let line = case.result.theoretical_fps.map(|fps| fps * senders);
        let mut points: Vec<(f64, f64)> = case
            .result
            .loss_curve
            .iter()
            .chain(&case.result.overload)
            .filter_map(|point| {
                let load = match medium {
                    true => point.offered_fps / line? * 100.0,
                    false => point.offered_fps,
                };
                Some((load, point.loss_ratio * 100.0))
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !points.is_empty() && out.len() < CURVES_MAX {
            out.push(ChartSeries::new(rfc2544::name(group, case), out.len(), points));
        }
    }
    out
}

/// Bars of the median and the 99th percentile of latency, and the distributions.
fn latency(group: &DeviceGroup<'_>, file: &str) -> Option<ReportFigure> {
    let cases: Vec<&BenchCase<'_>> = rfc2544::cases_in_order(group)
        .into_iter()
        .filter(|case| case.latency().is_some())
        .collect();
    if cases.is_empty() {
        return None;
    }
    let rows = cases.iter().map(|case| {
        let found = case.latency();
        let values = [found.map(|latency| latency.p50_ns), found.map(|latency| latency.p99_ns)];
        BarRow {
            label: rfc2544::name(group, case),
            values: values.iter().map(|ns| ns.map(|ns| ns / 1e3)).collect(),
            texts: values.iter().map(|ns| number::or_dash(*ns, words::micros)).collect(),
        }
    });
    let bars = BarChart {
        stacked: false,
        title: format!("Latency at the throughput: {}", group.device),
        description: format!("{} lengths or states", cases.len()),
        axis: "\u{b5}s, the tester's own included".to_owned(),
        names: vec!["median".to_owned(), "99 % are below".to_owned()],
        rows: rows.collect(),
    };
    let mut panels = vec![(format!("{file}.svg"), bars.svg())];
    panels.extend(
        latency_distributions(group, &cases)
            .map(|chart| (format!("{file}-spread.svg"), chart.svg())),
    );
    let caption = "Delay of every frame at the throughput. The tester's own delay is in it; the \
                   tables have it beside.";
    Some(ReportFigure::new(format!("Latency: {}", group.heading_text()), caption, panels))
}

/// The cumulative distributions of latency: share of the frames that were no later than a time.
fn latency_distributions(group: &DeviceGroup<'_>, cases: &[&BenchCase<'_>]) -> Option<LineChart> {
    let mut curves = Vec::new();
    for case in cases.iter().take(CURVES_MAX) {
        let points =
            case.latency().map(|latency| cumulated(&latency.distribution, 1e3)).unwrap_or_default();
        if !points.is_empty() {
            curves.push(
                ChartSeries::new(rfc2544::name(group, case), curves.len(), points).in_steps(),
            );
        }
    }
    let x = Axis::logarithmic("\u{b5}s", number::short_count);
    let y = Axis::linear("% of the frames that were no later", number::short_count);
    let title = format!("Spread of the latency: {}", group.device);
    let count = format!("{} curves", curves.len());
    (!curves.is_empty()).then(|| LineChart::new(title, count, [x, y], curves))
}

/// The trials of each search for the throughput, a panel for each record.
fn searches(group: &DeviceGroup<'_>, file: &str) -> Option<ReportFigure> {
    let mut panels = Vec::new();
    for case in rfc2544::cases_in_order(group) {
        let Some(chart) = search_chart(case, &search_title(group, case)) else { continue };
        if panels.len() < TRACES_MAX {
            panels.push((format!("{file}-{}.svg", panels.len() + 1), chart.svg()));
        }
    }
    let caption = "Each trial of the search at its intended load, in the order in which they were \
                   made. Lines across: the throughput of each goal.";
    let title = format!("The search: {}", group.heading_text());
    (!panels.is_empty()).then(|| ReportFigure::new(title, caption, panels))
}

/// Frame length and number of filters of a search: `64 bytes, 1000 filters`.
fn search_title(group: &DeviceGroup<'_>, case: &BenchCase<'_>) -> String {
    let (length, rest) = (size_text(&case.frame_size()), rfc2544::name(group, case));
    let rest = rest.strip_prefix(&length).unwrap_or_default();
    let unit = if case.frame_size().mix.is_some() { "" } else { " bytes" };
    let bare = match group.filters().len() > 1 && case.filters() == group.fewest_filters() {
        true => format!(", {}", crate::words::counted(case.filters().into(), "filter")),
        false => String::new(),
    };
    format!("{length}{unit}{bare}{rest}")
}

/// The trials of one search for the throughput in their order; `None` without any.
fn search_chart(case: &BenchCase<'_>, name: &str) -> Option<TraceChart> {
    let of_search = |trial: &&BenchTrial| trial.test == BenchTest::Throughput;
    let trials = case.result.trials.iter().filter(of_search);
    let points: Vec<TracePoint> =
        (1_u32..).zip(trials).filter_map(|(number, trial)| trial_point(number, trial)).collect();
    if points.is_empty() {
        return None;
    }
    let goals = case.result.goals.iter();
    let across = goals.filter_map(|goal| Some((goal.goal.clone(), goal.throughput_fps()?)));
    Some(TraceChart {
        title: format!("Search with frames of {name}"),
        description: format!("{name}: {} trials", points.len()),
        x: Axis::linear("trial", number::short_count),
        // The first trials are at all that the tester can do, the last ones within a percent.
        y: Axis::logarithmic("intended load, frames per second", number::short_count),
        points,
        across: across.collect(),
    })
}

fn trial_point(number: u32, trial: &BenchTrial) -> Option<TracePoint> {
    let sent: u64 = trial.ports.iter().map(|port| port.sent).sum();
    let lost: u64 = trial.ports.iter().map(|port| port.lost_frames()).sum();
    let most = trial.ports.iter().map(|port| port.offered_fps).reduce(f64::max);
    let load = trial.intended_fps.or(most)?;
    let mark = match (&trial.invalid, lost) {
        (Some(_), _) => Mark::Void,
        (None, 0) => Mark::Clean,
        (None, _) => Mark::Lossy,
    };
    let mut hint = format!(
        "trial {number}, {} at {} frames/s: {lost} of {sent} lost",
        number::seconds(trial.duration_ns as f64),
        words::frames(load)
    );
    let reasons = [trial.invalid.as_ref().map(|why| why.detail()), trial.why.as_deref()];
    reasons.into_iter().flatten().for_each(|why| hint.push_str(&format!("; {why}")));
    Some(TracePoint { at: (f64::from(number), load), mark, hint })
}
