//! From errors of the kernel to the one line that the user gets.

use std::io;

use linerate_core::record::{Failure, Fault};

/// This host could not do it.
pub fn system(error: &linerate_sys::Error) -> Failure {
    let failure = Failure::new(Fault::System, error.call, &error.object, words_of(&error.source));
    match error.source.kind() {
        io::ErrorKind::PermissionDenied => failure.advise("run it as root"),
        _ => failure,
    }
}

/// The kernel's words without the error number.
pub fn words_of(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    words.to_lowercase()
}
