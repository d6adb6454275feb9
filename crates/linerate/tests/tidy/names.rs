//! Names and documentation that a stranger understands (STYLE, "Names" and "Comments"): a parameter
//! is a name, a constructor says from what, a doc begins with the thing. What stood when the rule
//! came is listed in names.txt, by file and count; the counts only go down. Tests are left alone.

use std::collections::BTreeMap;

use crate::source::{Source, words};

/// Words that open a riddle instead of naming the thing.
const RIDDLES: &[&str] = &["What", "Whether", "Who", "Those", "That", "Of", "By"];

/// A naming rule: its word in names.txt, the lines at which a file breaks it, what to do instead.
struct Rule {
    key: &'static str,
    lines: fn(&Source) -> Vec<usize>,
    instead: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        key: "tuple-parameter",
        lines: tuple_parameters,
        instead: "a parameter is a name; make a struct of values that travel together",
    },
    Rule {
        key: "fn-of",
        lines: functions_of,
        instead: "a constructor says from what: `from_trials`, not `of`",
    },
    Rule {
        key: "riddle",
        lines: riddles,
        instead: "a doc begins with the thing, not with What, Whether, Who, Those, That, Of or By",
    },
];

/// Rule and path.
type Place = (String, String);

/// Rule and path, and the lines at which the file breaks the rule, counted from 1.
pub(crate) type Broken = BTreeMap<Place, Vec<usize>>;

/// Files that break a rule.
pub(crate) fn broken(sources: &[Source]) -> Broken {
    let mut broken = Broken::new();
    for source in sources {
        for rule in RULES {
            let lines = (rule.lines)(source);
            if !lines.is_empty() {
                broken.insert((rule.key.to_owned(), source.path.clone()), lines);
            }
        }
    }
    broken
}

/// A row of names.txt: rule, count, path.
fn row(line: &str) -> Option<(Place, usize)> {
    let mut words = line.split_whitespace();
    let (rule, count, path) = (words.next()?, words.next()?, words.next()?);
    Some(((rule.to_owned(), path.to_owned()), count.parse().ok()?))
}

/// Files that break a rule more often than the list grants.
pub(crate) fn above(broken: &Broken, list: &str) -> Vec<String> {
    let granted: BTreeMap<Place, usize> = list.lines().filter_map(row).collect();
    let mut wrong = Vec::new();
    for (place, lines) in broken {
        let most = granted.get(place).copied().unwrap_or(0);
        if lines.len() > most {
            let (key, path) = place;
            let instead = RULES.iter().find(|rule| rule.key == key).map_or("", |rule| rule.instead);
            let lines = lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            wrong.push(format!(
                "{path}: more than the {most} of {key} in tidy/names.txt (lines {lines}): \
                 {instead}. A file that moved takes its row along"
            ));
        }
    }
    wrong
}

/// The list with today's counts where they are lower, without rows of nothing.
pub(crate) fn shrunk(broken: &Broken, list: &str) -> String {
    let kept = |line: &str| match row(line) {
        None => format!("{line}\n"),
        Some((place, most)) => match broken.get(&place).map_or(0, Vec::len).min(most) {
            0 => String::new(),
            count => format!("{} {count} {}\n", place.0, place.1),
        },
    };
    list.lines().map(kept).collect()
}

/// Lines with a parameter of a function or closure that is a tuple of names: `(a, b): (A, B)`.
pub(crate) fn tuple_parameters(source: &Source) -> Vec<usize> {
    let lines = source.product_lines();
    let code = lines.flat_map(|(number, line)| line.chars().map(move |c| (number, c)));
    let code: Vec<(usize, char)> = code.filter(|(_, c)| !c.is_whitespace()).collect();
    let sign = |at: usize| code.get(at).map(|(_, c)| *c);
    let mut found = Vec::new();
    let mut open: Vec<Bracket> = Vec::new();
    for (at, (number, c)) in code.iter().enumerate() {
        match c {
            '(' | '[' | '{' => open.push(Bracket { at, has_comma: false }),
            ',' => open.iter_mut().last().into_iter().for_each(|bracket| bracket.has_comma = true),
            ')' | ']' | '}' => {
                let Some(Bracket { at: start, has_comma }) = open.pop() else { continue };
                let is_typed = sign(at + 1) == Some(':') && sign(at + 2) != Some(':');
                let before = code[..start].iter().rev().find(|(_, c)| *c != '&');
                let is_parameter = matches!(before, Some((_, '(' | ',' | '|')));
                if *c == ')' && has_comma && is_typed && is_parameter {
                    found.push(*number);
                }
            }
            _ => {}
        }
    }
    found
}

/// A bracket that is open, and whether a comma stood in it.
struct Bracket {
    at: usize,
    has_comma: bool,
}

/// Lines with a function that is called `of`.
pub(crate) fn functions_of(source: &Source) -> Vec<usize> {
    let functions = named(source, &["fn"]).into_iter().filter(|name| name.word == "of");
    functions.map(|name| name.line).collect()
}

/// First lines of docs that open with one of the words of `RIDDLES`.
pub(crate) fn riddles(source: &Source) -> Vec<usize> {
    let docs = docs(source).into_iter().filter(|doc| {
        let first = doc.text.split(|c: char| !c.is_alphabetic()).next();
        first.is_some_and(|word| RIDDLES.contains(&word))
    });
    docs.map(|doc| doc.line).collect()
}

/// Names of all functions outside tests, those without a body too.
pub(crate) fn functions(source: &Source) -> Vec<&str> {
    named(source, &["fn"]).into_iter().map(|name| name.word).collect()
}

/// Names of all structs and enums outside tests.
pub(crate) fn types(source: &Source) -> Vec<&str> {
    named(source, &["struct", "enum"]).into_iter().map(|name| name.word).collect()
}

/// The name of an item and its line.
struct Name<'a> {
    line: usize,
    word: &'a str,
}

/// The words that follow one of `keywords` on a line outside tests.
fn named<'a>(source: &'a Source, keywords: &[&str]) -> Vec<Name<'a>> {
    let mut names = Vec::new();
    for (line, code) in source.product_lines() {
        let mut words = words(code).map(|(_, word)| word);
        while let Some(word) = words.next() {
            if keywords.contains(&word) {
                names.extend(words.next().map(|word| Name { line, word }));
            }
        }
    }
    names
}

/// A doc comment as one line, and the number of its first line.
pub(crate) struct Doc {
    line: usize,
    pub(crate) text: String,
}

/// Doc comments outside tests.
pub(crate) fn docs(source: &Source) -> Vec<Doc> {
    let mut docs: Vec<Doc> = Vec::new();
    let mut is_inside = false;
    let lines = source.comments.lines().zip(&source.is_test).enumerate();
    for (at, (comment, is_test)) in lines {
        let text = comment.trim().strip_prefix("///").filter(|_| !is_test).map(str::trim);
        match (text, docs.last_mut().filter(|_| is_inside)) {
            (Some(text), Some(doc)) => doc.text.extend([" ", text]),
            (Some(text), None) => docs.push(Doc { line: at + 1, text: text.to_owned() }),
            (None, _) => {}
        }
        is_inside = text.is_some();
    }
    docs
}

fn source(text: &str) -> Source {
    Source::new("crates/a/src/a.rs", text)
}

#[test]
fn a_tuple_parameter_is_found_and_a_tuple_of_a_let_is_not() {
    let count = |text: &str| tuple_parameters(&source(text)).len();
    assert_eq!(count("fn f((a, b): (u8, u8), c: u8) {}"), 1);
    assert_eq!(count("fn f(\n    c: u8,\n    &(a, _): &(u8, u8),\n) {}"), 1);
    assert_eq!(count("let f = |(a, b): (u8, u8)| a + b;"), 1);
    assert_eq!(count("let (a, b): (u8, u8) = c; d.map(|(e, f)| e)"), 0);
    assert_eq!(count("fn f(a: (u8, u8)) { g((a, b)); <(A, B)>::h(); }"), 0);
    assert_eq!(count("#[cfg(test)]\nfn f((a, b): (u8, u8)) {}"), 0);
}

#[test]
fn a_function_without_a_name_is_found() {
    assert_eq!(functions_of(&source("impl A {\nfn of(b: B) -> A; const fn of_b() {} }")), [2]);
}

#[test]
fn a_doc_that_names_no_thing_is_found() {
    let text = "/// What is sent.\n/// That is all.\nfn a() {}\n/// Whats new.\n/// Of it.\n\
                fn b() {}\n// Those.\n    /// Whether.\n";
    assert_eq!(riddles(&source(text)), [1, 8]);
    assert_eq!(docs(&source(text))[0].text, "What is sent. That is all.");
}

#[test]
fn a_file_above_its_count_is_found_and_the_list_only_shrinks() {
    let now = broken(&[source("fn of() {}\nfn of() {}\n/// That.\n")]);
    let list = "# Head\nfn-of 2 crates/a/src/a.rs\nriddle 9 crates/a/src/a.rs\n";
    assert_eq!(above(&now, list), Vec::<String>::new());
    assert_eq!(above(&now, "fn-of 1 crates/a/src/a.rs\nriddle 1 crates/a/src/a.rs\n").len(), 1);
    assert_eq!(above(&now, "").len(), 2);
    let fresh = "# Head\nfn-of 1 crates/a/src/a.rs\nriddle 1 crates/a/src/a.rs\n";
    let list = "# Head\nfn-of 1 crates/a/src/a.rs\nriddle 9 crates/a/src/a.rs\nriddle 1 b.rs\n";
    assert_eq!(shrunk(&now, list), fresh);
}
