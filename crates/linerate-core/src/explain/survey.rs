//! The decision about a record; of a survey, each way has a limit of its own, as one may be the
//! host's while the other is the path's.

use super::decision::{Decision, decide_measurement, diagnosed, is_sure, limit_of_several};
use super::limitation::Limitation;
use super::trust::{Doubt, failed};
use super::{agreement, judge_direction, surveyed};
use crate::record::{Direction, LimitVerdict, LimitedBy, MetricId, Plan, Quality, Record, Stat};

/// The part with the highest goodput of a direction.
pub fn best_part(parts: &[Record], way: Direction) -> Option<&Record> {
    let rates = parts.iter().filter(|part| matches!(part.plan, Plan::Tcp(_)));
    let rates = rates.filter_map(|part| {
        Some((part, part.summary_value(MetricId::Goodput, Stat::Value, Some(way))?))
    });
    rates.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(part, _)| part)
}

/// Decides about a record.
pub fn decide(record: &Record) -> Decision {
    match record.plan {
        Plan::Test(_) => decide_survey(record),
        _ => decide_measurement(record),
    }
}

fn decide_survey(record: &Record) -> Decision {
    let (mut limitations, mut verdicts, mut best) = (Vec::new(), Vec::new(), Vec::new());
    for way in [Direction::Up, Direction::Down] {
        let verdict = surveyed(record, way).map(|evidence| judge_direction(&evidence));
        let part = best_part(&record.parts, way).map(decide_measurement);
        let (limitation, verdict) = of_way(record, part.as_ref(), verdict, way);
        if part.is_some() || limitation.by != LimitedBy::Nothing {
            limitations.push(limitation.of_way(way));
        }
        verdicts.extend(verdict);
        best.extend(part);
    }
    Decision::new(limitations, verdicts, |_| survey_trust(record, &best))
}

/// The limit of one way: as the diagnosis of the whole survey has it where it is sure, since probe
/// trains and the path MTU say more than a transfer alone; else that of the best transfer.
fn of_way(
    record: &Record,
    part: Option<&Decision>,
    verdict: Option<LimitVerdict>,
    way: Direction,
) -> (Limitation, Option<LimitVerdict>) {
    let own = part.map(|part| (part.limit_of(way), part.verdict_of(way)));
    let Some(verdict) = verdict else {
        return (own.map_or_else(Limitation::nothing, |(own, _)| own), None);
    };
    let whole = diagnosed(record, &verdict).filter(|_| is_sure(&verdict));
    if let Some(limitation) = whole {
        let verdict = LimitVerdict { limited_by: limitation.by, ..verdict };
        return (limitation, Some(verdict));
    }
    let open = diagnosed(record, &verdict).or_else(|| limit_of_several(&verdict));
    // What several causes at the ends and on the path explain, queue and loss of one transfer do
    // not decide.
    let undecided = open.as_ref().is_some_and(|limit| limit.by == LimitedBy::NotKnown);
    match own {
        Some((own, Some(shown))) if own.by != LimitedBy::NotKnown => {
            if undecided && own.by == LimitedBy::Path && shown.cause.is_none() {
                let limitation = open.unwrap_or(own);
                let verdict = LimitVerdict { limited_by: limitation.by, ..verdict };
                return (limitation, Some(verdict));
            }
            (own, Some(agreement::as_of(verdict, shown)))
        }
        Some((own, _)) => {
            let limitation = open.unwrap_or(own);
            let verdict = LimitVerdict { limited_by: limitation.by, ..verdict };
            (limitation, Some(verdict))
        }
        None => {
            let limitation = open.unwrap_or_else(Limitation::nothing);
            let verdict = LimitVerdict { limited_by: limitation.by, ..verdict };
            (limitation, Some(verdict))
        }
    }
}

/// A survey is trusted as far as the worst of its best transfers, else its round trips.
fn survey_trust(record: &Record, best: &[Decision]) -> (Quality, Option<Doubt>) {
    if let Some(failure) = &record.failure {
        return failed(record.status, failure);
    }
    let ping = record.parts.iter().find(|part| matches!(part.plan, Plan::Ping(_)));
    let ping = || ping.map(decide_measurement);
    // The first of the worst.
    let worst = best.iter().rev().max_by_key(|part| part.quality).cloned().or_else(ping);
    match worst {
        Some(worst) => (worst.quality, worst.doubt),
        None => (Quality::Bad, Some(Doubt::NothingMeasured)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::limitation::Ground;
    use super::*;
    use crate::record::{Cause, Outcome, PingPlan, RecordId, Tool};
    use crate::time::WallTime;

    fn open_verdict(between: &[Cause]) -> LimitVerdict {
        let verdict = LimitVerdict::from_outcome(Some(Direction::Up), Outcome::Undetermined);
        LimitVerdict { between: between.to_vec(), ..verdict }
    }

    #[test]
    fn what_the_ends_and_the_path_explain_alike_is_not_decided_by_losses_of_one_transfer() {
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let (id, at) = (RecordId::from_parts(1, [0; 10]), WallTime::from_unix_nanos(0));
        let record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), at);
        let lossy = Limitation::new(LimitedBy::Path, Ground::SentAgain(0.01));
        let shown =
            LimitVerdict { limited_by: LimitedBy::Path, ..open_verdict(&[Cause::RandomLoss]) };
        let part = Decision::new(vec![lossy], vec![shown], |_| (Quality::Good, None));
        let limit = |between: &[Cause]| {
            let (limit, verdict) =
                of_way(&record, Some(&part), Some(open_verdict(between)), Direction::Up);
            assert_eq!(verdict.map(|verdict| verdict.limited_by), Some(limit.by));
            limit.by
        };
        assert_eq!(limit(&[Cause::SendBuffer, Cause::RandomLoss]), LimitedBy::NotKnown);
        assert_eq!(limit(&[Cause::RandomLoss, Cause::Policer]), LimitedBy::Path);
    }
}
