//! The table of one throughput test on one topology: its values across, and under each what the
//! runs reached, what bounds them, and what was lost and sent again.

use linerate_core::record::{Ceiling, MetricId};

use super::figure::{FlowFigure, FlowTest, by_window};
use super::grid::TopologyRow;
use super::spoilt::marked;
use crate::ceiling;
use crate::document::{ReportTable, RowKind};
use crate::number::{self, NONE, or_dash};

/// Least number of runs for which mean and deviation are printed.
const RUNS_FOR_A_DEVIATION: usize = 3;

/// The table of a throughput test on one topology.
pub(super) fn topology_table(
    row: &TopologyRow<'_>,
    test: &FlowTest<'_>,
    past: &str,
) -> ReportTable {
    let head = heading(test, row.flows.len() > 1);
    let values = test.figures.iter().map(|figure| figure.label.clone());
    let mut rows = FlowRows {
        figures: &test.figures,
        table: ReportTable::new(std::iter::once(head).chain(values)),
    };
    let runs = test.runs_most();
    let name = if runs < 2 { "Mbit/s".to_owned() } else { format!("Mbit/s best of {runs}") };
    rows.add(&name, |figure| {
        or_dash(figure.best_bps(), |bps| marked(number::rate_in_mbit(bps), figure.best_spoilt))
    });
    if by_window(test.test) && !row.published.tcp.is_empty() {
        rows.add_past(past, |figure| {
            or_dash(row.published.throughput_bps(figure.number), number::published_mbit)
        });
    }
    if runs > 1 {
        rows.add("  median", |figure| {
            or_dash(figure.median(), |bps| marked(number::rate_in_mbit(bps), figure.any_spoilt()))
        });
        rows.add("  min\u{2013}max", goodput_range);
    }
    if runs >= RUNS_FOR_A_DEVIATION {
        rows.add("  mean \u{b1} std", goodput_mean);
    }
    let seconds = |ns: f64| number::significant(ns / 1e9, 4);
    rows.add_where("  time of the transfer, s", |figure| figure.transfer_ns(), seconds, |_| true);
    bounds(&mut rows, row, test);
    losses(&mut rows, row);
    rows.table
}

/// Heading of a test, such as `tcp/window`, with the test's identifier where several tests would
/// share the heading.
pub(super) fn heading(test: &FlowTest<'_>, several: bool) -> String {
    let (kind, name, id) =
        (test.flow_kind().heading_word(), test.test.parameter().name, &test.test.id);
    match several && !id.eq_ignore_ascii_case(name) {
        true => format!("{kind}/{name} ({id})"),
        false => format!("{kind}/{name}"),
    }
}

/// Rows of a table under construction, with the figures that its columns are of.
struct FlowRows<'a> {
    figures: &'a [FlowFigure<'a>],
    table: ReportTable,
}

impl FlowRows<'_> {
    fn add(&mut self, name: &str, cell: impl Fn(&FlowFigure<'_>) -> String) {
        let cells = self.figures.iter().map(cell);
        self.table.add_measured_row(std::iter::once(name.to_owned()).chain(cells));
    }

    fn add_past(&mut self, past: &str, cell: impl Fn(&FlowFigure<'_>) -> String) {
        let cells = self.figures.iter().map(cell);
        self.table.push(RowKind::Published, std::iter::once(format!("  {past}")).chain(cells));
    }

    /// Adds a row unless no figure has a value worth printing.
    fn add_where(
        &mut self,
        name: &str,
        figure: impl Fn(&FlowFigure<'_>) -> Option<f64>,
        show: impl Fn(f64) -> String,
        is_worth_it: impl Fn(f64) -> bool,
    ) {
        if self.any_figure(|each| figure(each).is_some_and(&is_worth_it)) {
            self.add(name, |each| or_dash(figure(each), &show));
        }
    }

    fn any_figure(&self, has: impl Fn(&FlowFigure<'_>) -> bool) -> bool {
        self.figures.iter().any(has)
    }
}

fn bounds(rows: &mut FlowRows<'_>, row: &TopologyRow<'_>, test: &FlowTest<'_>) {
    if row.has_window_bound(test) {
        rows.add("  window/RTT bound", |figure| {
            or_dash(row.window_bound_bps(figure), number::rate_in_mbit)
        });
        rows.add("  best, of bound", |figure| {
            or_dash(row.window_bound_share(figure), number::percent)
        });
    }
    if rows.any_figure(|figure| row.ceiling_bps(figure).is_some()) {
        rows.add("  ceiling, payload", |figure| {
            or_dash(row.ceiling_bps(figure), number::rate_in_mbit)
        });
        rows.add("  best, of ceiling", |figure| {
            or_dash(row.ceiling_share(figure), number::percent)
        });
    }
}

/// Packets lost and retransmitted: all counts where links are emulated, elsewhere only counts above
/// 0.
fn losses(rows: &mut FlowRows<'_>, row: &TopologyRow<'_>) {
    let emulated = !row.way.outlines.is_empty();
    let count = |value: f64| number::trimmed(&format!("{value:.1}")).to_owned();
    let some = |value: f64| value > 0.0;
    let middle = |metric| move |figure: &FlowFigure<'_>| figure.middle(metric);
    let again = middle(MetricId::Retransmits);
    rows.add_where("  segments retransmitted", again, count, |value| emulated || value > 0.0);
    let lost = middle(MetricId::DatagramLossRatio);
    rows.add_where("  datagrams lost", lost, number::percent, |_| true);
    let here = middle(MetricId::DatagramsLostHere);
    rows.add_where("  lost at the receiver, count", here, count, some);
    let dropped = middle(MetricId::DatagramsDroppedAtSender);
    rows.add_where("  dropped at the sender, count", dropped, count, some);
    if rows.any_figure(|figure| figure.on_paths().is_some()) {
        rows.add("  lost on the path", lost_on_path);
    }
}

/// Goodput from the worst run to the best; a dash for one run.
fn goodput_range(figure: &FlowFigure<'_>) -> String {
    match (figure.worst_bps(), figure.best_bps()) {
        (Some(worst), Some(best)) if figure.runs_bps.len() > 1 => {
            format!("{}\u{2013}{}", number::rate_in_mbit(worst), number::rate_in_mbit(best))
        }
        _ => NONE.to_owned(),
    }
}

fn goodput_mean(figure: &FlowFigure<'_>) -> String {
    or_dash(figure.mean_and_deviation(), |(mean, deviation)| {
        let deviation = number::significant(deviation / 1e6, 2);
        format!("{} \u{b1} {}", number::rate_in_mbit(mean), number::trimmed(&deviation))
    })
}

/// Data packets that the emulator lost and their share of those it took: `12 (0.004 %)`.
fn lost_on_path(figure: &FlowFigure<'_>) -> String {
    or_dash(figure.on_paths(), |count| match count.lost {
        0 => "0".to_owned(),
        lost => {
            let share = lost as f64 / count.taken.max(1) as f64;
            let share = number::significant(share * 100.0, 2);
            format!("{lost} ({} %)", number::trimmed(&share))
        }
    })
}

/// Remarks on the bounds of a topology's tests and on how the window's bound is computed.
pub(super) fn bound_notes(row: &TopologyRow<'_>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for test in &row.flows {
        let Some(line) = ceiling_of(row, test) else { continue };
        let line = format!("{}: {line}", test.flow_kind().sentence_word());
        if !out.contains(&line) {
            out.push(line);
        }
    }
    if let Some(ns) =
        row.way.rtt_ns.filter(|_| row.flows.iter().any(|test| row.has_window_bound(test)))
    {
        out.push(format!(
            "window/RTT bound: the largest window that the receiver advertised (the one asked for \
             where no record has it) over the emulated round trip of {} ms, at most the ceiling",
            number::trimmed(&number::time_in_ms(ns))
        ));
    }
    out
}

/// The bound of a test with its inputs; without a bound, the inputs that are not known.
fn ceiling_of(row: &TopologyRow<'_>, test: &FlowTest<'_>) -> Option<String> {
    let figures = || test.figures.iter();
    let figure = figures().find(|figure| figure.ceiling.is_some()).or_else(|| figures().next())?;
    let Some(limit) = row.slowest_link(figure) else {
        return figure.ceiling.as_ref().map(|known: &Ceiling| ceiling::value_with_inputs(known));
    };
    let seen = if limit.headers_seen() { "as the runs had them" } else { "as Linux has them" };
    Some(format!(
        "ceiling {} payload (slowest link of the plan {}, whose shaper counts the IP packet and \
         the Ethernet header; packets of {} bytes; headers of {} bytes, {seen})",
        number::rate_with_unit(limit.payload_bps),
        limit.rate,
        limit.mtu_bytes,
        limit.header_bytes()
    ))
}
