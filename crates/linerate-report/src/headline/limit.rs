//! The limit of a result in words, as the decision about its record has it.
//!
//! Left out: how it is decided (`core::explain`).

use std::fmt;

use linerate_core::explain::{Ground, Limitation};
pub use linerate_core::record::LimitedBy;
use linerate_core::record::{Cause, Direction, Plan, Record, Side, Verdict};

use crate::device::limit as device;
use crate::{cause, ceiling, delay, number, words};

/// The limit in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What limited it.
    pub by: LimitedBy,
    /// What shows it, in words; may be empty.
    pub evidence: String,
    /// The direction that it limited, where the other one has another limit.
    pub way: Option<Direction>,
    /// That other limit.
    pub other: Option<Box<Self>>,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = self.way.map_or("", words::way);
        let space = if way.is_empty() { "" } else { " " };
        match (self.by, self.evidence.as_str()) {
            (LimitedBy::NotKnown, evidence) => {
                let colon = if way.is_empty() { "" } else { ": " };
                let between = if evidence.is_empty() { "" } else { ": " };
                write!(f, "{way}{colon}limit not known{between}{evidence}")
            }
            (by, "") => write!(f, "{way}{space}limited by {}", part(by)),
            (by, evidence) => write!(f, "{way}{space}limited by {}: {evidence}", part(by)),
        }
    }
}

/// The part in words.
pub(crate) const fn part(by: LimitedBy) -> &'static str {
    match by {
        LimitedBy::ThisHost => "this host",
        LimitedBy::OtherEnd => "the other end",
        LimitedBy::Link => "the link",
        LimitedBy::Path => "the path",
        LimitedBy::Device => "the device",
        LimitedBy::Window => "the window",
        LimitedBy::Pace => "the pace",
        LimitedBy::Time => "the length of the test",
        LimitedBy::NotKnown => "what is not known",
        LimitedBy::Nothing => "nothing",
    }
}

impl Limit {
    /// A limit with its evidence.
    pub fn new(by: LimitedBy, evidence: impl Into<String>) -> Self {
        Self { by, evidence: evidence.into(), way: None, other: None }
    }

    /// The limits that were decided, the figures of diagnoses from the verdicts.
    pub(super) fn from_decided(
        (first, other): (&Limitation, Option<&Limitation>),
        verdicts: &[Verdict],
        record: Option<&Record>,
    ) -> Self {
        let of = |limitation: &Limitation| {
            let evidence = evidence(limitation, verdicts, record);
            Self { way: limitation.way, ..Self::new(limitation.by, evidence) }
        };
        Self { other: other.map(|other| Box::new(of(other))), ..of(first) }
    }
}

impl From<&Limitation> for Limit {
    /// A limit that no diagnosis shows.
    fn from(limitation: &Limitation) -> Self {
        Self::from_decided((limitation, None), &[], None)
    }
}

/// Causes that a line has room for.
const LISTED_MAX: usize = 3;

/// What shows a limit.
fn evidence(limitation: &Limitation, verdicts: &[Verdict], record: Option<&Record>) -> String {
    let end = |side| match side {
        Side::Sender => "sender",
        Side::Receiver => "receiver",
    };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    match &limitation.ground {
        Ground::Nothing => String::new(),
        Ground::Diagnosis(Cause::Link) => "it is full".to_owned(),
        Ground::Diagnosis(found) => diagnosed(*found, limitation.way, verdicts),
        Ground::Between(causes) if causes.len() <= LISTED_MAX => {
            format!("between {}", cause::listed(causes))
        }
        Ground::Between(causes) => {
            format!("one of {} causes, which linerate explain lists", causes.len())
        }
        Ground::LinkFull { .. } => "it is full".to_owned(),
        Ground::AboveCeiling => "more than the ceiling allows was measured".to_owned(),
        Ground::Pace(bps) => format!("{} asked for", number::measured_rate(*bps)),
        Ground::Window { kind, bytes, bps } => {
            let size =
                bytes.map_or_else(String::new, |bytes| format!(" of {}", number::memory(bytes)));
            let rate = number::measured_rate(*bps);
            format!("a {}{size} allows {rate}", ceiling::spoken(kind))
        }
        Ground::Computed(side, share) => {
            format!("{} used {} of a core", end(*side), percent(*share))
        }
        Ground::WaitedForCore(side, share) => {
            format!("{} waited {} for a core", end(*side), percent(*share))
        }
        Ground::Caveat(caveat) => caveat.detail.clone(),
        Ground::WaitedForWindow(share) => {
            format!("the sender waited {} of the time for the receiver's window", percent(*share))
        }
        Ground::WaitedForBuffer(share) => {
            format!("the sender waited {} of the time for its send buffer", percent(*share))
        }
        Ground::Queue { least_ns, loaded_ns } => {
            format!(
                "its queue adds {} ms to {} ms",
                delay::ms(loaded_ns - least_ns),
                delay::ms(*least_ns)
            )
        }
        Ground::SentAgain(ratio) => {
            format!("{} of the segments were sent again", number::percent(*ratio))
        }
        Ground::SegmentsAgain(count) => {
            format!("{} sent again", words::counted(*count, "segment"))
        }
        Ground::OneHost => "both ends run on it".to_owned(),
        Ground::LostAtSocket(..)
        | Ground::LostAtInterface(..)
        | Ground::LostOnPath
        | Ground::SendsNoFaster
        | Ground::StillRising
        | Ground::MoreLost
        | Ground::HighestPassed => of_datagrams(&limitation.ground),
        Ground::WithinHost(share) => {
            format!("{} of the program's RTT within this host", percent(*share))
        }
        Ground::Device(limit) => match record.map(|record| (record, &record.plan)) {
            Some((record, Plan::Bench(plan))) => device::evidence(record, plan, *limit),
            _ => String::new(),
        },
    }
}

/// What shows a limit of a test over UDP.
fn of_datagrams(ground: &Ground) -> String {
    match ground {
        Ground::LostAtSocket(here, lost) => {
            format!("{here:.0} of {lost:.0} lost at the receiver's own socket")
        }
        Ground::LostAtInterface(dropped, lost) => {
            format!("{dropped:.0} of {lost:.0} lost at the sender's own interface")
        }
        Ground::LostOnPath => "it lost datagrams".to_owned(),
        Ground::SendsNoFaster => "the sender sends no faster".to_owned(),
        Ground::StillRising => "the rate was still rising".to_owned(),
        Ground::MoreLost => "more was lost or delayed".to_owned(),
        Ground::HighestPassed => "the highest rate allowed passed".to_owned(),
        _ => String::new(),
    }
}

/// The diagnosis of a cause, of one way where the limit is of one.
fn diagnosed(found: Cause, way: Option<Direction>, verdicts: &[Verdict]) -> String {
    let is_of = |it: &&Verdict| {
        it.cause == Some(found) && way.is_none_or(|way| it.direction.is_none_or(|of| of == way))
    };
    diagnosis(found, verdicts.iter().find(is_of))
}

/// The cause that a diagnosis names, with the figure that it rests on first.
fn diagnosis(found: Cause, verdict: Option<&Verdict>) -> String {
    let first = verdict.and_then(|verdict| verdict.evidence.first());
    let first = first.map_or_else(String::new, |sign| format!(", {}", cause::sign(sign)));
    format!("{}{first}", cause::name(found))
}
