//! How far a run is: a bar on a terminal, a line for every topology elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_core::study::CellKey;
use linerate_engine::study::{Progress, Step};

use crate::columns::spoken;
use crate::output;

/// Shows progress on standard error.
pub(super) struct Display {
    bar: ProgressBar,
}

impl Display {
    /// A bar when standard error is a terminal.
    pub(super) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("[{wide_bar}] {pos}/{len}  {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar }
    }

    /// Shows one step.
    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        self.bar.set_length(u64::try_from(progress.total).unwrap_or(u64::MAX));
        self.bar.set_position(u64::try_from(progress.done).unwrap_or(u64::MAX));
        let left = spoken(progress.remaining_ns);
        match progress.step {
            Step::Building(topology) => {
                self.bar.set_message(format!("{} is built, {left} left", topology.id));
            }
            Step::Measuring(cell) => {
                self.bar.set_message(format!("{}, {left} left", CellKey::of(cell)));
            }
            Step::Slipped(cell, path, slips) => {
                let (cell, path) = (CellKey::of(cell), &path.name);
                self.line(&format!("{cell}: path {path}: {slips}; the run counts"));
            }
            Step::Again(cell, failure, again, of) => {
                let cell = CellKey::of(cell);
                self.line(&format!("{cell}: {failure}; measured again, {again} of {of}"));
            }
            Step::Failed(cell, failure) => {
                self.line(&format!("{}: {failure}", CellKey::of(cell)));
            }
            Step::NotBuilt(topology, failure) => {
                self.line(&format!("{} left out: {failure}", topology.id));
            }
            Step::Through(topology) if self.bar.is_hidden() => {
                let (done, total) = (progress.done, progress.total);
                self.line(&format!("{}: {done} of {total} measured, {left} left", topology.id));
            }
            Step::Through(_) => {}
        }
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| output::note(text));
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
