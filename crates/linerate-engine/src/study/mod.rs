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
pub use site::{Serve, Site};
pub use tables::{HISTORY, TABLES, Table, table};

use std::collections::BTreeSet;

use linerate_core::record::{Cell, EmulatedPath, Failure, Record, Status};
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
    fn clear(&mut self);
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
    /// Makes the measurements.
    pub measurer: &'a mut dyn Measurer,
    /// For the time left.
    pub clock: &'a dyn Clock,
    /// Set when the user wants no more.
    pub stop: &'a Stop,
    /// Takes each record as soon as it is there; the run ends when it fails.
    pub keep: &'a mut dyn FnMut(Record) -> Result<(), Failure>,
    /// Told of every step.
    pub progress: &'a mut dyn FnMut(&Progress<'_>),
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Cells that have a record, those of earlier sessions among them.
    pub done: usize,
    /// Cells of the study.
    pub total: usize,
    /// Time since this session began.
    pub elapsed_ns: u64,
    /// Time that the rest is expected to take.
    pub remaining_ns: u64,
    /// The step that begins or has ended.
    pub step: Step<'a>,
}

/// Steps of a run, as they are reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    /// A laboratory is about to be built.
    Building(&'a Topology),
    /// A cell is about to be measured.
    Measuring(&'a Cell),
    /// A cell was measured over a path that left its schedule: which path, and how.
    Slipped(&'a Cell, &'a EmulatedPath, &'a str),
    /// This machine spoilt a cell's measurement, which is made again: the number of the repeat, and
    /// the most that there may be.
    Again(&'a Cell, &'a Failure, u8, u8),
    /// A cell has a record with a failure.
    Failed(&'a Cell, &'a Failure),
    /// A topology could not be built.
    NotBuilt(&'a Topology, &'a Failure),
    /// The cells of a topology are through.
    Through(&'a Topology),
}

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
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

impl Ending {
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
pub fn run(plan: &StudyPlan, options: &Options, tools: &mut Tools<'_>) -> Result<Ending, Failure> {
    let cells: Vec<CellPlan> = plan.cells();
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
        ending: Ending { found, ..Ending::default() },
        tools,
    };
    for topology in &plan.topologies {
        walk.topology(topology)?;
    }
    walk.end()
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
    ending: Ending,
    tools: &'a mut Tools<'b>,
}

impl<'a> Walk<'a, '_> {
    /// Measures the missing cells of one topology, and builds it when one of them needs that.
    fn topology(&mut self, topology: &'a Topology) -> Result<(), Failure> {
        let end = self.next + self.cells_from(self.next, topology);
        if end == self.next || self.tools.stop.asked() {
            return Ok(());
        }
        let live = self.missing[self.next..end].iter().any(|cell| cell.plan.is_live());
        self.topology = live.then_some(topology);
        let failure = if live { self.build(topology) } else { None };
        if failure.is_some() && self.tools.stop.asked() {
            return Ok(());
        }
        self.cells(end, failure.as_ref())?;
        self.tools.measurer.clear();
        if self.next == end && failure.is_none() {
            self.tell(Step::Through(topology));
        }
        Ok(())
    }

    /// Why the topology could not be built, if it could not.
    fn build(&mut self, topology: &Topology) -> Option<Failure> {
        self.tell(Step::Building(topology));
        let before = self.tools.clock.now();
        if let Err(failure) = self.tools.measurer.prepare(topology) {
            if !self.tools.stop.asked() {
                self.ending.first_failure.get_or_insert_with(|| failure.clone());
                self.tell(Step::NotBuilt(topology, &failure));
            }
            return Some(failure);
        }
        self.estimator.prepared(self.tools.clock.now().nanos_since(before));
        self.anything = true;
        None
    }

    /// Measures the missing cells before `end`. Those that need a laboratory have the failure of
    /// theirs, where it has one.
    fn cells(&mut self, end: usize, failure: Option<&Failure>) -> Result<(), Failure> {
        while self.next < end && !self.tools.stop.asked() {
            let cell = &self.missing[self.next];
            match failure.filter(|_| cell.plan.is_live()) {
                Some(failure) => self.not_built(cell, failure),
                None => {
                    self.anything = true;
                    self.keep_held_back()?;
                    if self.cell(cell)? {
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
    fn cell(&mut self, cell: &'a CellPlan) -> Result<bool, Failure> {
        match self.attempts(cell)? {
            (Status::Interrupted, _) => return Ok(true),
            (Status::Ok, None) => self.ending.measured += 1,
            (_, failure) => {
                self.ending.failed += 1;
                if let Some(failure) = failure {
                    self.tell(Step::Failed(&cell.cell, &failure));
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

    fn tell(&mut self, step: Step<'_>) {
        let rest = &self.missing[self.next..];
        let laboratories = StudyPlan::laboratories(rest.iter());
        let progress = Progress {
            done: self.total - rest.len(),
            total: self.total,
            elapsed_ns: self.tools.clock.now().nanos_since(self.started),
            remaining_ns: self.estimator.remaining_ns(rest.iter(), laboratories),
            step,
        };
        (self.tools.progress)(&progress);
    }

    fn end(mut self) -> Result<Ending, Failure> {
        self.ending.left = self.missing.len() - self.next;
        match self.ending.first_failure.take() {
            Some(failure) if !self.anything && !self.ending.interrupted() => Err(failure),
            first_failure => Ok(Ending { first_failure, ..self.ending }),
        }
    }
}
