//! One formula of the page: its text, symbols, range, source, examples and plot.

use linerate_report::markdown_cell as safe;

use super::figure::{computed, stated};
use super::sheet::{Example, Formula, Section, plot_of};
use super::{PLOTS, plot};

/// The entry of a formula; `shown` are the plots above it, with the formula that shows each.
pub(super) fn entry<'a>(
    sheet: &'a [Section],
    formula: &'a Formula,
    shown: &mut Vec<(&'a str, &'a str)>,
) -> String {
    let mut out = format!("\n<a name=\"{}\"></a>\n### {}\n\n", formula.id, safe(&formula.title));
    out.push_str(&format!("```text\n{}\n```\n\n", formula.formula.trim_end()));
    out.push_str(&symbols(&formula.symbols));
    if formula.estimate {
        out.push_str("\n**An estimate**: known to be off by more than a tenth in practice.\n");
    }
    out.push_str(&format!("\n**Range**: {}\n", safe(&formula.range)));
    out.push_str(&format!("\n**Source**: {}\n\n", safe(&formula.source)));
    out.push_str(&examples(formula));
    out.push_str(&picture(sheet, formula, shown));
    out
}

fn symbols(symbols: &[[String; 3]]) -> String {
    let row = |[symbol, meaning, unit]: &[String; 3]| {
        format!("| {} |\n", [code(symbol), safe(meaning), safe(unit)].join(" | "))
    };
    let rows: String = symbols.iter().map(row).collect();
    format!("| symbol | meaning | unit |\n|:--|:--|:--|\n{rows}")
}

fn examples(formula: &Formula) -> String {
    let row = |example: &Example| {
        let cells = [
            safe(&example.given),
            stated(example.expected),
            computed(formula.computed(example), example.expected),
            safe(&example.unit),
            safe(&example.origin),
        ];
        format!("| {} |\n", cells.join(" | "))
    };
    let rows: String = formula.examples.iter().map(row).collect();
    format!(
        "| given | expected | computed | unit | where the expected figure is from |\n\
         |:--|--:|--:|:--|:--|\n{rows}"
    )
}

/// The plot, or a link to the formula that shows it already.
fn picture<'a>(
    sheet: &'a [Section],
    formula: &'a Formula,
    shown: &mut Vec<(&'a str, &'a str)>,
) -> String {
    let plot = plot_of(sheet, &formula.plot);
    let title = safe(&plot.title).replace(']', "\\]");
    if let Some((_, above)) = shown.iter().find(|(id, _)| *id == plot.id) {
        return format!("\nPlot: [{title}](#{above})\n");
    }
    shown.push((&plot.id, &formula.id));
    format!("\n![{title}]({PLOTS}/{})\n", plot::file_name(plot))
}

/// Code within a table: a bar must not end the cell.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('|', "\\|"))
}
