//! Shows simulations: text for terminals, and the diagrams of one run as SVG.

mod plots;
mod text;

pub use plots::{Sample, plots};
pub use text::text;
