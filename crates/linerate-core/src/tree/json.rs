//! JSON text and parsed JSON to trees and back.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Number, Value};

use super::{Error, Key, Tree, TreeNode};

pub(super) fn parse(bytes: &[u8]) -> Result<Tree, Error> {
    serde_json::from_slice(bytes).map_err(failed)
}

pub(super) fn compact(tree: &Tree) -> Result<String, Error> {
    serde_json::to_string(tree).map_err(failed)
}

pub(super) fn pretty(tree: &Tree) -> Result<String, Error> {
    serde_json::to_string_pretty(tree).map_err(failed)
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn failed(error: serde_json::Error) -> Error {
    Error { message: error.to_string(), at: None }
}

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        Self::from(match value {
            Value::Null => TreeNode::Null,
            Value::Bool(value) => TreeNode::Bool(value),
            Value::Number(number) => TreeNode::from(&number),
            Value::String(text) => TreeNode::Text(text),
            Value::Array(items) => TreeNode::List(items.into_iter().map(Self::from).collect()),
            Value::Object(entries) => TreeNode::Table(
                entries
                    .into_iter()
                    .map(|(name, value)| (Key { name, at: None }, value.into()))
                    .collect(),
            ),
        })
    }
}

impl From<&Number> for TreeNode {
    fn from(number: &Number) -> Self {
        let unsigned = number.as_u64().map(Self::Unsigned);
        let signed = || number.as_i64().map(Self::Signed);
        unsigned.or_else(signed).unwrap_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN)))
    }
}

impl From<Tree> for Value {
    /// NaN and infinities, which JSON has no numbers for (RFC 8259 §6), become null.
    fn from(tree: Tree) -> Self {
        match tree.node {
            TreeNode::Null => Self::Null,
            TreeNode::Bool(value) => value.into(),
            TreeNode::Unsigned(value) => value.into(),
            TreeNode::Signed(value) => value.into(),
            TreeNode::Float(value) => value.into(),
            TreeNode::Text(text) => Self::String(text),
            TreeNode::List(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            TreeNode::Table(entries) => Self::Object(
                entries.into_iter().map(|(key, value)| (key.name, value.into())).collect(),
            ),
        }
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.node {
            TreeNode::Null => serializer.serialize_none(),
            TreeNode::Bool(value) => serializer.serialize_bool(*value),
            TreeNode::Unsigned(value) => serializer.serialize_u64(*value),
            TreeNode::Signed(value) => serializer.serialize_i64(*value),
            TreeNode::Float(value) => serializer.serialize_f64(*value),
            TreeNode::Text(text) => serializer.serialize_str(text),
            TreeNode::List(items) => serializer.collect_seq(items),
            TreeNode::Table(entries) => {
                serializer.collect_map(entries.iter().map(|(key, value)| (&key.name, value)))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(TreeNode::Null.into())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(TreeNode::Bool(value).into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(TreeNode::Unsigned(value).into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(TreeNode::Signed(value).into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(TreeNode::Float(value).into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(TreeNode::Text(text.to_owned()).into())
    }

    fn visit_string<E>(self, text: String) -> Result<Tree, E> {
        Ok(TreeNode::Text(text).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(TreeNode::List(items).into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some((name, value)) = map.next_entry()? {
            entries.push((Key { name, at: None }, value));
        }
        Ok(TreeNode::Table(entries).into())
    }
}
