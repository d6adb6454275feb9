//! Where the store is.
//!
//! # Source
//! XDG Base Directory Specification 0.8: data in `$XDG_DATA_HOME`, else `~/.local/share`; a
//! relative path in the variable is ignored; a directory that is missing is made with mode 0700.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use linerate_core::record::{Failure, Fault};

/// Path below the data directory.
const BELOW_DATA: &str = "linerate/results.db";

/// The store of this user: `LINERATE_STORE`, else below the XDG data directory.
/// # Errors
/// When neither of them nor `HOME` is set.
pub fn default_path() -> Result<PathBuf, Failure> {
    resolve(|name| std::env::var_os(name))
}

fn resolve(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, Failure> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(file) = set("LINERATE_STORE") {
        return Ok(file);
    }
    if let Some(data) = set("XDG_DATA_HOME").filter(|path| path.is_absolute()) {
        return Ok(data.join(BELOW_DATA));
    }
    if let Some(home) = set("HOME").filter(|path| path.is_absolute()) {
        return Ok(home.join(".local/share").join(BELOW_DATA));
    }
    Err(Failure::new(Fault::System, "find", "the store", "HOME is not set")
        .advise("name a file with --store or LINERATE_STORE"))
}

/// Makes the directory that `path` is to be in.
pub(super) fn make_parent(path: &Path) -> Result<(), Failure> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|error| {
        Failure::new(Fault::System, "make directory", parent.display().to_string(), error)
            .advise("name another place with --store or LINERATE_STORE")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: &str) {
        let value = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        assert_eq!(resolve(value).expect("a place"), PathBuf::from(expected));
    }

    #[test]
    fn the_place_follows_the_xdg_rules() {
        check(&[("LINERATE_STORE", "x.db"), ("XDG_DATA_HOME", "/d")], "x.db");
        check(&[("XDG_DATA_HOME", "/d"), ("HOME", "/h")], "/d/linerate/results.db");
        check(&[("HOME", "/h")], "/h/.local/share/linerate/results.db");
        check(&[("XDG_DATA_HOME", ""), ("HOME", "/h")], "/h/.local/share/linerate/results.db");
        check(
            &[("XDG_DATA_HOME", "relative"), ("HOME", "/h")],
            "/h/.local/share/linerate/results.db",
        );
        let failure = resolve(|_| None).expect_err("nothing is set");
        assert!(failure.to_string().contains("LINERATE_STORE"), "{failure}");
    }
}
