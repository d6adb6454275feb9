//! Reads records and renders them: text for terminals, SVG, HTML, Markdown, CSV.
//!
//! Depends on the core alone: any record, any day, any machine, the same report. Nothing here
//! opens a file, reads a clock or prints; records go in and strings come out. An absent value is
//! shown as a dash, never as 0.
#![forbid(unsafe_code)]

mod ceiling;
pub mod csv;
pub mod device;
pub mod emulated;
mod escape;
pub mod examination;
pub mod html;
pub mod iperf3;
mod number;
pub mod path_ceiling;
pub mod published;
pub mod simulate;
pub mod study;
pub mod svg;
mod table;
pub mod text;
mod words;

pub use number::short_signed;
pub use study::summary_sentence;
pub use table::markdown_cell;
