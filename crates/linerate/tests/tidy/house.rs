//! The house around the code: locked packages and their licences, the changelog, a page of
//! `spec/` for each protocol.

use std::collections::BTreeSet;

use crate::tree::Text;

/// Packages in Cargo.lock, our own included: every one is built, read and kept up by somebody.
const PACKAGES: usize = 150;

/// Licences that go with MIT OR Apache-2.0 without further duties for who passes linerate on.
const LICENCES: &[&str] = &[
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "0BSD",
];

/// More locked packages than the budget allows.
pub(crate) fn package_count(lock: &str) -> Vec<String> {
    let count = lock.lines().filter(|line| *line == "[[package]]").count();
    if count <= PACKAGES {
        return Vec::new();
    }
    vec![format!(
        "Cargo.lock: {count} packages, at most {PACKAGES}; drop a dependency, or raise the budget \
         in tidy/house.rs and say why in docs/decisions.md"
    )]
}

/// Packages of `cargo metadata` whose licence is not on the list.
pub(crate) fn licences(metadata: &serde_json::Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let refused =
        packages.iter().filter(|package| !package["license"].as_str().is_some_and(is_allowed));
    refused
        .map(|package| {
            format!(
                "{} {}: licence {} is not on the list of tidy/house.rs; drop the package or judge \
                 its licence",
                package["name"].as_str().unwrap_or("?"),
                package["version"].as_str().unwrap_or("?"),
                package["license"]
            )
        })
        .collect()
}

/// Whether one choice of an SPDX expression has allowed parts only.
fn is_allowed(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    let mut choices = plain.split(" OR ");
    choices.any(|choice| choice.split(" AND ").all(|part| LICENCES.contains(&part.trim())))
}

/// A changelog needs a place for what is not released yet.
pub(crate) fn changelog(text: &str) -> Vec<String> {
    if text.lines().any(|line| line.trim_end() == "## Unreleased") {
        return Vec::new();
    }
    vec!["CHANGELOG.md: no section ## Unreleased; add it on top".to_owned()]
}

/// Folders of linerate-proto without a page in `spec/`.
pub(crate) fn protocol_pages(files: &[Text]) -> Vec<String> {
    let folders: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix("crates/linerate-proto/src/")?.split_once('/'))
        .map(|(folder, _)| folder)
        .collect();
    folders
        .into_iter()
        .map(|folder| format!("spec/{folder}.md"))
        .filter(|page| !files.iter().any(|file| file.path == *page))
        .map(|page| {
            format!("{page}: missing; describe the bytes, their source and where we deviate")
        })
        .collect()
}

#[test]
fn a_lock_file_over_the_budget_is_found() {
    assert_eq!(package_count(&"[[package]]\n".repeat(PACKAGES)).len(), 0);
    assert_eq!(package_count(&"[[package]]\n".repeat(PACKAGES + 1)).len(), 1);
}

#[test]
fn a_licence_that_is_not_on_the_list_is_found() {
    let package =
        |licence: &str| serde_json::json!({"name": "a", "version": "1", "license": licence});
    let wrong =
        |licence: &str| licences(&serde_json::json!({"packages": [package(licence)]})).len();
    assert_eq!(wrong("MIT OR Apache-2.0"), 0);
    assert_eq!(wrong("Unlicense/MIT"), 0);
    assert_eq!(wrong("(MIT OR Apache-2.0) AND Unicode-3.0"), 0);
    assert_eq!(wrong("GPL-3.0-only"), 1);
    assert_eq!(wrong("MIT AND GPL-2.0"), 1);
}

#[test]
fn a_changelog_without_an_open_section_is_found() {
    assert_eq!(changelog("# Changelog\n\n## 0.1.0\n").len(), 1);
    assert_eq!(changelog("# Changelog\n\n## Unreleased\n").len(), 0);
}

#[test]
fn a_protocol_without_a_page_is_found() {
    let file = |path: &str| Text { path: path.to_owned(), text: String::new() };
    let mut files = vec![file("crates/linerate-proto/src/stamp/wire.rs")];
    assert_eq!(protocol_pages(&files).len(), 1);
    files.push(file("spec/stamp.md"));
    assert_eq!(protocol_pages(&files).len(), 0);
}
