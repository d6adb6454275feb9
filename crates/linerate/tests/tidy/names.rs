//! Names and documentation that a stranger understands (STYLE, "Names" and "Comments"): a parameter
//! is a name, a constructor says from what, a doc begins with the thing. What stood when the rule
//! came is listed in names.txt, by file and count; the counts only go down. Tests are left alone.

use std::collections::BTreeMap;

use crate::source::{Source, words};

/// Words that open a riddle instead of naming the thing.
const RIDDLES: &[&str] = &["What", "Whether", "Who", "Those", "That", "Of", "By"];

/// A naming rule: its word in names.txt, how a file breaks it, what to do instead.
struct Rule {
    key: &'static str,
    count: fn(&Source) -> usize,
    instead: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        key: "tuple-parameter",
        count: tuple_parameters,
        instead: "a parameter is a name; make a struct of values that travel together",
    },
    Rule {
        key: "fn-of",
        count: functions_of,
        instead: "a constructor says from what: `from_trials`, not `of`",
    },
    Rule {
        key: "riddle",
        count: riddles,
        instead: "a doc begins with the thing, not with What, Whether, Who, Those, That, Of or By",
    },
];

/// Rule and path, and how often the file breaks the rule.
pub(crate) type Broken = BTreeMap<(String, String), usize>;

/// Files that break a rule.
pub(crate) fn broken(sources: &[Source]) -> Broken {
    let mut broken = Broken::new();
    for source in sources {
        for rule in RULES {
            let count = (rule.count)(source);
            if count > 0 {
                broken.insert((rule.key.to_owned(), source.path.clone()), count);
            }
        }
    }
    broken
}

/// A row of names.txt: rule, count, path.
fn row(line: &str) -> Option<((String, String), usize)> {
    let mut words = line.split_whitespace();
    let (rule, count, path) = (words.next()?, words.next()?, words.next()?);
    Some(((rule.to_owned(), path.to_owned()), count.parse().ok()?))
}

/// Files that break a rule more often than the list grants.
pub(crate) fn above(broken: &Broken, list: &str) -> Vec<String> {
    let granted: Broken = list.lines().filter_map(row).collect();
    let mut wrong = Vec::new();
    for (place, count) in broken {
        let most = granted.get(place).copied().unwrap_or(0);
        if *count > most {
            let (key, path) = place;
            let instead = RULES.iter().find(|rule| rule.key == key).map_or("", |rule| rule.instead);
            wrong.push(format!(
                "{path}: {key} {count} times, tidy/names.txt grants {most}; {instead}. A file that \
                 moved takes its row along"
            ));
        }
    }
    wrong
}

/// The list with today's counts where they are lower, without rows of nothing.
pub(crate) fn shrunk(broken: &Broken, list: &str) -> String {
    let kept = |line: &str| match row(line) {
        None => format!("{line}\n"),
        Some((place, most)) => match broken.get(&place).copied().unwrap_or(0).min(most) {
            0 => String::new(),
            count => format!("{} {count} {}\n", place.0, place.1),
        },
    };
    list.lines().map(kept).collect()
}

/// Parameters of functions and closures that are a tuple of names with a type: `(a, b): (A, B)`.
pub(crate) fn tuple_parameters(source: &Source) -> usize {
    let code: String = source.product_lines().map(|(_, line)| format!("{line}\n")).collect();
    let chars: Vec<char> = code.chars().filter(|c| !c.is_whitespace()).collect();
    let mut count = 0;
    let mut open: Vec<(usize, bool)> = Vec::new();
    for (at, c) in chars.iter().enumerate() {
        match c {
            '(' | '[' | '{' => open.push((at, false)),
            ',' => {
                if let Some((_, has_comma)) = open.last_mut() {
                    *has_comma = true;
                }
            }
            ')' | ']' | '}' => {
                let Some((start, has_comma)) = open.pop() else { continue };
                let is_typed = chars.get(at + 1) == Some(&':') && chars.get(at + 2) != Some(&':');
                let before = chars[..start].iter().rev().find(|c| **c != '&');
                let is_parameter = matches!(before, Some('(' | ',' | '|'));
                count += usize::from(*c == ')' && has_comma && is_typed && is_parameter);
            }
            _ => {}
        }
    }
    count
}

/// Functions that are called `of`.
pub(crate) fn functions_of(source: &Source) -> usize {
    functions(source).iter().filter(|name| **name == "of").count()
}

/// Docs that open with one of the words of `RIDDLES`.
pub(crate) fn riddles(source: &Source) -> usize {
    let opens = |doc: &String| {
        doc.split(|c: char| !c.is_alphabetic()).next().is_some_and(|word| RIDDLES.contains(&word))
    };
    docs(source).iter().filter(|doc| opens(doc)).count()
}

/// Names of all functions outside tests, those without a body too.
pub(crate) fn functions(source: &Source) -> Vec<&str> {
    named(source, &["fn"])
}

/// Names of all structs and enums outside tests.
pub(crate) fn types(source: &Source) -> Vec<&str> {
    named(source, &["struct", "enum"])
}

/// The words that follow one of `keywords` on a line outside tests.
fn named<'a>(source: &'a Source, keywords: &[&str]) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (_, line) in source.product_lines() {
        let mut words = words(line).map(|(_, word)| word);
        while let Some(word) = words.next() {
            if keywords.contains(&word) {
                names.extend(words.next());
            }
        }
    }
    names
}

/// Doc comments outside tests, each as one line.
pub(crate) fn docs(source: &Source) -> Vec<String> {
    let mut docs: Vec<String> = Vec::new();
    let mut is_inside = false;
    for (comment, is_test) in source.comments.lines().zip(&source.is_test) {
        let doc = comment.trim().strip_prefix("///").filter(|_| !is_test);
        match (doc, is_inside) {
            (Some(doc), true) => {
                let last = docs.last_mut().expect("a doc was begun");
                last.push(' ');
                last.push_str(doc.trim());
            }
            (Some(doc), false) => docs.push(doc.trim().to_owned()),
            (None, _) => {}
        }
        is_inside = doc.is_some();
    }
    docs
}

fn source(text: &str) -> Source {
    Source::new("crates/a/src/a.rs", text)
}

#[test]
fn a_tuple_parameter_is_found_and_a_tuple_of_a_let_is_not() {
    let count = |text: &str| tuple_parameters(&source(text));
    assert_eq!(count("fn f((a, b): (u8, u8), c: u8) {}"), 1);
    assert_eq!(count("fn f(\n    c: u8,\n    &(a, _): &(u8, u8),\n) {}"), 1);
    assert_eq!(count("let f = |(a, b): (u8, u8)| a + b;"), 1);
    assert_eq!(count("let (a, b): (u8, u8) = c; d.map(|(e, f)| e)"), 0);
    assert_eq!(count("fn f(a: (u8, u8)) { g((a, b)); <(A, B)>::h(); }"), 0);
    assert_eq!(count("#[cfg(test)]\nfn f((a, b): (u8, u8)) {}"), 0);
}

#[test]
fn a_function_without_a_name_is_found() {
    assert_eq!(functions_of(&source("impl A { fn of(b: B) -> A; const fn of_b() {} }")), 1);
}

#[test]
fn a_doc_that_names_no_thing_is_found() {
    let text = "/// What is sent.\n/// That is all.\nfn a() {}\n/// Whats new.\n/// Of it.\n\
                fn b() {}\n// Those.\n    /// Whether.\n";
    assert_eq!(riddles(&source(text)), 2);
    assert_eq!(docs(&source(text))[0], "What is sent. That is all.");
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
