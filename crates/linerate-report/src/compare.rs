//! A comparison of candidates that were measured in turn: what each came to, by how much it
//! differs from the first, and whether that is more than the first differs from itself.

use linerate_core::comparison::{CONFIDENCE, Compared, Comparison};
use linerate_core::record::{MetricId, Plan, Record};

use crate::document::{Block, Document, Fact, ReportSection, ReportTable};
use crate::headline::{ComparedIn, short_id, verdict};
use crate::number::or_dash;
use crate::words;

/// Columns of the labels.
const LABEL: usize = 8;

fn candidates_table(comparison: &Comparison) -> ReportTable {
    let unit = ComparedIn::from_comparison(comparison);
    let what = match comparison.metric {
        MetricId::RttKernel => "kernel RTT",
        MetricId::Rtt => "RTT",
        _ => "goodput",
    };
    let share = CONFIDENCE * 100.0;
    let mut table = ReportTable::new([
        "candidate".to_owned(),
        format!("{what} {}", unit.name),
        "difference".to_owned(),
        format!("{share:.0} % interval"),
        "verdict".to_owned(),
    ]);
    let row = |it: &Compared, name: String, value: Option<f64>, verdict: &str| {
        let difference = it.difference.filter(|_| !verdict.is_empty());
        [
            name,
            or_dash(value, |value| unit.format_value(value)),
            or_dash(difference, |difference| unit.signed(difference.median)),
            or_dash(difference, |difference| unit.interval(&difference)),
            verdict.to_owned(),
        ]
    };
    for (index, it) in comparison.candidates.iter().enumerate() {
        if index == 0 {
            table.add_measured_row(row(it, it.name.clone(), it.value, ""));
            table.add_measured_row(row(it, format!("{} again", it.name), None, "floor"));
        } else {
            table.add_measured_row(row(it, it.name.clone(), it.value, verdict(it.verdict)));
        }
    }
    table
}

fn comparison_facts(record: &Record, comparison: &Comparison) -> Vec<Fact> {
    let unit = ComparedIn::from_comparison(comparison);
    let floor = comparison.floor.map(|floor| {
        let name = comparison.candidates.first().map_or("", |first| first.name.as_str());
        let floor = unit.format_value(floor);
        Fact::new("floor", LABEL, format!("{floor} {}: {name} beside itself", unit.name))
    });
    let each = match comparison.metric {
        MetricId::Goodput => "the goodput of one test",
        _ => "the median of its probes",
    };
    let rounds = words::counted(comparison.rounds as u64, "round");
    let (rounds, apart) = match stored(record) {
        Some(results) => (
            format!("{rounds}, blocks of the samples; all else medians"),
            Some(Fact::new("apart", LABEL, results)),
        ),
        None => (
            format!(
                "{rounds}, in an order drawn anew each; a round's value is {each}, all else medians"
            ),
            None,
        ),
    };
    let notes = record.caveats.len() as u64;
    let notes = (notes > 0).then(|| {
        Fact::new("notes", LABEL, format!("{}: -v shows them", words::counted(notes, "note")))
    });
    let rounds = [Fact::new("rounds", LABEL, rounds)];
    floor.into_iter().chain(rounds).chain(apart).chain(notes).collect()
}

/// The results that the rounds were cut from; none where all was measured in turn.
fn stored(record: &Record) -> Option<String> {
    let Plan::Compare(plan) = &record.plan else { return None };
    let started = |id| {
        let part = record.parts.iter().find(|part| part.id == id)?;
        part.started_at.format_utc("%Y-%m-%d %H:%M")
    };
    let results = plan.candidates.iter().map(|candidate| {
        let id = candidate.result?;
        let at = started(id).map(|at| format!(" of {at}"));
        let id = short_id(&id.to_string()).to_owned();
        Some(format!("{} is {id}{}", candidate.name, at.unwrap_or_default()))
    });
    let results: Option<Vec<String>> = results.collect();
    Some(format!("{}; the difference has what changed in between", results?.join(", ")))
}

/// The candidates' table and the facts of a comparison, which stand under the headline.
pub(crate) fn brief_blocks(record: &Record) -> Vec<Block> {
    Comparison::from_record(record).filter(|comparison| comparison.rounds > 0).map_or_else(
        Vec::new,
        |comparison| {
            vec![
                Block::Table(candidates_table(&comparison)),
                Block::Facts(comparison_facts(record, &comparison)),
            ]
        },
    )
}

/// The whole page of a comparison.
pub(crate) fn document(record: &Record) -> Document {
    let comparison = Comparison::from_record(record).filter(|comparison| comparison.rounds > 0);
    let names = comparison
        .iter()
        .flat_map(|comparison| &comparison.candidates)
        .map(|compared| compared.name.clone());
    let title = format!("Comparison of {}", words::listed(&names.collect::<Vec<_>>()));
    let sections = comparison.map(|comparison| {
        let blocks = [
            Block::Table(candidates_table(&comparison)),
            Block::Facts(comparison_facts(record, &comparison)),
        ];
        ReportSection::after_blank_line("Candidates", blocks)
    });
    Document { title, sections: sections.into_iter().collect(), ..Document::default() }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        ComparePlan, ComparisonCandidate, PingPlan, Plan, RecordId, RecordStatus, Stat, Summary,
        Tool,
    };
    use linerate_core::time::WallTime;

    use super::*;
    use crate::headline::{Headline, Quality};

    /// Rounds of a, b, and a again, in ns.
    fn record(rounds: &[[f64; 3]]) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let ping = Plan::Ping(PingPlan::default());
        let named = |name: &str| ComparisonCandidate::new(name, ping.clone());
        let plan = ComparePlan { candidates: vec![named("a"), named("b")], rounds: 16, seed: 1 };
        let begin = |plan| {
            Record::from_plan(
                RecordId::from_parts(0, [0; 10]),
                tool.clone(),
                plan,
                WallTime::from_unix_nanos(0),
            )
        };
        let mut record = begin(Plan::Compare(plan));
        let part = |value: &f64| {
            let mut part = begin(ping.clone());
            part.summary = vec![Summary::from_value(MetricId::RttKernel, Stat::P50, *value)];
            part
        };
        record.parts = rounds.iter().flatten().map(part).collect();
        record.status = RecordStatus::Ok;
        record
    }

    #[test]
    fn a_difference_stands_beside_its_interval_and_the_floor() {
        let rounds = (0..16).map(|n| [2340.0, 4990.0 + f64::from(n % 2) * 10.0, 2340.0]);
        let record = record(&rounds.collect::<Vec<_>>());
        let line = Headline::from_record(&record).summary_line();
        assert!(line.starts_with("against a (2.34 us): b +2.65 us \u{b7} good"), "{line}");
        let text = crate::record::document(&record).text(None);
        // Half of the rounds differ by 2.65 us, half by 2.66; the clock's step is the floor.
        for row in ["a again", "+2.65 to +2.66", "0.00 to 0.00", "floor     0.01 us", "16 rounds"] {
            assert!(text.contains(row), "{row}: {text}");
        }
    }

    #[test]
    fn stored_results_are_named_and_were_not_measured_in_turn() {
        let mut record = record(&[[2340.0, 4990.0, 2340.0]; 16]);
        let Plan::Compare(plan) = &mut record.plan else { panic!("a comparison") };
        let id = RecordId::from_parts(0, [0; 10]);
        plan.candidates.iter_mut().for_each(|candidate| candidate.result = Some(id));
        let line = Headline::from_record(&record).summary_line();
        assert!(line.contains("doubtful: not measured in turn"), "{line}");
        let text = crate::record::document(&record).text(None);
        let told = "16 rounds, blocks of the samples";
        assert!(text.contains(told) && text.contains("a is 00000000-0000 of 1970-01-01"), "{text}");
    }

    /// b reads 10 % above a, whose readings differ by 15 % from one to the next.
    #[test]
    fn a_comparison_that_would_have_missed_a_tenth_is_not_good() {
        let noise = |n: u32| 2340.0 * 0.15 * (f64::from(n % 3) - 1.0);
        let rounds = (0..16).map(|n| [2340.0, 2574.0 + noise(n), 2340.0 + noise(n + 1)]);
        let found = Headline::from_record(&record(&rounds.collect::<Vec<_>>()));
        assert!(found.result.contains("us (0.70 us or 30"), "{}", found.result);
        assert_eq!(found.quality, Quality::Doubtful);
        assert!(found.doubt.starts_with("16 rounds would have missed 30"), "{}", found.doubt);
        // A hundredth of noise: a tenth would have shown, and does.
        let noise = |n: u32| 23.4 * (f64::from(n % 3) - 1.0);
        let rounds = (0..16).map(|n| [2340.0, 2340.0 + noise(n), 2340.0 + noise(n + 1)]);
        let found = Headline::from_record(&record(&rounds.collect::<Vec<_>>()));
        assert_eq!((found.quality, found.doubt.as_str()), (Quality::Good, ""));
        assert!(found.result.contains("both 2.34 us (0.05 us or 2"), "{}", found.result);
    }

    #[test]
    fn a_busy_host_is_a_reason_to_doubt() {
        use linerate_core::record::{Caveat, CaveatCode};
        let rounds = (0..16).map(|n| [2340.0, 4990.0 + f64::from(n % 2) * 10.0, 2340.0]);
        let mut busy = record(&rounds.collect::<Vec<_>>());
        let caveat = Caveat::new(CaveatCode::RunQueueWait, "the host was busy", "stop it");
        // One measurement of 48 is no reason, a tenth of them is one.
        busy.parts[0].caveats.push(caveat.clone());
        assert_eq!(Headline::from_record(&busy).quality, Quality::Good);
        busy.parts[1..5].iter_mut().for_each(|part| part.caveats.push(caveat.clone()));
        let found = Headline::from_record(&busy);
        let doubt = "in 5 of 48 measurements: the host was busy";
        assert_eq!((found.quality, found.doubt.as_str()), (Quality::Doubtful, doubt));
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        let same = record(&[[2340.0, 2340.0, 2340.0]; 16]);
        let line = Headline::from_record(&same).summary_line();
        assert!(line.starts_with("no difference: both 2.34 us"), "{line}");
        let few = Headline::from_record(&record(&[[2340.0, 4990.0, 2340.0]; 3]));
        assert_eq!((few.quality, few.result.ends_with("b not known")), (Quality::Doubtful, true));
        assert!(few.doubt.contains("3 rounds of the 6"), "{}", few.doubt);
        let moved = Headline::from_record(&record(&[[2340.0, 4990.0, 2400.0]; 16]));
        assert_eq!(
            (moved.quality, moved.doubt.as_str()),
            (Quality::Doubtful, "a differs from itself")
        );
        let none = Headline::from_record(&record(&[]));
        assert_eq!((none.quality, none.result.as_str()), (Quality::Bad, "nothing was compared"));
    }
}
