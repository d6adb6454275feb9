//! Files that are made from the code are those in the tree: man pages, the table of metrics, the
//! schemas. `LINERATE_ACCEPT=1` (or `./dev accept`) writes them anew; the change is then read in
//! the diff like any other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn generate(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("generate")
        .args(arguments)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("generated text is UTF-8")
}

fn accepting() -> bool {
    std::env::var_os("LINERATE_ACCEPT").is_some_and(|value| value == "1")
}

/// Holds the file at `path` to `fresh`, or writes it when accepting.
fn check(path: &str, fresh: &str) {
    let file = root().join(path);
    if accepting() {
        let directory = file.parent().expect("the path names a directory");
        std::fs::create_dir_all(directory).expect("make the directory");
        std::fs::write(&file, fresh).expect("write the file");
        return;
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        stored == fresh,
        "{path} is not what the code says; run ./dev accept and read the diff"
    );
}

/// The files of a directory by name.
fn texts(directory: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return BTreeMap::new() };
    entries
        .map(|entry| entry.expect("read the directory"))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(entry.path()).expect("read a page"))
        })
        .collect()
}

#[test]
fn man_pages_are_current() {
    let made = tempfile::tempdir().expect("a directory for the pages");
    generate(&["man", &made.path().to_string_lossy()]);
    let fresh = texts(made.path());
    assert!(fresh.len() >= 10, "one page for the program and one per command");
    for (name, page) in &fresh {
        check(&format!("man/{name}"), page);
    }
    for name in texts(&root().join("man")).keys().filter(|name| !fresh.contains_key(*name)) {
        assert!(accepting(), "man/{name} is a page of no command; run ./dev accept");
        std::fs::remove_file(root().join("man").join(name)).expect("remove the page");
    }
}

#[test]
fn the_table_of_metrics_is_current() {
    check("spec/metrics.md", &generate(&["metrics"]));
}

#[test]
fn schemas_are_current() {
    for document in ["record", "study", "lab"] {
        check(&format!("spec/{document}.schema.json"), &generate(&["schema", document]));
    }
}
