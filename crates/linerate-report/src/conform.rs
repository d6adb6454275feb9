//! The document of a conformance run.
//!
//! The order: the verdict, what was metered and what was not, each contract, the smallest burst at
//! each rate, the busiest windows, the bucket that shows.

use linerate_core::conformance::{
    BurstAtRate, Conformance, ContractResult, Count, Ended, Lack, Needed, Run, Violation,
};
use linerate_core::time::WallTime;

use crate::document::{Block, Document, Fact, ReportSection, ReportTable};
use crate::headline::{Headline, LimitText, LimitedBy, Quality};
use crate::{number, words};

/// Rows of the table of bursts; JSON has them all.
const ROWS_MAX: usize = 16;

/// The page of a conformance run: each contract, bursts, peaks and the bucket's level.
pub fn document(found: &Conformance) -> Document {
    let mut sections: Vec<ReportSection> =
        found.contracts.iter().map(|contract| contract_section(found, contract)).collect();
    sections.extend(bursts(found));
    sections.extend(peaks_section(found));
    sections.extend(
        bucket(found).map(|text| ReportSection::without_blank_line("", [Block::Text(text)])),
    );
    let headline = headline(found);
    Document {
        sentence: headline.summary_line(),
        headline: Some(headline),
        title: title_line(found),
        head: vec![Block::Lines(head_lines(found).into_iter().chain(not_metered(found)).collect())],
        sections,
        failure: found.failure.as_ref().map(|failure| ("ended early", failure.clone())),
        brief: brief_blocks(found),
        ..Document::default()
    }
}

fn title_line(found: &Conformance) -> String {
    format!("Conformance of {}: {}{}", found.source, amount(&found.total), span_text(found))
}

fn span_text(found: &Conformance) -> String {
    match found.span_ns {
        0 => String::new(),
        ns => format!(" in {}", time_with_unit(ns as f64)),
    }
}

fn head_lines(found: &Conformance) -> Vec<String> {
    let first = found.first_at_ns.map(|first| WallTime::from_unix_nanos(first.into()));
    let mut out: Vec<String> =
        first.map(|first| format!("first packet {first}")).into_iter().collect();
    out.push(match (found.cells, found.line_cells_per_s) {
        (Some(cells), Some(line)) => format!(
            "counted: cells of 53 bytes, {cells}, on a line of {} ({} cells/s)",
            number::rate_with_unit(line * 424.0),
            number::significant(line, 8)
        ),
        _ => format!("counted: bytes of the {}", found.layer),
    });
    out.extend((found.only != "all").then(|| format!("only {}", found.only)));
    out.extend(found.mean_bps.map(|mean| format!("mean rate {}", number::rate_with_unit(mean))));
    out
}

fn amount(count: &Count) -> String {
    let mut text =
        format!("{}, {}", words::counted(count.packets, "packet"), number::amount(count.bytes));
    if let Some(cells) = count.cells {
        text.push_str(&format!(", {}", words::counted(cells, "cell")));
    }
    text
}

/// A time with the unit that suits it.
fn time_with_unit(ns: f64) -> String {
    match ns {
        _ if ns == 0.0 => "0 s".to_owned(),
        _ if ns < 1e3 => format!("{} ns", number::significant(ns, 4)),
        _ if ns < 1e6 => format!("{} us", number::significant(ns / 1e3, 4)),
        _ if ns < 1e9 => format!("{} ms", number::significant(ns / 1e6, 4)),
        _ => format!("{} s", number::significant(ns / 1e9, 4)),
    }
}

fn not_metered(found: &Conformance) -> Vec<String> {
    let unused = &found.unused;
    let reasons = [
        (unused.without_ip, "without IP"),
        (unused.cut, "captured too short"),
        (unused.without_time, "without a time"),
        (unused.filtered, "left out by the filter"),
        (unused.dropped.unwrap_or(0), "lost before they were captured"),
    ];
    let reasons = reasons.iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<String> = reasons.map(|(count, why)| format!("{count} {why}")).collect();
    let mut out = Vec::new();
    out.extend((!reasons.is_empty()).then(|| format!("not metered: {}", reasons.join(", "))));
    let notes = [
        (
            unused.out_of_order,
            "stamped earlier than a packet before; metered at the latest time seen",
        ),
        (
            unused.joined,
            "longer than the link's largest; offload joined segments before the capture, so bursts \
             look larger: ethtool -K INTERFACE gro off tso off gso off",
        ),
    ];
    let notes = notes.into_iter().filter(|(count, _)| *count > 0);
    out.extend(
        notes.map(|(count, why)| format!("note: {} {why}", words::counted(count, "packet"))),
    );
    out
}

fn contract_section(found: &Conformance, result: &ContractResult) -> ReportSection {
    let mut lines = Vec::new();
    if let (Some(inside), Some(outside)) = (result.cells_conforming, result.cells_outside) {
        lines.push(format!("cells: {inside} conform, {outside} do not"));
    }
    lines.extend(result.first.as_ref().map(|first| format!("first outside: {}", violation(first))));
    let worst = result.worst.filter(|worst| Some(*worst) != result.first);
    lines.extend(worst.map(|worst| format!("worst: {}", violation(&worst))));
    let longest = result.longest_run.as_ref();
    lines.extend(longest.map(|run| format!("longest run outside: {}", run_text(run))));
    lines.extend(result.needed.iter().map(needed_text));
    let table = Block::Table(counts(found, result));
    ReportSection::without_blank_line(result.contract.as_str(), [table, Block::Lines(lines)])
}

fn counts(found: &Conformance, result: &ContractResult) -> ReportTable {
    let rows = [
        ("green", Some(&result.green)),
        ("yellow", result.yellow.as_ref()),
        ("red", Some(&result.red)),
    ];
    let share = |count: &Count| {
        let share = count.bytes as f64 / found.total.bytes as f64;
        (found.total.bytes > 0).then(|| number::percent(share))
    };
    ReportTable::from_rows(
        rows.into_iter().filter_map(|(name, count)| Some((name, count?))),
        &[
            ("colour", &|(name, _)| (*name).to_owned()),
            ("packets", &|(_, count)| count.packets.to_string()),
            ("bytes", &|(_, count)| number::amount(count.bytes)),
            ("share of bytes", &|(_, count)| number::or_dash(share(count), |share| share)),
        ],
    )
}

fn violation(violation: &Violation) -> String {
    format!(
        "packet {} of {} bytes, {} after the first: {}",
        violation.packet,
        violation.bytes,
        time_with_unit(violation.at_ns as f64),
        lack_text(violation)
    )
}

fn lack_text(violation: &Violation) -> String {
    match violation.lack {
        Lack::EarlyNs(ns) => format!("{} too early", time_with_unit(ns)),
        Lack::MissingBytes(bytes) => {
            format!("{} of tokens missing", words::counted(bytes, "byte"))
        }
        Lack::Precoloured => "it came with this colour".to_owned(),
    }
}

fn run_text(run: &Run) -> String {
    format!(
        "{}, {}, from packet {} on, in {}",
        words::counted(run.packets, "packet"),
        number::amount(run.bytes),
        run.first_packet,
        time_with_unit(run.span_ns as f64)
    )
}

fn needed_text(needed: &Needed) -> String {
    let show = |value: f64| match needed.unit.as_str() {
        "ns" => time_with_unit(value),
        unit => format!("{value:.0} {unit}"),
    };
    let enough = if needed.value <= needed.granted { "is enough" } else { "is too little" };
    format!(
        "all of it at {} needs {} {}; {} {enough}",
        number::rate_with_unit(needed.rate_bps),
        needed.parameter.to_uppercase(),
        show(needed.value),
        show(needed.granted)
    )
}

fn bursts(found: &Conformance) -> Option<ReportSection> {
    found.inverse.first()?;
    let in_cells = found.cells.is_some();
    let mut head = vec!["rate", "smallest burst", "needed over"];
    if in_cells {
        head.extend(["cells/s", "cells", "smallest CDVT"]);
    }
    let mut table = ReportTable::new(head);
    for row in thinned(&found.inverse) {
        let mut cells = vec![
            number::rate_with_unit(row.rate_bps),
            format!("{:.0} bytes", (row.burst_bytes - 1e-6).ceil()),
            time_with_unit(row.span_ns),
        ];
        if let (Some(rate), Some(cdvt)) = (row.cells_per_s, row.cdvt_ns) {
            cells.push(number::significant(rate, 6));
            cells.push(format!("{:.2}", row.burst_bytes / 53.0));
            cells.push(time_with_unit(cdvt));
        }
        table.add_measured_row(cells);
    }
    let title = "The smallest burst with which all of it conforms";
    Some(ReportSection::without_blank_line(title, [Block::Table(table)]))
}

/// At most [`ROWS_MAX`] rows, the first and the last among them.
fn thinned(rows: &[BurstAtRate]) -> Vec<&BurstAtRate> {
    let shown = rows.len().min(ROWS_MAX);
    let at = |index: usize| index * (rows.len() - 1) / (shown - 1).max(1);
    (0..shown).map(|index| &rows[at(index)]).collect()
}

fn peaks_section(found: &Conformance) -> Option<ReportSection> {
    found.peaks.first()?;
    let rows = found.peaks.iter().map(|peak| {
        [
            time_with_unit(peak.window_ns as f64),
            number::amount(peak.bytes),
            number::rate_with_unit(peak.bps),
        ]
    });
    let table = ReportTable::new(["window", "most bytes", "peak rate"]).with_rows(rows);
    Some(ReportSection::without_blank_line("The busiest windows", [Block::Table(table)]))
}

fn bucket(found: &Conformance) -> Option<String> {
    let bucket = found.bucket.as_ref()?;
    Some(format!(
        "It looks as if a token bucket of {} (CIR) and {:.0} bytes (CBS) had shaped it: the rate \
         held for {}, and {} of the later packets came with that bucket nearly empty. A bucket that \
         was not full before is deeper.",
        number::rate_with_unit(bucket.rate_bps),
        bucket.burst_bytes,
        time_with_unit(bucket.held_ns),
        number::whole_percent(bucket.empty_share)
    ))
}

/// The metered traffic, each contract's result, and where its figures are.
fn brief_blocks(found: &Conformance) -> Vec<Block> {
    let metered =
        Fact::new("metered", LABEL, format!("{}{}", amount(&found.total), span_text(found)));
    let mean = found.mean_bps.map(|mean| Fact::new("mean", LABEL, number::rate_with_unit(mean)));
    let contracts = found.contracts.iter().take(CONTRACTS_MAX).map(|result| {
        let red = &result.red;
        let outside = format!("{} of {} outside", red.packets, found.total.packets);
        let worst = result.worst.map(|violation| {
            format!(", worst packet {}: {}", violation.packet, lack_text(&violation))
        });
        let worst = worst.unwrap_or_default();
        Fact::new("contract", LABEL, format!("{}: {outside}{worst}", result.contract))
    });
    let more = Fact::new("more", LABEL, "-v shows colours, runs, bursts and busiest windows");
    let facts = [metered].into_iter().chain(mean).chain(contracts).chain([more]);
    vec![Block::Facts(facts.collect())]
}

/// Columns of the labels.
const LABEL: usize = 8;
/// Contracts that a brief result lists.
const CONTRACTS_MAX: usize = 2;

/// The verdict: all that conforms is good, and what does not is bad.
fn headline(found: &Conformance) -> Headline {
    let (doubt, quality) = match found.ended {
        Ended::Complete | Ended::Limit if found.total.packets == 0 => ("", Quality::Bad),
        Ended::Complete | Ended::Limit if found.all_conform() => ("", Quality::Good),
        Ended::Complete | Ended::Limit => ("", Quality::Bad),
        Ended::Interrupted => ("interrupted", Quality::Doubtful),
        Ended::Failed => ("the source failed", Quality::Doubtful),
    };
    Headline {
        result: verdict(found),
        share: None,
        ceiling: String::new(),
        limit: LimitText::new(LimitedBy::Nothing, found.source.clone()),
        quality,
        doubt: doubt.to_owned(),
        id: String::new(),
    }
}

fn verdict(found: &Conformance) -> String {
    if found.total.packets == 0 {
        return "no packet was metered".to_owned();
    }
    let outside = found.contracts.iter().filter(|contract| contract.red.packets > 0).count();
    match (found.contracts.len(), outside) {
        (0, _) => format!("{} metered against no contract", amount(&found.total)),
        (1, 0) => "every packet keeps the contract".to_owned(),
        (all, 0) => format!("every packet keeps all {all} contracts"),
        (1, _) => {
            let red = &found.contracts[0].red;
            let share = number::percent(red.bytes as f64 / found.total.bytes.max(1) as f64);
            format!(
                "{} of {} outside the contract, {share} of the bytes",
                red.packets,
                words::counted(found.total.packets, "packet")
            )
        }
        (all, outside) => format!("{outside} of {all} contracts are not kept"),
    }
}
