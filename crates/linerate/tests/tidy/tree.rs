//! The files of the tree, as text. Build output, the store's files and version control stay out.

use std::path::Path;

use crate::source::Source;

/// A text file.
pub(crate) struct Text {
    /// From the root of the tree, with `/` between parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Directories that hold nothing of the project's own.
const SKIPPED: &[&str] = &["target", ".git", "node_modules", "dist"];

/// Every text file of the project, by path.
pub(crate) fn texts(root: &Path) -> Vec<Text> {
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory).expect("read a directory of the tree") {
            let path = entry.expect("read a directory of the tree").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // A report that `./dev demo` left lies at the top; the crate of that name does not.
            let is_report = name.starts_with("linerate-report") && directory == root;
            if SKIPPED.contains(&name.as_str()) || is_report {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let path = path.strip_prefix(root).expect("found under the root");
                found.push(Text { path: path.to_string_lossy().into_owned(), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Every Rust file of the project.
pub(crate) fn sources(texts: &[Text]) -> Vec<Source> {
    texts
        .iter()
        .filter(|file| file.path.ends_with(".rs"))
        .map(|file| Source::new(&file.path, &file.text))
        .collect()
}

/// Whether `path` lies in the crate `name` of `crates/`.
pub(crate) fn in_crate(path: &str, name: &str) -> bool {
    path.strip_prefix("crates/")
        .and_then(|rest| rest.strip_prefix(name))
        .is_some_and(|rest| rest.starts_with('/'))
}
