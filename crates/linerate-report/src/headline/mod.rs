//! The answer of a result in one line: what was measured, its share of the ceiling, what limited
//! it, how far to trust it, and by which identifier it is found again.
//!
//! One function makes it of any record, so that terminal, page, history and study say the same. A
//! result that a host limited says so before the number.

mod compared;
mod guess;
mod result;
mod surveyed;
mod traced;

use linerate_core::explain::{Decision, Ground, Limitation, best_part, decide};
pub use linerate_core::record::Quality;
use linerate_core::record::{Direction, Plan, Record};

use crate::device::limit as device;
use crate::verdict::doubt::doubt_reason;
use crate::verdict::limit::path_is_full;
use crate::words;

pub(crate) use crate::verdict::limit::part_in_words;
pub use crate::verdict::limit::{LimitText, LimitedBy, Sentence};
pub(crate) use compared::{ComparedIn, verdict};

/// The summary of a result for a reader: rate, limit and trust.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// The measured result: `941.5 Mbit/s to b`.
    pub result: String,
    /// The measured rate over its ceiling, 0 … 1; the smaller one of two directions. None without a
    /// ceiling.
    pub share: Option<f64>,
    /// The share in words, or why there is none: `94.1 % of the ceiling 941.5 Mbit/s`, `no ceiling
    /// (loopback)`. Empty where nothing bounds what was measured.
    pub ceiling: String,
    /// The limit of the result.
    pub limit: LimitText,
    /// How far the result is to be trusted.
    pub quality: Quality,
    /// The worst caveat in words; empty where there is none, or where the limit says it.
    pub doubt: String,
    /// The record's identifier, as short as lists show it; empty for results without a record.
    pub id: String,
}

/// The start of an identifier that names it among a user's records: its 48 bits of milliseconds.
pub fn short_id(id: &str) -> &str {
    id.get(..13).unwrap_or(id)
}

impl Headline {
    /// The answer of a record.
    pub fn from_record(record: &Record) -> Self {
        Self::from_decision(record, &decide(record))
    }

    /// The answer of a record about which was decided already.
    pub fn from_decision(record: &Record, decision: &Decision) -> Self {
        let (result, share, ceiling) = match &record.plan {
            Plan::Test(_) => surveyed::result(record),
            Plan::Compare(_) => (compared::result(record), None, String::new()),
            Plan::Trace(_) => (traced::result(record), None, String::new()),
            _ => {
                let (share, ceiling) = result::ceiling(record, |way| guess::in_words(record, way));
                (result::measured_result(record), share, ceiling)
            }
        };
        let of_device = |limit| match &record.plan {
            Plan::Bench(plan) => device::evidence(record, plan, limit),
            _ => String::new(),
        };
        let limit = LimitText::from_decision(decision, Some(record), of_device);
        let limit = match full_path(record, decision) {
            Some(full) => limit.said_as_full(full),
            None => limit,
        };
        Self {
            result,
            share,
            // A sentence that has the rate of the path leaves nothing to say of a ceiling.
            ceiling: if share.is_none() && limit.has_rate() { String::new() } else { ceiling },
            limit,
            quality: decision.quality,
            doubt: doubt_reason(decision, Some(record)),
            id: short_id(&record.id.to_string()).to_owned(),
        }
    }

    /// The limit and the trust of a result of another program, of which nothing else is known.
    pub(crate) fn from_verdicts(decision: &Decision) -> Self {
        Self {
            result: String::new(),
            share: None,
            ceiling: String::new(),
            limit: LimitText::from_decision(decision, None, |_| String::new()),
            quality: decision.quality,
            doubt: doubt_reason(decision, None),
            id: String::new(),
        }
    }

    /// True if this host limited a direction.
    pub(crate) fn names_this_host(&self) -> bool {
        let limits = [Some(&self.limit), self.limit.other.as_deref()];
        limits.into_iter().flatten().any(|limit| limit.by == LimitedBy::ThisHost)
    }

    /// Why a result is not good: the doubt, or the limit where that is the reason.
    pub(crate) fn reason(&self) -> Option<String> {
        let doubt = || match self.doubt.as_str() {
            "" => self.limit.to_string(),
            doubt => doubt.to_owned(),
        };
        (self.quality != Quality::Good).then(doubt)
    }

    /// The limit, where there is one, and the trust.
    pub(crate) fn limit_and_trust(&self) -> String {
        let limit = match self.limit.by {
            LimitedBy::Nothing => self.limit.evidence.clone(),
            _ => self.limit.to_string(),
        };
        let other = self.limit.other.as_ref().map(ToString::to_string);
        let trust = match self.doubt.as_str() {
            "" => self.quality.to_string(),
            doubt => format!("{}: {doubt}", self.quality),
        };
        let parts = [Some(limit), other, Some(trust)].into_iter().flatten();
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" \u{b7} ")
    }

    /// The whole in one line.
    pub fn summary_line(&self) -> String {
        let mut parts = Vec::with_capacity(5);
        let by = self.limit.by;
        parts.push(match by.is_host() {
            // The path may carry more than a busy host did.
            true if self.limit.is_busy_host() => format!("At least {}", self.result),
            true => match self.limit.way {
                Some(way) => {
                    format!(
                        "{} limited by {}: {}",
                        words::way_capital(way),
                        part_in_words(by),
                        self.result
                    )
                }
                None => format!("Limited by {}: {}", part_in_words(by), self.result),
            },
            false => self.result.clone(),
        });
        parts.push(self.ceiling.clone());
        parts.push(match (by, self.limit.evidence.as_str()) {
            (LimitedBy::Nothing, evidence) => evidence.to_owned(),
            (by, evidence) if by.is_host() && !self.limit.is_busy_host() => evidence.to_owned(),
            _ => self.limit.to_string(),
        });
        parts.extend(self.limit.other.iter().map(ToString::to_string));
        parts.push(match self.doubt.as_str() {
            "" => self.quality.to_string(),
            doubt => format!("{}: {doubt}", self.quality),
        });
        parts.push(self.id.clone());
        parts.retain(|part| !part.is_empty());
        parts.join(" \u{b7} ")
    }
}

/// The sentence for a path whose queue stood and of which all was reached: its estimated rate and
/// the delay of the queue. Of a survey the best transfer of each way counts.
fn full_path(record: &Record, decision: &Decision) -> Option<String> {
    let Limitation { ground, way, .. } = &decision.limitation;
    let Ground::Queue { least_ns, loaded_ns } = ground else { return None };
    let measured: Vec<(&Record, Direction)> = match (&record.plan, result::directions(&record.plan))
    {
        (Plan::Test(_), ways) => {
            let ways = ways.iter().copied().filter(|of| way.is_none_or(|way| way == *of));
            ways.filter_map(|of| Some((best_part(&record.parts, of)?, of))).collect()
        }
        (_, [way]) => vec![(record, *way)],
        _ => Vec::new(),
    };
    let carried = measured.iter().map(|(part, way)| guess::full_bps(part, *way));
    path_is_full(&carried.collect::<Option<Vec<f64>>>()?, *least_ns, *loaded_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of_limits(first: LimitText, other: LimitText) -> String {
        let whole = Headline {
            result: "47.90 Mbit/s up, 817.6 Mbit/s down with b".to_owned(),
            share: None,
            ceiling: String::new(),
            limit: LimitText { other: Some(Box::new(other)), ..first },
            quality: Quality::Good,
            doubt: String::new(),
            id: String::new(),
        };
        whole.summary_line()
    }

    fn limit_with_evidence(by: LimitedBy, evidence: &str, way: Direction) -> LimitText {
        LimitText { way: Some(way), ..LimitText::new(by, evidence) }
    }

    #[test]
    fn two_ways_with_two_limits_name_each() {
        let up = limit_with_evidence(LimitedBy::Path, "a shaper, 49.54 Mbit/s", Direction::Up);
        let busy = "a receiver thread used 99 % of a core";
        let down = limit_with_evidence(LimitedBy::ThisHost, busy, Direction::Down);
        let told = "Down limited by this host: 47.90 Mbit/s up, 817.6 Mbit/s down with b \u{b7} \
                    a receiver thread used 99 % of a core \u{b7} up limited by the path: a shaper, \
                    49.54 Mbit/s \u{b7} good";
        assert_eq!(line_of_limits(down, up.clone()), told);
        let unknown = limit_with_evidence(LimitedBy::NotKnown, "", Direction::Down);
        let each = "up limited by the path: a shaper, 49.54 Mbit/s \u{b7} down: limit not known \
                    \u{b7} good";
        let told = line_of_limits(up, unknown);
        assert!(told.ends_with(each), "{told}");
    }
}
