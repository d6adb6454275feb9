//! Types to trees: serde's `Serializer`.

use serde::ser::{
    Error as _, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::{Error, Key, Tree, TreeNode};

/// Makes a tree of whatever is serialised.
pub(super) struct TreeWriter;

fn key_without_place(name: &str) -> Key {
    Key { name: name.to_owned(), at: None }
}

/// A variant with content: a table of its name alone.
fn variant(name: Option<&'static str>, content: TreeNode) -> Tree {
    match name {
        None => content.into(),
        Some(name) => TreeNode::Table(vec![(key_without_place(name), content.into())]).into(),
    }
}

impl Serializer for TreeWriter {
    type Ok = Tree;
    type Error = Error;
    type SerializeSeq = ListWriter;
    type SerializeTuple = ListWriter;
    type SerializeTupleStruct = ListWriter;
    type SerializeTupleVariant = ListWriter;
    type SerializeMap = TableWriter;
    type SerializeStruct = TableWriter;
    type SerializeStructVariant = TableWriter;

    fn serialize_bool(self, value: bool) -> Result<Tree, Error> {
        Ok(TreeNode::Bool(value).into())
    }

    fn serialize_i8(self, value: i8) -> Result<Tree, Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<Tree, Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<Tree, Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<Tree, Error> {
        Ok(u64::try_from(value).map_or(TreeNode::Signed(value), TreeNode::Unsigned).into())
    }

    fn serialize_u8(self, value: u8) -> Result<Tree, Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<Tree, Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<Tree, Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<Tree, Error> {
        Ok(TreeNode::Unsigned(value).into())
    }

    fn serialize_f32(self, value: f32) -> Result<Tree, Error> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<Tree, Error> {
        Ok(TreeNode::Float(value).into())
    }

    fn serialize_char(self, value: char) -> Result<Tree, Error> {
        Ok(TreeNode::Text(value.into()).into())
    }

    fn serialize_str(self, value: &str) -> Result<Tree, Error> {
        Ok(TreeNode::Text(value.to_owned()).into())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Tree, Error> {
        self.collect_seq(bytes)
    }

    fn serialize_none(self) -> Result<Tree, Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Tree, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Tree, Error> {
        Ok(TreeNode::Null.into())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Tree, Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Tree, Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Tree, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<Tree, Error> {
        Ok(variant(Some(name), value.serialize(self)?.node))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<ListWriter, Error> {
        Ok(ListWriter { variant: None, items: Vec::with_capacity(length.unwrap_or(0)) })
    }

    fn serialize_tuple(self, length: usize) -> Result<ListWriter, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<ListWriter, Error> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<ListWriter, Error> {
        Ok(ListWriter { variant: Some(variant), items: Vec::with_capacity(length) })
    }

    fn serialize_map(self, length: Option<usize>) -> Result<TableWriter, Error> {
        let entries = Vec::with_capacity(length.unwrap_or(0));
        Ok(TableWriter { variant: None, entries, key: None })
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<TableWriter, Error> {
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<TableWriter, Error> {
        Ok(TableWriter { variant: Some(variant), entries: Vec::with_capacity(length), key: None })
    }
}

/// A list that grows.
pub(super) struct ListWriter {
    variant: Option<&'static str>,
    items: Vec<Tree>,
}

impl ListWriter {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.items.push(value.serialize(TreeWriter)?);
        Ok(())
    }

    fn into_tree(self) -> Result<Tree, Error> {
        Ok(variant(self.variant, TreeNode::List(self.items)))
    }
}

macro_rules! lists {
    ($($kind:ident $method:ident)*) => {
        $(impl $kind for ListWriter {
            type Ok = Tree;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.push(value)
            }

            fn end(self) -> Result<Tree, Error> {
                self.into_tree()
            }
        })*
    };
}

lists! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

/// A table that grows.
pub(super) struct TableWriter {
    variant: Option<&'static str>,
    entries: Vec<(Key, Tree)>,
    /// The key of the next value.
    key: Option<Key>,
}

impl TableWriter {
    fn into_tree(self) -> Result<Tree, Error> {
        Ok(variant(self.variant, TreeNode::Table(self.entries)))
    }
}

macro_rules! structs {
    ($($kind:ident)*) => {
        $(impl $kind for TableWriter {
            type Ok = Tree;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.entries.push((key_without_place(name), value.serialize(TreeWriter)?));
                Ok(())
            }

            fn end(self) -> Result<Tree, Error> {
                self.into_tree()
            }
        })*
    };
}

structs! { SerializeStruct SerializeStructVariant }

impl SerializeMap for TableWriter {
    type Ok = Tree;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Error> {
        self.key = Some(key_without_place(&key_text(name.serialize(TreeWriter)?)?));
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = self.key.take().ok_or_else(|| Error::custom("a value without its key"))?;
        self.entries.push((key, value.serialize(TreeWriter)?));
        Ok(())
    }

    fn end(self) -> Result<Tree, Error> {
        self.into_tree()
    }
}

/// A key as JSON has it: text. Numbers and flags are written out.
fn key_text(key: Tree) -> Result<String, Error> {
    match key.node {
        TreeNode::Text(text) => Ok(text),
        TreeNode::Unsigned(number) => Ok(number.to_string()),
        TreeNode::Signed(number) => Ok(number.to_string()),
        TreeNode::Bool(flag) => Ok(flag.to_string()),
        _ => Err(Error::custom("key must be a string")),
    }
}
