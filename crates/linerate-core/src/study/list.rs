//! The lists of a test, `key = [values]`: which of them is varied, and what each value is called.
//!
//! At most one list has several values; a list of one value holds for the whole test. The rule is
//! checked by `check_lists`, the bounds of values by the check of each kind of test.

use super::parameter::{Parameter, Value};
use crate::units::Bytes;

/// One list that a kind of test may have.
pub(super) struct List {
    pub(super) parameter: Parameter,
    /// The values in the order of the plan; none where the plan has no such key.
    pub(super) values: Option<Vec<Value>>,
}

impl List {
    /// The list under a key, each value made by `value`.
    pub(super) fn from_values<T>(
        parameter: Parameter,
        values: Option<&Vec<T>>,
        value: impl Fn(&T) -> Value,
    ) -> Self {
        Self { parameter, values: values.map(|values| values.iter().map(value).collect()) }
    }

    /// A list of numbers with a label for each.
    pub(super) fn from_numbers<T: Copy + Into<u64>>(
        parameter: Parameter,
        numbers: Option<&Vec<T>>,
        label: fn(u64) -> String,
    ) -> Self {
        Self::from_values(parameter, numbers, |&number| {
            let number = number.into();
            Value { number, label: label(number) }
        })
    }

    /// A list of names, numbered from 1 in the order of the plan.
    pub(super) fn from_names<T>(
        parameter: Parameter,
        names: Option<&Vec<T>>,
        name: impl Fn(&T) -> &str,
    ) -> Self {
        let values = names.map(|names| {
            let value = |(number, item): (u64, &T)| Value { number, label: name(item).to_owned() };
            (1..).zip(names).map(value).collect()
        });
        Self { parameter, values }
    }

    /// How many values the plan lists; none where it has no such key.
    pub(super) fn length(&self) -> Option<usize> {
        self.values.as_ref().map(Vec::len)
    }
}

/// The list that a test varies: the one with several values, else the first that the plan has,
/// else the first that it may have.
pub(super) fn varied_list(lists: impl IntoIterator<Item = List>) -> List {
    let mut lists: Vec<List> = lists.into_iter().collect();
    let several = lists.iter().position(|list| list.length() > Some(1));
    let present = several.or_else(|| lists.iter().position(|list| list.values.is_some()));
    lists.swap_remove(present.unwrap_or(0))
}

/// A size of memory: `16 KiB`, or `auto` for 0, which leaves it to whoever has it.
pub(super) fn memory_label(bytes: u64) -> String {
    match bytes {
        0 => "auto".to_owned(),
        _ => Bytes::new(bytes).to_string(),
    }
}
