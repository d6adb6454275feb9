//! The tables that RFC 2544 §26 asks for, a row a frame length: latency, loss, back to back,
//! recovery, reset. Throughput (§26.1) is in the tables of `bradner`, its graph in `plots`.

use linerate_core::record::{BackToBack, Recovery, Reset};

use super::suite::{Case, Group, shown};
use super::{single, words};
use crate::document::{Section, Table};
use crate::number::or_dash;

/// The sections of one group; a test that was not made has none.
pub(crate) fn sections(group: &Group<'_>) -> Vec<Section> {
    let all = [latency(group), back_to_back(group), loss(group), restarts(group), others(group)];
    all.into_iter().flatten().collect()
}

/// A table under its heading; none where it has no rows.
fn section(group: &Group<'_>, title: &str, table: Table, notes: &[&str]) -> Option<Section> {
    let notes = notes.iter().map(|note| (*note).to_owned()).collect();
    let title = format!("{}: {title}", group.title());
    (!table.is_empty()).then(|| Section::of(title, [table], notes))
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
    section(group, "latency", table, &notes)
}

/// §26.4 with the figures of RFC 9004.
fn back_to_back(group: &Group<'_>) -> Option<Section> {
    let cases = ordered(group).into_iter().filter_map(|case| {
        let found = case.result.back_to_back.as_ref()?;
        Some((name(group, case), found))
    });
    let cases: Vec<(String, &BackToBack)> = cases.collect();
    let table = Table::by(
        &cases,
        &[
            ("size", &|(name, _)| name.clone()),
            ("frames\nmean", &|(_, it)| {
                let most = if it.unbounded { "+" } else { "" };
                format!("{}{most}", single::burst(it.mean_frames))
            }),
            ("min", &|(_, it)| it.min_frames.to_string()),
            ("max", &|(_, it)| it.max_frames.to_string()),
            ("std dev", &|(_, it)| single::burst(it.stddev_frames)),
            ("n", &|(_, it)| it.runs.len().to_string()),
            ("implied\nbuffer", &|(_, it)| words::time(it.implied_buffer_ns)),
            ("corrected\nbuffer", &|(_, it)| or_dash(it.corrected_buffer_ns, words::time)),
            ("buffer\nframes", &|(_, it)| or_dash(it.buffer_frames, single::burst)),
        ],
    );
    let unbounded = cases.iter().any(|(_, it)| it.unbounded);
    let note = unbounded.then_some("+: the longest burst that was tried lost nothing");
    section(group, "back to back (RFC 9004)", table, note.as_slice())
}

/// §26.3 as a table: loss at each load from the largest down.
fn loss(group: &Group<'_>) -> Option<Section> {
    let medium = group.has_medium();
    let mut head = vec!["size", "intended", "offered"];
    head.extend(medium.then_some("of\ntheoretical"));
    head.extend(["forwarded", "loss"]);
    let mut table = Table::new(head);
    for case in ordered(group) {
        let line = case.result.theoretical_fps.map(|fps| fps * words::senders(case.plan) as f64);
        for point in case.result.loss_curve.iter().chain(&case.result.overload) {
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
    section(group, "loss by load", table, &["frames/s of all sending ports together"])
}

/// §26.5, §26.6.
fn restarts(group: &Group<'_>) -> Option<Section> {
    let tested = |case: &&Case<'_>| case.result.recovery.is_some() || case.result.reset.is_some();
    let recovery = |case: &Case<'_>, show: fn(&Recovery) -> String| {
        or_dash(case.result.recovery.as_ref(), show)
    };
    let reset =
        |case: &Case<'_>, show: fn(&Reset) -> String| or_dash(case.result.reset.as_ref(), show);
    let table = Table::by(
        ordered(group).into_iter().filter(tested),
        &[
            ("size", &|case| name(group, case)),
            ("recovery\nfrom", &|case| recovery(case, |it| words::frames(it.overload_fps))),
            ("to", &|case| recovery(case, |it| words::frames(it.after_fps))),
            ("time", &|case| recovery(case, |it| single::times(&it.times_ns))),
            ("reset, by loss", &|case| reset(case, |it| single::times(&it.by_loss_ns))),
            ("by stamps", &|case| reset(case, |it| single::times(&it.by_stamps_ns))),
        ],
    );
    section(group, "recovery and reset", table, &[])
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
