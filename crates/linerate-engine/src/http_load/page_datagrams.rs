//! Datagrams that a browser's page and this host sent each other beside the load, as rows of the
//! record. Left out: those at rest, which the record keeps and its summary does not.

use linerate_core::record::{
    Direction, MetricId, PageDatagrams, Plan, ProbePhase, Record, Stat, Summary, TcpDirections,
};

/// Keeps what became of datagrams in the record of one direction, and adds the rows of those beside
/// its load to the summary: the load's own way first, which is the loss that lists show.
pub fn add_datagrams(record: &mut Record, mut all: Vec<PageDatagrams>) {
    let Plan::Tcp(plan) = &record.plan else { return };
    let (phase, ways) = match plan.test.directions {
        TcpDirections::Down => (ProbePhase::Down, [Direction::Down, Direction::Up]),
        _ => (ProbePhase::Up, [Direction::Up, Direction::Down]),
    };
    all.retain(|datagrams| matches!(datagrams.phase, ProbePhase::Idle) || datagrams.phase == phase);
    for way in ways {
        let beside =
            all.iter().find(|datagrams| datagrams.phase == phase && datagrams.direction == way);
        record.summary.extend(beside.into_iter().flat_map(summary_rows));
    }
    record.page_datagrams = all;
}

/// Sent = received + lost, as of every datagram.
fn summary_rows(of: &PageDatagrams) -> Vec<Summary> {
    let row = |metric, value: f64| {
        Summary::from_value(metric, Stat::Value, value).in_direction(of.direction).with_n(of.sent)
    };
    let count = |metric, count: u64| row(metric, count as f64);
    let mut rows = vec![
        count(MetricId::DatagramsSent, of.sent),
        count(MetricId::DatagramsReceived, of.sent - of.lost),
        count(MetricId::DatagramsLost, of.lost),
        count(MetricId::DatagramDuplicates, of.duplicates),
        count(MetricId::DatagramsReordered, of.reordered),
    ];
    if of.sent > 0 {
        rows.push(row(MetricId::DatagramLossRatio, of.lost as f64 / of.sent as f64));
    }
    rows.extend(of.jitter_ns.map(|ns| count(MetricId::JitterRfc3550, ns)));
    rows
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{RecordId, TcpPlan, TcpTest, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    fn record(directions: TcpDirections) -> Record {
        let test = TcpTest { directions, ..TcpTest::default() };
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        Record::from_plan(id, tool, Plan::Tcp(TcpPlan { test, ..TcpPlan::default() }), at)
    }

    fn page_datagrams(
        phase: ProbePhase,
        direction: Direction,
        sent: u64,
        lost: u64,
    ) -> PageDatagrams {
        let (duplicates, reordered, jitter_ns) = (0, 1, Some(2_500));
        PageDatagrams { phase, direction, sent, lost, duplicates, reordered, jitter_ns }
    }

    #[test]
    fn those_beside_the_load_are_rows_and_those_at_rest_are_kept() {
        let mut record = record(TcpDirections::Up);
        let all = vec![
            page_datagrams(ProbePhase::Idle, Direction::Down, 500, 5),
            page_datagrams(ProbePhase::Down, Direction::Down, 100, 100),
            page_datagrams(ProbePhase::Up, Direction::Down, 40, 4),
            page_datagrams(ProbePhase::Up, Direction::Up, 50, 10),
        ];
        add_datagrams(&mut record, all);
        let of = |metric, way| record.summary_value(metric, Stat::Value, Some(way));
        // 10 of 50 and 4 of 40.
        assert_eq!(of(MetricId::DatagramLossRatio, Direction::Up), Some(0.2));
        assert_eq!(of(MetricId::DatagramLossRatio, Direction::Down), Some(0.1));
        assert_eq!(of(MetricId::DatagramsReceived, Direction::Up), Some(40.0));
        assert_eq!(of(MetricId::JitterRfc3550, Direction::Up), Some(2_500.0));
        let ways: Vec<_> = record.summary.iter().map(|row| row.direction).collect();
        assert_eq!(ways.first(), Some(&Some(Direction::Up)), "the load's own way is first");
        // Those beside the other direction's load belong to its record.
        assert_eq!(record.page_datagrams.len(), 3);
    }

    #[test]
    fn where_none_left_is_no_ratio() {
        let mut record = record(TcpDirections::Down);
        let none = PageDatagrams {
            jitter_ns: None,
            ..page_datagrams(ProbePhase::Down, Direction::Down, 0, 0)
        };
        add_datagrams(&mut record, vec![none]);
        let down = Some(Direction::Down);
        assert_eq!(record.summary_value(MetricId::DatagramLossRatio, Stat::Value, down), None);
        assert_eq!(record.summary_value(MetricId::JitterRfc3550, Stat::Value, down), None);
    }
}
