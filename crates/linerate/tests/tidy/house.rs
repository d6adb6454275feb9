//! The house around the code: locked packages and their licences, the changelog, a page of
//! `spec/` for each protocol.

use std::collections::BTreeSet;

use crate::tree::Text;

/// Packages of the default features, our own included: every one is built, read and kept up by
/// somebody.
const PACKAGES: usize = 200;

/// Packages in Cargo.lock, with those of the feature `full` and of other systems.
const PACKAGES_LOCKED: usize = 400;

/// Packages of the command line alone, without the server's feature `web`.
const PACKAGES_WITHOUT_WEB: usize = 150;

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
    if count <= PACKAGES_LOCKED {
        return Vec::new();
    }
    vec![format!(
        "Cargo.lock: {count} packages, at most {PACKAGES_LOCKED}; drop a dependency, or raise the \
         budget in tidy/house.rs and say why in docs/decisions.md"
    )]
}

/// More packages than the budget allows in a build of the default features, whose `cargo metadata`
/// this is.
pub(crate) fn package_count_by_default(metadata: &serde_json::Value) -> Vec<String> {
    let count = metadata["resolve"]["nodes"].as_array().map_or(usize::MAX, Vec::len);
    if count <= PACKAGES {
        return Vec::new();
    }
    vec![format!(
        "by default: {count} packages, at most {PACKAGES}; drop a dependency, put it behind a \
         feature, or raise the budget in tidy/house.rs and say why in docs/decisions.md"
    )]
}

/// More packages than the budget allows in a build whose `cargo metadata` this is, without `web`.
pub(crate) fn package_count_without_web(metadata: &serde_json::Value) -> Vec<String> {
    let count = metadata["resolve"]["nodes"].as_array().map_or(usize::MAX, Vec::len);
    if count <= PACKAGES_WITHOUT_WEB {
        return Vec::new();
    }
    vec![format!(
        "without the feature web: {count} packages, at most {PACKAGES_WITHOUT_WEB}; drop a dependency, \
         put it behind that feature, or raise the budget in tidy/house.rs and say why in \
         docs/decisions.md"
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

/// Entries of a release that somebody still reads.
const ENTRIES: usize = 120;

/// A changelog begins with what is not released yet, and no section is too long to be read.
pub(crate) fn changelog(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut sections = text.split("\n## ").skip(1).map(|section| {
        let (name, entries) = section.split_once('\n').unwrap_or((section, ""));
        (name.trim(), entries.lines().filter(|line| line.starts_with("- ")).count())
    });
    let long = sections.clone().filter(|(_, entries)| *entries > ENTRIES);
    wrong.extend(long.map(|(name, entries)| {
        format!(
            "CHANGELOG.md: {name} has {entries} entries, at most {ENTRIES}; one line for each \
             effect on users, or a release"
        )
    }));
    if sections.next().is_none_or(|(name, _)| name != "Unreleased") {
        wrong.push("CHANGELOG.md: the first section is not ## Unreleased; add it".to_owned());
    }
    wrong
}

/// Folders of linerate-proto whose files each cite a standard, so that no page is needed.
const STANDARD: &[&str] = &["frame"];

/// Folders of linerate-proto without a page in `spec/`: neither of the folder's name nor one that
/// its files point to.
pub(crate) fn protocol_pages(files: &[Text]) -> Vec<String> {
    let proto = files.iter().filter_map(|file| {
        let (folder, _) = file.path.strip_prefix("crates/linerate-proto/src/")?.split_once('/')?;
        Some((folder, file))
    });
    let folders: BTreeSet<&str> = proto.clone().map(|(folder, _)| folder).collect();
    let pointed: BTreeSet<&str> =
        proto.filter(|(_, file)| !pages(&file.text).is_empty()).map(|(folder, _)| folder).collect();
    folders
        .difference(&pointed)
        .filter(|folder| !STANDARD.contains(folder))
        .map(|folder| format!("spec/{folder}.md"))
        .filter(|page| !files.iter().any(|file| file.path == *page))
        .map(|page| {
            format!("{page}: missing; describe the bytes, their source and where we deviate")
        })
        .collect()
}

/// Pages that a file points to and that are not there.
pub(crate) fn lost_pages(files: &[Text]) -> Vec<String> {
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let readers = files.iter().filter(|file| !file.path.starts_with("crates/linerate/tests/tidy/"));
    let pointers =
        readers.flat_map(|file| pages(&file.text).into_iter().map(move |page| (file, page)));
    pointers
        .filter(|(_, page)| !paths.contains(page.as_str()))
        .map(|(file, page)| format!("{}: points to {page}, which is not there", file.path))
        .collect()
}

/// Files and folders of the project that a page for its readers names and that are not there.
pub(crate) fn lost_files(page: &Text, files: &[Text]) -> Vec<String> {
    let is_there = |path: &str| {
        files.iter().any(|file| {
            let rest = file.path.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || path.ends_with('/') || rest.starts_with('/'))
        })
    };
    let words = page.text.split(|c: char| c.is_whitespace() || "`(),;".contains(c));
    words
        .map(|word| word.trim_end_matches(['.', ':']))
        .filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)))
        .filter(|word| !word.contains(['{', '*', '<']) && !word.contains("NAME"))
        .filter(|word| !is_there(word))
        .map(|word| format!("{}: names {word}, which is not there", page.path))
        .collect()
}

/// With what a path from the root of the tree begins.
const FOLDERS: &[&str] = &["crates/", "testdata/", "studies/", "spec/", "fuzz/", "bench/", ".ci/"];

/// Every `spec/name.md` and `docs/name.md` that a text names. Capitals stand for any name.
fn pages(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !"/._-".contains(c))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.starts_with("spec/") || word.starts_with("docs/"))
        .filter(|word| word.ends_with(".md") && !word.contains(|c: char| c.is_ascii_uppercase()))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_lock_file_over_the_budget_is_found() {
    assert_eq!(package_count(&"[[package]]\n".repeat(PACKAGES_LOCKED)).len(), 0);
    assert_eq!(package_count(&"[[package]]\n".repeat(PACKAGES_LOCKED + 1)).len(), 1);
}

#[test]
fn a_command_line_over_its_own_budget_is_found() {
    let of = |count| serde_json::json!({ "resolve": { "nodes": vec![0; count] } });
    assert_eq!(package_count_by_default(&of(PACKAGES)).len(), 0);
    assert_eq!(package_count_by_default(&of(PACKAGES + 1)).len(), 1);
    assert_eq!(package_count_without_web(&of(PACKAGES_WITHOUT_WEB)).len(), 0);
    assert_eq!(package_count_without_web(&of(PACKAGES_WITHOUT_WEB + 1)).len(), 1);
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
fn a_changelog_without_an_open_section_or_too_long_to_read_is_found() {
    assert_eq!(changelog("# Changelog\n\n## 0.1.0\n").len(), 1);
    assert_eq!(changelog("# Changelog\n\n## Unreleased\n").len(), 0);
    assert_eq!(changelog("# Changelog\n\n## 0.1.0\n\n## Unreleased\n").len(), 1);
    let long = format!("# Changelog\n\n## Unreleased\n\n## 0.1.0\n{}", "- a\n".repeat(ENTRIES + 1));
    assert_eq!(changelog(&long).len(), 1);
}

#[test]
fn a_protocol_without_a_page_is_found() {
    let file = |path: &str| Text { path: path.to_owned(), text: String::new() };
    let mut files = vec![file("crates/linerate-proto/src/stamp/wire.rs")];
    assert_eq!(protocol_pages(&files).len(), 1);
    files.push(file("spec/stamp.md"));
    assert_eq!(protocol_pages(&files).len(), 0);
}

#[test]
fn a_file_that_a_page_names_but_that_is_absent_is_found() {
    let file = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
    let files = [file("crates/a/src/b/c.rs", "")];
    let lost = |text: &str| lost_files(&file("A.md", text), &files).len();
    assert_eq!(lost("In `crates/a/src/b/c.rs`, `crates/a/src/b/` and crates/a/src/b."), 0);
    assert_eq!(lost("In `crates/a/src/NAME/` and `crates/a/{b,c}`, or `src/d.rs`."), 0);
    assert_eq!(lost("In `crates/a/src/b/d.rs` (crates/a/src/c/) and crates/a/src/b/c."), 3);
}

#[test]
fn a_page_that_is_named_but_absent_is_found() {
    let file = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
    let code = file("crates/linerate-proto/src/echo/a.rs", "//! As `spec/udp-echo.md` says.\n");
    let mut files = vec![code, file("docs/a.md", "See spec/NAME.md.\n")];
    assert_eq!(protocol_pages(&files), Vec::<String>::new());
    assert_eq!(lost_pages(&files).len(), 1);
    files.push(file("spec/udp-echo.md", ""));
    assert_eq!(lost_pages(&files), Vec::<String>::new());
}
