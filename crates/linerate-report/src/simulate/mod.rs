//! Shows simulations: a document, and the diagrams of one run as SVG. A record of one is
//! taken apart into the same.

mod of_record;
mod plots;
mod text;

pub(crate) use of_record::{START_ROUNDS, START_WORTH, charts, points, report};
pub(crate) use plots::sequences;

pub use plots::{ProgressSample, diagram_files};
pub use text::document;
pub(crate) use text::report_parts;
