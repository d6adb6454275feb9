//! Documents of JSON and TOML as one tree, from which every stored or sent type is read and to
//! which it is written.
//!
//! serde compiles a reader of each type for each format, and a writer for each. With the tree
//! between, a type has one of both, whatever the text is, which makes the program smaller and its
//! build shorter (docs/decisions.md). The tree keeps the order of keys, and the offset
//! in the text at which each key and value begins, where the text is TOML.

mod json;
mod read;
mod toml;
mod write;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::read::TreeReader;

/// One value of a document, with where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tree {
    node: TreeNode,
    /// Byte offset in the text.
    at: Option<usize>,
}

/// The kinds of values that JSON and TOML share. A date of TOML is a text.
#[derive(Clone, Debug, PartialEq)]
enum TreeNode {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Table(Vec<(Key, Tree)>),
}

/// The key of a table's entry.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    name: String,
    at: Option<usize>,
}

impl From<TreeNode> for Tree {
    fn from(node: TreeNode) -> Self {
        Self { node, at: None }
    }
}

/// A document that cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: String,
    at: Option<usize>,
}

impl Error {
    /// The fault on one line, without its place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Byte offset in the text of the key or value at fault; none for JSON, whose message ends
    /// with line and column where the text is not JSON.
    pub fn offset(&self) -> Option<usize> {
        self.at
    }

    fn or_at(mut self, at: Option<usize>) -> Self {
        self.at = self.at.or(at);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), at: None }
    }
}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        serde::de::Error::custom(message)
    }
}

/// Reads a value from JSON text (RFC 8259).
/// # Errors
/// Text that is not JSON, or does not fit the type.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    T::deserialize(TreeReader::from(json::parse(text.as_bytes())?))
}

/// Reads a value from JSON as it came over a wire.
/// # Errors
/// As [`from_json`], and bytes that are not UTF-8.
pub fn from_json_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    T::deserialize(TreeReader::from(json::parse(bytes)?))
}

/// Reads a value from JSON that was parsed already.
/// # Errors
/// A document that does not fit the type.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(TreeReader::from(Tree::from(value)))
}

/// Reads a value from TOML text (TOML 1.0).
/// # Errors
/// Text that is not TOML, or does not fit the type, with the offset at which it does not.
pub fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    T::deserialize(TreeReader::from(toml::parse(text)?))
}

/// Writes a value as JSON on one line.
/// # Errors
/// A map whose keys are neither text nor numbers.
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    json::compact(&value.serialize(write::TreeWriter)?)
}

/// Writes a value as JSON, indented by two spaces.
/// # Errors
/// As [`to_json`].
pub fn to_json_pretty<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    json::pretty(&value.serialize(write::TreeWriter)?)
}

/// Writes a value as parsed JSON.
/// # Errors
/// As [`to_json`].
pub fn to_value<T: Serialize>(value: T) -> Result<Value, Error> {
    value.serialize(write::TreeWriter).map(Value::from)
}

/// Writes a value as TOML text; what is absent is left out.
/// # Errors
/// A number above 2^63 - 1, or a value that is no table.
pub fn to_toml<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    toml::print_tree(&value.serialize(write::TreeWriter)?)
}

#[cfg(test)]
mod tests;
