//! How far a run is: a bar on a terminal, a line for every topology elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_core::study::StudyPlan;
use linerate_engine::study::{StudyProgress, StudyStep};

use crate::columns::spoken;
use crate::output;

/// Shows progress on standard error.
pub(super) struct StudyProgressBar<'a> {
    bar: ProgressBar,
    /// Has the names of what is measured.
    plan: &'a StudyPlan,
}

impl<'a> StudyProgressBar<'a> {
    /// A bar when standard error is a terminal.
    pub(super) fn new(plan: &'a StudyPlan) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("[{bar:16}] {pos}/{len}  {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, plan }
    }

    /// Shows one step of a run.
    pub(super) fn show_step(&mut self, progress: &StudyProgress<'_>) {
        self.bar.set_length(u64::try_from(progress.total).unwrap_or(u64::MAX));
        self.bar.set_position(u64::try_from(progress.done).unwrap_or(u64::MAX));
        let left = spoken(progress.remaining_ns);
        match progress.step {
            StudyStep::Building(topology) => {
                self.bar.set_message(format!("{left} left; {} is built", topology.title));
            }
            StudyStep::Measuring(cell) => {
                self.bar.set_message(format!("{left} left; {}", self.plan.words_of(cell)));
            }
            StudyStep::Slipped(cell, path, slips) => {
                let (cell, path) = (self.plan.words_of(cell), &path.name);
                self.print_line(&format!("{cell}: path {path}: {slips}; the run counts"));
            }
            StudyStep::Again(cell, failure, again, of) => {
                let cell = self.plan.words_of(cell);
                self.print_line(&format!("{cell}: {failure}; measured again, {again} of {of}"));
            }
            StudyStep::Failed(cell, failure) => {
                self.print_line(&format!("{}: {failure}", self.plan.words_of(cell)));
            }
            StudyStep::NotBuilt(topology, failure) => {
                self.print_line(&format!("{} left out: {failure}", topology.title));
            }
            StudyStep::Through(topology) if self.bar.is_hidden() => {
                let (done, total) = (progress.done, progress.total);
                self.print_line(&format!(
                    "{}: {done} of {total} measured, {left} left",
                    topology.title
                ));
            }
            StudyStep::Through(_) => {}
        }
    }

    fn print_line(&self, text: &str) {
        self.bar.suspend(|| output::print_note(text));
    }
}

impl Drop for StudyProgressBar<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
