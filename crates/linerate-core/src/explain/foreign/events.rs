//! `iperf3 --json-stream` (3.17 and later): an object for each event, which together are a document
//! of `-J`. A stream that was cut is read as far as it goes.

use serde_json::{Map, Value, json};

/// Documents with those of events put together; with `--json-stream-full-output` the whole document
/// follows its events, which are then left out.
pub(super) fn documents_of_events(values: Vec<Value>) -> Vec<Value> {
    let is_event = |value: &Value| value.get("event").is_some_and(Value::is_string);
    let is_whole = |value: &Value| value.get("intervals").is_some_and(Value::is_array);
    let whole = values.iter().any(is_whole);
    let mut documents = Vec::new();
    let mut open: Option<Map<String, Value>> = None;
    for value in values {
        if !is_event(&value) {
            documents.extend(open.take().map(Value::Object));
            documents.push(value);
            continue;
        }
        if whole {
            continue;
        }
        let name = value["event"].as_str().unwrap_or_default().to_owned();
        let data = value.get("data").cloned().unwrap_or(Value::Null);
        if name == "start" {
            documents.extend(open.take().map(Value::Object));
        }
        let document = open.get_or_insert_with(|| {
            let fields = [("start", json!({})), ("intervals", json!([])), ("end", json!({}))];
            fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
        });
        match name.as_str() {
            "interval" => {
                if let Some(intervals) = document.get_mut("intervals").and_then(Value::as_array_mut)
                {
                    intervals.push(data);
                }
            }
            "start" | "end" | "error" => {
                document.insert(name, data);
            }
            // Output of the server, which the document has beside the figures.
            _ => {}
        }
    }
    documents.extend(open.map(Value::Object));
    documents
}
