//! The language of what a user reads: help texts (from the man pages, which `quick/generated` holds
//! to the flags), the manual, the schemas, and reports (by their golden files). The words to avoid
//! are a table of docs/glossary.md.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::has_word;
use crate::tree::Text;

/// Letters with another flag in some command: of ping(8), tcpdump(1) and git-log(1).
const LETTERS: &[(&str, &str)] = &[
    ("linerate-ping", "i"),
    ("linerate-ping", "M"),
    ("linerate-ping", "t"),
    ("linerate-ping", "w"),
    ("linerate-stamp", "w"),
    ("linerate-conform", "c"),
    ("linerate-conform", "i"),
    ("linerate-export", "n"),
    ("linerate-history", "n"),
    ("linerate-path-check", "c"),
];

/// The first column of the glossary's table of words to avoid.
pub(crate) fn avoided(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().skip_while(|line| *line != "## Words to avoid");
    let rows = rows.skip(1).take_while(|line| !line.starts_with("## "));
    let cells = rows.filter_map(|line| line.strip_prefix("| ")?.split_once(" | ")).map(|it| it.0);
    let words = cells.filter(|cell| *cell != "avoid").flat_map(|cell| cell.split(", "));
    words.map(str::to_owned).collect()
}

/// Pages for users that use a word to avoid.
pub(crate) fn strange_words(files: &[Text], avoided: &[String]) -> Vec<String> {
    let pages = ["README.md", "docs/lab.md", "docs/studies.md", "docs/compare.md"];
    let is_read = |path: &str| {
        let folders = ["man/", "docs/manual/", "spec/", "crates/linerate-report/tests/golden/"];
        let endings = [".md", ".1", ".schema.json", ".txt"];
        let is_page = endings.iter().any(|ending| path.ends_with(ending));
        pages.contains(&path) || is_page && folders.iter().any(|it| path.starts_with(it))
    };
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_read(&file.path)) {
        // A description in a schema has its line ends as two characters.
        let text = file.text.replace("\\n", " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        for word in avoided.iter().filter(|word| has_word(&text, word)) {
            found.push(format!("{}: {word:?}; docs/glossary.md has a better word", file.path));
        }
    }
    found
}

/// Flags of a man page as clap_mangen writes them: letter, first long name, help.
fn flags(page: &str) -> Vec<(Option<String>, String, String)> {
    let plain = page.replace("\\fB", "").replace("\\fI", "").replace("\\fR", "").replace('\\', "");
    let lines: Vec<&str> = plain.lines().collect();
    let heads = lines.windows(3).filter(|three| three[0] == ".TP" && three[1].starts_with('-'));
    heads
        .map(|three| {
            let names: Vec<&str> = three[1].split([',', ' ', '[', '=']).collect();
            let long = names.iter().find_map(|name| name.strip_prefix("--")).unwrap_or_default();
            let letter = names.iter().find_map(|name| {
                name.strip_prefix('-').filter(|rest| rest.len() == 1 && !rest.starts_with('-'))
            });
            (letter.map(str::to_owned), long.to_owned(), three[2].to_owned())
        })
        .collect()
}

/// The commands' own man pages; those of other programs' command lines have the flags of these.
fn own_pages(files: &[Text]) -> impl Iterator<Item = (&str, &Text)> {
    files.iter().filter_map(|file| {
        let name = file.path.strip_prefix("man/")?.strip_suffix(".1")?;
        (name != "linerate-iperf3").then_some((name, file))
    })
}

/// Letters that stand for different flags in different commands.
pub(crate) fn letters(files: &[Text]) -> Vec<String> {
    let mut flags_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, file) in own_pages(files) {
        for (letter, long, _) in flags(&file.text) {
            let Some(letter) = letter.filter(|it| !LETTERS.contains(&(name, it.as_str()))) else {
                continue;
            };
            flags_of.entry(letter).or_default().insert(long);
        }
    }
    let twice = flags_of.iter().filter(|(_, longs)| longs.len() > 1);
    twice.map(|(letter, longs)| format!("-{letter} stands for {longs:?}; choose one")).collect()
}

/// Help texts that open a clause with "what" instead of naming the thing.
pub(crate) fn riddles(files: &[Text]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, file) in own_pages(files) {
        for (_, long, help) in flags(&file.text) {
            if has_word(&help.to_lowercase(), "what") {
                found.push(format!("{name} --{long}: name the thing instead of \"what\": {help}"));
            }
        }
    }
    found
}

#[test]
fn a_word_to_avoid_is_found_across_a_line_break() {
    let glossary = "## Words to avoid\n| avoid | say |\n|---|---|\n| by itself, told | x |\n## B\n";
    assert_eq!(avoided(glossary), ["by itself", "told"]);
    let file = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
    let page = file("docs/manual/a.md", "each by\nitself, untold\n");
    let other = file("docs/decisions.md", "told");
    assert_eq!(strange_words(&[page, other], &avoided(glossary)).len(), 1);
}

#[test]
fn a_letter_with_two_meanings_and_a_riddle_are_found() {
    let page = |path: &str, flag: &str| Text {
        path: path.to_owned(),
        text: format!(".TP\n\\fB\\-b\\fR, \\fB\\-\\-{flag}\\fR \\fI<N>\\fR\nWhat is sent\n"),
    };
    let files = [page("man/linerate-a.1", "rate"), page("man/linerate-b.1", "bitrate")];
    assert_eq!(letters(&files).len(), 1);
    assert_eq!(letters(&files[..1]), Vec::<String>::new());
    assert_eq!(riddles(&files).len(), 2);
}
