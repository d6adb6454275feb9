//! The result of a survey: the best rate each way, else the round trip.

use linerate_core::explain::best_part;
use linerate_core::record::{Direction, Plan, Record};

use super::{guess, result};

/// The best rate each way, the smaller share of a ceiling, and the ceilings in words.
pub(super) fn result(record: &Record) -> (String, Option<f64>, String) {
    let parts = &record.parts;
    let ways = [Direction::Up, Direction::Down].into_iter();
    let best: Vec<_> = ways.filter_map(|way| Some((best_part(parts, way)?, way))).collect();
    let ceilings = best.iter().map(|(part, _)| {
        let guessed = |way| guess::in_words(part, way);
        result::ceiling(part, guessed)
    });
    let (shares, mut ceilings): (Vec<_>, Vec<_>) = ceilings.unzip();
    ceilings.dedup();
    let ping = parts.iter().find(|part| matches!(part.plan, Plan::Ping(_)));
    let result = result::of_best(&best).or_else(|| ping.and_then(result::round_trip));
    let result = result.unwrap_or_else(|| "nothing was measured".to_owned());
    (result, shares.into_iter().flatten().reduce(f64::min), ceilings.join(" and "))
}
