//! The tables that RFC 2544 §26 asks for, a row a frame length: latency, loss, back to back,
//! recovery, reset. Throughput (§26.1) is in the tables of `bradner`, its graph in `plots`.

use linerate_core::record::{BackToBack, OverloadRecovery, Reset};

use super::suite::{BenchCase, DeviceGroup, size_text};
use super::{single, words};
use crate::document::{ReportSection, ReportTable};
use crate::number::or_dash;

/// The sections of one group for the tests that were made.
pub(crate) fn sections(group: &DeviceGroup<'_>) -> Vec<ReportSection> {
    let all =
        [latency(group), back_to_back(group), loss_section(group), restarts(group), others(group)];
    all.into_iter().flatten().collect()
}

/// A table under its heading; `None` for a table without rows.
fn section(
    group: &DeviceGroup<'_>,
    title: &str,
    table: ReportTable,
    notes: &[&str],
) -> Option<ReportSection> {
    let notes = notes.iter().map(|note| (*note).to_owned()).collect();
    let title = format!("{}: {title}", group.heading_text());
    (!table.is_empty()).then(|| ReportSection::from_tables(title, [table], notes))
}

/// Name of a case in a table of one group: its frame length, its filters where they vary, its
/// repetition where there are several.
pub(crate) fn name(group: &DeviceGroup<'_>, case: &BenchCase<'_>) -> String {
    let mut name = size_text(&case.frame_size());
    if case.filters() != group.fewest_filters() {
        name.push_str(&format!(", {}", crate::words::counted(case.filters().into(), "filter")));
    }
    let size = case.frame_size();
    let place = group
        .matching_cases(&size, case.filters())
        .position(|other| other.record.id == case.record.id);
    if group.matching_cases(&size, case.filters()).count() > 1 {
        name.push_str(&format!(" #{}", place.map_or(1, |place| place + 1)));
    }
    name
}

/// The cases by frame length, then number of filters, then start.
pub(crate) fn cases_in_order<'a, 'b>(group: &'b DeviceGroup<'a>) -> Vec<&'b BenchCase<'a>> {
    let mut cases: Vec<&BenchCase<'_>> = group.cases.iter().collect();
    cases.sort_by_key(|case| (case.frame_size(), case.filters()));
    cases
}

/// RFC 2544 §26.2: latency of each frame length and load, with the percentiles of RFC 8219 §7.2.
fn latency(group: &DeviceGroup<'_>) -> Option<ReportSection> {
    let head = ["size", "load\nframes/s", "min", "p50", "p90", "p99", "p99.9", "max", "PDV"];
    let own = "tester's\nown p50";
    let mut table = ReportTable::new(head.into_iter().chain([own])).dropping(&[4, 8]);
    let mut kinds = Vec::new();
    for case in cases_in_order(group) {
        for found in &case.result.latency {
            if !kinds.contains(&words::latency(found.kind)) {
                kinds.push(words::latency(found.kind));
            }
            let tester = case.result.tester.as_ref().and_then(|tester| tester.latency_p50_ns);
            let row = words::latency_row(found);
            let cells = std::iter::once(name(group, case)).chain(row);
            table.add_measured_row(cells.chain([or_dash(tester, words::micros)]));
        }
    }
    let definition = format!("\u{b5}s, {}", kinds.join(" and "));
    let notes = [definition.as_str(), "the tester's own delay is in it and was not taken off"];
    section(group, "latency", table, &notes)
}

/// RFC 2544 §26.4: longest bursts without loss, with the buffer times of RFC 9004.
fn back_to_back(group: &DeviceGroup<'_>) -> Option<ReportSection> {
    let cases = cases_in_order(group).into_iter().filter_map(|case| {
        let found = case.result.back_to_back.as_ref()?;
        Some((name(group, case), found))
    });
    let cases: Vec<(String, &BackToBack)> = cases.collect();
    let table = ReportTable::from_rows(
        &cases,
        &[
            ("size", &|(name, _)| name.clone()),
            ("frames\nmean", &|(_, found)| {
                let most = if found.unbounded { "+" } else { "" };
                format!("{}{most}", single::burst_frames(found.mean_frames))
            }),
            ("min", &|(_, found)| found.min_frames.to_string()),
            ("max", &|(_, found)| found.max_frames.to_string()),
            ("std dev", &|(_, found)| single::burst_frames(found.stddev_frames)),
            ("n", &|(_, found)| found.runs.len().to_string()),
            ("implied\nbuffer", &|(_, found)| words::duration(found.implied_buffer_ns)),
            ("corrected\nbuffer", &|(_, found)| {
                or_dash(found.corrected_buffer_ns, words::duration)
            }),
            ("buffer\nframes", &|(_, found)| or_dash(found.buffer_frames, single::burst_frames)),
        ],
    );
    let unbounded = cases.iter().any(|(_, found)| found.unbounded);
    let note = unbounded.then_some("+: the longest burst that was tried lost nothing");
    section(group, "back to back (RFC 9004)", table, note.as_slice())
}

/// RFC 2544 §26.3 as a table: loss at each load, from the largest down.
fn loss_section(group: &DeviceGroup<'_>) -> Option<ReportSection> {
    let medium = group.has_theoretical_rate();
    let mut head = vec!["size", "intended", "offered"];
    head.extend(medium.then_some("of\ntheoretical"));
    head.extend(["forwarded", "loss"]);
    let mut table = ReportTable::new(head);
    for case in cases_in_order(group) {
        let line = case.result.theoretical_fps.map(|fps| fps * words::senders(case.plan) as f64);
        for point in case.result.loss_curve.iter().chain(&case.result.overload) {
            let mut row = vec![
                name(group, case),
                point.intended_fps.map_or_else(|| "all".to_owned(), words::frames),
                words::frames(point.offered_fps),
            ];
            let share = || or_dash(line, |line| words::share_percent(point.offered_fps / line));
            row.extend(medium.then(share));
            row.extend([words::frames(point.forwarded_fps), words::loss_ratio(point.loss_ratio)]);
            table.add_measured_row(row);
        }
    }
    section(group, "loss by load", table, &["frames/s of all sending ports together"])
}

/// RFC 2544 §26.5 and §26.6: time to recover from overload and to forward again after a reset.
fn restarts(group: &DeviceGroup<'_>) -> Option<ReportSection> {
    let tested =
        |case: &&BenchCase<'_>| case.result.recovery.is_some() || case.result.reset.is_some();
    let recovery = |case: &BenchCase<'_>, show: fn(&OverloadRecovery) -> String| {
        or_dash(case.result.recovery.as_ref(), show)
    };
    let reset = |case: &BenchCase<'_>, show: fn(&Reset) -> String| {
        or_dash(case.result.reset.as_ref(), show)
    };
    let table = ReportTable::from_rows(
        cases_in_order(group).into_iter().filter(tested),
        &[
            ("size", &|case| name(group, case)),
            ("recovery\nfrom", &|case| {
                recovery(case, |recovery| words::frames(recovery.overload_fps))
            }),
            ("to", &|case| recovery(case, |recovery| words::frames(recovery.after_fps))),
            ("time", &|case| recovery(case, |recovery| single::times_text(&recovery.times_ns))),
            ("reset, by loss", &|case| reset(case, |reset| single::times_text(&reset.by_loss_ns))),
            ("by stamps", &|case| reset(case, |reset| single::times_text(&reset.by_stamps_ns))),
        ],
    );
    section(group, "recovery and reset", table, &[])
}

/// The remarks of each record on address table, blocking, soak and contract.
fn others(group: &DeviceGroup<'_>) -> Option<ReportSection> {
    let mut notes = Vec::new();
    for case in cases_in_order(group) {
        for each in single::further(case.plan, case.result) {
            for note in each.remarks() {
                notes.push(format!("{}, {}: {note}", name(group, case), each.title.to_lowercase()));
            }
        }
    }
    let title = format!("{}: further tests", group.heading_text());
    (!notes.is_empty()).then(|| ReportSection::from_tables(title, [], notes))
}
