//! Files that the user names for a login, and how credentials are filled up; with and without RSA.

use std::path::Path;

use linerate_core::record::{Failure, Fault};

use crate::failure::words_of;

/// A file of a key or of users is not longer than this.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// How credentials are filled up to the length of the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// OAEP with SHA-1, iperf3 since 3.17.
    #[default]
    Oaep,
    /// PKCS#1 v1.5, iperf3 until 3.16.
    Pkcs1,
}

/// Reads a file of the user's, which is not endless.
pub(super) fn read(path: &Path, attempt: &str) -> Result<String, Failure> {
    let length = std::fs::metadata(path).map(|about| about.len());
    match length {
        Ok(length) if length > FILE_BYTES_MAX => {
            return Err(wrong_file_failure(attempt, path, "it is longer than 64 KiB"));
        }
        _ => {}
    }
    std::fs::read_to_string(path)
        .map_err(|error| wrong_file_failure(attempt, path, &words_of(&error)))
}

/// A file that the user named is not what it should be.
pub(super) fn wrong_file_failure(attempt: &str, path: &Path, reason: &str) -> Failure {
    Failure::new(Fault::Usage, attempt, path.display().to_string(), reason)
}
