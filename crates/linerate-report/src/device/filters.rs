//! Cost of one filter rule: the time of a frame against the number of filters, by regression.
//!
//! The time of a frame is one over the rate at which the device is at its limit, and so everything
//! that it does; the slope is the filters' alone. Up to ten of them cost about as little as two
//! measurements differ, so the line is through the longer lists where there are some.

use linerate_core::stats::LineFit;

use super::suite::{BenchCase, DeviceGroup, FrameSize, size_text};
use super::words;
use crate::document::{ReportSection, ReportTable};
use crate::number::{self, or_dash};

/// Only lists of at least so many filters are used where three lengths of them were measured.
const LONG_FROM: u32 = 10;

/// A rate at which the device is at its limit: its name and the function that takes it from a
/// record.
type LimitRate = (&'static str, fn(&BenchCase<'_>) -> Option<f64>);

/// Goals stand before the flood, because a flood may make a device forward less than it can.
const RATES: [LimitRate; 3] = [
    ("typical", |case| case.goal_fps("typical")),
    ("strict", |case| case.goal_fps("strict")),
    ("flood", |case| case.flood_fps()),
];

/// The cost of a filter, computed from one of the rates.
pub(crate) struct FilterCost {
    /// Length of the frames sent.
    pub size: FrameSize,
    /// Name of the rate: typical, strict or flood.
    pub rate: &'static str,
    /// The fewest and the most filters among the points of the line.
    pub filters: (u32, u32),
    /// The regression line: nanoseconds of a frame against the number of filters.
    pub fit: LineFit,
}

/// The costs of a filter at each frame length: by the typical or strict rate, and by the flood
/// rate.
pub(crate) fn filter_costs(group: &DeviceGroup<'_>) -> Vec<FilterCost> {
    let sizes = group.frame_sizes();
    let of_size = |size: &FrameSize| {
        let [typical, strict, flood] = RATES.map(|rate| fit_filter_cost(group, size, &rate));
        [typical.or(strict), flood]
    };
    sizes.iter().flat_map(of_size).flatten().collect()
}

/// Nanoseconds to the hundredth, without minus sign or decimals at 0.
fn ns_text(value: f64) -> String {
    let hundredths = (value * 100.0).round() / 100.0;
    number::trimmed(&format!("{:.2}", if hundredths == 0.0 { 0.0 } else { hundredths })).to_owned()
}

fn fit_filter_cost(
    group: &DeviceGroup<'_>,
    size: &FrameSize,
    rate: &LimitRate,
) -> Option<FilterCost> {
    let points = |from: u32| -> Vec<(u32, f64)> {
        let lists = group.filters().into_iter().filter(|filters| *filters >= from);
        let cases = lists.flat_map(|filters| group.matching_cases(size, filters));
        let time = |case: &BenchCase<'_>| {
            let fps = (rate.1)(case)? * words::senders(case.plan) as f64;
            (fps > 0.0).then(|| (case.filters(), 1e9 / fps))
        };
        cases.filter_map(time).collect()
    };
    let lists = |points: &[(u32, f64)]| {
        let mut lists: Vec<u32> = points.iter().map(|point| point.0).collect();
        lists.dedup();
        lists
    };
    let long = points(LONG_FROM);
    let points = if lists(&long).len() >= 3 { long } else { points(0) };
    let lists = lists(&points);
    let ends = (*lists.first()?, *lists.last()?);
    let line: Vec<(f64, f64)> = points.iter().map(|(x, y)| (f64::from(*x), *y)).collect();
    let fit = (lists.len() >= 3).then(|| LineFit::from_points(&line))??;
    Some(FilterCost { size: size.clone(), rate: rate.0, filters: ends, fit })
}

/// A row for each frame length and rate; `None` unless three numbers of filters were measured.
pub(crate) fn section(group: &DeviceGroup<'_>) -> Option<ReportSection> {
    let costs = filter_costs(group);
    let table = ReportTable::from_rows(
        &costs,
        &[
            ("size", &|cost| size_text(&cost.size)),
            ("by rate", &|cost| cost.rate.to_owned()),
            ("filters", &|cost| format!("{} to {}", cost.filters.0, cost.filters.1)),
            ("ns/filter", &|cost| ns_text(cost.fit.slope)),
            ("95 %", &|cost| {
                or_dash(cost.fit.slope_95, |interval| {
                    format!("{} to {}", ns_text(interval.low), ns_text(interval.high))
                })
            }),
            ("ns without", &|cost| format!("{:.0}", cost.fit.intercept)),
            ("n", &|cost| cost.fit.n.to_string()),
        ],
    );
    let mut notes = vec![
        "least squares of the time of a frame (1 / rate) against the number of filters that it \
         passes without a match"
            .to_owned(),
    ];
    let within = |cost: &FilterCost| {
        cost.fit.slope_95.is_some_and(|interval| interval.low <= 0.0 && interval.high >= 0.0)
    };
    if costs.iter().any(within) {
        notes.push(
            "an interval with 0 in it: the cost is not distinguishable from the spread".to_owned(),
        );
    }
    let title = format!("{}: cost of a filter", group.heading_text());
    (!costs.is_empty()).then(|| ReportSection::from_tables(title, [table], notes))
}
