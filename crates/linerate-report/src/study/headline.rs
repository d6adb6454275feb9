//! The three or four figures that a reader takes away.

use super::compare::{Comparison, slowest_rate};
use super::grid::Grid;
use crate::number;

/// One figure in large type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    /// The figure.
    pub figure: String,
    /// What it is.
    pub label: String,
    /// What it was; empty where nothing was published.
    pub past: String,
}

/// The figures, at most four: localhost, what a bare cable keeps, the slowest link, the ping.
pub(crate) fn tiles(grid: &Grid<'_>, compared: &Comparison) -> Vec<Tile> {
    let all = [
        localhost(grid, compared),
        kept(grid, compared, compared.roles.bare, "of that over a bare cable"),
        limited(grid, compared),
        ping(grid, compared),
        kept(grid, compared, compared.roles.routed, "of localhost's TCP through a router"),
        kept(grid, compared, compared.roles.switched, "of localhost's TCP through a switch"),
    ];
    all.into_iter().flatten().take(4).collect()
}

fn past(grid: &Grid<'_>, value: Option<String>) -> String {
    value.map_or_else(String::new, |value| format!("{}: {value}", grid.past))
}

fn localhost(grid: &Grid<'_>, compared: &Comparison) -> Option<Tile> {
    let index = compared.roles.localhost?;
    let now = compared.now[index].bps?;
    let then = compared.past[index].bps.map(|bps| {
        let times = number::significant(now / bps, 2);
        format!("{}, now {times} times that", number::rate_published(bps))
    });
    Some(Tile {
        figure: number::rate(now),
        label: format!("TCP on localhost, {} window", number::window(compared.window_bytes)),
        past: past(grid, then),
    })
}

fn kept(grid: &Grid<'_>, compared: &Comparison, index: Option<usize>, label: &str) -> Option<Tile> {
    let index = index?;
    let share = |points| compared.loss_of_localhost(points, index).map(|loss| 1.0 - loss);
    Some(Tile {
        figure: number::share(share(&compared.now)?),
        label: label.to_owned(),
        past: past(grid, share(&compared.past).map(number::share)),
    })
}

fn limited(grid: &Grid<'_>, compared: &Comparison) -> Option<Tile> {
    let index = compared.roles.limited?;
    let row = &grid.topologies[index];
    let figures = &row.tcp.first()?.figures;
    let figure = figures.iter().find(|figure| figure.window_bytes == compared.window_bytes)?;
    let best = figure.best()?;
    let ceiling = row.ceiling_share(figure).map_or_else(String::new, |share| {
        format!(", {} of what its framing allows", number::percent(share))
    });
    let rate = slowest_rate(row.topology).unwrap_or("slowest");
    Some(Tile {
        figure: number::rate(best),
        label: format!("over the {rate} link{ceiling}"),
        past: past(grid, compared.past[index].bps.map(number::rate_published)),
    })
}

fn ping(grid: &Grid<'_>, compared: &Comparison) -> Option<Tile> {
    let index = compared.roles.bare.or(compared.roles.localhost)?;
    let over = if compared.roles.bare.is_some() { "a bare cable" } else { "localhost" };
    let now = compared.now[index].rtt_ns?;
    let then =
        compared.past[index].rtt_ns.map(|ns| format!("{} ms", number::ms_to_microsecond(ns)));
    Some(Tile {
        figure: format!("{} ms", number::ms(now)),
        label: format!("a ping of {} bytes over {over}", compared.payload_bytes),
        past: past(grid, then),
    })
}
