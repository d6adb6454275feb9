//! How far a result is to be trusted, and why no further.

use super::limitation::{Ground, Limitation};
use crate::comparison::{Comparison, ROUNDS_MIN};
use crate::record::{
    Caveat, CaveatCode, Failure, LimitedBy, MetricId, Note, Plan, Quality, Record, RecordStatus,
    Stat,
};

/// A reason not to trust a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Doubt {
    /// The record holds no measurement.
    NothingMeasured,
    /// No probe was answered.
    NoAnswer,
    /// The user stopped it.
    Interrupted,
    /// The test failed with this reason.
    Failed(Failure),
    /// It ended before its time.
    EndedEarly(Failure),
    /// So many bytes arrived other than they were sent.
    WrongBytes(u64),
    /// A benchmark's limit is the tester: the device may do more.
    TesterIsLimit,
    /// Worst caveat of the record.
    Caveat(Caveat),
    /// The tester spoilt the measurement of another program, and how.
    Spoilt(Option<Note>),
    /// Fewer rounds than an interval takes.
    FewRounds(usize),
    /// The first candidate of a comparison differs from itself.
    DiffersFromItself(String),
    /// Results of a comparison were not measured in turn.
    NotInTurn,
    /// The host was busy during so many of all measurements of a comparison, and how in the first.
    BusyDuring {
        /// Measurements during which it was.
        count: usize,
        /// Number of all of them.
        all: usize,
        /// The caveat of the first.
        caveat: Caveat,
    },
    /// A comparison that shows no difference would have missed one of this share.
    WouldMiss {
        /// Rounds that were measured.
        rounds: usize,
        /// The difference over the first candidate's value.
        share: f64,
    },
}

/// The trust in a record whose limit is known; a reason wherever it is not good. Of a comparison
/// the limits of its parts are asked for.
pub(super) fn quality_of(
    record: &Record,
    limitation: &Limitation,
    limit_of_part: fn(&Record) -> Limitation,
) -> (Quality, Option<Doubt>) {
    if let Some(failure) = &record.failure {
        return match compared_rounds(record) {
            // Whole rounds that were measured before stand.
            1.. => (Quality::Doubtful, Some(Doubt::EndedEarly(failure.clone()))),
            0 => failed(record.status, failure),
        };
    }
    if let Some((quality, doubt)) = nothing(record) {
        return (quality, Some(doubt));
    }
    // A benchmark is about the device, so that a tester at its end leaves the answer open.
    if matches!(record.plan, Plan::Bench(_)) && limitation.by == LimitedBy::ThisHost {
        return (Quality::Doubtful, Some(Doubt::TesterIsLimit));
    }
    if let Some(doubt) = of_comparison(record, limit_of_part) {
        return (Quality::Doubtful, Some(doubt));
    }
    let rated = record
        .caveats
        .iter()
        .map(|caveat| (caveat_quality(record, limitation, caveat.code), caveat));
    // The first of the worst: engines tell the weightiest first.
    let worst = rated.rev().max_by_key(|(quality, _)| *quality);
    match worst {
        None | Some((Quality::Good, _)) => (Quality::Good, None),
        Some((quality, caveat)) => (quality, Some(Doubt::Caveat(caveat.clone()))),
    }
}

/// The trust in a measurement that did not end well.
pub(super) fn failed(status: RecordStatus, failure: &Failure) -> (Quality, Option<Doubt>) {
    match status {
        RecordStatus::Interrupted => (Quality::Doubtful, Some(Doubt::Interrupted)),
        RecordStatus::Error => (Quality::Bad, Some(Doubt::Failed(failure.clone()))),
        RecordStatus::Ok | RecordStatus::Partial => {
            (Quality::Doubtful, Some(Doubt::EndedEarly(failure.clone())))
        }
    }
}

/// A measurement without a result, or with one that is wrong.
fn nothing(record: &Record) -> Option<(Quality, Doubt)> {
    let empty = match &record.plan {
        Plan::Compare(_) => compared_rounds(record) == 0,
        Plan::Trace(_) => record.trace.as_ref().is_none_or(|trace| trace.hops.is_empty()),
        _ => record.summary.is_empty() && record.bench.is_none(),
    };
    if empty {
        return Some((Quality::Bad, Doubt::NothingMeasured));
    }
    let ends = record.flows.iter().filter_map(|flow| flow.receiver.as_ref()?.verified);
    let wrong: u64 = ends.map(|found| found.wrong_bytes).sum();
    if wrong > 0 {
        return Some((Quality::Bad, Doubt::WrongBytes(wrong)));
    }
    let unanswered = matches!(record.plan, Plan::Ping(_))
        && record.summary_value(MetricId::Rtt, Stat::Mean, None).is_none();
    unanswered.then_some((Quality::Bad, Doubt::NoAnswer))
}

/// Whole rounds of a comparison; 0 for other measurements.
fn compared_rounds(record: &Record) -> usize {
    Comparison::from_record(record).map_or(0, |found| found.rounds)
}

/// Too few rounds, a first candidate that differs from itself, and results of different times are
/// reasons to doubt a comparison.
fn of_comparison(record: &Record, limit_of_part: fn(&Record) -> Limitation) -> Option<Doubt> {
    let Plan::Compare(plan) = &record.plan else { return None };
    let comparison = Comparison::from_record(record)?;
    if comparison.rounds < ROUNDS_MIN as usize {
        return Some(Doubt::FewRounds(comparison.rounds));
    }
    let first = comparison.candidates.first();
    let itself = first.and_then(|first| Some((first, first.difference?.interval?)));
    let in_turn = plan.candidates.iter().all(|candidate| candidate.result.is_none());
    match itself {
        Some((first, interval)) if interval.low > 0.0 || interval.high < 0.0 => {
            Some(Doubt::DiffersFromItself(first.name.clone()))
        }
        _ if !in_turn => Some(Doubt::NotInTurn),
        _ => would_miss(&comparison).or_else(|| busy_during(record, limit_of_part)),
    }
}

/// A comparison that no smaller difference would have shown in says little by showing none.
const BLIND_SHARE: f64 = 0.1;

fn would_miss(comparison: &Comparison) -> Option<Doubt> {
    let others = comparison.candidates.iter().skip(1);
    let shares =
        others.filter_map(|candidate| comparison.missed(candidate)).map(|missed| missed.share);
    let share = shares.reduce(f64::max).filter(|share| *share > BLIND_SHARE)?;
    Some(Doubt::WouldMiss { rounds: comparison.rounds, share })
}

/// This host was busy during a tenth of the measurements or more.
fn busy_during(record: &Record, limit_of_part: fn(&Record) -> Limitation) -> Option<Doubt> {
    let of_host = [CaveatCode::LateSends, CaveatCode::RunQueueWait, CaveatCode::StolenTime];
    let busy = record.parts.iter().filter_map(|part| {
        let limitation = limit_of_part(part);
        let doubtful =
            |caveat: &&Caveat| caveat_quality(part, &limitation, caveat.code) != Quality::Good;
        part.caveats.iter().filter(|caveat| of_host.contains(&caveat.code)).find(doubtful)
    });
    let busy: Vec<&Caveat> = busy.collect();
    let (count, all) = (busy.len(), record.parts.len());
    let caveat = (*busy.first()?).clone();
    (10 * count >= all).then_some(Doubt::BusyDuring { count, all, caveat })
}

/// True when the limit implies that the hosts did their part, as far as a rate goes.
fn clears_hosts(limitation: &Limitation) -> bool {
    matches!(limitation.ground, Ground::LinkFull { .. } | Ground::Pace(_))
        || matches!(limitation.by, LimitedBy::Link | LimitedBy::Pace)
}

/// Quality that a caveat leaves to the result.
pub(super) fn caveat_quality(
    record: &Record,
    limitation: &Limitation,
    code: CaveatCode,
) -> Quality {
    match code {
        CaveatCode::AboveCeiling => Quality::Bad,
        CaveatCode::EmulatorLate if record.paths.iter().any(|path| path.late) => Quality::Bad,
        CaveatCode::CpuBound | CaveatCode::RunQueueWait
            if matches!(record.plan, Plan::Tcp(_)) && clears_hosts(limitation) =>
        {
            Quality::Good
        }
        // Disturbed rounds of a comparison do not count; enough others do.
        CaveatCode::TesterDisturbed if matches!(record.plan, Plan::Compare(_)) => Quality::Good,
        CaveatCode::SameHost
        | CaveatCode::VirtualTime
        | CaveatCode::TrainsMissing
        | CaveatCode::EmulatorLate
        | CaveatCode::ZeroCopyCopied
        | CaveatCode::MultipathNotUsed => Quality::Good,
        CaveatCode::CpuBound
        | CaveatCode::RunQueueWait
        | CaveatCode::WindowNotGranted
        | CaveatCode::CongestionControlNotGranted
        | CaveatCode::MssNotGranted
        | CaveatCode::ShortRun
        | CaveatCode::StampsMissing
        | CaveatCode::SelfLoad
        | CaveatCode::Fragmented
        | CaveatCode::ReceiveDrops
        | CaveatCode::OwnInterfaceDrops
        | CaveatCode::LateSends
        | CaveatCode::CoarseClock
        | CaveatCode::ClockStepped
        | CaveatCode::PaceNotKept
        | CaveatCode::SearchUnfinished
        | CaveatCode::UncutDatagrams
        | CaveatCode::CutShort
        | CaveatCode::OneSided
        | CaveatCode::StolenTime
        | CaveatCode::TesterLimited
        | CaveatCode::TesterDisturbed
        | CaveatCode::FlowControl
        | CaveatCode::LengthChanged => Quality::Doubtful,
    }
}
