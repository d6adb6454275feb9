//! Reads a record, whichever version of this program stored it: each step goes from one schema to
//! the next.
//!
//! From 1 to 2 every rate of frames ends in `_frames_per_sec` and every other rate of events in
//! `_per_sec`, in keys and in names of metrics; they ended in `_fps` and `_per_s`. The rates of a
//! plan are `pace_bps` and `background_bps`, as between client and server; they were `pace` and
//! `background`.

use serde_json::Value;

use super::{Record, SCHEMA};

impl Record {
    /// Reads a record of this schema or an earlier one; it is of this schema then.
    /// # Errors
    /// One line: a schema that is not known, or what is wrong with the text.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match value.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => {}
            Some("linerate.record/1") => {
                rename_rates(&mut value);
                rename_plan(&mut value["plan"]);
                value["schema"] = SCHEMA.into();
            }
            found => {
                let found = found.unwrap_or("no schema");
                return Err(format!("it is written in {found}, not in {SCHEMA}"));
            }
        }
        crate::tree::from_value(value).map_err(|error| error.to_string())
    }
}

/// Labels are the user's own; all other keys are the schema's.
fn rename_rates(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rename_rates),
        Value::Object(fields) => {
            let named = std::mem::take(fields).into_iter().map(|(key, mut value)| {
                match (key.as_str(), &mut value) {
                    ("tags", _) => {}
                    ("metric", Value::String(name)) => *name = renamed_metric(name),
                    (_, value) => rename_rates(value),
                }
                (renamed(&key), value)
            });
            *fields = named.collect();
        }
        _ => {}
    }
}

fn rename_plan(plan: &mut Value) {
    let Value::Object(fields) = plan else { return };
    for (before, now) in [("pace", "pace_bps"), ("background", "background_bps")] {
        if let Some(rate) = fields.remove(before) {
            fields.insert(now.to_owned(), rate);
        }
    }
}

fn renamed(key: &str) -> String {
    key.strip_suffix("_fps").map_or_else(|| key.to_owned(), |what| format!("{what}_frames_per_sec"))
}

fn renamed_metric(name: &str) -> String {
    match name {
        "pings_per_s" => "pings_per_sec".to_owned(),
        "pings_per_s_from_avg" => "pings_per_sec_from_avg".to_owned(),
        "datagrams_per_s" => "datagrams_per_sec".to_owned(),
        "stalls_per_s" => "stalls_per_sec".to_owned(),
        rate => renamed(rate),
    }
}
