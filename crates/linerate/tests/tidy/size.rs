//! Functions fit a screen, files a sitting, lines a window (STYLE, "Shape" and "Comments").

use crate::source::Source;

const FUNCTION_LINES: usize = 70;
const FILE_LINES: usize = 600;
const COLUMNS: usize = 100;

/// Functions and files that are too long; items under `#[cfg(test)]` do not count.
pub(crate) fn lengths(source: &Source) -> Vec<String> {
    let path = &source.path;
    let whole_test = source.is_test.iter().all(|is_test| *is_test);
    let mut wrong = Vec::new();
    let lines = source.is_test.iter().filter(|is_test| whole_test || !**is_test).count();
    if lines > FILE_LINES {
        wrong.push(format!(
            "{path}: {lines} lines without its tests, at most {FILE_LINES}; move one thing out \
             into a file of its own"
        ));
    }
    for function in source.functions() {
        let lines = function.last_line - function.first_line + 1;
        if lines > FUNCTION_LINES && (whole_test || !source.is_test[function.first_line]) {
            wrong.push(format!(
                "{path}:{}: fn {} has {lines} lines, at most {FUNCTION_LINES}; give a step of it \
                 a name",
                function.first_line + 1,
                function.name
            ));
        }
    }
    wrong
}

/// Lines that are too wide, but for links, rows of raw strings, and strings that are a row of a
/// table.
pub(crate) fn widths(path: &str, text: &str, code: &str) -> Vec<String> {
    let lines = text.lines().zip(code.lines()).enumerate();
    lines
        .filter(|(_, (line, _))| line.chars().count() > COLUMNS && !line.contains("://"))
        .filter(|(_, (_, code))| !matches!(code.trim(), "" | ",") || !path.ends_with(".rs"))
        .map(|(at, _)| format!("{path}:{}: wider than {COLUMNS} columns; break the line", at + 1))
        .collect()
}

/// Comments that are too wide; the code check above leaves lines without code alone.
pub(crate) fn comment_widths(source: &Source) -> Vec<String> {
    let lines = source.text.lines().zip(source.comments.lines()).enumerate();
    lines
        .filter(|(_, (line, comment))| {
            line.chars().count() > COLUMNS && !comment.trim().is_empty() && !line.contains("://")
        })
        .map(|(at, _)| {
            format!(
                "{}:{}: comment wider than {COLUMNS} columns; break the line",
                source.path,
                at + 1
            )
        })
        .collect()
}

#[test]
fn a_long_function_is_found_and_a_long_test_is_not() {
    let body = "    x();\n".repeat(FUNCTION_LINES);
    let long = format!("fn long() {{\n{body}}}\n");
    let wrong = lengths(&Source::new("src/a.rs", &long));
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].starts_with("src/a.rs:1: fn long has 72 lines"), "{wrong:?}");
    let tested = format!("#[cfg(test)]\nmod tests {{\n{long}}}\nfn short() {{}}\n");
    assert_eq!(lengths(&Source::new("src/a.rs", &tested)), Vec::<String>::new());
}

#[test]
fn a_long_file_is_found_without_its_tests() {
    let text = "// x\n".repeat(FILE_LINES + 1);
    assert_eq!(lengths(&Source::new("src/a.rs", &text)).len(), 1);
    let tests = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{text}}}\n");
    assert_eq!(lengths(&Source::new("src/a.rs", &tests)).len(), 0);
}

#[test]
fn a_wide_line_is_found_and_a_link_or_a_row_of_a_string_is_not() {
    let wide = "x".repeat(COLUMNS + 1);
    let check = |text: &str| {
        let source = Source::new("src/a.rs", text);
        [widths(&source.path, text, &source.code), comment_widths(&source)].concat().len()
    };
    assert_eq!(check(&format!("{wide};\n")), 1);
    assert_eq!(check(&format!("// {wide}\n")), 1);
    assert_eq!(check(&format!("// https://example.org/{wide}\n")), 0);
    assert_eq!(check(&format!("let a = r\"\n{wide}\n\";\n")), 0);
    assert_eq!(check(&format!("let a = [\n    b\"{wide}\",\n];\n")), 0);
}
