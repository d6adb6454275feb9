//! Text of other ends made safe for messages, logs and records: one line, no control characters.

/// The text on one line: control characters (line ends and terminal escapes among them), line
/// separators and marks that turn the direction of writing are written out as Rust writes them.
/// What a peer sent passes through here before anybody reads it: every [`super::Failure`] and
/// every [`super::Caveat`] does, and every line of a server's log. A text of more than
/// 2000 characters is cut, and says how many it had.
pub fn one_line(text: &str) -> String {
    let is_short = text.len() <= CHARACTERS_MAX;
    if is_short && !text.chars().any(is_unsafe) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(CHARACTERS_MAX) + 16);
    for c in text.chars().take(CHARACTERS_MAX) {
        if is_unsafe(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    let count = if is_short { 0 } else { text.chars().count() };
    if count > CHARACTERS_MAX {
        out.push_str(&format!("… (cut: {count} characters)"));
    }
    out
}

/// Characters of a line for people: some of a terminal's lines.
const CHARACTERS_MAX: usize = 2000;

/// Control characters (Unicode category Cc), the separators of lines and paragraphs, and the
/// marks of Unicode TR9 that reorder what follows.
fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_end_is_cut_and_says_so() {
        let whole = "ä".repeat(CHARACTERS_MAX);
        assert_eq!(one_line(&whole), whole);
        let cut = one_line(&"ä".repeat(900_000));
        assert_eq!(cut, format!("{whole}… (cut: 900000 characters)"));
    }

    #[test]
    fn control_characters_are_written_out_and_the_rest_stays() {
        assert_eq!(one_line("größer, 10 µs"), "größer, 10 µs");
        assert_eq!(one_line("a\nb\r\tc"), "a\\nb\\r\\tc");
        // A terminal's escape, the one-byte form of its start (C1), and a delete.
        assert_eq!(one_line("\u{1b}[31m\u{9b}2J\u{7f}"), "\\u{1b}[31m\\u{9b}2J\\u{7f}");
        assert_eq!(one_line("a\u{202e}b\u{2028}c"), "a\\u{202e}b\\u{2028}c");
    }
}
