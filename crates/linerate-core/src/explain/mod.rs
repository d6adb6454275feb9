//! What limited a result, said from what was measured.
//!
//! A record is read into [`Evidence`], one direction at a time, and the verdict is made from that
//! alone: the plan of an emulated path, a study or a laboratory is no part of it. In this order:
//! whether the tester spoilt the measurement; figures that need no statistics; what binds at the
//! ends; what the path did. A false accusation is worse than none: where more than one cause agrees
//! with the evidence the verdict is "undetermined" and names the test that would decide.
//! Left out: sending probes, words for people.

mod candidate;
mod ends;
mod evidence;
mod gate;
mod judge;
mod of_record;
mod path;

pub use evidence::{
    Agreed, Asked, Evidence, Host, Loss, ProbesSeen, Rate, RoundTrips, Syn, Windows,
};
pub use judge::judge;
pub use of_record::directions;

use crate::record::{Direction, Plan, Record, Verdict};

/// What limited each direction of a record: of a TCP test, and of the best measurement each way of
/// a survey. Empty for other kinds.
pub fn explain(record: &Record) -> Vec<Verdict> {
    match &record.plan {
        Plan::Tcp(_) => directions(record).iter().map(judge).collect(),
        Plan::Test(_) => {
            let ways = [Direction::Up, Direction::Down].into_iter();
            let best = ways.filter_map(|way| Some((way, record.best_part(way)?)));
            let verdicts = best.flat_map(|(way, part)| {
                let all = explain(part).into_iter();
                all.filter(move |verdict| verdict.direction == Some(way))
            });
            verdicts.collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Cause, Outcome};

    fn record(name: &str) -> Record {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/explain/records/");
        let text = std::fs::read_to_string(format!("{root}{name}.json")).expect("it is there");
        serde_json::from_str(&text).expect("a record")
    }

    #[test]
    fn the_plan_of_an_emulated_path_changes_no_verdict() {
        let seen = record("base");
        assert!(!seen.paths.is_empty() && seen.ceiling.is_some());
        let mut blind = seen.clone();
        blind.paths.clear();
        (blind.ceiling, blind.ceiling_reverse, blind.cell, blind.name) = (None, None, None, None);
        blind.tags.clear();
        let verdicts = explain(&seen);
        assert_eq!(verdicts.len(), 1);
        assert_eq!(verdicts, explain(&blind));
    }

    #[test]
    fn a_full_link_of_100_mbit_is_the_ceiling() {
        // 100 Mbit/s, 20 ms each way, a buffer of one BDP, CUBIC, 8 s (Linux 6.18, 2026-11-23).
        let verdict = explain(&record("base")).remove(0);
        assert_eq!((verdict.outcome, verdict.cause), (Outcome::AtCeiling, Some(Cause::Link)));
    }
}
