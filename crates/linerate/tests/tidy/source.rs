//! A Rust file as the checks see it: its code with comments and literals blanked, its comments
//! alone, and the lines that only tests compile. A scanner of tokens, not a parser: it relies on
//! rustfmt's layout for attributes, and leaves macros unexpanded.

/// A Rust file.
pub(crate) struct Source {
    /// From the root of the tree.
    pub(crate) path: String,
    /// As stored.
    pub(crate) text: String,
    /// The text with every comment and literal as spaces; line ends stay.
    pub(crate) code: String,
    /// The text with everything but comments as spaces; line ends stay.
    pub(crate) comments: String,
    /// For each line, whether it belongs to an item under `#[cfg(test)]`, to a test program or to
    /// a file of tests (`tests.rs`, `drive_tests.rs`).
    pub(crate) is_test: Vec<bool>,
}

/// A function with its body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line of the word `fn`, counted from 0.
    pub(crate) first_line: usize,
    /// Line of the closing brace.
    pub(crate) last_line: usize,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (code, comments) = separate(text);
        let whole = ["/tests/", "/examples/"].iter().any(|it| path.contains(it))
            || path.ends_with("tests.rs");
        let mut is_test = vec![whole; text.lines().count()];
        for (first, last) in test_items(&code) {
            let end = is_test.len().min(last + 1);
            is_test[first..end].fill(true);
        }
        Self { path: path.to_owned(), text: text.to_owned(), code, comments, is_test }
    }

    /// Lines of code outside tests with their number, counted from 1.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.lines().zip(&self.is_test).enumerate();
        lines.filter(|(_, (_, is_test))| !**is_test).map(|(at, (line, _))| (at + 1, line))
    }

    /// Every function that has a body.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let chars: Vec<char> = self.code.chars().collect();
        words(&self.code)
            .filter(|(_, word)| *word == "fn")
            .filter_map(|(at, _)| function(&chars, at))
            .collect()
    }
}

/// The words (identifiers, keywords, numbers) of a text with the index of their first character.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut place = 0;
    text.split_inclusive(|c: char| !is_word(c)).filter_map(move |piece| {
        let at = place;
        place += piece.chars().count();
        let word = piece.trim_end_matches(|c| !is_word(c));
        (!word.is_empty()).then_some((at, word))
    })
}

/// Whether `name` stands in `text` as a word of its own; its own ends may be any characters.
pub(crate) fn has_word(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        let joins = |edge: Option<char>, neighbour: Option<char>| {
            edge.is_some_and(is_word) && neighbour.is_some_and(is_word)
        };
        !joins(name.chars().next(), before) && !joins(name.chars().next_back(), after)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn separate(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut comments) = (String::new(), String::new());
    let mut at = 0;
    while at < chars.len() {
        let (end, is_comment, is_code) = match (comment_end(&chars, at), literal_end(&chars, at)) {
            (Some(end), _) => (end, true, false),
            (None, Some(end)) => (end, false, false),
            (None, None) => (at + 1, false, true),
        };
        for &c in &chars[at..end.min(chars.len())] {
            let blank = if c == '\n' { '\n' } else { ' ' };
            code.push(if is_code { c } else { blank });
            comments.push(if is_comment { c } else { blank });
        }
        at = end;
    }
    (code, comments)
}

fn comment_end(chars: &[char], at: usize) -> Option<usize> {
    match chars.get(at..at + 2)? {
        ['/', '/'] => Some(find(chars, at, |rest| rest[0] == '\n')),
        ['/', '*'] => {
            let mut depth = 0_u32;
            let mut here = at;
            while here + 1 < chars.len() {
                match &chars[here..here + 2] {
                    ['/', '*'] => depth += 1,
                    ['*', '/'] => depth -= 1,
                    _ => {
                        here += 1;
                        continue;
                    }
                }
                here += 2;
                if depth == 0 {
                    return Some(here);
                }
            }
            Some(chars.len())
        }
        _ => None,
    }
}

/// Where a string, byte string or character that starts here ends.
fn literal_end(chars: &[char], at: usize) -> Option<usize> {
    if at > 0 && is_word(chars[at - 1]) && chars[at] != '"' {
        return None;
    }
    match chars[at] {
        '"' => Some(quoted_end(chars, at)),
        '\'' => match chars.get(at + 1)? {
            '\\' => Some(find(chars, at + 3, |rest| rest[0] == '\'') + 1),
            _ => (chars.get(at + 2) == Some(&'\'')).then_some(at + 3),
        },
        'b' | 'c' | 'r' => prefixed_end(chars, at),
        _ => None,
    }
}

/// `b"`, `c"`, `r"`, `br#"`, `b'` and the like.
fn prefixed_end(chars: &[char], at: usize) -> Option<usize> {
    let prefix = chars[at..].iter().take_while(|c| matches!(c, 'b' | 'c' | 'r')).count();
    let hashes = chars[at + prefix..].iter().take_while(|c| **c == '#').count();
    let open = at + prefix + hashes;
    match chars.get(open)? {
        '"' if chars[at..at + prefix].contains(&'r') => {
            let closing: Vec<char> = "\"".chars().chain("#".repeat(hashes).chars()).collect();
            Some(find(chars, open + 1, |rest| rest.starts_with(&closing)) + closing.len())
        }
        '"' if hashes == 0 => Some(quoted_end(chars, open)),
        '\'' if prefix == 1 && hashes == 0 => literal_end(&chars[open..], 0).map(|end| open + end),
        _ => None,
    }
}

fn quoted_end(chars: &[char], open: usize) -> usize {
    let mut at = open + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn find(chars: &[char], from: usize, holds: impl Fn(&[char]) -> bool) -> usize {
    (from..chars.len()).find(|at| holds(&chars[*at..])).unwrap_or(chars.len())
}

/// First and last line of each item under `#[cfg(test)]`.
fn test_items(code: &str) -> Vec<(usize, usize)> {
    let chars: Vec<char> = code.chars().collect();
    let starts = code.match_indices("#[cfg(test)]").map(|(byte, _)| code[..byte].chars().count());
    starts.map(|at| (line_of(&chars, at), line_of(&chars, item_end(&chars, at)))).collect()
}

/// The last character of the item that starts at `at`: a semicolon or a closing brace.
fn item_end(chars: &[char], at: usize) -> usize {
    let mut depth = 0_i32;
    for (offset, c) in chars[at..].iter().enumerate() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' => depth -= 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return at + offset;
                }
            }
            ';' if depth == 0 => return at + offset,
            _ => {}
        }
    }
    chars.len().saturating_sub(1)
}

fn function(chars: &[char], at: usize) -> Option<Function> {
    let rest: String = chars[at + 2..].iter().take(200).collect();
    let name = rest.trim_start().split(|c| !is_word(c)).next().filter(|name| !name.is_empty())?;
    let end = item_end(chars, at);
    (chars.get(end) == Some(&'}')).then(|| Function {
        name: name.to_owned(),
        first_line: line_of(chars, at),
        last_line: line_of(chars, end),
    })
}

fn line_of(chars: &[char], at: usize) -> usize {
    chars[..at.min(chars.len())].iter().filter(|c| **c == '\n').count()
}

#[test]
fn comments_and_literals_are_not_code() {
    let text =
        "a(\"x // y\", 'b', r#\"c \"d\" e\"#, b'\\'', '\\\\'); // f\n/* g /* h */ i */ j<'k>(l);";
    let source = Source::new("x.rs", text);
    let code: Vec<&str> = words(&source.code).map(|(_, word)| word).collect();
    assert_eq!(code, ["a", "j", "k", "l"]);
    let comments: Vec<&str> = words(&source.comments).map(|(_, word)| word).collect();
    assert_eq!(comments, ["f", "g", "h", "i"]);
    assert_eq!(source.code.chars().count(), text.chars().count());
}

#[test]
fn raw_identifiers_and_multi_line_strings_keep_the_lines() {
    let source = Source::new("x.rs", "let r#fn = \"one\n two\\\" \";\nlet c = br\"\\\";\nlast");
    assert_eq!(source.code.lines().count(), 4);
    let code: Vec<&str> = words(&source.code).map(|(_, word)| word).collect();
    assert_eq!(code, ["let", "r", "fn", "let", "c", "last"]);
}

#[test]
fn lines_under_cfg_test_are_tests() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
    assert_eq!(Source::new("src/x.rs", text).is_test, [false, true, true, true, true, false]);
    let text = "#[cfg(test)]\nuse a::{b, c};\nfn d() {}\n";
    assert_eq!(Source::new("src/x.rs", text).is_test, [true, true, false]);
}

#[test]
fn a_function_goes_from_its_first_word_to_its_brace() {
    let text = "trait T { fn none(&self) -> [u8; 2]; }\nconst fn two<A>(\n    f: fn(u8) -> A,\n) \
                -> [A; 3] {\n    x\n}\n";
    let two = Function { name: "two".to_owned(), first_line: 1, last_line: 5 };
    assert_eq!(Source::new("src/x.rs", text).functions(), [two]);
}

#[test]
fn a_word_is_not_part_of_another() {
    assert!(has_word("x.print!(y)", "print!"));
    assert!(!has_word("eprint!(y)", "print!"));
    assert!(!has_word("MyInstant::now", "Instant"));
    assert!(has_word("a --time 10", "--time"));
    assert!(!has_word("a --timeout 10", "--time"));
}
