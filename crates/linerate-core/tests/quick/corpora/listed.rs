//! Each reader of this crate that gets what others wrote is run by an entry of `fuzz/entries`.

use std::path::{Path, PathBuf};

use super::readers::ENTRIES;

/// Beginnings of the names of functions that read.
const READS: &[&str] = &[
    "from_toml",
    "from_json",
    "from_json_bytes",
    "from_text",
    "from_csv",
    "from_bytes",
    "from_ne_bytes",
    "from_tzif",
    "from_psconfig",
    "from_ip_packet",
    "at_end_of",
    "read_source",
    "decode",
];

/// Where an entry calls what reads: file, function, entry.
const READERS: &[(&str, &str, &str)] = &[
    ("device/frames.rs", "at_end_of", "host_bytes"),
    ("explain/foreign/encoding.rs", "decode", "explain"),
    ("explain/foreign/mod.rs", "read_source", "explain"),
    ("lab/text.rs", "from_toml", "lab"),
    ("mesh/plan.rs", "from_toml", "mesh_plan"),
    ("mesh/psconfig/mod.rs", "from_psconfig", "psconfig"),
    ("mesh/rules.rs", "from_toml", "mesh_plan"),
    ("path/trace.rs", "from_text", "path_trace"),
    ("policy/text.rs", "from_toml", "policy"),
    ("record/flow.rs", "from_ip_packet", "host_bytes"),
    ("record/tcp_info.rs", "from_ne_bytes", "host_bytes"),
    ("record/upgrade.rs", "from_json", "record"),
    ("schedule/calendar.rs", "from_tzif", "host_bytes"),
    ("schedule/plan.rs", "from_toml", "schedule"),
    ("stats/sketch.rs", "from_bytes", "host_bytes"),
    ("study/published/mod.rs", "from_csv", "published"),
    ("study/toml_text.rs", "from_toml", "study"),
    ("tree/mod.rs", "from_json", "mesh_message"),
    ("tree/mod.rs", "from_json_bytes", "mesh_message"),
];

/// Functions that read what this program brings along: file, function.
const OWN: &[(&str, &str)] = &[
    // A length, not text.
    ("units/frame_len.rs", "from_bytes"),
    // Recipes of the bank are in the program.
    ("lab/bank/recipe.rs", "from_toml"),
    // Read by way of all others.
    ("tree/mod.rs", "from_toml"),
];

/// Public functions that read, by file and name.
fn found() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for path in sources(&root) {
        let text = std::fs::read_to_string(&path).expect("readable");
        let file = path.strip_prefix(&root).expect("below it").display().to_string();
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for rest in product.split("pub fn ").chain(product.split("pub const fn ")).skip(1) {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            if READS.contains(&name) {
                found.push((file.clone(), name.to_owned()));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of sources");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let each = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    paths.flat_map(each).collect()
}

#[test]
fn every_reader_is_run_by_an_entry() {
    let found = found();
    let of = |file: &str, name: &str| READERS.iter().any(|row| (row.0, row.1) == (file, name));
    let missing = found
        .iter()
        .filter(|(file, name)| !of(file, name) && !OWN.contains(&(file.as_str(), name.as_str())));
    let missing: Vec<_> = missing.map(|(file, name)| format!("{file}: {name}")).collect();
    assert!(missing.is_empty(), "without an entry in fuzz/entries: {missing:#?}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/entries");
    for (file, name, entry) in READERS {
        assert!(found.contains(&((*file).to_owned(), (*name).to_owned())), "{file} has no {name}");
        assert!(ENTRIES.contains(entry), "{entry} is no reader of readers.rs");
        let text = std::fs::read_to_string(folder.join(format!("{entry}.rs"))).expect(entry);
        let calls = ["(", "::<"].map(|open| format!("{name}{open}"));
        assert!(calls.iter().any(|it| text.contains(it)), "{entry} does not call {file}'s {name}");
    }
}

#[test]
fn every_entry_has_a_target() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).expect("the manifest");
    for entry in ENTRIES {
        assert!(fuzz.join(format!("fuzz_targets/{entry}.rs")).exists(), "{entry} has no target");
        assert!(manifest.contains(&format!("name = \"{entry}\"")), "{entry} is no [[bin]]");
    }
}
