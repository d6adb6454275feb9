//! From the record of a simulation back to its summary and its diagrams, so that both look alike
//! wherever they are shown.
//!
//! Left out: what a record does not keep (when each flow began, events, fast machines).

use linerate_core::record::{Direction, MetricId, Record, Series, SimulatePlan, Stat};
use linerate_core::simulate::{
    FlowSummary, RunSummary, SequencePoint, SimulationReport, TcpSummary, ceiling_bps,
};
use linerate_core::time::MonoTime;

use super::ProgressSample;
use super::plots;
use crate::number;
use crate::svg::LineChart;

/// A time-sequence diagram of the start is worth a place beside that of a run so many times as
/// long.
pub(crate) const START_WORTH: f64 = 4.0;
/// Round trips that it shows.
pub(crate) const START_ROUNDS: u32 = 24;
/// Round trips around the first loss that a diagram shows; a time-out of a second over an OC-12
/// took 22.
const ROUNDS_BEFORE_LOSS: u32 = 4;
const ROUNDS_AFTER_LOSS: u32 = 44;

/// A diagram with the name of its file.
type Chart = (&'static str, LineChart);

/// The simulation as the command shows it; without a run when nothing came of it.
pub(crate) fn report(record: &Record, plan: &SimulatePlan) -> SimulationReport {
    let facts = plan.direction_facts().ok();
    let model = plan.tcp_model();
    SimulationReport {
        plan: plan.path.as_ref().clone(),
        link_bps: facts.and_then(|[there, _]| Some(there.rate?.bits_per_sec() as f64)),
        rtt_ns: facts.map_or(0, |[there, back]| whole_nanoseconds(there.delay + back.delay)),
        ceiling_bps: facts.and_then(|[there, _]| ceiling_bps(&there, &model)),
        tcp: TcpSummary::from(&model),
        flow_count: plan.streams as usize,
        flow_bytes: plan.flow_bytes(),
        start_spread_ns: plan.start_spread_ns,
        runs: run(record, plan).into_iter().collect(),
        speed: None,
    }
}

fn run(record: &Record, plan: &SimulatePlan) -> Option<RunSummary> {
    let value = |metric| figure(record, metric, None);
    let goodput_bps = value(MetricId::Goodput)?;
    let lost = |index: usize| {
        let path = record.paths.first()?;
        Some(path.directions.get(index)?.lost_packets())
    };
    let flow = |flow: u32| {
        let flow = (plan.streams > 1).then_some(flow);
        let value = |metric| figure(record, metric, flow);
        Some(FlowSummary {
            start_ns: 0,
            goodput_bps: value(MetricId::Goodput)?,
            acked_bytes: count_or_zero(value(MetricId::Bytes)),
            transfer_ns: value(MetricId::Transfer).map(|ns| count_or_zero(Some(ns))),
            segments_sent: count_or_zero(value(MetricId::SegmentsSent)),
            retransmitted: count_or_zero(value(MetricId::Retransmits)),
            recoveries: count_or_zero(value(MetricId::LossEvents)),
            timeouts: count_or_zero(value(MetricId::Timeouts)),
            cwnd_bytes_max: count_or_zero(value(MetricId::Cwnd)),
        })
    };
    Some(RunSummary {
        seed: plan.random_seed(),
        complete: record.failure.is_none(),
        span_ns: count_or_zero(value(MetricId::Span)),
        goodput_bps,
        share_of_ceiling: record.ceiling.as_ref().and_then(|ceiling| ceiling.share),
        fairness: value(MetricId::Fairness),
        transfer_ns: value(MetricId::Transfer).map(|ns| count_or_zero(Some(ns))),
        segments_sent: count_or_zero(value(MetricId::SegmentsSent)),
        retransmitted: count_or_zero(value(MetricId::Retransmits)),
        recoveries: count_or_zero(value(MetricId::LossEvents)),
        timeouts: count_or_zero(value(MetricId::Timeouts)),
        lost_forward: lost(0).unwrap_or(0),
        lost_backward: lost(1).unwrap_or(0),
        events: 0,
        flows: (0..plan.streams).filter_map(flow).collect(),
    })
}

/// The row about one flow, or about all; a largest where there is no single value.
fn figure(record: &Record, metric: MetricId, flow: Option<u32>) -> Option<f64> {
    let mine = |row: &&linerate_core::record::Summary| {
        row.metric == metric && row.flow.map(u32::from) == flow
    };
    let mut rows = record.summary.iter().filter(mine);
    rows.find(|row| matches!(row.stat, Stat::Value | Stat::Max)).map(|row| row.value)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn count_or_zero(value: Option<f64>) -> u64 {
    value.unwrap_or(0.0) as u64
}

/// The diagrams of a record's points and intervals; those of the start and of the first loss too
/// where they are too short to be seen in the whole.
pub(crate) fn charts(record: &Record, plan: &SimulatePlan) -> Vec<Chart> {
    let flows = points(record);
    let ceiling = record.ceiling_of(Direction::Up).and_then(|ceiling| ceiling.value);
    let [sequence, windows, goodput] = plots::charts(&flows, &samples(record), ceiling);
    let rtt =
        plan.direction_facts().map(|[there, back]| there.delay + back.delay).unwrap_or_default();
    let start = MonoTime::default() + rtt * START_ROUNDS;
    let last = flows.iter().filter_map(|points| points.last()).map(|point| point.at).max();
    let worth =
        last.is_some_and(|last| last.as_nanos() as f64 > START_WORTH * start.as_nanos() as f64);
    let mut all = vec![sequence];
    if worth && !rtt.is_zero() {
        all.push(closer(&flows, "the start", MonoTime::default(), start));
        if let Some(loss) = first_loss(&flows).filter(|loss| *loss > start) {
            let before = rtt * ROUNDS_BEFORE_LOSS;
            let from = MonoTime::default()
                + loss.duration_since(MonoTime::default()).saturating_sub(before);
            all.push(closer(&flows, "the first loss", from, loss + rtt * ROUNDS_AFTER_LOSS));
        }
    }
    all.extend([windows, goodput]);
    all
}

/// The time-sequence diagram of a part of the run, counted from the begin of that part.
fn closer(flows: &[Vec<SequencePoint>], what: &str, from: MonoTime, to: MonoTime) -> Chart {
    let part = |points: &Vec<SequencePoint>| -> Vec<SequencePoint> {
        let within = || points.iter().filter(|point| (from..=to).contains(&point.at));
        let before = within().next().map_or(0, |first| first.acked_bytes);
        let before = if from == MonoTime::default() { 0 } else { before };
        let moved = |point: &SequencePoint| SequencePoint {
            at: MonoTime::from_nanos(point.at.nanos_since(from)),
            acked_bytes: point.acked_bytes - before,
            ..*point
        };
        within().map(moved).collect()
    };
    let flows: Vec<Vec<SequencePoint>> = flows.iter().map(part).collect();
    let [(name, mut chart), ..] = plots::charts(&flows, &[], None);
    chart.title = format!("Time and sequence of {what}");
    if from > MonoTime::default() {
        let begin = number::significant(from.as_nanos() as f64 / 1e9, 4);
        chart.x.label = format!("time after {begin} s, s");
        chart.y.label = "acknowledged since then, MB".to_owned();
    }
    (name, chart)
}

/// When the first flow that lost something first shrank its window: a threshold is known from then
/// on.
fn first_loss(flows: &[Vec<SequencePoint>]) -> Option<MonoTime> {
    let shrunk = flows.iter().filter_map(|points| {
        let point = points.iter().find(|point| point.ssthresh_bytes.is_some())?;
        Some(point.at)
    });
    shrunk.min()
}

/// The points of each flow that has some.
pub(crate) fn points(record: &Record) -> Vec<Vec<SequencePoint>> {
    let of = |metric, flow| {
        let mut series = record.series.iter();
        series.find(|series: &&Series| series.metric == metric && series.flow == flow)
    };
    let acked = record.series.iter().filter(|series| series.metric == MetricId::Acked);
    acked
        .map(|acked| {
            let (cwnd, ssthresh) =
                (of(MetricId::Cwnd, acked.flow), of(MetricId::Ssthresh, acked.flow));
            let at = |series: Option<&Series>, index: usize| *series?.values.get(index)?;
            let point = |index: usize, ns: u64, acked_bytes: Option<f64>| SequencePoint {
                at: MonoTime::from_nanos(ns),
                acked_bytes: count_or_zero(acked_bytes),
                cwnd_bytes: count_or_zero(at(cwnd, index)),
                ssthresh_bytes: at(ssthresh, index).map(|bytes| count_or_zero(Some(bytes))),
            };
            let values = acked.t_ns.iter().zip(&acked.values).enumerate();
            values.map(|(index, (ns, value))| point(index, *ns, *value)).collect()
        })
        .collect()
}

/// Bytes that all flows together had acknowledged at the end of each interval.
fn samples(record: &Record) -> Vec<ProgressSample> {
    let whole = |series: &&Series| series.metric == MetricId::Goodput && series.flow.is_none();
    let Some(series) = record.series.iter().find(whole) else { return Vec::new() };
    let mut samples = vec![ProgressSample { at_ns: 0, acked_bytes: 0 }];
    let (mut before_ns, mut acked) = (0, 0.0);
    for (&at_ns, value) in series.t_ns.iter().zip(&series.values) {
        acked += value.unwrap_or(0.0) * at_ns.saturating_sub(before_ns) as f64 / 8e9;
        before_ns = at_ns;
        samples.push(ProgressSample { at_ns, acked_bytes: count_or_zero(Some(acked.round())) });
    }
    samples
}

fn whole_nanoseconds(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
