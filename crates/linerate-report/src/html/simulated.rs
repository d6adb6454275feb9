//! The part of a result's page that is about a simulation: figures, diagrams, what the path did.

use linerate_core::record::{Direction, MetricId, Record, SimulatePlan, Stat};

use super::page;
use crate::escape::xml;
use crate::number::{self, or_dash};
use crate::{ceiling, emulated, simulate};

/// The metrics that the page shows.
pub(super) const METRICS: &[MetricId] = &[
    MetricId::Goodput,
    MetricId::Transfer,
    MetricId::SegmentsSent,
    MetricId::Retransmits,
    MetricId::LossEvents,
    MetricId::Timeouts,
    MetricId::Acked,
    MetricId::Cwnd,
    MetricId::Ssthresh,
];

/// The figures in large type.
pub(super) fn tiles(record: &Record) -> Vec<[String; 3]> {
    let value = |metric| record.value(metric, Stat::Value, Some(Direction::Up));
    let goodput = or_dash(value(MetricId::Goodput), number::rate);
    let bound = ceiling::brief(record.ceiling_of(Direction::Up));
    let span = value(MetricId::Transfer).or_else(|| value(MetricId::Span));
    let whole = |count: f64| format!("{count:.0}");
    let events = or_dash(value(MetricId::LossEvents), whole);
    let timeouts = or_dash(value(MetricId::Timeouts), whole);
    vec![
        [goodput, "payload, by the model".to_owned(), bound],
        [or_dash(span, number::seconds), "of virtual time".to_owned(), String::new()],
        [
            or_dash(value(MetricId::Retransmits), whole),
            "segments retransmitted".to_owned(),
            format!("{events} loss events, {timeouts} time-outs"),
        ],
    ]
}

/// The diagrams, the summary as the command prints it, and the ceiling.
pub(super) fn body(record: &Record, plan: &SimulatePlan) -> String {
    let mut out = String::from("<h2>Over virtual time</h2>\n");
    for (_, chart) in simulate::charts(record, plan) {
        if chart.series.iter().all(|series| series.points.is_empty()) {
            continue;
        }
        out.push_str("<figure><div class=\"panels\">\n");
        out.push_str(&chart.svg().inline());
        out.push_str("</div></figure>\n");
    }
    out.push_str("<h2>What was simulated</h2>\n");
    let text = simulate::text(&simulate::report(record, plan));
    out.push_str(&format!("<pre>{}{}</pre>\n", xml(&text), xml(&emulated::lines(&record.paths))));
    let measured = ceiling::measured(record, Direction::Up);
    let bounds = record.ceiling_of(Direction::Up);
    out.push_str(&page::list(&bounds.map(|it| ceiling::lines(it, measured)).unwrap_or_default()));
    out
}
