//! What one filter costs: the time of a frame against the number of filters, by regression.
//!
//! The time of a frame is one over the rate at which the device is at its limit, and so everything
//! that it does; the slope is the filters' alone. Up to ten of them cost about as little as two
//! measurements differ, so the line is through the longer lists where there are some.

use linerate_core::stats::LineFit;

use super::suite::{Case, Group, Size, shown};
use super::words;
use crate::document::{Section, Table};
use crate::number::{self, or_dash};

/// Lists as long as this are used alone where three lengths of them were measured.
const LONG_FROM: u32 = 10;

/// A way of telling the rate at which a device is at its limit.
type Rate = (&'static str, fn(&Case<'_>) -> Option<f64>);

/// Goals before the flood: a flood may make a device do worse than it can.
const RATES: [Rate; 3] = [
    ("typical", |case| case.goal_fps("typical")),
    ("strict", |case| case.goal_fps("strict")),
    ("flood", |case| case.flood_fps()),
];

/// The cost of a filter by one rate.
pub(crate) struct Cost {
    /// Frames of this length.
    pub size: Size,
    /// By which rate.
    pub rate: &'static str,
    /// Fewest and most filters on the line.
    pub filters: (u32, u32),
    /// The line: ns of a frame against filters.
    pub fit: LineFit,
}

/// Every cost that the records of a group tell.
pub(crate) fn costs(group: &Group<'_>) -> Vec<Cost> {
    let sizes = group.sizes();
    let of_size = |size: &Size| {
        let [typical, strict, flood] = RATES.map(|rate| cost(group, size, &rate));
        [typical.or(strict), flood]
    };
    sizes.iter().flat_map(of_size).flatten().collect()
}

/// Nanoseconds to the hundredth; what is less is no figure.
fn ns(value: f64) -> String {
    let hundredths = (value * 100.0).round() / 100.0;
    number::trimmed(&format!("{:.2}", if hundredths == 0.0 { 0.0 } else { hundredths })).to_owned()
}

fn cost(group: &Group<'_>, size: &Size, (name, rate): &Rate) -> Option<Cost> {
    let points = |from: u32| -> Vec<(u32, f64)> {
        let lists = group.filters().into_iter().filter(|filters| *filters >= from);
        let cases = lists.flat_map(|filters| group.at(size, filters));
        let time = |case: &Case<'_>| {
            let fps = rate(case)? * words::senders(case.plan) as f64;
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
    Some(Cost { size: size.clone(), rate: name, filters: ends, fit })
}

/// A row a length and rate; none without three lengths of the list.
pub(crate) fn section(group: &Group<'_>) -> Option<Section> {
    let costs = costs(group);
    let table = Table::by(
        &costs,
        &[
            ("size", &|it| shown(&it.size)),
            ("by rate", &|it| it.rate.to_owned()),
            ("filters", &|it| format!("{} to {}", it.filters.0, it.filters.1)),
            ("ns/filter", &|it| ns(it.fit.slope)),
            ("95 %", &|it| {
                or_dash(it.fit.slope_95, |it| format!("{} to {}", ns(it.low), ns(it.high)))
            }),
            ("ns without", &|it| format!("{:.0}", it.fit.intercept)),
            ("n", &|it| it.fit.n.to_string()),
        ],
    );
    let mut notes = vec![
        "least squares of the time of a frame (1 / rate) against the number of filters that it \
         passes without a match"
            .to_owned(),
    ];
    let within = |cost: &Cost| cost.fit.slope_95.is_some_and(|it| it.low <= 0.0 && it.high >= 0.0);
    if costs.iter().any(within) {
        notes.push(
            "an interval with 0 in it: the cost is not distinguishable from the spread".to_owned(),
        );
    }
    let title = format!("{}: cost of a filter", group.title());
    (!costs.is_empty()).then(|| Section::of(title, [table], notes))
}
