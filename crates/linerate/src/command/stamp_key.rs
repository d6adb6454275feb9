//! The shared secret of signed STAMP packets: from a file or from the environment, never from the
//! command line, where other users could read it.

use std::path::Path;

use linerate_core::record::{Failure, Fault};
use linerate_proto::stamp::StampKey;

use crate::paths;

/// The variable that holds the key's digits where no file is named.
pub(super) const VARIABLE: &str = "LINERATE_STAMP_KEY";

/// The key in a file of hexadecimal digits.
pub(super) fn read(path: &Path) -> Result<StampKey, Failure> {
    let failure = |reason: String| {
        Failure::new(Fault::Usage, "read key", path.display().to_string(), reason)
            .advise("make one by `openssl rand -hex 32`")
    };
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| paths::unreadable("read key", path, &error))?;
    StampKey::from_hex(&text).ok_or_else(|| failure(NOT_A_KEY.to_owned()))
}

/// The key in the environment, if there is one.
pub(super) fn from_environment() -> Result<Option<StampKey>, Failure> {
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(None) };
    let failure = || {
        Failure::new(Fault::Usage, "read key", VARIABLE, NOT_A_KEY)
            .advise("make one by `openssl rand -hex 32`")
    };
    StampKey::from_hex(&text).map(Some).ok_or_else(failure)
}

const NOT_A_KEY: &str = "not hexadecimal digits of 16 bytes or more";
