//! Plots of a path's ceiling, and the tables of frames a second. The text of a ceiling is in
//! `text::path_ceiling`.

mod frame_rates;
mod plots;

pub use frame_rates::{csv as frame_rates_csv, text as frame_rates_text};
pub use plots::svgs;
