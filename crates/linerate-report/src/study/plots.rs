//! The plots of a study: pings per second by size, throughput by window, the spread of
//! repetitions, the loss of localhost's throughput.
//!
//! The published curves stand in a second panel with the same axes and the same colours, so that
//! neither hides the other and a narrow screen can stack them.

use std::collections::BTreeMap;

use super::Plot;
use super::compare::{Comparison, is_localhost};
use super::grid::{Grid, Row, TcpFigure, by_window, knee};
use crate::number;
use crate::svg::{
    Axis, BarChart, BarRow, Kind, LineChart, Series, StripChart, StripGroup, StripRow,
    linear_domain, log_domain, text_width,
};
use crate::words;

/// Above this ratio of largest to smallest value an axis becomes logarithmic.
const LOG_FROM: f64 = 10.0;

/// All plots that the plan has tests for.
pub(crate) fn plots(grid: &Grid<'_>, compared: &Comparison) -> Vec<Plot> {
    let count = |of: fn(&Row<'_>) -> usize| grid.topologies.first().map_or(0, of);
    let mut out = Vec::new();
    out.extend((0..count(|row| row.ping.len())).map(|test| pings(grid, test)));
    out.extend((0..count(|row| row.tcp.len())).map(|test| windows(grid, test)));
    out.extend(losses(grid, compared));
    out.extend((0..count(|row| row.tcp.len())).map(|test| spread(grid, test)));
    out
}

/// `name` for the first test of a kind, `name-id` for others.
fn named(name: &str, id: &str, test: usize) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    match test {
        0 => name.to_owned(),
        _ => format!("{name}-{}", id.chars().map(safe).collect::<String>()),
    }
}

fn pings(grid: &Grid<'_>, test: usize) -> Plot {
    let sizes: Vec<u32> = grid
        .topologies
        .first()
        .and_then(|row| row.ping.get(test))
        .map(|ping| ping.figures.iter().map(|figure| figure.payload_bytes).collect())
        .unwrap_or_default();
    let now = curves(grid, |row| {
        let figures = row.ping.get(test)?.figures.iter();
        let points = figures.filter_map(|f| Some((f64::from(f.payload_bytes), f.pps_from_mean()?)));
        Some((row.topology.title.clone(), points.collect()))
    });
    let past = past_curves(grid, |row| {
        let points = sizes.iter().filter_map(|&size| {
            // The mean is printed with three decimals, the rate is not rounded any further.
            Some((f64::from(size), row.published.pps(size)?))
        });
        let name = row.published.ping.first()?.topology.clone();
        Some((name, points.collect()))
    });
    let axes = Axes {
        x: Axis {
            label: "payload of a ping, bytes".to_owned(),
            kind: Kind::Linear,
            domain: Some((0.0, f64::from(sizes.iter().copied().max().unwrap_or(1500)))),
            ticks: sizes.iter().map(|&size| (f64::from(size), size.to_string())).collect(),
            show: number::short,
        },
        y: shared_axis(
            "pings per second (1000/avg ms)",
            Some(Kind::Log),
            number::short,
            &now,
            &past,
        ),
    };
    let id = test_id(grid, |row| row.ping.get(test).map(|ping| ping.test.id.as_str()));
    Plot {
        title: "Pings per second by size".to_owned(),
        caption: format!(
            "Flood ping, one answer awaited before the next probe: 1000 over the mean round-trip \
             time in ms, as the study of {} printed it. Higher is better; equal steps of the axis are \
             equal ratios.",
            grid.past
        ),
        panels: panels(
            &named("pings-by-size", id, test),
            "Pings per second",
            &axes,
            now,
            past,
            grid,
        ),
    }
}

fn windows(grid: &Grid<'_>, test: usize) -> Plot {
    let first = grid.topologies.first().and_then(|row| row.tcp.get(test));
    let figures = || first.into_iter().flat_map(|tcp| tcp.figures.iter());
    let asked: Vec<u64> = figures().map(|figure| figure.window_bytes).collect();
    let labels = figures().map(|figure| figure.label.clone());
    let parameter = first.map(|tcp| tcp.test.parameter());
    let name = parameter.map_or("window", |parameter| parameter.name);
    let of_windows = first.is_none_or(|tcp| by_window(tcp.test));
    let now = curves(grid, |row| {
        let figures = row.tcp.get(test)?.figures.iter();
        let points = figures.filter_map(|f| Some((place_of(&asked, f.window_bytes), f.best()?)));
        Some((row.topology.title.clone(), points.collect()))
    });
    let past = past_curves(grid, |row| {
        let windows = asked.iter().filter(|window| of_windows && **window > 0);
        let points = windows.filter_map(|&w| Some((place_of(&asked, w), row.published.bps(w)?)));
        Some((row.published.tcp_name()?, points.collect()))
    });
    let (now, past) = if of_windows { (ringed(now), ringed(past)) } else { (now, past) };
    let caption = if of_windows {
        window_caption(grid, &now, &past)
    } else {
        "Best of the repetitions; a dashed line is a ceiling of payload.".to_owned()
    };
    let mut now = now;
    now.extend(ceiling_lines(grid, test, &asked));
    let places: Vec<f64> = asked.iter().map(|&window| place_of(&asked, window)).collect();
    let axes = Axes {
        x: Axis {
            label: match parameter.filter(|_| !of_windows) {
                Some(parameter) => parameter.title(),
                None => "window asked for, bytes".to_owned(),
            },
            kind: Kind::Log,
            domain: places
                .iter()
                .copied()
                .reduce(f64::min)
                .zip(places.iter().copied().reduce(f64::max)),
            ticks: places.iter().copied().zip(labels).collect(),
            show: number::short,
        },
        y: shared_axis("payload, best of the repetitions", None, number::rate, &now, &past),
    };
    let top = axes.y.domain.map_or(0.0, |domain| domain.1);
    now.extend(window_lines(grid, test, &asked, top));
    let id = test_id(grid, |row| row.tcp.get(test).map(|tcp| tcp.test.id.as_str()));
    Plot {
        title: format!("TCP throughput by {name}"),
        caption,
        panels: panels(
            &named(&format!("throughput-by-{}", name.replace(' ', "-")), id, test),
            "TCP throughput",
            &axes,
            now,
            past,
            grid,
        ),
    }
}

/// A dashed line for each ceiling, in the colour of the first topology that has it.
fn ceiling_lines(grid: &Grid<'_>, test: usize, asked: &[u64]) -> Vec<Series> {
    let line = |(style, row): (usize, &Row<'_>)| {
        let figures = row.tcp.get(test)?.figures.iter();
        let point = |it: &TcpFigure| {
            it.best()?;
            Some((place_of(asked, it.window_bytes), row.ceiling_bps(it)?))
        };
        let points: Vec<(f64, f64)> = figures.filter_map(point).collect();
        let level = number::rate(points.first()?.1);
        dashed(format!("ceiling {level}"), style, points.into_iter())
    };
    let rows = grid.topologies.iter().enumerate();
    rows.filter_map(line).fold(Vec::new(), |mut kept, line| {
        if !kept.iter().any(|other: &Series| other.points == line.points) {
            kept.push(line);
        }
        kept
    })
}

/// A dashed line for the window seen over the smallest round trip, as far as it lies below `top`:
/// beyond, it bounds nothing that is shown.
fn window_lines(grid: &Grid<'_>, test: usize, asked: &[u64], top: f64) -> Vec<Series> {
    let line = |(style, row): (usize, &Row<'_>)| {
        let figures = row.tcp.get(test)?.figures.iter();
        let point = |it: &TcpFigure| {
            let rungs = &it.ceiling.as_ref()?.rungs;
            let bps = rungs.iter().find(|rung| rung.kind == "receive_window")?.value?;
            (bps <= top).then_some((place_of(asked, it.window_bytes), bps))
        };
        dashed(format!("window/RTT, {}", row.topology.title), style, figures.filter_map(point))
    };
    grid.topologies.iter().enumerate().filter_map(line).collect()
}

fn dashed(label: String, style: usize, points: impl Iterator<Item = (f64, f64)>) -> Option<Series> {
    Some(Series { dashed: true, ..series(style, (label, points.collect()))? })
}

/// The window as a place on the axis; the kernel's choice stands one doubling after the largest.
fn place_of(asked: &[u64], window: u64) -> f64 {
    match window {
        0 => 2.0 * asked.iter().copied().max().unwrap_or(0).max(1) as f64,
        _ => window as f64,
    }
}

fn window_caption(grid: &Grid<'_>, now: &[Series], past: &[Series]) -> String {
    let mut text = "A ring marks the knee: the window reached by the last doubling that still \
                    gained 10 % or more, where a later doubling was measured and gained less."
        .to_owned();
    text.push_str(&format!(" Now {}.", knees(now)));
    if grid.topologies.iter().any(|row| row.has_ceiling()) {
        text.push_str(
            " A dashed line is a ceiling of payload, or the window seen over the smallest round \
             trip, in the colour of a topology that it bounds.",
        );
    }
    if !past.is_empty() {
        text.push_str(&format!(" In {} {}.", grid.past, knees(past)));
    }
    text
}

/// Which curves bend at which window.
fn knees(curves: &[Series]) -> String {
    let mut by_window: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for curve in curves {
        if let Some((window, _)) = curve.rings.first() {
            by_window.entry(*window as u64).or_default().push(curve.label.clone());
        }
    }
    let each: Vec<String> = by_window
        .iter()
        .map(|(window, labels)| {
            let who = match labels.len() {
                all if all == curves.len() && all > 1 => "all".to_owned(),
                _ => words::listed(labels),
            };
            format!("at {} for {who}", number::window(*window))
        })
        .collect();
    if each.is_empty() { "there is none".to_owned() } else { each.join("; ") }
}

fn ringed(mut curves: Vec<Series>) -> Vec<Series> {
    for curve in &mut curves {
        let points: Vec<(u64, f64)> =
            curve.points.iter().map(|&(window, bps)| (window as u64, bps)).collect();
        let at = knee(&points);
        curve.rings = curve.points.iter().copied().filter(|(x, _)| at == Some(*x as u64)).collect();
    }
    curves
}

/// Name and points of a topology's curve; none where it has no such test.
type Curve = Option<(String, Vec<(f64, f64)>)>;

fn curves(grid: &Grid<'_>, of: impl Fn(&Row<'_>) -> Curve) -> Vec<Series> {
    let rows = grid.topologies.iter().enumerate();
    rows.filter_map(|(style, row)| series(style, of(row)?)).collect()
}

/// Published curves, each once: several topologies may stand beside the same published rows.
fn past_curves(grid: &Grid<'_>, of: impl Fn(&Row<'_>) -> Curve) -> Vec<Series> {
    let rows = grid.topologies.iter().enumerate();
    let first = |(index, row): &(usize, &Row<'_>)| {
        let earlier = grid.topologies[..*index].iter();
        row.topology.published.is_some()
            && !earlier.clone().any(|other| other.topology.published == row.topology.published)
    };
    rows.filter(first)
        .filter_map(|(style, row)| series(style, of(row)?))
        .collect::<Vec<Series>>()
        .into_iter()
        .fold(Vec::new(), |mut kept, curve| {
            // c.1 with two MTUs has one ping table.
            if !kept.iter().any(|other: &Series| other.points == curve.points) {
                kept.push(curve);
            }
            kept
        })
}

fn series(style: usize, (label, points): (String, Vec<(f64, f64)>)) -> Option<Series> {
    (!points.is_empty()).then(|| Series {
        label,
        style,
        points,
        rings: vec![],
        dashed: false,
        steps: false,
    })
}

struct Axes {
    x: Axis,
    y: Axis,
}

/// An axis that both panels share; its kind follows the spread of the values unless given.
fn shared_axis(
    label: &str,
    kind: Option<Kind>,
    show: fn(f64) -> String,
    now: &[Series],
    past: &[Series],
) -> Axis {
    let values = || {
        let curves = now.iter().chain(past);
        curves.flat_map(|curve| curve.points.iter().map(|point| point.1))
    };
    let positive = || values().filter(|value| *value > 0.0);
    let ratio =
        positive().reduce(f64::max).unwrap_or(1.0) / positive().reduce(f64::min).unwrap_or(1.0);
    let kind = kind.unwrap_or(if ratio > LOG_FROM { Kind::Log } else { Kind::Linear });
    let domain = match kind {
        Kind::Log => log_domain(values()),
        Kind::Linear => linear_domain(values(), 0.0, 5),
    };
    Axis { label: label.to_owned(), kind, domain, ticks: vec![], show }
}

/// The panel of now, and that of the past where there is one.
fn panels(
    file: &str,
    title: &str,
    axes: &Axes,
    now: Vec<Series>,
    past: Vec<Series>,
    grid: &Grid<'_>,
) -> Vec<(String, crate::svg::Svg)> {
    let has_past = !past.is_empty();
    let names = now.iter().chain(&past).map(|curve| text_width(&curve.label));
    let room = names.fold(0.0, f64::max);
    let chart = |when: &str, series: Vec<Series>| LineChart {
        title: format!("{title}, {when}"),
        description: described(&series),
        x: axes.x.clone(),
        y: axes.y.clone(),
        series,
        room,
    };
    let mut out = vec![(format!("{file}-now.svg"), chart("now", now).svg())];
    if has_past {
        out.push((format!("{file}-{}.svg", grid.past), chart(&grid.past, past).svg()));
    }
    out
}

/// The curves in words, for readers who do not see them.
fn described(series: &[Series]) -> String {
    let each: Vec<String> = series
        .iter()
        .filter_map(|curve| {
            let (first, last) = (curve.points.first()?, curve.points.last()?);
            let ends = format!("from {} to {}", number::short(first.1), number::short(last.1));
            Some(format!("{}: {ends}", curve.label))
        })
        .collect();
    each.join("; ")
}

fn test_id<'g>(grid: &'g Grid<'_>, of: impl Fn(&'g Row<'_>) -> Option<&'g str>) -> &'g str {
    grid.topologies.first().and_then(of).unwrap_or_default()
}

/// Bars of what each path loses of localhost's throughput.
fn losses(grid: &Grid<'_>, compared: &Comparison) -> Option<Plot> {
    let reference = compared.roles.localhost?;
    let has_past = compared.past.iter().any(|point| point.bps.is_some());
    let window = number::window(compared.window_bytes);
    let rows: Vec<BarRow> = grid
        .topologies
        .iter()
        .enumerate()
        .filter(|(_, row)| !is_localhost(row.topology))
        .map(|(index, row)| {
            let mut losses = vec![compared.loss_of_localhost(&compared.now, index)];
            if has_past {
                losses.push(compared.loss_of_localhost(&compared.past, index));
            }
            BarRow {
                label: row.topology.title.clone(),
                texts: loss_texts(&losses),
                values: losses.iter().map(|loss| loss.map(|ratio| ratio * 100.0)).collect(),
            }
        })
        .collect();
    rows.iter().any(|row| row.values.iter().any(Option::is_some)).then(|| {
        let names = if has_past {
            vec!["now".to_owned(), grid.past.clone()]
        } else {
            vec!["now".to_owned()]
        };
        let chart = BarChart {
            title: format!("Loss of localhost's TCP throughput at a {window} window"),
            description: rows
                .iter()
                .map(|row| format!("{}: {}", row.label, row.texts.join(" and ")))
                .collect::<Vec<String>>()
                .join("; "),
            axis: "% of localhost's throughput that is lost".to_owned(),
            names,
            rows,
        };
        Plot {
            title: "What a path costs".to_owned(),
            caption: format!(
                "Best run of each topology against the best of {}, at a {window} window. Longer \
                 bars lost more; a bar to the left of 0 was faster.",
                grid.topologies[reference].topology.title
            ),
            panels: vec![("loss-of-localhost.svg".to_owned(), chart.svg())],
        }
    })
}

/// The measured loss, then the published one as it was printed.
fn loss_texts(losses: &[Option<f64>]) -> Vec<String> {
    let shows: [fn(f64) -> String; 2] = [number::loss, number::published_loss];
    losses.iter().zip(shows).map(|(loss, show)| number::or_dash(*loss, show)).collect()
}

/// Every repetition as a dot.
fn spread(grid: &Grid<'_>, test: usize) -> Plot {
    let groups: Vec<StripGroup> = grid
        .topologies
        .iter()
        .enumerate()
        .filter_map(|(style, row)| {
            let rows: Vec<StripRow> =
                row.tcp.get(test)?.figures.iter().filter_map(strip_row).collect();
            let label = row.topology.title.clone();
            (!rows.is_empty()).then_some(StripGroup { label, style, rows })
        })
        .collect();
    let id = test_id(grid, |row| row.tcp.get(test).map(|tcp| tcp.test.id.as_str()));
    let runs = groups.iter().flat_map(|g| g.rows.iter().map(|row| row.shares.len())).max();
    let chart = StripChart {
        title: "Repetitions, as a share of the best".to_owned(),
        description: groups
            .iter()
            .flat_map(|group| {
                group.rows.iter().map(|row| format!("{} {}: {}", group.label, row.label, row.note))
            })
            .collect::<Vec<String>>()
            .join("; "),
        notes: "best, median bit/s".to_owned(),
        axis: "% of the best run of the same topology and window".to_owned(),
        groups,
    };
    Plot {
        title: "How far repetitions differ".to_owned(),
        caption: format!(
            "{} of each topology and window. Full dot: the best run, the figure in the tables; \
             open dots: the others; bar: the median.",
            words::counted(runs.unwrap_or(0) as u64, "run")
        ),
        panels: vec![(format!("{}.svg", named("repetitions", id, test)), chart.svg())],
    }
}

fn strip_row(figure: &TcpFigure) -> Option<StripRow> {
    let (best, median) = (figure.best().filter(|best| *best > 0.0)?, figure.median()?);
    Some(StripRow {
        label: figure.label.clone(),
        shares: figure.runs_bps.iter().map(|bps| bps / best).collect(),
        median: Some(median / best),
        note: format!("{}, {}", number::short(best), number::short(median)),
    })
}
