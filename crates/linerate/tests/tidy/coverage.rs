//! Nothing is only half there: a metric is defined and used, a caveat is raised and explained, a
//! flag has a help text and a test. What is not covered yet stands in `exceptions.txt`, a list
//! that only shrinks: a line that is no longer true is red too.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, has_word, words};
use crate::tree::in_crate;

/// One kind of thing that must be covered.
pub(crate) struct Kind {
    /// First word of its lines in the list.
    pub(crate) name: &'static str,
    /// What to do about an uncovered one.
    pub(crate) fix: &'static str,
}

pub(crate) const METRIC: Kind = Kind {
    name: "metric",
    fix: "no engine fills it and no report reads it; use it, test it, or drop its row",
};
pub(crate) const CAVEAT: Kind = Kind {
    name: "caveat",
    fix: "no engine raises it; raise it with its threshold, or drop the variant",
};
pub(crate) const FLAG: Kind =
    Kind { name: "flag", fix: "no test of its command names it; add one to crates/linerate/tests" };

/// Holds what is uncovered to the list: nothing missing from it, nothing stale in it.
pub(crate) fn judge(kind: &Kind, uncovered: &BTreeSet<String>, list: &str) -> Vec<String> {
    let listed: BTreeSet<String> = listed(kind, list).collect();
    let new = uncovered.difference(&listed);
    let stale = listed.difference(uncovered);
    new.map(|name| format!("{} {name}: {}", kind.name, kind.fix))
        .chain(stale.map(|name| {
            format!(
                "{} {name}: is covered now; take its line out of crates/linerate/tests/tidy/\
                 exceptions.txt (./dev accept does it)",
                kind.name
            )
        }))
        .collect()
}

/// The list without the lines of `kind` that are not true any more.
pub(crate) fn shrink(kind: &Kind, uncovered: &BTreeSet<String>, list: &str) -> String {
    let keeps = |line: &&str| match line.split_once(' ') {
        Some((name, rest)) if name == kind.name => uncovered.contains(rest),
        _ => true,
    };
    list.lines().filter(keeps).map(|line| format!("{line}\n")).collect()
}

fn listed(kind: &Kind, list: &str) -> impl Iterator<Item = String> {
    let lines = list.lines().filter_map(|line| line.split_once(' '));
    lines.filter(|(name, _)| *name == kind.name).map(|(_, rest)| rest.to_owned())
}

/// Keys of metrics that nothing outside the table uses. `rows` are variant and key.
pub(crate) fn unused_metrics(rows: &[(String, &str)], sources: &[Source]) -> BTreeSet<String> {
    let users: Vec<&Source> = sources.iter().filter(|source| uses_metrics(&source.path)).collect();
    let is_used = |variant: &str, key: &str| {
        let path = format!("MetricId::{variant}");
        users.iter().any(|user| has_word(&user.code, &path) || has_word(&user.text, key))
    };
    let unused = rows.iter().filter(|(variant, key)| !is_used(variant, key));
    unused.map(|(_, key)| (*key).to_owned()).collect()
}

fn uses_metrics(path: &str) -> bool {
    let crates =
        ["linerate-engine", "linerate-report", "linerate-mesh", "linerate-server", "linerate"];
    crates.iter().any(|name| in_crate(path, name)) && !path.contains("/tests/tidy/")
}

/// The variants of `pub enum NAME` in a file, in order.
pub(crate) fn variants(source: &Source, name: &str) -> Vec<String> {
    let head = format!("pub enum {name} {{");
    source
        .code
        .lines()
        .skip_while(|line| *line != head)
        .skip(1)
        .take_while(|line| *line != "}")
        .filter_map(|line| line.strip_prefix("    ")?.strip_suffix(','))
        .map(str::to_owned)
        .collect()
}

/// `CpuBound` as JSON and the manual write it: `cpu_bound`.
pub(crate) fn snake(variant: &str) -> String {
    let mut name = String::new();
    for c in variant.chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(c.to_lowercase());
    }
    name
}

/// Caveats that no engine, server or command raises.
pub(crate) fn unraised_caveats(variants: &[String], sources: &[Source]) -> BTreeSet<String> {
    let raisers = ["linerate-engine", "linerate-mesh", "linerate-server", "linerate"];
    let code: Vec<String> = sources
        .iter()
        .filter(|source| raisers.iter().any(|name| in_crate(&source.path, name)))
        .map(|source| source.product_lines().map(|(_, line)| format!("{line}\n")).collect())
        .collect();
    let is_raised = |variant: &str| {
        let path = format!("CaveatCode::{variant}");
        code.iter().any(|text| has_word(text, &path))
    };
    variants.iter().filter(|variant| !is_raised(variant)).map(|variant| snake(variant)).collect()
}

/// Caveats whose name has no heading in the manual, and headings of no caveat.
pub(crate) fn caveat_headings(variants: &[String], manual: &str) -> Vec<String> {
    let names: BTreeSet<String> = variants.iter().map(|variant| snake(variant)).collect();
    let headings: BTreeSet<String> = manual
        .lines()
        .filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'))
        .map(str::to_owned)
        .collect();
    let missing = names.difference(&headings).map(|name| {
        format!(
            "docs/manual/caveats.md: no heading ## `{name}`; say what is seen, when, what to do"
        )
    });
    let strange = headings.difference(&names).map(|name| {
        format!("docs/manual/caveats.md: `{name}` is no caveat of record/caveat.rs; remove it")
    });
    missing.chain(strange).collect()
}

/// A long flag as `linerate generate flags` prints it: command, flag, help.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flag {
    /// `linerate tcp`.
    pub(crate) command: String,
    /// `--time`.
    pub(crate) long: String,
    pub(crate) help: String,
}

/// Takes the list apart: `linerate tcp --time: End after this time`.
pub(crate) fn flags(list: &str) -> Vec<Flag> {
    list.lines()
        .filter_map(|line| {
            let (name, help) = line.split_once(':')?;
            let (command, long) = name.rsplit_once(' ')?;
            let help = help.trim().to_owned();
            Some(Flag { command: command.to_owned(), long: long.to_owned(), help })
        })
        .collect()
}

/// Flags without a help text: they would stand bare in `--help` and in the man page.
pub(crate) fn bare_flags(flags: &[Flag]) -> Vec<String> {
    let bare = flags.iter().filter(|flag| flag.help.is_empty());
    bare.map(|flag| {
        format!("{} {}: no help text; write a doc comment above it", flag.command, flag.long)
    })
    .collect()
}

/// Flags that no test names together with their command: in itself, or in the helpers and constants
/// that it uses.
pub(crate) fn untested_flags(flags: &[Flag], sources: &[Source]) -> BTreeSet<String> {
    let own = |source: &&Source| {
        in_crate(&source.path, "linerate") && !source.path.contains("/tests/tidy/")
    };
    let mut groups: BTreeMap<&str, Vec<Item>> = BTreeMap::new();
    for source in sources.iter().filter(own) {
        groups.entry(group(&source.path)).or_default().extend(items(source));
    }
    let shared = groups.remove(SUPPORT).unwrap_or_default();
    let tests: Vec<String> =
        groups.values().flat_map(|items| said_by_tests(items, &shared)).collect();
    let is_tested = |flag: &Flag| {
        let last = flag.command.rsplit(' ').next().unwrap_or_default();
        tests.iter().any(|text| has_word(text, &flag.long) && has_word(text, last))
    };
    let untested = flags.iter().filter(|flag| !is_tested(flag));
    untested.map(|flag| format!("{} {}", flag.command, flag.long)).collect()
}

/// Helpers that every test may use.
const SUPPORT: &str = "crates/linerate/tests/support";

/// What belongs together: a folder of a test program or of `tests/`, else a file. Modules of a
/// program beside each other have helpers of their own.
fn group(path: &str) -> &str {
    const TESTS: &str = "crates/linerate/tests/";
    let programs = ["quick/", "live/", ""].map(|program| format!("{TESTS}{program}"));
    let inner = programs.iter().find_map(|program| path.strip_prefix(program.as_str()));
    let folder = inner.and_then(|inner| Some(path.len() - inner.len() + inner.rfind('/')?));
    folder.map_or(path, |length| &path[..length])
}

/// A function or constant of tests.
struct Item {
    name: String,
    is_test: bool,
    text: String,
    /// The words of its code, by which it may use others.
    words: BTreeSet<String>,
}

fn items(source: &Source) -> Vec<Item> {
    let text: Vec<&str> = source.text.lines().collect();
    let code: Vec<&str> = source.code.lines().collect();
    let item = |name: String, first: usize, last: usize| Item {
        name,
        is_test: code[..first]
            .iter()
            .rev()
            .take_while(|it| it.trim().starts_with("#["))
            .any(|line| line.trim() == "#[test]"),
        text: text[first..=last].join("\n"),
        words: words(&code[first..=last].join("\n")).map(|(_, word)| word.to_owned()).collect(),
    };
    let functions = source.functions().into_iter();
    let functions = functions.map(|it| item(it.name, it.first_line, it.last_line));
    let constants = (0..code.len()).filter_map(|first| {
        let (head, rest) =
            code[first].split_once("const ").or_else(|| code[first].split_once("static "))?;
        let name = rest.split(':').next().filter(|_| head.is_empty() || head.starts_with("pub"))?;
        let last = (first..code.len()).find(|at| code[*at].trim_end().ends_with(';'))?;
        Some(item(name.to_owned(), first, last))
    });
    let all = functions.chain(constants).collect::<Vec<_>>();
    let is_test = source.is_test.iter().any(|is_test| *is_test);
    if is_test { all } else { Vec::new() }
}

/// The text of each test with that of everything it uses.
fn said_by_tests(items: &[Item], shared: &[Item]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
    for item in items.iter().chain(shared) {
        by_name.entry(&item.name).or_default().push(item);
    }
    let said = |test: &Item| {
        let mut used = BTreeSet::new();
        let mut text = test.text.clone();
        let mut waiting: Vec<&Item> = vec![test];
        while let Some(item) = waiting.pop() {
            for name in &item.words {
                let Some(named) = by_name.get(name.as_str()).filter(|_| used.insert(name)) else {
                    continue;
                };
                named.iter().for_each(|next| text = format!("{text}\n{}", next.text));
                waiting.extend(named);
            }
        }
        text
    };
    items.iter().filter(|item| item.is_test).map(said).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_list_may_neither_lack_nor_keep_a_line() {
    let list = "# Head.\nmetric a\nflag linerate tcp --b\n";
    assert_eq!(judge(&METRIC, &set(&["a"]), list), Vec::<String>::new());
    assert_eq!(judge(&METRIC, &set(&["a", "c"]), list).len(), 1);
    assert_eq!(judge(&METRIC, &set(&[]), list).len(), 1);
    assert_eq!(judge(&FLAG, &set(&["linerate tcp --b"]), list), Vec::<String>::new());
    assert_eq!(shrink(&METRIC, &set(&[]), list), "# Head.\nflag linerate tcp --b\n");
}

#[test]
fn a_metric_that_nobody_uses_is_found() {
    let rows = [("One".to_owned(), "one_ns"), ("Two".to_owned(), "two_ns")];
    let user = Source::new("crates/linerate-engine/src/a.rs", "let a = MetricId::One;");
    assert_eq!(unused_metrics(&rows, &[user]), set(&["two_ns"]));
}

#[test]
fn a_caveat_that_nobody_raises_or_explains_is_found() {
    let table = Source::new("c.rs", "pub enum Code {\n    /// One.\n    OneThing,\n    Two,\n}\n");
    let names = variants(&table, "Code");
    assert_eq!(names, ["OneThing", "Two"]);
    let text = "CaveatCode::OneThing;\n#[cfg(test)]\nmod tests {\n    CaveatCode::Two;\n}\n";
    let raiser = Source::new("crates/linerate-engine/src/a.rs", text);
    assert_eq!(unraised_caveats(&names, &[raiser]), set(&["two"]));
    assert_eq!(caveat_headings(&names, "## `one_thing`\n## `three`\n").len(), 2);
    assert_eq!(caveat_headings(&names, "## `one_thing`\n## `two`\n").len(), 0);
}

#[test]
fn a_flag_without_help_or_test_is_found() {
    let flags = flags("linerate tcp --time: End: after this\nlinerate ping --time:\n");
    assert_eq!(flags.len(), 2);
    assert_eq!(bare_flags(&flags).len(), 1);
    let untested = |text: &str| {
        let test = Source::new("crates/linerate/tests/quick/a.rs", text);
        untested_flags(&flags, &[test]).len()
    };
    assert_eq!(untested("#[test]\nfn a() {\n    run(&[\"tcp\", \"--time\"]);\n}\n"), 1);
    let by_helper = "const TIME: &str = \"--time\";\nfn tcp() {\n    run(\"tcp\");\n}\n\
                     #[test]\nfn a() {\n    tcp(TIME);\n}\n";
    assert_eq!(untested(by_helper), 1);
    let apart = "#[test]\nfn a() {\n    run(\"tcp\");\n}\n\
                 #[test]\nfn b() {\n    run(\"--time\");\n}\n";
    assert_eq!(untested(apart), 2);
}

#[test]
fn helpers_of_a_neighbour_are_not_those_of_a_test() {
    let same = |a: &str, b: &str| {
        let [a, b] = [a, b].map(|path| format!("crates/linerate/tests/{path}"));
        group(&a) == group(&b)
    };
    assert!(!same("quick/a.rs", "quick/b.rs"));
    assert!(!same("live/a.rs", "live/main.rs"));
    assert!(same("live/a/mod.rs", "live/a/b.rs"));
    assert!(same("support/mod.rs", "support/mesh.rs"));
}
