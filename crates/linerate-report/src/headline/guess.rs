//! A ceiling guessed from the path's own evidence, where neither a card nor the user told one.
//!
//! A queue that stands under load says that the link behind it was busy all the time, so that what
//! arrived is what this link carries. Without such a queue nothing is guessed: a policer has none,
//! and a window, a pace or a host that is the limit leaves none. Where other traffic went through
//! the same link, the guess is what it left.

use linerate_core::explain::has_queue;
use linerate_core::record::{Direction, FlowEnd, MetricId, Record, Stat};
use linerate_core::stats::median;

use crate::{number, words};

/// An end that is busier may have made the queue itself.
const CPU_SHARE_MAX: f64 = 0.5;
/// The mean of all intervals over the typical one, where that is a link's rate.
const ABOVE_MAX: f64 = 1.05;
/// Fewer intervals may all lie in slow start.
const INTERVALS_MIN: usize = 4;

/// Rate of payload in the typical interval of a test under which the path's queue stood, in bit/s.
pub(super) fn typical_interval_bps(record: &Record, way: Direction) -> Option<f64> {
    let at_ease = |end: &FlowEnd| {
        let span = end.span_start_ns + end.span_ns;
        let used = end.cpu_user_ns? + end.cpu_system_ns?;
        Some(span > 0 && (used as f64) < CPU_SHARE_MAX * span as f64)
    };
    let mut flows = record.flows.iter().filter(|flow| flow.direction == way);
    let ends_at_ease = flows.all(|flow| {
        let ends = [&flow.sender, &flow.receiver].into_iter();
        ends.flatten().all(|end| at_ease(end) == Some(true))
    });
    if !has_queue(record, way) || !ends_at_ease || !words::caveats(record).0.is_empty() {
        return None;
    }
    let rates = of_all_streams(record, way);
    median(&rates).filter(|rate| rates.len() >= INTERVALS_MIN && *rate > 0.0)
}

/// The rates of all streams together in each interval that all of them have.
fn of_all_streams(record: &Record, way: Direction) -> Vec<f64> {
    let of_way = record.series.iter().filter(|series| {
        series.metric == MetricId::Goodput
            && series.direction.is_none_or(|direction| direction == way)
    });
    let mut streams = of_way.map(|series| series.values.as_slice());
    let Some(first) = streams.next() else { return Vec::new() };
    let sums = streams.fold(first.to_vec(), |sums, values| {
        let both = sums.iter().zip(values);
        both.map(|(sum, value)| Some((*sum)? + (*value)?)).collect()
    });
    sums.into_iter().flatten().collect()
}

/// From this share of an estimate on the path was full, but for the start.
const FULL_FROM: f64 = 0.95;

/// The estimated rate of a path that was full, in bit/s. None where less was reached, and where a
/// ceiling is known.
pub(super) fn full_bps(record: &Record, way: Direction) -> Option<f64> {
    if record.ceiling_of(way).is_some_and(|ceiling| ceiling.value.is_some()) {
        return None;
    }
    let bound = typical_interval_bps(record, way)?;
    let reached = record.summary_value(MetricId::Goodput, Stat::Value, Some(way))?;
    (FULL_FROM * bound..=ABOVE_MAX * bound).contains(&reached).then_some(bound)
}

/// `about 93 % of an estimated 94.00 Mbit/s`
pub(super) fn in_words(record: &Record, way: Direction) -> Option<String> {
    let bound = typical_interval_bps(record, way)?;
    let reached = record.summary_value(MetricId::Goodput, Stat::Value, Some(way))?;
    // Bursts above the typical interval say that it was not the link's rate.
    if reached > ABOVE_MAX * bound {
        return None;
    }
    let (share, bound) = (number::whole_percent(reached / bound), number::measured_rate(bound));
    Some(format!("about {share} of an estimated {bound}"))
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        Caveat, CaveatCode, Ceiling, Flow, FlowSide, Plan, RecordId, Series, ServerPlan, Summary,
        TcpPlan, TestPlan, Tool,
    };
    use linerate_core::time::WallTime;

    use super::*;
    use crate::headline::Headline;

    /// Five seconds at these rates in Mbit/s, with a round trip of 20 ms at rest and this under
    /// load, and ends that use this share of a CPU.
    fn record(mbit: [f64; 5], loaded_ms: f64, cpu: f64) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let plan = Plan::Tcp(TcpPlan::default());
        let id = RecordId::from_parts(0, [0; 10]);
        let mut record = Record::from_plan(id, tool, plan, WallTime::from_unix_nanos(0));
        let up = |metric, stat, value| {
            Summary::from_value(metric, stat, value).in_direction(Direction::Up)
        };
        let mean = mbit.iter().sum::<f64>() / 5.0;
        record.summary = vec![
            up(MetricId::Goodput, Stat::Value, mean * 1e6),
            up(MetricId::TcpRttMin, Stat::Min, 20e6),
            up(MetricId::TcpRtt, Stat::Mean, loaded_ms * 1e6),
        ];
        let end = FlowEnd {
            span_ns: 5_000_000_000,
            cpu_user_ns: Some(0),
            cpu_system_ns: Some((cpu * 5e9) as u64),
            ..FlowEnd::default()
        };
        record.flows = vec![Flow {
            flow: 0,
            direction: Direction::Up,
            client_addr: "192.0.2.1:1".to_owned(),
            server_addr: "192.0.2.2:2".to_owned(),
            sender: Some(end.clone()),
            receiver: Some(end),
            syn: None,
        }];
        record.series = vec![Series {
            metric: MetricId::Goodput,
            direction: Some(Direction::Up),
            flow: Some(0),
            side: Some(FlowSide::Receiver),
            payload_bytes: None,
            t_ns: (1..=5).map(|s| s * 1_000_000_000).collect(),
            values: mbit.iter().map(|rate| Some(rate * 1e6)).collect(),
        }];
        record.ceiling = Some(Ceiling::of_goodput(Direction::Up));
        record
    }

    #[test]
    fn a_standing_queue_says_what_its_link_carries() {
        // Slow start in the first second; the median of the five is 94.
        let slow_start = [62.0, 94.0, 94.2, 94.0, 93.9];
        let full = record(slow_start, 120.0, 0.02);
        assert_eq!(typical_interval_bps(&full, Direction::Up), Some(94e6));
        let line = Headline::from_record(&full).summary_line();
        // 87.62 of 94: 93.2 %. It is no ceiling: a program finds no share.
        assert!(line.contains("about 93 % of an estimated 94.00 Mbit/s"), "{line}");
        assert_eq!(Headline::from_record(&full).share, None);
        assert_eq!(full_bps(&full, Direction::Up), None);
        // 148 of 149 is all of it.
        let all = record([144.0, 149.0, 149.2, 149.0, 148.8], 120.0, 0.02);
        assert_eq!(full_bps(&all, Direction::Up), Some(149e6));
        let told =
            "the path is full (it carries about 149.0 Mbit/s, estimated), its queue adds 100.0 ms";
        let line = Headline::from_record(&all).summary_line();
        assert!(line.contains(told) && !line.contains("of an estimated"), "{line}");
        // A survey's best transfer says it the same way.
        let server = ServerPlan { host: "b".to_owned(), ..ServerPlan::default() };
        let plan = Plan::Test(TestPlan {
            server,
            tcp_time_ns: None,
            congestion_control: None,
            ping_count: 10,
            within_ns: None,
            goal: None,
        });
        let whole = Record { plan, parts: vec![all.clone()], summary: Vec::new(), ..all };
        let line = Headline::from_record(&whole).summary_line();
        assert!(line.contains(told), "{line}");
        for (what, other) in [
            ("no queue", record(slow_start, 25.0, 0.02)),
            ("a busy end", record(slow_start, 120.0, 0.7)),
        ] {
            assert_eq!(typical_interval_bps(&other, Direction::Up), None, "{what}");
            assert!(
                Headline::from_record(&other).summary_line().contains("ceiling not known"),
                "{what}"
            );
        }
        // Two streams at half of it each.
        let mut two = record(slow_start, 120.0, 0.02);
        let half = |rate: &Option<f64>| rate.map(|rate| rate / 2.0);
        two.series[0].values = two.series[0].values.iter().map(half).collect();
        two.series.push(Series { flow: Some(1), ..two.series[0].clone() });
        assert_eq!(typical_interval_bps(&two, Direction::Up), Some(94e6));
        let mut late = record(slow_start, 120.0, 0.02);
        late.caveats = vec![Caveat::new(CaveatCode::RunQueueWait, "waited", "stop other work")];
        assert_eq!(typical_interval_bps(&late, Direction::Up), None);
        let mut short = record(slow_start, 120.0, 0.02);
        short.series[0].values[3..].fill(None);
        assert_eq!(typical_interval_bps(&short, Direction::Up), None);
    }
}
