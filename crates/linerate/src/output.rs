//! The only place that prints. Results go to standard output, everything else to standard error.
//! A reader that went away (a closed pipe) ends the output quietly; results that could not be
//! written for another reason, no space above all, are a failure of the run.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use anstream::{AutoStream, ColorChoice};
use linerate_report::{Detail, Document, Screen};

/// The first error of standard output.
static TROUBLE: OnceLock<io::Error> = OnceLock::new();

/// One line of results.
pub(crate) fn print_line(text: &str) {
    note_trouble(writeln!(io::stdout().lock(), "{}", for_terminal(text)));
}

/// Results that bring their own line ends.
pub(crate) fn print_text(text: &str) {
    let mut out = io::stdout().lock();
    note_trouble(out.write_all(for_terminal(text).as_bytes()).and_then(|()| out.flush()));
}

/// The text in the letters of the terminal: ASCII where its locale is not UTF-8.
fn for_terminal(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !io::stdout().is_terminal() || is_utf8(|name| std::env::var(name).ok()) {
        return Cow::Borrowed(text);
    }
    let letter = |c| match c {
        '\u{b7}' | '\u{2013}' | '\u{2014}' | '\u{2212}' => '-',
        '\u{b5}' => 'u',
        '\u{2192}' => '>',
        other => other,
    };
    Cow::Owned(text.chars().map(letter).collect())
}

/// True when the locale's letters are UTF-8, by the first variable that is set (locale(7)); without
/// one UTF-8 is assumed, since today's terminals use it.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    let locale = set.into_iter().find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Prints a line that is broken between words at the terminal's width, with further lines indented.
pub(crate) fn folded(text: &str) {
    print_text(&linerate_report::folded(text, output_columns()));
}

/// A whole document, as wide as its reader has it.
pub(crate) fn document(document: &Document) {
    result(document, Detail::Full);
}

/// As much of a document as the reader asked for.
pub(crate) fn result(document: &Document, detail: Detail) {
    print_text(&document.render_on_screen(&Screen {
        width: output_columns(),
        colour: coloured(),
        detail,
    }));
}

/// Settles for the whole run whether there are colours: as asked, else on terminals that have them
/// unless NO_COLOR is set (no-color.org).
pub(crate) fn choose_colour(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    }
    .write_global();
}

fn coloured() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// One line that is not a result: progress, a note.
pub(crate) fn print_note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// The one line of a failure.
pub(crate) fn error_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "linerate: {text}");
}

/// Columns of results: those of the environment variable COLUMNS, else of the terminal; `None` for
/// files and pipes, whose reader wraps nothing.
pub(crate) fn output_columns() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    asked.filter(|columns| *columns > 0).or_else(linerate_sys::terminal::columns)
}

/// True when the reader of the results went away, so that going on has no purpose.
pub(crate) fn reader_left() -> bool {
    TROUBLE.get().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Error that keeps results from standard output; none where the reader closed it.
pub(crate) fn trouble() -> Option<&'static io::Error> {
    TROUBLE.get().filter(|error| error.kind() != ErrorKind::BrokenPipe)
}

fn note_trouble(result: io::Result<()>) {
    if let Err(error) = result {
        // The first error tells; later ones follow from it.
        let _ = TROUBLE.set(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_names_the_letters() {
        let of = |all: &'static str, lang: &'static str| {
            is_utf8(move |name| match name {
                "LC_ALL" => Some(all.to_owned()),
                "LANG" => Some(lang.to_owned()),
                _ => None,
            })
        };
        assert!(of("", "de_DE.UTF-8") && of("C.utf8", "C") && of("", ""));
        assert!(!of("C", "de_DE.UTF-8") && !of("", "POSIX"));
    }
}
