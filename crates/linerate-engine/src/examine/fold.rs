//! What the parts of a survey say for the whole of it.

use linerate_core::record::{Direction, MetricId, Plan, Record, RecordStatus, Stat, Summary};

use super::SIZES_BYTES;

/// Sums up the parts of an examination in its record: the smallest ping, the best rate of each
/// direction with its ceiling and round trips, each kind of caveat once, the first failure.
pub(super) fn summarise_parts(record: &mut Record) {
    let failed = record.parts.iter().filter(|part| part.failure.is_some()).count();
    record.failure = record.parts.iter().find_map(|part| part.failure.clone());
    record.status = match failed {
        0 => RecordStatus::Ok,
        count if count == record.parts.len() => RecordStatus::Error,
        _ => RecordStatus::Partial,
    };
    let both = record.parts.iter().find(|part| part.ends.len() > 1);
    record.ends =
        both.or_else(|| record.parts.first()).map(|part| part.ends.clone()).unwrap_or_default();
    record.caveats = record.caveats_of_parts();
    let ping = record.parts.iter().find(|part| matches!(part.plan, Plan::Ping(_)));
    let smallest = |row: &&Summary| row.payload_bytes == Some(SIZES_BYTES[0]);
    let rows = ping.into_iter().flat_map(|part| part.summary.iter().filter(smallest));
    let mut summary: Vec<Summary> = rows.cloned().collect();
    let typical = summary.iter().find(|row| (row.metric, row.stat) == (MetricId::Rtt, Stat::P50));
    let idle = typical.map(|row| Summary {
        metric: MetricId::DelayIdle,
        payload_bytes: None,
        ..row.clone()
    });
    summary.extend(idle.clone());
    for direction in [Direction::Up, Direction::Down] {
        let Some(best) = record.best_part(direction) else { continue };
        let rows = best.summary.iter().filter(|row| row.flow.is_none());
        // Of the two delays at rest that of the ping counts.
        let rows = rows.filter(|row| row.metric != MetricId::DelayAdded);
        summary.extend(rows.filter(|row| row.direction == Some(direction)).cloned());
        let loaded = best.summary_value(MetricId::DelayLoaded, Stat::P50, Some(direction));
        let added = idle.as_ref().zip(loaded).map(|(idle, loaded)| loaded - idle.value);
        let added = added.map(|ns| Summary::from_value(MetricId::DelayAdded, Stat::Value, ns));
        summary.extend(added.map(|row| row.in_direction(direction)));
        let ceiling = best.ceiling_of(direction).cloned();
        match direction {
            Direction::Up => record.ceiling = ceiling,
            Direction::Down => record.ceiling_reverse = ceiling,
        }
    }
    record.summary = summary;
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        Caveat, CaveatCode, Ceiling, Failure, Fault, PingPlan, ServerPlan, TcpDirections, TcpPlan,
        TcpTest, TestPlan, Tool,
    };
    use linerate_sys::clock::{record_id, wall_time};

    use super::*;

    /// A part with a goodput of the way that it has.
    fn goodput_part(directions: TcpDirections, mbit: f64, ceiling_mbit: f64) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let test = TcpTest { directions, ..TcpTest::default() };
        let plan = Plan::Tcp(TcpPlan { test, ..TcpPlan::default() });
        let mut record = Record::from_plan(record_id(), tool, plan, wall_time());
        let direction = directions.each_direction()[0];
        let row = Summary::from_value(MetricId::Goodput, Stat::Value, mbit * 1e6);
        let loaded = Summary::from_value(MetricId::DelayLoaded, Stat::P50, mbit * 1e6);
        record.summary = vec![
            row.clone().in_direction(direction),
            row.of_flow(1),
            loaded.in_direction(direction),
        ];
        let value = Some(ceiling_mbit * 1e6);
        record.ceiling = Some(Ceiling { value, ..Ceiling::of_goodput(direction) });
        let caveat = Caveat::new(CaveatCode::RunQueueWait, format!("at {mbit}"), "wait");
        record.caveats = vec![caveat];
        record
    }

    #[test]
    fn the_whole_says_what_its_best_parts_do() {
        let (up, down) = (TcpDirections::Up, TcpDirections::Down);
        let mut record = goodput_part(up, 0.0, 0.0);
        record.plan = Plan::Test(TestPlan {
            server: ServerPlan::default(),
            tcp_time_ns: None,
            congestion_control: None,
            ping_count: 1,
            within_ns: None,
            goal: None,
        });
        record.parts = vec![
            goodput_part(up, 50.0, 90.0),
            goodput_part(down, 40.0, 80.0),
            goodput_part(up, 70.0, 95.0),
        ];
        summarise_parts(&mut record);
        let goodput = |way| record.summary_value(MetricId::Goodput, Stat::Value, Some(way));
        assert_eq!(goodput(Direction::Up), Some(70e6));
        assert_eq!(goodput(Direction::Down), Some(40e6));
        let ceiling = |way| record.ceiling_of(way).and_then(|ceiling| ceiling.value);
        assert_eq!((ceiling(Direction::Up), ceiling(Direction::Down)), (Some(95e6), Some(80e6)));
        assert_eq!((record.caveats.len(), record.exit_code()), (1, 0));
        let refused = Failure::new(Fault::Unreachable, "connect", "b", "refused");
        record.parts[1].failure = Some(refused.clone());
        summarise_parts(&mut record);
        assert_eq!((record.status, record.exit_code()), (RecordStatus::Partial, 5));
        record.parts.iter_mut().for_each(|part| part.failure = Some(refused.clone()));
        summarise_parts(&mut record);
        assert_eq!((record.status, record.exit_code()), (RecordStatus::Error, 3));
    }

    #[test]
    fn the_delay_under_load_is_that_of_the_best_parts_above_the_ping() {
        let (up, down) = (TcpDirections::Up, TcpDirections::Down);
        let mut ping = goodput_part(up, 0.0, 0.0);
        ping.plan = Plan::Ping(PingPlan::default());
        let rtt = Summary::from_value(MetricId::Rtt, Stat::P50, 20e6).at_payload(SIZES_BYTES[0]);
        ping.summary = vec![rtt];
        let mut record = goodput_part(up, 0.0, 0.0);
        record.parts = vec![
            ping,
            goodput_part(up, 120.0, 0.0),
            goodput_part(up, 60.0, 0.0),
            goodput_part(down, 50.0, 0.0),
        ];
        summarise_parts(&mut record);
        let value = |metric, stat, way| record.summary_value(metric, stat, way);
        assert_eq!(value(MetricId::DelayIdle, Stat::P50, None), Some(20e6));
        assert_eq!(value(MetricId::DelayLoaded, Stat::P50, Some(Direction::Up)), Some(120e6));
        let added = |way| value(MetricId::DelayAdded, Stat::Value, Some(way));
        assert_eq!((added(Direction::Up), added(Direction::Down)), (Some(100e6), Some(30e6)));
    }
}
