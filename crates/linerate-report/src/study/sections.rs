//! The tables of a study's report.

use linerate_core::record::RecordStatus;

use super::compare::{TopologyComparison, TopologyFigures};
use super::figure::{PingFigure, PingTest};
use super::grid::{Grid, TopologyRow};
use super::spoilt::{marked, ratio_marked};
use super::{across, flow_table};
use crate::document::{ReportSection, ReportTable, RowKind};
use crate::number::{self, NONE, or_dash};
use crate::words;

/// The comparison of topologies: the table of the PREN study's §5.1 where the plan has its kinds of
/// topology, else a table for each test.
pub(crate) fn comparison(grid: &Grid<'_>, compared: &TopologyComparison) -> Option<ReportSection> {
    if compared.roles.compare(grid.plan) {
        return Some(roles_section(grid, compared));
    }
    across::section(grid)
}

/// The section of one topology: its tables as the PREN study prints them.
pub(crate) fn of_topology(row: &TopologyRow<'_>, past: &str) -> ReportSection {
    let topology = row.topology;
    let mut tables: Vec<ReportTable> =
        row.ping.iter().map(|test| ping_table(row, test, past)).collect();
    tables.extend(row.flows.iter().map(|test| flow_table::topology_table(row, test, past)));
    let title = format!("{} ({})", topology.title, hops_and_links(row));
    ReportSection::from_tables(
        title,
        tables,
        flow_table::bound_notes(row).into_iter().chain(lost_probe_lines(row)).collect(),
    )
}

/// Number of switches and routers between the hosts, and the emulated links.
fn hops_and_links(row: &TopologyRow<'_>) -> String {
    let (l2, l3) = (row.topology.l2_hops, row.topology.l3_hops);
    let hops = format!(
        "{}, {}",
        words::counted(l2.into(), "switch"),
        words::counted(l3.into(), "router"),
    );
    match row.way.heading_text() {
        Some(way) if l2 == 0 && l3 == 0 => way,
        Some(way) => format!("{hops}; {way}"),
        None => hops,
    }
}

/// A line for each ping test that lost probes.
fn lost_probe_lines(row: &TopologyRow<'_>) -> Vec<String> {
    let figures = row.ping.iter().flat_map(|test| test.figures.iter());
    figures
        .filter_map(|figure| {
            let (sent, received) = figure.probes?;
            (received < sent).then(|| {
                let lost = sent - received;
                format!("{lost:.0} of {sent:.0} probes of {} bytes were lost", figure.payload_bytes)
            })
        })
        .collect()
}

fn ping_table(row: &TopologyRow<'_>, test: &PingTest<'_>, past: &str) -> ReportTable {
    let named = |what: &str| match row.ping.len() {
        1 => what.to_owned(),
        _ => format!("{what} ({})", test.test.id),
    };
    let figures = &test.figures;
    let sizes = figures.iter().map(|figure| figure.payload_bytes.to_string());
    let mut table = ReportTable::new(std::iter::once(named("ping/size")).chain(sizes));
    let whole = |value: Option<f64>| or_dash(value, |n| format!("{:.0}", n.trunc()));
    let published = &row.published;
    let now = |table: &mut ReportTable, name: &str, cell: &dyn Fn(&PingFigure<'_>) -> String| {
        table.add_measured_row(std::iter::once(name.to_owned()).chain(figures.iter().map(cell)));
    };
    let then = |table: &mut ReportTable, cell: &dyn Fn(u32) -> String| {
        let cells = figures.iter().map(|figure| cell(figure.payload_bytes));
        if !published.ping.is_empty() {
            table.push(RowKind::Published, std::iter::once(format!("  {past}")).chain(cells));
        }
    };
    now(&mut table, "ping/avg ms", &|figure| {
        or_dash(figure.rtt_ns(), |ns| marked(number::time_in_ms(ns), figure.any_spoilt()))
    });
    then(&mut table, &|size| or_dash(published.rtt_ns(size), number::ms_to_microsecond));
    now(&mut table, "ping/pps 1000/avg", &|figure| whole(figure.pps_from_mean()));
    then(&mut table, &|size| whole(published.pings_per_second(size)));
    now(&mut table, "ping/pps measured", &|figure| whole(figure.pps_measured()));
    table
}

/// The table of the PREN study's §5.1, today's figures above the published ones.
fn roles_section(grid: &Grid<'_>, compared: &TopologyComparison) -> ReportSection {
    let past = &grid.past;
    let setting = compared.setting_in_words();
    let column = compared.setting.trim_end_matches(" window");
    let mut head = vec!["topology".to_owned()];
    for name in [
        format!("ping/{}\nms", compared.payload_bytes),
        format!("tcp/{column}\nMbit/s"),
        "less than\nlocalhost".to_owned(),
        "less than\nno switch".to_owned(),
        "l2/l3\nhops".to_owned(),
    ] {
        head.extend([name, past.clone()]);
    }
    // Hops and the second loss repeat what the plan and the first one say.
    let mut table = ReportTable::new(head).dropping(&[10, 9, 8, 7, 6]).past_beside();
    for (index, row) in grid.topologies.iter().enumerate() {
        let now = role_row_cells(compared, &compared.now, index, &NOW);
        let then = role_row_cells(compared, &compared.past, index, &PAST);
        let pairs = now.into_iter().zip(then).flat_map(|(now, then)| [now, then]);
        table.add_measured_row(std::iter::once(row.topology.title.clone()).chain(pairs));
    }
    let mut notes = vec![format!(
        "tcp: best of the repetitions at {setting}; a gain is given as a factor; {past}: \
         losses in whole percent, rounded up as they were printed"
    )];
    if compared.past.iter().any(|point| odd_payload(compared, point)) {
        notes.push(format!(
            "\u{2020}: no figure at {} bytes, the next larger payload stands in",
            compared.payload_bytes
        ));
    }
    let title = "Delay, throughput, loss".to_owned();
    ReportSection::from_tables(title, [table], notes)
}

fn odd_payload(compared: &TopologyComparison, point: &TopologyFigures) -> bool {
    point.payload_bytes.is_some_and(|payload| payload != compared.payload_bytes)
}

/// Functions that print the figures of today or of the published study.
struct Digits {
    ms: fn(f64) -> String,
    mbit: fn(f64) -> String,
    loss: fn(f64) -> String,
    is_now: bool,
}

const NOW: Digits = Digits {
    ms: number::time_in_ms,
    mbit: number::rate_in_mbit,
    loss: number::loss_percent,
    is_now: true,
};

const PAST: Digits = Digits {
    ms: number::ms_to_microsecond,
    mbit: number::published_mbit,
    loss: number::published_loss,
    is_now: false,
};

fn role_row_cells(
    compared: &TopologyComparison,
    points: &[TopologyFigures],
    index: usize,
    digits: &Digits,
) -> Vec<String> {
    let (point, roles) = (points[index], &compared.roles);
    let share = |loss, reference| {
        let spoilt = |index| digits.is_now && compared.is_spoilt(index);
        ratio_marked((digits.loss)(loss), spoilt(Some(index)), spoilt(reference))
    };
    let mark = if odd_payload(compared, &point) { "\u{2020}" } else { "" };
    let hops = match point.hops {
        (None, None) => NONE.to_owned(),
        (l2, l3) => {
            format!("{}/{}", or_dash(l2, |n| n.to_string()), or_dash(l3, |n| n.to_string()))
        }
    };
    vec![
        or_dash(point.rtt_ns, |ns| marked((digits.ms)(ns) + mark, point.rtt_spoilt)),
        or_dash(point.bps, |bps| marked((digits.mbit)(bps), point.bps_spoilt)),
        or_dash(compared.loss_of_localhost(points, index), |loss| share(loss, roles.localhost)),
        or_dash(compared.loss_of_bare(points, index), |loss| share(loss, roles.bare)),
        hops,
    ]
}

/// The records that do not count, grouped by the attempt that failed: their number, topologies and
/// the first reason.
fn failures(grid: &Grid<'_>) -> Vec<String> {
    let mut kinds: Vec<Failures> = Vec::new();
    for record in grid.records.iter().filter(|record| record.status != RecordStatus::Ok) {
        let Some(cell) = &record.cell else { continue };
        let failure = record.failure.as_ref();
        let stopped = || "stopped before the end".to_owned();
        let why = failure.map_or_else(stopped, ToString::to_string);
        let what = failure.map(|failure| (failure.attempt.clone(), failure.object.clone()));
        let title =
            grid.find_topology(&cell.topology).map_or(&cell.topology, |row| &row.topology.title);
        let place = format!("'{title}' ({})", cell.test);
        let kind = match kinds.iter().position(|kind| kind.what == what) {
            Some(index) => &mut kinds[index],
            None => {
                kinds.push(Failures { what, why: why.clone(), ..Failures::default() });
                kinds.last_mut().expect("one was pushed")
            }
        };
        kind.count += 1;
        kind.differ |= kind.why != why;
        if !kind.places.contains(&place) {
            kind.places.push(place);
        }
    }
    let line = |kind: Failures| {
        let lead = if kind.differ { "for example, " } else { "" };
        let places = words::listed(&kind.places);
        format!("{} of {places}: {lead}{}", words::counted(kind.count, "run"), kind.why)
    };
    kinds.into_iter().map(line).collect()
}

/// Records in which the same attempt failed.
#[derive(Default)]
struct Failures {
    /// The attempt and its object; `None` for runs that were stopped.
    what: Option<(String, String)>,
    /// Reason of the first of these failures.
    why: String,
    /// True if another failure of the group has another reason.
    differ: bool,
    count: u64,
    places: Vec<String>,
}

/// Runs that failed or ended early, with the reason; `None` if all runs ended well.
pub(crate) fn unfinished(grid: &Grid<'_>) -> Option<ReportSection> {
    let mut notes = failures(grid);
    let missing = grid.plan.cell_plans().len().saturating_sub(grid.well.len());
    if missing > 0 {
        notes.push(format!(
            "{} of the plan {} no result here",
            words::counted(missing as u64, "measurement"),
            if missing == 1 { "has" } else { "have" }
        ));
    }
    (!notes.is_empty())
        .then(|| ReportSection::from_tables("Not in the figures".to_owned(), [], notes))
}
