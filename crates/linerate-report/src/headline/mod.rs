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
mod traced;

use linerate_core::record::{Direction, MetricId, Plan, Record, Stat};

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

/// The part with the highest goodput of a direction.
fn best(parts: &[Record], way: Direction) -> Option<&Record> {
    let rates = parts.iter().filter(|part| matches!(part.plan, Plan::Tcp(_)));
    let rates = rates
        .filter_map(|part| Some((part, part.value(MetricId::Goodput, Stat::Value, Some(way))?)));
    rates.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(part, _)| part)
}

impl Headline {
    /// The answer of a record.
    pub fn of(record: &Record) -> Self {
        let id = short_id(&record.id.to_string()).to_owned();
        if let Plan::Test(_) = record.plan {
            let whole = Self { id, ..Self::of_parts(&record.parts) };
            // Probe trains and the path MTU say more than its transfers alone.
            let diagnosed = diagnosed::of(record).filter(|_| !whole.limit.by.is_host());
            let limit = diagnosed.unwrap_or_else(|| whole.limit.clone());
            return Self { limit, ..whole };
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

    /// The answer of a test of several parts: the best rate each way, else the round trip, with
    /// what limited these, and how far they are to be trusted.
    fn of_parts(parts: &[Record]) -> Self {
        let ways = [Direction::Up, Direction::Down].into_iter();
        let found: Vec<_> = ways.filter_map(|way| Some((best(parts, way)?, way))).collect();
        let best: Vec<Self> = found.iter().map(|(part, _)| Self::of(part)).collect();
        let ping = parts.iter().find(|part| matches!(part.plan, Plan::Ping(_)));
        let result = result::of_best(&found).or_else(|| ping.and_then(result::round_trip));
        // Of the two ways that which a reader must know first, or trust least.
        let limit = best.iter().map(|part| &part.limit).rev().max_by_key(|limit| limit.weight());
        let ping = ping.map(Self::of);
        let worst = best.iter().rev().max_by_key(|part| part.quality).or(ping.as_ref());
        let shares = best.iter().filter_map(|part| part.share);
        let mut ceilings: Vec<&str> = best.iter().map(|part| part.ceiling.as_str()).collect();
        ceilings.dedup();
        Self {
            result: result.unwrap_or_else(|| "nothing was measured".to_owned()),
            share: shares.reduce(f64::min),
            ceiling: ceilings.join(" and "),
            limit: limit.map_or_else(|| Limit::new(LimitedBy::Nothing, ""), Clone::clone),
            quality: worst.map_or(Quality::Bad, |part| part.quality),
            doubt: worst.map_or_else(String::new, |part| part.doubt.clone()),
            id: String::new(),
        }
    }

    /// The whole in one line.
    pub fn line(&self) -> String {
        let mut parts = Vec::with_capacity(5);
        let by = self.limit.by;
        parts.push(match by.is_host() {
            true => format!("Limited by {by}: {}", self.result),
            false => self.result.clone(),
        });
        parts.push(self.ceiling.clone());
        parts.push(match (by, self.limit.evidence.as_str()) {
            (LimitedBy::Nothing, evidence) => evidence.to_owned(),
            (LimitedBy::NotKnown, _) => "limit not known".to_owned(),
            (by, evidence) if by.is_host() => evidence.to_owned(),
            (by, "") => format!("limited by {by}"),
            (by, evidence) => format!("limited by {by}: {evidence}"),
        });
        parts.push(match self.doubt.as_str() {
            "" => self.quality.to_string(),
            doubt => format!("{}: {doubt}", self.quality),
        });
        parts.push(self.id.clone());
        parts.retain(|part| !part.is_empty());
        parts.join(" \u{b7} ")
    }
}
