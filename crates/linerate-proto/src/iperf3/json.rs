//! Typed access to the keys of a JSON object that a peer sent. Unknown keys are ignored; a value of
//! another type is an error that names its key.

use serde_json::{Map, Value};

use super::WireError;

/// A JSON object, with the name of its document for errors.
pub(super) struct Object<'a> {
    what: &'static str,
    map: &'a Map<String, Value>,
}

/// Parses a document that must be an object.
pub(super) fn read(what: &'static str, text: &[u8]) -> Result<Map<String, Value>, WireError> {
    // serde_json stops at a depth of 128 (its recursion limit).
    match linerate_core::tree::from_json_bytes(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(WireError::Json { what, reason: "not an object".to_owned() }),
        Err(error) => Err(WireError::Json { what, reason: error.to_string() }),
    }
}

impl<'a> Object<'a> {
    pub(super) const fn new(what: &'static str, map: &'a Map<String, Value>) -> Self {
        Self { what, map }
    }

    /// The value of a key; null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// An integer, also if written with a fraction of zero or an exponent.
    pub(super) fn integer(&self, key: &'static str) -> Result<Option<i128>, WireError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let whole = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
        let near = || value.as_f64().filter(|number| number.abs() < 1e30).map(|f| f as i128);
        whole.or_else(near).map(Some).ok_or_else(|| self.wrong_type_error(key, value))
    }

    /// A count; a negative number is an error.
    pub(super) fn count_field(&self, key: &'static str) -> Result<Option<u64>, WireError> {
        let Some(number) = self.integer(key)? else { return Ok(None) };
        let count = u64::try_from(number).ok();
        count.map(Some).ok_or_else(|| WireError::Field {
            what: self.what,
            key,
            value: number.to_string(),
        })
    }

    /// A count that is −1 when unknown. Version 3.12 prints that as 2^64 − 1.
    pub(super) fn count_or_unknown(&self, key: &'static str) -> Result<Option<u64>, WireError> {
        let known = |number: &i128| (0..i128::from(i64::MAX)).contains(number);
        let number = self.integer(key)?.filter(known);
        Ok(number.and_then(|number| u64::try_from(number).ok()))
    }

    /// A number of any kind.
    pub(super) fn number(&self, key: &'static str) -> Result<Option<f64>, WireError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| self.wrong_type_error(key, value))
    }

    /// A switch: true, or a number other than zero.
    pub(super) fn flag_field(&self, key: &'static str) -> Result<bool, WireError> {
        let Some(value) = self.get(key) else { return Ok(false) };
        let number = || value.as_f64().map(|number| number != 0.0);
        value.as_bool().or_else(number).ok_or_else(|| self.wrong_type_error(key, value))
    }

    /// The text of a string.
    pub(super) fn text_field(&self, key: &'static str) -> Result<Option<String>, WireError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value
            .as_str()
            .map(|text| Some(text.to_owned()))
            .ok_or_else(|| self.wrong_type_error(key, value))
    }

    /// Error for a value of another type.
    pub(super) fn wrong_type_error(&self, key: &'static str, value: &Value) -> WireError {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        WireError::Field { what: self.what, key, value: kind.to_owned() }
    }
}
