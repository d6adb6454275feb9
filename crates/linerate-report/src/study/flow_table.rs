//! The table of one throughput test on one topology: its values across, and under each what the
//! runs reached, what bounds them, and what was lost and sent again.

use linerate_core::record::{Ceiling, MetricId};

use super::figure::{FlowFigure, FlowTest, by_window};
use super::grid::Row;
use crate::ceiling;
use crate::document::{RowKind, Table};
use crate::number::{self, NONE, or_dash};

/// From this many runs on, a mean and a deviation say something.
const RUNS_FOR_A_DEVIATION: usize = 3;

/// The table of a test.
pub(super) fn table(row: &Row<'_>, test: &FlowTest<'_>, past: &str) -> Table {
    let head = heading(test, row.flows.len() > 1);
    let values = test.figures.iter().map(|figure| figure.label.clone());
    let mut rows =
        Rows { figures: &test.figures, table: Table::new(std::iter::once(head).chain(values)) };
    let runs = test.runs_most();
    let name = if runs < 2 { "Mbit/s".to_owned() } else { format!("Mbit/s best of {runs}") };
    rows.add(&name, |figure| or_dash(figure.best(), number::mbit));
    if by_window(test.test) && !row.published.tcp.is_empty() {
        rows.add_past(past, |figure| {
            or_dash(row.published.bps(figure.number), number::published_mbit)
        });
    }
    if runs > 1 {
        rows.add("  median", |figure| or_dash(figure.median(), number::mbit));
        rows.add("  min\u{2013}max", range);
    }
    if runs >= RUNS_FOR_A_DEVIATION {
        rows.add("  mean \u{b1} std", mean);
    }
    if rows.any(|figure| figure.transfer_ns().is_some()) {
        rows.add("  time of the transfer, s", |figure| {
            or_dash(figure.transfer_ns(), |ns| number::significant(ns / 1e9, 4))
        });
    }
    bounds(&mut rows, row, test);
    losses(&mut rows, row);
    rows.table
}

/// `tcp/window`, with the test's identifier where it says more.
pub(super) fn heading(test: &FlowTest<'_>, several: bool) -> String {
    let (kind, name, id) = (test.kind().word(), test.test.parameter().name, &test.test.id);
    match several && !id.eq_ignore_ascii_case(name) {
        true => format!("{kind}/{name} ({id})"),
        false => format!("{kind}/{name}"),
    }
}

/// A table under way, with the figures of its columns.
struct Rows<'a> {
    figures: &'a [FlowFigure<'a>],
    table: Table,
}

impl Rows<'_> {
    fn add(&mut self, name: &str, cell: impl Fn(&FlowFigure<'_>) -> String) {
        let cells = self.figures.iter().map(cell);
        self.table.row(std::iter::once(name.to_owned()).chain(cells));
    }

    fn add_past(&mut self, past: &str, cell: impl Fn(&FlowFigure<'_>) -> String) {
        let cells = self.figures.iter().map(cell);
        self.table.push(RowKind::Published, std::iter::once(format!("  {past}")).chain(cells));
    }

    fn any(&self, has: impl Fn(&FlowFigure<'_>) -> bool) -> bool {
        self.figures.iter().any(has)
    }
}

fn bounds(rows: &mut Rows<'_>, row: &Row<'_>, test: &FlowTest<'_>) {
    if row.has_window_bound(test) {
        rows.add("  window/RTT bound", |it| or_dash(row.window_bound_bps(it), number::mbit));
        rows.add("  best, of bound", |it| or_dash(row.window_bound_share(it), number::percent));
    }
    if rows.any(|figure| row.ceiling_bps(figure).is_some()) {
        rows.add("  ceiling, payload", |it| or_dash(row.ceiling_bps(it), number::mbit));
        rows.add("  best, of ceiling", |it| or_dash(row.ceiling_share(it), number::percent));
    }
}

/// Where links are emulated, what they lost and what was sent again; elsewhere only what is not 0.
fn losses(rows: &mut Rows<'_>, row: &Row<'_>) {
    let emulated = !row.way.outlines.is_empty();
    let told = |value: Option<f64>| value.is_some_and(|value| emulated || value > 0.0);
    let count = |value: f64| number::trimmed(&format!("{value:.1}")).to_owned();
    if rows.any(|figure| told(figure.middle(MetricId::Retransmits))) {
        rows.add("  segments retransmitted", |it| or_dash(it.middle(MetricId::Retransmits), count));
    }
    if rows.any(|figure| figure.middle(MetricId::DatagramLossRatio).is_some()) {
        rows.add("  datagrams lost", |figure| {
            or_dash(figure.middle(MetricId::DatagramLossRatio), number::percent)
        });
    }
    let here = |figure: &FlowFigure<'_>| figure.middle(MetricId::DatagramsLostHere);
    if rows.any(|figure| here(figure).is_some_and(|lost| lost > 0.0)) {
        rows.add("  lost at the receiver, count", |figure| or_dash(here(figure), count));
    }
    let dropped = |figure: &FlowFigure<'_>| figure.middle(MetricId::DatagramsDroppedAtSender);
    if rows.any(|figure| dropped(figure).is_some_and(|count| count > 0.0)) {
        rows.add("  dropped at the sender, count", |figure| or_dash(dropped(figure), count));
    }
    if rows.any(|figure| figure.on_paths().is_some()) {
        rows.add("  lost on the path", lost);
    }
}

/// From the worst run to the best; none of one run.
fn range(figure: &FlowFigure<'_>) -> String {
    match (figure.worst(), figure.best()) {
        (Some(worst), Some(best)) if figure.runs_bps.len() > 1 => {
            format!("{}\u{2013}{}", number::mbit(worst), number::mbit(best))
        }
        _ => NONE.to_owned(),
    }
}

fn mean(figure: &FlowFigure<'_>) -> String {
    or_dash(figure.mean_and_deviation(), |(mean, deviation)| {
        let deviation = number::significant(deviation / 1e6, 2);
        format!("{} \u{b1} {}", number::mbit(mean), number::trimmed(&deviation))
    })
}

/// `12 (0.004 %)`: packets of the data that the emulator lost, of those that came to it.
fn lost(figure: &FlowFigure<'_>) -> String {
    or_dash(figure.on_paths(), |count| match count.lost {
        0 => "0".to_owned(),
        lost => {
            let share = lost as f64 / count.taken.max(1) as f64;
            let share = number::significant(share * 100.0, 2);
            format!("{lost} ({} %)", number::trimmed(&share))
        }
    })
}

/// What bounds the tests of a topology, and how the window's bound is made.
pub(super) fn notes(row: &Row<'_>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for test in &row.flows {
        let Some(line) = ceiling_of(row, test) else { continue };
        let line = format!("{}: {line}", test.kind().title());
        if !out.contains(&line) {
            out.push(line);
        }
    }
    if let Some(ns) = row.way.rtt_ns.filter(|_| row.flows.iter().any(|it| row.has_window_bound(it)))
    {
        out.push(format!(
            "window/RTT bound: the largest window that the receiver advertised (the one asked for \
             where no record has it) over the emulated round trip of {} ms, at most the ceiling",
            number::trimmed(&number::ms(ns))
        ));
    }
    out
}

/// What bounds a test, from which inputs; what is not known where nothing does.
fn ceiling_of(row: &Row<'_>, test: &FlowTest<'_>) -> Option<String> {
    let figures = || test.figures.iter();
    let figure = figures().find(|it| it.ceiling.is_some()).or_else(|| figures().next())?;
    let Some(limit) = row.slowest_link(figure) else {
        return figure.ceiling.as_ref().map(|known: &Ceiling| ceiling::bound(known));
    };
    let seen = if limit.headers_seen() { "as the runs had them" } else { "as Linux has them" };
    Some(format!(
        "ceiling {} payload (slowest link of the plan {}, whose shaper counts the IP packet and \
         the Ethernet header; packets of {} bytes; headers of {} bytes, {seen})",
        number::rate(limit.payload_bps),
        limit.rate,
        limit.mtu_bytes,
        limit.header_bytes()
    ))
}
