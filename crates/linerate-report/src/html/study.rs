//! The page of a study: headline, comparison, plots, full tables, caveats, plan, definitions.

use linerate_core::record::MetricId;

use super::page;
use crate::device;
use crate::escape::xml;
use crate::study::compare::Comparison;
use crate::study::grid::Grid;
use crate::study::questions::Answered;
use crate::study::sections::{self, Entry, Section};
use crate::study::{Plot, Results, facts, headline, plots, sentence, unfinished_and_caveats};

/// The metrics that the page shows.
const SHOWN: [MetricId; 7] = [
    MetricId::Goodput,
    MetricId::Rtt,
    MetricId::Pps,
    MetricId::PpsPaper,
    MetricId::Sent,
    MetricId::Received,
    MetricId::LossRatio,
];

/// The whole report as one file.
pub(crate) fn page(results: &Results) -> String {
    let grid = Grid::new(results);
    let compared = Comparison::new(&grid);
    let mut body = page::title(&results.plan.title);
    body.push_str(&page::leads(&facts(results, &grid)));
    let answered = Answered::new(results, &grid);
    let tiles: Vec<[String; 3]> = headline::tiles(&grid, &compared, &answered)
        .into_iter()
        .map(|tile| [tile.figure, tile.label, tile.past])
        .collect();
    body.push_str(&page::headline(&tiles, &sentence::of(&grid, &answered)));
    if let Some(table) = sections::comparison(&grid, &compared) {
        let past = if compared.roles.compare(&results.plan) { " class=\"compare\"" } else { "" };
        body.push_str(&format!("<div{past}>\n{}</div>\n", section(&table, "h2")));
    }
    body.push_str("<div class=\"plots\">\n");
    for plot in plots::plots(&grid, &compared) {
        body.push_str(&figure(&plot));
    }
    body.push_str("</div>\n");
    for each in unfinished_and_caveats(&grid) {
        body.push_str(&section(&each, "h2"));
    }
    let suite = grid.bench();
    for each in device::sections(&suite, grid.routers) {
        body.push_str(&section(&each, "h2"));
    }
    if grid.paths().next().is_some() {
        body.push_str("<h2>All figures by topology</h2>\n");
    }
    for row in grid.paths() {
        body.push_str(&section(&sections::of_topology(row, &grid.past), "h3"));
    }
    for each in answered.sections(&grid) {
        body.push_str(&section(&each, "h2"));
    }
    body.push_str("<h2>How it was measured</h2>\n");
    let shown: &[MetricId] = if suite.is_empty() { &[] } else { super::bench::METRICS };
    body.push_str(&page::methods(&[&SHOWN, shown].concat()));
    body.push_str(&page::plan_echo(&results.plan));
    body.push_str(&footer(&grid));
    page::page(&results.plan.title, &body)
}

pub(super) fn section(section: &Section, heading: &str) -> String {
    let mut out = format!("<section>\n<{heading}>{}</{heading}>\n", xml(&section.title));
    if !section.tables.is_empty() {
        out.push_str("<div class=\"columns\">\n");
        section.tables.iter().for_each(|table| out.push_str(&table.html()));
        out.push_str("</div>\n");
    }
    out.push_str(&answers(&section.answers));
    out.push_str(&page::list(&section.notes));
    out.push_str("</section>\n");
    out
}

/// Questions with their answers; nothing for none.
fn answers(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut out = String::from("<dl class=\"answers\">\n");
    for entry in entries {
        let answer = entry.answer();
        let (verdict, text) = answer.split_at(entry.verdict.len());
        let verdict = match verdict {
            "" => String::new(),
            verdict => format!("<strong>{}</strong>", xml(verdict)),
        };
        out.push_str(&format!(
            "<dt>{}</dt><dd>{verdict}{}</dd>\n",
            page::unparted(&entry.ask),
            page::unparted(text)
        ));
    }
    out + "</dl>\n"
}

pub(super) fn figure(plot: &Plot) -> String {
    let panels: String = plot.panels.iter().map(|(_, svg)| svg.inline()).collect();
    let wide = if plot.panels.len() > 1 { " class=\"wide\"" } else { "" };
    format!(
        "<section{wide}>\n<h2>{}</h2>\n<figure><div class=\"panels\">\n{panels}</div>\n\
         <figcaption>{}</figcaption></figure>\n</section>\n",
        xml(&plot.title),
        xml(&plot.caption)
    )
}

fn footer(grid: &Grid<'_>) -> String {
    let tool = grid.records.first().map(|record| &record.tool);
    tool.map_or_else(String::new, |tool| {
        format!("<footer>{} {}</footer>\n", xml(&tool.name), xml(&tool.version))
    })
}
