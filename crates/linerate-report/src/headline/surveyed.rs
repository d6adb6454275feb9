//! The answer of a survey: the best rate each way, and what limited each way.

use linerate_core::explain::explain;
use linerate_core::record::{Direction, MetricId, Plan, Record, Stat, Verdict};

use super::limit::{Limit, LimitedBy};
use super::{Headline, Quality, diagnosed, result};

/// The best rate each way, else the round trip, with what limited these, and how far they are to be
/// trusted. Each way has a limit of its own: one may be the host's while the other is the path's.
pub(super) fn of(record: &Record) -> Headline {
    let parts = &record.parts;
    let ways = [Direction::Up, Direction::Down].into_iter();
    let found: Vec<_> = ways.filter_map(|way| Some((best(parts, way)?, way))).collect();
    let best: Vec<Headline> = found.iter().map(|(part, _)| Headline::of(part)).collect();
    let verdicts = explain(record);
    let limits = found.iter().zip(&best);
    let limits = limits.map(|((_, way), part)| limit(&part.limit, *way, &verdicts)).collect();
    let limit = together(limits);
    let ping = parts.iter().find(|part| matches!(part.plan, Plan::Ping(_)));
    let result = result::of_best(&found).or_else(|| ping.and_then(result::round_trip));
    let ping = ping.map(Headline::of);
    let worst = best.iter().rev().max_by_key(|part| part.quality).or(ping.as_ref());
    let shares = best.iter().filter_map(|part| part.share);
    let mut ceilings: Vec<&str> = best.iter().map(|part| part.ceiling.as_str()).collect();
    ceilings.dedup();
    Headline {
        result: result.unwrap_or_else(|| "nothing was measured".to_owned()),
        share: shares.reduce(f64::min),
        ceiling: ceilings.join(" and "),
        limit,
        quality: worst.map_or(Quality::Bad, |part| part.quality),
        doubt: worst.map_or_else(String::new, |part| part.doubt.clone()),
        id: String::new(),
    }
}

/// The part with the highest goodput of a direction.
fn best(parts: &[Record], way: Direction) -> Option<&Record> {
    let rates = parts.iter().filter(|part| matches!(part.plan, Plan::Tcp(_)));
    let rates = rates
        .filter_map(|part| Some((part, part.value(MetricId::Goodput, Stat::Value, Some(way))?)));
    rates.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(part, _)| part)
}

/// What limited a way: as the diagnosis of the whole survey has it where it is sure, since probe
/// trains and the path MTU say more than a transfer alone, and it blames a path only where neither
/// host had a part; else as the transfer's own counters say.
fn limit(own: &Limit, way: Direction, verdicts: &[Verdict]) -> Limit {
    let mut verdicts = verdicts.iter().filter(|it| it.direction == Some(way));
    let found = verdicts.find_map(diagnosed::sure);
    Limit { way: Some(way), ..found.unwrap_or_else(|| own.clone()) }
}

/// The limit that a reader must know first, and that of the other way where it is another.
fn together(mut limits: Vec<Limit>) -> Limit {
    limits.sort_by_key(|limit| std::cmp::Reverse(limit.weight()));
    let mut limits = limits.into_iter();
    let Some(first) = limits.next() else { return Limit::new(LimitedBy::Nothing, "") };
    match limits.find(|other| !other.is_same(&first)) {
        None => Limit { way: None, ..first },
        Some(other) => Limit { other: Some(Box::new(other)), ..first },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit_of(by: LimitedBy, evidence: &str, way: Direction) -> Limit {
        Limit { way: Some(way), ..Limit::new(by, evidence) }
    }

    fn line(limits: Vec<Limit>) -> String {
        let whole = Headline {
            result: "47.90 Mbit/s to b, 817.6 Mbit/s from it".to_owned(),
            share: None,
            ceiling: String::new(),
            limit: together(limits),
            quality: Quality::Good,
            doubt: String::new(),
            id: String::new(),
        };
        whole.line()
    }

    #[test]
    fn a_host_that_limits_one_way_is_not_said_to_limit_both() {
        let up = limit_of(LimitedBy::Path, "a shaper, 49.54 Mbit/s", Direction::Up);
        let busy = "a receiver thread used 99 % of a core";
        let down = limit_of(LimitedBy::ThisHost, busy, Direction::Down);
        let told = "Down limited by this host: 47.90 Mbit/s to b, 817.6 Mbit/s from it \u{b7} a \
                    receiver thread used 99 % of a core \u{b7} up limited by the path: a shaper, \
                    49.54 Mbit/s \u{b7} good";
        assert_eq!(line(vec![up, down]), told);
    }

    #[test]
    fn two_ways_with_one_limit_have_it_once() {
        let way = |text, way| limit_of(LimitedBy::Path, text, way);
        let same = vec![
            way("a shaper, 49 Mbit/s", Direction::Up),
            way("a shaper, 51 Mbit/s", Direction::Down),
        ];
        let told = line(same);
        assert!(
            told.contains(" \u{b7} limited by the path: a shaper, 49 Mbit/s \u{b7} good"),
            "{told}"
        );
        let two = vec![
            way("a shaper", Direction::Up),
            limit_of(LimitedBy::NotKnown, "", Direction::Down),
        ];
        let told = line(two);
        let each = "up limited by the path: a shaper \u{b7} down: limit not known \u{b7} good";
        assert!(told.ends_with(each), "{told}");
    }
}
