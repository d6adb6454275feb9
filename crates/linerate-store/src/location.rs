//! Where the store is.
//!
//! # Source
//! XDG Base Directory Specification 0.8: data in `$XDG_DATA_HOME`, else `~/.local/share`; a
//! relative path in the variable is ignored; a directory that is missing is made with mode 0700.
//! None is made for a file that a user named: a missing one is more often a slip than a wish.

use std::ffi::OsString;
use std::io::ErrorKind;
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
    let named = variable("LINERATE_STORE").filter(|value| !value.is_empty());
    named.map(PathBuf::from).or_else(|| below_data(variable)).ok_or_else(|| {
        Failure::new(Fault::System, "find", "the store", "HOME is not set")
            .advise("name a file with --store or LINERATE_STORE")
    })
}

/// The store of this user where no variable names a file.
fn below_data(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME");
    let data = data.or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    data.map(|data| data.join(BELOW_DATA))
}

/// Makes the directory of this user's stores where `path` is to be in it.
/// # Errors
/// When it cannot be made, and where any other is not there.
pub(super) fn make_parent(path: &Path) -> Result<(), Failure> {
    check_place(path)?;
    let Some(parent) = parent(path).filter(|parent| !parent.exists()) else { return Ok(()) };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|error| {
        Failure::new(Fault::System, "make directory", parent.display().to_string(), error)
            .advise("name another place with --store or LINERATE_STORE")
    })
}

/// Checks that a store can have its place at `path`, as far as directories tell.
/// # Errors
/// Where its directory is not there and is not that of this user's stores, which is made.
pub fn check_place(path: &Path) -> Result<(), Failure> {
    let Some(parent) = parent(path) else { return Ok(()) };
    // What else is wrong, opening the file tells.
    let known = std::fs::metadata(parent);
    let missing = known.is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let own = below_data(|name| std::env::var_os(name));
    if !missing || own.is_some_and(|own| own.parent() == Some(parent)) {
        return Ok(());
    }
    let reason = "no such file or directory";
    Err(Failure::new(Fault::Usage, "open store", path.display().to_string(), reason)
        .advise(format!("make {} first, or name another place with --store", parent.display())))
}

/// The directory of a file, where its name has one.
fn parent(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| !parent.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_location(variables: &[(&str, &str)], expected: &str) {
        let value = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        assert_eq!(resolve(value).expect("a place"), PathBuf::from(expected));
    }

    #[test]
    fn the_place_follows_the_xdg_rules() {
        assert_location(&[("LINERATE_STORE", "x.db"), ("XDG_DATA_HOME", "/d")], "x.db");
        assert_location(&[("XDG_DATA_HOME", "/d"), ("HOME", "/h")], "/d/linerate/results.db");
        assert_location(&[("HOME", "/h")], "/h/.local/share/linerate/results.db");
        assert_location(
            &[("XDG_DATA_HOME", ""), ("HOME", "/h")],
            "/h/.local/share/linerate/results.db",
        );
        assert_location(
            &[("XDG_DATA_HOME", "relative"), ("HOME", "/h")],
            "/h/.local/share/linerate/results.db",
        );
        let failure = resolve(|_| None).expect_err("nothing is set");
        assert!(failure.to_string().contains("LINERATE_STORE"), "{failure}");
    }
}
