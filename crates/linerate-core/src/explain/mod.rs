//! What limited a result, said from what was measured.
//!
//! A record is read into [`Evidence`], one direction at a time, and the verdict is made from that
//! alone: the plan of an emulated path, a study or a laboratory is no part of it. Then [`decide`]
//! adds what the record states, and says once what limited it and how far to trust it. In this
//! order: whether the tester spoilt the measurement; figures that need no statistics; what binds at
//! the ends; what the path did. A false accusation is worse than none: where more than one cause
//! agrees with the evidence the verdict is "undetermined" and names the test that would decide.
//! Left out: sending probes, words for people.

mod agreement;
mod candidate;
mod changes;
mod counters;
mod datagrams;
mod decision;
mod device;
mod ends;
mod evidence;
mod foreign;
mod gate;
mod goal;
mod handshake;
mod innocent;
mod interventions;
mod judge;
mod ladder;
mod latency;
mod limitation;
pub mod mechanism;
mod members;
mod of_record;
mod others_queue;
mod path;
mod pings;
#[cfg(test)]
mod probing_tests;
mod remedy;
mod socket;
mod survey;
#[cfg(test)]
mod tests;
mod trains;
#[cfg(test)]
mod trains_tests;
mod trust;
pub mod twin;
mod udp;
mod unlike;
#[cfg(test)]
mod unlike_tests;

pub use changes::Choices;
pub use counters::has_queue;
pub use decision::{Decision, simulated_limit};
pub use device::{DeviceLimit, stalls_part, usual_goal};
pub use evidence::{
    Agreed, Datagrams, EachFlow, Evidence, HostEvidence, Loss, Pings, ProbesSeen, RateEvidence,
    RoundTrips, SocketMoment, Syn, TestOptions, Together, Windows,
};
pub use foreign::{ForeignResults, ResultSource, Unreadable, decode, read_source};
pub use goal::{RateGoal, add_figures};
pub use interventions::is_clear;
pub use judge::judge_direction;
pub use limitation::{Ground, Limitation};
pub use of_record::directions;
pub use survey::{best_part, decide};
pub use trust::Doubt;

use of_record::with_path;

use crate::record::{Change, Confidence, Direction, LimitVerdict, Plan, Record};

/// The part that says most of a way: one flow's, else the first that failed.
fn telling_part(record: &Record, way: Direction) -> Option<&Record> {
    let goes = |part: &&Record| match &part.plan {
        Plan::Tcp(plan) => plan.test.directions.each_direction().contains(&way),
        _ => false,
    };
    record.one_flow_part(way).or_else(|| record.parts.iter().find(goes))
}

/// The verdict of each direction of a record, of a TCP test and of a survey, as [`decide`] has it.
/// Empty for other kinds.
pub fn explain(record: &Record) -> Vec<LimitVerdict> {
    decide(record).verdicts
}

/// The same from what was measured alone, as if nothing were known of the path: of a TCP test, and
/// of one flow each way of a survey. Empty for other kinds.
pub fn diagnose(record: &Record) -> Vec<LimitVerdict> {
    match &record.plan {
        Plan::Tcp(_) => directions(record).iter().map(judge_direction).collect(),
        Plan::Test(_) => {
            let ways = [Direction::Up, Direction::Down].into_iter();
            ways.flat_map(|way| surveyed(record, way))
                .map(|evidence| judge_direction(&evidence))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Evidence of a survey on one direction: one flow's transfer, and the findings on its path.
fn surveyed(record: &Record, way: Direction) -> Option<Evidence> {
    let mut all = directions(telling_part(record, way)?).into_iter();
    all.find(|evidence| evidence.direction == Some(way)).map(|evidence| with_path(evidence, record))
}

/// The change that a survey should try next in one direction, given what it has measured so far;
/// none where the verdict needs none.
pub fn next_change(
    record: &Record,
    way: Direction,
    choices: Choices<'_>,
) -> Option<(Change, Option<Confidence>)> {
    let evidence = surveyed(record, way)?;
    let verdict = judge_direction(&evidence);
    let change = interventions::next_change(&evidence, &verdict, choices)?;
    Some((change, verdict.confidence))
}
