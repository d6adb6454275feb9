//! Reads records and renders them: text for terminals, SVG, HTML, Markdown, CSV.
//!
//! A module a kind of result builds its [`Document`], which has the renderings. Depends on the
//! core alone: any record, any day, any machine, the same report. Nothing here opens a file, reads
//! a clock or prints; records go in and strings come out. An absent value is shown as a dash,
//! never as 0.
#![forbid(unsafe_code)]

pub mod assertion;
pub mod bank;
mod ceiling;
mod compare;
pub mod conform;
pub mod csv;
mod delay;
pub mod device;
pub mod diff;
mod document;
pub mod emulated;
mod escape;
pub mod examination;
pub mod explain;
pub mod flent;
pub mod headline;
pub mod history;
pub mod iperf3;
pub mod live;
pub mod mesh;
mod number;
mod one_way;
pub mod path_ceiling;
pub mod published;
pub mod record;
pub mod schedule;
pub mod simulate;
pub mod study;
pub mod svg;
mod trains;
pub mod verdict;
mod words;

pub use document::{Align, Block, Detail, Document, Fact, ReportTable, Screen, markdown_cell};
pub use headline::Headline;
pub use number::short_signed;
pub use study::summary_sentence;
pub use words::{calibration, folded};
