//! Cases in which the diagnosis and what a record states beside it named different limits.

use super::*;
use crate::explain::decide;
use crate::record::{Caveat, Confidence};

fn limit_of(by: LimitedBy, ground: Ground, way: Direction) -> Limitation {
    Limitation::new(by, ground).of_way(way)
}

/// A live record over a path with a known cause: see testdata/explain.
fn stored(name: &str) -> Record {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/explain/records/");
    let text = std::fs::read_to_string(format!("{root}{name}.json")).expect("it is there");
    crate::tree::from_json(&text).expect("a record")
}

/// A sender whose thread waited for a core for this share of the time.
fn waiting(name: &str, percent: u64) -> Record {
    let mut record = stored(name);
    for end in record.flows.iter_mut().filter_map(|flow| flow.sender.as_mut()) {
        end.run_queue_wait_ns = Some((end.span_start_ns + end.span_ns) * percent / 100);
        // What it computed besides is little.
        (end.cpu_user_ns, end.cpu_system_ns) = (Some(0), Some(0));
    }
    let detail = format!("a sender thread waited {percent} % of the time for a core");
    record.caveats.push(Caveat::new(CaveatCode::RunQueueWait, detail, "stop other work"));
    record
}

fn decided(record: &Record) -> (LimitedBy, Option<Cause>, Quality) {
    let decision = decide(record);
    let verdict = &decision.verdicts[0];
    assert_eq!(verdict.limited_by, decision.limitation.by);
    (decision.limitation.by, verdict.cause, decision.quality)
}

#[test]
fn a_host_that_limits_one_way_is_not_said_to_limit_both() {
    let diagnosis = Ground::Diagnosis(Cause::Shaper);
    let up = limit_of(LimitedBy::Path, diagnosis.clone(), Direction::Up);
    let down = limit_of(LimitedBy::ThisHost, Ground::OneHost, Direction::Down);
    assert_eq!(together(vec![up.clone(), down.clone()]), (down, Some(up.clone())));
    let same = limit_of(LimitedBy::Path, diagnosis, Direction::Down);
    let (first, other) = together(vec![up, same]);
    assert_eq!((first.by, first.way, other), (LimitedBy::Path, None, None));
}

#[test]
fn a_host_that_waited_for_a_core_is_the_limit_where_the_diagnosis_is_not_sure() {
    // Losses leave the cause open: a host that waited for three quarters of the time names it.
    let host = (LimitedBy::ThisHost, Some(Cause::SendingHost), Quality::Doubtful);
    assert_eq!(decided(&waiting("loss2", 73)), host);
    // For a ninth of the time it explains no rate that losses explain.
    let path = (LimitedBy::Path, None, Quality::Doubtful);
    assert_eq!(decided(&waiting("loss2", 11)), path);
    // A window that is full in every sample is not made by a thread that waits.
    let window = (LimitedBy::Window, Some(Cause::ReceiveWindow), Quality::Doubtful);
    assert_eq!(decided(&waiting("rmem", 73)), window);
}

#[test]
fn a_tester_that_spoilt_the_measurement_leaves_what_is_certain() {
    let spoilt = |name| {
        let mut record = stored(name);
        let detail = "its hypervisor took 4.4 % of its CPU time";
        record.caveats.push(Caveat::new(CaveatCode::StolenTime, detail, "repeat"));
        record
    };
    // 97.9 % of the link's ceiling arrived.
    let full = (LimitedBy::Link, Some(Cause::Link), Quality::Doubtful);
    assert_eq!(decided(&spoilt("base")), full);
    // Losses may be the tester's.
    assert_eq!(decided(&spoilt("loss2")), (LimitedBy::NotKnown, None, Quality::Doubtful));
}

#[test]
fn segments_sent_again_on_a_short_path_are_seen_by_the_diagnosis_too() {
    let mut record = stored("loss2");
    // A round trip of 0.2 ms that grows to 0.32 ms by what hosts do: no queue, and not none.
    let rtt = |metric, stat| match (metric, stat) {
        (MetricId::TcpRttMin | MetricId::IdleRtt | MetricId::DelayIdle, _) => Some(0.2e6),
        (MetricId::TcpRtt | MetricId::DelayLoaded, _) => Some(0.32e6),
        (MetricId::RetransmitRatio, Stat::Value) => Some(0.0735),
        _ => None,
    };
    for row in &mut record.summary {
        row.value = rtt(row.metric, row.stat).unwrap_or(row.value);
    }
    for series in record.series.iter_mut().filter(|it| it.metric == MetricId::TcpRtt) {
        series.values.iter_mut().for_each(|value| *value = Some(0.32e6));
    }
    let decision = decide(&record);
    assert_eq!(decision.limitation.ground, Ground::SentAgain(0.0735));
    let verdict = &decision.verdicts[0];
    assert_eq!((verdict.limited_by, verdict.confidence), (LimitedBy::Path, Some(Confidence::Low)));
    assert!(verdict.between.contains(&Cause::RandomLoss), "{verdict:?}");
    assert!(verdict.evidence.iter().any(|sign| sign.value == 0.0735), "{verdict:?}");
}

#[test]
fn a_sender_waited_for_what_its_kernel_counted_most_of() {
    let waited = |window_us, buffer_us| {
        let mut record = stored("loss2");
        for end in record.flows.iter_mut().filter_map(|flow| flow.sender.as_mut()) {
            let info = end.tcp_info.as_mut().expect("a live record has it");
            info.busy_time_us = Some(1000);
            (info.rwnd_limited_us, info.sndbuf_limited_us) = (Some(window_us), Some(buffer_us));
        }
        counters::waited(&record, Direction::Up).map(|limit| limit.ground)
    };
    assert_eq!(waited(600, 100), Some(Ground::WaitedForWindow(0.6)));
    assert_eq!(waited(100, 600), Some(Ground::WaitedForBuffer(0.6)));
    assert_eq!(waited(400, 499), None, "most of the time it sent");
}
