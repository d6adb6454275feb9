//! Documents as Markdown: title, sentence, facts, then the sections with their tables. Figures are
//! files of their own.

use super::{Block, Document, ReportSection};
use crate::escape;

/// The whole document as Markdown.
pub(super) fn render(document: &Document) -> String {
    let mut out = String::new();
    if !document.title.is_empty() {
        out.push_str(&format!("# {}\n", markdown_cell(&document.title)));
    }
    if !document.sentence.is_empty() {
        out.push_str(&format!("\n{}\n", markdown_cell(&document.sentence)));
    }
    if !document.head.is_empty() {
        out.push('\n');
        document.head.iter().for_each(|block| push(&mut out, block));
    }
    let failure = document.failure.iter().map(|(how, why)| format!("{how}: {why}")).collect();
    let limits = document.heading_of_limits();
    for (title, lines) in [(limits, &document.limits), ("Incomplete", &failure)] {
        section(&mut out, &remarks_section(title, lines));
    }
    document.sections.iter().for_each(|each| section(&mut out, each));
    section(&mut out, &remarks_section("Caveats", &document.notes));
    out
}

fn remarks_section(title: &str, lines: &[String]) -> ReportSection {
    ReportSection::without_blank_line(title, [Block::Remarks(lines.to_vec())])
}

fn section(out: &mut String, section: &ReportSection) {
    if !section.is_told() {
        return;
    }
    if !section.title.is_empty() {
        out.push_str(&format!("\n## {}\n\n", markdown_cell(&section.title)));
    }
    section.blocks.iter().for_each(|block| push(out, block));
}

fn push(out: &mut String, block: &Block) {
    match block {
        Block::Table(table) => out.push_str(&(table.markdown() + "\n")),
        Block::Remarks(lines) | Block::Lines(lines) => {
            lines.iter().for_each(|line| out.push_str(&format!("- {}\n", markdown_cell(line))));
        }
        Block::Facts(facts) => {
            for fact in facts {
                let inner = if fact.inner { "  " } else { "" };
                let label = if fact.label.is_empty() { "" } else { &format!("{}: ", fact.label) };
                out.push_str(&format!(
                    "{inner}- {}{}\n",
                    markdown_cell(label),
                    markdown_cell(&fact.text)
                ));
            }
        }
        Block::Text(text) => out.push_str(&format!("{}\n\n", markdown_cell(text))),
        Block::Answers(answers) => {
            for answer in answers {
                let (ask, told) = (markdown_cell(&answer.ask), markdown_cell(&answer.full_text()));
                out.push_str(&format!("**{ask}**\n\n{told}\n\n"));
            }
        }
        Block::Figure(_) => {}
    }
}

/// A name or remark from outside, safe within Markdown.
pub fn markdown_cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escape::without_controls(text).chars() {
        if matches!(c, '|' | '<' | '*' | '_' | '`' | '\\' | '[') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
