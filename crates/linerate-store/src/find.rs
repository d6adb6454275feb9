//! Finding records and runs: the lines of a history, and what a name refers to.
//!
//! A history has a line for each single result and one for each study run, the newest first; `@-2`
//! counts these lines. Identifiers are UUIDv7, so sorting by them is sorting by start (RFC 9562
//! §5.7).

use linerate_core::record::{Failure, FailureCode, Fault};
use rusqlite::{OptionalExtension, Row, ToSql, params};

use super::records::query_rows;
use super::{FoundResult, HistoryEntry, HistoryFilter, Store};

/// Every line of a history, with the columns of an [`HistoryEntry`] in its order and `hosts`. A run
/// has the name and the labels of its records.
const LINES: &str = "
    SELECT id, kind, started_at, status, name, tags, study, run, topology, test, parameter,
           repetition, hosts, json_extract(hosts, '$[0]')
    FROM record WHERE run IS NULL
    UNION ALL
    SELECT id, iif(EXISTS (SELECT 1 FROM json_each(plan, '$.tests')
                           WHERE json_extract(value, '$.kind') = 'bench'), 'bench', 'study'),
           started_at, state,
           (SELECT name FROM record WHERE run = study_run.id AND superseded_by IS NULL LIMIT 1),
           (SELECT tags FROM record WHERE run = study_run.id AND superseded_by IS NULL LIMIT 1),
           study, id, NULL, NULL, NULL, NULL, NULL, NULL
    FROM study_run";

/// Every record, those of studies among them.
const RECORDS: &str = "
    SELECT id, kind, started_at, status, name, tags, study, run, topology, test, parameter,
           repetition, hosts, json_extract(hosts, '$[0]')
    FROM record";

/// Results that are read for the words of a completion.
const LOOKED_AT: usize = 1000;

/// Most words that a completion is given.
const KNOWN_MAX: usize = 50;

/// Kinds of words that shell completion takes from a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// Other ends of single results.
    Hosts,
    /// Names given by the user.
    Names,
    /// Identifiers of study runs.
    Runs,
    /// Studies that have runs.
    Studies,
}

impl Store {
    /// The lines of a history, the newest first.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn list_history(
        &self,
        filter: &HistoryFilter,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, Failure> {
        let cells = filter.cells || filter.study.is_some() || filter.run.is_some();
        let from = if cells { RECORDS } else { LINES };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (since, until) = (filter.since.map(|at| at.to_string()), filter.until);
        let until = until.map(|at| at.to_string());
        // Labels as one JSON array of pairs: each has to be among those of the record.
        let tags = serde_json::json!(filter.tags).to_string();
        let sql = format!(
            "SELECT * FROM ({from})
             WHERE (?1 IS NULL OR study = ?1) AND (?2 IS NULL OR run = ?2)
               AND (?3 IS NULL OR kind = ?3)
               AND (?4 IS NULL OR EXISTS (SELECT 1 FROM json_each(hosts)
                                          WHERE lower(value) = lower(?4)))
               AND (?5 IS NULL OR name = ?5)
               AND NOT EXISTS (SELECT 1 FROM json_each(?6) AS wanted WHERE NOT EXISTS (
                       SELECT 1 FROM json_each(tags) AS has
                       WHERE has.key = json_extract(wanted.value, '$[0]')
                         AND has.value = json_extract(wanted.value, '$[1]')))
               AND (?7 IS NULL OR started_at >= ?7) AND (?8 IS NULL OR started_at < ?8)
               AND (NOT ?9 OR status NOT IN ('ok', 'finished', 'running'))
             ORDER BY id DESC LIMIT ?10"
        );
        let values: [&dyn ToSql; 10] = [
            &filter.study,
            &filter.run,
            &filter.kind,
            &filter.host,
            &filter.name,
            &tags,
            &since,
            &until,
            &filter.failed,
            &limit,
        ];
        query_rows(&self.connection, &sql, &values, entry_from_row)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// Hosts of the newest single results as their commands named them, names that the user gave to
    /// results, runs, and studies, each once, the newest first.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn completion_words(&self, what: CompletionKind) -> Result<Vec<String>, Failure> {
        let from = match what {
            CompletionKind::Hosts => {
                "SELECT json_extract(hosts, '$[0]') AS word, id FROM record WHERE run IS NULL"
            }
            CompletionKind::Names => "SELECT name AS word, id FROM record WHERE name IS NOT NULL",
            CompletionKind::Runs => "SELECT id AS word, id FROM study_run",
            CompletionKind::Studies => "SELECT study AS word, id FROM study_run",
        };
        let sql = format!(
            "SELECT word FROM ({from} ORDER BY id DESC LIMIT {LOOKED_AT}) WHERE word IS NOT NULL
             GROUP BY word ORDER BY max(id) DESC LIMIT {KNOWN_MAX}"
        );
        query_rows(&self.connection, &sql, params![], |row| row.get(0))
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// The result called `name`: `last` and `@-1` are the newest line of a history, `@-2` the one
    /// before; else a name that the user gave, its newest bearer; else an identifier of a record
    /// or a run, or the start of one.
    /// # Errors
    /// One line when there is none, or when several identifiers start so.
    pub fn find_by_name(&self, name: &str) -> Result<FoundResult, Failure> {
        if let Some(back) = history_position(name)? {
            return self.line_back(back);
        }
        // A name that all records of a run have is the run's.
        let sql = "SELECT coalesce(run, id), run IS NOT NULL FROM record WHERE name = ?1
                   ORDER BY id DESC LIMIT 1";
        let found = |row: &Row<'_>| Ok(FoundResult { id: row.get(0)?, is_run: row.get(1)? });
        let named = self.connection.query_row(sql, [name], found).optional();
        if let Some(found) = named.map_err(|error| self.storage_failure("read store", &error))? {
            return Ok(found);
        }
        if !may_start_an_identifier(name) {
            let reason = "no result has this name or an identifier that starts so";
            return Err(not_found("find record", name, reason));
        }
        let mut found: Vec<FoundResult> = Vec::new();
        for (table, is_run) in [("record", false), ("study_run", true)] {
            let ids = self.starting_with(table, name)?.into_iter();
            found.extend(ids.map(|id| FoundResult { id, is_run }));
        }
        one_of(found, "find record", name)
    }

    /// The identifier of the one run that starts with `prefix`.
    pub(super) fn run_from_prefix(&self, prefix: &str) -> Result<String, Failure> {
        if !may_start_an_identifier(prefix) {
            let reason = "an identifier has digits, a to f and - only";
            return Err(not_found("find run", prefix, reason));
        }
        one_of(self.starting_with("study_run", prefix)?, "find run", prefix)
    }

    fn line_back(&self, back: u32) -> Result<FoundResult, Failure> {
        let sql = format!("SELECT id, run IS id FROM ({LINES}) ORDER BY id DESC LIMIT 1 OFFSET ?1");
        let found = |row: &Row<'_>| Ok(FoundResult { id: row.get(0)?, is_run: row.get(1)? });
        let found = self.connection.query_row(&sql, [back - 1], found).optional();
        found.map_err(|error| self.storage_failure("read store", &error))?.ok_or_else(|| {
            let object = format!("@-{back} in {}", self.path.display());
            Failure::new(Fault::Usage, "find record", object, "there are fewer records")
                .advise("see linerate history")
        })
    }

    /// At most two identifiers of a table that start so.
    fn starting_with(&self, table: &str, prefix: &str) -> Result<Vec<String>, Failure> {
        // 'g' sorts after every character of an identifier.
        let sql = format!("SELECT id FROM {table} WHERE id >= ?1 AND id < ?1 || 'g' LIMIT 2");
        let prefix = prefix.to_ascii_lowercase();
        query_rows(&self.connection, &sql, params![prefix], |row| row.get(0))
            .map_err(|error| self.storage_failure("read store", &error))
    }
}

fn may_start_an_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

fn not_found(attempt: &str, name: &str, reason: &str) -> Failure {
    Failure::new(Fault::Usage, attempt, format!("'{name}'"), reason)
        .advise("see linerate history")
        .with_code(FailureCode::NoResult)
}

/// The one that was found.
fn one_of<T>(found: Vec<T>, attempt: &str, name: &str) -> Result<T, Failure> {
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(not_found(attempt, name, "nothing in the store starts so")),
        (Some(_), Some(_)) => {
            Err(Failure::new(Fault::Usage, attempt, format!("'{name}'"), "several start so")
                .advise("give more of its characters"))
        }
    }
}

/// Position from the end of the history that `name` gives: `last` and `@-1` are 1.
fn history_position(name: &str) -> Result<Option<u32>, Failure> {
    if name == "last" {
        return Ok(Some(1));
    }
    let Some(count) = name.strip_prefix("@-") else { return Ok(None) };
    count.parse().ok().filter(|&count| count > 0).map(Some).ok_or_else(|| {
        let reason = "@- needs a whole number from 1";
        Failure::new(Fault::Usage, "find record", format!("'{name}'"), reason)
    })
}

fn entry_from_row(row: &Row<'_>) -> rusqlite::Result<HistoryEntry> {
    let tags: Option<String> = row.get(5)?;
    let parameter: Option<i64> = row.get(10)?;
    Ok(HistoryEntry {
        id: row.get(0)?,
        kind: row.get(1)?,
        started_at: row.get(2)?,
        status: row.get(3)?,
        name: row.get(4)?,
        tags: tags.and_then(|text| linerate_core::tree::from_json(&text).ok()).unwrap_or_default(),
        study: row.get(6)?,
        run: row.get(7)?,
        topology: row.get(8)?,
        test: row.get(9)?,
        parameter: parameter.and_then(|value| u64::try_from(value).ok()),
        repetition: row.get(11)?,
        host: row.get(13)?,
    })
}
