//! Study runs in and out.

use linerate_core::record::{Failure, Fault};
use linerate_core::study::StudyPlan;
use linerate_core::time::WallTime;
use rusqlite::{OptionalExtension, Row, params};

use super::records::query_rows;
use super::{NewStudyRun, Store, StudyRun, StudyState};

/// Columns of a [`Row`] as [`RunColumns`] reads it.
const SELECT: &str = "SELECT id, study, plan, started_at, finished_at, state, host,
    (SELECT count(*) FROM record WHERE run = study_run.id AND superseded_by IS NULL)
    FROM study_run";

impl Store {
    /// Keeps that a run begins, with the plan that it will follow.
    /// # Errors
    /// One line when the file cannot be written or the identifier is taken.
    pub fn begin_run(&mut self, run: &NewStudyRun) -> Result<(), Failure> {
        let unwritable = |error: linerate_core::tree::Error| {
            Failure::new(Fault::System, "write run", run.id.clone(), error)
        };
        let plan = linerate_core::tree::to_json(&run.plan).map_err(unwritable)?;
        let host =
            run.host.as_ref().map(linerate_core::tree::to_json).transpose().map_err(unwritable)?;
        let values = params![
            run.id,
            run.plan.name,
            plan,
            run.started_at.to_string(),
            StudyState::Running.state_name(),
            host,
        ];
        let sql = "INSERT INTO study_run (id, study, plan, started_at, state, host)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let begun = self.connection.execute(sql, values);
        begun.map_err(|error| self.storage_failure("store run in", &error))?;
        self.is_at_work();
        Ok(())
    }

    /// Keeps how a run ended; a run that goes on is [`StudyState::Running`] again.
    /// # Errors
    /// One line when the file cannot be written or has no such run.
    pub fn finish_run(
        &mut self,
        run: &str,
        state: StudyState,
        at: WallTime,
    ) -> Result<(), Failure> {
        let goes_on = state == StudyState::Running;
        if goes_on {
            self.is_at_work();
        }
        let ended = (!goes_on).then(|| at.to_string());
        let sql = "UPDATE study_run SET state = ?2, finished_at = ?3 WHERE id = ?1";
        let changed = self
            .connection
            .execute(sql, params![run, state.state_name(), ended])
            .map_err(|error| self.storage_failure("store run in", &error))?;
        if changed == 1 { Ok(()) } else { Err(no_run(run)) }
    }

    /// Every run, the newest first.
    /// # Errors
    /// One line when the file or a run's plan cannot be read.
    pub fn list_study_runs(&self) -> Result<Vec<StudyRun>, Failure> {
        let sql = format!("{SELECT} ORDER BY id DESC");
        let found = query_rows(&self.connection, &sql, params![], columns)
            .map_err(|error| self.storage_failure("read store", &error))?;
        found.into_iter().map(RunColumns::parse).collect()
    }

    /// The run whose identifier starts with `name`; `last` is the newest.
    /// # Errors
    /// One line when there is none, when several start so, or when it cannot be read.
    pub fn run(&self, name: &str) -> Result<StudyRun, Failure> {
        let id = match name {
            "last" | "@-1" => self.last_run(None)?.ok_or_else(|| no_run(name))?,
            _ => self.run_from_prefix(name)?,
        };
        let found = self
            .connection
            .query_row(&format!("{SELECT} WHERE id = ?1"), [&id], columns)
            .map_err(|error| self.storage_failure("read store", &error))?;
        found.parse()
    }

    /// The identifier of the newest run of `study`, or of any.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn last_run(&self, study: Option<&str>) -> Result<Option<String>, Failure> {
        let sql = "SELECT id FROM study_run WHERE ?1 IS NULL OR study = ?1
                   ORDER BY id DESC LIMIT 1";
        self.connection
            .query_row(sql, [study], |row| row.get(0))
            .optional()
            .map_err(|error| self.storage_failure("read store", &error))
    }
}

fn no_run(run: &str) -> Failure {
    Failure::new(Fault::Usage, "find run", format!("'{run}'"), "it is not in the store")
        .advise("see linerate study list")
}

/// A row before its texts are parsed.
struct RunColumns {
    id: String,
    study: String,
    plan: String,
    started_at: String,
    finished_at: Option<String>,
    state: String,
    host: Option<String>,
    stored: i64,
}

fn columns(row: &Row<'_>) -> rusqlite::Result<RunColumns> {
    Ok(RunColumns {
        id: row.get(0)?,
        study: row.get(1)?,
        plan: row.get(2)?,
        started_at: row.get(3)?,
        finished_at: row.get(4)?,
        state: row.get(5)?,
        host: row.get(6)?,
        stored: row.get(7)?,
    })
}

impl RunColumns {
    fn parse(self) -> Result<StudyRun, Failure> {
        let unreadable = |reason: String| {
            Failure::new(Fault::System, "read run", self.id.clone(), reason)
                .advise("use the linerate that wrote it")
        };
        let plan: StudyPlan = linerate_core::tree::from_json(&self.plan)
            .map_err(|error| unreadable(error.to_string()))?;
        let host = self.host.as_deref().map(linerate_core::tree::from_json).transpose();
        let host = host.map_err(|error| unreadable(error.to_string()))?;
        let state = StudyState::from_word(&self.state)
            .ok_or_else(|| unreadable(format!("state '{}' is not known", self.state)))?;
        Ok(StudyRun {
            plan,
            host,
            state,
            id: self.id,
            study: self.study,
            started_at: self.started_at,
            finished_at: self.finished_at,
            stored: u64::try_from(self.stored).unwrap_or(0),
        })
    }
}
