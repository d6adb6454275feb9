//! The last section of the page: what the studies printed beside what theory says, and why where
//! the two differ.

use linerate_core::study::{PublishedItem, PublishedRows, PublishedTable, TheoryComparison};
use linerate_report::markdown_cell as safe;
use linerate_report::published::{compared, computed_value, naming_columns};

/// Its heading.
pub(super) const TITLE: &str = "Published tables beside theory";

/// The section; tables of which theory says nothing are left out.
pub(super) fn section(tables: &[PublishedTable]) -> String {
    let mut out = format!(
        "\n## {TITLE}\n\nThe tables of `studies/data`, row by row: a figure that a study computed \
         should come out the same within its printed rounding, and one that it measured should be \
         below its ceiling. Where neither holds, the reason is given. `linerate study published` \
         shows the tables whole.\n"
    );
    for table in tables {
        let rows: Vec<usize> =
            (0..table.cells.len()).filter(|row| table.theory(*row).is_some()).collect();
        if !rows.is_empty() {
            out.push_str(&format!("\n### {}\n\n", table.about.id));
            out.push_str(&format!("{}.\n\n", safe(table.about.source)));
            out.push_str(&body(table, &rows));
            out.push_str(&remarks(table, &rows));
        }
    }
    out
}

/// Single figures one by one, long tables as a count.
fn body(table: &PublishedTable, rows: &[usize]) -> String {
    match &table.rows {
        PublishedRows::Items(items) => item_table(table, items, rows),
        _ => summary(table, rows),
    }
}

fn item_table(table: &PublishedTable, items: &[PublishedItem], rows: &[usize]) -> String {
    let mut out = String::from(
        "| figure | published | theory | unit | published is | theory is |\n\
         |:--|--:|--:|:--|:--|:--|\n",
    );
    for &row in rows {
        let (item, Some(theory)) = (&items[row], table.theory(row)) else { continue };
        let printed = item.value.as_ref().map_or("", |value| value.source_text());
        let stands = table.compared(row).map(compared).unwrap_or_default();
        let cells = [
            safe(&item.item),
            safe(printed),
            computed_value(theory.value),
            safe(&item.unit),
            safe(&stands),
            safe(theory.rule),
        ];
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    out
}

fn summary(table: &PublishedTable, rows: &[usize]) -> String {
    let comparisons: Vec<TheoryComparison> =
        rows.iter().filter_map(|row| table.compared(*row)).collect();
    let same = comparisons.iter().filter(|each| **each == TheoryComparison::Equal).count();
    let shares = comparisons.iter().filter_map(|each| match each {
        TheoryComparison::Share(share) => Some(*share),
        _ => None,
    });
    let mut out = String::new();
    if let Some(highest) = shares.clone().reduce(f64::max) {
        out.push_str(&format!(
            "{} measured figures; the highest is {}.\n",
            shares.count(),
            compared(TheoryComparison::Share(highest)).replace("of it", "of its ceiling")
        ));
    } else {
        let all = comparisons.len();
        let which = if same == all { "all".to_owned() } else { format!("of which {same} are") };
        out.push_str(&format!(
            "{all} computed figures, {which} the same within their printed rounding.\n"
        ));
    }
    let mut rules: Vec<&str> =
        rows.iter().filter_map(|row| table.theory(*row)).map(|theory| theory.rule).collect();
    rules.dedup();
    out.push_str(&format!("Theory is: {}.\n", safe(&rules.join("; "))));
    out
}

/// Why figures differ.
fn remarks(table: &PublishedTable, rows: &[usize]) -> String {
    let remark = |row: &usize| {
        let theory = table.theory(*row)?;
        let why = theory.remark?;
        let more = theory.formula.map(|id| format!(" ([more](#{id}))")).unwrap_or_default();
        let name: Vec<&str> =
            table.cells[*row].iter().map(String::as_str).take(naming_columns(table)).collect();
        Some(format!("- {}: {}{more}.\n", safe(&name.join(", ")), safe(why)))
    };
    let lines: String = rows.iter().filter_map(remark).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}
