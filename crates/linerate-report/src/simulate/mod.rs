//! Shows simulations: text for terminals, and the diagrams of one run as SVG. A record of one is
//! taken apart into the same.

mod of_record;
mod plots;
mod text;

pub(crate) use of_record::{START_ROUNDS, START_WORTH, charts, points, report};
pub(crate) use plots::sequences;

pub use plots::{Sample, plots};
pub use text::text;
