//! The one decision about a record: what limited it and how far it is to be trusted.
//!
//! Headline, explanation, difference, list, page and alert print this and decide nothing. The
//! diagnosis reads measured evidence alone (`diagnose`); here it meets what the record states
//! beside it: known bounds, the hosts' accounts, caveats. Where both name a limit, the better
//! proved one stands, and the diagnosis is made to agree.

use super::counters::{self, host_share};
use super::device::DeviceLimit;
use super::limitation::{Ground, Limitation, part_of};
use super::trust::{Doubt, caveat_quality, quality_of};
use super::{agreement, judge_direction, of_record, udp};
use crate::record::{
    BenchResult, Cause, CaveatCode, Confidence, Direction, LimitVerdict, LimitedBy, MetricId,
    Outcome, Plan, Quality, Record, Stat, TcpDirections,
};

/// A host that was busy for so much of the time outweighs a cause that is proved by half.
const HOST_OUTWEIGHS_FROM: f64 = 0.5;
/// Most of a round trip that passed in this host says little of the path.
const WITHIN_HOST_FROM: f64 = 0.5;

/// The decision about a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Diagnoses of the directions of a TCP test or a survey, each with all that shows it; empty
    /// for other kinds.
    pub verdicts: Vec<LimitVerdict>,
    /// The limit that a reader must know first.
    pub limitation: Limitation,
    /// The limit of the other direction, where it is another.
    pub other: Option<Limitation>,
    /// How far the result is to be trusted.
    pub quality: Quality,
    /// Why no further; there wherever the quality is not good.
    pub doubt: Option<Doubt>,
}

impl Decision {
    /// The limits of all directions in one, with the trust that goes with them.
    pub(super) fn new(
        limitations: Vec<Limitation>,
        mut verdicts: Vec<LimitVerdict>,
        trust: impl FnOnce(&Limitation) -> (Quality, Option<Doubt>),
    ) -> Self {
        let (limitation, other) = together(limitations);
        let (quality, doubt) = trust(&limitation);
        verdicts.iter_mut().for_each(|verdict| verdict.quality = Some(quality));
        Self { verdicts, limitation, other, quality, doubt }
    }

    /// The decision about a result of another program, of which nothing but verdicts is known.
    pub fn from_verdicts(verdicts: &[LimitVerdict]) -> Self {
        let limitations = verdicts.iter().map(|verdict| {
            let limit = match verdict.cause {
                Some(Cause::Tester) => Some(Limitation::new(LimitedBy::ThisHost, Ground::OneHost)),
                _ => limit_of_cause(verdict).or_else(|| limit_of_several(verdict)),
            };
            let limit = limit.unwrap_or(Limitation::new(LimitedBy::NotKnown, Ground::Nothing));
            Limitation { way: verdict.direction, ..limit }
        });
        let limitations: Vec<Limitation> = limitations.collect();
        let spoilt = verdicts.iter().find(|verdict| verdict.outcome == Outcome::NoVerdict);
        let spoilt = spoilt.map(|part| Doubt::Spoilt(part.notes.first().cloned()));
        let parts: Vec<LimitedBy> = limitations.iter().map(|limit| limit.by).collect();
        let decided = Self::new(limitations, verdicts.to_vec(), |_| match spoilt {
            Some(doubt) => (Quality::Doubtful, Some(doubt)),
            None => (Quality::Good, None),
        });
        let with_parts = decided.verdicts.into_iter().zip(parts);
        let with_parts = with_parts.map(|(it, limited_by)| LimitVerdict { limited_by, ..it });
        Self { verdicts: with_parts.collect(), ..decided }
    }

    /// True of a caveat of the record that makes the result less than good.
    pub fn is_doubted_for(&self, record: &Record, code: CaveatCode) -> bool {
        caveat_quality(record, &self.limitation, code) != Quality::Good
    }

    /// The limit of one direction.
    pub(super) fn limit_of(&self, way: Direction) -> Limitation {
        let is_of = |limit: &&Limitation| limit.way.is_none_or(|of| of == way);
        let found = [Some(&self.limitation), self.other.as_ref()].into_iter().flatten().find(is_of);
        found.cloned().unwrap_or(Limitation::new(LimitedBy::NotKnown, Ground::Nothing))
    }

    /// The diagnosis of one direction.
    pub(super) fn verdict_of(&self, way: Direction) -> Option<&LimitVerdict> {
        self.verdicts.iter().find(|verdict| verdict.direction == Some(way))
    }
}

/// Decides about a record that is no survey.
pub(super) fn decide_measurement(record: &Record) -> Decision {
    let (limitations, verdicts) = match &record.plan {
        Plan::Tcp(plan) => limits_of_tcp(record, plan.test.directions),
        Plan::Udp(plan) if plan.test.search.is_some() => (vec![udp::searched(record)], Vec::new()),
        Plan::Udp(plan) => {
            let ways = plan.test.directions.each_direction().iter();
            (ways.map(|way| of_way(record, *way, None).of_way(*way)).collect(), Vec::new())
        }
        Plan::Simulate(_) => (vec![of_simulation(record)], Vec::new()),
        Plan::Ping(_) => (vec![of_ping(record)], Vec::new()),
        Plan::Bench(_) => (vec![of_device(record.bench.as_deref())], Vec::new()),
        Plan::Test(_) | Plan::Compare(_) | Plan::Trace(_) => (Vec::new(), Vec::new()),
    };
    let limit_of_part = |part: &Record| decide_measurement(part).limitation;
    Decision::new(limitations, verdicts, |limitation| quality_of(record, limitation, limit_of_part))
}

/// Each direction of a TCP test: its limit, and its diagnosis as far as it agrees with that.
fn limits_of_tcp(
    record: &Record,
    directions: TcpDirections,
) -> (Vec<Limitation>, Vec<LimitVerdict>) {
    let evidence = of_record::directions(record);
    let each = directions.each_direction().iter().map(|&way| {
        let evidence = evidence.iter().find(|evidence| evidence.direction == Some(way));
        let verdict = evidence.map(|evidence| (evidence, judge_direction(evidence)));
        let limitation = of_way(record, way, verdict.as_ref().map(|(_, verdict)| verdict));
        let verdict =
            verdict.map(|(evidence, verdict)| agreement::agreeing(verdict, &limitation, evidence));
        (limitation.of_way(way), verdict)
    });
    let (limitations, verdicts): (Vec<_>, Vec<_>) = each.unzip();
    (limitations, verdicts.into_iter().flatten().collect())
}

/// The limit of one direction of a flow test, with its diagnosis where there is one.
fn of_way(record: &Record, way: Direction, verdict: Option<&LimitVerdict>) -> Limitation {
    let ceiling = record.ceiling_of(way);
    let sure = verdict.filter(|verdict| is_sure(verdict));
    let busy = counters::busy_host(record, way);
    let outweighs = |sure: &LimitVerdict| {
        let host = busy.as_ref().map_or(0.0, host_share) >= HOST_OUTWEIGHS_FROM;
        host && sure.confidence < Some(Confidence::High) && !limited_part(sure).is_host()
    };
    let explained = || ceiling.and_then(|ceiling| counters::explained(record, ceiling, way));
    // A bound or a host's account that names the same cause has its figure.
    let figure = |sure: &LimitVerdict| {
        let same = |limit: &Limitation| agreement::cause_of(&limit.ground) == sure.cause;
        explained().filter(same).or_else(|| busy.clone().filter(same))
    };
    let named = || {
        let sure = sure.filter(|sure| !outweighs(sure))?;
        figure(sure).or_else(|| diagnosed(record, sure))
    };
    let tester = || {
        let alone = verdict.is_some_and(|verdict| verdict.cause == Some(Cause::Tester));
        alone.then(|| Limitation::new(LimitedBy::ThisHost, Ground::OneHost))
    };
    let limit = ceiling
        .and_then(counters::full_link)
        .or_else(named)
        .or_else(explained)
        .or_else(|| udp::loss_limit(record, way))
        .or_else(|| busy.clone())
        .or_else(tester)
        .or_else(|| verdict.and_then(|verdict| diagnosed(record, verdict)))
        .or_else(|| counters::waited(record, way))
        .or_else(|| on_path(record, way, verdict))
        .or_else(|| verdict.and_then(limit_of_several))
        .or_else(|| counters::one_host(record, ceiling))
        .or_else(|| ceiling.and_then(counters::above_ceiling));
    let measured = record.summary_value(MetricId::Goodput, Stat::Value, Some(way)).is_some();
    let none = if measured { LimitedBy::NotKnown } else { LimitedBy::Nothing };
    limit.unwrap_or_else(|| Limitation::new(none, Ground::Nothing))
}

/// Queue and loss of a path: loss beside a standing queue is that queue's. Where a tester spoilt
/// the measurement, or a cause at an end agrees with the evidence too, they show nothing.
fn on_path(record: &Record, way: Direction, verdict: Option<&LimitVerdict>) -> Option<Limitation> {
    let open = verdict.is_none_or(|verdict| {
        verdict.outcome == Outcome::Undetermined && verdict.between.iter().all(is_of_path)
    });
    let found =
        || counters::standing_queue(record, way).or_else(|| counters::lossy_path(record, way));
    open.then(found).flatten()
}

fn is_of_path(cause: &Cause) -> bool {
    matches!(part_of(*cause, None), LimitedBy::Path | LimitedBy::Link)
}

/// True of a diagnosis that is sure of a cause other than the tester.
pub(super) fn is_sure(verdict: &LimitVerdict) -> bool {
    let named = verdict.cause.is_some_and(|cause| cause != Cause::Tester);
    named && verdict.confidence >= Some(Confidence::Medium)
}

/// The part of the path or of a host that the cause of a diagnosis belongs to.
fn limited_part(verdict: &LimitVerdict) -> LimitedBy {
    verdict.cause.map_or(LimitedBy::NotKnown, |cause| part_of(cause, verdict.direction))
}

/// The limit of a cause that a diagnosis names.
pub(super) fn diagnosed(record: &Record, verdict: &LimitVerdict) -> Option<Limitation> {
    let found = limit_of_cause(verdict)?;
    let same_host =
        |record: &Record| record.caveats.iter().any(|caveat| caveat.code == CaveatCode::SameHost);
    let one_host = same_host(record) || record.parts.iter().any(same_host);
    let by = if one_host && found.by.is_host() { LimitedBy::ThisHost } else { found.by };
    Some(Limitation { by, ..found })
}

/// The limit by the cause that a diagnosis names; none where it names the tester.
fn limit_of_cause(verdict: &LimitVerdict) -> Option<Limitation> {
    let cause = verdict.cause.filter(|cause| *cause != Cause::Tester)?;
    Some(Limitation::new(limited_part(verdict), Ground::Diagnosis(cause)))
}

/// The limit where several causes agree with the evidence: the path if all are of it.
pub(super) fn limit_of_several(verdict: &LimitVerdict) -> Option<Limitation> {
    let causes = &verdict.between;
    let by = match causes.iter().all(is_of_path) {
        true => LimitedBy::Path,
        false => LimitedBy::NotKnown,
    };
    (!causes.is_empty()).then(|| Limitation::new(by, Ground::Between(causes.clone())))
}

/// The limit that a reader must know first, and that of the other way where it is another.
fn together(mut limitations: Vec<Limitation>) -> (Limitation, Option<Limitation>) {
    limitations.sort_by_key(|limitation| std::cmp::Reverse(limitation.by.weight()));
    let mut limitations = limitations.into_iter();
    let Some(first) = limitations.next() else { return (Limitation::nothing(), None) };
    match limitations.find(|other| !other.is_same(&first)) {
        None => (Limitation { way: None, ..first }, None),
        other => (first, other),
    }
}

fn of_ping(record: &Record) -> Limitation {
    let mean = |metric| {
        let mut rows = record.summary.iter();
        rows.find(|row| row.metric == metric && row.stat == Stat::Mean).map(|row| row.value)
    };
    let (all, kernel) = (mean(MetricId::Rtt), mean(MetricId::RttKernel));
    let own = all.zip(kernel).map(|(all, kernel)| 1.0 - kernel / all);
    let ground = own.filter(|share| *share >= WITHIN_HOST_FROM).map(Ground::WithinHost);
    Limitation::new(LimitedBy::Nothing, ground.unwrap_or(Ground::Nothing))
}

fn of_device(result: Option<&BenchResult>) -> Limitation {
    let limit = result.and_then(DeviceLimit::from_result);
    let by = limit.map_or(LimitedBy::Nothing, DeviceLimit::limited_by);
    Limitation::new(by, Ground::Device(limit))
}

fn of_simulation(record: &Record) -> Limitation {
    let share = record.ceiling_of(Direction::Up).and_then(|ceiling| ceiling.share);
    let again = record.summary_value(MetricId::Retransmits, Stat::Value, Some(Direction::Up));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let again = again.map_or(0, |count| count as u64);
    let simulated =
        record.summary_value(MetricId::Goodput, Stat::Value, Some(Direction::Up)).is_some();
    if simulated { simulated_limit(share, again) } else { Limitation::nothing() }
}

/// The limit of a simulation: its link where that is full, else losses where there were any.
pub fn simulated_limit(share: Option<f64>, segments_again: u64) -> Limitation {
    match share {
        Some(ratio) if ratio >= counters::FULL_FROM => {
            Limitation::new(LimitedBy::Link, Ground::LinkFull { ratio })
        }
        _ if segments_again > 0 => {
            Limitation::new(LimitedBy::Path, Ground::SegmentsAgain(segments_again))
        }
        _ => Limitation::new(LimitedBy::NotKnown, Ground::Nothing),
    }
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
