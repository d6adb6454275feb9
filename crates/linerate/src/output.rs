//! The only place that prints. Results go to standard output, everything else to standard error.
//! A reader that went away (a closed pipe) ends the output quietly.

use std::io::Write;

/// One line of results.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Results that bring their own line ends.
pub(crate) fn text(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// One line that is not a result: progress, a note.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// The one line of a failure.
pub(crate) fn error_line(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "linerate: {text}");
}
