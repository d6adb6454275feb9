//! Evidence from results of other programs: fewer signals, the same rules.
//!
//! Read: `iperf3 -J` and `--json-stream` of TCP and UDP (3.1 to 3.21), text of iperf3, iperf 2 and
//! nuttcp, results of ndt7 servers, `ss -ti` of one socket or more; each as people keep them: more
//! than one in a file, with lines of other programs around, in UTF-16. What these do not hold is
//! listed as not seen; nothing is put in its place.

mod documents;
mod encoding;
mod events;
mod iperf3;
mod iperf_text;
#[cfg(test)]
mod kinds_tests;
mod named;
mod ndt7;
mod nuttcp;
mod ss;
#[cfg(test)]
mod tests;

use serde_json::Value;

pub use self::encoding::decode;
use super::evidence::Evidence;
use super::of_record::quantile;
use crate::record::{SourceNote, Unmeasured};

/// A text that has no result of a transfer in it, in words for the person who gave it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The file or input is empty.
    #[error("it is empty")]
    Empty,
    /// Bytes that are no text.
    #[error("it is {kind}, not a text")]
    Binary {
        /// Kind of document, with its article.
        kind: &'static str,
        /// Advice for the person.
        advice: &'static str,
    },
    /// A JSON document that does not end.
    #[error("its JSON breaks off in line {line}, before the document ends")]
    Cut {
        /// Line number, counted from 1.
        line: usize,
    },
    /// A JSON document with a mistake in it.
    #[error("its JSON has a mistake in line {line}, column {column}")]
    Broken {
        /// Line number, counted from 1.
        line: usize,
        /// Column number, counted from 1.
        column: usize,
    },
    /// A test that ended before it measured anything.
    #[error("{program} measured nothing: {reason}")]
    Failed {
        /// Name of the program.
        program: &'static str,
        /// In that program's words.
        reason: String,
        /// Advice for the person.
        advice: &'static str,
    },
    /// Something that is known, and is no result of a transfer.
    #[error("it is {kind}")]
    Other {
        /// Kind of document, with its article.
        kind: String,
        /// Advice for the person.
        advice: &'static str,
    },
    /// Text of any other kind.
    #[error("it is no result that is known{}", .keys.as_ref().map_or_else(String::new, |keys| {
        format!(": a JSON document with {keys}")
    }))]
    Unknown {
        /// First keys of the document, where it is one.
        keys: Option<String>,
    },
}

impl Unreadable {
    /// Advice for the person.
    pub const fn advice(&self) -> &'static str {
        match self {
            Self::Binary { advice, .. }
            | Self::Failed { advice, .. }
            | Self::Other { advice, .. } => advice,
            Self::Cut { .. } => {
                "keep the file until the test has ended, or use iperf3 --json-stream, which is \
                 read as far as it goes"
            }
            Self::Broken { .. } => "keep the program's output as it is: iperf3 -J --logfile FILE",
            Self::Empty | Self::Unknown { .. } => READ,
        }
    }
}

/// List of the formats that are read.
const READ: &str = "explain reads records of linerate, output of iperf3 (-J, --json-stream, text), \
                    iperf 2, nuttcp, ss -tin, and results of ndt7";

/// Results of another program.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignResults {
    /// Name of the program.
    pub program: &'static str,
    /// Each direction, connection or document.
    pub evidence: Vec<Evidence>,
    /// The one that says most: of several documents the last, of connections that which moved most.
    pub main: usize,
}

/// Contents of a text.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultSource {
    /// Results of another program.
    Foreign(ForeignResults),
    /// Records of this program, each as JSON.
    Records(Vec<String>),
}

/// Finds results in a text.
/// # Errors
/// [`Unreadable`] where there is none.
pub fn read_source(text: &str) -> Result<ResultSource, Unreadable> {
    if text.trim().is_empty() {
        return Err(Unreadable::Empty);
    }
    let found = documents::documents_of(text);
    if found.values.is_empty() {
        return match found.fault {
            Some(fault) => Err(fault),
            None => from_text(text),
        };
    }
    let records: Vec<&Value> = found.values.iter().filter(|value| is_record(value)).collect();
    if !records.is_empty() {
        return Ok(ResultSource::Records(records.iter().map(ToString::to_string).collect()));
    }
    from_documents(found)
}

fn is_record(value: &Value) -> bool {
    let schema = value.get("schema").and_then(Value::as_str);
    schema.is_some_and(|schema| schema.starts_with("linerate.record/"))
}

fn from_documents(found: documents::Documents) -> Result<ResultSource, Unreadable> {
    let documents::Documents { values, fault } = found;
    let documents = events::documents_of_events(values);
    let mut results: Vec<(ForeignResults, Option<&str>)> = Vec::new();
    let mut refused = None;
    for document in &documents {
        let time = document.pointer("/start/timestamp/time").and_then(Value::as_str);
        match results_of_document(document) {
            Ok(result) => results.push((result, time)),
            Err(error) => refused = Some(error),
        }
    }
    let count = results.len();
    let left_out = documents.len() - count;
    if count == 0 {
        return Err(refused.or(fault).unwrap_or(Unreadable::Unknown { keys: None }));
    }
    let mut all = ForeignResults { program: results[0].0.program, evidence: Vec::new(), main: 0 };
    for (index, (result, time)) in results.into_iter().enumerate() {
        all.main = all.evidence.len() + result.main;
        all.evidence.extend(result.evidence.into_iter().map(|mut evidence| {
            if count > 1 {
                let time = time.map_or_else(String::new, |time| format!(", {time}"));
                evidence.connection = Some(format!("result {} of {count}{time}", index + 1));
            }
            evidence
        }));
    }
    let mut remark = |note: SourceNote| all.evidence[all.main].remarks.push(note);
    if left_out > 0 {
        let why = refused.map(|error| error.to_string());
        remark(SourceNote::DocumentsLeftOut { count: left_out, why });
    }
    if let Some(fault) = fault {
        remark(SourceNote::FileGoesOn { fault: fault.to_string() });
    }
    Ok(ResultSource::Foreign(all))
}

/// The results of a JSON document of a program that is known.
fn results_of_document(document: &Value) -> Result<ForeignResults, Unreadable> {
    if let Some(read) = iperf3::read(document) {
        return read.map(|evidence| ForeignResults { program: "iperf3", evidence, main: 0 });
    }
    if let Some(evidence) = ndt7::read(document) {
        return Ok(ForeignResults { program: "ndt7", evidence, main: 0 });
    }
    Err(named::document(document))
}

fn from_text(text: &str) -> Result<ResultSource, Unreadable> {
    if let Some(documents) = iperf_text::read(text) {
        return from_documents(documents::Documents { values: documents, fault: None });
    }
    if let Some(evidence) = nuttcp::read(text) {
        return Ok(ResultSource::Foreign(ForeignResults { program: "nuttcp", evidence, main: 0 }));
    }
    let sockets = ss::read(text);
    if sockets.is_empty() {
        return Err(named::unreadable_text(text));
    }
    Ok(ResultSource::Foreign(by_bytes(sockets)))
}

/// Share of the bytes below which connections have no section of their own.
const SMALL_SHARE: f64 = 0.01;

/// Sockets with that first which moved most; those that moved next to nothing share one line.
fn by_bytes(mut sockets: Vec<Evidence>) -> ForeignResults {
    let bytes = |socket: &Evidence| socket.rate.bytes.unwrap_or(0.0);
    let all: f64 = sockets.iter().map(bytes).sum();
    sockets.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
    let small = sockets.partition_point(|socket| bytes(socket) >= SMALL_SHARE * all).max(1);
    let rest = sockets.split_off(small);
    let names: Vec<String> = rest.into_iter().filter_map(|socket| socket.connection).collect();
    if !names.is_empty() {
        sockets[0].remarks.push(SourceNote::SmallConnections(names));
    }
    ForeignResults { program: "ss", evidence: sockets, main: 0 }
}

/// A number under a path of keys.
fn number(json: &Value, keys: &[&str]) -> Option<f64> {
    keys.iter().try_fold(json, |json, key| json.get(key))?.as_f64()
}

/// A number that 0 means nothing for.
fn positive(json: &Value, keys: &[&str]) -> Option<f64> {
    number(json, keys).filter(|value| *value > 0.0)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
const fn whole_bytes(value: f64) -> u64 {
    value as u64
}

/// A count or a size in a packet, which no header holds more of than 65,535.
fn small_count(value: f64) -> Option<u32> {
    u16::try_from(whole_bytes(value)).ok().map(u32::from)
}

/// Figures that none of these programs shows.
fn never_seen(more: &[Unmeasured]) -> Vec<Unmeasured> {
    let always =
        [Unmeasured::RoundTripAtRest, Unmeasured::SendBufferInUse, Unmeasured::LossMechanism];
    always.iter().chain(more).copied().collect()
}
