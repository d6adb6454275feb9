//! A plan's state, calendar and page as documents.

use linerate_core::schedule::EventKind;

use super::sentences::{format, name, utc_date_time, value_with_unit};
use super::smoke::smoke_rows;
use super::{CalendarEntry, EventView, ScheduleView, SeriesView, TaskView};
use crate::document::{Block, Document, ReportFigure, ReportSection, Tile};
use crate::svg::{Band, BandChart, BandMark};
use crate::{Align, ReportTable, number, words};

/// Columns of a band where nothing says how wide a terminal is.
const COLUMNS: usize = 72;
/// Columns beside a band: its margin.
const MARGIN: usize = 2;

/// A span as people say it: `12 s`, `5 min`, `3 h`, `2 days`.
pub(crate) fn span_in_words(seconds: i64) -> String {
    match seconds.max(0) {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s / 60),
        s @ 7200..172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

/// The state of a plan for a terminal of some width.
pub fn document(view: &ScheduleView, width: Option<usize>) -> Document {
    let columns = width.unwrap_or(COLUMNS + MARGIN).clamp(24, 120) - MARGIN;
    let mut sections =
        vec![ReportSection::without_blank_line("", [Block::Table(tasks_table(view))])];
    let mut lines = Vec::new();
    for task in &view.tasks {
        for series in &task.series {
            lines.extend(series_band(view, task, series, columns));
        }
    }
    if !lines.is_empty() {
        lines.push(time_axis_line(view, columns));
        sections.push(ReportSection::after_blank_line("", [Block::Lines(lines)]));
    }
    sections.extend(
        spreads(view)
            .map(|table| ReportSection::after_blank_line("All samples", [Block::Table(table)])),
    );
    sections.extend(remarks_section("Gaps", gap_lines(view)));
    sections.extend(remarks_section("What happened", events(view)));
    let state = if view.running { "runs" } else { "does not run" };
    let alerts = match view.alerts.as_slice() {
        [] => "nothing in alert".to_owned(),
        alerts => format!("in alert: {}", alerts.join("; ")),
    };
    Document {
        title: format!("Schedule {} {state}", view.plan),
        sections,
        sentence: format!("{}: {alerts}.", view.plan),
        ..Document::default()
    }
}

fn remarks_section(title: &str, lines: Vec<String>) -> Option<ReportSection> {
    (!lines.is_empty()).then(|| ReportSection::after_blank_line(title, [Block::Remarks(lines)]))
}

fn tasks_table(view: &ScheduleView) -> ReportTable {
    let mut table = ReportTable::from_columns([
        ("task", Align::Left),
        ("last", Align::Right),
        ("ago", Align::Right),
        ("next in", Align::Right),
        ("good", Align::Right),
        ("without", Align::Right),
        ("state", Align::Left),
    ]);
    for task in &view.tasks {
        let first = ["goodput", "rtt"]
            .iter()
            .find_map(|figure| task.series.iter().find(|series| series.metric.starts_with(figure)));
        let last = first.or_else(|| task.series.first()).and_then(|series| {
            series.points.last().map(|(_, value)| value_with_unit(&series.metric, *value))
        });
        let ago = task.last_good_s.map(|at| span_in_words(view.now_s - at));
        let next = task.next_s.filter(|_| view.running).map(|at| span_in_words(at - view.now_s));
        table.add_measured_row([
            task.name.clone(),
            last.unwrap_or_else(|| "-".to_owned()),
            ago.unwrap_or_else(|| "-".to_owned()),
            next.unwrap_or_else(|| "-".to_owned()),
            task.good.to_string(),
            task.without.to_string(),
            if task.alert { "ALERT" } else { "" }.to_owned(),
        ]);
    }
    table
}

/// How all samples are spread, the probes of every run together.
fn spreads(view: &ScheduleView) -> Option<ReportTable> {
    let mut table = ReportTable::from_columns([
        ("task", Align::Left),
        ("figure", Align::Left),
        ("samples", Align::Right),
        ("50 %", Align::Right),
        ("90 %", Align::Right),
        ("99 %", Align::Right),
        ("99.9 %", Align::Right),
        ("largest", Align::Right),
    ]);
    let mut any = false;
    for task in &view.tasks {
        // Of a run's rate there is one sample, which the series shows.
        for spread in task.spreads.iter().filter(|spread| spread.metric.ends_with("_ns")) {
            let of = |value: u64| value_with_unit(&spread.metric, value as f64);
            any = true;
            table.add_measured_row([
                task.name.clone(),
                name(&spread.metric),
                spread.n.to_string(),
                of(spread.p50),
                of(spread.p90),
                of(spread.p99),
                of(spread.p999),
                of(spread.max),
            ]);
        }
    }
    any.then_some(table)
}

/// A series with its name and range above it, and its changes under it.
fn series_band(
    view: &ScheduleView,
    task: &TaskView,
    series: &SeriesView,
    columns: usize,
) -> Vec<String> {
    let values = || series.points.iter().map(|point| point.1);
    let (low, high) =
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if !low.is_finite() {
        return Vec::new();
    }
    let (from_s, until_s) = (view.from_s as f64, view.now_s as f64);
    let range = format!(
        "{} to {}",
        value_with_unit(&series.metric, low),
        value_with_unit(&series.metric, high)
    );
    let mut lines = vec![format!("{}, {}: {range}", task.name, name(&series.metric))];
    let rows = smoke_rows(&series.points, from_s, until_s, columns);
    lines.extend(rows.iter().map(|row| row.trim_end().to_owned()));
    let mut marks = vec![' '; columns];
    let changes = view.events.iter().filter(|event| event.task == task.name);
    for event in changes.filter(|event| event.metrics.contains(&series.metric)) {
        let share = (event.since_s - from_s) / (until_s - from_s);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "held")]
        let at = ((share.clamp(0.0, 1.0) * columns as f64) as usize).min(columns - 1);
        marks[at] = '^';
    }
    if marks.contains(&'^') {
        lines.push(format!("{} changed", marks.iter().collect::<String>().trim_end()));
    }
    lines
}

/// The time axis: its first and its last time.
fn time_axis_line(view: &ScheduleView, columns: usize) -> String {
    let day = view.now_s - view.from_s > 86_400;
    let shape = if day { "%Y-%m-%d %H:%M" } else { "%H:%M:%S" };
    let (from, until) = (format(view.from_s as f64, shape), format(view.now_s as f64, shape));
    let until = format!("{until} UTC");
    let between = columns.saturating_sub(from.len() + until.len()).max(1);
    format!("{from}{}{until}", "\u{2500}".repeat(between))
}

fn gap_lines(view: &ScheduleView) -> Vec<String> {
    let of = |task: &TaskView| {
        let name = task.name.clone();
        let gaps = task.gaps.iter().map(move |gap| {
            let runs = words::counted(gap.runs as u64, "run");
            let from = utc_date_time(gap.from_s as f64);
            let until = match gap.runs {
                1 => String::new(),
                _ => format!(" to {}", format(gap.until_s as f64, "%H:%M:%S")),
            };
            format!("{from}{until} UTC: {name}: {runs}: {}", gap.reason)
        });
        gaps.collect::<Vec<_>>()
    };
    view.tasks.iter().flat_map(of).collect()
}

fn events(view: &ScheduleView) -> Vec<String> {
    let line = |event: &EventView| {
        let verdict = event.verdict.as_ref().map(|survey| format!("; survey: {survey}"));
        let verdict = verdict.unwrap_or_default();
        format!("{} UTC: {}{verdict}", utc_date_time(event.at_s as f64), event.sentence)
    };
    view.events.iter().map(line).collect()
}

/// The page of a plan: its series with what happened on one time axis.
pub fn plan_page(view: &ScheduleView) -> Document {
    let shown_as = document(view, None);
    let axis = (view.from_s as f64, view.now_s as f64);
    let mut figures = Vec::new();
    for task in &view.tasks {
        let marks = |series: &SeriesView| -> Vec<BandMark> {
            let mine = view.events.iter().enumerate().filter(|(_, event)| {
                event.task == task.name && event.metrics.contains(&series.metric)
            });
            mine.map(|(at, event)| BandMark {
                at_s: event.since_s,
                name: (at + 1).to_string(),
                hint: event.sentence.clone(),
            })
            .collect()
        };
        let bands = task.series.iter().map(|series| Band {
            name: name(&series.metric),
            points: series.points.clone(),
            marks: marks(series),
            show: {
                let metric = series.metric.clone();
                Box::new(move |value| value_with_unit(&metric, value))
            },
        });
        let gaps = task.gaps.iter().map(|gap| (gap.from_s as f64, gap.until_s as f64));
        let chart = BandChart {
            title: format!("{}: {}", task.name, task.run),
            axis,
            bands: bands.collect(),
            gaps: gaps.collect(),
        };
        let caption = "Each column is a span of time: the band reaches from the lowest to the \
                       highest of its values, the dark part has the middle half, the line is the \
                       median. Grey: no result. Numbered lines: changes.";
        let file = format!("{}.svg", task.name.replace(['/', ' '], "-"));
        figures.push(Block::Figure(ReportFigure::new(
            &task.name,
            caption,
            vec![(file, chart.svg())],
        )));
    }
    let events = numbered(view);
    let mut sections =
        vec![ReportSection::without_blank_line("Tasks", [Block::Table(tasks_table(view))])];
    sections.push(ReportSection::after_blank_line("Series", figures));
    sections.extend(
        spreads(view)
            .map(|table| ReportSection::after_blank_line("All samples", [Block::Table(table)])),
    );
    sections.extend(remarks_section("What happened", events));
    sections.extend(remarks_section("Gaps", gap_lines(view)));
    let tile = |figure: usize, label: &str| Tile::new(figure.to_string(), label, "");
    let sum = |of: fn(&TaskView) -> usize| view.tasks.iter().map(of).sum::<usize>();
    let changes = view.events.iter().filter(|event| event.kind == EventKind::Change).count();
    let tiles = vec![
        tile(sum(|task| task.good), "results"),
        tile(sum(|task| task.without), "runs without a result"),
        tile(changes, "lasting changes"),
    ];
    Document { sections, tiles, ..shown_as }
}

fn numbered(view: &ScheduleView) -> Vec<String> {
    let lines = events(view).into_iter().enumerate();
    lines.map(|(at, line)| format!("{}. {line}", at + 1)).collect()
}

/// The runs of a day, and the volume of 31 days.
pub fn calendar(plan: &str, entries: &[CalendarEntry], month: Option<f64>, all: bool) -> Document {
    let list = all || entries.len() <= 60;
    let table = if list { runs_table(entries) } else { by_task(entries) };
    let mut notes = Vec::new();
    if !list {
        let count = words::counted(entries.len() as u64, "run");
        notes.push(format!("{count} in these 24 h; --all lists each"));
    }
    let volume = month.map_or_else(
        || "no bound on its volume: give each task's rate, as 100M".to_owned(),
        |bytes| format!("at most {} in 31 days", gigabytes(bytes)),
    );
    Document {
        title: format!("Schedule {plan}: the next 24 h, times in UTC"),
        sections: vec![ReportSection::without_blank_line("", [Block::Table(table)])],
        notes,
        sentence: format!("{plan}: {volume}."),
        ..Document::default()
    }
}

fn gigabytes(bytes: f64) -> String {
    format!("{} GB", number::significant(bytes / 1e9, 3))
}

fn volume(bytes: Option<u64>) -> String {
    number::or_dash(bytes, number::amount)
}

fn runs_table(entries: &[CalendarEntry]) -> ReportTable {
    let columns = ["begins", "until", "task", "at most", "command"];
    let right = |name: &str| if name == "at most" { Align::Right } else { Align::Left };
    let mut table = ReportTable::from_columns(columns.map(|name| (name, right(name))));
    for entry in entries {
        table.add_measured_row([
            format(entry.start_s as f64, "%m-%d %H:%M:%S"),
            format(entry.until_s as f64, "%H:%M:%S"),
            entry.task.clone(),
            volume(entry.bytes),
            entry.run.clone(),
        ]);
    }
    table
}

fn by_task(entries: &[CalendarEntry]) -> ReportTable {
    let columns = ["task", "first", "runs", "each until", "at most each", "command"];
    let right = |name: &str| {
        if ["runs", "each until", "at most each"].contains(&name) {
            Align::Right
        } else {
            Align::Left
        }
    };
    let mut table = ReportTable::from_columns(columns.map(|name| (name, right(name))));
    let mut seen: Vec<&str> = Vec::new();
    for entry in entries {
        if seen.contains(&entry.task.as_str()) {
            continue;
        }
        seen.push(&entry.task);
        let runs = entries.iter().filter(|other| other.task == entry.task).count();
        table.add_measured_row([
            entry.task.clone(),
            format(entry.start_s as f64, "%m-%d %H:%M:%S"),
            runs.to_string(),
            format!("{} s", entry.until_s - entry.start_s),
            volume(entry.bytes),
            entry.run.clone(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Gap, SampleSpread};

    const NOW_S: i64 = 1_795_478_400;

    fn sample_view() -> ScheduleView {
        let at = |n: i64| (NOW_S - 3600 + 60 * n) as f64;
        let rate = |n| if n < 40 { 9e8 } else { 9e7 };
        ScheduleView {
            plan: "home".to_owned(),
            now_s: NOW_S,
            from_s: NOW_S - 3600,
            running: true,
            tasks: vec![TaskView {
                name: "line".to_owned(),
                run: "tcp B".to_owned(),
                last_good_s: Some(NOW_S - 60),
                next_s: Some(NOW_S + 60),
                good: 60,
                without: 2,
                gaps: vec![Gap {
                    from_s: NOW_S - 1000,
                    until_s: NOW_S - 940,
                    runs: 2,
                    reason: "refused".to_owned(),
                }],
                series: vec![SeriesView {
                    metric: "goodput_bps/up".to_owned(),
                    points: (0..60).map(|n| (at(n), rate(n))).collect(),
                }],
                spreads: vec![SampleSpread {
                    metric: "rtt_kernel_ns".to_owned(),
                    from_s: NOW_S - 3600,
                    n: 3600,
                    min: 900_000,
                    p50: 1_000_000,
                    p90: 1_100_000,
                    p99: 12_000_000,
                    p999: 50_000_000,
                    max: 120_000_000,
                }],
                alert: true,
                last_s: None,
            }],
            events: vec![EventView {
                at_s: NOW_S - 1000,
                since_s: at(40),
                task: "line".to_owned(),
                kind: EventKind::Change,
                sentence: "goodput <fell>".to_owned(),
                verdict: Some("limited by the path".to_owned()),
                metrics: vec!["goodput_bps/up".to_owned()],
            }],
            alerts: vec!["goodput fell".to_owned()],
        }
    }

    #[test]
    fn a_terminal_shows_the_series_its_change_the_gap_and_the_alert() {
        let text = document(&sample_view(), Some(80)).text(Some(80));
        for part in [
            "line, goodput (up): 90.00 Mbit/s to 900.0 Mbit/s",
            "^ changed",
            "2 runs: refused",
            "survey: limited by the path",
            "99.9 %",
            "round trip     3600",
            "ALERT",
            "in alert: goodput fell",
            "23:00:00",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_page_has_the_series_with_the_change_and_nothing_breaks() {
        let html = plan_page(&sample_view()).html();
        for part in ["goodput (up)", "goodput &lt;fell&gt;", "lasting changes", "no result"] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("NaN") && !html.contains("<fell>"));
    }

    #[test]
    fn a_calendar_lists_runs_and_says_the_months_volume() {
        let entry = |n: i64| CalendarEntry {
            start_s: NOW_S + n,
            until_s: NOW_S + n + 30,
            task: "line".to_owned(),
            run: "tcp B".to_owned(),
            bytes: Some(125_000_000),
        };
        let text = calendar("home", &[entry(10)], Some(93.01e9), false).text(None);
        assert!(text.contains("00:00:10") && text.contains("at most 93.0 GB in 31 days"), "{text}");
        let many: Vec<CalendarEntry> = (0..100).map(entry).collect();
        let text = calendar("home", &many, None, false).text(None);
        assert!(text.contains("100 runs") && text.contains("no bound"), "{text}");
        assert_eq!(calendar("home", &many, None, true).text(None).matches("tcp B").count(), 100);
    }
}
