//! Error of a failed system call, with its object and the kernel's reason.

use std::fmt;
use std::io;

/// The result of a call into the kernel.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed system call.
#[derive(Debug, thiserror::Error)]
#[error("{call} {object}: {source}")]
pub struct Error {
    /// Name of the attempt: `bind UDP`, `open network namespace`.
    pub call: &'static str,
    /// Object of the call, such as an address or a path.
    pub object: String,
    /// The kernel's reason.
    #[source]
    pub source: io::Error,
}

impl Error {
    /// An error of `call` on `object`.
    pub fn new(
        call: &'static str,
        object: impl fmt::Display,
        source: impl Into<io::Error>,
    ) -> Self {
        Self { call, object: object.to_string(), source: source.into() }
    }
}

/// The kernel's reason in words, without its number.
pub fn words_of(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    words.to_lowercase()
}
