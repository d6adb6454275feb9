//! Documents as pages: one self-contained file each, without scripts and without a request to
//! anywhere.
//!
//! The content security policy in the head says so to the browser too. Light and dark follow the
//! reader's setting; print is always light.

use std::fmt::Write;

use linerate_core::record::{METRICS, MetricId};

use super::{Block, Document, Fact, ReportFigure, ReportSection, StudyAnswer, Tile};
use crate::escape::xml_escaped;
use crate::headline::Quality;
use crate::{number, svg, words};

/// Style of every page; colours are variables, so that dark and print swap them in one place.
const STYLE: &str = include_str!("page.css");

/// The whole document as a page of HTML.
pub(super) fn render(document: &Document) -> String {
    let mut body = format!("<h1>{}</h1>\n", unparted(&document.title));
    // A single result has its answer first, then when, where and with what.
    let is_single = document.headline.is_some();
    if !is_single {
        push_lead_lines(&mut body, &document.head);
    }
    if !document.limits.is_empty() {
        let heading = document.heading_of_limits();
        let _ = write!(body, "<div class=\"doubt\">\n<h2>{heading}</h2>\n");
        body.push_str(&remark_list(&document.limits));
        body.push_str("</div>\n");
    }
    let of_rank =
        |rank| document.sections.iter().filter(move |section| section_rank(section) == rank);
    of_rank(Rank::Answers).for_each(|each| section(&mut body, each));
    let quality = document.headline.as_ref().map(|headline| headline.quality);
    body.push_str(&headline(&document.tiles, unsaid(document), quality));
    if let Some((_, why)) = &document.failure {
        let _ = writeln!(body, "<p><strong>Incomplete:</strong> {}</p>", xml_escaped(why));
    }
    if is_single {
        push_lead_lines(&mut body, &document.head);
    }
    of_rank(Rank::Leading).for_each(|each| section(&mut body, each));
    of_rank(Rank::Other).for_each(|each| section(&mut body, each));
    if !document.notes.is_empty() {
        body.push_str("<h2>Caveats</h2>\n");
        body.push_str(&remark_list(&document.notes));
    }
    if !document.metrics.is_empty() {
        body.push_str("<h2>How it was measured</h2>\n");
        body.push_str(&methods(&document.metrics));
    }
    if let Some(plan) = &document.plan {
        body.push_str("<details><summary>The plan with all defaults</summary>\n");
        let _ = writeln!(body, "<pre>{}</pre></details>", xml_escaped(plan));
    }
    if !document.foot.is_empty() {
        let _ = writeln!(body, "<footer>{}</footer>", xml_escaped(&document.foot));
    }
    wrap_in_page(&document.title, &body)
}

/// Which sections a page shows first.
#[derive(PartialEq, Eq)]
enum Rank {
    Answers,
    Leading,
    Other,
}

fn section_rank(section: &ReportSection) -> Rank {
    let answers = section.blocks.iter().any(|block| matches!(block, Block::Answers(_)));
    match (section.leads, answers) {
        (true, true) => Rank::Answers,
        (true, false) => Rank::Leading,
        (false, _) => Rank::Other,
    }
}

/// The sentence, where no answer says the same.
fn unsaid(document: &Document) -> &str {
    let blocks = document.sections.iter().flat_map(|section| &section.blocks);
    let mut answers = blocks.filter_map(|block| match block {
        Block::Answers(answers) => Some(answers.iter()),
        _ => None,
    });
    let said = |answer: &StudyAnswer| document.sentence.ends_with(&answer.full_text());
    if answers.any(|mut all| all.any(said)) { "" } else { &document.sentence }
}

fn wrap_in_page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'\">\n<title>{}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n\
         {body}</body>\n</html>\n",
        xml_escaped(title),
        // Print keeps the light colours of the charts.
        svg::style_sheet().replacen("@media (", "@media screen and (", 1),
    )
}

/// The lines under a page's title.
fn push_lead_lines(out: &mut String, head: &[Block]) {
    let mut lead =
        |line: &str| out.push_str(&format!("<p class=\"lead\">{}</p>\n", unparted(line)));
    for block in head {
        match block {
            Block::Facts(facts) => facts.iter().for_each(|Fact { label, text, .. }| {
                lead(&if label.is_empty() { text.clone() } else { format!("{label}: {text}") });
            }),
            Block::Remarks(lines) | Block::Lines(lines) => lines.iter().for_each(|line| lead(line)),
            _ => {}
        }
    }
}

/// Large figures with what they are and what stands beside them, then a sentence.
fn headline(tiles: &[Tile], sentence: &str, quality: Option<Quality>) -> String {
    if tiles.is_empty() && sentence.is_empty() {
        return String::new();
    }
    let class = quality.map_or("", quality_class);
    let mut out = format!("<div class=\"box {class}\"><div class=\"tiles\">\n");
    for tile in tiles {
        let _ = writeln!(
            out,
            "<div class=\"tile\"><div class=\"figure\">{}</div><div>{}</div>\
             <div class=\"past\">{}</div></div>",
            xml_escaped(&tile.figure),
            unparted(&tile.label),
            unparted(&tile.beside)
        );
    }
    out.push_str("</div>\n");
    if !sentence.is_empty() {
        let _ = writeln!(out, "<p class=\"sentence\">{}</p>", unparted(sentence));
    }
    out + "</div>\n"
}

fn section(out: &mut String, section: &ReportSection) {
    if !section.title.is_empty() {
        let _ = write!(out, "<section>\n<h2>{}</h2>\n", xml_escaped(&section.title));
    }
    // Tables beside each other, and figures too, where the page is wide enough.
    let group = |block: &Block| match block {
        Block::Table(_) => "<div class=\"columns\">\n",
        Block::Figure(_) => "<div class=\"plots\">\n",
        _ => "",
    };
    for blocks in section.blocks.chunk_by(|one, other| group(one) == group(other)) {
        let open = blocks.first().map_or("", group);
        out.push_str(open);
        blocks.iter().for_each(|block| push(out, block));
        out.push_str(if open.is_empty() { "" } else { "</div>\n" });
    }
    if !section.title.is_empty() {
        out.push_str("</section>\n");
    }
}

fn push(out: &mut String, block: &Block) {
    match block {
        Block::Table(table) => out.push_str(&table.html()),
        Block::Remarks(lines) | Block::Lines(lines) => out.push_str(&remark_list(lines)),
        Block::Facts(facts) => {
            // A fact without a label goes on with what the one above it says.
            let fact = |Fact { label, text, .. }: &Fact| match label.as_str() {
                "" => format!("<dd class=\"more\">{}</dd>\n", unparted(text)),
                label => format!("<dt>{}</dt><dd>{}</dd>\n", xml_escaped(label), unparted(text)),
            };
            let facts: String = facts.iter().map(fact).collect();
            let _ = writeln!(out, "<dl class=\"facts\">\n{facts}</dl>");
        }
        Block::Text(text) => {
            let _ = writeln!(out, "<p>{}</p>", unparted(text));
        }
        Block::Answers(answers) => {
            let answers: String = answers.iter().map(answer).collect();
            let _ = writeln!(out, "<dl class=\"answers\">\n{answers}</dl>");
        }
        Block::Figure(drawn) => figure(out, drawn),
    }
}

/// The class that colours what has a quality.
const fn quality_class(quality: Quality) -> &'static str {
    match quality {
        Quality::Good => "good",
        Quality::Doubtful => "doubtful",
        Quality::Bad => "bad",
    }
}

/// The question, the figure that decides, the verdict with the answer, what speaks against it.
fn answer(answer: &StudyAnswer) -> String {
    let class = quality_class(answer.quality());
    let mut out = format!("<div class=\"answer {class}\"><dt>{}</dt>\n", unparted(&answer.ask));
    if let Some(Tile { figure, label, beside }) = &answer.figure {
        let beside = if beside.is_empty() { "" } else { &format!("; {beside}") };
        let label = unparted(&format!("{label}{beside}"));
        let figure = xml_escaped(figure);
        let _ = writeln!(
            out,
            "<dd><span class=\"figure\">{figure}</span> <span class=\"past\">{label}</span></dd>"
        );
    }
    let verdict = match answer.verdict {
        "" => String::new(),
        verdict => format!("<strong>{}</strong>: ", xml_escaped(verdict)),
    };
    let _ = writeln!(out, "<dd>{verdict}{}</dd>", unparted(&answer.text));
    if !answer.doubt.is_empty() {
        let _ = writeln!(out, "<dd class=\"why\">* {}</dd>", unparted(&answer.doubt));
    }
    out + "</div>\n"
}

fn figure(out: &mut String, figure: &ReportFigure) {
    let panels: String = figure.panels.iter().map(|(_, svg)| svg.inline()).collect();
    let wide = if figure.panels.len() > 1 { " class=\"wide\"" } else { "" };
    let _ = write!(
        out,
        "<section{wide}>\n<h2>{}</h2>\n<figure><div class=\"panels\">\n{panels}</div>\n\
         <figcaption>{}</figcaption></figure>\n</section>\n",
        xml_escaped(&figure.title),
        xml_escaped(&figure.caption)
    );
}

/// Text in which a number is not parted from its unit at the end of a line.
fn unparted(text: &str) -> String {
    let words: Vec<String> =
        words::unparted(text).map(|word| word.replace(' ', "\u{a0}")).collect();
    xml_escaped(&words.join(" "))
}

/// A list of remarks; nothing for an empty one.
fn remark_list(items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|item| format!("<li>{}</li>\n", unparted(item))).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// The definitions of the metrics from the one table, folded away.
fn methods(metrics: &[MetricId]) -> String {
    let mut out = String::from("<details><summary>How the figures are defined</summary>\n<dl>\n");
    for row in METRICS.iter().filter(|row| metrics.contains(&row.id)) {
        let layer =
            row.layer.map_or_else(String::new, |layer| format!(", {}", words::layer_name(layer)));
        let _ = writeln!(
            out,
            "<dt>{} ({}{layer})</dt><dd>{} Source: {}.</dd>",
            xml_escaped(row.title),
            xml_escaped(if row.unit == "1" { "ratio" } else { row.unit }),
            xml_escaped(row.definition),
            xml_escaped(row.source)
        );
    }
    let _ = writeln!(
        out,
        "</dl>\n<p>1 Mbit/s is 1,000,000 bit/s. {} marks what was not measured.</p></details>",
        number::NONE
    );
    out
}
