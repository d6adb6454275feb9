//! The text of an answer: words, and figures in braces. `{share}` is a figure, `{most.title}` its
//! name in words, `{{` and `}}` are braces.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A text with places for figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Words as they are.
    Words(String),
    /// The value of a figure.
    Value(String),
    /// The title of a figure.
    Title(String),
}

impl Template {
    /// Its pieces in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The figures that it names.
    pub fn figure_names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Words(_) => None,
            Part::Value(name) | Part::Title(name) => Some(name.as_str()),
        })
    }
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parts = parts_of(&text)?;
        Ok(Self { text, parts })
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.text
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parts_of(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut words = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        words.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            words.push_str(brace);
            rest = after;
            continue;
        }
        let Some(end) = rest.find('}').filter(|_| brace == "{") else {
            return Err(format!("'{text}': a brace stands alone; write {brace}{brace} for one"));
        };
        if !words.is_empty() {
            parts.push(Part::Words(std::mem::take(&mut words)));
        }
        parts.push(parse_part(&rest[..end])?);
        rest = &rest[end + 1..];
    }
    words.push_str(rest);
    if !words.is_empty() {
        parts.push(Part::Words(words));
    }
    Ok(parts)
}

fn parse_part(text: &str) -> Result<Part, String> {
    let (name, title) = match text.strip_suffix(".title") {
        Some(name) => (name, true),
        None => (text, false),
    };
    if !is_name(name) {
        return Err(format!("'{{{text}}}' is no figure; write {{NAME}} or {{NAME.title}}"));
    }
    let name = name.to_owned();
    Ok(if title { Part::Title(name) } else { Part::Value(name) })
}

/// True for a text that can name a figure: a small letter, then small letters, digits and `_`.
pub(super) fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(fits)
}
