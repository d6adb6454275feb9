//! The JSON documents of a text, one behind the other, with lines of anything else around them:
//! warnings before, a prompt behind, two tests in one `--logfile`.

use serde_json::Value;

use super::Unreadable;

/// Documents of a text.
#[derive(Debug, Default)]
pub(super) struct Documents {
    /// Each whole document, in order; the members of an array that is all of the text.
    pub(super) values: Vec<Value>,
    /// A document that could not be read to its end.
    pub(super) fault: Option<Unreadable>,
}

/// Documents of a text: each begins with a brace at the beginning of a line.
pub(super) fn documents_of(text: &str) -> Documents {
    let found = documents_as_written(text);
    if found.fault.is_none() {
        return found;
    }
    // printf writes numbers that do not exist as words; JSON has none, and what is absent is null.
    let mended = without_nan(text);
    match mended == text {
        true => found,
        false => documents_as_written(&mended),
    }
}

/// The same, where words for numbers that do not exist are mistakes.
fn documents_as_written(text: &str) -> Documents {
    let mut found = Documents::default();
    if let Ok(Value::Array(values)) = serde_json::from_str(text) {
        found.values = values.into_iter().filter(Value::is_object).collect();
        return found;
    }
    let mut at = 0;
    while at < text.len() {
        let line = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
        if !text[at..line].trim_start().starts_with('{') {
            at = line;
            continue;
        }
        let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                found.values.push(value);
                at += stream.byte_offset().max(1);
            }
            Some(Err(error)) => {
                found.fault = Some(parse_failure(text, at, &error));
                // A document that has a mistake may stand before a whole one.
                let next = text[line..].find("\n{").map(|next| line + next + 1);
                at = next.unwrap_or(text.len());
            }
            None => break,
        }
    }
    found
}

/// The line of the text, and its column, at which a document ends too early or has a mistake.
fn parse_failure(text: &str, at: usize, error: &serde_json::Error) -> Unreadable {
    let before = text[..at].matches('\n').count();
    let line = before + error.line().max(1);
    match error.is_eof() {
        true => Unreadable::Cut { line },
        false => Unreadable::Broken { line, column: error.column() },
    }
}

/// The text with bare words for numbers that do not exist as null.
fn without_nan(text: &str) -> String {
    const WORDS: [&str; 8] = ["-Infinity", "Infinity", "-nan", "nan", "-inf", "inf", "NaN", "-NaN"];
    let mut mended = String::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let word = WORDS.iter().find(|word| !quoted && rest.starts_with(**word));
        if let Some(word) = word {
            mended.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        match next {
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && next == '\\' && !escaped;
        mended.push(next);
        rest = &rest[next.len_utf8()..];
    }
    mended
}
