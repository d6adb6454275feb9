//! Reads records and renders them: text for terminals, SVG, HTML, Markdown, CSV.
//!
//! Depends on the core alone: any record, any day, any machine, the same report.

/// Text for terminals.
pub mod text {
    use linerate_core::record::Record;

    /// Placeholder until the report lands.
    pub fn record(record: &Record) -> String {
        record
            .summary
            .iter()
            .map(|row| {
                format!("{:?} {:?} {:?} {:?}\n", row.metric, row.stat, row.direction, row.value)
            })
            .collect()
    }
}
