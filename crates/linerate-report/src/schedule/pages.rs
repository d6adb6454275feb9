//! A plan's state, calendar and page as documents.

use linerate_core::schedule::EventKind;

use super::sentences::{format, name, shown, time};
use super::smoke::smoke;
use super::{Entry, EventView, SeriesView, TaskView, View};
use crate::document::{Block, Document, Figure, Section, Tile};
use crate::svg::{Band, BandChart, BandMark};
use crate::{Align, Table, number, words};

/// Columns of a band where nothing says how wide a terminal is.
const COLUMNS: usize = 72;
/// Columns beside a band: its margin.
const MARGIN: usize = 2;

/// A span as people say it: `12 s`, `5 min`, `3 h`, `2 days`.
pub(crate) fn span(seconds: i64) -> String {
    match seconds.max(0) {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7200 => format!("{} min", s / 60),
        s @ 7200..172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

/// The state of a plan for a terminal of some width.
pub fn document(view: &View, width: Option<usize>) -> Document {
    let columns = width.unwrap_or(COLUMNS + MARGIN).clamp(24, 120) - MARGIN;
    let mut sections = vec![Section::close("", [Block::Table(tasks(view))])];
    let mut lines = Vec::new();
    for task in &view.tasks {
        for series in &task.series {
            lines.extend(band(view, task, series, columns));
        }
    }
    if !lines.is_empty() {
        lines.push(axis(view, columns));
        sections.push(Section::apart("", [Block::Lines(lines)]));
    }
    sections
        .extend(spreads(view).map(|table| Section::apart("All samples", [Block::Table(table)])));
    sections.extend(told("Gaps", gaps(view)));
    sections.extend(told("What happened", events(view)));
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

fn told(title: &str, lines: Vec<String>) -> Option<Section> {
    (!lines.is_empty()).then(|| Section::apart(title, [Block::Remarks(lines)]))
}

fn tasks(view: &View) -> Table {
    let mut table = Table::of([
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
            series.points.last().map(|(_, value)| shown(&series.metric, *value))
        });
        let ago = task.last_good_s.map(|at| span(view.now_s - at));
        let next = task.next_s.filter(|_| view.running).map(|at| span(at - view.now_s));
        table.row([
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
fn spreads(view: &View) -> Option<Table> {
    let mut table = Table::of([
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
        for spread in task.spreads.iter().filter(|it| it.metric.ends_with("_ns")) {
            let of = |value: u64| shown(&spread.metric, value as f64);
            any = true;
            table.row([
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
fn band(view: &View, task: &TaskView, series: &SeriesView, columns: usize) -> Vec<String> {
    let values = || series.points.iter().map(|point| point.1);
    let (low, high) =
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if !low.is_finite() {
        return Vec::new();
    }
    let axis = (view.from_s as f64, view.now_s as f64);
    let range = format!("{} to {}", shown(&series.metric, low), shown(&series.metric, high));
    let mut lines = vec![format!("{}, {}: {range}", task.name, name(&series.metric))];
    lines.extend(smoke(&series.points, axis, columns).iter().map(|row| row.trim_end().to_owned()));
    let mut marks = vec![' '; columns];
    let changes = view.events.iter().filter(|event| event.task == task.name);
    for event in changes.filter(|event| event.metrics.contains(&series.metric)) {
        let share = (event.since_s - axis.0) / (axis.1 - axis.0);
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
fn axis(view: &View, columns: usize) -> String {
    let day = view.now_s - view.from_s > 86_400;
    let shape = if day { "%Y-%m-%d %H:%M" } else { "%H:%M:%S" };
    let (from, until) = (format(view.from_s as f64, shape), format(view.now_s as f64, shape));
    let until = format!("{until} UTC");
    let between = columns.saturating_sub(from.len() + until.len()).max(1);
    format!("{from}{}{until}", "\u{2500}".repeat(between))
}

fn gaps(view: &View) -> Vec<String> {
    let of = |task: &TaskView| {
        let name = task.name.clone();
        let gaps = task.gaps.iter().map(move |gap| {
            let runs = words::counted(gap.runs as u64, "run");
            let from = time(gap.from_s as f64);
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

fn events(view: &View) -> Vec<String> {
    let line = |event: &EventView| {
        let verdict = event.verdict.as_ref().map(|it| format!("; survey: {it}"));
        let verdict = verdict.unwrap_or_default();
        format!("{} UTC: {}{verdict}", time(event.at_s as f64), event.sentence)
    };
    view.events.iter().map(line).collect()
}

/// The page of a plan: its series with what happened on one time axis.
pub fn page(view: &View) -> Document {
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
                Box::new(move |value| shown(&metric, value))
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
        figures.push(Block::Figure(Figure::new(&task.name, caption, vec![(file, chart.svg())])));
    }
    let events = numbered(view);
    let mut sections = vec![Section::close("Tasks", [Block::Table(tasks(view))])];
    sections.push(Section::apart("Series", figures));
    sections
        .extend(spreads(view).map(|table| Section::apart("All samples", [Block::Table(table)])));
    sections.extend(told("What happened", events));
    sections.extend(told("Gaps", gaps(view)));
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

fn numbered(view: &View) -> Vec<String> {
    let lines = events(view).into_iter().enumerate();
    lines.map(|(at, line)| format!("{}. {line}", at + 1)).collect()
}

/// The runs of a day, and the volume of 31 days.
pub fn calendar(plan: &str, entries: &[Entry], month: Option<f64>, all: bool) -> Document {
    let list = all || entries.len() <= 60;
    let table = if list { each(entries) } else { by_task(entries) };
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
        sections: vec![Section::close("", [Block::Table(table)])],
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

fn each(entries: &[Entry]) -> Table {
    let columns = ["begins", "until", "task", "at most", "command"];
    let right = |name: &str| if name == "at most" { Align::Right } else { Align::Left };
    let mut table = Table::of(columns.map(|name| (name, right(name))));
    for entry in entries {
        table.row([
            format(entry.start_s as f64, "%m-%d %H:%M:%S"),
            format(entry.until_s as f64, "%H:%M:%S"),
            entry.task.clone(),
            volume(entry.bytes),
            entry.run.clone(),
        ]);
    }
    table
}

fn by_task(entries: &[Entry]) -> Table {
    let columns = ["task", "first", "runs", "each until", "at most each", "command"];
    let right = |name: &str| {
        if ["runs", "each until", "at most each"].contains(&name) {
            Align::Right
        } else {
            Align::Left
        }
    };
    let mut table = Table::of(columns.map(|name| (name, right(name))));
    let mut seen: Vec<&str> = Vec::new();
    for entry in entries {
        if seen.contains(&entry.task.as_str()) {
            continue;
        }
        seen.push(&entry.task);
        let runs = entries.iter().filter(|other| other.task == entry.task).count();
        table.row([
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
    use crate::schedule::{Gap, Spread};

    const NOW_S: i64 = 1_795_478_400;

    fn view() -> View {
        let at = |n: i64| (NOW_S - 3600 + 60 * n) as f64;
        let rate = |n| if n < 40 { 9e8 } else { 9e7 };
        View {
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
                spreads: vec![Spread {
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
        let text = document(&view(), Some(80)).text(Some(80));
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
        let html = page(&view()).html();
        for part in ["goodput (up)", "goodput &lt;fell&gt;", "lasting changes", "no result"] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("NaN") && !html.contains("<fell>"));
    }

    #[test]
    fn a_calendar_lists_runs_and_says_the_months_volume() {
        let entry = |n: i64| Entry {
            start_s: NOW_S + n,
            until_s: NOW_S + n + 30,
            task: "line".to_owned(),
            run: "tcp B".to_owned(),
            bytes: Some(125_000_000),
        };
        let text = calendar("home", &[entry(10)], Some(93.01e9), false).text(None);
        assert!(text.contains("00:00:10") && text.contains("at most 93.0 GB in 31 days"), "{text}");
        let many: Vec<Entry> = (0..100).map(entry).collect();
        let text = calendar("home", &many, None, false).text(None);
        assert!(text.contains("100 runs") && text.contains("no bound"), "{text}");
        assert_eq!(calendar("home", &many, None, true).text(None).matches("tcp B").count(), 100);
    }
}
