//! How far a run is: a bar on a terminal, a line for every topology elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_core::study::StudyPlan;
use linerate_engine::study::{Progress, Step};

use crate::columns::spoken;
use crate::output;

/// Shows progress on standard error.
pub(super) struct Display<'a> {
    bar: ProgressBar,
    /// Has the names of what is measured.
    plan: &'a StudyPlan,
}

impl<'a> Display<'a> {
    /// A bar when standard error is a terminal.
    pub(super) fn new(plan: &'a StudyPlan) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("[{bar:16}] {pos}/{len}  {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, plan }
    }

    /// Shows one step.
    pub(super) fn show(&mut self, progress: &Progress<'_>) {
        self.bar.set_length(u64::try_from(progress.total).unwrap_or(u64::MAX));
        self.bar.set_position(u64::try_from(progress.done).unwrap_or(u64::MAX));
        let left = spoken(progress.remaining_ns);
        match progress.step {
            Step::Building(topology) => {
                self.bar.set_message(format!("{left} left; {} is built", topology.title));
            }
            Step::Measuring(cell) => {
                self.bar.set_message(format!("{left} left; {}", self.plan.words_of(cell)));
            }
            Step::Slipped(cell, path, slips) => {
                let (cell, path) = (self.plan.words_of(cell), &path.name);
                self.line(&format!("{cell}: path {path}: {slips}; the run counts"));
            }
            Step::Again(cell, failure, again, of) => {
                let cell = self.plan.words_of(cell);
                self.line(&format!("{cell}: {failure}; measured again, {again} of {of}"));
            }
            Step::Failed(cell, failure) => {
                self.line(&format!("{}: {failure}", self.plan.words_of(cell)));
            }
            Step::NotBuilt(topology, failure) => {
                self.line(&format!("{} left out: {failure}", topology.title));
            }
            Step::Through(topology) if self.bar.is_hidden() => {
                let (done, total) = (progress.done, progress.total);
                self.line(&format!("{}: {done} of {total} measured, {left} left", topology.title));
            }
            Step::Through(_) => {}
        }
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| output::note(text));
    }
}

impl Drop for Display<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
