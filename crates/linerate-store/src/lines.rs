//! Lists of records with a few figures each, page by page: what a browser shows.
//!
//! Everything comes from one index (`record_line`), so that no document is read for a line.

use linerate_core::record::Failure;
use rusqlite::{Row, ToSql};
use serde::Serialize;

use super::Store;
use super::records::query_rows;

/// One record in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ResultLine"))]
pub struct ResultLine {
    /// Its identifier.
    pub id: String,
    /// The kind of its plan.
    pub kind: String,
    /// Start, RFC 3339.
    pub started_at: String,
    /// The other end, as it was asked for.
    pub peer: Option<String>,
    /// A name given by the user.
    pub name: Option<String>,
    /// `ok`, `partial`, `error` or `interrupted`.
    pub status: String,
    /// Payload rate of all streams of its first direction together, bit/s.
    pub rate_bps: Option<f64>,
    /// Share of probes or datagrams that were lost.
    pub loss: Option<f64>,
    /// Median round-trip time of probes, or the smallest of TCP, in microseconds.
    pub rtt_us: Option<f64>,
}

/// Filter of a list's lines; without any, all lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineFilter {
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only where the other end has this in its name or address.
    pub peer: Option<String>,
    /// Only where the name has this in it.
    pub name: Option<String>,
    /// Only begun then or later, as RFC 3339 in UTC or the beginning of that.
    pub since: Option<String>,
    /// Only begun before this time, written as for `since`.
    pub until: Option<String>,
    /// Only older than this record.
    pub before: Option<String>,
    /// Only of this test of a browser: a whole identifier.
    pub run: Option<String>,
}

/// Milliseconds from the begin of a test of a browser to that of its last record, at most: so far
/// its records are looked for by their identifiers, which begin with their time (RFC 9562 §5.7).
const RUN_MS: u64 = 7_200_000;

/// The first identifier beyond a test's records.
fn beyond(run: &str) -> Option<String> {
    let millis: String = run.chars().filter(|c| *c != '-').take(12).collect();
    let end = u64::from_str_radix(&millis, 16).ok()? + RUN_MS;
    Some(format!("{:08x}-{:04x}", end >> 16, end & 0xffff))
}

impl Store {
    /// Lines of records, the newest first, at most `limit`; those whose place in a study another
    /// record took are left out.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn result_lines(
        &self,
        filter: &LineFilter,
        limit: usize,
    ) -> Result<Vec<ResultLine>, Failure> {
        let sql = "SELECT id, kind, started_at, status, name, peer, rate_bps, loss, rtt_ns
                   FROM record INDEXED BY record_line
                   WHERE superseded_by IS NULL AND id < coalesce(?1, 'g')
                     AND (?2 IS NULL OR kind = ?2)
                     AND (?3 IS NULL OR instr(lower(peer), lower(?3)) > 0)
                     AND (?4 IS NULL OR instr(lower(name), lower(?4)) > 0)
                     AND (?5 IS NULL OR started_at >= ?5) AND (?6 IS NULL OR started_at < ?6)
                     AND (?8 IS NULL OR (id >= ?8 AND id < ?9 AND EXISTS (
                          SELECT 1 FROM record AS whole WHERE whole.id = record.id
                          AND json_extract(whole.tags, '$.run') = ?8)))
                   ORDER BY id DESC LIMIT ?7";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let LineFilter { kind, peer, name, since, until, before, run } = filter;
        let end = run.as_deref().and_then(beyond);
        let values: [&dyn ToSql; 9] = [before, kind, peer, name, since, until, &limit, run, &end];
        query_rows(&self.connection, sql, &values, line_from_row)
            .map_err(|error| self.storage_failure("read store", &error))
    }
}

fn line_from_row(row: &Row<'_>) -> rusqlite::Result<ResultLine> {
    let rtt_ns: Option<f64> = row.get(8)?;
    Ok(ResultLine {
        id: row.get(0)?,
        kind: row.get(1)?,
        started_at: row.get(2)?,
        status: row.get(3)?,
        name: row.get(4)?,
        peer: row.get(5)?,
        rate_bps: row.get(6)?,
        loss: row.get(7)?,
        rtt_us: rtt_ns.map(|ns| ns / 1000.0),
    })
}

#[cfg(test)]
mod tests {
    use super::beyond;

    #[test]
    fn the_records_of_a_test_begin_within_two_hours_of_it() {
        // 2 h are 7,200,000 ms, 0x6ddd00.
        let end = beyond("01a20b06-5838-7042-bb4f-de6137e4be0f");
        assert_eq!(end.as_deref(), Some("01a20b74-3538"));
        assert!(end.as_deref() > Some("01a20b06-5838-7042-bb4f-de6137e4be0f"));
    }
}
