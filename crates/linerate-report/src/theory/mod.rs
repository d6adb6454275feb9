//! The formula sheet as a page with plots: `docs/theory.md` and the files that it shows.
//!
//! The page is Markdown as GitHub renders it. All its figures are computed by the formulas of the
//! sheet when the page is made; nothing here knows a formula. Left out: where the files go.

mod figure;
mod formula;
mod plot;
mod published;

use linerate_core::study::PublishedTable;
use linerate_core::theory::sheet::{Formula, Section};

use crate::document::safe;

/// Layers, units, and how to use the page: what a reader needs before the first formula.
const INTRODUCTION: &str = include_str!("introduction.md");

/// Directory of the plots, as the page names it.
pub const PLOTS: &str = "theory";

/// The whole page.
pub fn page(sheet: &[Section], published: &[PublishedTable]) -> String {
    let mut out = INTRODUCTION.to_owned();
    out.push_str(&contents(sheet));
    let mut shown = Vec::new();
    for section in sheet {
        out.push_str(&format!("\n## {}\n\n{}\n", safe(section.title), safe(section.purpose)));
        for formula in section.formulas {
            out.push_str(&formula::entry(formula, &mut shown));
        }
    }
    out.push_str(&published::section(published));
    out
}

/// Every plot once: name of its file and its content.
pub fn plots(sheet: &[Section]) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for formula in formulas(sheet) {
        let name = plot::file_name(formula.plot);
        if !files.iter().any(|(other, _)| *other == name) {
            files.push((name, plot::svg(formula.plot)));
        }
    }
    files
}

fn formulas(sheet: &[Section]) -> impl Iterator<Item = &Formula> {
    sheet.iter().flat_map(|section| section.formulas)
}

/// Links to sections and formulas.
fn contents(sheet: &[Section]) -> String {
    let mut out = String::from("\n## Contents\n\n");
    for section in sheet {
        out.push_str(&format!("- {}\n", link(section.title, &heading_anchor(section.title))));
        for formula in section.formulas {
            out.push_str(&format!("  - {}\n", link(formula.title, formula.id)));
        }
    }
    out.push_str(&format!("- {}\n", link(published::TITLE, &heading_anchor(published::TITLE))));
    out
}

fn link(text: &str, anchor: &str) -> String {
    format!("[{}](#{anchor})", safe(text).replace(']', "\\]"))
}

/// The anchor that GitHub gives a heading: lower case, spaces as hyphens, other marks dropped.
fn heading_anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests;
