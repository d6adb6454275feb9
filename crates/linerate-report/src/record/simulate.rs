//! The document of a simulated TCP test. It says first that it is a model's, in virtual time.

use linerate_core::record::{Direction, MetricId, Record, SimulatePlan, Stat};

use crate::document::{Block, Document, ReportFigure, ReportSection, Tile};
use crate::number::{self, or_dash};
use crate::{ceiling, simulate, words};

/// The metrics that a page defines.
const METRICS: &[MetricId] = &[
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

/// The page of a simulated test: its plan, its result, and charts over virtual time.
pub(super) fn document(record: &Record, plan: &SimulatePlan) -> Document {
    let charts = simulate::charts(record, plan).into_iter().map(|(_, chart)| chart);
    let drawn = charts.filter(|chart| chart.series.iter().any(|series| !series.points.is_empty()));
    let panels = drawn.map(|chart| (String::new(), chart.svg())).collect();
    let title = "Over virtual time".to_owned();
    let figure = Block::Figure(ReportFigure { title, caption: String::new(), panels });
    let mut blocks = simulate::report_parts(&simulate::report(record, plan)).concat();
    let measured = ceiling::measured(record, Direction::Up);
    let bounds = record.ceiling.iter().flat_map(|found| ceiling::remark_lines(found, measured));
    blocks.push(Block::Remarks(bounds.collect()));
    Document {
        title: title_line(plan),
        tiles: model_tiles(record),
        sections: vec![
            ReportSection::without_blank_line("", [figure]).leading(),
            ReportSection::without_blank_line("", blocks),
        ],
        metrics: METRICS.to_vec(),
        ..Document::default()
    }
}

fn model_tiles(record: &Record) -> Vec<Tile> {
    let value = |metric| record.summary_value(metric, Stat::Value, Some(Direction::Up));
    let goodput = or_dash(value(MetricId::Goodput), number::rate_with_unit);
    let bound = ceiling::brief_share(record.ceiling_of(Direction::Up));
    let span = value(MetricId::Transfer).or_else(|| value(MetricId::Span));
    let whole = |metric| or_dash(value(metric), |count| format!("{count:.0}"));
    let (events, timeouts) = (whole(MetricId::LossEvents), whole(MetricId::Timeouts));
    vec![
        Tile::new(goodput, "payload, by the model", bound),
        Tile::new(or_dash(span, number::seconds), "of virtual time", ""),
        Tile::new(
            whole(MetricId::Retransmits),
            "segments retransmitted",
            format!("{events} loss events, {timeouts} time-outs"),
        ),
    ]
}

/// The one line that says what was asked.
fn title_line(plan: &SimulatePlan) -> String {
    format!(
        "TCP simulated in virtual time over {}: {}, {}, {} with {}, seed {}",
        plan.place.as_deref().unwrap_or("a path"),
        words::counted(plan.streams.into(), "stream"),
        words::finish(plan.finish),
        plan.tcp_model().congestion_control.name(),
        plan.tcp.recovery.name(),
        plan.random_seed(),
    )
}
