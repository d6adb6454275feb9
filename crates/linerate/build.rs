//! The commit that a release is made of, for `linerate --version` and `linerate doctor`: that of
//! LINERATE_COMMIT, else git's. Builds for development leave it out, so that a commit does not
//! make them anew.

#![allow(clippy::print_stdout, reason = "how a build script speaks to cargo")]

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=LINERATE_COMMIT");
    let given = std::env::var("LINERATE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = given.or_else(|| if is_release { of_git() } else { None });
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let whole = commit.map_or_else(|| version.clone(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=LINERATE_VERSION={whole}");
}

/// The commit, with a mark where the tree has changes; none without git.
fn of_git() -> Option<String> {
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
