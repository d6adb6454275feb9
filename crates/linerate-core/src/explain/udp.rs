//! The limit of a record of a UDP test: where datagrams were lost, a sender that sends no faster,
//! and what ended a search for the capacity.
//!
//! Left out: results of other programs; `datagrams` has them.

use super::counters::{LOSSY_FROM, full_link, host_of};
use super::limitation::{Ground, Limitation};
use crate::record::{
    CaveatCode, Direction, FlowSide, LimitedBy, MetricId, Plan, Record, Stat, UdpPlan,
    dropped_at_interface,
};

/// The end or the path where most of the lost datagrams were lost; a sender without a pace of which
/// hardly anything is lost is the limit itself.
pub(super) fn loss_limit(record: &Record, way: Direction) -> Option<Limitation> {
    let Plan::Udp(plan) = &record.plan else { return None };
    let value = |metric| record.summary_value(metric, Stat::Value, Some(way)).unwrap_or(0.0);
    let (lost, ratio) = (value(MetricId::DatagramsLost), value(MetricId::DatagramLossRatio));
    if ratio < LOSSY_FROM {
        return unpaced(record, plan, way);
    }
    let here = value(MetricId::DatagramsLostHere);
    let flows = record.flows.iter().filter(|flow| flow.direction == way);
    let dropped = dropped_at_interface(flows).unwrap_or(0) as f64;
    Some(if here * 2.0 > lost {
        let by = host_of(record, way, FlowSide::Receiver);
        Limitation::new(by, Ground::LostAtSocket(here, lost))
    } else if dropped * 2.0 > lost {
        let by = host_of(record, way, FlowSide::Sender);
        Limitation::new(by, Ground::LostAtInterface(dropped, lost))
    } else {
        Limitation::new(LimitedBy::Path, Ground::LostOnPath)
    })
}

fn unpaced(record: &Record, plan: &UdpPlan, way: Direction) -> Option<Limitation> {
    let arrived =
        record.summary_value(MetricId::DatagramLossRatio, Stat::Value, Some(way)).is_some();
    let sender = || Limitation::new(host_of(record, way, FlowSide::Sender), Ground::SendsNoFaster);
    (plan.test.pace.is_none() && arrived).then(sender)
}

/// The limit of a search for the capacity.
pub(super) fn searched(record: &Record) -> Limitation {
    let has = |code| record.caveats.iter().find(|caveat| caveat.code == code);
    let Some(found) = record.search.as_ref().filter(|found| found.best_interval().is_some()) else {
        return Limitation::new(LimitedBy::NotKnown, Ground::Nothing);
    };
    if let Some(full) = record.ceiling_of(found.direction).and_then(full_link) {
        return full;
    }
    if let Some(caveat) = has(CaveatCode::PaceNotKept) {
        let by = host_of(record, found.direction, FlowSide::Sender);
        return Limitation::new(by, Ground::Caveat(caveat.clone()));
    }
    match has(CaveatCode::SearchUnfinished) {
        Some(_) => Limitation::new(LimitedBy::Time, Ground::StillRising),
        None if found.confirmed_ns.is_some() => Limitation::new(LimitedBy::Path, Ground::MoreLost),
        None => Limitation::new(LimitedBy::Pace, Ground::HighestPassed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RecordId, Summary, Tool};
    use crate::time::WallTime;
    use crate::units::BitRate;

    /// Limit shown by a UDP test's losses: datagrams lost of those sent at a pace or without one,
    /// and how many of these at the receiver's socket.
    fn limit_of_counts(
        pace: Option<BitRate>,
        counts: Option<[f64; 2]>,
    ) -> Option<(LimitedBy, Ground)> {
        let mut plan = UdpPlan::default();
        plan.test.pace = pace;
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let (id, at) = (RecordId::from_parts(1, [0; 10]), WallTime::from_unix_nanos(0));
        let mut record = Record::from_plan(id, tool, Plan::Udp(plan), at);
        let row = |metric, value| {
            Summary::from_value(metric, Stat::Value, value).in_direction(Direction::Up)
        };
        if let Some([lost, here]) = counts {
            record.summary = vec![
                row(MetricId::DatagramsLost, lost),
                row(MetricId::DatagramLossRatio, lost / 10_000.0),
                row(MetricId::DatagramsLostHere, here),
            ];
        }
        loss_limit(&record, Direction::Up).map(|limit| (limit.by, limit.ground))
    }

    #[test]
    fn a_sender_without_a_pace_that_loses_nothing_is_the_limit_and_one_with_a_pace_is_not() {
        let paced = Some(BitRate::from_bits_per_sec(1_000_000));
        let sender = Some((LimitedBy::ThisHost, Ground::SendsNoFaster));
        assert_eq!(limit_of_counts(None, Some([0.0, 0.0])), sender);
        assert_eq!(limit_of_counts(paced, Some([0.0, 0.0])), None);
        assert_eq!(limit_of_counts(None, None), None, "nobody told what arrived");
        // More than half of 100 at the receiver's socket, and half.
        let socket = Some((LimitedBy::OtherEnd, Ground::LostAtSocket(51.0, 100.0)));
        assert_eq!(limit_of_counts(paced, Some([100.0, 51.0])), socket);
        let path = Some((LimitedBy::Path, Ground::LostOnPath));
        assert_eq!(limit_of_counts(paced, Some([100.0, 50.0])), path);
    }
}
