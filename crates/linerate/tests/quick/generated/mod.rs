//! Files that are made from the program are those in the tree: man pages, the schemas of plans,
//! the page of formulas with its plots.
//! `LINERATE_ACCEPT=1` (or `./dev accept`) writes them anew; the change is then read in the diff
//! like any other. The schema of records and the table of metrics are held by linerate-core.

mod theory;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_engine::study::TABLES;
#[cfg(feature = "schema")]
use schemars::schema_for;

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

fn stored(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_default()
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

/// Holds the files in the tree's `directory` to the fresh ones; files that are none of them are
/// refused, or removed when accepting.
fn check_directory(directory: &str, fresh: &BTreeMap<String, String>) {
    for (name, text) in fresh {
        check(&format!("{directory}/{name}"), text);
    }
    let path = root().join(directory);
    for name in texts(&path).keys().filter(|name| !fresh.contains_key(*name)) {
        assert!(accepting(), "{directory}/{name} is not made any more; run ./dev accept");
        std::fs::remove_file(path.join(name)).expect("remove the file");
    }
}

#[test]
fn man_pages_are_current() {
    let made = tempfile::tempdir().expect("a directory for the pages");
    generate(&["man", &made.path().to_string_lossy()]);
    let fresh = texts(made.path());
    assert!(fresh.len() >= 10, "one page for the program and one per command");
    check_directory("man", &fresh);
}

#[test]
fn the_page_of_formulas_and_its_plots_are_current() {
    let sheet = theory::sheet();
    let published = TABLES.iter().map(|table| table.read().expect("a published table"));
    let page = theory::page(&sheet, &published.collect::<Vec<_>>());
    let plots: BTreeMap<_, _> = theory::plots(&sheet).into_iter().collect();
    assert_eq!(page.matches("](theory/").count(), plots.len(), "the page shows every plot once");
    check("docs/theory.md", &page);
    check_directory(&format!("docs/{}", theory::PLOTS), &plots);
}

#[cfg(feature = "schema")]
#[test]
fn the_description_of_the_api_is_current() {
    let fresh = linerate_server::web::openapi();
    if json(&stored("spec/openapi.json")) != fresh {
        let text = serde_json::to_string_pretty(&fresh).expect("it serialises");
        check("spec/openapi.json", &format!("{text}\n"));
    }
}

#[cfg(feature = "schema")]
#[test]
fn schemas_of_plans_are_current() {
    for (document, schema) in [
        ("study", schema_for!(linerate_core::study::StudyPlan)),
        ("lab", schema_for!(linerate_core::lab::LabPlan)),
        ("ceiling", schema_for!(linerate_core::theory::ladder::PathCeiling)),
        ("frame-rates", schema_for!(linerate_core::theory::ladder::FrameRates)),
        ("path", schema_for!(linerate_core::record::PathRun)),
        ("conform", schema_for!(linerate_core::conformance::Conformance)),
    ] {
        let path = format!("spec/{document}.schema.json");
        let fresh = schema.to_value();
        if json(&stored(&path)) != fresh {
            let text = serde_json::to_string_pretty(&fresh).expect("a schema serialises");
            check(&path, &format!("{text}\n"));
        }
        if !accepting() {
            assert_eq!(generate(&["schema", document]), stored(&path), "{document}");
        }
    }
}

#[test]
fn the_printed_schema_of_a_record_is_the_stored_one() {
    assert_eq!(generate(&["schema", "record"]), stored("spec/record.schema.json"));
}

/// A document whose order of keys does not matter; null when it is none.
#[cfg(feature = "schema")]
fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_default()
}
