//! Bradner's tables of 1990 with today's figures, the same with today's columns, and his
//! devices beside.
//!
//! # Source
//! S. Bradner, router tests volume 3, comp.protocols.tcp-ip, 19 October 1990: a row a frame length;
//! theoretical rate, what the tester itself does, highest rate without loss, rate under flood, and
//! the highest rate with 1 and with 10 filters. All in whole frames a second.

use linerate_core::record::BenchWay;
use linerate_core::study::{Cards, PublishedRouter, Streams};
use linerate_core::theory::framing::{GAP_BYTES, PREAMBLE_BYTES};

use super::suite::{BenchCase, DeviceGroup, FrameSize, Suite, size_text};
use super::{limit, single, words};
use crate::document::{ReportSection, ReportTable, RowKind};
use crate::number::{self, NONE, or_dash};

/// Function that takes a rate, in frames per second, from a record.
type CaseRate = fn(&BenchCase<'_>) -> Option<f64>;

/// A rate that Bradner printed and today's records have too.
struct ComparedRate {
    name: &'static str,
    published: fn(&PublishedRouter) -> Option<u64>,
    measured: CaseRate,
}

impl ComparedRate {
    const MAX: Self = Self {
        name: "max rate",
        published: |row| row.max_rate_fps,
        measured: |case| case.max_fps(),
    };
    const FLOOD: Self = Self {
        name: "flood rate",
        published: |row| row.flood_rate_fps,
        measured: |case| case.flood_fps(),
    };
}

/// Bradner's table and the one with today's columns for a group, with remarks on goals and medium.
pub(crate) fn section(group: &DeviceGroup<'_>) -> ReportSection {
    let today = Some(today_table(group)).filter(|table| table.columns() > 1);
    ReportSection::from_tables(
        group.heading_text(),
        std::iter::once(bradner_table(group)).chain(today),
        table_notes(group),
    )
}

/// A group in the columns that Bradner printed; each further number of filters has a column.
pub(crate) fn bradner_table(group: &DeviceGroup<'_>) -> ReportTable {
    let bare = group.fewest_filters();
    let more: Vec<u32> = group.filters().into_iter().filter(|filters| *filters != bare).collect();
    let head = ["size", "theoretical", "test", "max rate", "flood rate"].map(str::to_owned);
    let filtered = more.iter().map(|&filters| format!("max,\n{}", filters_in_words(filters)));
    let mut table = ReportTable::new(head.into_iter().chain(filtered));
    for size in group.frame_sizes() {
        let at = |filters: u32, figure: CaseRate| {
            or_dash(group.median_figure(&size, filters, figure), words::frames)
        };
        let most = |filters: u32| {
            let found = group.median_figure(&size, filters, |case| case.max_fps());
            or_dash(found, |fps| group.with_tester_mark(&size, filters, words::frames(fps)))
        };
        let mut row = vec![
            size_text(&size),
            or_dash(group.theoretical_fps(&size), words::frames),
            at(bare, |case| case.tester_fps()),
            most(bare),
            at(bare, |case| case.flood_fps()),
        ];
        row.extend(more.iter().map(|&filters| most(filters)));
        table.add_measured_row(row);
    }
    table
}

fn filters_in_words(filters: u32) -> String {
    crate::words::counted(filters.into(), "filter")
}

/// A group in today's columns: typical and strict rate, stalls, latency, burst. A row for each
/// frame length and number of filters.
pub(crate) fn today_table(group: &DeviceGroup<'_>) -> ReportTable {
    let (medium, bare) = (group.has_theoretical_rate(), group.fewest_filters());
    let mut head = vec!["size", "typical", "strict"];
    head.extend(medium.then_some("typical of\ntheoretical"));
    head.extend(["of tester's\nown", "stalls\n1/s", "p50 \u{b5}s", "p99 \u{b5}s", "burst\nframes"]);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for size in group.frame_sizes() {
        for filters in group.filters() {
            if group.matching_cases(&size, filters).next().is_none() {
                continue;
            }
            let name = match filters {
                filters if filters == bare => size_text(&size),
                filters => format!("{}, {}", size_text(&size), filters_in_words(filters)),
            };
            let cells = today_row(group, &size, filters, medium);
            rows.push(std::iter::once(name).chain(cells).collect());
        }
    }
    filled_columns(&head, &rows)
}

/// A table of the columns for which at least one row has a figure; the first column always stays.
fn filled_columns(head: &[&str], rows: &[Vec<String>]) -> ReportTable {
    let has = |column: &usize| *column == 0 || rows.iter().any(|row| row[*column] != NONE);
    let kept: Vec<usize> = (0..head.len()).filter(has).collect();
    let mut table = ReportTable::new(kept.iter().map(|&column| head[column]));
    rows.iter()
        .for_each(|row| table.add_measured_row(kept.iter().map(|&column| row[column].as_str())));
    table
}

fn today_row(group: &DeviceGroup<'_>, size: &FrameSize, filters: u32, medium: bool) -> Vec<String> {
    let middle = |figure: CaseRate| group.median_figure(size, filters, figure);
    let typical = middle(|case| case.goal_fps("typical"));
    let share = |whole: Option<f64>| {
        or_dash(typical.zip(whole).map(|(fps, whole)| fps / whole), words::share_percent)
    };
    let marked = |fps: f64| group.with_tester_mark(size, filters, words::frames(fps));
    let mut row = vec![
        or_dash(typical, marked),
        or_dash(middle(|case| case.goal_fps("strict")), words::frames),
    ];
    row.extend(medium.then(|| share(group.theoretical_fps(size))));
    let few = |value: f64| number::trimmed(&number::significant(value, 3)).to_owned();
    row.extend([
        share(middle(|case| case.tester_fps())),
        or_dash(middle(|case| Some(case.result.stalls_per_sec?.value)), few),
        or_dash(middle(|case| Some(case.latency()?.p50_ns)), words::micros),
        or_dash(middle(|case| Some(case.latency()?.p99_ns)), words::micros),
        or_dash(
            middle(|case| Some(case.result.back_to_back.as_ref()?.mean_frames)),
            single::burst_frames,
        ),
    ]);
    row
}

fn table_notes(group: &DeviceGroup<'_>) -> Vec<String> {
    let mut notes = vec![goals_remark(group)];
    notes.extend((!group.has_theoretical_rate()).then(|| {
        "no medium: virtual links have no theoretical rate (--link gives one); compare rates with \
         the tester's own"
            .to_owned()
    }));
    match group.first_case().plan.way {
        BenchWay::Single => {}
        BenchWay::Dual => notes.push(
            "dual: both inputs at the rate at once, both outputs counted; figures are of one input"
                .to_owned(),
        ),
        BenchWay::Mesh => notes.push("every port sends to all others; of one port".to_owned()),
    }
    let limited = |case: &BenchCase<'_>| case.result.goals.iter().any(|goal| goal.tester_limited);
    if group.cases.iter().any(limited) {
        notes.push("*: tester-limited, the device may do more".to_owned());
    }
    let repetitions = group.repetitions();
    notes.extend(
        (repetitions > 1).then(|| format!("medians of {repetitions} repetitions where made")),
    );
    notes
}

/// The remark that says which goals the column "max rate" comes from.
fn goals_remark(group: &DeviceGroup<'_>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for goal in group.cases.iter().filter_map(|case| limit::lossless(case.result)) {
        if !names.contains(&goal.goal.as_str()) {
            names.push(&goal.goal);
        }
    }
    let by = match names.as_slice() {
        [] => "not searched".to_owned(),
        names => format!("by the goal {}", names.join(", ")),
    };
    format!("frames/s; test: the tester itself without the device; max rate: {by}")
}

/// The frame lengths that Bradner printed, in rising order.
fn sizes_1990(published: &[&PublishedRouter]) -> Vec<u32> {
    let mut sizes: Vec<u32> = published.iter().map(|row| row.frame_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Today's devices above those that Bradner printed, in frames per second and as share of the
/// theoretical rate. A section for each protocol and kind of stream that both have.
pub(crate) fn beside_1990(suite: &Suite<'_>, published: &[PublishedRouter]) -> Vec<ReportSection> {
    let mut kinds: Vec<(&'static str, Streams)> = Vec::new();
    for group in &suite.groups {
        let Some(kind) = kind_1990(group) else { continue };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.into_iter().filter_map(|kind| section_beside(suite, published, kind)).collect()
}

fn kind_1990(group: &DeviceGroup<'_>) -> Option<(&'static str, Streams)> {
    let streams = match group.first_case().plan.way {
        BenchWay::Single => Streams::Single,
        BenchWay::Dual => Streams::Dual,
        BenchWay::Mesh => return None,
    };
    Some((group.protocol_1990()?, streams))
}

fn section_beside(
    suite: &Suite<'_>,
    published: &[PublishedRouter],
    kind: (&'static str, Streams),
) -> Option<ReportSection> {
    let rows: Vec<&PublishedRouter> = published
        .iter()
        .filter(|row| (row.protocol.as_str(), row.streams) == kind && row.filters == 0)
        .collect();
    let sizes = sizes_1990(&rows);
    if sizes.is_empty() {
        return None;
    }
    // For two streams at once Bradner printed only the rate under flood.
    let searched = rows.iter().any(|row| row.max_rate_fps.is_some());
    let rate = if searched { ComparedRate::MAX } else { ComparedRate::FLOOD };
    let heads = |name: String| {
        let sizes = sizes.iter().map(ToString::to_string);
        ReportTable::new(std::iter::once(name).chain(sizes))
    };
    let mut rates = heads(format!("{}, frames/s", rate.name));
    let mut shares = heads(format!("{} of theoretical", rate.name));
    let line = |name: &str, cell: &dyn Fn(u32) -> String| {
        let cells = sizes.iter().map(|&bytes| cell(bytes));
        std::iter::once(name.to_owned()).chain(cells).collect::<Vec<String>>()
    };
    for group in suite.groups.iter().filter(|group| kind_1990(group) == Some(kind)) {
        let size = FrameSize::from_bytes;
        let filters = group.fewest_filters();
        let fps = |bytes| group.median_figure(&size(bytes), filters, rate.measured);
        let share = |bytes| Some(fps(bytes)? / group.theoretical_fps(&size(bytes))?);
        rates.add_measured_row(line(&group.device, &|bytes| {
            or_dash(fps(bytes), |fps| {
                group.with_tester_mark(&size(bytes), filters, words::frames(fps))
            })
        }));
        shares.add_measured_row(line(&group.device, &|bytes| {
            or_dash(share(bytes), words::share_percent)
        }));
    }
    for (name, of_device) in devices_1990(&rows) {
        let fps = |bytes| (rate.published)(of_device.iter().find(|row| row.frame_bytes == bytes)?);
        let share = |bytes| fps(bytes).map(|fps| share_1990(fps, bytes));
        let printed = line(&name, &|bytes| or_dash(fps(bytes), |fps| fps.to_string()));
        rates.push(RowKind::Published, printed);
        let size_text = line(&name, &|bytes| or_dash(share(bytes), words::share_percent));
        shares.push(RowKind::Published, size_text);
    }
    let streams = if kind.1 == Streams::Dual { "dual stream" } else { "single stream" };
    let note = format!(
        "1990: without filters, on Ethernet of 10 Mbit/s; {NONE} is not printed, or no medium"
    );
    let title = format!("Beside the devices of 1990: {}, {streams}", kind.0);
    Some(ReportSection::from_tables(title, [rates, shares], vec![note]))
}

/// Share of the frame rate that Ethernet of 10 Mbit/s carries. The theoretical rate is the exact
/// one, not the printed one, which is cut to whole frames.
pub(crate) fn share_1990(fps: u64, frame_bytes: u32) -> f64 {
    fps as f64 * 8.0 * f64::from(frame_bytes + PREAMBLE_BYTES + GAP_BYTES) / 10e6
}

/// The printed rows by device in the order printed; each placement of cards and each stream is a
/// device.
fn devices_1990<'a>(rows: &[&'a PublishedRouter]) -> Vec<(String, Vec<&'a PublishedRouter>)> {
    let mut out: Vec<(String, Vec<&PublishedRouter>)> = Vec::new();
    for row in rows {
        let cards = match row.cards {
            Cards::Within => "within a card",
            Cards::Between => "between cards",
        };
        let stream = match row.streams {
            Streams::Single => String::new(),
            Streams::Dual => format!(", stream {}", row.stream),
        };
        let name = format!("{}, {cards}{stream}", row.device);
        match out.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rows)) => rows.push(row),
            None => out.push((name, vec![row])),
        }
    }
    out
}
