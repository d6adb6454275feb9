//! The model beside live results over paths whose cause is known (testdata/explain).

use super::{path_of, try_changes};
use crate::explain::explain;
use crate::record::{LimitVerdict, MetricId, NextBound, Record, Remedy, RemedyCommand, Stat};

const HELD: &str = include_str!("../../../../../testdata/explain/records/rmem.json");
const FREE: &str = include_str!("../../../../../testdata/explain/records/base.json");

/// The verdict of the record of a small receive window, as if interfaces of this rate told it.
fn over(bps: u64) -> (LimitVerdict, LimitVerdict) {
    judged(crate::tree::from_json(HELD).expect("a record"), bps)
}

fn judged(mut record: Record, bps: u64) -> (LimitVerdict, LimitVerdict) {
    for interface in record.ends.iter_mut().filter_map(|end| end.interface.as_mut()) {
        interface.kind = None;
        interface.speed_bps = Some(bps);
    }
    let mut verdicts = explain(&record);
    let before = verdicts[0].clone();
    try_changes(&record, &mut verdicts);
    (before, verdicts.remove(0))
}

#[test]
fn the_rate_promised_without_a_window_is_the_one_measured_without_it() {
    let free: Record = crate::tree::from_json(FREE).expect("a record");
    let live = free.summary_value(MetricId::Goodput, Stat::Value, None).expect("it was measured");
    let (before, verdict) = over(100_000_000);
    let model = verdict.model.expect("a model");
    assert!(model.agrees, "{model:?}, measured {:?}", before.measured_bps);
    let promised = model.without_cause_bps.expect("a promise");
    assert!((promised / live - 1.0).abs() <= 0.15, "{promised}, the kernel {live}");
    let next = verdict.next.expect("a next limit");
    assert_eq!((next.bound, next.bps), (NextBound::PathLink, promised));
    // The buffer of the remedy is twice the bandwidth-delay product: the link is the limit then.
    let tried = model.remedies.first().expect("a line to type");
    let raises = matches!(tried.remedy, Remedy::Line(RemedyCommand::RaiseBuffer { .. }));
    assert!(raises && tried.bps > 0.9 * promised, "{tried:?}");
}

#[test]
fn a_send_buffer_that_holds_next_is_named() {
    let next = |bytes| {
        let mut record: Record = crate::tree::from_json(HELD).expect("a record");
        record.ends.iter_mut().for_each(|end| end.tcp_wmem_bytes = Some([4096, 16_384, bytes]));
        judged(record, 100_000_000).1.next.expect("a next limit")
    };
    let held = next(100_000);
    assert!(held.bound == NextBound::SendBuffer && held.bps < 30e6, "{held:?}");
    assert_eq!(next(4_000_000).bound, NextBound::PathLink);
}

#[test]
fn a_model_that_does_not_reach_the_measured_rate_promises_nothing() {
    // 15.6 Mbit/s were measured; a link of 10 cannot carry them.
    let (before, verdict) = over(10_000_000);
    if let Some(model) = &verdict.model {
        assert!(!model.agrees && model.without_cause_bps.is_none(), "{model:?}");
        assert!(model.remedies.is_empty(), "{model:?}");
    }
    assert_eq!(verdict.next, before.next);
}

#[test]
fn a_record_without_trains_gives_no_path() {
    assert_eq!(path_of(&crate::tree::from_json(HELD).expect("a record")), None);
}
