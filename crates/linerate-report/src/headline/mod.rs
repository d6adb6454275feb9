//! The answer of a result in one line: what was measured, its share of the ceiling, what limited
//! it, how far to trust it, and by which identifier it is found again.
//!
//! One function makes it of any record, so that terminal, page, history and study say the same. A
//! result that a host limited says so before the number.

mod compared;
pub(crate) mod diagnosed;
mod guess;
mod limit;
mod quality;
mod result;
mod surveyed;
mod traced;

use linerate_core::record::{Plan, Record};

use crate::words;

pub(crate) use compared::{ComparedIn, verdict};
pub(crate) use limit::FULL_FROM;
pub use limit::{Limit, LimitedBy};
pub use quality::Quality;

/// What a reader takes away from a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// What was measured: `941.5 Mbit/s to b`.
    pub result: String,
    /// What was measured over its ceiling; of both directions the smaller one. None without a
    /// ceiling.
    pub share: Option<f64>,
    /// The share in words, or why there is none: `94.1 % of the ceiling 941.5 Mbit/s`, `no ceiling
    /// (loopback)`. Empty where nothing bounds what was measured.
    pub ceiling: String,
    /// What limited the result.
    pub limit: Limit,
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
    pub fn of(record: &Record) -> Self {
        let id = short_id(&record.id.to_string()).to_owned();
        if let Plan::Test(_) = record.plan {
            return Self { id, ..surveyed::of(record) };
        }
        if let Plan::Compare(_) = record.plan {
            return compared::of(record);
        }
        if let Plan::Trace(_) = record.plan {
            return traced::of(record);
        }
        let mut limit = limit::of(record);
        // Queue and loss show that it is the path; which of its parts is the diagnosis's to say.
        if matches!(limit.by, LimitedBy::NotKnown | LimitedBy::Path) {
            limit = diagnosed::of(record).unwrap_or(limit);
        }
        let (quality, doubt) = quality::of(record, &limit);
        let (share, ceiling) = result::ceiling(record, |way| guess::in_words(record, way));
        Self { result: result::of(record), share, ceiling, limit, quality, doubt, id }
    }

    /// The whole in one line.
    pub fn line(&self) -> String {
        let mut parts = Vec::with_capacity(5);
        let by = self.limit.by;
        parts.push(match by.is_host() {
            true => match self.limit.way {
                Some(way) => {
                    format!("{} limited by {by}: {}", words::way_capital(way), self.result)
                }
                None => format!("Limited by {by}: {}", self.result),
            },
            false => self.result.clone(),
        });
        parts.push(self.ceiling.clone());
        parts.push(match (by, self.limit.evidence.as_str()) {
            (LimitedBy::Nothing, evidence) => evidence.to_owned(),
            (by, evidence) if by.is_host() => evidence.to_owned(),
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
