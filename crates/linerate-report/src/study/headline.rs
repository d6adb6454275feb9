//! The three or four figures that a reader takes away.

use super::compare::{TopologyComparison, limited_rate};
use super::figure::FlowFigure;
use super::grid::{Grid, TopologyRow};
use super::questions::QuestionAnswers;
use super::spoilt::{marked, ratio_marked};
use crate::document::Tile;
use crate::{device, number};

/// At most four large figures: those of the PREN study where the plan has its kinds of topology,
/// else the best figures of the tests; none where the plan asks questions, which have their own.
pub(crate) fn study_tiles(
    grid: &Grid<'_>,
    compared: &TopologyComparison,
    answered: &QuestionAnswers<'_>,
) -> Vec<Tile> {
    if compared.roles.compare(grid.plan) {
        return of_roles(grid, compared);
    }
    // Answers have their figures with them.
    if !answered.is_empty() {
        return Vec::new();
    }
    match of_tests(grid) {
        tests if tests.is_empty() => {
            device::headline::device_tiles(&grid.bench_suite(), grid.routers)
        }
        tests => tests,
    }
}

/// Localhost's throughput, the share that a bare cable keeps, the slowest link, the ping.
fn of_roles(grid: &Grid<'_>, compared: &TopologyComparison) -> Vec<Tile> {
    let all = [
        localhost(grid, compared),
        kept_share_tile(grid, compared, compared.roles.bare, "of that over a bare cable"),
        limited(grid, compared),
        ping_tile(grid, compared),
        kept_share_tile(
            grid,
            compared,
            compared.roles.routed,
            "of localhost's TCP through a router",
        ),
        kept_share_tile(
            grid,
            compared,
            compared.roles.switched,
            "of localhost's TCP through a switch",
        ),
    ];
    all.into_iter().flatten().take(4).collect()
}

fn published_beside(grid: &Grid<'_>, value: Option<String>) -> String {
    value.map_or_else(String::new, |value| format!("{}: {value}", grid.past))
}

fn localhost(grid: &Grid<'_>, compared: &TopologyComparison) -> Option<Tile> {
    let index = compared.roles.localhost?;
    let now = compared.now[index].bps?;
    let then = compared.past[index].bps.map(|bps| {
        let times = number::significant(now / bps, 2);
        format!("{}, now {times} times that", number::rate_published(bps))
    });
    let label = format!("TCP on localhost, {}", compared.setting);
    let now = marked(number::rate_with_unit(now), compared.now[index].bps_spoilt);
    Some(Tile::new(now, label, published_beside(grid, then)))
}

fn kept_share_tile(
    grid: &Grid<'_>,
    compared: &TopologyComparison,
    index: Option<usize>,
    label: &str,
) -> Option<Tile> {
    let index = index?;
    let share = |points| compared.loss_of_localhost(points, index).map(|loss| 1.0 - loss);
    let then = share(&compared.past).map(number::whole_percent);
    let spoilt = compared.is_share_spoilt(index, compared.roles.localhost);
    let now = number::whole_percent(share(&compared.now)?);
    let now = ratio_marked(now, spoilt, compared.is_spoilt(compared.roles.localhost));
    Some(Tile::new(now, label, published_beside(grid, then)))
}

fn limited(grid: &Grid<'_>, compared: &TopologyComparison) -> Option<Tile> {
    let index = compared.roles.limited?;
    let row = &grid.topologies[index];
    let figure = row.flows.first()?.figure_at(compared.value)?;
    let best = figure.best_bps()?;
    let ceiling = row.ceiling_share(figure).map_or_else(String::new, |share| {
        format!(", {} of what its framing allows", number::percent(share))
    });
    let rate = limited_rate(row.topology).unwrap_or_else(|| "slowest".to_owned());
    let label = format!("over the {rate} link{ceiling}");
    let then = compared.past[index].bps.map(number::rate_published);
    Some(Tile::new(
        marked(number::rate_with_unit(best), figure.best_spoilt),
        label,
        published_beside(grid, then),
    ))
}

fn ping_tile(grid: &Grid<'_>, compared: &TopologyComparison) -> Option<Tile> {
    let index = compared.roles.bare.or(compared.roles.localhost)?;
    let over = if compared.roles.bare.is_some() { "a bare cable" } else { "localhost" };
    let now = compared.now[index].rtt_ns?;
    let then =
        compared.past[index].rtt_ns.map(|ns| format!("{} ms", number::ms_to_microsecond(ns)));
    let label = format!("a ping of {} bytes over {over}", compared.payload_bytes);
    let now = marked(format!("{} ms", number::time_in_ms(now)), compared.now[index].rtt_spoilt);
    Some(Tile::new(now, label, published_beside(grid, then)))
}

/// Every figure of every throughput test that has at least one run.
fn all_figures<'g>(
    grid: &'g Grid<'g>,
) -> impl Iterator<Item = (&'g TopologyRow<'g>, &'g str, &'g FlowFigure<'g>, f64)> {
    grid.topologies.iter().flat_map(|row| {
        row.flows.iter().flat_map(move |test| {
            let figures = test.figures.iter();
            let name = test.test.parameter().name;
            figures.filter_map(move |figure| Some((row, name, figure, figure.best_bps()?)))
        })
    })
}

/// The largest rate, the largest share of a ceiling, the largest ratio between values of a test,
/// and the smallest ratio between topologies.
fn of_tests(grid: &Grid<'_>) -> Vec<Tile> {
    let all = [largest(grid), ceiling_share_tile(grid), by_value(grid), by_topology(grid)];
    all.into_iter().flatten().collect()
}

fn largest(grid: &Grid<'_>) -> Option<Tile> {
    let most = all_figures(grid).max_by(|one, other| one.3.total_cmp(&other.3));
    let (row, name, figure, bps) = most?;
    let label = format!("{}, {name} {}", row.topology.title, figure.label);
    Some(Tile::new(marked(number::rate_with_unit(bps), figure.best_spoilt), label, ""))
}

fn ceiling_share_tile(grid: &Grid<'_>) -> Option<Tile> {
    let shares = all_figures(grid);
    let shares = shares.filter_map(|row| Some((row.0, row.1, row.2, row.0.ceiling_share(row.2)?)));
    let (row, name, figure, share) = shares.max_by(|one, other| one.3.total_cmp(&other.3))?;
    let label = format!("of the ceiling: {}, {name} {}", row.topology.title, figure.label);
    Some(Tile::new(marked(number::percent(share), figure.best_spoilt), label, ""))
}

/// The largest ratio of goodputs at two values of one test on one topology.
fn by_value(grid: &Grid<'_>) -> Option<Tile> {
    let tests =
        grid.topologies.iter().flat_map(|row| row.flows.iter().map(move |test| (row, test)));
    let ratios = tests.filter_map(|(row, test)| {
        let figures =
            || test.figures.iter().filter_map(|figure| Some((figure, figure.best_bps()?)));
        let most = figures().max_by(|one, other| one.1.total_cmp(&other.1))?;
        let least = figures().min_by(|one, other| one.1.total_cmp(&other.1))?;
        (least.1 > 0.0).then(|| (row, test, most.0, least.0, most.1 / least.1))
    });
    let (row, test, most, least, ratio) = ratios.max_by(|one, other| one.4.total_cmp(&other.4))?;
    let name = test.test.parameter().name;
    let times = format!("{} times", number::trimmed(&number::significant(ratio, 3)));
    let times = ratio_marked(times, most.best_spoilt, least.best_spoilt);
    let (most, least, title) = (&most.label, &least.label, &row.topology.title);
    let label = format!("as much with {name} {most} as with {least}: {title}");
    (ratio > 1.0).then(|| Tile::new(times, label, ""))
}

/// The smallest share of the first topology's goodput at the same value that another topology
/// reaches.
fn by_topology(grid: &Grid<'_>) -> Option<Tile> {
    let (first, rest) = grid.topologies.split_first()?;
    let each = rest.iter().flat_map(|row| {
        row.flows.iter().flat_map(move |test| {
            let figures = test.figures.iter();
            figures.filter_map(move |figure| {
                let whole = first.find_flow_test(&test.test.id)?.figure_at(figure.number)?;
                let part = figure.best_bps()? / whole.best_bps()?;
                part.is_finite().then_some((row, test, figure, part, whole.best_spoilt))
            })
        })
    });
    let (row, test, figure, part, is_whole_spoilt) =
        each.min_by(|one, other| one.3.total_cmp(&other.3))?;
    let name = test.test.parameter().name;
    let (whole, title) = (&first.topology.title, &row.topology.title);
    let label = format!("of what {whole} carries is left: {title}, {name} {}", figure.label);
    let part = ratio_marked(number::percent(part), figure.best_spoilt, is_whole_spoilt);
    Some(Tile::new(part, label, ""))
}
