//! Percentiles of longer times out of a database: the sketches of a span are added up when they
//! are asked for, from the records themselves. A row of sketches that each result has to read and
//! write again would cost more than the result.

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use linerate_core::record::{Failure, Fault};
use linerate_core::schedule::sketched;
use linerate_core::stats::Sketch;
use tokio_postgres::types::ToSql;

use super::PostgresStore;
use super::tables::READ;
use crate::records::parse;
use crate::{Sketched, SpreadQuery};

/// Records that are read for one answer: a day of a run every two seconds.
const RECORDS_MAX: usize = 43_200;

impl PostgresStore {
    /// Adds up the sketches for [`crate::HubStore::spreads`].
    pub(super) fn add_up(&mut self, query: SpreadQuery<'_>) -> Result<Vec<Sketched>, Failure> {
        let SpreadQuery { mesh, agent, task, merge, step_s, since_s } = query;
        let from_s = since_s - since_s.rem_euclid(step_s);
        let limit = i64::try_from(RECORDS_MAX + 1).unwrap_or(i64::MAX);
        let read = self.with_client(READ, async |client| {
            // What is part of a series is part of its sketches.
            let sql =
                "SELECT task, start_s, record, doc FROM mesh_result JOIN mesh_path USING (path)
                       WHERE mesh = $1 AND agent = $2 AND start_s >= $5 AND followed IS NOT NULL
                         AND (task = $3 OR $4 AND split_part(task, '/', 1) = $3)
                       LIMIT $6";
            let values: [&(dyn ToSql + Sync); 6] = [&mesh, &agent, &task, &merge, &from_s, &limit];
            let rows = client.query_raw(sql, values).await?;
            let mut rows = std::pin::pin!(rows);
            let (mut count, mut spans) = (0, BTreeMap::<_, Sketch>::new());
            while let Some(row) = rows.try_next().await? {
                let (task, at_s): (String, i64) = (row.get(0), row.get(1));
                let (id, doc): (Option<String>, Option<String>) = (row.get(2), row.get(3));
                count += 1;
                // One that a newer program wrote is passed over.
                let record = doc.and_then(|doc| parse(&id.unwrap_or_default(), &doc).ok());
                for (metric, new) in record.iter().flat_map(sketched) {
                    let span_s = at_s - at_s.rem_euclid(step_s);
                    spans.entry((span_s, task.clone(), metric)).or_default().merge(&new);
                }
            }
            Ok((count, spans))
        });
        let (count, spans) = read?;
        if count > RECORDS_MAX {
            let reason = format!("more than {RECORDS_MAX} results since then");
            return Err(Failure::new(Fault::Usage, "add up", task, reason)
                .advise("ask for a shorter time (since_s), or for the runs of one pair"));
        }
        let sketched = spans.into_iter().map(|((at_s, task, metric), sketch)| Sketched {
            task,
            metric,
            at_s,
            sketch,
        });
        Ok(sketched.collect())
    }
}
