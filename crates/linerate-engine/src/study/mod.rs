//! Studies: a grid of measurements over laboratories, resumable.
//!
//! [`run`] walks the grid; a [`Measurer`] measures one cell of it. The real one builds
//! laboratories; tests put one with known answers there. Storing, printing and rendering are the
//! caller's.

mod attempts;
mod laboratory;
mod shipped;
mod site;
mod tables;
#[cfg(test)]
mod tests;

pub use laboratory::Laboratory;
pub use shipped::{SHIPPED, Shipped, shipped};
pub(crate) use site::start_server;
pub use site::{Serve, StudySite};
pub use tables::{HISTORY, ShippedTable, TABLES, shipped_table};

use std::collections::BTreeSet;

use linerate_core::record::{EmulatedPath, Failure, Record, RecordStatus, StudyCell};
use linerate_core::study::{CellKey, CellPlan, Estimator, StudyPlan, Topology};
use linerate_core::time::{Clock, MonoTime};
use linerate_sys::stop::Stop;

/// Maker of the measurements of a study.
pub trait Measurer {
    /// Builds what the cells of `topology` are measured on; replaces what was built before.
    /// # Errors
    /// The reason why none of the topology's cells can be measured.
    fn prepare(&mut self, topology: &Topology) -> Result<(), Failure>;

    /// Measures one cell of the topology that was prepared last. A record always comes back, with
    /// its failure where it has one.
    fn measure(&mut self, cell: &CellPlan) -> Record;

    /// The record of a cell that could not be measured.
    fn unmeasured(&mut self, cell: &CellPlan, failure: &Failure) -> Record;

    /// Removes what was built.
    fn tear_down(&mut self);
}

/// Which run, and what it already has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Identifier of the run, written into every record.
    pub run: String,
    /// Cells that are measured already and are left out.
    pub done: BTreeSet<CellKey>,
    /// How often a cell that this machine spoilt is measured again.
    pub retries: u8,
}

/// Measurer, clock and outlets that a run works with.
pub struct Tools<'a> {
    /// Makes the measurements of a study.
    pub measurer: &'a mut dyn Measurer,
    /// For the time left.
    pub clock: &'a dyn Clock,
    /// Set when the user wants no more.
    pub stop: &'a Stop,
    /// Takes each record as soon as it is there; the run ends when it fails.
    pub keep: &'a mut dyn FnMut(Record) -> Result<(), Failure>,
    /// Observer of every step.
    pub progress: &'a mut dyn FnMut(&StudyProgress<'_>),
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudyProgress<'a> {
    /// Cells that have a record, those of earlier sessions among them.
    pub done: usize,
    /// Cells of the study.
    pub total: usize,
    /// Time since this session began.
    pub elapsed_ns: u64,
    /// Time that the rest is expected to take.
    pub remaining_ns: u64,
    /// The step that begins or has ended.
    pub step: StudyStep<'a>,
}

/// Steps of a run, as they are reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StudyStep<'a> {
    /// A laboratory is about to be built.
    Building(&'a Topology),
    /// A cell is about to be measured.
    Measuring(&'a StudyCell),
    /// A cell was measured over a path that left its schedule: which path, and how.
    Slipped(&'a StudyCell, &'a EmulatedPath, &'a str),
    /// This machine spoilt a cell's measurement, which is made again: the number of the repeat, and
    /// the most that there may be.
    Again(&'a StudyCell, &'a Failure, u8, u8),
    /// A cell has a record with a failure.
    Failed(&'a StudyCell, &'a Failure),
    /// A topology could not be built.
    NotBuilt(&'a Topology, &'a Failure),
    /// The cells of a topology are through.
    Through(&'a Topology),
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StudyEnding {
    /// Cells measured well in this session.
    pub measured: usize,
    /// Measurements that this machine spoilt and that were made again.
    pub repeated: usize,
    /// Cells that failed in this session.
    pub failed: usize,
    /// Cells that this session found measured.
    pub found: usize,
    /// Cells not come to, because the user stopped the run.
    pub left: usize,
    /// The first failure of this session.
    pub first_failure: Option<Failure>,
}

impl StudyEnding {
    /// True for a run that the user stopped before its end.
    pub const fn interrupted(&self) -> bool {
        self.left > 0
    }
}

/// Measures every cell of `plan` that `options` does not list, in the order of the plan.
///
/// A cell that fails has a record with its failure, and the run goes on. Cells that were under way
/// when the user stopped the run count as left, though their record is kept.
/// # Errors
/// When a record cannot be kept, and when not one laboratory could be built: then nothing is kept.
pub fn run(
    plan: &StudyPlan,
    options: &Options,
    tools: &mut Tools<'_>,
) -> Result<StudyEnding, Failure> {
    let cells: Vec<CellPlan> = plan.cell_plans();
    let missing: Vec<CellPlan> = cells
        .iter()
        .filter(|cell| !options.done.contains(&CellKey::from_cell(&cell.cell)))
        .map(|cell| in_run(cell, &options.run))
        .collect();
    let found = cells.len() - missing.len();
    let mut walk = Walk {
        started: tools.clock.now(),
        total: cells.len(),
        missing: &missing,
        topology: None,
        next: 0,
        retries: options.retries,
        estimator: Estimator::default(),
        unkept: Vec::new(),
        anything: found > 0,
        ending: StudyEnding { found, ..StudyEnding::default() },
        tools,
    };
    for topology in &plan.topologies {
        walk.topology(topology)?;
    }
    walk.into_ending()
}

fn in_run(cell: &CellPlan, run: &str) -> CellPlan {
    let mut cell = cell.clone();
    run.clone_into(&mut cell.cell.run);
    cell
}

/// The state of a run in this session.
struct Walk<'a, 'b> {
    started: MonoTime,
    total: usize,
    missing: &'a [CellPlan],
    /// Topology of the laboratory that stands.
    topology: Option<&'a Topology>,
    next: usize,
    retries: u8,
    estimator: Estimator,
    /// Records of topologies that could not be built, held back until anything could be measured:
    /// at most one for each cell.
    unkept: Vec<Record>,
    /// A laboratory could be built, a cell needed none, or an earlier session has a record.
    anything: bool,
    ending: StudyEnding,
    tools: &'a mut Tools<'b>,
}

impl<'a> Walk<'a, '_> {
    /// Measures the missing cells of one topology, and builds it when one of them needs that.
    fn topology(&mut self, topology: &'a Topology) -> Result<(), Failure> {
        let end = self.next + self.cells_from(self.next, topology);
        if end == self.next || self.tools.stop.is_requested() {
            return Ok(());
        }
        let live = self.missing[self.next..end].iter().any(|cell| cell.plan.is_live());
        self.topology = live.then_some(topology);
        let failure = if live { self.build_topology(topology) } else { None };
        if failure.is_some() && self.tools.stop.is_requested() {
            return Ok(());
        }
        self.measure_cells(end, failure.as_ref())?;
        self.tools.measurer.tear_down();
        if self.next == end && failure.is_none() {
            self.report_step(StudyStep::Through(topology));
        }
        Ok(())
    }

    /// Why the topology could not be built, if it could not.
    fn build_topology(&mut self, topology: &Topology) -> Option<Failure> {
        self.report_step(StudyStep::Building(topology));
        let before = self.tools.clock.now();
        if let Err(failure) = self.tools.measurer.prepare(topology) {
            if !self.tools.stop.is_requested() {
                self.ending.first_failure.get_or_insert_with(|| failure.clone());
                self.report_step(StudyStep::NotBuilt(topology, &failure));
            }
            return Some(failure);
        }
        self.estimator.prepared(self.tools.clock.now().nanos_since(before));
        self.anything = true;
        None
    }

    /// Measures the missing cells before index `end`. Those that need a laboratory have the
    /// failure of theirs, where it has one.
    fn measure_cells(&mut self, end: usize, failure: Option<&Failure>) -> Result<(), Failure> {
        while self.next < end && !self.tools.stop.is_requested() {
            let cell = &self.missing[self.next];
            match failure.filter(|_| cell.plan.is_live()) {
                Some(failure) => self.not_built(cell, failure),
                None => {
                    self.anything = true;
                    self.keep_held_back()?;
                    if self.measure_cell(cell)? {
                        return Ok(());
                    }
                }
            }
            self.next += 1;
        }
        self.keep_held_back()
    }

    /// How many of the missing cells from `first` on belong to `topology`.
    fn cells_from(&self, first: usize, topology: &Topology) -> usize {
        let rest = self.missing.iter().skip(first);
        rest.take_while(|cell| cell.cell.topology == topology.id).count()
    }

    /// Measures one cell; true when the user stopped it under way.
    fn measure_cell(&mut self, cell: &'a CellPlan) -> Result<bool, Failure> {
        match self.attempts(cell)? {
            (RecordStatus::Interrupted, _) => return Ok(true),
            (RecordStatus::Ok, None) => self.ending.measured += 1,
            (_, failure) => {
                self.ending.failed += 1;
                if let Some(failure) = failure {
                    self.report_step(StudyStep::Failed(&cell.cell, &failure));
                    self.ending.first_failure.get_or_insert(failure);
                }
            }
        }
        Ok(false)
    }

    /// Gives a cell the failure of its topology.
    fn not_built(&mut self, cell: &CellPlan, failure: &Failure) {
        let mut record = self.tools.measurer.unmeasured(cell, failure);
        record.cell = Some(cell.cell.clone());
        self.unkept.push(record);
        self.ending.failed += 1;
    }

    /// Keeps what was held back, once anything could be measured. A host that can build no
    /// laboratory (privilege, a missing facility) has nothing to tell about the study.
    fn keep_held_back(&mut self) -> Result<(), Failure> {
        if !self.anything {
            return Ok(());
        }
        self.unkept.drain(..).try_for_each(|record| (self.tools.keep)(record))
    }

    fn report_step(&mut self, step: StudyStep<'_>) {
        let rest = &self.missing[self.next..];
        let laboratories = StudyPlan::laboratories(rest.iter());
        let progress = StudyProgress {
            done: self.total - rest.len(),
            total: self.total,
            elapsed_ns: self.tools.clock.now().nanos_since(self.started),
            remaining_ns: self.estimator.remaining_ns(rest.iter(), laboratories),
            step,
        };
        (self.tools.progress)(&progress);
    }

    fn into_ending(mut self) -> Result<StudyEnding, Failure> {
        self.ending.left = self.missing.len() - self.next;
        match self.ending.first_failure.take() {
            Some(failure) if !self.anything && !self.ending.interrupted() => Err(failure),
            first_failure => Ok(StudyEnding { first_failure, ..self.ending }),
        }
    }
}
