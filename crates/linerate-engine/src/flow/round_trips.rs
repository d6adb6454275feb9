//! Round trips with the path at rest and under the test's load: how much of the one is the queue of
//! the other (RFC 6349 §4.2).
//!
//! Left out: tests with other programs' servers, whose control connections say nothing before the
//! load, and searches, whose rows have round trips of their own.

use linerate_core::record::{Direction, MetricId, Record, Series, Stat, Summary};
use linerate_core::stats::Sorted;

use super::account::Account;

/// Adds the rows of both to the summary of a record whose series are there.
pub(super) fn add(record: &mut Record, account: &Account) {
    let idle = account.idle_rtt_ns.map(|ns| ns as f64);
    for direction in [Direction::Up, Direction::Down] {
        if !record.flows.iter().any(|flow| flow.direction == direction) {
            continue;
        }
        let mut rows = Vec::new();
        let row =
            |metric, stat, value| Summary::from_value(metric, stat, value).in_direction(direction);
        rows.extend(idle.map(|idle| row(MetricId::IdleRtt, Stat::Min, idle)));
        let samples = Sorted::new(loaded(&record.series, direction, account.omit_ns));
        let n = samples.samples().len() as u64;
        for (stat, share) in [(Stat::P50, 0.5), (Stat::P95, 0.95)] {
            let value = samples.quantile(share).map(|ns| ns as f64);
            rows.extend(value.map(|ns| row(MetricId::LoadedRtt, stat, ns).with_n(n)));
        }
        for stat in [Stat::P50, Stat::P99] {
            // One-way delays above the smallest; only tests of datagrams have them.
            let queued = record.summary_value(MetricId::Pdv, stat, Some(direction));
            let value = idle.zip(queued).map(|(idle, queued)| idle + queued);
            rows.extend(value.map(|ns| row(MetricId::LoadedRtt, stat, ns)));
        }
        record.summary.extend(rows);
    }
}

/// Round trips of all streams of a direction after the omitted span.
pub(super) fn loaded(series: &[Series], direction: Direction, omit_ns: u64) -> Vec<u64> {
    let of_it = |it: &&Series| it.metric == MetricId::TcpRtt && it.direction == Some(direction);
    let all = series.iter().filter(of_it).flat_map(|series| series.t_ns.iter().zip(&series.values));
    let counted = all.filter(|(t_ns, _)| **t_ns > omit_ns);
    counted.filter_map(|(_, value)| value.map(|ns| ns as u64)).collect()
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{Flow, FlowSide, Plan, RecordId, TcpPlan, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    fn record() -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        let mut record = Record::from_plan(id, tool, Plan::Tcp(TcpPlan::default()), at);
        record.flows = vec![Flow {
            flow: 0,
            direction: Direction::Up,
            client_addr: String::new(),
            server_addr: String::new(),
            sender: None,
            receiver: None,
            syn: None,
        }];
        record
    }

    fn upload_value(record: &Record, metric: MetricId, stat: Stat) -> Option<f64> {
        record.summary_value(metric, stat, Some(Direction::Up))
    }

    #[test]
    fn the_omitted_span_is_no_load_and_percentiles_are_samples() {
        let mut record = record();
        let values: Vec<Option<f64>> = (1..=20).map(|ms| Some(f64::from(ms) * 1e6)).collect();
        record.series = vec![Series {
            metric: MetricId::TcpRtt,
            direction: Some(Direction::Up),
            flow: Some(0),
            side: Some(FlowSide::Sender),
            payload_bytes: None,
            t_ns: (1..=20).collect(),
            values,
        }];
        let account = Account { omit_ns: 10, idle_rtt_ns: Some(500_000), ..Account::default() };
        add(&mut record, &account);
        assert_eq!(upload_value(&record, MetricId::IdleRtt, Stat::Min), Some(500_000.0));
        // Of 11 to 20 ms the 5th and the 10th (9.5 rounded up).
        assert_eq!(upload_value(&record, MetricId::LoadedRtt, Stat::P50), Some(15e6));
        assert_eq!(upload_value(&record, MetricId::LoadedRtt, Stat::P95), Some(20e6));
    }

    #[test]
    fn datagrams_have_the_idle_round_trip_and_what_they_waited() {
        let mut record = record();
        let row =
            |stat, ns| Summary::from_value(MetricId::Pdv, stat, ns).in_direction(Direction::Up);
        record.summary = vec![row(Stat::P50, 3e6), row(Stat::P99, 9e6)];
        let account = Account { idle_rtt_ns: Some(1_000_000), ..Account::default() };
        add(&mut record, &account);
        assert_eq!(upload_value(&record, MetricId::LoadedRtt, Stat::P50), Some(4e6));
        assert_eq!(upload_value(&record, MetricId::LoadedRtt, Stat::P99), Some(10e6));
        // Without the idle one nothing is made up.
        let mut record = self::record();
        record.summary = vec![row(Stat::P50, 3e6)];
        add(&mut record, &Account::default());
        assert_eq!(record.summary.len(), 1);
    }
}
