//! Published tables as documents, CSV and JSON, with what theory says beside each figure.
//!
//! Cells stay as they were printed; nothing is rounded again.

pub mod milestones;

use linerate_core::study::{PublishedRows, PublishedTable, Relation, Theory, TheoryComparison};
use serde_json::{Value, json};

use crate::document::{Align, Block, Document, ReportTable};
use crate::{csv, number};

/// A table whose columns are figures where every cell of theirs is one.
fn typed_table<T: Into<String>>(
    names: impl IntoIterator<Item = T>,
    rows: Vec<Vec<String>>,
) -> ReportTable {
    let align = |at: usize| {
        let mut cells = rows.iter().filter_map(|row: &Vec<String>| row.get(at));
        if cells.all(|cell| is_figure(cell)) { Align::Right } else { Align::Left }
    };
    let columns = names.into_iter().enumerate().map(|(at, name)| (name, align(at)));
    ReportTable::from_columns(columns.collect::<Vec<_>>()).with_rows(rows)
}

/// True if a cell is a number, a range, a bound, a share, or the dash.
fn is_figure(cell: &str) -> bool {
    let signs = |c: char| c.is_ascii_digit() || " .,%<>+-".contains(c) || c == '\u{2212}';
    cell == number::NONE || (cell.chars().all(signs) && cell.contains(|c: char| c.is_ascii_digit()))
}

/// All tables: name, study, year, rows, what is in them.
pub fn list_document(tables: &[PublishedTable]) -> Document {
    let row = |table: &PublishedTable| {
        let about = &table.about;
        vec![
            about.id.to_owned(),
            about.study.to_owned(),
            about.year.to_string(),
            table.cells.len().to_string(),
            about.title.to_owned(),
        ]
    };
    let names = ["table", "study", "year", "rows", "what is in it"];
    Document::from_table(typed_table(names, tables.iter().map(row).collect()))
}

/// All tables as a JSON array, without their rows.
pub fn list_json(tables: &[PublishedTable]) -> Value {
    let entry = |table: &PublishedTable| {
        let mut entry = json!(table.about);
        entry["rows"] = table.cells.len().into();
        entry
    };
    tables.iter().map(entry).collect()
}

/// One table: cells as printed, then what theory says.
pub fn document(table: &PublishedTable) -> Document {
    let about = &table.about;
    let heading = format!("{} ({}): {}", about.id, about.year, about.title);
    let parts = [
        Block::Text(heading),
        Block::Table(printed_table(table)),
        Block::Remarks(table_notes(table)),
    ];
    parts.into_iter().fold(Document::default(), |document, part| document.with_section([part]))
}

fn printed_table(table: &PublishedTable) -> ReportTable {
    let has_theory = (0..table.cells.len()).any(|row| table.theory(row).is_some());
    let mut names = table.columns.clone();
    if has_theory {
        names.extend(["theory".to_owned(), "published is".to_owned()]);
    }
    let rows = table.cells.iter().enumerate().map(|(at, cells)| {
        let shown = |cell: &String| match cell.as_str() {
            "" => number::NONE.to_owned(),
            cell => cell.to_owned(),
        };
        let mut row: Vec<String> = cells.iter().map(shown).collect();
        if has_theory {
            row.push(number::or_dash(table.theory(at), |theory| computed_value(theory.value)));
            row.push(number::or_dash(table.compared(at), compared));
        }
        row
    });
    typed_table(names, rows.collect())
}

/// A computed value with the digits that a reader can use.
pub fn computed_value(value: f64) -> String {
    number::trimmed(&number::significant(value, 6)).to_owned()
}

/// How the published figure stands to the computed one.
pub fn compared(comparison: TheoryComparison) -> String {
    match comparison {
        TheoryComparison::Equal => "the same".to_owned(),
        TheoryComparison::Differs(by) => {
            let size = number::trimmed(&number::significant(by.abs(), 3)).to_owned();
            format!("{size} {}", if by < 0.0 { "less" } else { "more" })
        }
        TheoryComparison::Share(share) => format!("{} of it", number::percent(share)),
    }
}

/// Source, rules and remarks, each once.
fn table_notes(table: &PublishedTable) -> Vec<String> {
    let mut notes = vec![format!("source: {}", table.about.source)];
    let mut note = |text: String| {
        if !notes.contains(&text) {
            notes.push(text);
        }
    };
    for (at, cells) in table.cells.iter().enumerate() {
        let Some(theory) = table.theory(at) else { continue };
        note(format!("theory: {}", theory.rule));
        if let Some(remark) = theory.remark {
            let name: Vec<&str> =
                cells.iter().map(String::as_str).take(naming_columns(table)).collect();
            note(format!("{}: {remark}", name.join(" ")));
        }
    }
    notes
}

/// How many of the first columns name a row.
pub const fn naming_columns(table: &PublishedTable) -> usize {
    match &table.rows {
        PublishedRows::Routers(_) => 7,
        PublishedRows::Ping(_) | PublishedRows::Tcp(_) | PublishedRows::Milestones(_) => 2,
        PublishedRows::Items(_) => 1,
    }
}

/// One table as CSV: the columns as printed, the ends of ranges, and what theory says.
pub fn csv(table: &PublishedTable) -> String {
    let items = match &table.rows {
        PublishedRows::Items(rows) => Some(rows),
        _ => None,
    };
    let ends = if items.is_some() { ",low,high" } else { "" };
    let theory = "theory,theory_relation,theory_rule,theory_remark,theory_formula";
    let head = format!("{}{ends},{theory}", table.columns.join(","));
    let rows = table.cells.iter().enumerate().map(|(at, cells)| {
        let mut row = cells.clone();
        if let Some(items) = items {
            let printed = items[at].value.as_ref();
            row.push(csv::field_or_empty(printed.and_then(|printed| printed.lower_end())));
            row.push(csv::field_or_empty(printed.and_then(|printed| printed.upper_end())));
        }
        row.extend(theory_fields(table.theory(at)));
        row
    });
    csv::rows_with_head(&head, rows)
}

fn theory_fields(theory: Option<Theory>) -> [String; 5] {
    theory.map_or_else(Default::default, |theory| {
        [
            theory.value.to_string(),
            relation(theory.relation).to_owned(),
            theory.rule.to_owned(),
            theory.remark.unwrap_or_default().to_owned(),
            theory.formula.unwrap_or_default().to_owned(),
        ]
    })
}

const fn relation(relation: Relation) -> &'static str {
    match relation {
        Relation::Same => "same",
        Relation::Ceiling => "ceiling",
    }
}

/// One table as JSON: what it is, and its rows with types; `theory` is null where there is none.
pub fn json(table: &PublishedTable) -> Value {
    let mut rows = json!(table.rows);
    for (at, row) in rows.as_array_mut().into_iter().flatten().enumerate() {
        row["theory"] = table.theory(at).map_or(Value::Null, |theory| {
            json!({
                "value": theory.value,
                "relation": relation(theory.relation),
                "rule": theory.rule,
                "remark": theory.remark,
                "formula": theory.formula,
            })
        });
    }
    let mut whole = json!(table.about);
    whole["rows"] = rows;
    whole
}

#[cfg(test)]
mod tests {
    use linerate_core::study::TableAbout;

    use super::*;

    fn parse_table(text: &str) -> PublishedTable {
        let about =
            TableAbout { id: "gigasunet-2004", title: "t", study: "s", year: 2004, source: "x" };
        PublishedTable::from_csv(about, text).expect("a sound table")
    }

    fn sample_items() -> PublishedTable {
        parse_table(
            "item,value,unit,note\nload,70-80,percent,\nloss,<0.01,percent,\nrtt,,ms,\n\
             throughput,966.50,Mbit/s,\"a, b\"\n",
        )
    }

    #[test]
    fn cells_stay_as_printed_and_a_dash_is_absent() {
        let text = document(&sample_items()).text(None);
        // 949.285 Mbit/s at 1 Gbit/s and MTU 1500; 966.5 of it is 101.8 %.
        let expected = "\
gigasunet-2004 (2004): t

item         value  unit     note   theory  published is
load         70-80  percent  \u{2014}           \u{2014}  \u{2014}
loss         <0.01  percent  \u{2014}           \u{2014}  \u{2014}
rtt              \u{2014}  ms       \u{2014}           \u{2014}  \u{2014}
throughput  966.50  Mbit/s   a, b  949.285  102 % of it

source: x
";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("\nthroughput: "), "{text}");
    }

    #[test]
    fn csv_has_the_ends_of_ranges() {
        let text = csv(&sample_items());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("item,value,unit,note,low,high,theory,"), "{text}");
        assert!(lines[1].starts_with("load,70-80,percent,,70,80,,"), "{text}");
        assert!(lines[2].starts_with("loss,<0.01,percent,,,0.01,,"), "{text}");
        assert!(lines[3].starts_with("rtt,,ms,,,,,"), "{text}");
    }

    #[test]
    fn json_has_types_and_null_for_what_is_absent() {
        let value = json(&sample_items());
        assert_eq!(value["year"], 2004);
        assert_eq!(value["rows"][0]["value"]["low"], 70.0);
        assert_eq!(value["rows"][1]["value"]["low"], Value::Null);
        assert_eq!(value["rows"][2]["value"], Value::Null);
        assert_eq!(value["rows"][0]["theory"], Value::Null);
        assert_eq!(value["rows"][3]["theory"]["relation"], "ceiling");
    }

    #[test]
    fn a_list_counts_rows() {
        let tables = [sample_items()];
        let text = list_document(&tables).text(None);
        let cells: Vec<&str> = text.lines().nth(1).expect("a row").split_whitespace().collect();
        assert_eq!(cells, ["gigasunet-2004", "s", "2004", "4", "t"]);
        assert_eq!(list_json(&tables)[0]["rows"], 4);
    }
}
