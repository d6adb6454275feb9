//! The formula sheet as a page with plots: `docs/theory.md` and the files that it shows.
//!
//! The page is Markdown as GitHub renders it. All its figures are computed by the formulas of the
//! sheet when the page is made; nothing here knows a formula. Left out: where the files go.

use linerate_core::study::PublishedTable;
use linerate_report::markdown_cell as safe;

use super::sheet::{Formula, Section};
use super::{entry, plot, published};

/// Layers, units, and how to use the page: what a reader needs before the first formula.
const INTRODUCTION: &str = include_str!("introduction.md");

/// Directory of the plots, as the page names it.
pub(crate) const PLOTS: &str = "theory";

/// The whole page.
pub(crate) fn page(sheet: &[Section], published: &[PublishedTable]) -> String {
    let mut out = INTRODUCTION.to_owned();
    out.push_str(&contents(sheet));
    let mut shown = Vec::new();
    for section in sheet {
        out.push_str(&format!("\n## {}\n\n{}\n", safe(&section.title), safe(&section.purpose)));
        for formula in &section.formulas {
            out.push_str(&entry::entry(sheet, formula, &mut shown));
        }
    }
    out.push_str(&published::section(published));
    out
}

/// Every plot: name of its file and its content.
pub(crate) fn plots(sheet: &[Section]) -> Vec<(String, String)> {
    let plots = sheet.iter().flat_map(|section| &section.plots);
    plots.map(|plot| (plot::file_name(plot), plot::svg(plot))).collect()
}

pub(super) fn formulas(sheet: &[Section]) -> impl Iterator<Item = &Formula> {
    sheet.iter().flat_map(|section| &section.formulas)
}

/// Links to sections and formulas.
fn contents(sheet: &[Section]) -> String {
    let mut out = String::from("\n## Contents\n\n");
    for section in sheet {
        out.push_str(&format!("- {}\n", link(&section.title, &heading_anchor(&section.title))));
        for formula in &section.formulas {
            out.push_str(&format!("  - {}\n", link(&formula.title, &formula.id)));
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
