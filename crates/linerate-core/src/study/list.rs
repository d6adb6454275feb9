//! The lists of a test, `key = [values]`: which of them is varied, what each value is called, and
//! what a list must hold.
//!
//! At most one list has several values; a list of one value holds for the whole test.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::fault::{Checked, fault_at_path, first_repeated, item_fault, key_fault};
use super::parameter::{Parameter, Value};
use crate::units::Bytes;

/// One list that a kind of test may have.
pub(super) struct List {
    pub(super) parameter: Parameter,
    /// The values in the order of the plan; none where the plan has no such key.
    items: Option<Vec<ListItem>>,
    /// Numbers that can be asked for.
    bounds: RangeInclusive<u64>,
    /// Index of a value that stands earlier in the list too: it would fill the same cell twice.
    repeated: Option<usize>,
}

struct ListItem {
    value: Value,
    /// The value as the file has it.
    text: String,
}

impl List {
    /// The list under a key, each value made by `value`.
    pub(super) fn from_values<T: Ord + Display>(
        parameter: Parameter,
        values: Option<&Vec<T>>,
        value: impl Fn(&T) -> Value,
    ) -> Self {
        let item = |_, item: &T| ListItem { value: value(item), text: item.to_string() };
        Self::from_items(parameter, values, item)
    }

    /// A list of numbers within bounds, with a label for each.
    pub(super) fn from_numbers<T: Copy + Into<u64> + Ord + Display>(
        parameter: Parameter,
        numbers: Option<&Vec<T>>,
        bounds: RangeInclusive<u64>,
        label: fn(u64) -> String,
    ) -> Self {
        let value = |&number: &T| Value { number: number.into(), label: label(number.into()) };
        Self { bounds, ..Self::from_values(parameter, numbers, value) }
    }

    /// A list of names, numbered from 1 in the order of the plan.
    pub(super) fn from_names<T: Ord>(
        parameter: Parameter,
        names: Option<&Vec<T>>,
        name: impl Fn(&T) -> &str,
    ) -> Self {
        let item = |number, item: &T| {
            let text = name(item).to_owned();
            ListItem { value: Value { number, label: text.clone() }, text }
        };
        Self::from_items(parameter, names, item)
    }

    fn from_items<T: Ord>(
        parameter: Parameter,
        values: Option<&Vec<T>>,
        item: impl Fn(u64, &T) -> ListItem,
    ) -> Self {
        let item = |numbered: (u64, &T)| item(numbered.0, numbered.1);
        Self {
            parameter,
            items: values.map(|values| (1..).zip(values).map(item).collect()),
            bounds: 0..=u64::MAX,
            repeated: values.and_then(|values| first_repeated(values)),
        }
    }

    /// The values in the order of the plan.
    pub(super) fn values(self) -> Vec<Value> {
        self.items.into_iter().flatten().map(|item| item.value).collect()
    }

    /// How many values the plan lists; none where it has no such key.
    fn length(&self) -> Option<usize> {
        self.items.as_ref().map(Vec::len)
    }

    /// Values are within bounds, each once.
    fn check_values(&self) -> Checked {
        let key = self.parameter.key;
        let unit = if key.ends_with("_bytes") { " bytes" } else { "" };
        let items = self.items.as_deref().unwrap_or_default();
        for (index, ListItem { value, text }) in items.iter().enumerate() {
            if value.number > *self.bounds.end() {
                let message = format!("{text}{unit}; the most is {}", self.bounds.end());
                return item_fault(key, index, message);
            }
            if value.number < *self.bounds.start() {
                let message = format!("{text}{unit}; the least is {}", self.bounds.start());
                return item_fault(key, index, message);
            }
        }
        match self.repeated {
            Some(index) => item_fault(key, index, format!("{} is there twice", items[index].text)),
            None => Ok(()),
        }
    }
}

/// The list that a test varies: the one with several values, else the first that the plan has,
/// else the first that it may have.
pub(super) fn varied_list(mut lists: Vec<List>) -> List {
    let several = lists.iter().position(|list| list.length() > Some(1));
    let present = several.or_else(|| lists.iter().position(|list| list.items.is_some()));
    lists.swap_remove(present.unwrap_or(0))
}

/// The plan has a list, none is empty, one has several values at most, and every value can be
/// asked for; `choice` are the lists to choose from where it has none.
pub(super) fn check_lists(lists: &[List], choice: &str) -> Checked {
    let lengths = lists.iter().filter_map(|list| Some((list.parameter.key, list.length()?)));
    let lengths: Vec<(&'static str, usize)> = lengths.collect();
    if lengths.is_empty() {
        return fault_at_path(&[], format!("it varies nothing; give it {choice}"));
    }
    if let Some((key, _)) = lengths.iter().find(|(_, length)| *length == 0) {
        return key_fault(key, format!("{key} is empty"));
    }
    let mut varied = lengths.iter().filter(|(_, length)| *length > 1);
    if let (Some((first, _)), Some((second, _))) = (varied.next(), varied.next()) {
        let message = format!("{first} and {second} both have several values; vary one in a test");
        return key_fault(second, message);
    }
    lists.iter().try_for_each(List::check_values)
}

/// The value of a list at a place; of a list of one, that one.
pub(super) fn pick_value<T: Clone>(list: Option<&Vec<T>>, at: usize) -> Option<T> {
    list.and_then(|list| list.get(if list.len() > 1 { at } else { 0 }).cloned())
}

/// A size of memory: `16 KiB`, or `auto` for 0, which leaves it to whoever has it.
pub(super) fn memory_label(bytes: u64) -> String {
    match bytes {
        0 => "auto".to_owned(),
        _ => Bytes::new(bytes).to_string(),
    }
}
