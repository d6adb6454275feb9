//! TOML text to trees with the place of each key and value, and back.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::{Error, Key, Tree, TreeNode};

pub(super) fn parse(text: &str) -> Result<Tree, Error> {
    let failed = |error: toml::de::Error| Error {
        message: error.message().to_owned(),
        at: error.span().map(|span| span.start),
    };
    let root = DeTable::parse(text).map_err(failed)?;
    let at = Some(root.span().start);
    Ok(Tree { node: read_table(root.into_inner())?, at })
}

pub(super) fn print_tree(tree: &Tree) -> Result<String, Error> {
    toml::to_string(tree).map_err(|error| Error { message: error.to_string(), at: None })
}

fn read_table(table: DeTable<'_>) -> Result<TreeNode, Error> {
    let entries = table.into_iter().map(|(name, value)| Ok((read_key(name), read_value(value)?)));
    entries.collect::<Result<_, _>>().map(TreeNode::Table)
}

fn read_key(name: Spanned<DeString<'_>>) -> Key {
    let at = Some(name.span().start);
    Key { name: name.into_inner().into_owned(), at }
}

fn read_value(value: Spanned<DeValue<'_>>) -> Result<Tree, Error> {
    let at = Some(value.span().start);
    let overflow = |message: &str| Error { message: message.to_owned(), at };
    let node = match value.into_inner() {
        DeValue::String(text) => TreeNode::Text(text.into_owned()),
        DeValue::Integer(digits) => read_integer(digits.as_str(), digits.radix())
            .ok_or_else(|| overflow("integer number overflowed"))?,
        DeValue::Float(digits) => read_float(digits.as_str())
            .ok_or_else(|| overflow("floating-point number overflowed"))?,
        DeValue::Boolean(value) => TreeNode::Bool(value),
        DeValue::Datetime(time) => TreeNode::Text(time.to_string()),
        DeValue::Array(items) => {
            TreeNode::List(items.into_iter().map(read_value).collect::<Result<_, _>>()?)
        }
        DeValue::Table(entries) => read_table(entries)?,
    };
    Ok(Tree { node, at })
}

fn read_integer(digits: &str, radix: u32) -> Option<TreeNode> {
    let unsigned = u64::from_str_radix(digits, radix).map(TreeNode::Unsigned);
    unsigned.or_else(|_| i64::from_str_radix(digits, radix).map(TreeNode::Signed)).ok()
}

/// A number beyond the range of a float is refused; `inf` is what the text says.
fn read_float(digits: &str) -> Option<TreeNode> {
    let value: f64 = digits.parse().ok()?;
    (value.is_finite() || !digits.contains(|letter: char| letter.is_ascii_digit()))
        .then_some(TreeNode::Float(value))
}
