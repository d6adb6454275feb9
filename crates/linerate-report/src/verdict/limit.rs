//! The limit of a result in words, as the decision about its record has it.
//!
//! Left out: how it is decided (`core::explain`).

use std::fmt;

use linerate_core::explain::{Decision, DeviceLimit, Ground, Limitation};
pub use linerate_core::record::LimitedBy;
use linerate_core::record::{Cause, Direction, FlowSide, LimitVerdict, Record};

use super::cause;
use crate::{ceiling, delay, number, words};

/// The limit in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitText {
    /// The part that limited it.
    pub by: LimitedBy,
    /// Words for what shows it; may be empty.
    pub evidence: String,
    /// The direction that it limited, where the other one has another limit.
    pub way: Option<Direction>,
    /// The limit of the other direction.
    pub other: Option<Box<Self>>,
    /// The limit as a sentence, where that is plainer than `limited by`.
    pub sentence: Option<Sentence>,
}

/// A limit as a sentence: `the link is full (it carries about 93.32 Mbit/s)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The words of the sentence.
    pub text: String,
    /// True where it has the rate that the path carries, so that no ceiling has to be named.
    pub has_rate: bool,
}

impl fmt::Display for LimitText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = self.way.map_or("", words::up_or_down);
        let space = if way.is_empty() { "" } else { " " };
        let colon = if way.is_empty() { "" } else { ": " };
        if let Some(sentence) = &self.sentence {
            return write!(f, "{way}{colon}{}", sentence.text);
        }
        match (self.by, self.evidence.as_str()) {
            (LimitedBy::NotKnown, evidence) => {
                let between = if evidence.is_empty() { "" } else { ": " };
                write!(f, "{way}{colon}limit not known{between}{evidence}")
            }
            (by, "") => write!(f, "{way}{space}limited by {}", part_in_words(by)),
            (by, evidence) => write!(f, "{way}{space}limited by {}: {evidence}", part_in_words(by)),
        }
    }
}

/// The part in words.
pub(crate) const fn part_in_words(by: LimitedBy) -> &'static str {
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

impl LimitText {
    /// A limit with its evidence.
    pub fn new(by: LimitedBy, evidence: impl Into<String>) -> Self {
        Self { by, evidence: evidence.into(), way: None, other: None, sentence: None }
    }

    /// The limits that were decided, with the figures of the diagnoses. `of_device` has the words
    /// for a device's limit.
    pub(crate) fn from_decision(
        decision: &Decision,
        record: Option<&Record>,
        of_device: impl Fn(Option<DeviceLimit>) -> String,
    ) -> Self {
        let from_limitation = |limitation: &Limitation| {
            let evidence = match &limitation.ground {
                Ground::Device(limit) => of_device(*limit),
                _ => evidence(limitation, &decision.verdicts),
            };
            let sentence = sentence(limitation, &decision.verdicts, record);
            Self { way: limitation.way, sentence, ..Self::new(limitation.by, evidence) }
        };
        let other = decision.other.as_ref().map(|other| Box::new(from_limitation(other)));
        Self { other, ..from_limitation(&decision.limitation) }
    }

    /// The limit with a sentence that has the rate of its path.
    pub(crate) fn said_as_full(self, text: String) -> Self {
        Self { sentence: Some(Sentence { text, has_rate: true }), ..self }
    }

    /// True of a host that was too busy: its path may carry more than was measured.
    pub(crate) const fn is_busy_host(&self) -> bool {
        self.by.is_host() && self.sentence.is_some()
    }

    /// True where the sentence has the rate that the path carries.
    pub(crate) fn has_rate(&self) -> bool {
        self.sentence.as_ref().is_some_and(|sentence| sentence.has_rate)
    }
}

impl From<&Limitation> for LimitText {
    /// A limit that no diagnosis shows.
    fn from(limitation: &Limitation) -> Self {
        let evidence = evidence(limitation, &[]);
        Self { way: limitation.way, ..Self::new(limitation.by, evidence) }
    }
}

/// The limit as a sentence: of a busy host, and of a link that the diagnosis found full.
fn sentence(
    limitation: &Limitation,
    verdicts: &[LimitVerdict],
    record: Option<&Record>,
) -> Option<Sentence> {
    let busy = |side: FlowSide, shown: String| {
        let host = host_name(limitation.by, record);
        let (end, did) = match side {
            FlowSide::Sender => ("sender", "send"),
            FlowSide::Receiver => ("receiver", "take"),
        };
        let text = format!("{host}'s CPU was too busy to {did} more (its {end} {shown})");
        Some(Sentence { text, has_rate: false })
    };
    match &limitation.ground {
        Ground::Computed(side, share) => busy(*side, format!("used {} of a core", percent(*share))),
        Ground::WaitedForCore(side, share) => {
            busy(*side, format!("waited {} of the time for a core", percent(*share)))
        }
        Ground::Diagnosis(Cause::Link) => full_link(limitation.way, verdicts),
        _ => None,
    }
}

/// A host by its name, where the test has one for it.
fn host_name(by: LimitedBy, record: Option<&Record>) -> &str {
    let named = || record.and_then(|record| record.plan.host_names().next());
    match by {
        LimitedBy::OtherEnd => named().unwrap_or("the other end"),
        _ => "this host",
    }
}

/// A rate from this share of what the link carries on has all of it, within the errors of both.
const ALL_FROM: f64 = 0.95;

/// `the link is full both ways (it carries about 93.32 Mbit/s)`; none where the rate is below what
/// the link carries, or that is not known.
fn full_link(way: Option<Direction>, verdicts: &[LimitVerdict]) -> Option<Sentence> {
    let is_of = |verdict: &&LimitVerdict| {
        let same = way.is_none_or(|way| verdict.direction.is_none_or(|of| of == way));
        verdict.cause == Some(Cause::Link) && same
    };
    let carried = verdicts.iter().filter(is_of).map(|verdict| {
        let bound = verdict.ceiling_bps.filter(|bps| *bps > 0.0)?;
        verdict.measured_bps.filter(|bps| *bps >= ALL_FROM * bound).map(|_| bound)
    });
    let carried: Vec<f64> = carried.collect::<Option<_>>()?;
    let (both, rates) = (both_ways(&carried), from_to(&carried, number::rate_with_unit)?);
    let text = format!("the link is full{both} (it carries about {rates})");
    Some(Sentence { text, has_rate: true })
}

/// `the path is full (it carries about 148.9 Mbit/s, estimated), its queue adds 44 ms`; none
/// without an estimate of a direction.
pub(crate) fn path_is_full(carried: &[f64], least_ns: f64, loaded_ns: f64) -> Option<String> {
    let (both, rates) = (both_ways(carried), from_to(carried, number::measured_rate)?);
    let added = added_ms(least_ns, loaded_ns);
    Some(format!(
        "the path is full{both} (it carries about {rates}, estimated), its queue adds {added} ms"
    ))
}

const fn both_ways(carried: &[f64]) -> &'static str {
    if carried.len() > 1 { " both ways" } else { "" }
}

/// The least and the most of some rates, once where they are the same in words.
fn from_to(rates: &[f64], in_words: fn(f64) -> String) -> Option<String> {
    let least = rates.iter().copied().reduce(f64::min)?;
    let most = rates.iter().copied().reduce(f64::max)?;
    Some(match [least, most].map(in_words) {
        [one, other] if one == other => one,
        [one, other] => format!("{one} to {other}"),
    })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Causes that a line has room for.
const LISTED_MAX: usize = 3;

/// Words for what shows a limit; a device's are its own.
fn evidence(limitation: &Limitation, verdicts: &[LimitVerdict]) -> String {
    let end = |side| match side {
        FlowSide::Sender => "sender",
        FlowSide::Receiver => "receiver",
    };
    match &limitation.ground {
        Ground::Nothing | Ground::Device(_) => String::new(),
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
                added_ms(*least_ns, *loaded_ns),
                delay::ms_three_digits(*least_ns)
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
        | Ground::HighestPassed => for_datagrams(&limitation.ground),
        Ground::WithinHost(share) => {
            format!("{} of the program's RTT within this host", percent(*share))
        }
    }
}

/// Milliseconds that a queue adds.
fn added_ms(least_ns: f64, loaded_ns: f64) -> String {
    delay::ms_three_digits(loaded_ns - least_ns)
}

/// Words for what shows a limit of a test over UDP.
fn for_datagrams(ground: &Ground) -> String {
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
fn diagnosed(found: Cause, way: Option<Direction>, verdicts: &[LimitVerdict]) -> String {
    let is_of = |it: &&LimitVerdict| {
        it.cause == Some(found) && way.is_none_or(|way| it.direction.is_none_or(|of| of == way))
    };
    let first = verdicts.iter().find(is_of).and_then(|verdict| verdict.evidence.first());
    let first = first
        .map_or_else(String::new, |sign| format!(", {}", super::sign::figure_with_threshold(sign)));
    format!("{}{first}", cause::name(found))
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{Outcome, Quality};

    use super::*;

    fn limit_sentence(by: LimitedBy, ground: Ground, verdicts: Vec<LimitVerdict>) -> String {
        let decision = Decision {
            verdicts,
            limitation: Limitation { by, way: None, ground },
            other: None,
            quality: Quality::Good,
            doubt: None,
        };
        LimitText::from_decision(&decision, None, |_| String::new()).to_string()
    }

    #[test]
    fn a_busy_host_is_named_with_the_thread_that_had_no_core() {
        let waited = Ground::WaitedForCore(FlowSide::Receiver, 0.31);
        let line = limit_sentence(LimitedBy::OtherEnd, waited, Vec::new());
        let told = "the other end's CPU was too busy to take more (its receiver waited 31 % of \
                    the time for a core)";
        assert_eq!(line, told);
        let line = limit_sentence(
            LimitedBy::ThisHost,
            Ground::Computed(FlowSide::Sender, 0.99),
            Vec::new(),
        );
        let told = "this host's CPU was too busy to send more (its sender used 99 % of a core)";
        assert_eq!(line, told);
    }

    #[test]
    fn a_full_link_is_named_with_the_rate_that_it_carries() {
        let full = |way, bps| LimitVerdict {
            cause: Some(Cause::Link),
            measured_bps: Some(bps),
            ceiling_bps: Some(93.32e6),
            ..LimitVerdict::from_outcome(Some(way), Outcome::AtCeiling)
        };
        let both = [full(Direction::Up, 94.1e6), full(Direction::Down, 94.1e6)];
        let line = |verdicts: &[LimitVerdict]| {
            limit_sentence(LimitedBy::Link, Ground::Diagnosis(Cause::Link), verdicts.to_vec())
        };
        assert_eq!(line(&both), "the link is full both ways (it carries about 93.32 Mbit/s)");
        assert_eq!(line(&both[..1]), "the link is full (it carries about 93.32 Mbit/s)");
        // 80 of 93.32 is 86 %: the line has the share instead.
        assert_eq!(line(&[full(Direction::Up, 80e6)]), "limited by the link: it is full");
    }
}
