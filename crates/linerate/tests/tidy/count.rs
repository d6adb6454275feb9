//! What the tree is made of, counted: lines of product, tests and comments for each crate, files,
//! long functions, circles, locked packages. A line counts once: as a test's when it belongs to a
//! test (`Source::is_test`), else as a comment when only a comment stands on it, else as product;
//! blank lines are nothing. `budget.txt` holds lines and circles to numbers that only shrink.

use std::collections::BTreeMap;

use crate::circles::circles;
use crate::source::Source;

/// Functions above this are counted; the limit for one is in `size.rs`.
const LONG_FUNCTION_LINES: usize = 40;

/// One crate, or everything of the tree outside the crates.
#[derive(Debug, Default, Clone)]
pub(crate) struct Count {
    files: usize,
    product: usize,
    tests: usize,
    comments: usize,
    long_functions: usize,
    circles: Vec<Vec<String>>,
}

/// Every crate by its name, what lies outside of `crates/` by its top folder.
pub(crate) fn counts(sources: &[Source]) -> BTreeMap<String, Count> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for source in sources {
        let inner = source.path.strip_prefix("crates/").unwrap_or(&source.path);
        let name = inner.split('/').next().unwrap_or_default();
        counts.entry(name.to_owned()).or_default().add(source);
    }
    for (name, count) in &mut counts {
        count.circles = circles(&format!("crates/{name}/src/"), sources);
    }
    counts
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
    }

    fn plus(mut self, other: &Self) -> Self {
        self.files += other.files;
        self.product += other.product;
        self.tests += other.tests;
        self.comments += other.comments;
        self.long_functions += other.long_functions;
        self.circles.extend_from_slice(&other.circles);
        self
    }

    fn row(&self, name: &str) -> String {
        let Self { files, product, tests, comments, long_functions, circles } = self;
        format!(
            "{name:<16} {files:>5} {product:>8} {tests:>7} {comments:>9} {long_functions:>10} \
             {:>8}\n",
            circles.len()
        )
    }
}

const HEAD: &str = "\
crate            files  product   tests  comments  functions  circles
                                                     over 40
";

/// The table that `./dev count` prints; `lock` is the text of Cargo.lock.
pub(crate) fn table(counts: &BTreeMap<String, Count>, lock: &str) -> String {
    let mut table = HEAD.to_owned();
    table.extend(counts.iter().map(|(name, count)| count.row(name)));
    table += &counts.values().fold(Count::default(), Count::plus).row("all");
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    table += &format!("{packages} packages in Cargo.lock\n");
    let circles = counts.values().flat_map(|count| &count.circles);
    table.extend(circles.map(|circle| format!("circle: {}\n", circle.join(" "))));
    table
}

/// A crate's line of `budget.txt`.
struct Budget<'a> {
    name: &'a str,
    product: usize,
    circles: usize,
}

/// Lines of the budget that are rows: name, product lines, circles.
fn budgets(text: &str) -> impl Iterator<Item = Budget<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (name, product, circles) = (words.next()?, words.next()?, words.next()?);
        Some(Budget { name, product: product.parse().ok()?, circles: circles.parse().ok()? })
    })
}

/// Crates that grew beyond `budget.txt`, or have no row there.
pub(crate) fn grown(counts: &BTreeMap<String, Count>, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, count) in counts {
        let Some(budget) = budgets(text).find(|budget| budget.name == name) else {
            wrong.push(format!("{name}: no row in tidy/budget.txt; add it: ./dev count"));
            continue;
        };
        if count.product > budget.product {
            wrong.push(format!(
                "{name}: {} product lines, the budget is {}; take out as many as came in, or raise \
                 its number in tidy/budget.txt in a commit that says what users get for the lines",
                count.product, budget.product
            ));
        }
        if count.circles.len() > budget.circles {
            let circles: Vec<String> =
                count.circles.iter().map(|circle| circle.join(" ")).collect();
            wrong.push(format!(
                "{name}: {} circles of files, {} are listed in tidy/budget.txt; move what both \
                 sides need into a file below them:\n  {}",
                circles.len(),
                budget.circles,
                circles.join("\n  ")
            ));
        }
    }
    wrong
}

/// The budget with today's numbers wherever these are lower; `./dev accept` writes it.
pub(crate) fn shrunk(counts: &BTreeMap<String, Count>, text: &str) -> String {
    let line = |line: &str| match budgets(line).next() {
        Some(budget) => counts.get(budget.name).map_or(String::new(), |count| {
            let product = budget.product.min(count.product);
            let circles = budget.circles.min(count.circles.len());
            format!("{:<16} {product:>7} {circles:>3}\n", budget.name)
        }),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
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
    let table = table(&example(), "[[package]]\n");
    assert!(table.contains("all                  2        4       4         2"), "{table}");
}

#[test]
fn long_functions_are_counted_and_long_tests_are_not() {
    let long = format!("fn long() {{\n{}}}\n", "    x();\n".repeat(LONG_FUNCTION_LINES));
    let text = format!("{long}#[cfg(test)]\nmod tests {{\n{long}}}\n");
    let counts = counts(&[Source::new("crates/a/src/lib.rs", &text)]);
    assert_eq!(counts["a"].long_functions, 1);
}

#[test]
fn a_crate_that_grows_is_found_and_a_budget_only_shrinks() {
    assert_eq!(grown(&example(), "# Head\na 3 0\nfuzz 1 0\n"), Vec::<String>::new());
    assert_eq!(grown(&example(), "a 2 0\nfuzz 1 0\n").len(), 1);
    assert_eq!(grown(&example(), "a 3 0\n").len(), 1);
    let budget = "# Head\n\na 2 1\nfuzz 9 0\n";
    assert_eq!(
        shrunk(&example(), budget),
        format!("# Head\n\n{:<16} {:>7} {:>3}\n{:<16} {:>7} {:>3}\n", "a", 2, 0, "fuzz", 1, 0)
    );
}

#[test]
fn a_circle_over_the_budget_is_found() {
    let sources = [
        Source::new("crates/a/src/lib.rs", "mod b;\nmod c;\n"),
        Source::new("crates/a/src/b.rs", "use crate::c::C;\n"),
        Source::new("crates/a/src/c.rs", "use crate::b::B;\n"),
    ];
    assert_eq!(grown(&counts(&sources), "a 9 1\n").len(), 0);
    let wrong = grown(&counts(&sources), "a 9 0\n");
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].contains("crates/a/src/b.rs crates/a/src/c.rs"), "{wrong:?}");
}
