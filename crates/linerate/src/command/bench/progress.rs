//! How far a benchmark is: one line that changes on a terminal, a line for each trial elsewhere,
//! events as JSON where they are asked for.

use std::cell::RefCell;
use std::rc::Rc;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use linerate_core::record::{Event, StudyCell};
use linerate_core::study::StudyPlan;
use linerate_engine::study::{StudyProgress, StudyStep};
use linerate_sys::stop::Stop;

use crate::columns::spoken;
use crate::command::measure::{OutputFlags, event_line};
use crate::live::bench_line;
use crate::output;

/// Columns of a line where no terminal gives its width.
const PLAIN_COLUMNS: usize = 80;

/// Shows progress; all copies are one.
#[derive(Clone)]
pub(super) struct Display(Rc<RefCell<BenchProgress>>);

struct BenchProgress {
    bar: ProgressBar,
    /// The plan, which names the cells.
    plan: StudyPlan,
    live: bool,
    jsonl: bool,
    stop: Stop,
    /// The cell that is measured, and the time that it and all after it take.
    cell: String,
    left_ns: u64,
    /// The engine's present step.
    doing: String,
}

impl Display {
    /// Progress lines by the flags; `stop` is set when nobody reads results any more.
    pub(super) fn new(flags: &OutputFlags, plan: StudyPlan, stop: Stop) -> Self {
        let target = if flags.shows_live_lines() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("[{bar:16}] {pos}/{len}  {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        let inner = BenchProgress {
            bar,
            plan,
            live: flags.shows_live_lines(),
            jsonl: flags.jsonl,
            stop,
            cell: String::new(),
            left_ns: 0,
            doing: String::new(),
        };
        Self(Rc::new(RefCell::new(inner)))
    }

    /// Shows a step of the study.
    pub(super) fn show_step(&self, progress: &StudyProgress<'_>) {
        self.0.borrow_mut().show_step(progress);
    }

    /// Shows an event within a measurement.
    pub(super) fn show_event(&self, event: &Event) {
        self.0.borrow_mut().show_event(event);
    }

    /// Takes the changing line away.
    pub(super) fn clear_line(&self) {
        self.0.borrow().bar.finish_and_clear();
    }
}

impl BenchProgress {
    fn show_step(&mut self, progress: &StudyProgress<'_>) {
        self.bar.set_length(u64::try_from(progress.total).unwrap_or(u64::MAX));
        self.bar.set_position(u64::try_from(progress.done).unwrap_or(u64::MAX));
        self.left_ns = progress.remaining_ns;
        match progress.step {
            StudyStep::Building(topology) => self.change(format!("{} is built", topology.title)),
            StudyStep::Measuring(cell) => self.measuring(cell, progress),
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
            StudyStep::Slipped(..) | StudyStep::Through(_) => {}
        }
    }

    fn measuring(&mut self, cell: &StudyCell, progress: &StudyProgress<'_>) {
        self.cell = self.plan.words_of(cell);
        if self.bar.is_hidden() {
            let (at, of) = (progress.done + 1, progress.total);
            let left = spoken(self.left_ns);
            self.print_line(&format!("{}: {at} of {of}, about {left} left", self.cell));
        } else {
            self.change(String::new());
        }
    }

    fn show_event(&mut self, event: &Event) {
        if self.jsonl {
            output::print_line(&event_line(event));
            if output::reader_left() {
                self.stop.request_stop();
            }
            return;
        }
        match event {
            Event::BenchStep(doing) => {
                self.doing.clone_from(doing);
                self.show_message(format!("  {doing}"), doing.clone());
            }
            Event::BenchTrial(trial) => {
                let line = bench_line(trial);
                let doing = line.lines().next().unwrap_or_default().trim();
                let doing = format!("{}: {doing}", self.doing);
                self.show_message(line, doing);
            }
            Event::Note(line) => self.print_line(line),
            _ => {}
        }
    }

    /// A line where lines stay, another where the line changes.
    fn show_message(&self, staying: String, changing: String) {
        if self.bar.is_hidden() { self.print_line(&staying) } else { self.change(changing) }
    }

    fn change(&self, doing: String) {
        let left = spoken(self.left_ns);
        self.bar.set_message(format!("about {left} left; {} {doing}", self.cell));
    }

    fn print_line(&self, text: &str) {
        if self.live {
            let width = output::output_columns().unwrap_or(PLAIN_COLUMNS);
            let folded = linerate_report::folded(text, Some(width));
            self.bar.suspend(|| output::print_note(folded.trim_end()));
        }
    }
}
