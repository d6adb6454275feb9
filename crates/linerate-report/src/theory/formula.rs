//! One formula of the page: its text, symbols, range, source, examples and plot.

use linerate_core::theory::sheet::{Example, Formula, Plot, Symbol};

use super::figure::{computed, stated};
use super::{PLOTS, plot};
use crate::document::safe;

/// The entry of a formula; `shown` are the plots above it, with the formula that shows each.
pub(super) fn entry(
    formula: &'static Formula,
    shown: &mut Vec<(&'static str, &'static str)>,
) -> String {
    let mut out = format!("\n<a name=\"{}\"></a>\n### {}\n\n", formula.id, safe(formula.title));
    out.push_str(&format!("```text\n{}\n```\n\n", formula.formula.trim_end()));
    out.push_str(&symbols(formula.symbols));
    if formula.estimate {
        out.push_str("\n**An estimate**: known to be off by more than a tenth in practice.\n");
    }
    out.push_str(&format!("\n**Range**: {}\n", safe(formula.range)));
    out.push_str(&format!("\n**Source**: {}\n\n", safe(formula.source)));
    out.push_str(&examples(formula.examples));
    out.push_str(&picture(formula, shown));
    out
}

fn symbols(symbols: &[Symbol]) -> String {
    let row = |symbol: &Symbol| {
        let cells = [code(symbol.symbol), safe(symbol.meaning), safe(symbol.unit)];
        format!("| {} |\n", cells.join(" | "))
    };
    let rows: String = symbols.iter().map(row).collect();
    format!("| symbol | meaning | unit |\n|:--|:--|:--|\n{rows}")
}

fn examples(examples: &[Example]) -> String {
    let row = |example: &Example| {
        let cells = [
            safe(example.given),
            stated(example.expected),
            computed((example.computed)(), example.expected),
            safe(example.unit),
            safe(example.origin),
        ];
        format!("| {} |\n", cells.join(" | "))
    };
    let rows: String = examples.iter().map(row).collect();
    format!(
        "| given | expected | computed | unit | where the expected figure is from |\n\
         |:--|--:|--:|:--|:--|\n{rows}"
    )
}

/// The plot, or a link to the formula that shows it already.
fn picture(formula: &Formula, shown: &mut Vec<(&'static str, &'static str)>) -> String {
    let plot: &'static Plot = formula.plot;
    let title = safe(plot.title).replace(']', "\\]");
    if let Some((_, above)) = shown.iter().find(|(id, _)| *id == plot.id) {
        return format!("\nPlot: [{title}](#{above})\n");
    }
    shown.push((plot.id, formula.id));
    format!("\n![{title}]({PLOTS}/{})\n", plot::file_name(plot))
}

/// Code within a table: a bar must not end the cell.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('|', "\\|"))
}
