//! The report of `./dev count`: for each crate its lines, files, long functions and import circles,
//! and counts of names and docs, beside those of the last release (docs/counts.toml). A reviewer
//! reads it; nothing fails by it. A line counts once: as a test's when it belongs to a test
//! (`Source::is_test`), else as a comment when only a comment stands on it, else as product; blank
//! lines are nothing. Names and docs of tests do not count.

use std::collections::BTreeMap;

use crate::circles::{Circle, circles};
use crate::names;
use crate::source::Source;

/// Functions above this are counted; the limit for one is in `size.rs`.
const LONG_FUNCTION_LINES: usize = 40;

/// Letters of a function's name that says too little when it is one word.
const SHORT_NAME_LETTERS: usize = 5;

/// Short names of functions that say enough: those of the standard library's traits and of getters.
const PLAIN: &[&str] = &[
    "add", "clone", "cmp", "div", "drop", "eq", "fmt", "from", "get", "hash", "index", "len",
    "main", "max", "min", "mul", "name", "neg", "new", "next", "not", "parse", "poll", "pop",
    "push", "read", "run", "sub", "sum", "write",
];

/// Names of types that each command and each crate may have.
const COMMON_TYPES: &[&str] = &["Args", "Error", "State"];

/// One crate, or everything of the tree outside the crates.
#[derive(Debug, Default, Clone)]
pub(crate) struct Count {
    files: usize,
    product: usize,
    tests: usize,
    comments: usize,
    long_functions: usize,
    circles: Vec<Circle>,
    functions: usize,
    short_names: usize,
    functions_of: usize,
    tuple_parameters: usize,
    it_closures: usize,
    docs: usize,
    doc_words: usize,
    riddles: usize,
    /// How many types have each name.
    types: BTreeMap<String, usize>,
}

/// A column of the report: its key in docs/counts.toml, its heading in two rows, and its figure.
struct Column {
    key: &'static str,
    heading: [&'static str; 2],
    decimals: usize,
    figure: fn(&Count) -> f64,
}

const COLUMNS: &[Column] = &[
    column("files", ["", "files"], |count| count.files as f64),
    column("product", ["", "product"], |count| count.product as f64),
    column("tests", ["", "tests"], |count| count.tests as f64),
    column("comments", ["", "comments"], |count| count.comments as f64),
    column("long_functions", ["fns", "over 40"], |count| count.long_functions as f64),
    column("circles", ["", "circles"], |count| count.circles.len() as f64),
    column("tuple_parameters", ["tuple", "params"], |count| count.tuple_parameters as f64),
    column("functions_of", ["", "fn of"], |count| count.functions_of as f64),
    Column {
        decimals: 1,
        ..column("short_names_percent", ["fns of a", "short word"], |count| {
            percent(count.short_names, count.functions)
        })
    },
    column("it_per_1000_functions", ["|it| per", "1000 fns"], |count| {
        10.0 * percent(count.it_closures, count.functions)
    }),
    Column {
        decimals: 1,
        ..column("shared_types_percent", ["types of a", "shared name"], |count| {
            percent(count.shared_types(), count.types.values().sum())
        })
    },
    Column {
        decimals: 1,
        ..column("riddles_percent", ["docs", "What/That"], |count| {
            percent(count.riddles, count.docs)
        })
    },
    Column {
        decimals: 1,
        ..column("words_per_doc", ["words", "a doc"], |count| {
            percent(count.doc_words, count.docs) / 100.0
        })
    },
];

const fn column(
    key: &'static str,
    heading: [&'static str; 2],
    figure: fn(&Count) -> f64,
) -> Column {
    Column { key, heading, decimals: 0, figure }
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// Every crate by its name, what lies outside of `crates/` by its top folder.
pub(crate) fn counts(sources: &[Source]) -> BTreeMap<String, Count> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for source in sources {
        counts.entry(crate_name(source).to_owned()).or_default().add(source);
    }
    for (name, count) in &mut counts {
        count.circles = circles(&format!("crates/{name}/src/"), sources);
    }
    counts
}

pub(crate) fn crate_name(source: &Source) -> &str {
    let inner = source.path.strip_prefix("crates/").unwrap_or(&source.path);
    inner.split('/').next().unwrap_or_default()
}

impl Count {
    fn add(&mut self, source: &Source) {
        self.files += 1;
        let lines = source.text.lines().zip(source.code.lines().zip(source.comments.lines()));
        for ((text, (code, comment)), is_test) in lines.zip(&source.is_test) {
            let only_comment = code.trim().is_empty() && text.trim() == comment.trim();
            match (text.trim().is_empty(), is_test, only_comment) {
                (true, ..) => {}
                (_, true, _) => self.tests += 1,
                (_, _, true) => self.comments += 1,
                _ => self.product += 1,
            }
        }
        let functions = source.functions().into_iter();
        let functions = functions.filter(|function| !source.is_test[function.first_line]);
        let lengths = functions.map(|function| function.last_line - function.first_line + 1);
        self.long_functions += lengths.filter(|lines| *lines > LONG_FUNCTION_LINES).count();
        self.add_names(source);
    }

    fn add_names(&mut self, source: &Source) {
        let functions = names::functions(source);
        self.functions += functions.len();
        self.short_names += functions.iter().filter(|name| is_short(name)).count();
        self.functions_of += names::functions_of(source).len();
        self.tuple_parameters += names::tuple_parameters(source).len();
        let closures = source.product_lines().map(|(_, line)| line.matches("|it|").count());
        self.it_closures += closures.sum::<usize>();
        let docs = names::docs(source);
        self.docs += docs.len();
        self.doc_words += docs.iter().map(|doc| doc.text.split_whitespace().count()).sum::<usize>();
        self.riddles += names::riddles(source).len();
        for name in names::types(source) {
            *self.types.entry(name.to_owned()).or_default() += 1;
        }
    }

    fn plus(mut self, other: &Self) -> Self {
        self.files += other.files;
        self.product += other.product;
        self.tests += other.tests;
        self.comments += other.comments;
        self.long_functions += other.long_functions;
        self.circles.extend_from_slice(&other.circles);
        self.functions += other.functions;
        self.short_names += other.short_names;
        self.functions_of += other.functions_of;
        self.tuple_parameters += other.tuple_parameters;
        self.it_closures += other.it_closures;
        self.docs += other.docs;
        self.doc_words += other.doc_words;
        self.riddles += other.riddles;
        for (name, count) in &other.types {
            *self.types.entry(name.clone()).or_default() += count;
        }
        self
    }

    fn shared_types(&self) -> usize {
        let types = self.types.iter().filter(|(name, _)| !COMMON_TYPES.contains(&name.as_str()));
        types.map(|(_, count)| *count).filter(|count| *count > 1).sum()
    }
}

fn is_short(name: &str) -> bool {
    name.len() <= SHORT_NAME_LETTERS && !name.contains('_') && !PLAIN.contains(&name)
}

/// A crate, or all of them, and its figures in the order of `COLUMNS`.
struct Row {
    name: String,
    figures: Vec<f64>,
}

fn rows(counts: &BTreeMap<String, Count>) -> Vec<Row> {
    let all = counts.values().fold(Count::default(), Count::plus);
    let figures = |count: &Count| COLUMNS.iter().map(|column| (column.figure)(count)).collect();
    let named =
        counts.iter().map(|(name, count)| Row { name: name.clone(), figures: figures(count) });
    named.chain([Row { name: "all".to_owned(), figures: figures(&all) }]).collect()
}

/// What `./dev count` prints; `released` is docs/counts.toml, `lock` Cargo.lock.
pub(crate) fn report(counts: &BTreeMap<String, Count>, released: &str, lock: &str) -> String {
    let now = rows(counts);
    let mut report = table(&now, |figure, decimals| format!("{figure:.decimals$}"));
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    report += &format!("{packages} packages in Cargo.lock\n");
    let circles = counts.values().flat_map(|count| &count.circles);
    report.extend(circles.map(|circle| format!("circle: {}\n", circle.line())));
    if let Some(release) = value(released, "", "release") {
        report += &format!("\nsince the release {}\n", release.trim_matches('"'));
        let changes: Vec<Row> = now.iter().map(|row| change(row, released)).collect();
        report += &table(&changes, signed);
    }
    report
}

/// What a row differs by from the release's; not a number where the release has no such row.
fn change(row: &Row, released: &str) -> Row {
    let figures = COLUMNS.iter().zip(&row.figures).map(|(column, now)| {
        let then = value(released, &row.name, column.key).and_then(|then| then.parse::<f64>().ok());
        then.map_or(f64::NAN, |then| now - then)
    });
    Row { name: row.name.clone(), figures: figures.collect() }
}

fn signed(change: f64, decimals: usize) -> String {
    let text = format!("{change:+.decimals$}");
    match text.trim_start_matches(['+', '-', '0', '.']) {
        "" => "·".to_owned(),
        "NaN" => "new".to_owned(),
        _ => text,
    }
}

fn table(rows: &[Row], print: fn(f64, usize) -> String) -> String {
    let width =
        |column: &Column| column.heading.map(str::len).into_iter().max().unwrap_or(0).max(6);
    let mut table = String::new();
    for line in 0..2 {
        table += &format!("{:<15}", ["", "crate"][line]);
        for column in COLUMNS {
            table += &format!(" {:>1$}", column.heading[line], width(column));
        }
        table.push('\n');
    }
    for row in rows {
        table += &format!("{:<15}", row.name);
        for (column, figure) in COLUMNS.iter().zip(&row.figures) {
            table += &format!(" {:>1$}", print(*figure, column.decimals), width(column));
        }
        table.push('\n');
    }
    table
}

/// docs/counts.toml of the release `version`.
pub(crate) fn release(counts: &BTreeMap<String, Count>, version: &str) -> String {
    let mut text = format!(
        "# What the release is made of, as `./dev count` counts it; `./dev count --release` writes \
         this file.\nrelease = \"{version}\"\n"
    );
    for row in rows(counts) {
        text += &format!("\n[{}]\n", row.name);
        for (column, figure) in COLUMNS.iter().zip(&row.figures) {
            text += &format!("{} = {figure:.*}\n", column.key, column.decimals);
        }
    }
    text
}

/// The value of a key of a table of plain TOML; "" is the table before all others.
fn value<'a>(text: &'a str, table: &str, key: &str) -> Option<&'a str> {
    let mut here = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            here = name;
        } else if here == table
            && let Some((_, value)) = line.split_once(" = ").filter(|(name, _)| *name == key)
        {
            return Some(value);
        }
    }
    None
}

/// The version of the workspace, from Cargo.toml.
pub(crate) fn version(manifest: &str) -> &str {
    value(manifest, "workspace.package", "version").map_or("?", |version| version.trim_matches('"'))
}

fn example() -> BTreeMap<String, Count> {
    let text = "//! Head.\n\nconst A: &str = \"// no comment\n  text\";\n/* b */ fn b() {}\n\
                // c\n#[cfg(test)]\nmod tests {\n    // d\n}\n";
    counts(&[Source::new("crates/a/src/lib.rs", text), Source::new("fuzz/a.rs", "fn a() {}\n")])
}

#[test]
fn each_line_counts_once() {
    let Count { files, product, tests, comments, .. } = example()["a"];
    assert_eq!((files, product, tests, comments), (1, 3, 4, 2));
    let report = report(&example(), "", "[[package]]\n");
    assert!(report.contains("all                  2       4      4        2"), "{report}");
    assert!(!report.contains("since"), "{report}");
}

#[test]
fn long_functions_are_counted_and_long_tests_are_not() {
    let long = format!("fn long() {{\n{}}}\n", "    x();\n".repeat(LONG_FUNCTION_LINES));
    let text = format!("{long}#[cfg(test)]\nmod tests {{\n{long}}}\n");
    let counts = counts(&[Source::new("crates/a/src/lib.rs", &text)]);
    assert_eq!(counts["a"].long_functions, 1);
}

#[test]
fn names_are_counted_by_crate_and_over_all_crates() {
    let text = "/// Three words here.\nstruct Seen;\npub enum Head { A }\nfn told(it: u8) {}\n\
                fn read_head() { a.map(|it| it.b()) }\n";
    let sources = ["crates/a/src/a.rs", "crates/b/src/b.rs"].map(|path| Source::new(path, text));
    let counts = counts(&sources);
    let a = &counts["a"];
    assert_eq!((a.functions, a.short_names, a.it_closures), (2, 1, 1));
    assert_eq!((a.docs, a.doc_words, a.shared_types()), (1, 3, 0));
    let all = counts.values().fold(Count::default(), Count::plus);
    assert_eq!(all.shared_types(), 4, "both names stand in both crates");
}

#[test]
fn a_release_is_what_later_counts_are_compared_with() {
    let released = release(&example(), version("[workspace.package]\nversion = \"0.2.0\"\n"));
    assert!(
        released.contains("release = \"0.2.0\"\n\n[a]\nfiles = 1\nproduct = 3\n"),
        "{released}"
    );
    let more = format!("{}fn c() {{}}\n", "// x\n".repeat(2));
    let sources =
        [Source::new("crates/a/src/lib.rs", &more), Source::new("crates/b/src/lib.rs", "")];
    let report = report(&counts(&sources), &released, "");
    let changes = report.split_once("since the release 0.2.0\n").expect("a second table").1;
    let row = |name: &str| {
        let line = changes.lines().find(|line| line.starts_with(name)).expect("a row");
        line.split_whitespace().take(5).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("a "), ["a", "·", "-2", "-4", "·"]);
    assert_eq!(row("b "), ["b", "new", "new", "new", "new"]);
}
