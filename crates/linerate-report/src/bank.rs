//! A bank of planted causes: a line for each case, and how the diagnosis and the baselines score.

mod page;

use linerate_core::lab::bank::{BASELINES, Case, CaseLabels, Label, Score, Tally, Validity};
use linerate_core::record::Confidence;
use linerate_core::stats::{Z_95, wilson_interval};

use crate::document::{Align, Block, Document, ReportSection, ReportTable};
use crate::number::{NONE, percent, rate_in_mbit, time_in_ms};

pub use page::{BankPageCase, cases_page};

/// One case in one line: what it reached, what was planted, what was said.
pub fn case_line(case: &Case, judged: &CaseLabels) -> String {
    let name = case.name();
    let reached = rate_in_mbit(case.with.goodput_bps);
    let without = case.without.map(|without| format!(" of {}", rate_in_mbit(without.goodput_bps)));
    let delay = case.with.delay_ns.map(|ns| format!(", {} ms", time_in_ms(ns)));
    let figures =
        format!("{reached}{} Mbit/s{}", without.unwrap_or_default(), delay.unwrap_or_default());
    let told = match &case.validity {
        Validity::Valid => {
            let said = judged.said.map_or_else(|| NONE.to_owned(), |label| label.to_string());
            let mark = if case.is_right(judged.diagnosis_label()) { "right" } else { "wrong" };
            let mark = if judged.said.is_some() { mark } else { "silent" };
            let baselines = BASELINES.iter().zip(judged.baselines);
            let baselines = baselines.map(|(rule, label)| {
                format!("{} {}: {label}", if case.is_right(label) { "+" } else { "-" }, rule.name)
            });
            let baselines: Vec<String> = baselines.take(BASELINES.len() - 1).collect();
            format!("{}; said: {said}, {mark} ({})", case.expect, baselines.join(", "))
        }
        Validity::Void(why) => format!("{}; VOID: {why}", case.expect),
        Validity::Disturbed(why) => format!("{}; disturbed: {why}", case.expect),
        Validity::Failed(why) => format!("{}; not measured: {why}", case.expect),
    };
    format!("{name:<36} {figures:<34} {told}")
}

/// The scores over judged cases, with the labels that were said for each planted one.
pub fn document(cases: &[(Case, CaseLabels)]) -> Document {
    let tally = Tally::from_cases(cases.iter().map(|(case, judged)| (case, judged)));
    let mut sections =
        vec![ReportSection::after_blank_line("Scores", [Block::Table(scores(&tally))])];
    if !tally.confusion.is_empty() {
        sections.push(ReportSection::after_blank_line(
            "Planted and said",
            [Block::Table(confusion(&tally))],
        ));
    }
    if !tally.by_confidence.is_empty() {
        sections.push(ReportSection::after_blank_line(
            "Confidence",
            [Block::Table(confidence(&tally))],
        ));
    }
    let mut notes = Vec::new();
    if let Some(error) = tally.ceiling_error() {
        let count = tally.ceiling_ratios.len();
        let error = percent(error);
        notes.push(format!("{count} ceilings were stated; half of them are within {error}"));
    }
    if !tally.next_ratios.is_empty() {
        let (kept, made) = (tally.promises_kept(), tally.next_ratios.len());
        notes.push(format!(
            "{kept} of {made} promised next limits were reached to four fifths without the plant"
        ));
    }
    let [(named, planted), (elsewhere, innocent)] = tally.queues;
    if planted > 0 {
        notes.push(format!(
            "delay, not in the scores above: {named} of {planted} deep buffers were named, and a \
             standing queue on {elsewhere} of {innocent} paths at their ceiling"
        ));
    }
    if tally.repeated > 0 {
        let (agreed, repeated) = (tally.agreed, tally.repeated);
        notes.push(format!("{agreed} of {repeated} scenarios had the same verdict in every run"));
    }
    for (count, what) in [
        (tally.void, "void: the plant did not limit the result, or an innocent one did"),
        (tally.disturbed, "disturbed: this machine spoilt the measurement"),
        (tally.failed, "not measured"),
    ] {
        if count > 0 {
            notes.push(format!("{count} {what}; not scored"));
        }
    }
    Document {
        title: format!("Bank of planted causes: {} cases", cases.len()),
        sections,
        notes,
        ..Document::default()
    }
}

fn scores(tally: &Tally) -> ReportTable {
    let mut table =
        ReportTable::new(["judge", "right", "of", "share", "95 % interval", "accused", "innocent"]);
    let baselines = BASELINES.iter().zip(&tally.baselines);
    let rows = baselines.map(|(rule, score)| (rule.name, score));
    for (name, score) in std::iter::once(("linerate", &tally.diagnosis)).chain(rows) {
        table.add_measured_row(score_row(name, score));
    }
    table
}

fn score_row(name: &str, score: &Score) -> [String; 7] {
    let (share, interval) = match score.accuracy() {
        Some((share, interval)) => {
            (percent(share), format!("{} to {}", percent(interval.low), percent(interval.high)))
        }
        None => (NONE.to_owned(), NONE.to_owned()),
    };
    let [right, cases, accused, innocent] =
        [score.right, score.cases, score.accused, score.innocent].map(|count| count.to_string());
    [name.to_owned(), right, cases, share, interval, accused, innocent]
}

fn confidence(tally: &Tally) -> ReportTable {
    let mut table = ReportTable::new(["confidence", "right", "of", "share", "95 % interval"]);
    for (confidence, (right, of)) in tally.by_confidence.iter().rev() {
        let word = match confidence {
            Confidence::High => "high",
            Confidence::Medium => "medium",
            Confidence::Low => "low",
        };
        let interval = wilson_interval(*right, *of, Z_95);
        let interval = interval.map_or_else(
            || NONE.to_owned(),
            |interval| format!("{} to {}", percent(interval.low), percent(interval.high)),
        );
        let share = percent(*right as f64 / *of as f64);
        table.add_measured_row([
            word.to_owned(),
            right.to_string(),
            of.to_string(),
            share,
            interval,
        ]);
    }
    table
}

fn confusion(tally: &Tally) -> ReportTable {
    let columns = [("planted", Align::Left), ("cases", Align::Right), ("said", Align::Prose)];
    let mut table = ReportTable::from_columns(columns);
    for (planted, said) in &tally.confusion {
        let mut counts: Vec<(&Label, &u64)> = said.iter().collect();
        counts.sort_by(|one, other| other.1.cmp(one.1).then(one.0.cmp(other.0)));
        let words = counts.iter().map(|(label, count)| format!("{label} {count}"));
        let words = words.collect::<Vec<_>>().join(", ");
        table.add_measured_row([
            planted.to_string(),
            said.values().sum::<u64>().to_string(),
            words,
        ]);
    }
    table
}
