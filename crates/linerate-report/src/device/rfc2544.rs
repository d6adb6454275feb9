//! The tables that RFC 2544 §26 asks for, a row a frame length: latency, loss, back to back,
//! recovery, reset. Throughput (§26.1) is in the tables of `bradner`, its graph in `plots`.

use super::suite::{Case, Group, shown};
use super::{single, words};
use crate::document::{Section, Table};
use crate::number::or_dash;

/// The sections of one group; a test that was not made has none.
pub(crate) fn sections(group: &Group<'_>) -> Vec<Section> {
    let all = [latency(group), back_to_back(group), loss(group), restarts(group), others(group)];
    all.into_iter().flatten().collect()
}

fn section(group: &Group<'_>, title: &str, table: Table, notes: &[&str]) -> Section {
    let notes = notes.iter().map(|note| (*note).to_owned()).collect();
    Section::of(format!("{}: {title}", group.title()), [table], notes)
}

/// Name of a case in a table of one group: its length, its filters where they vary, its
/// repetition where there are several.
pub(crate) fn name(group: &Group<'_>, case: &Case<'_>) -> String {
    let mut name = shown(&case.size());
    if case.filters() != group.bare() {
        name.push_str(&format!(", {}", crate::words::counted(case.filters().into(), "filter")));
    }
    let size = case.size();
    let place = group.at(&size, case.filters()).position(|other| other.record.id == case.record.id);
    if group.at(&size, case.filters()).count() > 1 {
        name.push_str(&format!(" #{}", place.map_or(1, |place| place + 1)));
    }
    name
}

/// The cases by length, then filters, then start.
pub(crate) fn ordered<'a, 'b>(group: &'b Group<'a>) -> Vec<&'b Case<'a>> {
    let mut cases: Vec<&Case<'_>> = group.cases.iter().collect();
    cases.sort_by_key(|case| (case.size(), case.filters()));
    cases
}

/// §26.2: length, rate, latency; percentiles of RFC 8219 §7.2.
fn latency(group: &Group<'_>) -> Option<Section> {
    let head = ["size", "load\nframes/s", "min", "p50", "p90", "p99", "p99.9", "max", "PDV"];
    let own = "tester's\nown p50";
    let mut table = Table::new(head.into_iter().chain([own])).dropping(&[4, 8]);
    let mut kinds = Vec::new();
    for case in ordered(group) {
        for found in &case.result.latency {
            if !kinds.contains(&words::latency(found.kind)) {
                kinds.push(words::latency(found.kind));
            }
            let tester = case.result.tester.as_ref().and_then(|tester| tester.latency_p50_ns);
            let row = words::latency_row(found);
            let cells = std::iter::once(name(group, case)).chain(row);
            table.row(cells.chain([or_dash(tester, words::micros)]));
        }
    }
    let definition = format!("\u{b5}s, {}", kinds.join(" and "));
    let notes = [definition.as_str(), "the tester's own delay is in it and was not taken off"];
    (!kinds.is_empty()).then(|| section(group, "latency", table, &notes))
}

/// §26.4 with the figures of RFC 9004.
fn back_to_back(group: &Group<'_>) -> Option<Section> {
    let head = [
        "size",
        "frames\nmean",
        "min",
        "max",
        "std dev",
        "n",
        "implied\nbuffer",
        "corrected\nbuffer",
        "buffer\nframes",
    ];
    let mut table = Table::new(head);
    let (mut any, mut unbounded) = (false, false);
    for case in ordered(group) {
        let Some(found) = &case.result.back_to_back else { continue };
        any = true;
        unbounded |= found.unbounded;
        let most = if found.unbounded { "+" } else { "" };
        table.row([
            name(group, case),
            format!("{}{most}", single::burst(found.mean_frames)),
            found.min_frames.to_string(),
            found.max_frames.to_string(),
            single::burst(found.stddev_frames),
            found.runs.len().to_string(),
            words::time(found.implied_buffer_ns),
            or_dash(found.corrected_buffer_ns, words::time),
            or_dash(found.buffer_frames, single::burst),
        ]);
    }
    let notes: &[&str] =
        if unbounded { &["+: the longest burst that was tried lost nothing"] } else { &[] };
    any.then(|| section(group, "back to back (RFC 9004)", table, notes))
}

/// §26.3 as a table: loss at each load from the largest down.
fn loss(group: &Group<'_>) -> Option<Section> {
    let medium = group.has_medium();
    let mut head = vec!["size", "intended", "offered"];
    head.extend(medium.then_some("of\ntheoretical"));
    head.extend(["forwarded", "loss"]);
    let mut table = Table::new(head);
    let mut any = false;
    for case in ordered(group) {
        let line = case.result.theoretical_fps.map(|fps| fps * words::senders(case.plan) as f64);
        for point in case.result.loss_curve.iter().chain(&case.result.overload) {
            any = true;
            let mut row = vec![
                name(group, case),
                point.intended_fps.map_or_else(|| "all".to_owned(), words::frames),
                words::frames(point.offered_fps),
            ];
            let share = || or_dash(line, |line| words::share(point.offered_fps / line));
            row.extend(medium.then(share));
            row.extend([words::frames(point.forwarded_fps), words::loss(point.loss_ratio)]);
            table.row(row);
        }
    }
    any.then(|| section(group, "loss by load", table, &["frames/s of all sending ports together"]))
}

/// §26.5, §26.6.
fn restarts(group: &Group<'_>) -> Option<Section> {
    let head = ["size", "recovery\nfrom", "to", "time", "reset, by loss", "by stamps"];
    let mut table = Table::new(head);
    let mut any = false;
    for case in ordered(group) {
        let (recovery, reset) = (&case.result.recovery, &case.result.reset);
        if recovery.is_none() && reset.is_none() {
            continue;
        }
        any = true;
        let from = or_dash(recovery.as_ref(), |it| words::frames(it.overload_fps));
        let to = or_dash(recovery.as_ref(), |it| words::frames(it.after_fps));
        table.row([
            name(group, case),
            from,
            to,
            or_dash(recovery.as_ref(), |it| single::times(&it.times_ns)),
            or_dash(reset.as_ref(), |it| single::times(&it.by_loss_ns)),
            or_dash(reset.as_ref(), |it| single::times(&it.by_stamps_ns)),
        ]);
    }
    any.then(|| section(group, "recovery and reset", table, &[]))
}

/// Address table, blocking, soak, contract: what each record says of them, in lines.
fn others(group: &Group<'_>) -> Option<Section> {
    let mut notes = Vec::new();
    for case in ordered(group) {
        for each in single::further(case.plan, case.result) {
            for note in each.remarks() {
                notes.push(format!("{}, {}: {note}", name(group, case), each.title.to_lowercase()));
            }
        }
    }
    let title = format!("{}: further tests", group.title());
    (!notes.is_empty()).then(|| Section::of(title, [], notes))
}
