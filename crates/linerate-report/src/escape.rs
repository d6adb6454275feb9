//! Text made safe for XML and HTML, in content and in quoted attributes.

/// The text with the five characters that XML gives a meaning replaced, and without the control
/// characters that XML 1.0 §2.2 forbids.
pub(crate) fn xml_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(c),
            _ if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

/// The text on one line, for terminals: control characters (terminal escapes among them) become
/// the replacement character.
pub(crate) fn without_controls(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_cannot_become_markup() {
        assert_eq!(xml_escaped("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
        assert_eq!(xml_escaped("a\u{0}b\u{1b}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(without_controls("a\u{1b}[31m\nb"), "a\u{fffd}[31m\u{fffd}b");
    }
}
