//! Round trips that the page in a browser measured beside the load, as probes of the record.
//!
//! The page sends short messages on a WebSocket, before the load and through it, by its own clock.
//! Left out: loss, for TCP hides it from the page.

use linerate_core::record::{PingTransport, Plan, ProbePhase, ProbeSpan, Probes, Record};

use crate::flow::probes;

/// Payload of a message.
const MESSAGE_BYTES: u32 = 16;

/// The delays that a page measured: when each message was sent, since the load of the record's
/// direction began, and how long its answer took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageDelays {
    /// Before any load; their times are negative.
    pub idle: Vec<(i64, u64)>,
    /// Delays beside the load of this direction.
    pub loaded: Vec<(i64, u64)>,
}

/// Adds what the page measured to the record of one direction: the probes, and the rows of their
/// summary. Messages that were sent outside the time that counts are kept and count nowhere.
pub fn add_delays(record: &mut Record, delays: &PageDelays) {
    let Plan::Tcp(plan) = &record.plan else { return };
    let omit_ns = plan.test.omit_ns;
    let Some(target) = record.flows.first().map(|flow| flow.server_addr.clone()) else { return };
    if delays.idle.is_empty() && delays.loaded.is_empty() {
        return;
    }
    let mut idle = delays.idle.clone();
    idle.sort_unstable();
    let mut all = idle.clone();
    all.extend(&delays.loaded);
    all.sort_unstable();
    let rest = idle.first().zip(idle.last()).map(|(&(from_ns, _), &(last_ns, _))| ProbeSpan {
        phase: ProbePhase::Idle,
        from_ns,
        to_ns: last_ns.min(-1) + 1,
    });
    record.probes = Some(Box::new(Probes {
        phases: rest.into_iter().collect(),
        sent_ns: all.iter().map(|&(sent_ns, _)| sent_ns).collect(),
        rtt_ns: all.iter().map(|&(_, rtt_ns)| Some(rtt_ns)).collect(),
        ..Probes::new(PingTransport::WebSocket, target, MESSAGE_BYTES)
    }));
    probes::add(record, omit_ns);
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        Direction, Flow, FlowEnd, MetricId, RecordId, Stat, TcpDirections, TcpPlan, TcpTest, Tool,
    };
    use linerate_core::time::WallTime;

    use super::*;

    const MS: i64 = 1_000_000;

    /// Load for 8 s of which the first does not count.
    fn record() -> Record {
        let test = TcpTest {
            directions: TcpDirections::Down,
            omit_ns: 1_000_000_000,
            ..TcpTest::default()
        };
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        let plan = Plan::Tcp(TcpPlan { test, ..TcpPlan::default() });
        let mut record = Record::from_plan(id, tool, plan, at);
        let sender =
            FlowEnd { span_start_ns: 1_000_000_000, span_ns: 7_000_000_000, ..FlowEnd::default() };
        record.flows = vec![Flow {
            flow: 0,
            direction: Direction::Down,
            client_addr: "192.0.2.2:40000".to_owned(),
            server_addr: "192.0.2.1:5210".to_owned(),
            sender: Some(sender),
            receiver: None,
            syn: None,
        }];
        record
    }

    #[test]
    fn a_pages_round_trips_are_rows_of_the_record_without_those_of_the_start() {
        let mut record = record();
        let ms = |ms: u64| ms * 1_000_000;
        let delays = PageDelays {
            // Odd counts: the median by nearest rank is a value that was measured.
            idle: vec![(-300 * MS, ms(22)), (-200 * MS, ms(20)), (-100 * MS, ms(21))],
            // One within the second that is omitted, three that count, one behind the end.
            loaded: vec![
                (500 * MS, ms(900)),
                (1_500 * MS, ms(50)),
                (2_500 * MS, ms(70)),
                (3_500 * MS, ms(60)),
                (8_001 * MS, ms(800)),
            ],
        };
        add_delays(&mut record, &delays);
        let of = |metric, stat, way| record.summary_value(metric, stat, way);
        let down = Some(Direction::Down);
        assert_eq!(of(MetricId::DelayIdle, Stat::P50, None), Some(21e6));
        assert_eq!(of(MetricId::DelayLoaded, Stat::P50, down), Some(60e6));
        assert_eq!(of(MetricId::DelayLoaded, Stat::Max, down), Some(70e6));
        assert_eq!(of(MetricId::DelayAdded, Stat::Value, down), Some(39e6));
        // TCP tells nobody what was lost.
        assert_eq!(of(MetricId::DelayLoss, Stat::Value, down), None);
        let probes = record.probes.expect("they are kept");
        assert_eq!(probes.sent_ns.len(), 8);
        assert_eq!(probes.target, "192.0.2.1:5210");
    }

    #[test]
    fn a_page_that_measured_nothing_adds_nothing() {
        let mut record = record();
        add_delays(&mut record, &PageDelays::default());
        assert!(record.probes.is_none() && record.summary.is_empty());
    }
}
