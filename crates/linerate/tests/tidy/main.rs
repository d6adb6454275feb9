//! The rules of STYLE.md and ARCHITECTURE.md that a program can hold, as tests over the tree.
//!
//! Each message names the file and the fix. Each check has a test of its own with a planted
//! violation, in the file of the check. What a compiler, clippy or rustfmt holds is left to them.

mod arrows;
mod calls;
mod causes;
mod circles;
mod count;
mod coverage;
mod faults;
mod files;
mod house;
mod names;
mod readme;
mod size;
mod source;
mod tree;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use coverage::Kind;
use linerate_core::record::{CAUSES, METRICS};
use source::Source;
use tree::Text;

const EXCEPTIONS: &str = "crates/linerate/tests/tidy/exceptions.txt";
const CIRCLES: &str = "crates/linerate/tests/tidy/circles.txt";
const NAMES: &str = "crates/linerate/tests/tidy/names.txt";

fn root() -> PathBuf {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_dir.ancestors().nth(2).expect("the crate lies two levels down").to_owned()
}

/// The tree, read once for all checks.
static TEXTS: LazyLock<Vec<Text>> = LazyLock::new(|| tree::texts(&root()));
static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| tree::sources(&TEXTS));

/// The text of one file; empty when it is absent.
fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// Whether lists that only shrink are to be written anew.
fn accepts() -> bool {
    std::env::var_os("LINERATE_ACCEPT").is_some_and(|value| value == "1")
}

/// Fails with one line for each violation.
fn hold(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} to mend:\n{}\n", wrong.len(), wrong.join("\n"));
}

/// Holds what is uncovered to the list of exceptions, or shrinks the list when accepting.
fn hold_listed(kind: &Kind, uncovered: &BTreeSet<String>) {
    static LIST: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = LIST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let list = read(EXCEPTIONS);
    if accepts() {
        let fresh = coverage::shrink(kind, uncovered, &list);
        std::fs::write(root().join(EXCEPTIONS), fresh).expect("write the list");
    }
    hold(&coverage::judge(kind, uncovered, &read(EXCEPTIONS)));
}

#[test]
fn functions_and_files_are_short() {
    hold(&SOURCES.iter().flat_map(size::lengths).collect::<Vec<_>>());
}

/// Writes a list anew that only shrinks, when accepting, and returns it.
fn list(path: &str, shrunk: impl Fn(&str) -> String) -> String {
    if accepts() {
        std::fs::write(root().join(path), shrunk(&read(path))).expect("write the list");
    }
    read(path)
}

#[test]
fn no_new_circle_of_imports_comes() {
    let crates: BTreeSet<&str> = SOURCES.iter().map(count::crate_name).collect();
    let folders = crates.iter().map(|name| format!("crates/{name}/src/"));
    let circles: Vec<_> = folders.flat_map(|folder| circles::circles(&folder, &SOURCES)).collect();
    let list = list(CIRCLES, |list| circles::shrunk(&circles, list));
    hold(&circles::unlisted(&circles, &list));
}

#[test]
fn names_and_docs_say_what_they_name() {
    let broken = names::broken(&SOURCES);
    let list = list(NAMES, |list| names::shrunk(&broken, list));
    hold(&names::above(&broken, &list));
}

#[test]
fn lines_fit_a_window() {
    let code = SOURCES.iter().flat_map(|file| size::widths(&file.path, &file.text, &file.code));
    let comments = SOURCES.iter().flat_map(size::comment_widths);
    let scripts = TEXTS.iter().filter(|file| file.text.starts_with("#!"));
    let scripts = scripts.flat_map(|file| size::widths(&file.path, &file.text, &file.text));
    hold(&code.chain(comments).chain(scripts).collect::<Vec<_>>());
}

#[test]
fn arrows_between_crates_point_one_way() {
    let manifests = TEXTS.iter().filter_map(|file| {
        let folder = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        Some(arrows::check(folder, &file.text))
    });
    hold(&manifests.flatten().collect::<Vec<_>>());
}

#[test]
fn clocks_prints_input_and_unsafe_stay_in_their_place() {
    let reasons = SOURCES.iter().flat_map(calls::unexplained_unsafe);
    hold(&SOURCES.iter().flat_map(calls::check).chain(reasons).collect::<Vec<_>>());
}

#[test]
fn no_decision_is_taken_by_the_text_of_a_failure() {
    hold(&SOURCES.iter().flat_map(calls::read_texts).collect::<Vec<_>>());
}

#[test]
fn every_source_begins_by_saying_what_it_is() {
    hold(&SOURCES.iter().flat_map(files::head).collect::<Vec<_>>());
}

#[test]
fn every_source_is_reached() {
    hold(&files::dead(&SOURCES));
}

#[test]
fn nothing_is_left_over() {
    let plain = TEXTS.iter().filter(|file| !file.path.ends_with(".rs"));
    let plain = plain.flat_map(|file| files::marks(&file.path, &file.text));
    hold(&SOURCES.iter().flat_map(files::leftovers).chain(plain).collect::<Vec<_>>());
}

#[test]
fn the_text_speaks_of_networks_alone() {
    hold(&TEXTS.iter().flat_map(files::private_words).collect::<Vec<_>>());
}

#[test]
fn every_metric_is_defined_and_used() {
    let page = read("spec/metrics.md");
    let undefined = METRICS.iter().filter(|row| !page.contains(&format!("`{}`", row.id)));
    hold(
        &undefined
            .map(|row| format!("spec/metrics.md: `{}` is missing; run ./dev accept", row.id))
            .collect::<Vec<_>>(),
    );
    let rows: Vec<_> = METRICS.iter().map(|row| (format!("{:?}", row.id), row.id.key())).collect();
    hold_listed(&coverage::METRIC, &coverage::unused_metrics(&rows, &SOURCES));
}

#[test]
fn every_caveat_is_raised_and_explained() {
    let table = SOURCES.iter().find(|source| source.path.ends_with("record/caveat.rs"));
    let variants = coverage::variants(table.expect("caveats have a file"), "CaveatCode");
    assert!(variants.len() > 10, "the enum was found: {variants:?}");
    hold(&coverage::caveat_headings(&variants, &read("docs/manual/caveats.md")));
    hold_listed(&coverage::CAVEAT, &coverage::unraised_caveats(&variants, &SOURCES));
}

#[test]
fn every_cause_has_a_rule_a_remedy_a_planted_case_a_twin_and_a_manual_row() {
    let tree = causes::Tree::read(&TEXTS);
    hold(&CAUSES.iter().flat_map(|row| tree.holes(row)).collect::<Vec<_>>());
}

#[test]
fn every_flag_has_a_help_text_and_a_test() {
    let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["generate", "flags"])
        .output()
        .expect("the program starts");
    let flags = coverage::flags(&String::from_utf8_lossy(&output.stdout));
    hold(&coverage::bare_flags(&flags));
    hold_listed(&coverage::FLAG, &coverage::untested_flags(&flags, &SOURCES));
}

#[test]
fn locked_packages_are_few_and_free() {
    hold(&house::package_count(&read("Cargo.lock")));
    hold(&house::package_count_by_default(&metadata(&[])));
    hold(&house::licences(&metadata(&["--features=linerate/full"])));
    let without_web = metadata(&["--no-default-features"]);
    hold(&house::package_count_without_web(&without_web));
}

/// What `cargo metadata` says of a build with these features.
fn metadata(features: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--locked"])
        .arg("--filter-platform=x86_64-unknown-linux-gnu")
        .args(features)
        .current_dir(root())
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {said}");
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

#[test]
fn planted_faults_have_their_place() {
    hold(&faults::misplaced(&read("testdata/planted_faults.toml"), &TEXTS));
}

#[test]
fn the_changelog_is_open() {
    hold(&house::changelog(&read("CHANGELOG.md")));
}

#[test]
fn every_protocol_has_a_page_and_every_page_that_is_named_exists() {
    hold(&[house::protocol_pages(&TEXTS), house::lost_pages(&TEXTS)].concat());
}

#[test]
fn users_read_the_words_of_the_field() {
    let avoided = words::avoided(&read("docs/glossary.md"));
    assert!(avoided.len() > 10, "the table was found: {avoided:?}");
    hold(&[words::strange_words(&TEXTS, &avoided), words::riddles(&TEXTS)].concat());
}

#[test]
fn a_letter_is_the_same_flag_in_every_command() {
    hold(&words::letters(&TEXTS));
}

#[test]
fn the_readme_shows_what_the_program_prints() {
    let folder = tempfile::tempdir().expect("a folder for the example's file");
    let example = root().join("testdata/iperf3/window.json");
    std::fs::copy(example, folder.path().join("iperf3.json")).expect("copy the example's file");
    let page = read("README.md");
    let examples = readme::examples(&page);
    assert!(examples.len() >= 2, "the examples were found: {examples:?}");
    let program = env!("CARGO_BIN_EXE_linerate");
    hold(
        &examples
            .iter()
            .flat_map(|example| example.wrong(program, folder.path()))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn pages_for_contributors_name_files_that_exist() {
    let pages = TEXTS.iter().filter(|file| {
        ["CONTRIBUTING.md", "ARCHITECTURE.md", "STYLE.md"].contains(&file.path.as_str())
    });
    hold(&pages.flat_map(|page| house::lost_files(page, &TEXTS)).collect::<Vec<_>>());
}
