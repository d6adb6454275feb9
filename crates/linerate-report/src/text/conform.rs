//! What a conformance run found, as terminal text.
//!
//! The order: what was metered and what was not, each contract, the smallest burst at each rate,
//! the busiest windows, the bucket that shows, one plain sentence.

use linerate_core::conformance::{
    BurstAtRate, Conformance, ContractResult, Count, Ended, Lack, Needed, Run, Violation,
};
use linerate_core::time::WallTime;

use crate::number;
use crate::table::Table;
use crate::{escape, words};

/// Rows of the table of bursts; JSON has them all.
const ROWS_MAX: usize = 16;

/// The text of a run; lines are ended, the last one too.
pub fn conformance(found: &Conformance) -> String {
    let mut out = head(found);
    out.push_str(&not_metered(found));
    for contract in &found.contracts {
        out.push_str(&contract_text(found, contract));
    }
    out.push_str(&bursts(found));
    out.push_str(&peaks(found));
    out.push_str(&bucket(found));
    if let Some(failure) = &found.failure {
        out.push_str(&format!("  ended early: {}\n", escape::line(failure)));
    }
    out.push_str(&sentence(found));
    out.push('\n');
    out
}

fn head(found: &Conformance) -> String {
    let mut out =
        format!("Conformance of {}: {}", escape::line(&found.source), amount(&found.total));
    if found.span_ns > 0 {
        out.push_str(&format!(" in {}", time(found.span_ns as f64)));
    }
    out.push('\n');
    if let Some(first) = found.first_at_ns {
        out.push_str(&format!("  first packet {}\n", WallTime::from_unix_nanos(first.into())));
    }
    match (found.cells, found.line_cells_per_s) {
        (Some(cells), Some(line)) => {
            let rate = number::rate(line * 424.0);
            out.push_str(&format!(
                "  counted: cells of 53 bytes, {cells}, on a line of {rate} ({} cells/s)\n",
                number::significant(line, 8)
            ));
        }
        _ => out.push_str(&format!("  counted: bytes of the {}\n", found.layer)),
    }
    if found.only != "all" {
        out.push_str(&format!("  only {}\n", escape::line(&found.only)));
    }
    if let Some(mean) = found.mean_bps {
        out.push_str(&format!("  mean rate {}\n", number::rate(mean)));
    }
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
fn time(ns: f64) -> String {
    match ns {
        _ if ns == 0.0 => "0 s".to_owned(),
        _ if ns < 1e3 => format!("{} ns", number::significant(ns, 4)),
        _ if ns < 1e6 => format!("{} us", number::significant(ns / 1e3, 4)),
        _ if ns < 1e9 => format!("{} ms", number::significant(ns / 1e6, 4)),
        _ => format!("{} s", number::significant(ns / 1e9, 4)),
    }
}

fn not_metered(found: &Conformance) -> String {
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
    let mut out = String::new();
    if !reasons.is_empty() {
        out.push_str(&format!("  not metered: {}\n", reasons.join(", ")));
    }
    if unused.out_of_order > 0 {
        out.push_str(&format!(
            "  note: {} stamped earlier than a packet before; metered at the latest time seen\n",
            words::counted(unused.out_of_order, "packet")
        ));
    }
    if unused.joined > 0 {
        out.push_str(&format!(
            "  note: {} longer than the link's largest; offload joined segments before the capture, so \
             bursts look larger: ethtool -K INTERFACE gro off tso off gso off\n",
            words::counted(unused.joined, "packet")
        ));
    }
    out
}

fn contract_text(found: &Conformance, result: &ContractResult) -> String {
    let mut out = format!("{}\n", escape::line(&result.contract));
    out.push_str(&counts(found, result).text(2));
    if let (Some(inside), Some(outside)) = (result.cells_conforming, result.cells_outside) {
        out.push_str(&format!("  cells: {inside} conform, {outside} do not\n"));
    }
    if let Some(first) = &result.first {
        out.push_str(&format!("  first outside: {}\n", violation(first)));
    }
    if let Some(worst) = result.worst.filter(|worst| Some(*worst) != result.first) {
        out.push_str(&format!("  worst: {}\n", violation(&worst)));
    }
    if let Some(run) = &result.longest_run {
        out.push_str(&format!("  longest run outside: {}\n", run_text(run)));
    }
    for needed in &result.needed {
        out.push_str(&format!("  {}\n", needed_text(needed)));
    }
    out
}

fn counts(found: &Conformance, result: &ContractResult) -> Table {
    let mut table = Table::new(["colour", "packets", "bytes", "share of bytes"]);
    let rows = [
        ("green", Some(&result.green)),
        ("yellow", result.yellow.as_ref()),
        ("red", Some(&result.red)),
    ];
    for (name, count) in rows.into_iter().filter_map(|(name, count)| Some((name, count?))) {
        let share = (found.total.bytes > 0)
            .then(|| number::percent(count.bytes as f64 / found.total.bytes as f64));
        table.row([
            name.to_owned(),
            count.packets.to_string(),
            number::amount(count.bytes),
            number::or_dash(share, |share| share),
        ]);
    }
    table
}

fn violation(violation: &Violation) -> String {
    let lack = match violation.lack {
        Lack::EarlyNs(ns) => format!("{} too early", time(ns)),
        Lack::MissingBytes(bytes) => {
            format!("{} of tokens missing", words::counted(bytes, "byte"))
        }
        Lack::Precoloured => "it came with this colour".to_owned(),
    };
    format!(
        "packet {} of {} bytes, {} after the first: {lack}",
        violation.packet,
        violation.bytes,
        time(violation.at_ns as f64)
    )
}

fn run_text(run: &Run) -> String {
    format!(
        "{}, {}, from packet {} on, in {}",
        words::counted(run.packets, "packet"),
        number::amount(run.bytes),
        run.first_packet,
        time(run.span_ns as f64)
    )
}

fn needed_text(needed: &Needed) -> String {
    let show = |value: f64| match needed.unit.as_str() {
        "ns" => time(value),
        unit => format!("{value:.0} {unit}"),
    };
    let enough = if needed.value <= needed.granted { "is enough" } else { "is too little" };
    format!(
        "all of it at {} needs {} {}; {} {enough}",
        number::rate(needed.rate_bps),
        needed.parameter.to_uppercase(),
        show(needed.value),
        show(needed.granted)
    )
}

fn bursts(found: &Conformance) -> String {
    if found.inverse.is_empty() {
        return String::new();
    }
    let in_cells = found.cells.is_some();
    let mut head = vec!["rate", "smallest burst", "needed over"];
    if in_cells {
        head.extend(["cells/s", "cells", "smallest CDVT"]);
    }
    let mut table = Table::new(head);
    for row in thinned(&found.inverse) {
        let mut cells = vec![
            number::rate(row.rate_bps),
            format!("{:.0} bytes", (row.burst_bytes - 1e-6).ceil()),
            time(row.span_ns),
        ];
        if let (Some(rate), Some(cdvt)) = (row.cells_per_s, row.cdvt_ns) {
            cells.push(number::significant(rate, 6));
            cells.push(format!("{:.2}", row.burst_bytes / 53.0));
            cells.push(time(cdvt));
        }
        table.row(cells);
    }
    format!("The smallest burst with which all of it conforms\n{}", table.text(2))
}

/// At most [`ROWS_MAX`] rows, the first and the last among them.
fn thinned(rows: &[BurstAtRate]) -> Vec<&BurstAtRate> {
    let shown = rows.len().min(ROWS_MAX);
    let at = |index: usize| index * (rows.len() - 1) / (shown - 1).max(1);
    (0..shown).map(|index| &rows[at(index)]).collect()
}

fn peaks(found: &Conformance) -> String {
    if found.peaks.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["window", "most bytes", "peak rate"]);
    for peak in &found.peaks {
        table.row([
            time(peak.window_ns as f64),
            number::amount(peak.bytes),
            number::rate(peak.bps),
        ]);
    }
    format!("The busiest windows\n{}", table.text(2))
}

fn bucket(found: &Conformance) -> String {
    let Some(bucket) = &found.bucket else { return String::new() };
    format!(
        "It looks as if a token bucket of {} (CIR) and {:.0} bytes (CBS) had shaped it: the rate \
         held for {}, and {} of the later packets came with that bucket nearly empty. A bucket that \
         was not full before is deeper.\n",
        number::rate(bucket.rate_bps),
        bucket.burst_bytes,
        time(bucket.held_ns),
        number::share(bucket.empty_share)
    )
}

/// One plain sentence.
fn sentence(found: &Conformance) -> String {
    if found.total.packets == 0 {
        return "No packet was metered.".to_owned();
    }
    let until = match found.ended {
        Ended::Complete | Ended::Limit => "",
        Ended::Interrupted => ", until it was interrupted",
        Ended::Failed => ", until the source failed",
    };
    let outside = found.contracts.iter().filter(|contract| contract.red.packets > 0).count();
    let text = match (found.contracts.len(), outside) {
        (0, _) => format!("{} metered against no contract", amount(&found.total)),
        (1, 0) => "Every packet keeps the contract".to_owned(),
        (all, 0) => format!("Every packet keeps all {all} contracts"),
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
    };
    format!("{text}{until}.")
}
