//! How far a result is to be trusted, by the worst of its caveats.

use std::fmt;

use linerate_core::record::{Caveat, CaveatCode, MetricId, Plan, Record, Stat, Status};

use super::limit::{Limit, LimitedBy};
use crate::words;

/// How far a result is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quality {
    /// Nothing speaks against it.
    Good,
    /// Something had a part in it that is not the path's or the device's.
    Doubtful,
    /// It is wrong, or there is none.
    Bad,
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "good",
            Self::Doubtful => "doubtful",
            Self::Bad => "bad",
        })
    }
}

/// The quality of a record and its worst caveat in words, unless the limit says the same.
pub(super) fn of(record: &Record, limit: &Limit) -> (Quality, String) {
    if record.summary.is_empty() && record.bench.is_none() && record.failure.is_none() {
        return (Quality::Bad, String::new());
    }
    if let Some(failure) = &record.failure {
        return match record.status {
            Status::Interrupted => (Quality::Doubtful, "interrupted".to_owned()),
            Status::Error => (Quality::Bad, failure.to_string()),
            Status::Ok | Status::Partial => {
                (Quality::Doubtful, format!("ended early: {}", failure.reason))
            }
        };
    }
    if let Some(wrong) = wrong_bytes(record) {
        return (Quality::Bad, wrong);
    }
    // A benchmark is about the device, so that a tester at its end leaves the answer open.
    if matches!(record.plan, Plan::Bench(_)) && limit.by == LimitedBy::ThisHost {
        return (Quality::Doubtful, String::new());
    }
    if matches!(record.plan, Plan::Ping(_))
        && record.value(MetricId::Rtt, Stat::Mean, None).is_none()
    {
        return (Quality::Bad, String::new());
    }
    let rated = record.caveats.iter().map(|caveat| (rate(record, limit, caveat.code), caveat));
    // The first of the worst: engines tell the weightiest first.
    let worst = rated.rev().max_by_key(|(quality, _)| *quality);
    match worst {
        None | Some((Quality::Good, _)) => (Quality::Good, String::new()),
        Some((quality, caveat)) => (quality, doubt(limit, caveat)),
    }
}

/// A caveat as a reason to doubt; empty where the limit names the same thing.
fn doubt(limit: &Limit, caveat: &Caveat) -> String {
    let told = limit.by.is_host() && words::is_own_limit(caveat.code);
    let told = told || limit.evidence.contains(&caveat.detail);
    if told { String::new() } else { caveat.detail.clone() }
}

fn wrong_bytes(record: &Record) -> Option<String> {
    let ends = record.flows.iter().filter_map(|flow| flow.receiver.as_ref()?.verified);
    let wrong: u64 = ends.map(|found| found.wrong_bytes).sum();
    (wrong > 0).then(|| format!("{} arrived wrong", words::counted(wrong, "byte")))
}

/// What a caveat makes of the result.
fn rate(record: &Record, limit: &Limit, code: CaveatCode) -> Quality {
    match code {
        CaveatCode::AboveCeiling => Quality::Bad,
        CaveatCode::EmulatorLate if record.paths.iter().any(|path| path.late) => Quality::Bad,
        // A full link or a kept pace says that the host did its part, as far as a rate goes.
        CaveatCode::CpuBound | CaveatCode::RunQueueWait
            if matches!(record.plan, Plan::Tcp(_))
                && matches!(limit.by, LimitedBy::Link | LimitedBy::Pace) =>
        {
            Quality::Good
        }
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
