//! Datagrams between a browser's page and the server: a table of what became of them, each way, at
//! rest and beside the load.

use linerate_core::record::{MetricId, PageDatagrams, ProbePhase, Record};

use crate::document::{Block, ReportSection, ReportTable};
use crate::number::{self, or_dash};
use crate::words;

/// The metrics that a page defines.
pub(super) const METRICS: [MetricId; 3] =
    [MetricId::DatagramLossRatio, MetricId::DatagramsReordered, MetricId::JitterRfc3550];

/// None where there were none.
pub(super) fn section(record: &Record) -> Option<ReportSection> {
    let all = &record.page_datagrams;
    if all.is_empty() {
        return None;
    }
    Some(ReportSection::without_blank_line(
        "datagrams of the page",
        [Block::Table(counts_table(all))],
    ))
}

fn counts_table(all: &[PageDatagrams]) -> ReportTable {
    let columns = ["datagrams", "sent", "lost", "loss", "out of order", "duplicates", "jitter ms"];
    let rows = all.iter().map(|datagrams| {
        let phase = match datagrams.phase {
            ProbePhase::Idle => "at rest",
            ProbePhase::Down | ProbePhase::Up | ProbePhase::Both => "under load",
        };
        let ratio = (datagrams.sent > 0).then(|| datagrams.lost as f64 / datagrams.sent as f64);
        [
            format!("{}, {phase}", words::direction(datagrams.direction)),
            datagrams.sent.to_string(),
            datagrams.lost.to_string(),
            or_dash(ratio, number::percent),
            datagrams.reordered.to_string(),
            datagrams.duplicates.to_string(),
            or_dash(datagrams.jitter_ns, |ns| number::ms_to_microsecond(ns as f64)),
        ]
    });
    ReportTable::new(columns).with_rows(rows).dropping(&[5, 1])
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{Direction, Plan, RecordId, TcpPlan, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    #[test]
    fn each_way_is_a_row_with_what_was_lost_of_what_left() {
        let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        let mut record = Record::from_plan(id, tool, Plan::Tcp(TcpPlan::default()), at);
        assert!(section(&record).is_none(), "a test without a page has none");
        let (phase, direction) = (ProbePhase::Up, Direction::Up);
        let (sent, lost, duplicates, reordered) = (350, 7, 0, 3);
        let jitter_ns = Some(1_250_000);
        let up = PageDatagrams { phase, direction, sent, lost, duplicates, reordered, jitter_ns };
        let rest = PageDatagrams { phase: ProbePhase::Idle, jitter_ns: None, ..up };
        record.page_datagrams = vec![rest, up];
        let text = crate::record::document(&record).text(None);
        let words = ["client to server, under load", "350", "7", "2.00 %", "3", "0", "1.250"];
        let line = text.lines().find(|line| line.contains(words[0])).expect(&text);
        for word in words {
            assert!(line.contains(word), "{word}: {line}");
        }
        let line = text.lines().find(|line| line.contains("at rest")).expect(&text);
        assert!(line.contains(number::NONE), "{line}");
    }
}
