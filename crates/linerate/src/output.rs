//! The only place that prints. Results go to standard output, everything else to standard error.
//! A reader that went away (a closed pipe) ends the output quietly; results that could not be
//! written for another reason, no space above all, are a failure of the run.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

use anstream::{AutoStream, ColorChoice};
use linerate_report::{Detail, Document, Screen};

/// The first error of standard output.
static TROUBLE: OnceLock<io::Error> = OnceLock::new();

/// One line of results.
pub(crate) fn line(text: &str) {
    note_trouble(writeln!(io::stdout().lock(), "{text}"));
}

/// Results that bring their own line ends.
pub(crate) fn text(text: &str) {
    let mut out = io::stdout().lock();
    note_trouble(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// A line that a terminal's width breaks between words, and what follows is set in.
pub(crate) fn folded(text: &str) {
    self::text(&linerate_report::folded(text, width()));
}

/// A whole document, as wide as its reader has it.
pub(crate) fn document(document: &Document) {
    result(document, Detail::Full);
}

/// As much of a document as the reader asked for.
pub(crate) fn result(document: &Document, detail: Detail) {
    text(&document.on(&Screen { width: width(), colour: coloured(), detail }));
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
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// The one line of a failure.
pub(crate) fn error_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "linerate: {text}");
}

/// Columns that results may take: those of the environment variable COLUMNS, else of the terminal;
/// `None` for files and pipes, whose reader wraps nothing.
pub(crate) fn width() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    asked.filter(|columns| *columns > 0).or_else(linerate_sys::terminal::columns)
}

/// Whether the reader of the results went away, so that going on has no purpose.
pub(crate) fn reader_left() -> bool {
    TROUBLE.get().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Why results are missing from standard output, unless nobody wanted them.
pub(crate) fn trouble() -> Option<&'static io::Error> {
    TROUBLE.get().filter(|error| error.kind() != ErrorKind::BrokenPipe)
}

fn note_trouble(result: io::Result<()>) {
    if let Err(error) = result {
        // The first error tells; later ones follow from it.
        let _ = TROUBLE.set(error);
    }
}
