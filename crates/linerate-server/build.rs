//! Puts the page's files into the program: a list of paths and contents, made of web/dist. Without
//! that folder the list is empty, and the server shows a page of one file.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The built page, as seen from this crate.
const DIST: &str = "../../web/dist";

fn main() {
    let mut said = std::io::stdout();
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = root.join(DIST);
    let mut files = Vec::new();
    gather(&dist, &mut files);
    files.sort();
    let mut text = String::from("pub(super) const FILES: &[(&str, &[u8])] = &[\n");
    for file in &files {
        let name = file.strip_prefix(&dist).unwrap_or(file).display();
        let _ =
            writeln!(text, "    (\"/{name}\", include_bytes!({:?})),", file.display().to_string());
    }
    text.push_str("];\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default()).join("page_files.rs");
    if let Err(error) = std::fs::write(&out, text) {
        let _ = writeln!(said, "cargo::error={}: {error}", out.display());
    }
    let _ = writeln!(said, "cargo::rerun-if-changed=build.rs");
    // A folder that is not there would make every build begin anew: its parent tells when it comes.
    let watched = [dist, root.join("../../web")].into_iter().find(|it| it.exists());
    let watched = watched.unwrap_or_else(|| root.join("src/web"));
    let _ = writeln!(said, "cargo::rerun-if-changed={}", watched.display());
}

/// Every file below a folder.
fn gather(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            gather(&path, files);
        } else if path.extension().is_none_or(|end| end != "map") {
            files.push(path);
        }
    }
}
