//! One cell of a study, measured until this machine did not spoil it, a few times at the most.
//!
//! Each repeat has a laboratory built anew: a path that loses its 100th packet has spent that loss
//! on the attempt before. Left out: what the path, the peer or the plan did. That would be so
//! again.

use linerate_core::record::{Failure, Fault, Record, RecordStatus};
use linerate_core::study::CellPlan;

use super::{StudyStep, Walk};

impl<'a> Walk<'a, '_> {
    /// Measures a cell; how its last attempt ended. Every attempt is kept, in order, and the last
    /// one counts.
    pub(super) fn attempts(
        &mut self,
        cell: &'a CellPlan,
    ) -> Result<(RecordStatus, Option<Failure>), Failure> {
        let mut repeats = 0;
        loop {
            let record = self.attempt(cell);
            let again = repeats < self.retries && !self.tools.stop.is_requested();
            let spoilt = spoilt(&record).filter(|_| again).cloned();
            let outcome = (record.status, record.failure.clone());
            (self.tools.keep)(record)?;
            let Some(failure) = spoilt else { return Ok(outcome) };
            repeats += 1;
            self.ending.repeated += 1;
            self.report_step(StudyStep::Again(&cell.cell, &failure, repeats, self.retries));
            if let Some(failure) = self.rebuild() {
                return Ok((RecordStatus::Error, Some(failure)));
            }
        }
    }

    /// Why what stands could not be built anew, if it could not.
    fn rebuild(&mut self) -> Option<Failure> {
        let topology = self.topology?;
        self.tools.measurer.tear_down();
        self.build_topology(topology)
    }

    fn attempt(&mut self, cell: &'a CellPlan) -> Record {
        self.report_step(StudyStep::Measuring(&cell.cell));
        let before = self.tools.clock.now();
        let mut record = self.tools.measurer.measure(cell);
        self.estimator.measured(cell, self.tools.clock.now().nanos_since(before));
        record.cell = Some(cell.cell.clone());
        for path in record.paths.iter().filter(|path| !path.late) {
            if let Some(slips) = path.timing_slips() {
                self.report_step(StudyStep::Slipped(&cell.cell, path, &slips));
            }
        }
        record
    }
}

/// Why a measurement is worth making again; none where it is not.
fn spoilt(record: &Record) -> Option<&Failure> {
    let failure = record.failure.as_ref()?;
    (record.status == RecordStatus::Error && failure.fault == Fault::Instrument).then_some(failure)
}
