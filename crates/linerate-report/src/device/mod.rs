//! Benchmarks of devices: one record in full, and the records of a run as tables in the form of
//! Bradner's of 1990 and of RFC 2544, with their diagrams.
//!
//! All from the records and the published table alone. A record is one frame length on one state
//! of a device; records are told by their plan, not by the study that they are of.

mod blocking;
mod bradner;
mod contract;
mod filters;
pub(crate) mod headline;
pub(crate) mod limit;
mod plots;
mod rfc2544;
pub(crate) mod single;
pub(crate) mod suite;
mod trials;
pub(crate) mod words;

use linerate_core::record::{Plan, Record};
use linerate_core::study::PublishedRouter;

pub use trials::trials_csv;

use crate::html;
use crate::study::sections::Section;
use crate::study::{Plot, section_text};
use crate::table::markdown_cell;
use suite::Suite;

/// Several records of benchmarks as one report for a terminal of `width` columns: tables in
/// Bradner's form and today's, then those of RFC 2544. His devices stand beside where `published`
/// has them. Empty without a benchmark.
pub fn text_within(
    records: &[Record],
    published: &[PublishedRouter],
    width: Option<usize>,
) -> String {
    let suite = Suite::new(records, suite::plain_name);
    let each = sections(&suite, published);
    let text: String = each.iter().map(|section| section_text(section, width)).collect();
    text.trim_start_matches('\n').to_owned()
}

/// The same as Markdown.
pub fn markdown(records: &[Record], published: &[PublishedRouter]) -> String {
    let suite = Suite::new(records, suite::plain_name);
    let mut out = format!("# {TITLE}\n");
    for section in sections(&suite, published) {
        out.push_str(&format!("\n## {}\n\n", markdown_cell(&section.title)));
        for table in &section.tables {
            out.push_str(&table.markdown());
            out.push('\n');
        }
        for note in &section.notes {
            out.push_str(&format!("- {}\n", markdown_cell(note)));
        }
    }
    out
}

/// The same as a page with diagrams, one file without scripts or outside requests.
pub fn html(records: &[Record], published: &[PublishedRouter]) -> String {
    let suite = Suite::new(records, suite::plain_name);
    html::bench::pages(TITLE, records, &sections(&suite, published), &plots(&suite))
}

/// Every diagram as a file of its own: name and content.
pub fn svgs(records: &[Record]) -> Vec<(String, String)> {
    let panels = plots(&Suite::new(records, suite::plain_name)).into_iter();
    panels.flat_map(|plot| plot.panels).map(|(name, svg)| (name, svg.file())).collect()
}

const TITLE: &str = "Benchmark of a device";

/// The sections of all groups, what one filter costs, his devices, trials that do not count.
pub(crate) fn sections(suite: &Suite<'_>, published: &[PublishedRouter]) -> Vec<Section> {
    let mut out = Vec::new();
    for group in &suite.groups {
        out.push(bradner::section(group));
        out.extend(filters::section(group));
    }
    out.extend(bradner::beside(suite, published));
    out.extend(suite.groups.iter().flat_map(rfc2544::sections));
    let cases = suite.groups.iter().flat_map(|group| &group.cases);
    out.extend(single::invalid(cases.flat_map(|case| &case.result.trials)));
    out
}

/// The diagrams of all groups.
pub(crate) fn plots(suite: &Suite<'_>) -> Vec<Plot> {
    let groups = suite.groups.iter().enumerate();
    groups.flat_map(|(number, group)| plots::plots(group, number)).collect()
}

/// Whether a record is of a benchmark.
pub fn is_bench(record: &Record) -> bool {
    matches!(record.plan, Plan::Bench(_)) && record.bench.is_some()
}
