//! What a path can carry at best: its document and plots, and the tables of frames a second.

mod frame_rates;
mod plots;
mod text;

pub use frame_rates::{csv as frame_rates_csv, document as frame_rates};
pub use plots::svg_files;
pub use text::document;
