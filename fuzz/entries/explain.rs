//! Any bytes as a file with results of other programs: no panic, an error of one line, and a
//! verdict on each that was found.

use linerate_core::explain::{ResultSource, decode, judge_direction, read_source};
use linerate_core::record::Record;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let text = match decode(bytes) {
        Ok(text) => text,
        Err(error) => return assert!(!error.to_string().contains('\n')),
    };
    match read_source(&text) {
        Ok(ResultSource::Foreign(results)) => {
            assert!(results.main < results.evidence.len() && !results.program.is_empty());
            for evidence in &results.evidence {
                let _ = judge_direction(evidence);
            }
        }
        Ok(ResultSource::Records(records)) => {
            assert!(!records.is_empty());
            for record in &records {
                let _ = Record::from_json(record);
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}
