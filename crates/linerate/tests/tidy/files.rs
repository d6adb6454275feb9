//! What each file must have or must not have: a head comment, a way to be reached, no leftovers,
//! nothing about the place where it was written.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, has_word};
use crate::tree::Text;

/// Marks of unfinished work in comments and text.
const MARKS: &[&str] = &["TODO", "FIXME", "XXX"];
/// Calls that belong to unfinished work.
const UNFINISHED: &[&str] = &["dbg!", "todo!", "unimplemented!"];
/// Directories of one machine, and words about who wrote instead of what is there.
const PRIVATE: &[&str] = &["/work/", "/root/", "subagent"];
/// Where the words above stand as data.
const OWN: &str = "crates/linerate/tests/tidy/";

/// A Rust file that does not begin by saying what it is.
pub(crate) fn head(source: &Source) -> Vec<String> {
    if source.text.starts_with("//!") {
        return Vec::new();
    }
    vec![format!(
        "{}: no head comment; begin with //! what it is, what it leaves out, where its rule comes \
         from",
        source.path
    )]
}

/// Leftover marks in the comments and code of a Rust file.
pub(crate) fn leftovers(source: &Source) -> Vec<String> {
    let mut wrong = marks(&source.path, &source.comments);
    for (at, line) in source.code.lines().enumerate() {
        for call in UNFINISHED.iter().filter(|call| has_word(line, call)) {
            wrong.push(format!("{}:{}: {call} is left over; finish it", source.path, at + 1));
        }
    }
    wrong
}

/// Leftover marks in any text.
pub(crate) fn marks(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for mark in MARKS.iter().filter(|mark| has_word(line, mark)) {
            wrong.push(format!("{path}:{}: {mark} is left over; do it or drop it", at + 1));
        }
    }
    wrong
}

/// Words that speak of the place of writing.
pub(crate) fn private_words(file: &Text) -> Vec<String> {
    let mut wrong = Vec::new();
    if file.path.starts_with(OWN) {
        return wrong;
    }
    for (at, line) in file.text.lines().enumerate() {
        for word in PRIVATE.iter().filter(|word| line.contains(*word)) {
            wrong.push(format!(
                "{}:{}: {word} says nothing to a reader elsewhere; name the thing itself",
                file.path,
                at + 1
            ));
        }
    }
    wrong
}

/// Rust files under `crates/` that no root reaches by `mod`.
pub(crate) fn dead(sources: &[Source]) -> Vec<String> {
    let by_path: BTreeMap<&str, &Source> =
        sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let mut waiting: Vec<&str> = by_path.keys().copied().filter(|path| is_root(path)).collect();
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    while let Some(path) = waiting.pop() {
        if reached.insert(path) {
            let children = children(by_path[path]).into_iter();
            waiting
                .extend(children.filter_map(|child| by_path.get_key_value(&*child)).map(|e| *e.0));
        }
    }
    let dead = by_path.keys().filter(|path| !reached.contains(*path));
    dead.map(|path| format!("{path}: no mod reaches this file; declare it or remove it")).collect()
}

/// Roots of compilation: `src/lib.rs`, `src/main.rs`, test and bench programs, build scripts.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["crates", _, "src", "lib.rs" | "main.rs"] | ["crates", _, "build.rs"] => true,
        ["crates", _, "tests" | "benches" | "examples", _] => true,
        ["crates", _, "tests" | "benches" | "examples", _, "main.rs"] => true,
        // A program that `./dev count` compiles.
        ["crates", "linerate", "tests", "tidy", "counter.rs"] => true,
        ["crates", ..] => false,
        _ => true,
    }
}

/// The paths at which the modules that a file declares may lie.
fn children(source: &Source) -> Vec<String> {
    let (directory, name) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = name.trim_end_matches(".rs");
    let owns_directory = matches!(name, "mod.rs" | "lib.rs" | "main.rs") || is_root(&source.path);
    let below = if owns_directory { directory.to_owned() } else { format!("{directory}/{stem}") };
    let mut paths = Vec::new();
    let lines = source.text.lines().zip(source.code.lines());
    let mut named_path = None;
    for (text, code) in lines {
        if code.trim_start().starts_with("#[path") {
            named_path = text.split('"').nth(1).map(|path| joined(directory, path));
        }
        let Some(module) = declared(code) else { continue };
        match named_path.take() {
            Some(path) => paths.push(path),
            None => {
                paths.push(format!("{below}/{module}.rs"));
                paths.push(format!("{below}/{module}/mod.rs"));
            }
        }
    }
    paths
}

/// A path as seen from a directory, without `..`.
fn joined(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').collect();
    for part in path.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// The name in `mod name;`, whatever its visibility.
fn declared(code: &str) -> Option<&str> {
    let (before, after) = code.trim().split_once("mod ")?;
    let is_declaration = before.is_empty() || before.starts_with("pub") || before.starts_with('#');
    after.strip_suffix(';').filter(|_| is_declaration)
}

fn rust(path: &str, text: &str) -> Source {
    Source::new(path, text)
}

#[test]
fn a_file_without_a_head_is_found() {
    assert_eq!(head(&rust("a.rs", "use std::fmt;\n")).len(), 1);
    assert_eq!(head(&rust("a.rs", "//! A.\n")).len(), 0);
}

#[test]
fn leftovers_are_found_in_comments_and_code_but_not_in_strings() {
    let mark = MARKS[0];
    assert_eq!(leftovers(&rust("a.rs", &format!("// {mark} later\n"))).len(), 1);
    assert_eq!(leftovers(&rust("a.rs", "fn a() { dbg!(1); }\n")).len(), 1);
    assert_eq!(leftovers(&rust("a.rs", &format!("let a = \"{mark}\";\n"))).len(), 0);
    assert_eq!(marks("a.md", &format!("x\n{mark}: y\n")).len(), 1);
}

#[test]
fn words_about_the_place_of_writing_are_found() {
    let text = format!("See {}notes.\n", PRIVATE[0]);
    let file = Text { path: "docs/a.md".to_owned(), text };
    assert_eq!(private_words(&file).len(), 1);
}

#[test]
fn a_file_that_no_module_declares_is_found() {
    let sources = [
        rust(
            "crates/a/src/lib.rs",
            "mod b;\npub(crate) mod c;\n// mod e;\n#[path = \"z.rs\"]\nmod y;",
        ),
        rust("crates/a/src/b.rs", "mod d;\n"),
        rust("crates/a/src/b/d.rs", ""),
        rust("crates/a/src/c/mod.rs", ""),
        rust("crates/a/src/z.rs", ""),
        rust("crates/a/src/e.rs", ""),
        rust("crates/a/tests/t/main.rs", "mod u;\n#[path = \"../support/mod.rs\"]\nmod support;"),
        rust("crates/a/tests/t/u.rs", ""),
        rust("crates/a/tests/support/mod.rs", ""),
    ];
    let wrong = dead(&sources);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].starts_with("crates/a/src/e.rs:"), "{wrong:?}");
}
