//! What a simulation is stored and shown as: its path, its TCP, and one summary for each seed.

use std::time::Duration;

use serde::Serialize;

use super::{FlowPlan, SimulationResult, TcpModel};
use crate::path::DirectionFacts;
use crate::record::PathPlan;
use crate::stats::{Moments, jain_index};

/// A simulation with one seed or several.
#[derive(Clone, Debug, Serialize)]
pub struct SimulationReport {
    /// The path, as it was planned.
    pub plan: PathPlan,
    /// Rate of the link on the way of the data, as its framing counts; absent without a link.
    pub link_bps: Option<f64>,
    /// Round trip of an empty path, jitter at its most.
    pub rtt_ns: u64,
    /// The most payload that the link carries in full segments of the flows.
    pub ceiling_bps: Option<f64>,
    /// TCP of the flows.
    pub tcp: TcpSummary,
    /// Number of flows.
    pub flow_count: usize,
    /// Bytes that each of them sends; without an end when absent.
    pub flow_bytes: Option<u64>,
    /// Span within which the flows begin at random times.
    pub start_spread_ns: u64,
    /// Summaries of the runs, one for each seed.
    pub runs: Vec<RunSummary>,
    /// Speed of this machine in the simulation.
    pub speed: Option<Speed>,
}

/// A TCP, in the units of records.
#[derive(Clone, Debug, Serialize)]
pub struct TcpSummary {
    /// `reno`, `cubic`, `bbr`.
    pub congestion_control: &'static str,
    /// `reno`, `newreno`, `sack`, `rack`.
    pub recovery: &'static str,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// IP and TCP headers of each packet.
    pub header_bytes: u32,
    /// Segments in the first flight.
    pub initial_window: u32,
    /// Slow start ends early.
    pub hystart: bool,
    /// Segments leave in pieces of a millisecond.
    pub segmentation_offload: bool,
    /// The window grows by the bytes that acknowledgements cover, not by their number.
    pub bytes_counted: bool,
    /// Window that the receiver offers.
    pub window_bytes: u64,
    /// Segments after which an acknowledgement is sent.
    pub ack_every: u32,
    /// Shortest retransmission time-out.
    pub rto_min_ns: u64,
}

impl From<&TcpModel> for TcpSummary {
    fn from(tcp: &TcpModel) -> Self {
        Self {
            congestion_control: tcp.congestion_control.name(),
            recovery: tcp.recovery.name(),
            mss_bytes: tcp.mss_bytes,
            header_bytes: tcp.header_bytes,
            initial_window: tcp.initial_window,
            hystart: tcp.hystart,
            segmentation_offload: tcp.offload,
            bytes_counted: tcp.growth_per_ack > 1,
            window_bytes: tcp.window_bytes,
            ack_every: tcp.ack_every,
            rto_min_ns: duration_nanos(tcp.rto_min),
        }
    }
}

/// Figures of the run of one seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// The seed of the path and of the flows' starts.
    pub seed: u64,
    /// False when it was interrupted, or flows with an end did not reach it.
    pub complete: bool,
    /// Virtual time that passed.
    pub span_ns: u64,
    /// Payload of all flows that was acknowledged, over the time from the first start to the end.
    pub goodput_bps: f64,
    /// Part of the ceiling.
    pub share_of_ceiling: Option<f64>,
    /// Jain's index of the flows' goodputs; absent for one flow.
    pub fairness: Option<f64>,
    /// Time from the first start until the last flow had reached its end.
    pub transfer_ns: Option<u64>,
    /// Segments sent, retransmissions among them.
    pub segments_sent: u64,
    /// Number of segments sent again.
    pub retransmitted: u64,
    /// Times that a sender entered fast recovery.
    pub recoveries: u64,
    /// Times that a timer ran out.
    pub timeouts: u64,
    /// Data packets lost by any cause.
    pub lost_forward: u64,
    /// Number of acknowledgements lost.
    pub lost_backward: u64,
    /// Packets delivered and timers run.
    pub events: u64,
    /// Figures of each flow.
    pub flows: Vec<FlowSummary>,
}

/// Figures of one flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Time at which it began.
    pub start_ns: u64,
    /// Payload acknowledged over the flow's time.
    pub goodput_bps: f64,
    /// Payload bytes that were acknowledged.
    pub acked_bytes: u64,
    /// Time until everything was acknowledged; absent without an end, or when it was not reached.
    pub transfer_ns: Option<u64>,
    /// Segments sent, retransmissions among them.
    pub segments_sent: u64,
    /// Number of segments sent again.
    pub retransmitted: u64,
    /// Times that it entered fast recovery.
    pub recoveries: u64,
    /// Times that its timer ran out.
    pub timeouts: u64,
    /// The largest congestion window.
    pub cwnd_bytes_max: u64,
}

/// Speed of a simulation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speed {
    /// Time that it took.
    pub wall_ns: u64,
    /// Virtual seconds in each second.
    pub simulated_s_per_s: f64,
    /// Packets delivered and timers run in each second.
    pub events_per_s: f64,
}

impl SimulationReport {
    /// Smallest, largest, mean and standard deviation of a figure over the runs.
    pub fn over_runs(&self, figure: impl Fn(&RunSummary) -> Option<f64>) -> Moments {
        let mut moments = Moments::default();
        moments.extend(self.runs.iter().filter_map(figure));
        moments
    }
}

impl RunSummary {
    /// The summary of `result`, whose flows were `plans`. It is complete when it was `finished`
    /// and no flow with an end is short of it.
    pub fn new(
        seed: u64,
        plans: &[FlowPlan],
        result: &SimulationResult,
        ceiling_bps: Option<f64>,
        finished: bool,
    ) -> Self {
        let span = result.span;
        let flows: Vec<FlowSummary> = plans
            .iter()
            .zip(&result.flows)
            .map(|(plan, flow)| flow_summary(plan, flow, span))
            .collect();
        let sum = |figure: fn(&FlowSummary) -> u64| flows.iter().map(figure).sum::<u64>();
        let begin_ns = flows.iter().map(|flow| flow.start_ns).min().unwrap_or(0);
        let goodput_bps = mean_rate_bps(
            sum(|flow| flow.acked_bytes),
            duration_nanos(span).saturating_sub(begin_ns),
        );
        let ends = flows.iter().map(|flow| Some(flow.start_ns + flow.transfer_ns?));
        let last_end = ends.collect::<Option<Vec<u64>>>().and_then(|ends| ends.into_iter().max());
        let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput_bps).collect();
        let reached = plans.iter().all(|plan| plan.bytes.is_none()) || last_end.is_some();
        Self {
            seed,
            complete: finished && reached,
            span_ns: duration_nanos(span),
            goodput_bps,
            share_of_ceiling: ceiling_bps.map(|ceiling| goodput_bps / ceiling),
            fairness: if flows.len() > 1 { jain_index(&goodputs) } else { None },
            transfer_ns: last_end.map(|end| end - begin_ns),
            segments_sent: sum(|flow| flow.segments_sent),
            retransmitted: sum(|flow| flow.retransmitted),
            recoveries: sum(|flow| flow.recoveries),
            timeouts: sum(|flow| flow.timeouts),
            lost_forward: result.lost_forward,
            lost_backward: result.lost_backward,
            events: result.events,
            flows,
        }
    }
}

fn flow_summary(plan: &FlowPlan, flow: &super::FlowResult, span: Duration) -> FlowSummary {
    let start_ns = plan.start.as_nanos();
    let transfer_ns = flow.finished_after.map(duration_nanos);
    let time_ns = transfer_ns.unwrap_or_else(|| duration_nanos(span).saturating_sub(start_ns));
    FlowSummary {
        start_ns,
        goodput_bps: mean_rate_bps(flow.acked_bytes, time_ns),
        acked_bytes: flow.acked_bytes,
        transfer_ns,
        segments_sent: flow.segments_sent,
        retransmitted: flow.retransmitted,
        recoveries: flow.recoveries,
        timeouts: flow.timeouts,
        cwnd_bytes_max: flow.cwnd_bytes_max,
    }
}

fn mean_rate_bps(bytes: u64, span_ns: u64) -> f64 {
    if span_ns == 0 { 0.0 } else { bytes as f64 * 8e9 / span_ns as f64 }
}

fn duration_nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// The most payload that a link carries in full segments, in bit/s; absent without a link.
pub fn ceiling_bps(facts: &DirectionFacts, tcp: &TcpModel) -> Option<f64> {
    let line_bytes = facts.framing.line_bytes(tcp.mss_bytes + tcp.header_bytes);
    let share = f64::from(tcp.mss_bytes) / f64::from(line_bytes);
    facts.rate.map(|rate| rate.bits_per_sec() as f64 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::IpFamily;
    use crate::theory::framing::{SegmentHeaders, Transport};
    use crate::theory::stack::{StackPlan, layer_rates};
    use crate::time::MonoTime;

    #[test]
    fn the_ceiling_is_that_of_the_stack() {
        let plan: PathPlan =
            crate::tree::from_toml("link = \"oc12\"\ncarrier = \"aal5-llcsnap\"").expect("a plan");
        let facts = plan.direction_facts().expect("it can be built")[0];
        let tcp = TcpModel { header_bytes: 52, mss_bytes: 9128, ..TcpModel::OF_1999 };
        let segment =
            SegmentHeaders { family: IpFamily::V4, transport: Transport::TcpWithTimestamps };
        let link = "oc12".parse().expect("a link");
        let carrier = "aal5-llcsnap".parse().expect("a carrier");
        let stack = layer_rates(&StackPlan {
            link,
            carrier,
            encapsulations: vec![],
            mtu_bytes: 9180,
            segment,
        });
        let expected = stack.expect("a possible link").payload_bps;
        let got = ceiling_bps(&facts, &tcp).expect("it has a rate");
        assert!((got / expected - 1.0).abs() < 1e-6, "{got}, stack {expected}");
    }

    #[test]
    fn a_flow_is_judged_by_its_own_time_and_the_whole_by_all_of_it() {
        // 1 MB in 0.8 s from 0.2 s on, and 2 MB in 1 s from 0 on: 10 and 16 Mbit/s, 24 together.
        let flow = |start_ms: u64, bytes| FlowPlan {
            tcp: TcpModel::TODAY,
            start: MonoTime::from_nanos(start_ms * 1_000_000),
            bytes: Some(bytes),
            hash: 0,
            points: None,
        };
        let done = |acked_bytes, ms| super::super::FlowResult {
            acked_bytes,
            finished_after: Some(Duration::from_millis(ms)),
            ..Default::default()
        };
        let result = SimulationResult {
            flows: vec![done(1_000_000, 800), done(2_000_000, 1000)],
            span: Duration::from_secs(1),
            events: 0,
            lost_forward: 0,
            lost_backward: 0,
            directions: Default::default(),
        };
        let plans = [flow(200, 1_000_000), flow(0, 2_000_000)];
        let run = RunSummary::new(1, &plans, &result, Some(48e6), true);
        let rates: Vec<f64> = run.flows.iter().map(|flow| flow.goodput_bps / 1e6).collect();
        assert_eq!((rates, run.goodput_bps / 1e6), (vec![10.0, 16.0], 24.0));
        assert_eq!((run.share_of_ceiling, run.transfer_ns), (Some(0.5), Some(1_000_000_000)));
        // 26² / (2 (100 + 256)) = 0.9494.
        assert!((run.fairness.expect("two flows") - 0.9494).abs() < 1e-4);
        assert!(run.complete);
    }
}
