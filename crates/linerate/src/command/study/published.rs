//! `linerate study published`: the tables that ship, as they were printed, beside theory.

use linerate_core::record::{Failure, Fault};
use linerate_core::study::PublishedTable;
use linerate_engine::study::{ShippedTable, TABLES};
use linerate_report::published;

use crate::exit::Outcome;
use crate::output;

/// Runs `linerate study published` by its flags.
pub(super) fn run(name: Option<&str>, json: bool, csv: bool) -> Outcome {
    let Some(name) = name else {
        let tables = read(TABLES.iter())?;
        if json {
            output::print_line(&linerate_core::tree::to_json_pretty(&published::list_json(
                &tables,
            ))?);
        } else {
            output::document(&published::list_document(&tables));
        }
        return Ok(0);
    };
    let tables = find_tables(name)?;
    if csv {
        // Tables of one study have different columns; a file of values has one head.
        let [table] = tables.as_slice() else {
            let names: Vec<&str> = tables.iter().map(|table| table.about.id).collect();
            let reason = "the study has several tables, and CSV has one head";
            return Err(Failure::new(Fault::Usage, "show published", name, reason)
                .advise(format!("name one of {}", names.join(", ")))
                .into());
        };
        output::print_text(&published::csv(table));
    } else if json {
        let all: Vec<serde_json::Value> = tables.iter().map(published::json).collect();
        match all.as_slice() {
            [one] => output::print_line(&linerate_core::tree::to_json_pretty(one)?),
            several => output::print_line(&linerate_core::tree::to_json_pretty(several)?),
        }
    } else {
        for (at, table) in tables.iter().enumerate() {
            output::print_text(if at == 0 { "" } else { "\n" });
            output::document(&published::document(table));
        }
    }
    Ok(0)
}

/// The table of this name, else every table of the study of this name.
fn find_tables(name: &str) -> Result<Vec<PublishedTable>, Failure> {
    let named = || TABLES.iter().filter(|table| table.about.id == name);
    let of_study = || TABLES.iter().filter(|table| table.about.study == name);
    let found = if named().next().is_some() { read(named())? } else { read(of_study())? };
    if found.is_empty() {
        let names: Vec<&str> = TABLES.iter().map(|table| table.about.id).collect();
        let reason = format!("the tables that ship are: {}", names.join(", "));
        return Err(Failure::new(Fault::Usage, "find published", name, reason)
            .advise("name one of them, or a study"));
    }
    Ok(found)
}

/// Reads tables that ship; a spoilt one is a fault of the program.
pub(super) fn read<'a>(
    tables: impl Iterator<Item = &'a ShippedTable>,
) -> Result<Vec<PublishedTable>, Failure> {
    tables
        .map(|table| {
            let fault =
                |error| Failure::new(Fault::System, "read published", table.about.id, error);
            table.read().map_err(fault)
        })
        .collect()
}
