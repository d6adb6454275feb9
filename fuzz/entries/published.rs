//! Any text as a table of published figures: no panic, an error of one line, rows as long as their
//! heading, and figures that compare.

use linerate_core::study::{PublishedTable, TableAbout};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let about = TableAbout { id: "x", title: "x", study: "x", year: 2000, source: "x" };
    match PublishedTable::from_csv(about, text) {
        Ok(table) => {
            assert!(table.cells.iter().all(|row| row.len() == table.columns.len()));
            for row in 0..table.cells.len() {
                let _ = (table.theory(row), table.compared(row));
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}
