//! Tables of loads: what was asked, what was sent, what came out.

use linerate_core::record::{BenchPlan, BenchResult, LoadPoint};

use super::words;
use crate::document::{ReportSection, ReportTable};

/// A section of one test's loads; `None` if none was tried.
pub(super) fn loads_section(
    title: &str,
    points: &[LoadPoint],
    plan: &BenchPlan,
    result: &BenchResult,
) -> Option<ReportSection> {
    let notes = match words::senders(plan) {
        0 | 1 => vec![],
        ports => vec![format!("frames/s of all {ports} sending ports together")],
    };
    Some(ReportSection::from_tables(title, [load_table(points, plan, result)?], notes))
}

/// A row for each load: rate intended, offered and forwarded, loss, frames sent and lost; `None`
/// without a load.
pub(super) fn load_table(
    points: &[LoadPoint],
    plan: &BenchPlan,
    result: &BenchResult,
) -> Option<ReportTable> {
    points.first()?;
    let line = result.theoretical_fps.map(|fps| fps * words::senders(plan) as f64);
    let mut head = vec!["intended", "offered", "forwarded", "loss", "frames\nsent", "lost"];
    if line.is_some() {
        head.insert(2, "of\ntheoretical");
    }
    let mut table = ReportTable::new(head);
    for point in points {
        let mut row = vec![
            point.intended_fps.map_or_else(|| "all".to_owned(), words::frames),
            words::frames(point.offered_fps),
            words::frames(point.forwarded_fps),
            words::loss_ratio(point.loss_ratio),
            point.sent.to_string(),
            point.sent.saturating_sub(point.received).to_string(),
        ];
        if let Some(line) = line {
            row.insert(2, words::share_percent(point.offered_fps / line));
        }
        table.add_measured_row(row);
    }
    Some(table)
}
