//! Results that both ends exchange after a test.

use serde_json::{Map, Value, json};

use super::json::{self, Object};
use super::{STREAMS_MAX, WireError};

/// Bytes of the longest results that are read. 256 streams take 80 KiB; the rest is for a server's
/// printed output of a long test.
pub const RESULTS_BYTES_MAX: usize = 4 << 20;

const WHAT: &str = "results";
const WHAT_STREAM: &str = "results of a stream";
/// Most streams of both directions.
const STREAMS_BOTH_MAX: usize = 2 * STREAMS_MAX as usize;

/// Output that the server printed.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerOutput {
    /// Printed lines.
    Text(String),
    /// JSON document of `-J`.
    Json(Value),
}

/// Results of a test as one end counted them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// Processor time of the process over the time of the test, in percent.
    pub cpu_total_percent: f64,
    /// User part of that time.
    pub cpu_user_percent: f64,
    /// System part of that time.
    pub cpu_system_percent: f64,
    /// True if the sending end counts retransmits; `None` at a receiver.
    pub sender_has_retransmits: Option<bool>,
    /// Congestion control of the streams.
    pub congestion_used: Option<String>,
    /// Printed output of this end, where the client requested it.
    pub server_output: Option<ServerOutput>,
    /// Results of each stream.
    pub streams: Vec<StreamResult>,
}

/// Results of a stream as one end counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StreamResult {
    /// Identifier of the stream, the same at both ends.
    pub id: u32,
    /// Bytes sent or received after the omitted time.
    pub bytes: u64,
    /// Segments retransmitted, where this end is a sender that counts them.
    pub retransmits: Option<u64>,
    /// Jitter in seconds (UDP receivers).
    pub jitter_s: f64,
    /// Datagrams lost (UDP receivers), including the omitted time. Duplicates lower it, so it can
    /// be negative.
    pub lost: i64,
    /// Datagrams lost in the omitted time; absent in older versions.
    pub lost_omitted: Option<i64>,
    /// Highest sequence received, or datagrams sent, including the omitted time.
    pub packets: u64,
    /// Datagrams of the omitted time; absent in older versions.
    pub packets_omitted: Option<u64>,
    /// Start of the stream at this end, in seconds since the end of the omitted time; absent
    /// before 3.2.
    pub start_s: Option<f64>,
    /// End of the stream, on the same scale.
    pub end_s: Option<f64>,
}

impl Results {
    /// Parses the JSON text.
    /// # Errors
    /// [`WireError::Json`] and [`WireError::Field`].
    pub fn parse(text: &[u8]) -> Result<Self, WireError> {
        let map = json::read(WHAT, text)?;
        let object = Object::new(WHAT, &map);
        let output =
            match (object.text_field("server_output_text")?, object.get("server_output_json")) {
                (Some(text), _) => Some(ServerOutput::Text(text)),
                (None, json) => json.cloned().map(ServerOutput::Json),
            };
        let streams = match object.get("streams") {
            Some(Value::Array(streams)) if streams.len() <= STREAMS_BOTH_MAX => {
                streams.iter().map(StreamResult::parse).collect::<Result<_, _>>()?
            }
            Some(Value::Array(streams)) => {
                return Err(WireError::Field {
                    what: WHAT,
                    key: "streams",
                    value: format!("a list of {}", streams.len()),
                });
            }
            Some(other) => return Err(object.wrong_type_error("streams", other)),
            None => return Err(object.wrong_type_error("streams", &Value::Null)),
        };
        Ok(Self {
            cpu_total_percent: object.number("cpu_util_total")?.unwrap_or(0.0),
            cpu_user_percent: object.number("cpu_util_user")?.unwrap_or(0.0),
            cpu_system_percent: object.number("cpu_util_system")?.unwrap_or(0.0),
            sender_has_retransmits: object
                .count_or_unknown("sender_has_retransmits")?
                .map(|has| has > 0),
            congestion_used: object.text_field("congestion_used")?,
            server_output: output,
            streams,
        })
    }

    /// The JSON text on the wire.
    pub fn to_json(&self) -> String {
        let mut map = Map::new();
        map.insert("cpu_util_total".to_owned(), self.cpu_total_percent.into());
        map.insert("cpu_util_user".to_owned(), self.cpu_user_percent.into());
        map.insert("cpu_util_system".to_owned(), self.cpu_system_percent.into());
        let has = self.sender_has_retransmits.map_or(-1, i64::from);
        map.insert("sender_has_retransmits".to_owned(), has.into());
        if let Some(name) = &self.congestion_used {
            map.insert("congestion_used".to_owned(), name.as_str().into());
        }
        match &self.server_output {
            Some(ServerOutput::Text(text)) => {
                map.insert("server_output_text".to_owned(), text.as_str().into());
            }
            Some(ServerOutput::Json(json)) => {
                map.insert("server_output_json".to_owned(), json.clone());
            }
            None => {}
        }
        let streams = self.streams.iter().map(StreamResult::json_value).collect();
        map.insert("streams".to_owned(), Value::Array(streams));
        Value::Object(map).to_string()
    }

    /// Results of the stream with this identifier.
    pub fn stream(&self, id: u32) -> Option<&StreamResult> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

impl StreamResult {
    fn parse(value: &Value) -> Result<Self, WireError> {
        let Value::Object(map) = value else {
            let reason = "not an object".to_owned();
            return Err(WireError::Json { what: WHAT_STREAM, reason });
        };
        let object = Object::new(WHAT_STREAM, map);
        let id = object.count_field("id")?.and_then(|id| u32::try_from(id).ok());
        let signed = |key| -> Result<Option<i64>, WireError> {
            let number = object.integer(key)?;
            let held =
                |n: i128| i64::try_from(n).unwrap_or(if n < 0 { i64::MIN } else { i64::MAX });
            Ok(number.map(held))
        };
        Ok(Self {
            id: id.ok_or_else(|| object.wrong_type_error("id", &Value::Null))?,
            bytes: object.count_or_unknown("bytes")?.unwrap_or(0),
            retransmits: object.count_or_unknown("retransmits")?,
            jitter_s: object.number("jitter")?.unwrap_or(0.0),
            lost: signed("errors")?.unwrap_or(0),
            lost_omitted: signed("omitted_errors")?,
            packets: object.count_or_unknown("packets")?.unwrap_or(0),
            packets_omitted: object.count_or_unknown("omitted_packets")?,
            start_s: object.number("start_time")?,
            end_s: object.number("end_time")?,
        })
    }

    fn json_value(&self) -> Value {
        let mut value = json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits.map_or(-1, |count| i64::try_from(count).unwrap_or(-1)),
            "jitter": self.jitter_s,
            "errors": self.lost,
            "packets": self.packets,
            "start_time": self.start_s.unwrap_or(0.0),
            "end_time": self.end_s.unwrap_or(0.0),
        });
        // iperf3 expects both or neither.
        if let (Some(lost), Some(packets)) = (self.lost_omitted, self.packets_omitted) {
            value["omitted_errors"] = lost.into();
            value["omitted_packets"] = packets.into();
        }
        value
    }

    /// Length of the measured time in seconds, where this end stated its start and end.
    pub fn span_s(&self) -> Option<f64> {
        let span = self.end_s? - self.start_s?;
        (span.is_finite() && span > 0.0).then_some(span)
    }
}
