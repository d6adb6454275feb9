//! Types from trees: serde's `Deserializer`.

use std::vec::IntoIter;

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::{Error, Key, Tree, TreeNode};

/// The deserializer that every type is read by: a tree, taken apart as the type asks for it.
#[derive(Debug)]
pub struct TreeReader(Tree);

impl From<Tree> for TreeReader {
    fn from(tree: Tree) -> Self {
        Self(tree)
    }
}

impl TreeReader {
    /// The refusal of a value of another kind than the type's.
    fn refuse(&self, expected: &dyn Expected) -> Error {
        Error::invalid_type(unexpected(&self.0.node), expected).or_at(self.0.at)
    }
}

fn unexpected(node: &TreeNode) -> Unexpected<'_> {
    match node {
        TreeNode::Null => Unexpected::Unit,
        TreeNode::Bool(value) => Unexpected::Bool(*value),
        TreeNode::Unsigned(value) => Unexpected::Unsigned(*value),
        TreeNode::Signed(value) => Unexpected::Signed(*value),
        TreeNode::Float(value) => Unexpected::Float(*value),
        TreeNode::Text(text) => Unexpected::Str(text),
        TreeNode::List(_) => Unexpected::Seq,
        TreeNode::Table(_) => Unexpected::Map,
    }
}

/// Methods that take one kind of value: with `deserialize_any` in their place each type would
/// have code for all kinds.
macro_rules! of_one_kind {
    ($($kind:ident($value:ident) => $visit:expr; $($method:ident)*;)*) => {
        $($(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let at = self.0.at;
            match self.0.node {
                TreeNode::$kind($value) => placed($visit(visitor, $value), at),
                _ => Err(self.refuse(&visitor)),
            }
        })*)*
    };
}

macro_rules! numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let at = self.0.at;
            placed(match self.0.node {
                TreeNode::Unsigned(value) => visitor.visit_u64(value),
                TreeNode::Signed(value) => visitor.visit_i64(value),
                TreeNode::Float(value) => visitor.visit_f64(value),
                _ => Err(self.refuse(&visitor)),
            }, at)
        })*
    };
}

/// Gives a fault that has no place the place of the value.
fn placed<T>(read: Result<T, Error>, at: Option<usize>) -> Result<T, Error> {
    match read {
        Ok(value) => Ok(value),
        Err(error) => Err(error.or_at(at)),
    }
}

impl<'de> Deserializer<'de> for TreeReader {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let at = self.0.at;
        let read = match self.0.node {
            TreeNode::Null => visitor.visit_unit(),
            TreeNode::Bool(value) => visitor.visit_bool(value),
            TreeNode::Unsigned(value) => visitor.visit_u64(value),
            TreeNode::Signed(value) => visitor.visit_i64(value),
            TreeNode::Float(value) => visitor.visit_f64(value),
            TreeNode::Text(text) => visitor.visit_string(text),
            TreeNode::List(items) => read_list(visitor, items),
            TreeNode::Table(entries) => read_table(visitor, entries),
        };
        placed(read, at)
    }

    of_one_kind! {
        Bool(value) => Visitor::visit_bool; deserialize_bool;
        Text(text) => Visitor::visit_string;
            deserialize_char deserialize_str deserialize_string deserialize_identifier;
        List(items) => read_list; deserialize_seq;
        Table(entries) => read_table; deserialize_map;
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_f32 deserialize_f64
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.node {
            TreeNode::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let at = self.0.at;
        placed(visitor.visit_newtype_struct(self), at)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let at = self.0.at;
        match variant(self.0) {
            Ok((name, content)) => placed(visitor.visit_enum(Variant { name, content }), at),
            Err(error) => Err(error.or_at(at)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { i128 u128 bytes byte_buf unit unit_struct tuple_struct }
}

impl IntoDeserializer<'_, Error> for TreeReader {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Reads a list to its end: items that the type has no place for are a fault.
fn read_list<'de, V: Visitor<'de>>(visitor: V, items: Vec<Tree>) -> Result<V::Value, Error> {
    let count = items.len();
    let mut rest = ListReader(items.into_iter());
    match visitor.visit_seq(&mut rest) {
        Ok(_) if rest.0.len() > 0 => Err(Error::invalid_length(count, &"fewer elements in array")),
        read => read,
    }
}

/// Reads a table; a type that has no place for an entry refuses it by its key.
fn read_table<'de, V: Visitor<'de>>(
    visitor: V,
    entries: Vec<(Key, Tree)>,
) -> Result<V::Value, Error> {
    visitor.visit_map(Table { entries: entries.into_iter(), value: None })
}

/// Reads a variant: its name, or a table of its name alone with its value.
fn variant(tree: Tree) -> Result<(Key, Option<Tree>), Error> {
    let name_and_content = "string or map with a single key";
    match tree.node {
        TreeNode::Text(name) => Ok((Key { name, at: tree.at }, None)),
        TreeNode::Table(entries) => {
            let mut entries = entries.into_iter();
            match (entries.next(), entries.next()) {
                (Some((name, content)), None) => Ok((name, Some(content))),
                _ => Err(Error::invalid_value(Unexpected::Map, &"map with a single key")),
            }
        }
        other => Err(Error::invalid_type(unexpected(&other), &name_and_content)),
    }
}

struct ListReader(IntoIter<Tree>);

impl<'de> SeqAccess<'de> for ListReader {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        match self.0.next() {
            None => Ok(None),
            Some(item) => {
                let at = item.at;
                placed(seed.deserialize(TreeReader(item)), at).map(Some)
            }
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Table {
    entries: IntoIter<(Key, Tree)>,
    value: Option<Tree>,
}

impl<'de> MapAccess<'de> for Table {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some(value);
        let at = key.at;
        placed(seed.deserialize(KeyReader(key.name)), at).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some(value) = self.value.take() else { return Err(keyless()) };
        let at = value.at;
        placed(seed.deserialize(TreeReader(value)), at)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

fn keyless() -> Error {
    Error::custom("a value without its key")
}

/// A key, which is a number where the type asks for one: JSON has keys of text alone.
struct KeyReader(String);

impl KeyReader {
    fn name_deserializer(self) -> StringDeserializer<Error> {
        self.0.into_deserializer()
    }

    fn integer<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Ok(number) = self.0.parse() {
            return visitor.visit_u64(number);
        }
        match self.0.parse() {
            Ok(number) => visitor.visit_i64(number),
            Err(_) => visitor.visit_string(self.0),
        }
    }
}

macro_rules! integer_keys {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.integer(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for KeyReader {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.0)
    }

    // The name of a field is compared and not kept.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(&self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.name_deserializer().deserialize_enum(name, variants, visitor)
    }

    integer_keys! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct ignored_any
    }
}

struct Variant {
    name: Key,
    content: Option<Tree>,
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = Content;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content), Error> {
        let at = self.name.at;
        let variant = placed(seed.deserialize(KeyReader(self.name.name)), at)?;
        Ok((variant, Content(self.content)))
    }
}

/// The value that follows the name of an enum variant; none for a variant of its name alone.
struct Content(Option<Tree>);

impl Content {
    /// The value of a variant that has to have one; `expected` names the kind of variant.
    fn required(self, expected: &'static str) -> Result<Tree, Error> {
        self.0.ok_or_else(|| Error::invalid_type(Unexpected::UnitVariant, &expected))
    }
}

impl<'de> VariantAccess<'de> for Content {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), |content| serde::Deserialize::deserialize(TreeReader(content)))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(TreeReader(self.required("newtype variant")?))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        TreeReader(self.required("tuple variant")?).deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        TreeReader(self.required("struct variant")?).deserialize_map(visitor)
    }
}
