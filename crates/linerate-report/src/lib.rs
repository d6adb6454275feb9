//! Reads records and renders them: text for terminals, SVG, HTML, Markdown, CSV.
//!
//! Depends on the core alone: any record, any day, any machine, the same report.
