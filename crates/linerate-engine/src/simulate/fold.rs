//! From what a simulation gave to its record: summary, series, path. Pure.
//!
//! A goodput is acknowledged payload over the time from the first start (or the end of the omitted
//! span) to the end; counts are of the whole run, as those of a kernel are.

use linerate_core::record::{
    Direction, EmulatedPath, FlowSide, MeasurementEnd, MetricId, PathDirection, PathLoss, Record,
    Series, SimulatePlan, Stat, Summary,
};
use linerate_core::simulate::{DirectionResult, FlowResult, SequencePoint};
use linerate_core::stats::jain_index;
use linerate_core::time::MonoTime;

use super::Driven;
use super::ceiling::ceiling;
use crate::path::witness::cause_name;

/// Flows of which each has all its rows; of more, each has its goodput alone.
const FLOWS_WITH_ROWS: usize = 16;

/// How much of all flows was acknowledged at a time.
pub(super) type Sample = (MonoTime, u64);

/// The machine that computed. What its kernel does with TCP has nothing to do with the result.
pub(super) fn without_tcp_settings(end: MeasurementEnd) -> MeasurementEnd {
    MeasurementEnd {
        congestion_control_default: None,
        tcp_rmem_bytes: None,
        tcp_wmem_bytes: None,
        rmem_max_bytes: None,
        wmem_max_bytes: None,
        tcp: None,
        ..end
    }
}

/// A figure of a point.
type Figure = fn(&SequencePoint) -> Option<u64>;

/// Fills the record of the simulation.
pub(super) fn fill_record(
    record: &mut Record,
    plan: &SimulatePlan,
    driven: &Driven,
    samples: &[Sample],
) {
    record.summary = summary(plan, driven);
    record.series = series(driven, samples);
    record.paths = vec![emulated_path(plan, driven)];
    let goodput = record.summary_value(MetricId::Goodput, Stat::Value, Some(Direction::Up));
    record.ceiling = Some(ceiling(plan, driven.rtt_min, goodput));
}

/// The measured part of one flow.
struct MeasuredFlowPart {
    bytes: u64,
    begin_ns: u64,
    end_ns: u64,
}

impl MeasuredFlowPart {
    fn goodput_bps(&self) -> Option<f64> {
        rate_bps(self.bytes, self.end_ns.saturating_sub(self.begin_ns))
    }
}

fn measured_parts(plan: &SimulatePlan, driven: &Driven) -> Vec<MeasuredFlowPart> {
    let span_ns = saturating_nanos(driven.result.span);
    let flows = driven.flows.iter().zip(&driven.result.flows).enumerate();
    flows
        .map(|(index, (flow, result))| {
            let start_ns = flow.start.as_nanos();
            let before = driven.acked_before.get(index).copied().unwrap_or(0);
            let took_ns = result.finished_after.map(saturating_nanos);
            MeasuredFlowPart {
                bytes: result.acked_bytes - before,
                begin_ns: start_ns.max(plan.omit_ns),
                end_ns: took_ns.map_or(span_ns, |took_ns| start_ns + took_ns),
            }
        })
        .collect()
}

fn summary(plan: &SimulatePlan, driven: &Driven) -> Vec<Summary> {
    let parts = measured_parts(plan, driven);
    let flows = &driven.result.flows;
    let mut rows = Vec::new();
    // What is stopped within the omitted span has no result.
    if plan.omit_ns == 0 || !driven.acked_before.is_empty() {
        rows.extend(totals(driven, &parts));
    }
    rows.extend(counts(flows));
    if parts.len() > 1 {
        let rates: Option<Vec<f64>> = parts.iter().map(MeasuredFlowPart::goodput_bps).collect();
        let fairness = rates.as_deref().and_then(jain_index);
        rows.extend(
            fairness.map(|index| Summary::from_value(MetricId::Fairness, Stat::Value, index)),
        );
        for (number, (part, flow)) in (0..).zip(parts.iter().zip(flows)) {
            let mut own = part_rows(part, flow, parts.len() <= FLOWS_WITH_ROWS);
            own.iter_mut().for_each(|row| row.flow = Some(number));
            rows.extend(own);
        }
    }
    rows.into_iter().map(|row| row.in_direction(Direction::Up)).collect()
}

/// Bytes, span and rate of all flows together, and the time of the whole transfer.
fn totals(driven: &Driven, parts: &[MeasuredFlowPart]) -> Vec<Summary> {
    let begin_ns = parts.iter().map(|part| part.begin_ns).min().unwrap_or(0);
    let end_ns = parts.iter().map(|part| part.end_ns).max().unwrap_or(0);
    let span_ns = end_ns.saturating_sub(begin_ns);
    let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    let n = parts.len() as u64;
    let goodput = rate_bps(bytes, span_ns);
    let ended = driven.result.flows.iter().all(|flow| flow.finished_after.is_some());
    let transfer =
        ended.then(|| Summary::from_value(MetricId::Transfer, Stat::Value, span_ns as f64));
    let mut rows = Vec::new();
    rows.extend(
        goodput.map(|bps| Summary::from_value(MetricId::Goodput, Stat::Value, bps).with_n(n)),
    );
    rows.push(Summary::from_value(MetricId::Bytes, Stat::Value, bytes as f64).with_n(n));
    rows.push(Summary::from_value(MetricId::Span, Stat::Value, span_ns as f64).with_n(n));
    rows.extend(transfer);
    rows
}

/// The counts of the senders, of all flows together.
fn counts(flows: &[FlowResult]) -> Vec<Summary> {
    let sum = |count: fn(&FlowResult) -> u64| flows.iter().map(count).sum::<u64>();
    let (sent, again) = (sum(|flow| flow.segments_sent), sum(|flow| flow.retransmitted));
    let value = |metric, count: u64| Summary::from_value(metric, Stat::Value, count as f64);
    let mut rows = vec![value(MetricId::SegmentsSent, sent), value(MetricId::Retransmits, again)];
    rows.extend((sent > 0).then(|| {
        Summary::from_value(MetricId::RetransmitRatio, Stat::Value, again as f64 / sent as f64)
    }));
    rows.push(value(MetricId::LossEvents, sum(|flow| flow.recoveries)));
    rows.push(value(MetricId::Timeouts, sum(|flow| flow.timeouts)));
    let largest = flows.iter().map(|flow| flow.cwnd_bytes_max).max().unwrap_or(0);
    rows.push(Summary::from_value(MetricId::Cwnd, Stat::Max, largest as f64));
    rows
}

fn part_rows(part: &MeasuredFlowPart, flow: &FlowResult, all: bool) -> Vec<Summary> {
    let goodput = part.goodput_bps();
    let goodput = goodput.map(|bps| Summary::from_value(MetricId::Goodput, Stat::Value, bps));
    let mut rows: Vec<Summary> = goodput.into_iter().collect();
    if all {
        rows.push(Summary::from_value(MetricId::Bytes, Stat::Value, part.bytes as f64));
        let transfer = flow.finished_after.map(|took| saturating_nanos(took) as f64);
        rows.extend(transfer.map(|ns| Summary::from_value(MetricId::Transfer, Stat::Value, ns)));
        rows.extend(counts(std::slice::from_ref(flow)));
    }
    rows
}

/// Goodput of all flows in each interval, and the points of the first flows.
fn series(driven: &Driven, samples: &[Sample]) -> Vec<Series> {
    let mut all = Vec::new();
    let begin = (MonoTime::default(), 0);
    let whole: Vec<Sample> = std::iter::once(begin).chain(samples.iter().copied()).collect();
    let rate = |pair: &[Sample]| {
        let (before, now) = (pair[0], pair[1]);
        Some((now.0.as_nanos(), rate_bps(now.1 - before.1, now.0.nanos_since(before.0))?))
    };
    let (t_ns, values) = whole.windows(2).filter_map(rate).map(|(at, bps)| (at, Some(bps))).unzip();
    let goodput = Series {
        metric: MetricId::Goodput,
        direction: Some(Direction::Up),
        flow: None,
        side: Some(FlowSide::Sender),
        payload_bytes: None,
        t_ns,
        values,
    };
    all.push(goodput);
    for (flow, result) in (0..).zip(&driven.result.flows) {
        if result.points.is_empty() {
            continue;
        }
        let figures: [(MetricId, Figure); 3] = [
            (MetricId::Acked, |point| Some(point.acked_bytes)),
            (MetricId::Cwnd, |point| Some(point.cwnd_bytes)),
            (MetricId::Ssthresh, |point| point.ssthresh_bytes),
        ];
        let series = figures.map(|(metric, figure)| Series {
            metric,
            direction: Some(Direction::Up),
            flow: Some(flow),
            side: Some(FlowSide::Sender),
            payload_bytes: None,
            t_ns: result.points.iter().map(|point| point.at.as_nanos()).collect(),
            values: result
                .points
                .iter()
                .map(|point| figure(point).map(|value| value as f64))
                .collect(),
        });
        // A flow that lost nothing has no threshold.
        let told = |series: &Series| series.values.iter().any(Option::is_some);
        all.extend(series.into_iter().filter(told));
    }
    all
}

/// The account of the path, as of an emulated one. It held no packet, only their lengths.
fn emulated_path(plan: &SimulatePlan, driven: &Driven) -> EmulatedPath {
    let [forward, backward] = &driven.result.directions;
    EmulatedPath {
        name: super::object(plan).to_owned(),
        datapath: "virtual time".to_owned(),
        plan: plan.path.as_ref().clone(),
        seed: plan.random_seed(),
        mtu_bytes: plan.tcp.mss_bytes + plan.tcp.header_bytes,
        span_ns: saturating_nanos(driven.result.span),
        directions: vec![direction(forward, Direction::Up), direction(backward, Direction::Down)],
        ..EmulatedPath::default()
    }
}

fn direction(done: &DirectionResult, direction: Direction) -> PathDirection {
    let lost = done.lost.iter().map(|(cause, packets)| PathLoss {
        cause: cause_name(*cause).to_owned(),
        packets: *packets,
    });
    PathDirection {
        backward: direction == Direction::Down,
        direction: Some(direction),
        taken_packets: done.taken_packets,
        taken_bytes: done.taken_bytes,
        delivered_packets: done.delivered_packets,
        delivered_bytes: done.delivered_bytes,
        copied_packets: done.copied_packets,
        lost: lost.collect(),
        ..PathDirection::default()
    }
}

fn rate_bps(bytes: u64, span_ns: u64) -> Option<f64> {
    (span_ns > 0).then(|| bytes as f64 * 8e9 / span_ns as f64)
}

fn saturating_nanos(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
