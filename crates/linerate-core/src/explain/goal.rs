//! Figures beside a verdict: the three of RFC 6349, and whether the path carries a goal that is
//! farther away than its other end (RFC 8337, pathdiag).
//!
//! Left out: the ideal rate, which is the verdict's ceiling; losses that a flow causes itself by
//! filling the path, which trains below its rate do not have.

use std::str::FromStr;
use std::time::Duration;

use super::evidence::Evidence;
use super::twin::measured;
use crate::record::{
    Criterion, CriterionKind, Direction, FlowSide, GoalAnswer, GoalPlan, LimitVerdict, Plan,
    Reached, Record, TestPlan, TransferFigures,
};
use crate::theory::rfc6349::{buffer_delay, efficiency, transfer_time_ratio};
use crate::theory::sequential::{Risk, Sprt, SprtDecision, Target, target_run_packets};
use crate::units::{BitRate, Bytes, parse_span};

/// Trains that offer more than this share of what the path carries lose by themselves.
const BELOW_CAPACITY: f64 = 0.95;
/// IP and TCP headers with timestamps.
const HEADER_BYTES: u32 = 52;

/// A rate to hold over a round trip: `1G@21ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateGoal {
    /// Rate of a bulk transfer.
    pub rate: BitRate,
    /// Round trip of the whole path that it goes over.
    pub rtt: Duration,
}

impl RateGoal {
    /// As a plan has it.
    pub fn goal_plan(self) -> GoalPlan {
        let rtt_ns = u64::try_from(self.rtt.as_nanos()).unwrap_or(u64::MAX);
        GoalPlan { rate: self.rate, rtt_ns }
    }

    /// Goal in the plan of a record, if it has one.
    fn from_record(record: &Record) -> Option<Self> {
        let Plan::Test(TestPlan { goal: Some(goal), .. }) = &record.plan else { return None };
        Some(Self { rate: goal.rate, rtt: Duration::from_nanos(goal.rtt_ns) })
    }
}

impl FromStr for RateGoal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rate, rtt) = text.split_once('@').ok_or("a goal is RATE@RTT, such as 1G@21ms")?;
        let rate: BitRate = rate.parse().map_err(|why| format!("{why}"))?;
        let rtt = parse_span(rtt).map_err(|why| why.to_string())?;
        if rate.bits_per_sec() == 0 || rtt.is_zero() {
            return Err("a goal has a rate and a round trip above 0".to_owned());
        }
        Ok(Self { rate, rtt })
    }
}

/// Adds the figures of RFC 6349 to verdicts of a record, and whether the path carries `goal`, else
/// what the record's plan asks for.
pub fn add_figures(record: &Record, verdicts: &mut [LimitVerdict], goal: Option<RateGoal>) {
    let goal = goal.or_else(|| RateGoal::from_record(record));
    for verdict in verdicts {
        let Some((evidence, part)) = measured(record, verdict) else { continue };
        verdict.rfc6349 = figures(part, &evidence, verdict);
        verdict.goal = goal.and_then(|goal| assess_goal(goal, &evidence));
    }
}

/// The metrics whose inputs were measured; none where none was.
fn figures(part: &Record, evidence: &Evidence, verdict: &LimitVerdict) -> Option<TransferFigures> {
    let seconds = |bps: f64| Duration::try_from_secs_f64(1e9 / bps).ok();
    // A transfer of any size: its times are as one over its rates.
    let times = verdict.measured_bps.and_then(seconds).zip(verdict.ceiling_bps.and_then(seconds));
    let kept = evidence.loss.bytes_sent.map(|bytes| (Bytes::new(bytes.0), Bytes::new(bytes.1)));
    let delays = mean_of_probes(part)
        .zip(evidence.probes.idle_s)
        .or_else(|| mean_rtt(part, evidence.direction?).zip(evidence.rtt.base_s));
    let span = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    let figures = TransferFigures {
        transfer_time_ratio: times
            .and_then(|(actual, ideal)| transfer_time_ratio(actual, ideal).ok()),
        efficiency: kept.and_then(|(sent, again)| efficiency(sent, again).ok()),
        buffer_delay: delays
            .and_then(|(mean, base)| buffer_delay(span(mean)?, span(base)?).ok())
            .map(|delay| delay.max(0.0)),
    };
    let none = figures.transfer_time_ratio.is_none()
        && figures.efficiency.is_none()
        && figures.buffer_delay.is_none();
    (!none).then_some(figures)
}

/// Mean round trip of the probes beside the load, in seconds: of the same packets as the delay at
/// rest that it is held against. What the sender's TCP samples also has the time in which the
/// receiver holds acknowledgments back, a hundred times the delay of a short path.
fn mean_of_probes(part: &Record) -> Option<f64> {
    let answered: Vec<u64> = part.probes.as_deref()?.round_trips(false).flatten().collect();
    let sum: f64 = answered.iter().map(|ns| *ns as f64).sum();
    (!answered.is_empty()).then(|| sum / answered.len() as f64 / 1e9)
}

/// Mean of the round trips that the sender's TCP sampled, in seconds.
fn mean_rtt(part: &Record, way: Direction) -> Option<f64> {
    let of_way = part.series.iter().filter(|series| {
        series.metric.key() == "tcp_rtt_ns"
            && series.direction == Some(way)
            && series.side.is_none_or(|side| side == FlowSide::Sender)
    });
    let values: Vec<f64> =
        of_way.flat_map(|series| series.values.iter().filter_map(|value| *value)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64 / 1e9)
}

/// Criteria of a goal checked against a path: its rate, its losses, the windows of its ends.
fn assess_goal(goal: RateGoal, evidence: &Evidence) -> Option<GoalAnswer> {
    let mtu_bytes = evidence.packet_bytes.unwrap_or(1500);
    let header_bytes =
        evidence.mss_bytes.map_or(HEADER_BYTES, |mss| mtu_bytes - mss.min(mtu_bytes));
    let target = Target { rate: goal.rate, rtt: goal.rtt, mtu_bytes, header_bytes };
    let bps = goal.rate.bits_per_sec() as f64;
    let criteria = [
        rate_criterion(bps, evidence),
        losses(&target, evidence)?,
        window(bps, goal.rtt, evidence),
    ];
    let reached = criteria.iter().map(|criterion| criterion.reached).max()?;
    Some(GoalAnswer {
        rate_bps: bps,
        rtt_ns: goal.rtt.as_secs_f64() * 1e9,
        reached,
        criteria: criteria.to_vec(),
    })
}

fn rate_criterion(needed: f64, evidence: &Evidence) -> Criterion {
    let sustained = evidence.sustained_bps.into_iter().chain(evidence.capacity_bps);
    let share = f64::from(evidence.mss_bytes.unwrap_or(1448))
        / f64::from(evidence.packet_bytes.unwrap_or(1500));
    // A path carries what a transfer had over it, whatever trains of a busy host came to.
    let carried = evidence.rate.mean_bps.unwrap_or(0.0);
    let path = sustained.reduce(f64::min).map(|bps| (bps * share).max(carried));
    let measured = path.or(evidence.rate.mean_bps);
    let reached = match measured {
        Some(bps) if bps >= needed => Reached::Pass,
        // What one transfer reached is no bound of the path.
        Some(_) if path.is_some() => Reached::Fail,
        _ => Reached::Inconclusive,
    };
    let kind = match path {
        Some(_) => CriterionKind::PathPayload,
        None => CriterionKind::TransferRate,
    };
    Criterion { kind, measured, needed, reached, to_decide: None }
}

/// Packets between two losses, by Wald's test on trains that leave room on the path.
fn losses(target: &Target, evidence: &Evidence) -> Option<Criterion> {
    let run = target_run_packets(target).ok()?;
    let mut test = Sprt::new(run, Risk::FIVE_PERCENT).ok()?;
    let found = evidence.trains.as_ref();
    let full = evidence.capacity_bps.into_iter().chain(evidence.sustained_bps);
    let room = full.reduce(f64::min).map_or(f64::INFINITY, |bps| BELOW_CAPACITY * bps);
    let loads = found.map_or(&[][..], |found| &found.loads);
    let counted = loads.iter().filter(|load| load.offered_bps <= room);
    let (sent, lost) = counted.fold((0, 0), |sum, it| (sum.0 + it.sent, sum.1 + it.lost));
    let reached = match test.count_packets(sent, lost).ok()? {
        SprtDecision::Pass => Reached::Pass,
        SprtDecision::Fail => Reached::Fail,
        SprtDecision::GoOn => Reached::Inconclusive,
    };
    let more = test.packets_to_pass(lost).saturating_sub(sent);
    Some(Criterion {
        kind: CriterionKind::PacketsBetweenLosses,
        measured: (sent > 0).then(|| sent as f64 / lost.max(1) as f64),
        needed: run,
        reached,
        to_decide: (reached == Reached::Inconclusive).then_some(more),
    })
}

/// The window that the ends can open: half of the receiver's buffer, and the sender's.
fn window(bps: f64, rtt: Duration, evidence: &Evidence) -> Criterion {
    let needed = bps * rtt.as_secs_f64() / 8.0;
    let most =
        |bytes: Option<[u64; 3]>| bytes.map(|memory| memory[2] as f64).filter(|bytes| *bytes > 0.0);
    let ends = [
        most(evidence.receiver.tcp_mem_bytes).map(|bytes| bytes / 2.0),
        most(evidence.sender.tcp_mem_bytes),
    ];
    let unscaled = (evidence.scale_agreed() == Some(false)).then_some(65_535.0);
    let measured = ends.into_iter().flatten().chain(unscaled).reduce(f64::min);
    let reached = match measured {
        Some(bytes) if bytes >= needed => Reached::Pass,
        Some(_) => Reached::Fail,
        None => Reached::Inconclusive,
    };
    Criterion { kind: CriterionKind::WindowOfEnds, measured, needed, reached, to_decide: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::{explain, mechanism};
    use crate::record::Direction;

    fn stored(text: &str) -> Record {
        crate::tree::from_json(text).expect("a record")
    }

    fn evidence_with_loss(sent: u64, lost: u64, bps: f64) -> Evidence {
        let load = mechanism::PacedLoad {
            offered_bps: 1e6,
            ip_bytes: 1500,
            sent,
            lost,
            received_bps: 1e6,
            delay_ns: [0.0; 3],
            growth_ns: 0.0,
        };
        let found = mechanism::Findings {
            packets: sent,
            lost,
            capacity: Vec::new(),
            sustained_bps: None,
            shaper: None,
            overflow: None,
            background: None,
            states: Vec::new(),
            first_lost: Vec::new(),
            loads: vec![load],
            both_ways: None,
            reordering: mechanism::Reordering::default(),
        };
        let mut evidence = Evidence {
            direction: Some(Direction::Up),
            mss_bytes: Some(1436),
            packet_bytes: Some(1500),
            capacity_bps: Some(bps),
            trains: Some(found),
            ..Evidence::default()
        };
        evidence.receiver.tcp_mem_bytes = Some([4096, 131_072, 6_291_456]);
        evidence.sender.tcp_mem_bytes = Some([4096, 16_384, 4_194_304]);
        evidence
    }

    #[test]
    fn the_example_of_rfc_8337_needs_a_run_of_363_packets() {
        // 2.5 Mbit/s, 50 ms, 1500 bytes with 64 of headers (RFC 8337 §9): W 11, 3 x 11^2 = 363.
        // Without a loss 354 packets pass (Wald with 5 % and a quarter of the run).
        let goal: RateGoal = "2.5M@50ms".parse().expect("a goal");
        let run = |sent, lost| {
            assess_goal(goal, &evidence_with_loss(sent, lost, 100e6)).expect("an answer")
        };
        let passed = run(354, 0);
        assert_eq!((passed.reached, passed.criteria[1].needed), (Reached::Pass, 363.0));
        let early = run(300, 0);
        assert_eq!((early.reached, early.criteria[1].to_decide), (Reached::Inconclusive, Some(54)));
        // Of 1000 packets 9 lost fail and 3 pass.
        assert_eq!(run(1000, 9).reached, Reached::Fail);
        assert_eq!(run(1000, 3).reached, Reached::Pass);
        // 2.5 Mbit/s over 50 ms are 15,625 bytes in flight.
        assert_eq!(
            (passed.criteria[2].needed, passed.criteria[2].reached),
            (15_625.0, Reached::Pass)
        );
        assert_eq!(
            assess_goal(goal, &evidence_with_loss(354, 0, 2e6)).expect("an answer").reached,
            Reached::Fail
        );
    }

    #[test]
    fn a_goal_is_a_rate_and_a_round_trip() {
        let goal = RateGoal {
            rate: BitRate::from_bits_per_sec(1_000_000_000),
            rtt: Duration::from_millis(21),
        };
        assert_eq!("1G@21ms".parse(), Ok(goal));
        for wrong in ["1G", "@", "1G@", "x@21ms", "0@21ms", "1G@0ms"] {
            assert!(wrong.parse::<RateGoal>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_three_metrics_are_those_of_the_record_by_hand() {
        let record = stored(include_str!("../../../../testdata/explain/records/bloat.json"));
        let mut verdicts = explain(&record);
        verdicts[0].ceiling_bps = Some(2.0 * verdicts[0].measured_bps.expect("measured"));
        let evidence = super::super::directions(&record).remove(0);
        let found = figures(&record, &evidence, &verdicts[0]).expect("they were measured");
        // Half of the ceiling takes twice the time.
        let ratio = found.transfer_time_ratio.expect("a ratio");
        assert!((ratio - 2.0).abs() < 1e-6, "{ratio}");
        let (sent, again) = evidence.loss.bytes_sent.expect("counted");
        let by_hand = (sent - again) as f64 / sent as f64;
        assert!((found.efficiency.expect("counted") - by_hand).abs() < 1e-12);
        // A deep buffer: 163.4 ms under load, of 40.57 at rest, is three times more.
        let delay = found.buffer_delay.expect("sampled");
        assert!((2.8..3.8).contains(&delay), "{delay}");
        // Without one the delay does not move, whatever TCP samples.
        let mut record = stored(include_str!("../../../../testdata/explain/records/buf5.json"));
        let samples = record.series.iter_mut().filter(|series| series.metric.key() == "tcp_rtt_ns");
        samples.flat_map(|series| series.values.iter_mut().flatten()).for_each(|ns| *ns += 5e9);
        let evidence = super::super::directions(&record).remove(0);
        let found = figures(&record, &evidence, &verdicts[0]).expect("they were measured");
        assert!(found.buffer_delay.expect("probed") < 0.05, "{found:?}");
    }
}
